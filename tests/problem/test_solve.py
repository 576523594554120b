"""`Problem.solve()` against cvxpy, scikit-learn, SciPy and statsmodels, and by its optimality conditions.

An interior-point solver gives objective values to about 1e-12 but points only to the square root of that; so points are
held to 1e-8 by a bound that needs no solver: where F is μ-strongly convex near β, ‖β - β*‖ ≤ ‖smallest subgradient‖/μ.
"""

import numpy as np
import oracles
import pytest
import scipy.sparse as sp
from scipy.optimize import least_squares
from sklearn import linear_model, svm

from confide import Problem, Shards, losses, penalties
from confide.problem.block import SolverError

PENALTIES = [penalties.Zero(), penalties.L1(0.05), penalties.L2(0.1), penalties.ElasticNet(0.1, 0.3)]
intercepts = pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
weightings = pytest.mark.parametrize("weighting", ["parties", "rows"])


def subgradient(problem, beta):
    """The smallest subgradient of a smooth loss with its penalty."""
    g, l1 = oracles.gradient(problem, beta), problem.penalty.l1 * oracles.mask(problem)
    return np.where(beta == 0, np.sign(g) * np.maximum(abs(g) - l1, 0), g + l1 * np.sign(beta))


def convexity(problem, beta):
    """μ: smallest eigenvalue of the Hessian, by differences of the oracle's gradient, on what the optimum leaves free.

    Softmax does not change when all classes move together: those directions are left out.
    """
    free = beta != 0 if problem.penalty.l1 else np.ones(len(beta), bool)
    h = 1e-5
    H = np.array([(oracles.gradient(problem, beta + e) - oracles.gradient(problem, beta - e)) / (2 * h)
                  for e in h * np.eye(len(beta))])  # fmt: skip
    values = np.linalg.eigvalsh(((H + H.T) / 2)[np.ix_(free, free)])
    return values[values > 1e-7].min()


def settled(problem, beta):
    """Coefficients that the objective determines: with softmax, those without a penalty up to a common shift."""
    b = np.asarray(beta).reshape(problem.loss.outputs, -1).copy()
    if problem.loss.labels == "class":
        shift = ~oracles.mask(problem).reshape(b.shape)[0].astype(bool)
        if isinstance(problem.penalty, penalties.Zero):
            shift[:] = True
        b[:, shift] -= b[:, shift].mean(axis=0)
    return b.ravel()


def near(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@weightings
@intercepts
@pytest.mark.parametrize("penalty", PENALTIES, ids=oracles.name)
@pytest.mark.parametrize("loss", oracles.EVERY, ids=oracles.name)
def test_solve_is_the_optimum(loss, penalty, intercept, weighting):
    p = Problem(oracles.shards(loss), loss, penalty, weighting=weighting, intercept=intercept)
    ours, theirs = p.solve(), oracles.solve(p)
    best = oracles.objective(p, theirs)
    assert oracles.objective(p, ours) <= best + 1e-10 * abs(best)
    assert near(settled(p, ours), settled(p, theirs)) < (2e-5 if loss.smooth else 1e-6)
    assert p.objective(ours) == pytest.approx(oracles.objective(p, ours), rel=1e-12)
    if loss.smooth:
        away = np.linalg.norm(subgradient(p, ours)) / convexity(p, ours)
        assert away < 1e-8 * np.linalg.norm(ours)


def test_every_loss_is_tested():
    assert {type(x) for x in oracles.EVERY} == set(losses.ALL)


def test_every_party_counts_the_same_or_every_row_does():
    """A closed form on two ragged parties without features: the mean of means, or the mean."""
    s = Shards.from_parts([(np.ones((1, 1)), [8.0]), (np.ones((3, 1)), [1.0, 2.0, 3.0])])
    assert Problem(s, losses.Squared()).solve() == pytest.approx([5.0], rel=1e-12)
    assert Problem(s, losses.Squared(), weighting="rows").solve() == pytest.approx([3.5], rel=1e-12)


@weightings
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Absolute(), losses.Squared()], ids=oracles.name)
def test_row_weights_count_as_repeated_rows(loss, weighting):
    s = oracles.shards(loss, sizes=(20, 20))
    times = np.tile([1, 3], 20)  # the same for both parties, which grow to 40 rows each
    repeated = Shards.from_groups(np.repeat(s.X, times, axis=0), np.repeat(s.y, times), np.repeat([0, 1], 40))
    weighted = Shards(s.X, s.y, s.offsets, s.names, {"weight": times / 2})  # their mean is 1
    a, b = (Problem(x, loss, penalties.L2(0.1), weighting=weighting).solve() for x in (weighted, repeated))
    assert near(a, b) < (1e-9 if loss.smooth else 1e-6)


@pytest.mark.parametrize("heavy", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothedHinge(0.2), losses.Huber(0.5)], ids=oracles.name)
def test_the_scale_of_row_weights_does_not_matter(loss, heavy):
    """All weights and the penalty times a number: the same optimum."""
    s = oracles.shards(loss)
    s = Shards(s.X, s.y, s.offsets, s.names, {"weight": np.full(len(s), heavy)})
    p = Problem(s, loss, penalties.L1(0.05 * heavy), intercept=True)
    assert np.linalg.norm(subgradient(p, p.solve())) / convexity(p, p.solve()) < 1e-8 * np.linalg.norm(p.solve())


def test_own_epsilon_of_every_row():
    base = losses.Logistic()
    eps = np.random.default_rng(1).uniform(0.7, 4, 74)
    s = oracles.shards(base, columns={"epsilon": eps})
    p = Problem(s, losses.NoisyLabels(base, epsilon_min=0.7), penalties.L2(0.3), intercept=True)
    beta = p.solve()
    assert np.linalg.norm(oracles.gradient(p, beta)) / convexity(p, beta) < 1e-8 * np.linalg.norm(beta)


# --- the pooled mean is scikit-learn's optimum ----------------------------------------------------------------------


def pooled(loss, penalty, intercept=True, n=(60, 25, 115)):
    p = Problem(oracles.shards(loss, sizes=n), loss, penalty, weighting="rows", intercept=intercept)
    return p, p.shards.X, p.shards.y, len(p.shards)


@intercepts
def test_logistic_regression(intercept):
    p, X, y, n = pooled(losses.Logistic(), penalties.L2(0.02), intercept)
    m = linear_model.LogisticRegression(
        C=1 / (0.02 * n), tol=1e-12, max_iter=1000, solver="newton-cholesky", fit_intercept=intercept
    ).fit(X, y)
    theirs = np.append(m.coef_[0], m.intercept_) if intercept else m.coef_[0]
    assert near(p.solve(), theirs) < 1e-8
    assert np.array_equal(p.predict(X, p.solve()), m.predict(X))


def test_multinomial_logistic_regression():
    p, X, y, n = pooled(losses.Multinomial(3), penalties.L2(0.02))
    m = linear_model.LogisticRegression(C=1 / (0.02 * n), tol=1e-13, max_iter=10_000, solver="lbfgs").fit(X, y)
    theirs = np.column_stack([m.coef_, m.intercept_]).ravel()
    assert near(settled(p, p.solve()), settled(p, theirs)) < 1e-5  # lbfgs stops by values
    assert np.array_equal(p.predict(X, p.solve()), m.predict(X))


@intercepts
def test_ridge(intercept):
    p, X, y, n = pooled(losses.Squared(), penalties.L2(0.3), intercept)
    m = linear_model.Ridge(alpha=0.3 * n, fit_intercept=intercept, solver="cholesky").fit(X, y)
    theirs = np.append(m.coef_, m.intercept_) if intercept else m.coef_
    assert near(p.solve(), theirs) < 1e-10
    np.testing.assert_allclose(p.predict(X, p.solve()), m.predict(X), rtol=1e-8)


@pytest.mark.parametrize(("penalty", "ratio"), [(penalties.L1(0.2), 1.0), (penalties.ElasticNet(0.2, 0.6), 0.6)])
def test_lasso_and_elastic_net(penalty, ratio):
    p, X, y, _ = pooled(losses.Squared(), penalty)
    m = linear_model.ElasticNet(alpha=0.2, l1_ratio=ratio, tol=1e-14, max_iter=100_000).fit(X, y)
    theirs = np.append(m.coef_, m.intercept_)
    assert near(p.solve(), theirs) < 1e-8
    assert np.array_equal(p.solve() == 0, theirs == 0)  # the same zeros, exactly


def test_huber_is_scipys_robust_least_squares():
    p, X, y, _ = pooled(losses.Huber(0.7), None)
    A = np.column_stack([X, np.ones(len(y))])
    m = least_squares(
        lambda b: A @ b - y, np.zeros(5), lambda b: A, loss="huber", f_scale=0.7, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert near(p.solve(), m.x) < 1e-8


def test_linear_svc():
    p, X, y, n = pooled(losses.SquaredHinge(), penalties.L2(0.05), intercept=False)  # liblinear penalises its intercept
    m = svm.LinearSVC(C=1 / (0.05 * n * 2), tol=1e-12, max_iter=100_000, fit_intercept=False, dual=False).fit(X, y)
    assert near(p.solve(), m.coef_[0]) < 1e-8


def test_svc_with_intercept():
    p, X, y, n = pooled(losses.Hinge(), penalties.L2(0.05))
    m = svm.SVC(C=1 / (0.05 * n), kernel="linear", tol=1e-12).fit(X, y)
    assert near(p.solve(), np.append(m.coef_[0], m.intercept_)) < 1e-6


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_quantile_regressor(level):
    p, X, y, _ = pooled(losses.Quantile(level), penalties.L1(0.03))
    m = linear_model.QuantileRegressor(quantile=level, alpha=0.03, solver="highs").fit(X, y)
    theirs = np.append(m.coef_, m.intercept_)
    assert near(p.solve(), theirs) < 1e-6


def test_absolute_is_median_regression():
    import statsmodels.api as sm

    p, X, y, _ = pooled(losses.Absolute(), None)
    m = sm.QuantReg(y, np.column_stack([X, np.ones(len(y))])).fit(q=0.5, p_tol=1e-10, max_iter=5000)
    assert oracles.objective(p, p.solve()) <= oracles.objective(p, m.params) * (1 + 1e-12)
    assert near(p.solve(), m.params) < 1e-4  # reweighted least squares
    half = Problem(p.shards, losses.Quantile(0.5), weighting="rows", intercept=True)
    assert near(half.solve(), p.solve()) < 1e-8


# --- concave penalties, and other forms of the same rows ------------------------------------------------------------


@intercepts
@pytest.mark.parametrize("penalty", [penalties.MCP(0.15, 3.0), penalties.SCAD(0.15, 3.7)], ids=oracles.name)
@pytest.mark.parametrize("loss", [x for x in oracles.EVERY if x.smooth], ids=oracles.name)
def test_concave_penalties_reach_a_stationary_point(loss, penalty, intercept):
    p = Problem(oracles.shards(loss, features=6), loss, penalty, intercept=intercept)
    beta, mask = p.solve(), oracles.mask(p).astype(bool)
    g = oracles.gradient(p, beta)
    zero = mask & (beta == 0)
    assert np.all(abs(g[zero]) <= penalty.strength * (1 + 1e-9))
    moving = ~zero
    np.testing.assert_allclose((g + penalty.gradient(beta) * mask)[moving], 0, atol=1e-8)
    assert np.any(beta[mask] != 0)
    assert p.objective(beta) < p.objective(np.zeros_like(beta))


@pytest.mark.parametrize("penalty", [penalties.MCP(0.15, 3.0), penalties.SCAD(0.15, 3.7)], ids=oracles.name)
def test_concave_penalties_with_a_piecewise_linear_loss_are_at_a_local_minimum(penalty):
    loss = losses.Absolute()
    p = Problem(oracles.shards(loss, features=6), loss, penalty, intercept=True)
    beta, rng = p.solve(), np.random.default_rng(0)
    around = [p.objective(beta + r * d / np.linalg.norm(d)) for r in (1e-4, 1e-3) for d in rng.normal(size=(300, 7))]
    assert min(around) >= p.objective(beta) - 1e-10


@intercepts
@pytest.mark.parametrize("penalty", [penalties.L2(0.1), penalties.ElasticNet(0.1, 0.3)], ids=oracles.name)
@pytest.mark.parametrize("loss", [*oracles.MARGIN], ids=oracles.name)
def test_sparse_mapped_and_float32_rows_give_the_same_optimum(loss, penalty, intercept, tmp_path):
    s = oracles.shards(loss)
    X = np.where(np.abs(s.X) < 0.5, 0, s.X)
    disk = np.memmap(tmp_path / "x", np.float64, "w+", shape=X.shape)
    disk[:] = X
    groups = np.repeat(range(3), s.sizes)
    dense, *others, single = (
        settled(q, q.solve())
        for q in (
            Problem(Shards.from_groups(rows, s.y, groups), loss, penalty, intercept=intercept)
            for rows in (X, sp.csr_matrix(X), sp.csc_array(X), disk, X.astype(np.float32))
        )
    )
    for other in others:
        assert near(other, dense) < (1e-9 if loss.smooth else 1e-7)
    assert near(single, dense) < 1e-5


@pytest.mark.parametrize("penalty", PENALTIES, ids=oracles.name)
@pytest.mark.parametrize("loss", oracles.MARGIN, ids=oracles.name)
def test_a_feature_that_is_never_seen_gets_no_weight(loss, penalty):
    """A column of zeros, as a rare category leaves behind; the rest of the optimum is as without it."""
    s = oracles.shards(loss)
    wide = Shards(np.insert(s.X, 2, 0.0, axis=1), s.y, s.offsets, s.names)
    beta = Problem(wide, loss, penalty).solve().reshape(loss.outputs, -1)
    np.testing.assert_allclose(beta[:, 2], 0, atol=1e-9)
    without = Problem(s, loss, penalty).solve()
    assert near(np.delete(beta, 2, axis=1).ravel(), without) < (1e-8 if loss.smooth else 1e-6)


@pytest.mark.parametrize("loss", oracles.MARGIN, ids=oracles.name)
def test_a_strong_l1_penalty_gives_exact_zeros(loss):
    beta = Problem(oracles.shards(loss), loss, penalties.L1(100.0)).solve()
    np.testing.assert_allclose(beta, 0, atol=0 if loss.smooth else 1e-9)


def test_solve_hands_out_a_copy():
    p = Problem(oracles.shards(losses.Squared()), losses.Squared())
    p.solve()[:] = 0
    assert np.any(p.solve() != 0)


@pytest.mark.parametrize("loss", oracles.EVERY, ids=oracles.name)
def test_badly_scaled_features_are_no_obstacle(loss):
    """Without a penalty the optimum scales with the features, nine orders of magnitude apart here."""
    scale = np.array([1e-4, 1.0, 1e2, 1e5, 1.0])
    s = oracles.shards(loss)
    stretched = Shards(s.X * scale[:4], s.y, s.offsets, s.names)
    plain, hard = (Problem(x, loss, intercept=True) for x in (s, stretched))
    back = settled(plain, hard.solve() * np.tile(scale, loss.outputs))
    assert near(back, settled(plain, plain.solve())) < (1e-8 if loss.smooth else 1e-6)
    assert near(back, settled(plain, oracles.solve(plain))) < (2e-5 if loss.smooth else 1e-6)


@intercepts
@pytest.mark.parametrize("penalty", [None, penalties.L2(0.0), penalties.L2(1e-3)], ids=["none", "zero", "small"])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Multinomial(3)], ids=oracles.name)
def test_separable_rows_without_penalty_have_no_optimum(loss, penalty, intercept):
    s = oracles.shards(loss)
    X = s.X + 20 * np.eye(4)[s.y.astype(int)]  # every label far out in a direction of its own
    p = Problem(Shards(X, s.y, s.offsets, s.names), loss, penalty, intercept=intercept)
    if penalty == penalties.L2(1e-3):
        assert np.array_equal(p.predict(X, p.solve()), s.y)
    else:
        with pytest.raises(SolverError, match=r"no optimum: .*add a penalty"):
            p.solve()
