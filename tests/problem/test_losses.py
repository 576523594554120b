"""Losses against their definitions, finite differences and brute-force minimisation."""

import math

import mpmath
import numpy as np
import oracles
import pytest
from scipy.optimize import minimize_scalar

from confide import Problem, losses
from confide.problem.margin import exp_negative

each = pytest.mark.parametrize("loss", oracles.SCALAR, ids=oracles.name)
smooth = pytest.mark.parametrize("loss", [x for x in oracles.SCALAR if x.smooth], ids=oracles.name)
noisy = pytest.mark.parametrize("loss", oracles.NOISY, ids=oracles.name)


def sample(loss, n=400, seed=0, spread=4.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * spread
    y = rng.choice([-1.0, 1.0], n) if loss.labels == "sign" else rng.normal(size=n)
    return z, y


@each
def test_value_is_the_definition(loss):
    z, y = sample(loss)
    np.testing.assert_allclose(loss.value(z, y), oracles.value(loss, z, y), rtol=1e-13, atol=1e-15)
    assert loss.value(z[:6].reshape(2, 3), y[0]).shape == (2, 3)  # broadcasts


@pytest.mark.parametrize("m", [-800.0, -40.0, 0.0, 40.0, 800.0])
def test_logistic_neither_overflows_nor_cancels(m):
    loss = losses.Logistic()
    assert loss.value(m, 1.0) == pytest.approx(np.logaddexp(0, -m), rel=1e-15, abs=0)
    assert loss.slope(m, 1.0) == pytest.approx(-np.exp(-np.logaddexp(0, m)), rel=1e-12, abs=1e-300)
    assert loss.curvature(m, 1.0) == pytest.approx(np.exp(-np.logaddexp(0, m) - np.logaddexp(0, -m)), abs=1e-300)


@each
def test_slope_by_finite_differences(loss):
    z, y = sample(loss)
    h = 1e-6
    difference = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.slope(z, y), difference, atol=1e-7)  # no draw falls within h of a kink


@each
def test_slope_is_a_subgradient_even_at_the_kinks(loss):
    y = np.array([-1.0, 1.0])[:, None, None]
    z = np.array([-1.0, 1.0, 0.0, y.max() + 0.7, 0.6])[:, None]
    u = np.linspace(-5, 5, 101)
    assert np.all(loss.value(u, y) >= loss.value(z, y) + loss.slope(z, y) * (u - z) - 1e-12)


@smooth
def test_curvature_by_finite_differences(loss):
    z, y = sample(loss)
    h = 1e-6
    np.testing.assert_allclose(loss.curvature(z, y), (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h), atol=1e-7)


@each
def test_convex_along_the_margin(loss):
    y = np.array([-1.0, 1.0])[:, None]
    z = np.linspace(-6, 6, 2001)
    assert loss.convex
    assert np.all(np.diff(loss.value(z, y), 2, axis=1) >= -1e-12)
    assert np.all(np.diff(loss.slope(z, y), axis=1) >= -1e-15)


@each
@pytest.mark.parametrize("step", [1e-3, 0.5, 3.0, 50.0])
def test_prox_is_the_minimiser(loss, step):
    z, y = sample(loss, n=40, seed=1)
    got = loss.prox(z, y, step)

    def cost(u, i):
        return step * oracles.value(loss, np.array([u]), y[i : i + 1])[0] + (u - z[i]) ** 2 / 2

    for i, u in enumerate(got):
        reach = step * (1 + abs(z[i]) + abs(y[i]))  # the prox moves by at most step·|slope| at z
        best = minimize_scalar(
            cost, args=(i,), bounds=(z[i] - reach, z[i] + reach), method="bounded", options={"xatol": 1e-12}
        )
        assert cost(u, i) <= best.fun + 1e-12 * (1 + abs(best.fun))
        assert abs(u - best.x) <= 1e-5 * (1 + abs(u))  # a value-based search sees the square root of 1e-16


@each
def test_prox_satisfies_its_optimality_condition(loss):
    """(z - u)/step lies between the one-sided slopes at u; exact to rounding, unlike a value-based search."""
    z, y = sample(loss, n=200, seed=2)
    u = loss.prox(z, y, 0.8)
    wanted, h = (z - u) / 0.8, 1e-9
    assert np.all(wanted >= loss.slope(u - h, y) - 1e-8)
    assert np.all(wanted <= loss.slope(u + h, y) + 1e-8)


@pytest.mark.parametrize("m", [-1e6, -1e3, 1e3, 1e6])
def test_logistic_prox_far_out(m):
    u = float(losses.Logistic().prox(m, 1.0, 2.0))
    assert u == pytest.approx(m + (2.0 if m < 0 else 0.0), rel=1e-12)


@each
def test_bounds_are_suprema(loss):
    y = np.array([-1.0, 1.0])[:, None]
    z = np.concatenate([np.linspace(-50, 50, 4001), [-1e3, 1e3, 0.0, 1.0 - 1e-9, -1.0 + 1e-9]])
    slope, curvature = np.abs(loss.slope(z, y)).max(), loss.curvature(z, y).max()
    for bound, reached in ((loss.slope_bound, slope), (loss.curvature_bound, curvature)):
        assert reached <= bound + 1e-15
        assert math.isinf(bound) or reached >= bound * (1 - 1e-9)
    assert (loss.slope_bound == math.inf) == isinstance(loss, losses.Squared | losses.SquaredHinge)
    assert (loss.curvature_bound == math.inf) == (not loss.smooth)


# --- several margins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 7])
def test_multinomial_value_and_slope(k):
    loss, rng = losses.Multinomial(k), np.random.default_rng(3)
    z, y = rng.normal(size=(50, k)) * 5, rng.integers(0, k, 50).astype(float)
    np.testing.assert_allclose(loss.value(z, y), oracles.value(loss, z, y), rtol=1e-12, atol=1e-14)
    h = 1e-6 * np.eye(k)
    difference = np.stack([(loss.value(z + e, y) - loss.value(z - e, y)) / 2e-6 for e in h], axis=1)
    np.testing.assert_allclose(loss.slope(z, y), difference, atol=1e-8)


def test_multinomial_of_two_classes_is_logistic():
    z = np.linspace(-9, 9, 37)
    pair = np.column_stack([np.zeros_like(z), z])
    got = losses.Multinomial(2).value(pair, np.ones_like(z))
    np.testing.assert_allclose(got, losses.Logistic().value(z, 1.0), rtol=1e-12, atol=1e-14)
    assert losses.Multinomial(2).value([1000.0, -1000.0], 1.0) == pytest.approx(2000.0)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_multinomial_bounds_are_suprema(k):
    loss, rng = losses.Multinomial(k), np.random.default_rng(4)
    z = rng.normal(size=(2000, k)) * 10 ** rng.uniform(-1, 2, (2000, 1))
    slopes = np.linalg.norm(loss.slope(z, np.zeros(2000)), axis=1)
    assert slopes.max() <= loss.slope_bound + 1e-15
    sure = np.zeros((1, k))
    sure[0, 1] = 40.0  # certain of the wrong class
    assert np.linalg.norm(loss.slope(sure, 0.0)) == pytest.approx(loss.slope_bound, rel=1e-12)
    half = np.full((1, k), -40.0)
    half[0, :2] = 0.0  # torn between two classes
    for row in np.concatenate([z[:200], half]):
        p = np.exp(row - row.max())
        p /= p.sum()
        top = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]
        assert top <= loss.curvature_bound + 1e-12
    assert top == pytest.approx(loss.curvature_bound, rel=1e-9)


@pytest.mark.parametrize("call", ["curvature", "prox"])
def test_multinomial_has_no_elementwise_curvature_or_prox(call):
    with pytest.raises(TypeError, match="Multinomial"):
        getattr(losses.Multinomial(3), call)(*([[0.0, 1.0, 2.0]], 1.0, 1.0)[: 2 if call == "curvature" else 3])


# --- randomised labels ----------------------------------------------------------------------------------------------


def margins(loss, n=30, seed=5):
    z = np.random.default_rng(seed).normal(size=(n, loss.outputs)) * 3
    return z if loss.labels == "class" else z[:, 0]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("base", [losses.Logistic(), *map(losses.Multinomial, (2, 3, 6))], ids=repr)
def test_corrected_loss_is_unbiased(base, epsilon):
    """The mean over the randomisation of the label is the loss of the true label, at every margin."""
    loss, z, labels = losses.NoisyLabels(base, epsilon), margins(base), oracles.classes(base)
    P = oracles.response(len(labels), epsilon)
    for f in ("value", "slope"):
        given = np.stack([getattr(loss, f)(z, np.full(len(z), c)) for c in labels])
        for i, c in enumerate(labels):
            true = getattr(base, f)(z, np.full(len(z), c))
            np.testing.assert_allclose(np.tensordot(P[i], given, 1), true, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", oracles.NOISY, ids=oracles.name)
def test_corrected_block_is_unbiased(loss):
    """The same through the kernels: flip every label of a block in all ways and weigh by probability."""
    labels = oracles.classes(loss)
    P = oracles.response(len(labels), loss.epsilon)
    true = oracles.shards(loss, sizes=(12, 5))
    beta = np.random.default_rng(6).normal(size=(1, 2, 4 * loss.outputs))
    mean = 0.0
    index = np.searchsorted(labels, true.y)
    for shift in range(len(labels)):  # a sum over rows: only each row's own flip matters
        flipped = labels[(index + shift) % len(labels)]
        chance = P[index, (index + shift) % len(labels)]
        shards = type(true)(true.X, flipped, true.offsets, true.names, {"weight": chance})
        mean = mean + Problem(shards, loss).block.value(beta)
    np.testing.assert_allclose(mean, Problem(true, loss.base).block.value(beta), rtol=1e-12)


@noisy
def test_corrected_slopes_match_finite_differences_and_stay_convex(loss):
    z, h = margins(loss), 1e-5
    y = np.full(len(z), oracles.classes(loss)[0])
    got = loss.slope(z, y)
    np.testing.assert_allclose(got, oracles.corrected(oracles.slope, loss, z, y, np.full(len(z), loss.epsilon)))
    for c in range(loss.outputs):
        step = h if z.ndim == 1 else h * np.eye(loss.outputs)[c]
        low, here, high = (loss.value(z + s * step, y) for s in (-1, 0, 1))
        np.testing.assert_allclose(got if z.ndim == 1 else got[:, c], (high - low) / (2 * h), atol=1e-7)
        assert np.all(high + low - 2 * here >= -1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("base", [losses.Logistic(), *map(losses.Multinomial, (2, 3, 6))], ids=repr)
def test_corrected_bounds_are_suprema(base, epsilon):
    loss, labels = losses.NoisyLabels(base, epsilon), oracles.classes(base)
    z = np.concatenate([margins(base, 500), 20 * margins(base, 500)])
    sizes = [loss.slope(z, np.full(len(z), c)).reshape(len(z), -1) for c in labels]
    assert np.linalg.norm(sizes, axis=2).max() <= loss.slope_bound * (1 + 1e-12)
    far = np.array([-60.0]) if base.labels == "sign" else 60.0 * np.eye(base.outputs)[1:2]
    reached = np.linalg.norm(loss.slope(far, labels[1:] if base.labels == "sign" else np.zeros(1)))
    assert reached == pytest.approx(loss.slope_bound, rel=1e-12)
    assert loss.curvature_bound == base.curvature_bound  # the correction is linear in z


def test_corrected_logistic_has_curvature_and_prox():
    loss, z = losses.NoisyLabels(losses.Logistic(), 0.8), margins(losses.Logistic())
    y, step = np.where(np.arange(len(z)) % 2, 1.0, -1.0), 0.6
    h = 1e-6
    np.testing.assert_allclose(loss.curvature(z, y), (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h), atol=1e-8)
    u = loss.prox(z, y, step)
    np.testing.assert_allclose(u + step * loss.slope(u, y), z, atol=1e-12)


def test_labels_that_are_all_but_certain_need_no_correction():
    loss = losses.NoisyLabels(losses.Logistic(), 800.0)  # e^800 is beyond the doubles
    assert loss.q == 0.0 and loss.slope_bound == 1.0 and loss.value(0.3, 1.0) == losses.Logistic().value(0.3, 1.0)


def test_corrected_loss_of_rows_with_their_own_epsilon_has_no_single_value():
    loss = losses.NoisyLabels(losses.Logistic(), epsilon_min=0.5)
    assert loss.slope_bound == losses.NoisyLabels(losses.Logistic(), 0.5).slope_bound
    with pytest.raises(TypeError, match="epsilon"):
        loss.value(0.0, 1.0)


def test_the_vectorised_exponential_agrees_with_mpmath() -> None:
    rng = np.random.default_rng(0)
    x = -np.concatenate([[0.0, 1e-300, 1e-17, np.log(2) / 2, 708.0], rng.uniform(0, 40, 300), rng.uniform(0, 708, 300)])
    exact = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
    worst = max(abs(exp_negative(v) - e) / np.spacing(float(e)) for v, e in zip(x, exact, strict=True))
    assert worst <= 2  # units in the last place
    assert exp_negative(-np.inf) == exp_negative(-1e9) == exp_negative(-708.0) > 0
