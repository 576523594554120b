"""Adult as section VI-A has it: 45,000 rows, 4,500 per server, and the objective (1) on the true labels."""

from __future__ import annotations

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


def aggregated(seed: int, epsilon: float, bound: float) -> dict[str, Array]:
    """Per round, Σ_i of (1) at w̄_i(t) = (1/t) Σ_k w̃_i(k), and at w̃_i(t), above the optimum's on the true labels.

    Also the longest w̄_i(t) and ‖ŵ‖, the optimum with the reported labels.
    """
    X, y = rows(seed)
    true, told = reported(X, y, None, seed), reported(X, y, epsilon, seed)
    best, total, seen = SERVERS * reference(true), 0.0, 0

    def above(models: Array) -> Array:
        ridge = 0.5 * STRENGTH / SERVERS * np.sum(models**2, axis=(1, 2))
        return np.asarray(true.block.value(models).sum(axis=1) + ridge - best)

    def mean(shot: Snapshot) -> Array:
        nonlocal total, seen
        total, seen = total + shot.estimates, seen + 1
        return above(np.asarray(total) / seen)

    def longest(shot: Snapshot) -> Array:
        return np.asarray(np.linalg.norm(shot.estimates, axis=2).max(axis=1))

    record = {"mean": mean, "last": lambda shot: above(shot.estimates), "norm": longest}
    run = simulate(told, network(seed), method(bound), seeds=[seed], record=record)
    return {**{k: run.history[k].T for k in record}, "optimum": np.array([np.linalg.norm(told.solve())])}


def settled(risk: Array, share: float = 0.01) -> int:
    """The first round after which (1) stays within `share` of where it ends."""
    far = np.flatnonzero(np.abs(risk - risk[-1]) > share * risk[-1])
    return int(far[-1]) + 2 if len(far) else 1
