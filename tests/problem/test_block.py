"""A block's sums against a plain loop over rows, their independence of company and threads, and its argmins."""

import numpy as np
import oracles
import pytest
import scipy.sparse as sp

from confide import Problem, Shards, losses, penalties, threads
from confide.problem.block import SolverError

each = pytest.mark.parametrize("loss", oracles.EVERY, ids=oracles.name)
forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "float32"])
OWN = losses.NoisyLabels(losses.Logistic(), epsilon_min=0.4)


def build(loss, form=np.asarray, intercept=True, columns=("weight", "epsilon"), features=11, seed=0):
    sizes = 25, 9, 140
    rng = np.random.default_rng(seed + 100)
    X = rng.normal(size=(sum(sizes), features))
    X[np.abs(X) < 0.6] = 0  # something for a sparse matrix to leave out
    made = {"weight": rng.uniform(0, 2, len(X)), "epsilon": rng.uniform(0.4, 3, len(X))}
    made["share"] = rng.uniform(0, 1, len(X))
    s = oracles.shards(loss, sizes, features, seed, {name: made[name] for name in columns}, X)
    s = Shards(form(s.X), s.y, s.offsets, s.names, s.columns)
    return Problem(s, loss, weighting="parties", intercept=intercept)


def points(problem, seeds=3, seed=1):
    return np.random.default_rng(seed).normal(size=(seeds, problem.shards.parties, problem.width))


def loop(problem, beta, clip):
    """Row by row: weigh the gradient, clip it, add it."""
    s, m = problem.shards, problem.loss.outputs
    A, w = oracles.design(s, problem.intercept), s.columns.get("weight", np.ones(len(s))) * s.columns.get("share", 1.0)
    eps = oracles.epsilons(problem.loss, s)
    values, gradients = np.zeros(beta.shape[:2]), np.zeros(beta.shape)
    for seed, k in np.ndindex(*beta.shape[:2]):
        for i in range(s.offsets[k], s.offsets[k + 1]):
            z = A[i] @ beta[seed, k].reshape(m, -1).T
            z = z[None] if problem.loss.labels == "class" else z
            args = problem.loss, z, s.y[i : i + 1], None if eps is None else eps[i : i + 1]
            values[seed, k] += w[i] * oracles.corrected(oracles.value, *args)[0] / s.sizes[k]
            g = w[i] * np.outer(oracles.corrected(oracles.slope, *args), A[i]).ravel()
            g *= min(1.0, clip[k] / max(np.linalg.norm(g), 1e-300))
            gradients[seed, k] += g / s.sizes[k]
    return values, gradients


@forms
@each
def test_sums_are_those_of_a_loop_over_rows(loss, form):
    problem = build(loss, form)
    beta, clip = points(problem), np.array([0.3, np.inf, 2.0])
    values, gradients = loop(problem, beta, clip)
    np.testing.assert_allclose(problem.block.value(beta), values, rtol=1e-11)
    np.testing.assert_allclose(problem.block.gradient(beta, clip), gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "columns", [(), ("weight",), ("epsilon",), ("weight", "epsilon"), ("weight", "share")], ids=str
)
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Multinomial(4), OWN], ids=oracles.name)
@pytest.mark.parametrize("clip", [np.inf, 0.2])
def test_extra_columns_and_one_clip_for_all(loss, columns, clip):
    if loss is OWN:
        columns = {*columns, "epsilon"}
    problem = build(loss, intercept=False, columns=tuple(columns))
    beta = points(problem, 2)
    values, gradients = loop(problem, beta, np.full(3, clip))
    np.testing.assert_allclose(problem.block.value(beta), values, rtol=1e-11)
    np.testing.assert_allclose(problem.block.gradient(beta, clip), gradients, rtol=1e-9, atol=1e-12)


@each
def test_a_clipped_row_never_exceeds_its_bound(loss):
    """What a sensitivity rests on: replacing one row moves the clipped sum by at most 2·clip/M."""
    problem = build(loss, columns=("epsilon",))
    s, beta, clip = problem.shards, 30 * points(problem), 0.25
    before = problem.block.gradient(beta, clip)
    X, y = s.X.copy(), s.y.copy()
    X[[0, 25, 34]] = np.random.default_rng(2).normal(size=(3, 11)) * 1e6
    y[[0, 25, 34]] = y[[1, 26, 35]]
    other = Problem(Shards(X, y, s.offsets, s.names, s.columns), loss, intercept=True).block.gradient(beta, clip)
    assert np.all(np.linalg.norm(other - before, axis=2) <= 2 * clip / s.sizes * (1 + 1e-9))


@each
def test_the_gradient_is_that_of_the_value(loss):
    problem = build(loss)
    beta, h = points(problem, 1), 1e-6
    difference = np.stack([
        (problem.block.value(beta + e) - problem.block.value(beta - e)) / (2 * h) for e in h * np.eye(problem.width)
    ], axis=2)  # fmt: skip
    np.testing.assert_allclose(problem.block.gradient(beta), difference, atol=1e-6)


@forms
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Multinomial(3), OWN], ids=oracles.name)
def test_clipped_differences_of_two_points(loss, form):
    problem = build(loss, form)
    s, w, gap = problem.shards, problem.shards.columns["weight"], 0.37
    plus, minus, clip = points(problem), points(problem, seed=2), np.array([0.3, np.inf, 2.0])
    expected = np.zeros((3, 3))
    for seed, k in np.ndindex(3, 3):
        up, down = (
            oracles.corrected(oracles.value, loss, oracles.margins(problem, b[seed, k]), s.y, oracles.epsilons(loss, s))
            for b in (plus, minus)
        )
        rows = slice(s.offsets[k], s.offsets[k + 1])
        expected[seed, k] = np.clip(w * (up - down) / gap, -clip[k], clip[k])[rows].mean()
    np.testing.assert_allclose(problem.block.difference(plus, minus, gap, clip), expected, rtol=1e-10, atol=1e-13)


# --- who else is in the pass does not matter, to the bit ------------------------------------------------------------


def long(form, loss=losses.Logistic()):  # noqa: B008 (losses are frozen)
    """Parties of several chunks each; one dense, one thin: a chunk length common to both would be neither's own."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5200, 40))
    X[2000:5000] *= rng.random((3000, 40)) < 0.05
    columns = {"weight": rng.random(5200)}
    s = oracles.shards(loss, (2000, 3000, 200), 40, 0, columns, X)
    return Problem(Shards(form(X), s.y, s.offsets, s.names, s.columns), loss, penalties.L2(0.1), intercept=True)


@forms
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Multinomial(3)], ids=oracles.name)
def test_an_agent_gets_the_same_bits_alone(loss, form):
    problem = long(form, loss)
    beta = points(problem, 2)
    values, gradients = problem.block.value(beta), problem.block.gradient(beta)
    clipped = problem.block.gradient(beta, 0.1)
    for k in range(3):
        one, mine = problem.only(k), beta[:, k : k + 1]
        assert np.array_equal(one.value(mine), values[:, k : k + 1])
        assert np.array_equal(one.gradient(mine), gradients[:, k : k + 1])
        assert np.array_equal(one.gradient(mine, 0.1), clipped[:, k : k + 1])


@forms
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Multinomial(3), losses.Huber(0.5)], ids=oracles.name)
@pytest.mark.parametrize(("seeds", "features"), [(2, 11), (5, 3), (40, 11), (6, 37)])
def test_a_seed_gets_the_same_bits_alone(loss, form, seeds, features):
    problem = build(loss, form, features=features)
    beta = points(problem, seeds)
    for call in (problem.block.value, problem.block.gradient, lambda b: problem.block.gradient(b, 0.3)):
        together = call(beta)
        assert all(np.array_equal(call(beta[s : s + 1])[0], together[s]) for s in range(seeds))


@forms
def test_the_number_of_threads_does_not_matter(form, monkeypatch):
    problem = long(form)
    beta = points(problem, 3)
    block = problem.block

    def everything():
        return (
            block.value(beta), block.gradient(beta), block.gradient(beta, 0.1),
            block.argmin(beta, 1.0, problem.penalty, problem.public(None).mask, 0.3, 0 * beta, 1e-9),
        )  # fmt: skip

    monkeypatch.setattr(threads, "threads", lambda: 1)
    alone = everything()
    monkeypatch.setattr(threads, "SMALL", 0)
    for count in (2, 5):
        monkeypatch.setattr(threads, "threads", lambda count=count: count)
        assert all(np.array_equal(a, b) for a, b in zip(alone, everything(), strict=True))


def test_an_error_in_a_thread_is_not_lost(monkeypatch):
    monkeypatch.setattr(threads, "SMALL", 0)
    monkeypatch.setattr(threads, "threads", lambda: 3)

    def kernel(first, end):
        if end == 9:
            raise ZeroDivisionError("last part")

    with pytest.raises(ZeroDivisionError, match="last part"):
        threads.run(kernel, 9, 1.0)


# --- argmin ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [penalties.Zero(), penalties.L1(0.2), penalties.ElasticNet(0.2)], ids=oracles.name)
@each
def test_argmin_meets_its_optimality_condition(loss, penalty):
    """0 ∈ ∂[f_k + share·R + linearᵀβ + ½quad‖β‖²], with an agent's own quad, from the oracle's gradient."""
    problem = build(loss, columns=("weight",), features=5)
    beta, linear = points(problem, 2), 0.1 * points(problem, 2, seed=9)
    quad, mask, share, tolerance = np.array([[0.5], [2.0], [1.0]]), oracles.mask(problem), 0.3, 1e-9
    got = problem.block.argmin(linear, quad, penalty, mask, share, beta, tolerance)
    for s, k in np.ndindex(2, 3):
        b = got[s, k]
        g = share * penalty.l2 * mask * b + linear[s, k] + quad[k] * b
        l1 = share * penalty.l1 * mask
        if loss.smooth:
            one = loop(problem, got[s : s + 1], np.full(3, np.inf))[1][0, k] + g
            residual = np.where((b == 0) & (l1 > 0), np.maximum(abs(one) - l1, 0), one + l1 * np.sign(b))
            assert np.linalg.norm(residual) <= tolerance * 1.01
        else:  # a strongly convex function: no nearby point may be lower
            alone = Problem(problem.shards.only(k).relabel([0, 0]), loss, intercept=True)  # twice, so the mean is f_k

            def cost(x, alone=alone, s=s, k=k):
                f = oracles.objective(alone, x) / 2
                R = penalty.l1 * abs(x * mask).sum() + penalty.l2 / 2 * (mask * x**2).sum()
                return f + share * R + linear[s, k] @ x + quad[k, 0] / 2 * (x @ x)

            steps = np.random.default_rng(4).normal(size=(60, len(b))) * 10.0 ** np.repeat([-5, -4, -3], 20)[:, None]
            assert min(cost(b + d) for d in steps) >= cost(b) - 1e-12


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Absolute()], ids=oracles.name)
def test_argmin_leaves_its_start_alone(loss):
    problem = build(loss, columns=(), features=5)
    start = points(problem, 1)
    before = start.copy()
    problem.block.argmin(0 * start, 1.0, penalties.L1(0.1), oracles.mask(problem), 1.0, start, 1e-8)
    assert np.array_equal(start, before)


def test_gram_is_the_weighted_second_moment():
    problem = build(losses.Squared(), sp.csr_array)
    A, s = oracles.design(problem.shards, True), problem.shards
    for k in range(3):
        rows = slice(s.offsets[k], s.offsets[k + 1])
        expected = A[rows].T @ (A[rows] * s.columns["weight"][rows, None]) / s.sizes[k]
        np.testing.assert_allclose(problem.block.gram[k], expected, rtol=1e-12, atol=1e-14)


def degenerate(rng, n, p):
    """Rows as nobody would like them: all the same, of any size, one-hot, in columns of any units, or whole numbers."""
    X = rng.normal(size=(n, p))
    return [
        X, X[:1].repeat(n, 0), X * 10.0 ** rng.uniform(-9, 0, size=p), np.eye(p)[rng.integers(p, size=n)],
        X * 10.0 ** rng.uniform(-12, 3, size=(n, 1)), np.round(X),
    ][rng.integers(6)]  # fmt: skip


@pytest.mark.parametrize("seed", range(15))
def test_clipped_rows_leave_no_inner_problem_unsolved(seed):
    """A solver that gave up in some round would end a run, and tell neighbours that something is odd about the rows."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        n, p = int(rng.integers(1, 60)), int(rng.integers(1, 25))
        loss = [
            losses.Logistic(), losses.Squared(), losses.Huber(10 ** rng.uniform(-3, 1)), losses.Absolute(),
            losses.Quantile(rng.uniform(0.05, 0.95)), losses.Hinge(), losses.SmoothedHinge(10 ** rng.uniform(-3, 0)),
            losses.SquaredHinge(), losses.Multinomial(3), losses.NoisyLabels(losses.Logistic(), rng.uniform(0.1, 9)),
        ][rng.integers(10)]  # fmt: skip
        penalty = [penalties.Zero(), penalties.L2(0.1), penalties.L1(0.05), penalties.ElasticNet(0.1)][rng.integers(4)]
        y = {
            "sign": rng.choice([-1.0, 1.0], n), "class": rng.integers(3, size=n).astype(float),
            "real": rng.normal(size=n) * 10 ** rng.uniform(-3, 3),
        }[loss.labels]  # fmt: skip
        shards = Shards.from_parts([(degenerate(rng, n, p), y), (np.ones((1, p)), y[:1])]).clip_rows(1.0)
        problem = Problem(shards, loss, penalty, intercept=bool(rng.integers(2)))
        linear = rng.normal(size=(1, 1, problem.width)) * 10 ** rng.uniform(-3, 0)
        start = rng.normal(size=(1, 1, problem.width)) * 10 ** rng.uniform(-3, 1)
        h, mask = 10 ** rng.uniform(-2.5, 1), oracles.mask(problem)
        beta = problem.only(0).argmin(linear, h, penalty, mask, 0.5, start, 1e-9)[0, 0]
        assert np.linalg.norm(beta) < 1e5


@each
@pytest.mark.parametrize("penalty", [penalties.Zero(), penalties.L1(0.1)], ids=oracles.name)
def test_an_unsolved_inner_problem_is_one_line(loss, penalty):
    problem = build(loss, columns=(), features=5)
    zero = 0 * points(problem, 1)
    with pytest.raises(SolverError, match=r"agent \d stopped at residual .*, above the tolerance 1.0e-40") as caught:
        problem.block.argmin(zero, 1.0, penalty, oracles.mask(problem), 1.0, zero, 1e-40)
    assert "\n" not in str(caught.value)


def test_a_problem_without_optimum_is_one_line():
    """The corrected loss of labels nobody randomised falls without end."""
    X = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    s = Shards.from_groups(X, np.sign(X[:, 0]), [0, 0, 1, 1])
    with pytest.raises(SolverError, match="without penalty may have none") as caught:
        Problem(s, losses.NoisyLabels(losses.Logistic(), 1.0)).solve()
    assert "\n" not in str(caught.value)
