"""Noise for real releases: an exact discrete Gaussian on a fine grid, fed by the operating system's entropy.

Textbook Gaussian noise added in floating point leaks through the last bits of the sum (Mironov, CCS 2012). So every
number is rounded to the nearest multiple of scale/2^26, and an exact discrete Gaussian of 2^26 steps is added in whole
numbers (`discrete_gaussian`). `SecureNoise(sampler="opendp")` takes OpenDP's sampler instead, whose grid is 2^-40 to
2^-39 of the scale: its release is finer, so that what is charged for ours covers it too.

`charge` turns the Gaussian events of a method into what such a release is, by the proof in `discrete`: a Gaussian of
sensitivity Δ + √width·step, and a slack of width·(4.9e-4/s⁴ + 2^-187), s = 2^26: 2.4e-35 a number; where parties share
their noise, the slack of their sum besides (`shared`), at most 6.1e-36 for two and less for more. At any δ that is
written down the slack matters only from ε = 35 or so, beyond which nothing is claimed. `rho` is the zCDP of the same
release, ½μ² at the enlarged sensitivity, up to the slack. A budget kept in zCDP counts the charged events as that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, MissingExtra
from confide.privacy import discrete_gaussian
from confide.privacy.calibration import mu_for
from confide.privacy.conversions import slack_delta
from confide.privacy.discrete import total_variation
from confide.privacy.events import Event, Gaussian
from confide.privacy.shared import parties_of, sum_slack

Array = NDArray[np.float64]
Widths = int | Sequence[int] | NDArray[np.int64]  # how many numbers carry noise: one for all releases, or one per round
STEP = 2.0**-discrete_gaussian.GRID  # of the grid, in units of the scale
EACH = float(total_variation(1 / STEP)) + 2.0**-187  # slack of one number: from a rounded normal, and of the sampler
SLACK = 1e12 * EACH  # of a million million numbers
OPENDP_GRID = 40
SAMPLERS = ("confide", "opendp")
# Covers the arithmetic below, and the relative 1/(23s²) < 1e-17 by which a normal of variance s² - 1/12 is narrower.
_ROUND_UP = 1 + 2.0**-50


def rho(sensitivity: float, scale: float, width: int) -> float:
    """zCDP of releasing `width` numbers of this L2 sensitivity with secure noise of this scale, rounding included."""
    (event,) = charge([[Gaussian(sensitivity, scale)]], width)[0]
    assert isinstance(event, Gaussian)
    return float(event.mu) ** 2 / 2 * _ROUND_UP


def charge(rounds: Sequence[Sequence[Event]], width: Widths) -> list[list[Event]]:
    """The same events as secure noise makes them, `width` numbers carrying noise in each release."""
    if np.ndim(width) and np.size(width) != len(rounds):
        raise ConfideError(f"{np.size(width)} widths for {len(rounds)} rounds: give one per round, or one for all")
    if np.any(np.less(width, 0)):
        raise ConfideError(f"width {np.min(width)}: the count of numbers that carry noise must be at least 0")
    widths = np.broadcast_to(width, len(rounds))
    return [[_charged(event, int(w)) for event in events] for events, w in zip(rounds, widths, strict=True)]


def _charged(event: Event, width: int) -> Event:
    if not isinstance(event, Gaussian):
        return event
    sensitivity, scale = np.broadcast_arrays(np.asarray(event.sensitivity, float), np.asarray(event.scale, float))
    reads = sensitivity > 0  # what does not depend on the rows is rounded alike on all data sets
    extreme = 2.0**discrete_gaussian.EXTREME
    if np.any(bad := reads & ~((scale >= 1 / extreme) & (scale <= extreme))):
        raise ConfideError(f"noise scale {scale[bad].flat[0]}: a release needs noise of a finite scale above 0")
    shared = np.broadcast_to(np.asarray(event.alone, float), scale.shape)  # of a sum: each party's own noise
    own = np.where(shared > 0, shared, scale)
    moved = np.where(reads, (sensitivity + math.sqrt(width) * STEP * own) * _ROUND_UP, 0.0)
    each = np.where(reads, EACH, 0.0)  # of a sum, too: its event also says what is left against everyone
    for k in np.argwhere(reads & (shared > 0)):
        each[tuple(k)] += _of_sum(parties_of(scale[tuple(k)], shared[tuple(k)]))
    return replace(event, sensitivity=moved, slack=np.asarray(event.slack) + width * each)


@lru_cache(maxsize=64)
def _of_sum(parties: int) -> float:
    """Slack of one number of so many parties' sum."""
    return sum_slack(1 / STEP, parties)


def rounding(width: Widths) -> float:
    """What `charge` adds at most to √Σμ², by Minkowski: the root of Σ width·(grid/scale)² over the releases."""
    return math.sqrt(float(np.sum(width))) * STEP * _ROUND_UP


def budget(epsilon: float, delta: float, width: Widths = 0) -> float:
    """Largest √Σμ² of Gaussian events that, charged as secure noise of these widths, cost at most (epsilon, delta).

    Part of δ is kept for the slack. It grows with e^ε, so that an ε beyond 35 or so is spent only so far.
    """
    mu_for(epsilon, delta)  # one line where they are no budget
    useful = min(epsilon, math.log(max(delta / (4 * SLACK), 1.0)))  # there the slack takes at most half of δ
    left = delta - slack_delta(SLACK, useful)
    if not (useful > 0 and left > 0):
        raise ConfideError(f"δ={delta:g}: secure noise is Gaussian up to {SLACK:.0e} only, δ must be well above that")
    most = float(mu_for(useful, left))
    if not most > rounding(width):
        raise ConfideError(f"ε={epsilon:g} at δ={delta:g}: does not even cover the rounding to the grid of the noise")
    return most - rounding(width)


def spendable(epsilon: float, delta: float) -> bool:
    """Whether secure noise makes use of all of ε; of one that is too large it spends only so much."""
    return epsilon <= 1 or budget(epsilon, delta) > budget(0.999 * epsilon, delta)


@dataclass(frozen=True, eq=False)
class SecureNoise:
    """Draws for one agent on a node. Each (round, name) is drawn once: a second draw would be a release nobody paid."""

    sampler: str = "confide"
    round: int = 0
    drawn: set[tuple[int, str]] = field(default_factory=set)
    ahead: discrete_gaussian.Reservoir = field(default_factory=discrete_gaussian.Reservoir)

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise ConfideError(f"sampler={self.sampler!r}: must be one of {', '.join(SAMPLERS)}")
        if self.sampler == "opendp":
            _opendp()  # a missing sampler is noticed before anything is paid

    def at(self, t: int) -> SecureNoise:
        """The draws of round t."""
        return replace(self, round=t)

    def prepare(self, numbers: int) -> None:
        """Draw the noise of a round before its inputs arrive: the time that takes depends on what is drawn."""
        if self.sampler == "confide":
            self.ahead.fill(numbers)

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        if value.shape[:2] != (1, 1):
            raise ConfideError(
                f"secure noise for {value.shape[:2]} seeds and agents: a node releases for itself, (1, 1)"
            )
        key = (self.round, name)
        if key in self.drawn:
            raise RuntimeError(f"round {self.round}: noise {name!r} was drawn already; send the stored message again")
        self.drawn.add(key)
        deviation = float(np.ravel(scale)[0])
        if self.sampler == "confide":
            return discrete_gaussian.gaussian(value, deviation, self.ahead)
        noisy = _measurement(deviation, value.shape[2])([float(v) for v in value[0, 0]])
        return np.array(noisy, float)[None, None]

    def public_normal(self, name: str, width: int) -> Array:
        return np.random.default_rng().normal(size=(1, 1, width))  # the operating system's entropy; nothing rests on it

    def gamma_norm(self, name: str, width: int) -> Array:
        raise ConfideError(f"noise {name!r}: there is no secure sampler of density exp(-‖·‖); use a Gaussian method")

    def ball(self, name: str, width: int) -> Array:
        raise ConfideError(f"noise {name!r}: there is no secure sampler in a ball; use a Gaussian method")

    def once(self) -> SecureNoise:
        raise ConfideError("noise drawn once per run has no secure sampler; use a Gaussian method")


@cache
def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra("OpenDP's sampler needs opendp: pip install confide[opendp]") from None
    dp.enable_features("contrib")  # the sampler's proof is in OpenDP's repository; its flag for such constructors
    return dp


@lru_cache(maxsize=4096)  # a schedule has one scale per round
def _measurement(scale: float, width: int) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=width)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale, k=math.frexp(scale)[1] - OPENDP_GRID)
