"""Noise for real releases: OpenDP's discrete Gaussian, floating-point safe and fed by the operating system's entropy.

Textbook Gaussian noise added in floating point leaks through the last bits of the sum (Mironov, CCS 2012). OpenDP
rounds the value to a grid of 2^k and adds an exact discrete Gaussian (Canonne, Kamath and Steinke 2020); it proves zCDP
with a term for the rounding. `charge` turns the Gaussian events of a method into what the sampler proves; the
Gaussian-DP value of the same noise may be shown beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.privacy.events import ZCDP, Event, Gaussian

Array = NDArray[np.float64]
GRID = 40  # the grid is 2^-40 of the scale: its rounding term is below 1e-10 of the cost


@cache
def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ImportError("secure noise needs opendp: pip install confide[secure]") from None
    dp.enable_features("contrib")  # the sampler's proof is in OpenDP's repository; its flag for such constructors
    return dp


@lru_cache(maxsize=4096)  # a schedule has one scale a round
def _measurement(scale: float, width: int) -> Any:
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"noise scale {scale}: a release needs noise of a finite scale above 0")
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=width)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale, k=math.frexp(scale)[1] - GRID)


def rho(sensitivity: float, scale: float, width: int) -> float:
    """zCDP of releasing `width` numbers of this L2 sensitivity with secure noise of this scale, rounding included."""
    return float(_measurement(float(scale), int(width)).map(float(sensitivity)))


def charge(rounds: Sequence[Sequence[Event]], width: int) -> list[list[Event]]:
    """The same events at the cost that the secure sampler proves; `width` numbers carry noise in each release."""
    return [[_charged(event, width) for event in events] for events in rounds]


def _charged(event: Event, width: int) -> Event:
    if not isinstance(event, Gaussian):
        return event
    pairs = np.broadcast_arrays(np.atleast_1d(event.sensitivity), np.atleast_1d(event.scale))
    cost = np.array([rho(d, s, width) for d, s in zip(*pairs, strict=True)])
    kind = {"unit": event.unit, "adjacency": event.adjacency, "adversary": event.adversary}
    return ZCDP(cost if np.ndim(event.sensitivity) or np.ndim(event.scale) else float(cost[0]), **kind)


@dataclass(frozen=True, eq=False)
class SecureNoise:
    """Draws for one agent on a node. Each (round, name) is drawn once: a second draw would be a release nobody paid."""

    round: int = 0
    drawn: set[tuple[int, str]] = field(default_factory=set)

    def at(self, t: int) -> SecureNoise:
        """The draws of round t."""
        return replace(self, round=t)

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        if value.shape[:2] != (1, 1):
            raise ValueError(f"secure noise for {value.shape[:2]} seeds and agents: a node releases for itself, (1, 1)")
        key = (self.round, name)
        if key in self.drawn:
            raise RuntimeError(f"round {self.round}: noise {name!r} was drawn already; send the stored message again")
        self.drawn.add(key)
        numbers = [float(v) for v in value[0, 0]]
        noisy = _measurement(float(np.ravel(scale)[0]), len(numbers))(numbers)
        return np.array(noisy, float)[None, None]

    def public_normal(self, name: str, width: int) -> Array:
        return np.random.default_rng().normal(size=(1, 1, width))  # the operating system's entropy; nothing rests on it

    def gamma_norm(self, name: str, width: int) -> Array:
        raise ValueError(f"noise {name!r}: there is no secure sampler of density exp(-‖·‖); use a Gaussian method")

    def ball(self, name: str, width: int) -> Array:
        raise ValueError(f"noise {name!r}: there is no secure sampler in a ball; use a Gaussian method")

    def once(self) -> SecureNoise:
        raise ValueError("noise drawn once a run has no secure sampler; use a Gaussian method")
