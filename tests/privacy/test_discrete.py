"""Discrete Gaussian noise as the Gaussian that it is: distances by mpmath, whole releases by enumeration."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy import stats

from confide.privacy import Gaussian, delta, distinguish, reconstruct, trade_off
from confide.privacy.discrete import SMALLEST, total_variation


def distance(s, variance):
    """½Σ|P(n) - R(n)|, with 40 digits, over ±14 deviations (beyond them both have less than 1e-43)."""
    with mpmath.workdps(40):
        s, root, half = mpmath.mpf(s), mpmath.sqrt(2 * variance), mpmath.mpf(1) / 2
        weights = [mpmath.exp(-n * n / (2 * s * s)) for n in range(int(14 * s) + 3)]
        whole = 2 * mpmath.fsum(weights) - 1
        tails = [mpmath.erfc((n - half) / root) / 2 for n in range(1, len(weights) + 1)]
        rounded = [1 - 2 * tails[0], *(a - b for a, b in itertools.pairwise(tails))]
        gaps = [abs(p / whole - r) for p, r in zip(weights, rounded, strict=True)]
        return mpmath.fsum(gaps) - gaps[0] / 2


@pytest.mark.parametrize("s", [2, 5, 31.7, 100, 1000])
def test_the_constants_of_the_proof(s):
    """2.8006/5760 = 4.862e-4 against variance s² - 1/12, and 4φ(1)/48 = 0.020164 against s² itself."""
    with mpmath.workdps(40):
        square = mpmath.mpf(s) ** 2
        fine = distance(s, square - mpmath.mpf(1) / 12) * square**2
        plain = distance(s, square) * square
    assert float(fine) == pytest.approx(4.8622e-4, rel=0.3 / s**2 + 1e-5)
    assert float(plain) == pytest.approx(4 * stats.norm.pdf(1) / 48, rel=0.3 / s**2 + 1e-5)
    if s >= SMALLEST:
        assert float(fine) <= float(total_variation(s)) * s**4 and float(plain) <= 0.0202


def test_the_sum_of_the_proofs_terms_from_the_smallest_deviation_on():
    """Every term falls with s but the first, so that the smallest s is the worst; θ is below e^(-2π²s²)·3."""
    from scipy import integrate
    from scipy.special import eval_hermitenorm, factorial

    def size(k):
        return integrate.quad(lambda x: abs(eval_hermitenorm(k, x)) * stats.norm.pdf(x), -40, 40, limit=500)[0]

    assert size(4) == pytest.approx(2.80060, abs=1e-5)
    assert all(size(k) <= factorial(k) ** 0.5 for k in range(1, 8))
    v = SMALLEST**2 - 1 / 12
    first = (size(4) + 120**0.5 / v**0.5) / (2880 * v**2)
    rest = (1 / 322560 + 1 / 82944) * (720**0.5 + 5040**0.5 / v**0.5) / v**3
    assert (first + rest) / 2 < total_variation(SMALLEST) == 4.9e-4 / SMALLEST**4


def test_a_coarse_grid_is_refused():
    with pytest.raises(ValueError, match="must be at least 1000, take a finer grid"):
        total_variation(999.9)


def pair(s, moved, releases):
    """Loss and probabilities of `releases` sums of discrete Gaussians, `moved` whole steps apart."""
    n = np.arange(-60, 61)
    p = np.exp(-n * n / (2 * s * s))
    p, q = p / p.sum(), np.exp(-((n - moved) ** 2) / (2 * s * s)) / p.sum()
    chance, loss = np.ones(1), np.zeros(1)
    for _ in range(releases):
        chance, loss = np.outer(chance, p).ravel(), np.add.outer(loss, np.log(p / q)).ravel()
        keep = chance > 1e-13
        chance, loss = chance[keep], loss[keep]
    return chance, loss


@pytest.mark.parametrize(("s", "moved", "releases"), [(2.0, 1, 1), (2.0, 3, 1), (3.0, 2, 2), (2.5, 1, 3)])
def test_a_coarse_discrete_gaussian_stays_below_its_charge(s, moved, releases):
    """The mechanism itself, enumerated, where the slack is large enough to matter."""
    slack = float(distance(s, mpmath.mpf(s) ** 2 - mpmath.mpf(1) / 12))
    events = [Gaussian(moved, (s * s - 1 / 12) ** 0.5, slack=slack)] * releases
    chance, loss = pair(s, moved, releases)
    bare = [Gaussian(moved, (s * s - 1 / 12) ** 0.5)] * releases
    for eps in (0.0, 0.3, 1.0, 2.0):
        true = float(np.sum(chance * np.maximum(0, 1 - np.exp(eps - loss))))
        assert true <= delta(events, eps)
        assert delta(events, eps) <= delta(bare, eps) + (1 + np.exp(eps)) * releases * slack + 1e-15
    assert np.sum(chance * np.maximum(0, 1 - np.exp(-loss))) / 2 + 0.5 <= distinguish(events)
    order = np.argsort(-loss)  # the best test of Q against P rejects P where the loss is small
    level = np.cumsum(chance[order[::-1]])
    missed = 1 - np.cumsum((chance * np.exp(-loss))[order[::-1]])
    for alpha in (0.01, 0.1, 0.5):
        i = int(np.searchsorted(level, alpha, side="right")) - 1
        if i >= 0:
            assert missed[i] >= trade_off(events, float(level[i])) - 1e-12
            assert 1 - missed[i] <= reconstruct(events, float(level[i])) + 1e-12
