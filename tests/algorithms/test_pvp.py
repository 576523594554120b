"""PVP's sensitivity holds for what the solver hands over, not only for the exact argmin."""

import cvxpy as cp
import numpy as np
import pytest

import confide
from confide.algorithms import PVP
from confide.algorithms.base import Consensus

L, P = confide.losses, confide.penalties
RING = confide.Graph.ring(3)
LOSSES = [L.Hinge(), L.Absolute(), L.Quantile(0.2), L.Logistic(), L.Huber(0.3)]
PENALTIES = [P.L2(0.2), P.L1(0.3), P.ElasticNet(0.3, 0.5)]


def problem(loss, penalty, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    z = X @ rng.normal(size=3)
    y = np.where(z + rng.logistic(size=40) > 0, 1.0, -1.0) if loss.labels == "sign" else z + rng.normal(size=40)
    return confide.Problem(confide.Shards.split(X, y, 3).clip_rows(1.0), loss, penalty, intercept=True)


def exact(p, method, state, public, k):
    """The argmin of line 3 for agent k, by cvxpy."""
    X, y = p.shards.part(k)
    f = cp.Variable(4)
    z = X @ f[:3] + f[3]
    rows = {
        "Hinge": lambda: cp.pos(1 - cp.multiply(y, z)), "Absolute": lambda: cp.abs(z - y),
        "Quantile": lambda: cp.maximum(0.2 * (y - z), -0.8 * (y - z)),
        "Logistic": lambda: cp.logistic(-cp.multiply(y, z)), "Huber": lambda: cp.huber(z - y, 0.3) / 2,
    }[type(p.loss).__name__]()  # fmt: skip
    near = [0.5 * (state.primal[0, k] + state.primal[0, j]) for j in RING.neighbours(k)]
    cost = cp.sum(rows) / len(y) + (p.penalty.l1 * cp.norm1(f[:3]) + p.penalty.l2 / 2 * cp.sum_squares(f[:3])) / 3
    cost += state.dual[0, k] @ f + method.coupling * sum(cp.sum_squares(f - c) for c in near)
    tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
    cp.Problem(cp.Minimize(cost)).solve("CLARABEL", **tight)
    return f.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_what_is_sent_lies_as_near_to_the_argmin_as_the_sensitivity_says(loss, penalty, tolerance):
    method = PVP(coupling=0.05, tolerance=tolerance, noise=1.0)
    for seed in range(3):
        p = problem(loss, penalty, seed)
        public, rng = p.public(RING), np.random.default_rng(100 + seed)
        primal = rng.normal(size=(1, 3, 4))
        state = Consensus(primal, 0.2 * rng.normal(size=(1, 3, 4)), RING.adjacency.toarray() @ primal)
        f = method.minimise(state, p.block, public, public.each(method.coupling))
        for k in range(3):
            away = np.linalg.norm(f[0, k] - exact(p, method, state, public, k))
            bound = method.residual(1, public)[k, 0] / method.convexity(1, public)[k, 0]
            assert away <= bound + 1e-6  # cvxpy's own error


def test_the_cost_counts_the_solvers_tolerance():
    """Closed form: 2(c1/M + τ)/h with c1 = √2 (rows of norm 1 and an intercept), h = 2·0.05·2 and no penalty on the
    intercept; a piecewise linear loss has τ = t + √(2ht), a smooth one τ = 2t."""
    t, h = 1e-4, 0.2
    for loss, tau in ((L.Hinge(), t + np.sqrt(2 * h * t)), (L.Logistic(), 2 * t)):
        p = problem(loss, P.L2(0.2), 0)
        spread = PVP(coupling=0.05, tolerance=t, noise=1.0).sensitivity(1, p.public(RING))[:, 0]
        assert spread == pytest.approx(2 * (np.sqrt(2) / p.shards.sizes + tau) / h, rel=1e-12)
