"""Bounds against closed forms and against repeated experiments with a known answer."""

import numpy as np
import pytest
from mpmath import exp, findroot, mp, ncdf
from scipy.stats import beta, binom, norm

from confide.audit import bounds


def test_clopper_pearson_is_scipys_beta_quantile():
    counts = np.arange(0, 50)
    assert np.allclose(bounds.upper(counts, 50, 0.05), beta.ppf(0.95, counts + 1, 50 - counts), rtol=1e-10)
    assert bounds.upper(50, 50, 0.05) == 1.0


@pytest.mark.parametrize("rate", [0.002, 0.1, 0.5, 0.97])
def test_clopper_pearson_fails_at_most_as_often_as_it_says(rate):
    counts = np.arange(0, 201)
    wrong = bounds.upper(counts, 200, 0.05) < rate
    assert binom.pmf(counts, 200, rate)[wrong].sum() <= 0.05  # exact, no simulation


@pytest.mark.parametrize("mu", [0.05, 0.27, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-3])
def test_gaussian_epsilon_inverts_delta(mu, delta):
    with mp.workdps(40):
        e = findroot(lambda x: ncdf(mu / 2 - x / mu) - exp(x) * ncdf(-mu / 2 - x / mu) - delta,
                     bounds.gaussian_epsilon(mu, delta))  # fmt: skip
    assert bounds.gaussian_epsilon(mu, delta) == pytest.approx(float(e), rel=1e-6)


def test_nothing_seen_proves_nothing():
    for prove in (bounds.mu_from_rates, bounds.mu_from_accuracy):
        assert prove(500, 500, 1000, 0.05) == 0.0 and prove(1000, 0, 1000, 0.05) == 0.0
        assert prove(0, 0, 1000, 0.05) > 5
    for prove in (bounds.epsilon_from_rates, bounds.epsilon_from_accuracy):
        assert prove(500, 500, 1000, 0.05, 1e-5) == 0.0 and prove(1000, 1000, 1000, 0.05, 1e-5) == 0.0
        assert prove(0, 0, 1000, 0.05, 1e-5) > 5
    assert bounds.gaussian_epsilon(0.0, 1e-5) == 0.0 and bounds.gaussian_epsilon(1e-6, 0.01) == 0.0


@pytest.mark.parametrize("cut", [-0.5, 0.5, 2.0])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_a_bound_on_a_gaussian_exceeds_the_truth_in_at_most_5_percent_of_audits(mu, cut):
    """One threshold fixed in advance, on N(0, 1) against N(μ, 1): the truth is known in closed form."""
    n, audits, delta = 400, 20_000, 1e-5
    rng = np.random.default_rng(1)
    false_alarms, misses = rng.binomial(n, norm.sf(cut), audits), rng.binomial(n, norm.cdf(cut - mu), audits)
    allowed = binom.ppf(0.999, audits, 0.05)
    for prove in (bounds.mu_from_rates, bounds.mu_from_accuracy):
        assert np.sum(prove(false_alarms, misses, n, 0.05) > mu) <= allowed
    truth = bounds.gaussian_epsilon(mu, delta)
    for prove in (bounds.epsilon_from_rates, bounds.epsilon_from_accuracy):
        assert np.sum(prove(false_alarms, misses, n, 0.05, delta) > truth) <= allowed


def test_accuracy_holds_its_level_where_it_is_tight():
    """Randomised response attains 1 - w = e^ε·w: half the audits would fail at level ½, 5 % may at 0.05."""
    e, n, audits = 1.0, 500, 20_000
    rng = np.random.default_rng(2)
    errors = rng.binomial(n, 1 / (1 + np.exp(e)), (2, audits))
    failed = np.sum(bounds.epsilon_from_accuracy(errors[0], errors[1], n, 0.05, 0.0) > e)
    assert 0.02 * audits < failed <= binom.ppf(0.999, audits, 0.05)
