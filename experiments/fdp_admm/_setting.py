"""What all figures and tables of Zhou and Xiang (2022) share: the two designs, the data and many cells at once.

Section 5.1 sets η by Theorem 2 and σ by Theorem 1. In the tables' own design that step leaves an error of about 1
without noise where .23 is printed (theorems), so the printed tables have another one. The two designs:

as-published-tables   scores of standard deviation k⁻², noise √2·ln(1.25/δ) times Δ/ε, η_l = 56/√l and c1 = 1.07: what
                      the tables fit, see sweeps
as-written            scores of variance k⁻², noise √(2 ln(1.25/δ)) times Δ/ε, and Theorem 2's η_l with c1 = c_w = 1:
                      what the text says; its c1 ≥ ‖A_ij‖ is not given, its c_w = ‖w*‖ is not known to who runs it

Open in the text for both: L = 100 iterations, the mean of all w as the model (the text's w^L and Theorem 2's mean
contradict each other), w, w̃ and γ start at 0.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

import confide
from confide.algorithms import FDPADMM, fdp_admm
from confide.papers.theory import fdp_admm as theory
from confide.problem.block import Block
from confide.problem.problem import Problem, row_scale
from confide.runs.driver import Driver

from ._published import DELTAS, EPSILONS

DESIGNS = ("as-published-tables", "as-written")
N, WIDTH, ROUNDS = 100_000, 50, 100
COUPLING, STRENGTH = 0.1, 0.05  # ρ, λ
STEP, C1 = 56.0, 1.07
CELLS = tuple((e, d) for e in EPSILONS for d in DELTAS)  # as the tables are printed; then the non-private one

_k = np.arange(1, WIDTH + 1)
COEFFICIENTS = np.where(_k == 1, 0.3, 4.0 * (-1.0) ** (_k + 1) / _k**2)  # w of β(t) = Σ w_k φ_k(t)


def spread(design: str) -> Any:
    """Standard deviation of the scores."""
    return _k ** (-2.0 if design == "as-published-tables" else -1.0)


def rows(design: str, level: float, rng: Any, n: int = N) -> tuple[Any, Any]:
    """Scores A (n, 50) and targets of section 5: errors t(3), shifted so that their `level` quantile is 0."""
    A = rng.standard_normal((n, WIDTH)) * spread(design)
    return A.astype(np.float32), A @ COEFFICIENTS + rng.standard_t(3, n) - stats.t.ppf(level, 3)


def penalty(kind: str) -> Any:
    """λ‖w‖₁, or λ·½‖w‖², whose gradient λw is the one in section 5.2."""
    return confide.penalties.L1(STRENGTH) if kind == "l1" else confide.penalties.L2(STRENGTH)


def problem(design: str, level: float, workers: int, kind: str, trial: int, n: int = N) -> Problem:
    """The trial's own rows on `workers` machines; one trial is one data set and one stream of noise."""
    seed = [DESIGNS.index(design), round(100 * level), workers, trial]
    A, y = rows(design, level, np.random.default_rng(seed), n)
    offsets = np.linspace(0, n, workers + 1).astype(np.int64)  # rows are independent: any even split is a random one
    names = tuple(str(i) for i in range(workers))
    return Together(confide.Shards(A, y, offsets, names), confide.losses.Quantile(level), penalty(kind))


def multiplier(design: str, epsilon: float, delta: float) -> float:
    """z: the noise in units of the sensitivity."""
    return fdp_admm.multiplier(epsilon, delta, tables=design == "as-published-tables")


METHOD = {
    "rounds": ROUNDS, "coupling": COUPLING, "step": STEP, "step_decay": 0.5, "average_from": 0.0, "assumed_bound": C1,
    "ball": np.inf,
}  # fmt: skip  # FDP-ADMM as the paper ran it, c1 being assumed


def constants(
    epsilon: float, delta: float, workers: int, kind: str = "l1", c1: float = 1.0, norm: float = 1.0
) -> theory.Constants:
    """Theorem 2 in the simulation's numbers: c1, c_w = norm; c2 is √K for l1, c_w for l2; g is c1 + λc2/M."""
    slope = math.sqrt(WIDTH) if kind == "l1" else norm
    return theory.Constants(c1, slope, norm, WIDTH, N // workers, workers, COUPLING, STRENGTH,
                            c1 + STRENGTH * slope / workers, epsilon, delta)  # fmt: skip


def as_written(epsilon: float, delta: float, workers: int, kind: str = "l1") -> dict[str, Any]:
    """What changes in METHOD for the design as written: Theorem 2's step and c1 = 1."""
    return {"step": theory.step(constants(epsilon, delta, workers, kind), 1), "assumed_bound": 1.0}


@dataclass(frozen=True, eq=False)
class Cells(FDPADMM):
    """FDP-ADMM with noise of its own for every seed, so that cells of a table pass over the same rows together."""

    multipliers: Any = None

    def noise_scale(self, t: int, public: Any) -> Any:
        return np.asarray(self.multipliers)[:, None, None] * self.sensitivity(t, public)


class TogetherBlock(Block):
    """`Block` for the check loss: two matrix products an agent instead of a pass over its rows for every seed.

    In single precision, summed over 1,000 rows at a time: off by about 1e-6, a thousandth of the least noise.
    """

    _known: Any = (None, None)  # a point and the gradient there, which `value_and_gradient` found

    def _each(self, beta: Any) -> Any:
        for k in range(self.agents):
            X, y = self.shards.part(k)
            y, b = y.astype(np.float32)[:, None], beta[:, k].T.astype(np.float32)
            for first in range(0, len(y), 1000):
                part = X[first : first + 1000]
                yield k, part, y[first : first + 1000], part @ b

    def gradient(self, beta: Any, clip: Any = np.inf) -> Any:
        if np.any(np.asarray(clip) < np.inf):
            return super().gradient(beta, clip)
        at, found = self._known
        if at is not None and np.array_equal(at, beta):
            return found.copy()
        out = np.zeros(beta.shape)
        for k, part, y, z in self._each(beta):
            self._add_gradient(out, k, part, z >= y)
        return out * self.scale[:, None]

    def value(self, beta: Any) -> Any:
        out = np.zeros(beta.shape[:2])
        for k, _, y, z in self._each(beta):
            self._add_value(out, k, y - z)
        return out * self.scale

    def value_and_gradient(self, beta: Any) -> Any:
        """`value`; the gradient is found in the same pass over the rows, and kept for the next iteration."""
        value, gradient = np.zeros(beta.shape[:2]), np.zeros(beta.shape)
        for k, part, y, z in self._each(beta):
            self._add_gradient(gradient, k, part, z >= y)
            self._add_value(value, k, y - z)
        self._known = beta.copy(), gradient * self.scale[:, None]
        return value * self.scale

    def _add_gradient(self, out: Any, k: int, part: Any, above: Any) -> None:
        slope = above.astype(np.float32)
        slope -= np.float32(self.loss.level)
        out[:, k] += slope.T @ part

    def _add_value(self, out: Any, k: int, gap: Any) -> None:
        """τ·gap - min(gap, 0) is ½|gap| + (τ - ½)·gap; sums as products, which are several times as fast here."""
        one = np.ones(len(gap), np.float32)
        if self.loss.level != 0.5:
            out[:, k] += (self.loss.level - 0.5) * (one @ gap)
        out[:, k] += 0.5 * (one @ np.abs(gap))


class Together(Problem):
    """A problem that many seeds pass over together."""

    @cached_property
    def block(self) -> Block:
        return TogetherBlock(self.shards, self.loss, row_scale(self.shards.sizes, self.weighting), self.intercept)


def driver(given: Problem, multipliers: Any, trial: int, **changes: Any) -> Driver:
    """All cells at once, each with its own noise; a multiplier of 0 is the non-private algorithm."""
    cells = Cells(**{**METHOD, "noise": 1.0, "multipliers": multipliers, **changes})
    count, workers = len(multipliers), given.shards.parties
    return Driver(given, confide.Graph.star(workers), cells, range(count * trial, count * (trial + 1)))


def mise(estimates: Any) -> Any:
    """∫(β̂ - β)² of coefficients (…, 50): Σ(ŵ - w)², which the rule on the paper's 100 points gives exactly, too."""
    return np.sum((estimates - COEFFICIENTS) ** 2, axis=-1)
