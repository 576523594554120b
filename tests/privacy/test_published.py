"""The papers' bounds: formulas against the papers' definitions, validity against the exact totals."""

import math

import numpy as np
import pytest

from confide.privacy import Gaussian, ObjectivePerturbation, epsilon
from confide.privacy.published import (
    DZOASetting,
    cdp_admm_corollary,
    cdp_admm_first_cost,
    classical_mu,
    d_zoa_directions,
    d_zoa_iteration,
    d_zoa_scale,
    d_zoa_total,
    fdp_admm,
    r_admm,
    sqrt_rounds,
)


@pytest.mark.parametrize(("decay", "rounds"), [(0.97, 200), (0.5, 3), (0.9, 1)])
def test_cdp_admm_corollary_sums_the_rounds_and_bounds_the_exact_total(decay, rounds):
    variances = 4.0 * decay ** np.arange(rounds)  # σ_t² = R·σ_{t−1}², sensitivity 1
    cost = np.sum(1 / (2 * variances))  # Theorem I, (12), added up
    bound = cdp_admm_corollary(1 / 8, decay, rounds, 1e-3, clipped=True)
    assert bound.epsilon == pytest.approx(cost + 2 * math.sqrt(cost * math.log(1e3)))
    assert bound.valid and bound.epsilon > epsilon([Gaussian(1.0, math.sqrt(v)) for v in variances], 1e-3)
    assert not cdp_admm_corollary(1 / 8, decay, rounds, 1e-3, clipped=False).valid


def test_cdp_admm_noise_inverts_the_corollary():
    first = cdp_admm_first_cost(10.0, 1e-3, 0.97, 200)
    assert cdp_admm_corollary(first, 0.97, 200, 1e-3, clipped=True).epsilon == pytest.approx(10.0)


def test_sqrt_rounds_holds_for_small_values_only():
    for total, valid in ((1.0, True), (14.0, False)):  # the ends of Fig. 2
        bound = sqrt_rounds(total / math.sqrt(200), 200, 1e-3, clipped=True)
        assert bound.epsilon == pytest.approx(total)
        assert bound.valid is valid
        # judged by 200 releases with the classical noise √(2 ln(1.25/δ))/ε
        scale = math.sqrt(2 * math.log(1250)) / (total / math.sqrt(200))
        assert (epsilon([Gaussian(1.0, scale)] * 200, 1e-3) <= total) is valid
    assert not sqrt_rounds(0.05, 200, 1e-3, clipped=False).valid


def test_r_admm_reproduces_the_known_numbers():
    """PAPERS: C = 1750, B = 8000, c1 = 1/4, h = .22/5 + 2: .075 a step, 12.8 in 25 rounds at α = 1."""
    h = np.full(25, 0.22 / 5 + 2)
    assert r_admm(1750, 8000, 0.25, h, 1.0).epsilon == pytest.approx(12.8, abs=0.05)
    step = r_admm(1750, 8000, 0.25, h[:1], 1e-12).epsilon
    assert step == pytest.approx(0.075, abs=5e-4)
    tight = ObjectivePerturbation(1e-12, 2 * 1750 / 8000, 0.25 * 1750 / 8000 / h[0]).epsilon
    assert tight == pytest.approx(0.026, abs=5e-4)


def test_r_admm_per_agent_is_valid_and_looser_than_the_event():
    h = 0.044 + 2 * np.outer(1.04 ** np.arange(1, 26), [1, 2, 3])  # (rounds, agents): η_k, degrees
    rate = np.linspace(0.5, 2.0, 25)
    rows = np.array([8000.0, 7000.0, 9000.0])
    bound = r_admm(1750, rows, 0.25, h, rate)
    sums = [sum(2 * 1750 / rows[k] * (1.4 * 0.25 / h[t, k] + rate[t]) for t in range(25)) for k in range(3)]
    assert bound.epsilon == pytest.approx(sums)
    weight = 1750 / rows
    events = [ObjectivePerturbation(*v) for v in zip(rate, [2 * weight] * 25, 0.25 * weight / h, strict=True)]
    assert bound.valid and np.all(epsilon(events, 0.0) < bound.epsilon)


SETTING = DZOASetting(
    gradient_bound=1.0, coupling=4.0, degree=2, rows=20, width=10, inner_rounds=100, radius=1.0, solution_norm=0.5
)


def test_d_zoa_formulas():
    s1, s2 = sum(1 / t for t in range(1, 101)), sum(t**-1.5 for t in range(1, 101))
    inner = 0.5 * 0.54**2 / math.log(20) * (s1 * (1 + math.log(10)) + s2) - 4 * 0.25 / 100
    oracle = 1 / (4 * 2 * 20) * math.sqrt(2.1 * 7 * 10 * math.log(1250) / inner)
    bound = d_zoa_iteration(SETTING, 7, 1e-3)
    assert bound.epsilon == pytest.approx(oracle)  # (22)
    assert d_zoa_scale(SETTING, oracle, 1e-3) ** 2 == pytest.approx(inner / 70)  # (20) meets (17)
    assert d_zoa_directions(SETTING, oracle, 1e-3) == 7
    assert d_zoa_total(0.15, 200, 1e-3).epsilon == pytest.approx(
        0.15 * math.sqrt(200 * math.log(1000) / (1.05 * math.log(1250)))
    )  # (25)


def test_d_zoa_is_never_valid_and_its_claim_moves_with_the_radius():
    wide = DZOASetting(1.0, 4.0, 2, 20, 10, 100, radius=100.0, solution_norm=0.5)
    assert d_zoa_iteration(wide, 7, 1e-3).epsilon < d_zoa_iteration(SETTING, 7, 1e-3).epsilon / 90
    for bound in (d_zoa_iteration(wide, 7, 1e-3), d_zoa_total(0.01, 1, 1e-3)):
        assert not bound.valid and "lower bound" in bound.why


def test_fdp_admm_covers_one_iteration():
    assert classical_mu(0.1, 100, 1e-6) == pytest.approx(0.189, abs=5e-4)  # PAPERS: μ = .189
    one, many = fdp_admm(0.1, 1, 1e-6, clipped=True), fdp_admm(0.1, 100, 1e-6, clipped=True)
    assert one.valid and not many.valid
    assert many.epsilon == one.epsilon == 0.1
    assert "0.78" in many.why and "\n" not in many.why  # PAPERS: ε = .78
    assert not fdp_admm(0.1, 1, 1e-6, clipped=False).valid


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: cdp_admm_corollary(0.0, 0.9, 5, 1e-3, clipped=True), "first_cost=.*: must be finite and above 0"),
        (lambda: cdp_admm_corollary(0.1, 1.0, 5, 1e-3, clipped=True), r"decay=1.0: must be in \(0, 1\)"),
        (lambda: cdp_admm_first_cost(1.0, 0.0, 0.9, 5), r"delta=0.0: must be in \(0, 1\)"),
        (lambda: sqrt_rounds(0.1, -1, 1e-3, clipped=True), "rounds=-1: must be a whole number from 1"),
        (lambda: fdp_admm(-0.1, 5, 1e-3, clipped=True), "iteration_epsilon=.*: must be finite and above"),
        (lambda: r_admm(1750, 8000, 0.25, 2.0, 1.0), "two scalars: one of them must have one value per round"),
        (lambda: r_admm(1750, 8000, 0.25, [2.0, math.nan], 1.0), "strong_convexity=.*: must be finite and above 0"),
        (lambda: d_zoa_iteration(SETTING, 0, 1e-3), "directions=0: must be a whole number from 1"),
        (lambda: d_zoa_total(0.1, 5, 2.0), r"delta=2.0: must be in \(0, 1\)"),
        (lambda: DZOASetting(1.0, 4.0, 2, 20, 10, 1, 0.1, solution_norm=5.0), "inner_rounds=1: must satisfy"),
        (lambda: DZOASetting(1.0, 4.0, 0, 20, 10, 100, 1.0), "degree=0: must be finite and above 0"),
    ],
)
def test_bad_input_is_one_clear_line(call, line):
    with pytest.raises(ValueError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)
