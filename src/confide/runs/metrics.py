"""What a simulation can record each round. Most read private rows or the optimum: for simulations, not for release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.errors import ConfideError
from confide.problem.block import SolverError
from confide.problem.problem import Problem, Public
from confide.runs.spread import standard_error

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A round as a metric sees it.

    problem, public, algorithm    what is fixed over the run
    test                          (X, y) of a test set declared public, or None
    t, estimates, state           the round from 0, the models (seeds, agents, width), and the method's state
    """

    problem: Problem
    public: Public
    algorithm: Algorithm
    test: tuple[Any, Any] | None = None
    t: int = 0
    estimates: Array = None  # type: ignore[assignment]
    state: Any = None

    def at(self, t: int, estimates: Array, state: Any) -> Snapshot:
        return replace(self, t=t, estimates=estimates, state=state)

    @cached_property
    def optimum(self) -> Array:
        try:
            return self.problem.solve()
        except SolverError as error:
            raise SolverError(f"metric 'error': {error}; or record other metrics") from None


Metric = Callable[[Snapshot], Array]


def error(shot: Snapshot) -> Array:
    """Σ_k ‖β_k - β_c‖² / ‖β_c‖², β_c the centralised optimum: (seeds,)."""
    best = shot.optimum
    return np.asarray(np.sum((shot.estimates - best) ** 2, axis=(1, 2)) / max(float(best @ best), 1e-300))


def consensus(shot: Snapshot) -> Array:
    """Largest distance of an agent's model from the agents' average: (seeds,)."""
    gap = shot.estimates - shot.estimates.mean(axis=1, keepdims=True)
    return np.asarray(np.linalg.norm(gap, axis=2).max(axis=1))


def risk(shot: Snapshot) -> Array:
    """Mean over agents of their own model's mean loss on their own rows, without penalty: (seeds,)."""
    block = shot.problem.block
    beta = np.broadcast_to(shot.estimates, (len(shot.estimates), block.agents, shot.estimates.shape[2]))
    return np.asarray((block.value(beta) / (block.scale * shot.problem.shards.sizes)).mean(axis=1))


def objective(shot: Snapshot) -> Array:
    """Σ_k f_k at the agents' average model: (seeds,)."""
    return np.array([shot.problem.objective(model) for model in shot.estimates.mean(axis=1)])


def augmented(shot: Snapshot) -> Array:
    """The augmented Lagrangian of the consensus problem at the agents' models and duals: (seeds,).

    Peers: Σ_k f_k(β_k) + γ_kᵀβ_k + (ρ/4) Σ_l ‖β_k - β_l‖².
    With a server: Σ_k f_k(w_k) - γ_kᵀ(w_k - w) + (ρ/2)‖w_k - w‖².
    """
    state, public = shot.state, shot.public
    beta, dual, rho = state.primal, state.dual, public.each(shot.algorithm.coupling)  # type: ignore[attr-defined]
    total = shot.problem.block.value(beta).sum(axis=1)
    total = total + np.sum(public.penalty.terms(beta) * public.mask, axis=(1, 2)) / public.count
    if shot.algorithm.topology == "all":
        gap = beta - state.average
        return np.asarray(total + np.sum(-dual * gap + 0.5 * rho * gap * gap, axis=(1, 2)))
    assert public.graph is not None
    a, b = public.graph.edges.T
    gap = beta[:, a] - beta[:, b]
    weight = 0.25 * (rho[a] + rho[b])
    return np.asarray(total + np.sum(dual * beta, axis=(1, 2)) + np.sum(weight * gap * gap, axis=(1, 2)))


def test(shot: Snapshot) -> Array:
    """On the public test set, the agents' average model: accuracy for labels, mean loss for real targets: (seeds,)."""
    return np.array([np.mean(rows) for rows in _on_test_rows(shot, "test")])


def test_standard_error(shot: Snapshot) -> Array:
    """Standard error of `test` for the chance of which rows are in the test set: (seeds,).

    It is the same chance for all seeds: more of them do not make it smaller, more test rows do.
    """
    error = standard_error(np.asarray(_on_test_rows(shot, "test_standard_error"), float))
    if error is None:
        raise ConfideError("metric 'test_standard_error': 1 test row, must be at least 2")
    return error


def _on_test_rows(shot: Snapshot, name: str) -> list[Any]:
    """For each seed's average model, what each test row says: right or wrong, or its loss."""
    if shot.test is None:
        raise ConfideError(f"metric {name!r} needs a public test set: simulate(..., test=(X, y))")
    X, y = shot.test
    out = []
    for model in shot.estimates.mean(axis=1):
        guess = shot.problem.predict(X, model)
        real = shot.problem.loss.labels == "real"
        out.append(shot.problem.loss.base.value(guess, y) if real else guess == y)
    return out


METRICS: dict[str, Metric] = {
    "error": error, "consensus": consensus, "risk": risk, "objective": objective, "augmented": augmented, "test": test,
    "test_standard_error": test_standard_error,
}  # fmt: skip
# of models, which are public, and of a test set declared public
PUBLIC: tuple[Metric, ...] = (consensus, test, test_standard_error)
