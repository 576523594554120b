"""The contract of an algorithm, and what most of them share.

An algorithm is cut where the network is: `local` holds the paper's lines up to the message and is the only function
that sees private rows; `absorb` holds the lines after it and is post-processing. Everything else is public. State is a
NamedTuple of arrays (seeds, agents, …); in `local` and `absorb` the round `t` counts from 1, as in the papers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.privacy import Event, Free, Gaussian, Guarantee, Label, Unbounded, mu, mu_for
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.checks import finite, whole
from confide.problem.problem import Public

Array = NDArray[np.float64]
Parameter = Any  # a number, or one number an agent


class Schedule(NamedTuple):
    """Per round: does it touch private rows, and how wide is the message."""

    touches: NDArray[np.bool_]
    widths: NDArray[np.int64]


class Consensus(NamedTuple):
    """State of the peer methods: own last broadcast, dual, and the sum of the neighbours' last broadcasts."""

    primal: Array
    dual: Array
    neighbours: Array


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Base of every method; subclasses are frozen dataclasses of public parameters."""

    topology: ClassVar[str] = "peer"  # "all": server methods; "central": no network
    paper: ClassVar[str] = ""
    needs: ClassVar[str] = "any loss"  # for the list of algorithms

    rounds: int = 100

    # --- public -----------------------------------------------------------------------------------------------------

    def check(self, public: Public) -> None:
        """One clear line where this method does not suit the problem."""
        self.counts("rounds")

    def schedule(self, public: Public) -> Schedule:
        return Schedule(np.ones(self.rounds, bool), np.full(self.rounds, public.width))

    def weights(self, graph: Any) -> Any:
        """What a neighbour's message counts in `received`: by default 1."""
        return graph.adjacency

    def init(self, public: Public) -> Any:
        """State before round 1, with one seed: (1, agents, …)."""
        zero = np.zeros((1, len(public.agents), public.width))
        return Consensus(zero, zero, zero)

    def local(self, t: int, state: Any, block: Block | None, public: Public, noise: Noise) -> Array:
        """The message of round t: the only function that sees private rows."""
        raise TypeError(f"{self.name} does not say what it sends: a method needs `local`")

    def absorb(self, t: int, state: Any, message: Array, received: Array, public: Public) -> Any:
        """The next state, from public values only."""
        raise TypeError(f"{self.name} does not say what it keeps: a method needs `absorb`")

    def estimate(self, state: Any, public: Public) -> Array:
        """Each agent's model: (seeds, agents, width)."""
        return np.asarray(state.primal)

    def events(self, public: Public) -> list[list[Event]]:
        """What round 1, 2, … releases, with one parameter an agent; known before a row is read."""
        return [[Unbounded() if touch else Free()] for touch in self.schedule(public).touches]

    def guarantee(self, public: Public) -> Guarantee:
        return Guarantee(Label.NONE, "messages carry no noise")

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        """What the paper itself claims for these parameters, to be shown beside the exact total."""
        return []

    # --- common -----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return type(self).__name__

    def positive(self, *names: str) -> None:
        """One clear line for a parameter that is not above 0."""
        for name in names:
            if not np.all(self._numbers(name) > 0):
                raise ValueError(f"{self.name} {name}={getattr(self, name)}: must be finite and above 0")

    def nonnegative(self, *names: str) -> None:
        """One clear line for a parameter that is below 0."""
        for name in names:
            if not np.all(self._numbers(name) >= 0):
                raise ValueError(f"{self.name} {name}={getattr(self, name)}: must be finite and at least 0")

    def fraction(self, *names: str) -> None:
        """One clear line for a parameter outside [0, 1]."""
        for name in names:
            v = self._numbers(name)
            if not np.all((v >= 0) & (v <= 1)):
                raise ValueError(f"{self.name} {name}={getattr(self, name)}: must lie in [0, 1]")

    def counts(self, *names: str) -> None:
        """One clear line for a parameter that is not a whole number of at least 1."""
        for name in names:
            if not whole(getattr(self, name)) or getattr(self, name) < 1:
                raise ValueError(f"{self.name} {name}={getattr(self, name)}: must be a whole number of at least 1")

    def _numbers(self, name: str) -> Array:
        """A parameter, common or one an agent, as an array of finite numbers."""
        given = getattr(self, name)
        values = [given] if np.ndim(given) == 0 else list(given)
        if not all(finite(v) for v in values):
            raise ValueError(f"{self.name} {name}={given}: must be a finite number, or one an agent")
        return np.asarray(values, float)


@dataclass(frozen=True, eq=False)
class GaussianMethod(Algorithm):
    """A method whose message carries Gaussian noise on a clipped gradient; `noise=0` switches privacy off.

    Each row's gradient is shortened to norm `clip`: for a linear model that acts on the scalar slope, so the result is
    the gradient of a convex (Huberised) loss. Without `clip` the bound is the loss's own slope bound times the row norm
    that `Shards.clip_rows` enforced, or `assumed_bound`, which nothing enforces.
    """

    clip: Parameter = math.inf
    assumed_bound: Parameter = None
    noise: Parameter = 0.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("noise")
        bounds = [self.clip] if np.ndim(self.clip) == 0 else list(self.clip)
        if not all((finite(c) and c > 0) or c == math.inf for c in bounds):
            raise ValueError(f"{self.name} clip={self.clip}: must be above 0; inf does not clip")

    def noise_scale(self, t: int, public: Public) -> Array:
        """Standard deviation of the noise in round t: (A, 1)."""
        return public.each(self.noise)

    def sensitivity(self, t: int, public: Public) -> Array:
        """How far the message of round t can move when one row is replaced: (A, 1)."""
        raise TypeError(f"{self.name} does not bound its message: a private method needs `sensitivity`")

    def row_bound(self, public: Public) -> Array:
        """Largest norm of one row's gradient, enforced or assumed: (A, 1)."""
        clip = public.each(self.clip)
        if public.row_norm is not None:
            longest = math.sqrt(public.row_norm**2 + public.intercept)
            clip = np.minimum(clip, public.loss.slope_bound * longest)
        if self.assumed_bound is not None:
            clip = np.minimum(clip, public.each(self.assumed_bound))
        return clip

    def private(self, public: Public) -> bool:
        return bool(np.all(public.each(self.noise) > 0))

    def events(self, public: Public) -> list[list[Event]]:
        if not self.private(public) or not np.all(np.isfinite(self.row_bound(public))):
            return super().events(public)
        return [
            [Gaussian(self.sensitivity(t, public)[:, 0], self.noise_scale(t, public)[:, 0]) if touch else Free()]
            for t, touch in enumerate(self.schedule(public).touches, start=1)
        ]

    def guarantee(self, public: Public) -> Guarantee:
        if not self.private(public):
            return super().guarantee(public)
        enforced = replace(self, assumed_bound=None).row_bound(public)
        if np.all(enforced <= self.row_bound(public)):
            return Guarantee(Label.PROVEN, f"{self.enforced(public)}, Gaussian noise is accounted exactly")
        if self.assumed_bound is None:
            return Guarantee(Label.NONE, "nothing bounds a row's gradient: set clip")
        return Guarantee(Label.ASSUMED, f"row gradients are assumed, not forced, to stay below {self.assumed_bound}")

    def enforced(self, public: Public) -> str:
        """What bounds a row, in words."""
        clipped = np.any(np.isfinite(public.each(self.clip)))
        return "row gradients are clipped" if clipped else "rows are clipped and the loss's slope is bounded"

    def calibrated(self, public: Public, epsilon: float, delta: float) -> Self:
        """The same method with the least noise that keeps every agent's exact total within (epsilon, delta)."""
        unit = replace(self, noise=1.0)
        self.check(public)
        if not np.all(np.isfinite(unit.row_bound(public))):
            raise ValueError(f"{self.name}: no noise meets ε={epsilon} while row gradients are unbounded: set clip")
        # every μ_t is inversely proportional to `noise`, so one division calibrates; the factor guards rounding
        need = np.asarray(mu(chain.from_iterable(unit.events(public))), float) / mu_for(epsilon, delta) * (1 + 1e-12)
        return replace(self, noise=need if np.ptp(need) > 0 else float(np.max(need)))


def tail_mean(mean: Array, new: Array, t: int, rounds: int, average_from: float) -> Array:
    """Running mean of the iterates of rounds after the fraction `average_from`; at 1, the last iterate alone."""
    first = min(int(average_from * rounds), rounds - 1)  # rounds left out of the mean
    return mean + (new - mean) / max(t - first, 1)


def decayed(step: float, decay: float, t: int) -> float:
    """η_t = step / t^decay."""
    return float(step / t**decay)
