"""What a run spent, as a report shows it: by round, by party, and as what an adversary could do with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide.privacy import (
    ZCDP,
    Event,
    Free,
    Gaussian,
    ObjectivePerturbation,
    PureDP,
    RadialNoise,
    RandomizedResponse,
    Unbounded,
)
from confide.privacy.budget import of_agent
from confide.privacy.events import Kind
from confide.runs.run import Privacy

Array = NDArray[np.float64]
GAUSSIAN_POINTS, OTHER_POINTS = 200, 10  # rounds at which the running total is computed; other events take longer
DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
_ENDS = np.geomspace(1e-4, 0.02, 20)
LEVELS = np.concatenate([[0.0], _ENDS, np.linspace(0.03, 0.97, 95), 1 - _ENDS[::-1], [1.0]])  # false-alarm rates
ODDS = 16  # values of ε at which δ is asked for, where no curve is known


@dataclass(frozen=True, eq=False)
class Spend:
    """Of one kind: unit, adjacency and adversary. Arrays are over agents."""

    kind: Kind
    delta: float
    exact: Array  # ε of the noise that was drawn, exactly
    paid: Array | None  # ε as secure noise is charged, where that is another
    rounds: list[int]
    path: list[float]  # the same after each of these rounds, of the agent that spends most
    paid_path: list[float] | None
    costs: dict[str, list[float]]  # of each round by itself: "μ" of Gaussian and zCDP releases, "ε" of pure ones
    worst: list[Event]  # the events of the agent that spent most

    @property
    def total(self) -> Array:
        """What counts: what was paid, or the exact total where nothing was charged."""
        return self.exact if self.paid is None else self.paid

    @property
    def epsilon(self) -> float:
        return float(np.max(self.total))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.epsilon))

    @property
    def unit(self) -> str:
        return self.kind[0]

    @property
    def closed(self) -> bool:
        """Whether the totals are exact, and not the smallest of several upper bounds."""
        return all(isinstance(e, Gaussian) for e in self.worst)

    @cached_property
    def _misses(self) -> Callable[[Array], Array]:
        return trade_off(self.worst)

    @cached_property
    def success(self) -> float:
        """Chance of the best guess between two equally likely values of the unit; a coin has ½."""
        return float(privacy.distinguish(self.worst))

    def curve(self) -> tuple[Array, Array]:
        """False-alarm rates, and the largest share of true cases a test of them can find."""
        return LEVELS, 1 - self._misses(LEVELS)

    def found(self, alarms: float) -> float:
        """The largest share of true cases that a test with this false-alarm rate can find."""
        return float(1 - self._misses(np.array([alarms]))[0])

    def at(self, deltas: Sequence[float] = DELTAS) -> list[tuple[float, float]]:
        """ε at several δ: one guarantee read in several places."""
        return [(d, float(np.max(privacy.epsilon(self.worst, d)))) for d in deltas]


def spending(spent: Privacy, delta: float) -> list[Spend]:
    """One for each kind of what is protected."""
    every = [*spent.before, *chain.from_iterable(spent.events)]
    kinds = dict.fromkeys(e.kind for e in every if not isinstance(e, Free))
    return [_spend(spent, kind, delta) for kind in kinds]


def _spend(spent: Privacy, kind: Kind, delta: float) -> Spend:
    before = _of_kind(spent.before, kind)
    events = [_of_kind(one, kind) for one in spent.events]
    charged = None if spent.charged is None else [_of_kind(one, kind) for one in spent.charged]
    rounds = _points(events)
    exact = _running(before, events, rounds, delta, spent.agents)
    paid = None if charged is None else _running(before, charged, rounds, delta, spent.agents)
    return Spend(
        kind,
        delta,
        exact[-1],
        None if paid is None else paid[-1],
        rounds,
        [float(v.max()) for v in exact],
        None if paid is None else [float(v.max()) for v in paid],
        _costs(events),
        merged(of_agent([*before, *chain.from_iterable(events)], int(np.argmax(exact[-1])))),
    )


def _of_kind(events: Iterable[Event], kind: Kind) -> list[Event]:
    return [e for e in events if not isinstance(e, Free) and e.kind == kind]


def _points(events: list[list[Event]]) -> list[int]:
    """Rounds to compute the running total at: the first, the last and as many between as take a moment."""
    easy = all(isinstance(e, Gaussian | ZCDP) for e in chain.from_iterable(events))
    most = GAUSSIAN_POINTS if easy else OTHER_POINTS
    return [int(t) for t in np.unique(np.linspace(0, len(events), min(len(events), most) + 1).astype(int))]


def _running(
    before: list[Event], events: list[list[Event]], rounds: list[int], delta: float, agents: int
) -> list[Array]:
    """Exact ε of every agent after each of these rounds."""
    out, done, total = [], 0, merged(before)
    for t in rounds:
        total = merged([*total, *chain.from_iterable(events[done:t])])
        done = t
        out.append(np.broadcast_to(np.asarray(privacy.epsilon(total, delta), float), agents).copy())
    return out


def merged(events: Iterable[Event]) -> list[Event]:
    """The same cost in fewer events: Gaussians compose to one of √Σμ², zCDP to one of Σρ."""
    square: Any = 0.0
    slack: Any = 0.0
    rho: Any = 0.0
    rest: list[Event] = []
    kind: dict[str, Any] = {}
    for e in events:
        kind = {"unit": e.unit, "adjacency": e.adjacency, "adversary": e.adversary}
        if isinstance(e, Gaussian):
            square, slack = square + np.square(e.mu), slack + np.asarray(e.slack)
        elif isinstance(e, ZCDP):
            rho = rho + np.asarray(e.rho)
        else:
            rest.append(e)
    lost = ~np.isfinite(square)
    if np.any(lost):  # a Gaussian event takes no infinite μ with a finite scale
        rest.append(
            Unbounded(**kind) if np.all(lost) else Gaussian(np.where(lost, 1.0, 0.0), np.where(lost, 0.0, 1.0), **kind)
        )
        square = np.where(lost, 0.0, square)
    first = [Gaussian(np.sqrt(square), 1.0, slack=slack, **kind)] if np.any(square > 0) else []
    return [*first, *([ZCDP(rho, **kind)] if np.any(rho > 0) else []), *rest]


def _costs(events: list[list[Event]]) -> dict[str, list[float]]:
    """What each round costs by itself, of the agent for which it costs most."""

    def size(e: Any) -> Any:
        return np.square(e.mu) if isinstance(e, Gaussian) else 2 * np.asarray(e.rho)

    kinds = {"μ": (Gaussian, ZCDP), "ε": (PureDP, ObjectivePerturbation, RadialNoise, RandomizedResponse)}
    out = {}
    for name, kind in kinds.items():
        chosen = [[e for e in one if isinstance(e, kind)] for one in events]
        if any(chosen):
            cost: Any = size if name == "μ" else lambda e: np.asarray(e.epsilon)
            sums = [float(np.max(sum((cost(e) for e in one), np.zeros(1)))) for one in chosen]
            out[name] = [math.sqrt(v) for v in sums] if name == "μ" else sums
    return out


def trade_off(events: list[Event]) -> Callable[[Array], Array]:
    """Smallest rate of missed cases at each false-alarm rate.

    Where no closed form is exact (zCDP, mixtures, several pure ε), what several (ε, δ) imply together: each gives
    max(0, 1 - δ - e^ε·α, e^-ε·(1 - δ - α)), and the largest of them holds.
    """
    if all(isinstance(e, Gaussian) for e in events) or (len(events) == 1 and not isinstance(events[0], ZCDP)):
        return lambda levels: np.asarray(privacy.trade_off(events, levels), float)
    far = float(np.max(privacy.epsilon(events, 1e-6)))
    odds = np.linspace(0.0, far, ODDS) if math.isfinite(far) else np.zeros(1)
    rests = [(float(e), 1 - float(np.max(privacy.delta(events, float(e))))) for e in odds]

    def beta(levels: Array) -> Array:
        best = np.zeros_like(levels)
        for e, rest in rests:
            best = np.maximum.reduce([best, rest - math.exp(e) * levels, math.exp(-e) * (rest - levels)])
        return best

    return beta
