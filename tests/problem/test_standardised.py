"""Moments, pairs and standardised gradients: against plain NumPy, and their rounding against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from exact import FORMS, apart, block, square, values, within

from confide import losses
from confide.problem import standardised
from confide.problem.kernels import rounding

forms = pytest.mark.parametrize("form", FORMS)
RNG = np.random.default_rng


def rows(n, seed=0, norm=1.0, p=3):
    """Within `norm`, of different lengths, with zeros for a sparse matrix to leave out."""
    X = RNG(seed).normal(size=(n, p)) * (RNG(seed + 1).random((n, p)) < 0.6)
    return X * norm * RNG(seed + 2).random((n, 1)) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)


@forms
def test_moments_are_those_of_numpy(form):
    X = 2 * rows(3_000, norm=1.0)
    made = block(X, np.ones(3_000), losses.Squared(), (1_000, 2_000), form)
    made.scale[:] = 0.25, 0.5
    got = standardised.feature_moments(made, np.array([1.5, 0.5]))
    held = values(made.shards.X)
    for k, (part, scale, C) in enumerate(((held[:1_000], 0.25, 1.5), (held[1_000:], 0.5, 0.5))):
        short = part * np.minimum(1, C / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300))
        want = np.concatenate([C / 2 * short.sum(axis=0), (short**2).sum(axis=0)]) * scale
        assert np.allclose(got[k], want, rtol=1e-12 if form != "float32" else 1e-5)


@forms
@pytest.mark.parametrize("n", [1, 2, 5, 2_501])
def test_pairs_are_disjoint_and_within_an_agent(n, form):
    X = 2 * rows(n + 4)
    made = block(X, np.ones(n + 4), losses.Squared(), (4, n), form)
    made.scale[:] = 0.5, 0.25
    held = values(made.shards.X)
    for k, (part, scale) in enumerate(((held[:4], 0.5), (held[4:], 0.25))):
        each = [min(0.5 * np.sum((part[i] - part[i + 1]) ** 2) / 1.5**2, 1.0) for i in range(0, len(part) - 1, 2)]
        assert standardised.pair_distances(made, np.full(2, 1.5))[k, 0] == pytest.approx(2 * scale * sum(each))


def test_pairs_too_far_to_measure_count_1():
    made = block([[1e200, 0.0], [-1e200, 0.0], [1.7e308, 1.0], [-1.7e308, 0.0]], np.ones(4), losses.Squared())
    assert standardised.pair_distances(made, np.ones(1))[0, 0] == 2 * 2 / 4


@forms
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared(), losses.Multinomial(3)], ids=repr)
def test_a_standardised_gradient_is_that_of_numpy(loss, intercept, form):
    """Rows built, weighed and clipped one by one; two agents, two seeds, each with its own centre and stretch."""
    n, m, C, slope = 400, loss.outputs, np.array([1.0, 2.0]), np.array([0.3, 0.1])
    X, y = rows(n), (np.arange(n) % 3).astype(float) if m > 1 else np.where(np.arange(n) % 2, 1.0, -1.0)
    made = block(X, y, loss, (150, 250), form, intercept)
    centre, stretch = RNG(5).normal(size=(2, 2, 3)) / 5, 10.0 ** RNG(6).uniform(-1, 1, size=(2, 2, 3))
    theta = RNG(7).normal(size=(2, 2, m * (3 + intercept)))
    got = standardised.standard_gradient(made, theta, centre, stretch, C, slope)
    held = values(made.shards.X)
    for s, k in np.ndindex(2, 2):
        part = slice(0, 150) if k == 0 else slice(150, 400)
        u = stretch[s, k] * (held[part] / C[k] - (centre[s, k] if intercept else 0.0))
        w = 1 / np.maximum(1, np.linalg.norm(u, axis=1))
        wide = np.column_stack([u, np.full(len(u), 0.5)]) if intercept else u
        z = wide @ theta[s, k].reshape(m, -1).T
        if m > 1:
            e = np.exp(z - z.max(axis=1, keepdims=True))
            slopes = e / e.sum(axis=1, keepdims=True) - np.eye(3)[y[part].astype(int)]
        else:
            slopes = z - y[part, None] if loss == losses.Squared() else -y[part, None] / (1 + np.exp(y[part, None] * z))
        slopes *= np.minimum(1, slope[k] / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300))
        want = ((slopes * w[:, None]).T @ wide).ravel() / len(u)
        assert np.allclose(got[s, k], want, rtol=1e-9, atol=1e-12)


@forms
def test_weights_never_exceed_what_a_row_allows(form):
    """ω·‖u‖ ≤ 1 and ω ≤ 1, in exact fractions; and no less than that by more than a few roundings of a²."""
    made = block(rows(300), np.ones(300), losses.Squared(), form=form)
    for seed, size in ((0, 1.0), (1, 256.0), (2, 1e-3)):
        a = size * RNG(seed).random(3)
        c = RNG(seed + 9).normal(size=3) / 3
        got = standardised.row_weights(made.shards.X, a, c, 1.0)
        for x, w in zip(values(made.shards.X).tolist(), got.tolist(), strict=True):
            u2 = sum((Fraction(p) * (Fraction(v) - Fraction(q))) ** 2 for p, v, q in zip(a, x, c, strict=True))
            assert 0 < w <= 1 and Fraction(w) ** 2 * u2 <= 1
            assert w > (1 - 1e-9) * min(1.0, float(u2) ** -0.5)


@forms
def test_a_standardised_sum_is_as_close_to_exact_as_kappa_says(form):
    """‖e‖ ≤ κ·bound·scale, where centring cancels almost all of what was summed; a row alone shows its slope."""
    n, bound, p = 1_500, 0.3, 3
    X = np.full((n, p), 0.3) + 1e-4 * RNG(0).random((n, p))
    y, loss, centre, stretch = np.where(np.arange(n) % 7, 1e9, -1e9), losses.Squared(), [0.3] * p, [256.0, 200.0, 99.0]
    slope, at = bound / 1.25**0.5, (np.reshape(centre, (1, 1, p)), np.reshape(stretch, (1, 1, p)))
    together = block(X, y, loss, form=form, intercept=True)
    alone = block(X, y, loss, [1] * n, form, intercept=True)
    got = standardised.standard_gradient(together, np.zeros((1, 1, p + 1)), *at, np.ones(1), np.array([slope]))[0, 0]
    many = (np.repeat(v, n, axis=1) for v in at)
    each = standardised.standard_gradient(alone, np.zeros((1, n, p + 1)), *many, np.ones(n), np.full(n, slope))[0]
    kappa = Fraction(2**0.5 * standardised.LARGEST_STRETCH * rounding(n, p, True))
    sums = [Fraction(0)] * (p + 1)
    for x, g in zip(values(together.shards.X).tolist(), each[:, p].tolist(), strict=True):
        s = 2 * Fraction(g)  # the intercept's feature is ½
        one = [s * Fraction(a) * (Fraction(v) - Fraction(c)) for a, v, c in zip(stretch, x, centre, strict=True)]
        assert within(square([*one, s / 2]), bound, kappa)
        sums = [t + v for t, v in zip(sums, [*one, s / 2], strict=True)]
    scale = Fraction(1.0 / n)
    assert 0 < apart(got, [scale * t for t in sums]) <= (kappa * Fraction(bound) * scale) ** 2


@forms
def test_moments_are_as_close_to_exact_as_kappa_says(form):
    """‖e‖ ≤ κ/2 of the sensitivity, for each of two neighbours; rows that are short already."""
    n = 2_500
    X = np.full((n, 3), 0.1) + 0.01 * RNG(0).random((n, 3))
    made = block(X, np.ones(n), losses.Squared(), form=form)
    sums = [Fraction(0)] * 6
    for x in values(made.shards.X).tolist():
        one = [Fraction(v) / 2 for v in x] + [Fraction(v) ** 2 for v in x]
        sums = [t + v for t, v in zip(sums, one, strict=True)]
    error = apart(standardised.feature_moments(made, np.ones(1)), [t * Fraction(1.0 / n) for t in sums])
    assert error <= (Fraction(rounding(n, 3)) / 2 * Fraction(9 / (4 * 2**0.5)) / n) ** 2


@forms
def test_weights_are_kept_until_the_coordinates_change(form):
    made = block(rows(50), np.ones(50), losses.Logistic(), form=form, intercept=True)
    theta, ones = np.zeros((1, 1, 4)), np.ones(1)

    def asked(stretch):
        at = np.zeros((1, 1, 3)), np.full((1, 1, 3), stretch)
        answer = standardised.standard_gradient(made, theta, *at, ones, ones)
        return answer, made.kept["standard"][1]

    (first, kept), (again, same), (other, new) = asked(1.0), asked(1.0), asked(50.0)
    assert same is kept and np.array_equal(first, again)
    assert new is not kept and not np.allclose(first, other)
