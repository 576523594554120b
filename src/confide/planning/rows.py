"""Rows for `plan`: invented ones of stated difficulty, or a party's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from confide.errors import ConfideError
from confide.estimators.fitting import Array, PooledRows
from confide.problem.checks import finite, whole
from confide.problem.linear import clipped

TEST_ROWS = 20_000  # generated to score on, at most 2,000 per party
FEWEST = 20  # rows of a party
HELD_OUT = 0.2  # of own rows
SPREAD = 0.5  # standard deviation of a generated feature, whose range is -1..1
TARGET_SPREAD = 0.3  # of a generated number, whose range is -1..1


class Source(Protocol):
    """Where rows come from: (rows to learn from, rows to score on) for a seed."""

    private: bool

    @property
    def parties(self) -> int: ...
    def draw(self, seed: int) -> tuple[PooledRows, PooledRows]: ...
    def describe(self) -> str: ...


def usual_best(kind: str) -> float:
    """Where nobody says how well the best model does: accuracy of a class, R² of a number."""
    return 0.85 if kind == "binary" else 0.6


@dataclass(frozen=True)
class Generated:
    """Invented rows of stated difficulty: no model scores better than `best` on them.

    Features are normal, clipped to -1..1 and rows to norm 1, as a schema encodes. The label follows a line through
    them, drawn anew for each seed, with logistic noise (for numbers: normal) such that the best score is `best`:
    accuracy, or R². With `skew` the parties' means lie that many standard deviations from the common one.
    """

    sizes: tuple[int, ...]
    features: int
    best: float = 0.85
    skew: float = 0.0
    kind: str = "binary"
    private = False

    def __post_init__(self) -> None:
        if len(self.sizes) < 2:
            raise ConfideError(f"{len(self.sizes)} party: learning over a network needs at least 2")
        if not all(whole(n) and n >= FEWEST for n in self.sizes):
            raise ConfideError(f"{min(self.sizes)} rows of a party: every one needs at least {FEWEST}")
        if not (whole(self.features) and 1 <= self.features <= 10_000):
            raise ConfideError(f"features {self.features}: must be a whole number from 1 to 10,000")
        low, high = (0.55, 0.99) if self.kind == "binary" else (0.05, 0.99)
        if not (finite(self.best) and low <= self.best <= high):
            raise ConfideError(f"best {self.best}: must be from {low} to {high}")
        if not (finite(self.skew) and 0 <= self.skew <= 5):
            raise ConfideError(f"skew {self.skew}: must be from 0 to 5")

    @property
    def parties(self) -> int:
        return len(self.sizes)

    def describe(self) -> str:
        score = "accuracy" if self.kind == "binary" else "R²"
        alike = "alike" if self.skew == 0 else f"{self.skew:g} sd apart"
        return f"generated rows, parties {alike}, best possible {score} {100 * self.best:.3g} %"

    def draw(self, seed: int) -> tuple[PooledRows, PooledRows]:
        rng = np.random.default_rng([seed, 20])
        direction = rng.normal(size=self.features)
        direction /= np.linalg.norm(direction)
        means = self.skew * rng.normal(size=(self.parties, self.features))
        tests = np.full(self.parties, max(200, min(2_000, TEST_ROWS // self.parties)))
        party = [np.repeat(np.arange(self.parties), n) for n in (np.array(self.sizes), tests)]
        X = [self._features(rng, means[k]) for k in party]
        steep = self._steepness(X[1] @ direction)
        names = tuple(f"party {k + 1}" for k in range(self.parties))
        out = [PooledRows(x, self._labels(rng, steep * (x @ direction)), k, names, self.kind)
               for x, k in zip(X, party, strict=True)]  # fmt: skip
        return out[0], out[1]

    def _features(self, rng: np.random.Generator, means: Array) -> Array:
        return np.asarray(clipped(np.clip(SPREAD * (means + rng.normal(size=means.shape)), -1, 1), 1.0))

    def _steepness(self, along: Array) -> float:
        """The slope of the line for which the best score is `best`."""
        if self.kind == "real":
            return math.sqrt(self.best) * TARGET_SPREAD / float(along.std())
        low, high = 0.0, 1e6
        for _ in range(60):
            middle = (low + high) / 2
            best = float(np.mean(1 / (1 + np.exp(-np.abs(middle * along)))))
            low, high = (middle, high) if best < self.best else (low, middle)
        return high

    def _labels(self, rng: np.random.Generator, line: Array) -> Array:
        if self.kind == "real":
            noise = math.sqrt(1 - self.best) * TARGET_SPREAD
            return np.clip(line + noise * rng.normal(size=line.shape), -1, 1)
        return np.where(line + rng.logistic(size=line.shape) > 0, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Own:
    """A party's, or a consortium's, own rows: a fifth of each party's is held out, another for each seed."""

    rows: PooledRows
    private = True

    def __post_init__(self) -> None:
        if len(self.rows.names) < 2:
            raise ConfideError("1 party: learning over a network needs at least 2")
        if self.rows.sizes.min() < 20:
            few = self.rows.names[int(self.rows.sizes.argmin())]
            raise ConfideError(f"party {few!r} has fewer than 20 rows: too few to hold some out")

    @property
    def parties(self) -> int:
        return len(self.rows.names)

    def describe(self) -> str:
        return "own rows, a fifth held out"

    def draw(self, seed: int) -> tuple[PooledRows, PooledRows]:
        rng = np.random.default_rng([seed, 21])
        out = np.zeros(len(self.rows.y), bool)
        for k in range(self.parties):
            mine = np.flatnonzero(self.rows.party == k)
            out[rng.permutation(mine)[: max(1, round(HELD_OUT * len(mine)))]] = True
        return self.rows.take(~out), self.rows.take(out)


def shares(parties: int | None, sizes: Sequence[int] | None) -> tuple[int, ...]:
    """Rows of each party: `sizes` one by one, or one number divided among them; 4,000 among 5 if nothing is said."""
    if sizes and len(sizes) > 1:
        if parties not in (None, len(sizes)):
            raise ConfideError(f"rows: {len(sizes)} numbers for {parties} parties: give one for each, or one for all")
        return tuple(sizes)
    total, count = sizes[0] if sizes else 4000, parties or 5
    if total < FEWEST * count:
        raise ConfideError(f"rows {total}, of {count} parties together: every one needs at least {FEWEST}")
    return tuple((k + 1) * total // count - k * total // count for k in range(count))
