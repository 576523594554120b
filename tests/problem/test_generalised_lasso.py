"""λ‖Dβ‖₁: its value, its subgradient and what is refused; CVXPY's optimum is the oracle of a linearised run."""

import cvxpy as cp
import numpy as np
import pytest

import confide
from confide.errors import ConfideError
from confide.problem.penalties import GeneralisedLasso

D = np.diff(np.eye(4), axis=0)


def pose(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = X @ [1.0, 1.0, -1.0, -1.0] + 0.1 * rng.normal(size=120)
    return confide.Problem(confide.Shards.split(X, y, 3, seed=0), confide.losses.Squared(), penalty)


def test_value_and_subgradient():
    penalty, rng = GeneralisedLasso(D, 0.7), np.random.default_rng(1)
    beta, other = rng.normal(size=(2, 5, 3, 4))
    value = penalty.terms(beta).sum(axis=-1)
    assert np.allclose(value, 0.7 * np.abs(np.diff(beta, axis=-1)).sum(axis=-1))
    slope = penalty.gradient(beta)  # R(other) ≥ R(β) + slopeᵀ(other - β) for all others
    assert np.all(penalty.terms(other).sum(axis=-1) >= value + np.sum(slope * (other - beta), axis=-1) - 1e-12)


def test_a_linearised_method_reaches_cvxpys_optimum():
    task = pose(GeneralisedLasso(D, 0.3))
    beta = cp.Variable(4)
    loss = sum(cp.sum_squares(X @ beta - y) / (2 * len(y)) for X, y in (task.shards.part(k) for k in range(3)))
    cp.Problem(cp.Minimize(loss + 0.3 * cp.norm1(cp.diff(beta)))).solve()
    method = confide.algorithms.LinearizedADMM(rounds=20_000, coupling=0.5, step=1.0, step_decay=0.5)
    run = confide.simulate(task, confide.Graph.complete(3), method, record=())
    assert np.allclose(run.estimates[0], beta.value, atol=0.01)
    assert task.objective(beta.value) == pytest.approx((loss + 0.3 * cp.norm1(cp.diff(beta))).value)


def test_what_it_does_not_have_is_refused_in_one_line():
    task, graph = pose(GeneralisedLasso(D, 0.3)), confide.Graph.complete(3)
    with pytest.raises(ConfideError, match="no solver knows it"):
        task.solve()
    with pytest.raises(ConfideError, match="has no prox"):
        confide.simulate(task, graph, confide.algorithms.LinearizedADMM(rounds=2, proximal=True), record=())
    with pytest.raises(ConfideError, match="no solver knows it"):
        confide.simulate(task, graph, confide.algorithms.ADMM(rounds=2), record=())
    with pytest.raises(ConfideError, match="of 3 columns"):
        confide.simulate(
            pose(GeneralisedLasso(np.eye(3))), graph, confide.algorithms.LinearizedADMM(rounds=2), record=()
        )
    for wrong in (np.ones(3), [[np.nan]]):
        with pytest.raises(ConfideError, match="matrix of shape"):
            GeneralisedLasso(wrong)


def test_values_of_it_serve_zeroth_order_methods():
    """D-ZOA's compiled loop knows separable penalties only: with D = I both paths give the same."""
    method, graph = confide.algorithms.DZOA(rounds=2, inner_steps=5, directions=3), confide.Graph.complete(3)
    runs = [confide.simulate(pose(p), graph, method, record=()).estimates
            for p in (GeneralisedLasso(np.eye(4), 0.3), confide.penalties.L1(0.3))]  # fmt: skip
    assert np.allclose(*runs, atol=1e-8)
