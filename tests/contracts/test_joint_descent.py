"""Joint descent: where it ends, what it buys, and how well it learns."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from contract_cases import GRAPHS, optimum, problem
from scipy.optimize import minimize

import confide
from confide.algorithms import JointDescent, joint_descent
from confide.runs.driver import Driver

L, P = confide.losses, confide.penalties
GRAPH = GRAPHS["ring"]


@pytest.mark.parametrize("kind", ["logistic", "squared", "lasso"])
def test_without_noise_the_optimum_is_reached(kind):
    """That of cvxpy, with penalties on the coefficients of x and parties that count the same."""
    run = confide.simulate(problem(kind), GRAPH, JointDescent(rounds=1500), record=())
    best = optimum(kind)
    assert np.max(np.linalg.norm(run.estimates - best, axis=-1)) < 1e-6 * np.linalg.norm(best)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("common", [0.0, 0.97])
def test_standardised_and_clipped_it_reaches_another_optimum(sparse, common):
    """The same loss on rows centred, scaled to a mean square of 1.5 and weighed by plain NumPy, minimised by SciPy.

    Features that rise and fall together bend the loss four times as much as each of them does: a step for one feature
    would swing for ever.
    """
    rng = np.random.default_rng(3)
    X = math.sqrt(1 - common) * rng.normal(size=(300, 4)) + math.sqrt(common) * rng.normal(size=(300, 1))
    y = np.where(X @ [1, -1, 0.5, 1] + rng.logistic(size=300) > 0, 1.0, -1.0)
    X = X * [0.6, 0.06, 0.02, 0.6] + [0.1, 0.3, -0.2, 0]
    groups = np.repeat(np.arange(5), [20, 40, 60, 80, 100])
    rows = confide.Shards.from_groups(sp.csr_array(X) if sparse else X, y, groups).clip_rows(2.0)
    task = confide.Problem(rows, L.Logistic(), weighting="rows", intercept=True)
    run = confide.simulate(task, GRAPH, JointDescent(rounds=3000, first="moments", clip=0.5), record=())
    x = (rows.X.toarray() if sparse else rows.X) / 2.0
    m, slope = x.mean(axis=0), 0.5 / math.sqrt(1.25)
    scale = np.sqrt(1.5 / 4 / x.var(axis=0))
    u = scale * (x - m)
    w = 1 / np.maximum(1, np.linalg.norm(u, axis=1))
    z0 = math.log(1 / slope - 1)  # where the slope of log(1 + e^-z) is the clip: straight below

    def loss(theta):
        z = y * (u @ theta[:4] + theta[4] / 2)
        return np.mean(w * np.where(z > z0, np.logaddexp(0, -z), np.logaddexp(0, -z0) - slope * (z - z0)))

    best = minimize(loss, np.zeros(5), tol=1e-14).x
    beta = np.append(best[:4] * scale / 2, best[4] / 2 - m @ (best[:4] * scale))
    assert np.max(np.abs(run.estimates[0] - beta)) < 1e-4 * np.linalg.norm(beta)


@pytest.mark.parametrize(("n", "first"), [(100_000, "moments"), (1_000, "spread"), (400, "gradient")])
def test_round_1_buys_what_can_be_paid_for(n, first):
    """g = 9/(4√2)·f·√p/(nμ√.1) by hand: p = 16, five parties of which one may collude, μ = .05."""
    g = 9 / (4 * math.sqrt(2)) * math.sqrt(5 / 4) * 4 / (n * 0.05 * math.sqrt(0.1))
    assert {"moments": g < 0.4, "spread": 0.4 <= g < 1, "gradient": g >= 1}[first]
    rows = confide.Shards.split(np.zeros((n, 16)), np.ones(n), 5).clip_rows(2.0)
    public = confide.Problem(rows, L.Logistic(), None, "rows", intercept=True).public(GRAPH)
    method = JointDescent(collusion=1).calibrated(public, mu=0.05)
    assert method.first == first and method.loudness(public, 0.05) == pytest.approx(g)
    cost = [float(e.mu[0]) ** 2 for (e,) in method.events(public)]
    assert len(cost) == 61 and sum(cost) == pytest.approx(0.05**2)
    if first != "gradient":
        assert cost[0] / sum(cost) == pytest.approx({"moments": 0.1, "spread": 0.05}[first])
    assert np.all(np.diff(cost[first != "gradient" :]) <= 0) and cost[-1] > 0.3 * cost[30]  # late ones weigh less
    kept = replace(JointDescent(collusion=1), first="spread").calibrated(public, mu=0.05)
    assert kept.first == "spread"


@pytest.mark.parametrize(("apart", "alike"), [(0.9, True), (1.1, True), (1.2, False), (4.0, False)])
def test_features_are_told_apart_only_by_more_than_noise_can_do(apart, alike):
    """Squares that differ by `apart` deviations of their noise; up to √(1 + √(2/p)) = 1.163 it may be noise alone."""
    p, s = 16, 0.002
    squares = 0.05 + apart * s * np.where(np.arange(p) % 2, 1.0, -1.0)
    total = np.concatenate([np.zeros(p), squares])[None, None]
    _, stretch, variance = joint_descent.standards(total, s, 1.0, True, 1.5)
    assert (np.ptp(stretch) < 1e-9 * np.max(stretch)) == alike
    assert np.sum(variance * stretch**2) == pytest.approx(1.5)


@pytest.mark.parametrize(("p", "haste"), [(2, 2.25), (4, 1.5), (8, 1.0)])
def test_the_intercept_makes_longer_steps_than_coefficients(p, haste):
    """The first step, by plain NumPy. It may not be longer than what no row's bend can throw back.

    Features of variance 1.5/p and an intercept of ¼ bend a row by so much: the longest step is the larger one's.
    """
    rng = np.random.default_rng(p)
    X = rng.choice([-0.3, 0.3], size=(400, p))
    y = np.where(rng.random(400) < 0.3, 1.0, -1.0)
    rows = confide.Shards.split(X, y, 5, seed=0).clip_rows(1.0)
    task = confide.Problem(rows, L.Logistic(), None, weighting="rows", intercept=True)
    driver = Driver(task, GRAPH, JointDescent(rounds=2, first="moments"), (0,))
    driver.step()
    driver.step()
    u = (X - X.mean(axis=0)) * np.sqrt(1.5 / p / X.var(axis=0))
    w = 0.5 * y / np.maximum(1, np.linalg.norm(u, axis=1)) / 400
    slope = np.append(w @ u, 0.5 * haste * w.sum())
    got = driver.state.model[0, 0]
    np.testing.assert_allclose(got / np.linalg.norm(got), slope / np.linalg.norm(slope), rtol=0, atol=1e-6)


def test_a_loss_without_settings_is_refused():
    with pytest.raises(ValueError, match="JointDescent has no settings for Hinge"):
        JointDescent().check(problem("hinge").public(GRAPH))


# --- how well it learns -----------------------------------------------------------------------------------------------


def line(n, seed):
    """Ten uniform features, targets in [-1, 1], of whose variance the true line explains 76 %; 4,000 to test on."""
    rng = np.random.default_rng([seed, n])
    X = rng.uniform(-1, 1, size=(n + 4_000, 10)) / math.sqrt(10)
    z = X @ rng.normal(size=10)
    z = 0.1 + 0.28 * z / z.std()
    return X, np.clip(z + 0.155 * rng.normal(size=len(z)), -1, 1), z


def predictions(n, loss, epsilon, penalty=None):
    """(target, true line, prediction) of the test rows, for eight seeds; five parties, of which one may collude."""
    for seed in range(8):
        X, y, z = line(n, seed)
        rows = confide.Shards.split(X[:n], y[:n], 5, seed=seed).clip_rows(1.0)
        task = confide.Problem(rows, loss, penalty, weighting="rows", intercept=True)
        method = JointDescent(collusion=1).calibrated(task.public(GRAPH), epsilon, 1e-5)
        model = confide.simulate(task, GRAPH, method, seeds=(seed,), record=()).estimates[0, 0]
        yield y[n:], z[n:], task.predict(X[n:], model)


@pytest.mark.parametrize(("n", "epsilon", "least"), [(1_000, 1.0, 0.68), (10_000, 0.1, 0.70)])
@pytest.mark.parametrize(
    ("loss", "penalty"), [(L.Squared(), P.L2(1e-5)), (L.Squared(), P.L1(1e-3)), (L.Huber(0.1), None)]
)
def test_regression(loss, penalty, n, epsilon, least):
    score = [1 - np.mean((y - got) ** 2) / np.var(y) for y, _, got in predictions(n, loss, epsilon, penalty)]
    assert np.mean(score) > least


def test_median_regression():
    """Excess of the mean absolute error over the true line's: at most 5 % at n=1,000, ε=1."""
    over = [
        np.mean(np.abs(y - got)) / np.mean(np.abs(y - z)) - 1 for y, z, got in predictions(1_000, L.Quantile(0.5), 1.0)
    ]
    assert np.mean(over) < 0.05


@pytest.mark.parametrize(("loss", "classes"), [(L.Logistic(), 2), (L.SmoothedHinge(1.0), 2), (L.Multinomial(4), 4)])
def test_classes(loss, classes):
    """ε=1: within two points of the best answer, which is known of these rows."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(6, classes))
    X = rng.uniform(-1, 1, size=(24_000, 6))
    z = 3 * X @ W
    y = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    X = X / math.sqrt(6)
    target = y.astype(float) if classes > 2 else np.where(y == 1, 1.0, -1.0)
    rows = confide.Shards.split(X[:20_000], target[:20_000], 5).clip_rows(1.0)
    task = confide.Problem(rows, loss, weighting="rows", intercept=True)
    method = JointDescent(collusion=1).calibrated(task.public(GRAPH), 1.0, 1e-5)
    run = confide.simulate(task, GRAPH, method, seeds=range(4), record=())
    best = np.mean(np.argmax(z[20_000:], axis=1) != y[20_000:])
    wrong = np.mean([task.predict(X[20_000:], model) != target[20_000:] for model in run.estimates[:, 0]])
    assert wrong < best + 0.02


@pytest.mark.parametrize("loss", [L.Logistic(), L.Squared(), L.SmoothedHinge(1.0), L.Quantile(0.5)], ids=repr)
def test_it_comes_to_rest_where_features_rise_and_fall_together(loss):
    """Many rows and a large budget: the step could be as large as it likes; noise is not what moves the model.

    Without any residual a check loss would have a kink in place of a bottom, and no step that is small enough.
    """
    rng = np.random.default_rng(0)
    X = (math.sqrt(0.03) * rng.normal(size=(100_000, 8)) + math.sqrt(0.97) * rng.normal(size=(100_000, 1))) / 5
    z, residual = X @ rng.normal(size=8), 0.1 * rng.normal(size=len(X))
    sign = np.where(z + rng.logistic(size=len(z)) > 0, 1.0, -1.0)
    y = sign if loss.labels == "sign" else np.clip(z / 5 + residual, -1, 1)
    task = confide.Problem(confide.Shards.split(X, y, 5).clip_rows(1.0), loss, weighting="rows", intercept=True)
    method = JointDescent(collusion=1).calibrated(task.public(GRAPH), 10.0, 1e-5)
    driver, moves = Driver(task, GRAPH, method, (0,)), []
    for _ in range(method.rounds):
        driver.step()
        moves.append(np.linalg.norm(driver.state.model - driver.state.before, axis=-1)[0, 0])
    assert max(moves[-5:]) < 0.1 * max(moves)


@pytest.mark.parametrize("T", [1, 2, 5, 60, 61])
def test_shares_of_gradients_are_what_they_weigh_in_the_averaged_iterates(T):
    """The sums of a geometric series, written out."""
    averaged = range(int((1 - joint_descent.TAIL) * T) + 1, T + 1)
    weight = [np.mean([max(1 - joint_descent.MOMENTUM ** (s - t + 1), 0) for s in averaged]) for t in range(1, T + 1)]
    share = np.sqrt(np.maximum(weight, 0.2))
    np.testing.assert_allclose(joint_descent.gradient_shares(T), share / share.sum(), rtol=1e-12)


def test_many_rounds_are_planned_in_little_memory():
    assert joint_descent.all_shares(0.1, 1, 10**6).sum() == pytest.approx(1.0)
