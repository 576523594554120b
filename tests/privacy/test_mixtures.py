"""Objective and output perturbation at δ > 0: the bounds against quadrature, simulation and the mechanisms."""

import itertools

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats
from scipy.special import gammaincinv, gammaln

from confide.privacy import Gaussian, ObjectivePerturbation, PureDP, RadialNoise, delta, epsilon, mixtures


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


# --- output perturbation: one fixed shift, signed --------------------------------------------------------------------


@pytest.mark.parametrize(("width", "s"), [(2, 0.5), (3, 2.0), (10, 1.0), (104, 0.4375), (1000, 3.0)])
def test_one_output_against_quadrature(width, s):
    """δ(ε) = E(1 - e^(ε - L))₊ by Gauss-Legendre over the radius and the angle, whose density is ∝ sin^(d-2)."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    ends = stats.gamma(width).ppf([1e-10, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-10])
    rho = np.concatenate([(a + b) / 2 + nodes * (b - a) / 2 for a, b in itertools.pairwise(ends)])
    chance = np.concatenate([weights * (b - a) / 2 for a, b in itertools.pairwise(ends)]) * stats.gamma(width).pdf(rho)
    near = min(np.pi / 2, 12 / width**0.5)  # of the right angle; beyond there is nothing
    for eps in (0.0, 0.3 * s / width**0.25):
        last = np.arccos(np.clip(((eps + rho) ** 2 - rho**2 - s**2) / (2 * rho * s), -1, 1))  # L > ε up to this angle
        first = np.minimum(np.pi / 2 - near, last)
        angle = first[:, None] + (nodes + 1) / 2 * (last - first)[:, None]
        density = np.exp((width - 2) * np.log(np.sin(angle)) - np.log(np.pi) / 2 - gammaln((width - 1) / 2)
                         + gammaln(width / 2))  # fmt: skip
        gain = np.maximum(0, 1 - np.exp(eps - loss(rho[:, None], np.cos(angle), s, 0.0)))
        true = float(chance @ ((gain * density) @ weights * (last - first) / 2))
        found = delta([RadialNoise(2.0, s / 2, width)], eps)
        assert true - 1e-8 <= found <= true * 1.02 + 1e-8


@pytest.mark.parametrize("s", [0.3, 1.0, 4.0])
def test_in_one_dimension_it_is_the_laplace_mechanism(s):
    oracle = pld.from_laplace_mechanism(1.0, s, value_discretization_interval=1e-4).self_compose(3)
    for d in (1e-3, 1e-6):
        found = epsilon([RadialNoise(1.0, s, 1)] * 3, d)
        assert oracle.get_epsilon_for_delta(d) - 1e-3 <= found <= oracle.get_epsilon_for_delta(d) * 1.005 + 1e-3


@pytest.mark.parametrize(("width", "s", "rounds"), [(2, 0.5, 10), (10, 1.0, 5), (104, 0.4375, 25), (5, 0.3, 40)])
def test_outputs_compose_as_the_mechanism_does(width, s, rounds):
    """The densities' own ratio at noise drawn in full, in every round along another direction."""
    rng = np.random.default_rng(width)
    total = np.zeros(min(100_000, 4_000_000 // width))
    for _ in range(rounds):
        direction = rng.normal(size=width)
        shift = s * direction / np.linalg.norm(direction)
        e = rng.normal(size=(len(total), width)).astype(np.float32)
        e *= (rng.gamma(width, size=len(total)) / np.linalg.norm(e, axis=1))[:, None]
        total += np.linalg.norm(e + shift, axis=1) - np.linalg.norm(e, axis=1)
    events = [RadialNoise(1.0, s, width)] * rounds
    for eps in np.array([0.2, 0.5, 0.8]) * epsilon(events, 1e-3):
        seen = np.maximum(0, 1 - np.exp(eps - total))
        error = 5 * seen.std() / np.sqrt(len(seen))
        assert seen.mean() - error <= delta(events, eps) <= seen.mean() * 1.03 + error


def test_a_shorter_shift_costs_less_so_that_the_longest_stands_for_all():
    """By the densities themselves, in two dimensions on a grid: no part of the accountant."""
    x = np.linspace(-25, 25, 1001)
    norm = np.hypot(x[:, None], x[None, :])
    p = np.exp(-norm)
    p /= p.sum()
    costs = []
    for t in (0.0, 0.25, 0.5, 0.75, 1.0):
        q = p * np.exp(norm - np.hypot(x[:, None] + t, x[None, :]))
        costs.append([np.maximum(p - np.exp(eps) * q, 0).sum() for eps in (0.0, 0.1, 0.4)])
    assert np.all(np.diff(costs, axis=0) >= 0)
    found = [delta([RadialNoise(1.0, 1.0, 2)], eps) for eps in (0.0, 0.1, 0.4)]
    assert np.all(np.array(found) >= np.array(costs[-1]) - 1e-6)


def test_the_signed_loss_is_far_below_the_unsigned_and_the_pure_one():
    signed = [RadialNoise(1.0, 0.4375, 104)] * 25
    unsigned = [ObjectivePerturbation(1.0, 0.4375, 0.0, width=104, rank=1)] * 25
    assert epsilon(signed, 0.0) == pytest.approx(25 * 0.4375)
    assert epsilon(signed, 1e-4) < 0.55 * epsilon(unsigned, 1e-4) < 0.1 * 25 * 0.4375
    signed, unsigned = ([event] * 50 for event in (
        RadialNoise(1.0, 0.629, 104), ObjectivePerturbation(1.0, 0.629, 0.0, width=104, rank=1)))  # fmt: skip
    assert epsilon(unsigned, 1e-4) == pytest.approx(3.42, abs=0.01)
    assert epsilon(signed, 1e-4) == pytest.approx(1.45, abs=0.02)  # by simulation 1.45
    for few in (RadialNoise(1.0, 0.4, 1), RadialNoise(1.0, 0.4, 2)):
        assert epsilon([few], 1e-6) <= 0.4
    falling = [epsilon([RadialNoise(1.0, 0.3, w)] * 20, 1e-6) for w in (1, 2, 4, 16, 64, 256, 10**5)]
    assert all(a > b for a, b in itertools.pairwise(falling))


@pytest.mark.parametrize("width", [2, 10, 104, 5000, 10**6])
def test_the_cells_end_where_they_say(width):
    """scipy's inverses are guarded: by mpmath no more than its share lies below a cell's lower end."""
    with mpmath.workdps(25):
        for edge in (1e-12, 1e-6, 0.01, 0.37, 0.99):
            low = float(gammaincinv(width, edge)) * (1 - mixtures._END)
            points = (
                [mpmath.mpf(low) * k / 40 for k in range(41)]
                if width < 200
                else [low - 20 * width**0.5 + mpmath.mpf(width) ** 0.5 * k / 2 for k in range(41)]
            )
            log = mpmath.loggamma(width)
            below = mpmath.quad(lambda x: mpmath.exp((width - 1) * mpmath.log(x) - x - log), points)  # noqa: B023
            assert edge * 0.98 <= below <= edge


def test_outputs_compose_with_other_events_and_by_agent():
    base = [RadialNoise(np.array([1.0, 2.0]), 0.3, 50)] * 10
    alone, more = epsilon(base, 1e-5), epsilon([*base, Gaussian(0.1, 1.0, slack=1e-40), PureDP(0.2)], 1e-5)
    assert alone.shape == (2,) and alone[1] > alone[0]
    assert np.all(alone < more) and np.all(more < alone + 0.2 + epsilon([Gaussian(0.1, 1.0)], 1e-6) + 0.05)
    mixed = epsilon([*base, ObjectivePerturbation(1.0, 0.2, 0.01, width=50)], 1e-5)
    assert np.all(alone < mixed) and np.all(mixed < alone + 0.2 + np.log(1.01))
