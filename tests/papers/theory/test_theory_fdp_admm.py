"""FDP-ADMM's calculators, against mpmath, brute force and direct simulation of the sensitivity."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from statsmodels.regression.quantile_regression import QuantReg

from confide.papers.theory import fdp_admm as theory

PAPER = theory.Constants(
    gradient_bound=1.07, penalty_slope=math.sqrt(50), solution_norm=1.19, width=50, rows=2000, workers=50,
    coupling=0.1, penalty_strength=0.05, dual_bound=1.0, epsilon=0.1, delta=1e-6,
)  # fmt: skip


def test_step_and_bound_against_mpmath():
    c1, c2, cw, K, m, M = mp.mpf("1.07"), mp.sqrt(50), mp.mpf("1.19"), 50, 2000, 50
    rho, lam, g, eps, delta = mp.mpf("0.1"), mp.mpf("0.05"), 1, mp.mpf("0.1"), mp.mpf("1e-6")
    inner = (c1 + lam * c2 / M) ** 2 + 8 * K * c1**2 * mp.log(1.25 / delta) / (m**2 * eps**2)
    assert theory.step(PAPER, 7) == pytest.approx(float(cw / mp.sqrt(14) / mp.sqrt(inner)), rel=1e-12)
    L, doubled = 100, 2 * (c1 + lam * c2 / M) ** 2 + 16 * K * c1**2 * mp.log(1.25 / delta) / (m**2 * eps**2)
    expected = M * cw / mp.sqrt(L) * mp.sqrt(doubled) + M * (rho * cw**2 + g**2 / rho) / (2 * L)
    assert theory.bound(PAPER, L) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("target", [1.0, 17.3, 400.0, 1e6])
def test_rounds_for_is_the_least_number(target):
    least = theory.rounds_for(PAPER, target)
    assert theory.bound(PAPER, least) <= target
    assert least == 1 or theory.bound(PAPER, least - 1) > target


def test_more_privacy_means_a_looser_bound_and_smaller_steps():
    free = replace(PAPER, epsilon=math.inf)
    assert theory.bound(free, 100) < theory.bound(PAPER, 100)
    assert theory.step(free, 1) > theory.step(PAPER, 1)
    assert free.energy == pytest.approx((1.07 + 0.05 * math.sqrt(50) / 50) ** 2)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_sensitivity_is_attained_for_the_check_loss(level):
    """The gradient of a row x is (1{y ≤ xᵀw} - τ)·x; the worst pair of rows of norm c1 is found by search."""
    c1, rows, coupling, step = 1.5, 40, 0.1, 5.0
    gradients = [(s - level) * x for s in (0.0, 1.0) for x in (c1, -c1)]
    worst = max(abs(a - b) for a in gradients for b in gradients) / rows / (coupling + 1 / step)
    assert theory.sensitivity(c1, rows, coupling, step, level) == pytest.approx(worst)
    assert theory.sensitivity(c1, rows, coupling, step) >= worst


def test_noise_and_total_against_mpmath():
    assert theory.noise(2.0, 0.1, 1e-6) == pytest.approx(float(2 * mp.sqrt(2 * mp.log(1.25e6)) / mp.mpf("0.1")))
    total = theory.total(0.1, 1e-6, 100)
    mu = mp.sqrt(100) * mp.mpf("0.1") / mp.sqrt(2 * mp.log(mp.mpf("1.25e6")))
    assert total.mu == pytest.approx(float(mu), rel=1e-12) and total.mu == pytest.approx(0.189, abs=5e-4)

    def delta(e):
        return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)

    root = mp.findroot(lambda e: mp.log(delta(e)) - mp.log(mp.mpf("1e-6")), (0.5, 1.0), solver="anderson")
    assert total.epsilon == pytest.approx(float(root), rel=1e-6)
    assert total.epsilon > total.claimed == 0.1  # Theorem 1 is about one iteration


def test_iteration_for_is_the_inverse():
    one = theory.iteration_for(0.78, 1e-6, 100)
    assert theory.total(one, 1e-6, 100).epsilon == pytest.approx(0.78, rel=1e-6)


def test_conditions_that_are_not_met():
    with pytest.raises(ValueError, match="needs at most 1 per iteration"):
        theory.noise(1.0, 1.5, 1e-5)
    with pytest.raises(ValueError, match="delta=0"):
        replace(PAPER, delta=0.0)
    with pytest.raises(ValueError, match="rows=0"):
        replace(PAPER, rows=0)
    with pytest.raises(ValueError, match="iteration=0"):
        theory.step(PAPER, 0)
    with pytest.raises(ValueError, match="gradient_bound"):
        theory.sensitivity(-1.0, 10, 0.1, 1.0)


@pytest.mark.slow
def test_theorem_2_holds_where_it_applies():
    """Rows of norm at most c1, the theorem's own step and noise, L2 penalty off: the mean gap stays below the bound."""
    rng = np.random.default_rng(0)
    M, m, K, L, c1, eps, delta, rho, runs = 4, 50, 3, 60, 1.0, 0.5, 1e-3, 0.5, 40
    A = rng.normal(size=(M, m, K))
    A /= np.maximum(1, np.linalg.norm(A, axis=2, keepdims=True))
    y = A @ np.array([0.8, -0.5, 0.3]) + 0.1 * rng.standard_t(3, (M, m))
    loss = lambda w: np.abs(y - np.einsum("imk,ik->im", A, w)).mean(1) / 2  # noqa: E731  (level ½)
    best = QuantReg(y.ravel(), A.reshape(-1, K)).fit(q=0.5).params
    norm = float(np.linalg.norm(best))
    setting = theory.Constants(c1, 0.0, norm, K, m, M, rho, 0.0, 0.0, eps, delta)
    gaps = []
    for _ in range(runs):
        own, dual, w, total = np.zeros((M, K)), np.zeros((M, K)), np.zeros(K), np.zeros((M, K))
        for l in range(1, L + 1):
            total += own
            eta = theory.step(setting, l)
            sign = (np.einsum("imk,ik->im", A, own) >= y) - 0.5
            g = np.einsum("im,imk->ik", sign, A) / m
            sigma = theory.noise(theory.sensitivity(c1, m, rho, eta), eps, delta)
            own = (own / eta + dual + rho * w - g) / (rho + 1 / eta) + sigma * rng.normal(size=(M, K))
            w = (own - dual / rho).mean(0)
            dual = dual - rho * (own - w)
        gaps.append((loss(total / L) - loss(np.tile(best, (M, 1)))).sum())
    assert 0 < np.mean(gaps) <= theory.bound(setting, L)


def test_lemma_3_holds_with_equality_of_terms_for_one_worker_by_hand():
    """One worker, one coefficient, numbers by hand: f(w) = |w|, η = ½, ρ = 1, from w̃ = 2, γ = 0, w = 1, without noise.

    h = 3, w̃' = (2/½ + 0 + 1 - 1)/3 = 4/3, w' = 4/3 - 0 = 4/3, γ' = 0; at the point 0: left 2, right ¼ - ½(16/9) + ½ +
    (4 - 16/9).
    """
    from types import SimpleNamespace

    before = SimpleNamespace(primal=np.array([[[2.0]]]), dual=np.zeros((1, 1, 1)), average=np.array([[[1.0]]]))
    after = SimpleNamespace(primal=np.array([[[4 / 3]]]), dual=np.zeros((1, 1, 1)), average=np.array([[[4 / 3]]]))
    slope, gap = np.ones((1, 1, 1)), np.array([[2.0]])
    left, right = theory.lemma3(before, after, slope, gap, np.zeros((1, 1, 1)), 0.5, 1.0)
    assert left == pytest.approx(2.0)
    assert right == pytest.approx(0.25 - 8 / 9 + 0.5 + 4 - 16 / 9)
