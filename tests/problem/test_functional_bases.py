"""Bases and inner products of curves, against SciPy's quadrature and scikit-fda."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate
from scipy.interpolate import BSpline

from confide.problem.functional import Basis, Curves, orthonormal, rising, scores, trapezoid

FINE = np.linspace(0, 1, 401)


@pytest.mark.parametrize("kind", ["cosine", "fourier"])
@pytest.mark.parametrize("domain", [(0.0, 1.0), (850.0, 1050.0)])
def test_waves_are_orthonormal(kind, domain):
    basis = Basis(kind, 7, domain)
    t = np.linspace(*domain, 2001)
    values = basis(t)
    gram = integrate.simpson(values[:, :, None] * values[:, None, :], x=t, axis=0)
    assert np.allclose(gram, np.eye(7), atol=1e-9)


def test_cosines_are_the_papers():
    t = np.array([0.0, 0.3, 1.0])
    expected = [np.ones(3)] + [np.sqrt(2) * np.cos((k - 1) * np.pi * t) for k in range(2, 6)]
    assert np.allclose(Basis("cosine", 5)(t), np.transpose(expected))


@pytest.mark.parametrize(("kind", "count"), [("fourier", 5), ("fourier", 7), ("bspline", 4), ("bspline", 9)])
def test_against_scikit_fda(kind, count):
    from skfda.representation.basis import BSplineBasis, FourierBasis

    domain = (0.0, 3.0)  # where scikit-fda's sines start at 0 as ours do
    known = FourierBasis(domain, n_basis=count) if kind == "fourier" else BSplineBasis(domain, n_basis=count, order=4)
    t = np.linspace(*domain, 50)
    assert np.allclose(Basis(kind, count, domain)(t), known(t)[:, :, 0].T, atol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 12])
def test_splines_against_scipy(count):
    degree = min(3, count - 1)
    knots = np.r_[[0.0] * degree, np.linspace(0, 1, count - degree + 1), [1.0] * degree]
    expected = np.transpose([BSpline(knots, row, degree)(FINE) for row in np.eye(count)])
    assert np.allclose(Basis("bspline", count)(FINE), expected)
    assert np.allclose(Basis("bspline", count)(FINE).sum(axis=1), 1.0)


def test_trapezoid_and_common_grids():
    grid = np.sort(np.random.default_rng(0).uniform(size=40))
    x = np.sin(3 * grid)
    assert trapezoid(grid) @ x == pytest.approx(integrate.trapezoid(x, grid), rel=1e-14)
    basis = Basis("fourier", 3)
    expected = integrate.trapezoid(x[:, None] * basis(grid), grid, axis=0)
    assert np.allclose(scores(x[None], grid, basis), expected)
    assert np.array_equal(trapezoid(np.array([0.3])), [1.0])


def test_orthonormal_keeps_the_span():
    grid = np.sort(np.random.default_rng(1).uniform(size=60))
    values = Basis("bspline", 6)(grid)
    flat = orthonormal(values, grid)
    assert np.allclose(flat.T @ (trapezoid(grid)[:, None] * flat), np.eye(6), atol=1e-12)
    assert np.allclose(flat @ np.linalg.lstsq(flat, values, rcond=None)[0], values)


@pytest.mark.parametrize("kind", ["cosine", "fourier", "bspline"])
def test_irregular_scores_against_quad(kind):
    """Each curve is the straight line through its own points: SciPy integrates that against each function."""
    rng, basis = np.random.default_rng(2), Basis(kind, 5)
    pairs = [(np.sort(rng.uniform(size=m)), rng.normal(size=m)) for m in (1, 2, 7, 30)]
    pairs.append((np.array([-0.5, 0.2, 1.5]), np.array([1.0, 2.0, -1.0])))  # observed beyond the domain, too
    got = Curves.from_pairs(pairs).scores(basis)
    for (t, x), row in zip(pairs, got, strict=True):
        cuts = np.unique(np.clip(np.r_[0, t, 0.5, 1], 0, 1))
        for k in range(5):
            f = lambda s, k=k, t=t, x=x: np.interp(s, t, x) * basis(np.array([s]))[0, k]  # noqa: E731
            total = sum(integrate.quad(f, a, b, epsabs=1e-12)[0] for a, b in pairwise(cuts))
            assert row[k] == pytest.approx(total, abs=2e-6)


def test_irregular_scores_of_smooth_curves_are_the_coefficients():
    rng, basis = np.random.default_rng(3), Basis("cosine", 4)
    truth = rng.normal(size=(20, 4))
    pairs = [(t, basis(t) @ row) for row in truth for t in [np.sort(rng.uniform(size=400))]]
    curves = Curves.from_pairs(pairs)
    assert np.allclose(curves.scores(basis), truth, atol=0.01)
    assert np.allclose(curves.resample(FINE), truth @ basis(FINE).T, atol=0.15)
    assert np.allclose(scores(curves.resample(FINE), FINE, basis), curves.scores(basis), atol=1e-3)


def test_resample_is_numpys_interpolation():
    pairs = [([0.1, 0.5], [1.0, 3.0]), ([0.2], [7.0])]
    assert np.allclose(Curves.from_pairs(pairs).resample([0.0, 0.3, 1.0]), [[1, 2, 3], [7, 7, 7]])


def test_known_eigenfunctions_are_any_function_of_points():
    wiener = lambda t: np.sqrt(2) * np.sin((np.arange(3) + 0.5) * np.pi * np.asarray(t)[:, None])  # noqa: E731
    assert np.allclose(scores(wiener(FINE).T, FINE, wiener), np.eye(3), atol=1e-4)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda: Basis("wavelet", 3), "basis='wavelet'"), (lambda: Basis("cosine", 0), "count=0"),
        (lambda: Basis("cosine", 2, (1.0, 1.0)), "low < high"), (lambda: rising([0.0, 0.0], 2), "rising"),
        (lambda: Curves.from_pairs([([0, 1], [1])]), "value per point"), (lambda: Curves.from_pairs([]), "no curves"),
        (lambda: Curves.from_pairs([([1, 0], [1, 2])]), "do not rise"),
        (lambda: Curves.from_pairs([([0, 1], [1, np.nan])]), "NaN"),
        (lambda: Curves.from_pairs([([], [])]), "at least 1 point"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_line(bad, said):
    with pytest.raises(ValueError, match=said):
        bad()
