"""What a fit buys before it learns: a target's range, features' ranges, class rates. Each comes from noised counts.

A tally is a `JointTally`, one private sum of how many rows are in each cell of a public grid, for a share of μ². All
tallies are known, calibrated and paid for before the first of them; which cells one asks for may depend on those before
it, which are public by then. What is read off the counts is post-processing.

A range is found in two tallies: how many |y| there are in each octave (2^(e-1), 2^e], e from -16 to 40, and then how
many y in each of 32 equal cells of (-2^e, 2^e), e being the top octave. From shares c with noise of deviation s the
range is the run of cells with the largest Σ (c_j - τ), and the top octave the last of such a run: a cell is taken in if
it seems to hold more than τ of the rows, which is 2 %, but at most 2s and at least s (½s for cells of a range, which
hold fewer rows each). A feature's range is ±2^e, from the first tally alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from confide.algorithms.joint_tally import JointTally
from confide.errors import ConfideError
from confide.estimators import one_fit as engine
from confide.network.graph import Graph
from confide.problem.losses import Squared
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards

Array = NDArray[np.float64]
Count = Callable[
    [Any], tuple[Array, float]
]  # each row's cell -> (each cell's share of the rows, the noise's deviation)
OCTAVES = np.arange(-16, 41)  # e of (2^(e-1), 2^e]; what is smaller or larger counts to the first or the last
CELLS = 32  # of a target's range
PRICES = {"target range": 0.1, "class rates": 0.05, "feature ranges": 0.2}  # of μ²
FEW = 0.02  # of the rows; a cell that holds fewer may be left out of a range
UNSEEN = 3.0  # deviations of noise that a count must exceed to be taken for rows


@dataclass(frozen=True, eq=False)
class Wish:
    """Something to be bought: the cells of its tallies, which share PRICES[name] evenly, and how it is found."""

    name: str
    cells: tuple[int, ...]
    find: Callable[[Count], Any]

    @property
    def price(self) -> float:
        """Of μ²."""
        return PRICES[self.name]


class Basket:
    """Wishes, as tallies of the same rows by party."""

    def __init__(self, wishes: Sequence[Wish], rows: Shards, graph: Graph | None) -> None:
        self.wishes, self.rows, self.graph = wishes, rows, graph
        self.phases: list[tuple[Any, Public]] = []

    @property
    def price(self) -> float:
        """Of μ²."""
        return sum(wish.price for wish in self.wishes)

    def calibrate(self, mu: float, epsilon: float, delta: float, collusion: int | None) -> None:
        """Set `phases`: every tally's method, with the noise that its share of μ² buys, and public problem."""
        public = self._problem(np.zeros(len(self.rows))).public(self.graph)
        for wish in self.wishes:
            share = mu * (wish.price / len(wish.cells)) ** 0.5
            for cells in wish.cells:
                method = JointTally(edges=tuple(c + 0.5 for c in range(cells - 1)), collusion=collusion)
                self.phases.append((engine.calibrated(method, public, share, epsilon, delta), public))

    def buy(self, seed: int | None, heard: Callable[[], None]) -> dict[str, Any]:
        """What was found, by name; all of it is paid for."""
        counts = self._counts(seed, heard)
        return {wish.name: wish.find(lambda codes: next(counts)(codes)) for wish in self.wishes}

    def _counts(self, seed: int | None, heard: Callable[[], None]) -> Iterator[Count]:
        for i, (method, public) in enumerate(self.phases):
            own = None if seed is None else seed + (2 + i) * 2**32  # other noise than the fit's and the evaluation's

            def count(codes: Any, method: Any = method, public: Public = public, own: int | None = own) -> Any:
                graph: Any = self.graph
                (sums,) = engine.rounds(self._problem(codes), graph, method, own)
                heard()
                return sums[0], float(method.sum_scale(1, public)[0, 0])

            yield count

    def _problem(self, codes: Any) -> Problem:
        """Rows that are nothing but the number of a cell, in the parties' order."""
        rows = self.rows
        alike = Shards.checked(np.zeros((len(rows), 1)), np.asarray(codes, float), rows.offsets, rows.names)
        return Problem(alike.clip_rows(1.0), Squared(), weighting="rows")


# --- what is found ----------------------------------------------------------------------------------------------------


def target_range(y: Array) -> Wish:
    """(low, high) of targets y (n,)."""

    def find(count: Count) -> tuple[float, float]:
        most = 2.0 ** top(*count(octaves(y)))
        edges = np.linspace(-most, most, CELLS + 1)
        shares, noise = count(np.searchsorted(edges, y))  # the first and the last cell are outside
        first, end = run(shares[1:-1], noise)
        return float(edges[first]), float(edges[end])

    return Wish("target range", (len(OCTAVES), CELLS + 2), find)


def feature_ranges(X: Any) -> Wish:
    """±2^e of every feature of X (n, p): (p,)."""

    def column(j: int) -> Array:
        one = X[:, [j]]
        return np.asarray(one.toarray() if sp.issparse(one) else one, float).ravel()

    def find(count: Count) -> Array:
        return np.array([2.0 ** top(*count(octaves(column(j)))) for j in range(X.shape[1])])

    return Wish("feature ranges", (len(OCTAVES),) * X.shape[1], find)


def class_rates(index: Array, classes: int) -> Wish:
    """Each class's share of the rows, of class numbers (n,): at least twice the noise's deviation, 1 together."""

    def find(count: Count) -> Array:
        shares, noise = count(index)
        rates = np.maximum(shares, max(2 * noise, 0.05 / classes))
        return np.asarray(rates / rates.sum())

    return Wish("class rates", (classes,), find)


def octaves(values: Array) -> Array:
    """The place in OCTAVES of every |value|."""
    with np.errstate(divide="ignore"):
        e = np.ceil(np.log2(np.abs(values)))
    return np.clip(e, OCTAVES[0], OCTAVES[-1]) - OCTAVES[0]


def top(shares: Array, noise: float) -> int:
    """e of the highest octave that seems to hold rows; 0 where none does. The first is that of 0, which always fits."""
    first, end = run(shares[1:], noise, 1.0)
    return int(OCTAVES[end]) if end - first < len(shares) - 1 else 0


def worth(noise: float, least: float) -> float:
    """τ."""
    return min(2 * noise, max(least * noise, FEW))


def run(shares: Array, noise: float, least: float = 0.5) -> tuple[int, int]:
    """First and end of the run of cells that seems to hold the rows; all of them where none does."""
    sums = np.concatenate([[0.0], np.cumsum(shares - worth(noise, least))])
    end = int(np.argmax(sums[1:] - np.minimum.accumulate(sums[:-1]))) + 1
    first = int(np.argmin(sums[:end]))
    return (first, end) if sums[end] - sums[first] > UNSEEN * noise else (0, len(shares))


def only_auto(algorithm: Any, wish: str, instead: str) -> None:
    """Other methods' noise may depend on what is not known before the purchase."""
    if not isinstance(algorithm, str):
        raise ConfideError(f"{wish} is bought, which algorithm='auto' does: {instead}")


def told(found: dict[str, Any], wishes: Sequence[Wish]) -> str:
    """What was bought, for how much, in words."""
    return "; ".join(f"{wish.price:.0%} of μ² bought {wish.name} {_short(found[wish.name])}" for wish in wishes)


def _short(value: Any) -> str:
    shown = np.asarray(value, float).ravel()
    text = ", ".join(f"{v:.4g}" for v in shown[:6])
    return f"({text}{', …' if len(shown) > 6 else ''})"
