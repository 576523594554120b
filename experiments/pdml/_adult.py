"""Adult as section VI-A has it: 45,000 rows, 4,500 per server, and the objective (1) on the true labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from confide import Problem, simulate
from confide.algorithms import PDML
from confide.papers import datasets
from confide.runs.metrics import Snapshot

from ._setting import SERVERS, STRENGTH, Array, method, network, reported

ROWS = 45_000


@cache
def rows(seed: int) -> tuple[Any, Array]:
    """45,000 of the 45,222 complete rows, of norm at most 1; 105 columns, the vocabulary of adult.names."""
    X, y = datasets.load_adult(every_category=True)
    chosen = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    return X[chosen], y[chosen]


def reference(true: Problem) -> float:
    """(1) at the optimum on the true labels, per server: what ADMM on the original data ends at."""
    return true.objective(true.solve()) / SERVERS


def watched(seed: int, epsilon: float | None, bound: float, **other: Any) -> dict[str, Array]:
    """Per round, (1) per server on the *true* labels at the servers' own classifiers, and their largest distance."""
    X, y = rows(seed)
    true = reported(X, y, None, seed)

    def risk(shot: Snapshot) -> Array:
        ridge = 0.5 * STRENGTH / SERVERS * np.sum(shot.estimates**2, axis=(1, 2))
        return np.asarray((true.block.value(shot.estimates).sum(axis=1) + ridge) / SERVERS)

    def apart(shot: Snapshot) -> Array:
        gap = shot.estimates[:, :, None] - shot.estimates[:, None]
        return np.asarray(np.linalg.norm(gap, axis=3).max(axis=(1, 2)))

    algorithm: PDML = method(bound, **other)
    run = simulate(
        reported(X, y, epsilon, seed), network(seed), algorithm, seeds=[seed], record={"risk": risk, "apart": apart}
    )
    return {"risk": run.history["risk"].T, "apart": run.history["apart"].T, "reference": np.array([reference(true)])}


@dataclass(frozen=True, eq=False)
class Kept(PDML):
    """PDML that keeps w_i(t), the solution of (15) before its noise: what a simulator sees and nobody is sent."""

    solutions: list[Array] = field(default_factory=list)

    def minimise(self, *given: Any) -> Array:
        w = super().minimise(*given)
        self.solutions.append(w.copy())
        return w


def aggregated(seed: int, epsilon: float, bound: float) -> dict[str, Array]:
    """Per round, Σ_i of (1) at w̄_i(t) = (1/t) Σ_k w_i(k), and at w̃_i(t), above the optimum's on the true labels.

    Also the same at w̄_i(t) on the reported labels above their optimum ŵ, the longest w_i(t), and ‖ŵ‖.
    """
    X, y = rows(seed)
    true, told = reported(X, y, None, seed), reported(X, y, epsilon, seed)
    hat = told.solve()
    run_method = Kept(**vars(method(bound)))

    def value(problem: Problem, models: Array) -> Array:
        ridge = 0.5 * STRENGTH / SERVERS * np.sum(models**2, axis=(1, 2))
        return np.asarray(problem.block.value(models).sum(axis=1) + ridge)

    best, least = SERVERS * reference(true), told.objective(hat)
    last = {"last": lambda shot: value(true, shot.estimates) - best}
    run = simulate(told, network(seed), run_method, seeds=[seed], record=last)
    w = np.array(run_method.solutions)  # (rounds, 1, servers, width)
    means = np.cumsum(w, axis=0) / np.arange(1, len(w) + 1)[:, None, None, None]
    return {
        "last": run.history["last"].T,
        "mean": np.array([value(true, m) - best for m in means]).T,
        "told": np.array([value(told, m) - least for m in means]).T,
        "norm": np.linalg.norm(w, axis=3).max(axis=2).T,
        "optimum": np.array([np.linalg.norm(hat)]),
    }


def settled(risk: Array, share: float = 0.01) -> int:
    """The first round after which (1) stays within `share` of where it ends."""
    far = np.flatnonzero(np.abs(risk - risk[-1]) > share * risk[-1])
    return int(far[-1]) + 2 if len(far) else 1
