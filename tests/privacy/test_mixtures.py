"""Objective perturbation at δ > 0: the bound against quadrature, simulation, and the mechanism itself."""

import itertools

import numpy as np
import pytest
from scipy import stats

from confide.privacy import Gaussian, ObjectivePerturbation, PureDP, delta, epsilon


def loss(rho, b, s, c):
    return np.sqrt(rho**2 + 2 * rho * b * s + s**2) - rho + c


@pytest.mark.parametrize(("width", "s", "x"), [(3, 0.5, 0.1), (10, 1.0, 0.0), (104, 0.4375, 0.0268), (50, 3.0, 0.2)])
def test_one_round_against_quadrature(width, s, x):
    """δ(ε) = E(1 - e^(ε - G - c))₊ by Gauss-Legendre over ϱ ~ Gamma(d) and b² ~ Beta(1, (d-2)/2)."""
    event = ObjectivePerturbation(1.0, s, x, width=width)
    nodes, weights = np.polynomial.legendre.leggauss(800)
    u, weights = (nodes + 1) / 2, weights / 2
    rho, b = stats.gamma(width).ppf(u)[:, None], np.sqrt(stats.beta(1, (width - 2) / 2).ppf(u))[None, :]
    for eps in (0.3 * s, 0.6 * s):
        exact = weights @ np.maximum(0, 1 - np.exp(eps - loss(rho, b, s, np.log1p(x)))) @ weights
        pure = delta([PureDP(s + np.log1p(x))], eps)  # just as valid, and smaller in few dimensions
        assert min(exact, pure) - 1e-5 <= delta([event], eps) <= min(exact, pure) + 0.01 * s + 1e-4


def test_rounds_against_simulation():
    """25 rounds in the setting of the Recycled ADMM paper; the pure total is 11.6."""
    events = [ObjectivePerturbation(1.0, 2 * 1750 / 8000, 0.25 * 1750 / (8000 * 2.044), width=104)] * 25
    rng = np.random.default_rng(0)
    total = np.zeros(200_000)
    for _ in range(25):
        rho, b = rng.gamma(104, size=len(total)), np.sqrt(rng.beta(1, 51, size=len(total)))
        total += loss(rho, b, 0.4375, np.log1p(0.25 * 1750 / (8000 * 2.044)))
    for eps in (1.0, 1.5, 2.0):
        seen = np.maximum(0, 1 - np.exp(eps - total))
        assert seen.mean() - 4 * seen.std() / np.sqrt(len(seen)) <= delta(events, eps) <= seen.mean() + 0.01
    assert epsilon(events, 1e-5) < 2.7 and epsilon(events, 0.0) == pytest.approx(11.5976, abs=1e-3)


@pytest.mark.parametrize("width", [3, 8, 40])
def test_the_mechanism_itself_stays_below_the_bound(width):
    """Noise e against e + Δ with Δ of length r: the worst fixed shift the argument allows, ratio of true densities."""
    rng = np.random.default_rng(1)
    g = rng.normal(size=(400_000, width))
    e = g / np.linalg.norm(g, axis=1, keepdims=True) * rng.gamma(width, size=(len(g), 1))
    shift = np.zeros(width)
    shift[0] = 1.2
    true = np.linalg.norm(e + shift, axis=1) - np.linalg.norm(e, axis=1)
    event = ObjectivePerturbation(1.0, 1.2, 0.0, width=width)
    for eps in (0.2, 0.5, 0.8):
        seen = np.maximum(0, 1 - np.exp(eps - true))
        assert delta([event], eps) >= seen.mean() - 4 * seen.std() / np.sqrt(len(seen))


def test_it_never_exceeds_the_pure_total_and_falls_with_the_width():
    totals = [epsilon([ObjectivePerturbation(1.0, 0.3, 0.01, width=w)] * 20, 1e-6) for w in (2, 4, 16, 64, 256)]
    pure = epsilon([ObjectivePerturbation(1.0, 0.3, 0.01)] * 20, 1e-6)
    assert totals[0] <= pure * (1 + 1e-9)
    assert all(a > b for a, b in itertools.pairwise(totals))


def test_it_composes_with_gaussian_and_pure_events_and_per_agent():
    base = [ObjectivePerturbation(np.array([1.0, 2.0]), 0.3, 0.01, width=50)] * 10
    alone = epsilon(base, 1e-5)
    more = epsilon([*base, Gaussian(0.1, 1.0), PureDP(0.2)], 1e-5)
    assert alone.shape == (2,) and alone[1] > alone[0]
    assert np.all(alone < more) and np.all(more < alone + 0.2 + epsilon([Gaussian(0.1, 1.0)], 1e-6) + 0.05)


@pytest.mark.parametrize("bad", [{"width": 0}, {"width": 2.5}, {"rank": 0}])
def test_bad_shapes_are_one_line(bad):
    with pytest.raises(ValueError, match="must be an integer from 1"):
        ObjectivePerturbation(1.0, 0.1, 0.0, **bad)
