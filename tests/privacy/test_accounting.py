"""Totals against independent oracles: mpmath for closed forms, dp-accounting for distributions."""

import builtins
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, stats

from confide.privacy import (
    ZCDP,
    Event,
    Free,
    Gaussian,
    ObjectivePerturbation,
    PureDP,
    RandomizedResponse,
    Unbounded,
    delta,
    distinguish,
    epsilon,
    gaussian_equivalent,
    mu,
    reconstruct,
    totals,
    trade_off,
)


def exact_delta(m, e):
    """The closed form with 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(m), mpmath.mpf(e)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


# --- Gaussian --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1e-9, 1e-4, 0.01, 0.3, 0.999, 1.0, 3.0, 12.0, 70.0, 500.0])
@pytest.mark.parametrize("deviations", [-6.0, -1.0, 0.0, 0.5, 3.0, 10.0, 36.0])
def test_gaussian_delta_is_the_closed_form(m, deviations):
    e = max(0.0, m * m / 2 + m * deviations)  # ε this many deviations above the mean loss
    rounding = 1e-11 + 1e-14 * m * abs(deviations)  # ε/μ − μ/2 is only known to μ·1e-16
    assert delta([Gaussian(m, 1.0)], e) == pytest.approx(float(exact_delta(m, e)), rel=rounding, abs=0)


@pytest.mark.parametrize("m", [1e-6, 0.05, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("d", [1e-300, 1e-100, 1e-12, 1e-5, 0.01, 0.3])
def test_gaussian_epsilon_inverts_the_closed_form(m, d):
    e = epsilon([Gaussian(m, 1.0)], d)
    if e == 0:
        assert exact_delta(m, 0) <= d
    else:
        assert float(abs(mpmath.log(exact_delta(m, e)) - mpmath.log(d))) < 1e-9


@pytest.mark.parametrize(("m", "d"), [(0.1, 1e-6), (1.0, 1e-5), (4.0, 1e-3)])
def test_gaussian_epsilon_agrees_with_dp_accounting(m, d):
    oracle = gaussian_mechanism.get_epsilon_gaussian(1 / m, d)
    assert epsilon([Gaussian(1.0, 1 / m)], d) == pytest.approx(oracle)


def test_reference_value_of_the_functional_paper():
    assert epsilon([Gaussian(0.189, 1.0)], 1e-6) == pytest.approx(0.78, abs=0.01)  # PAPERS: ε = .78


def test_gaussians_compose_in_squares_per_agent():
    events = [Gaussian(3.0, [1.0, 2.0, 4.0]), Gaussian([4.0, 2.0, 0.0], 1.0), Free()]
    assert mu(events) == pytest.approx([5.0, 2.5, 0.75])
    alone = [epsilon([Gaussian(m, 1.0)], 1e-5) for m in (5.0, 2.5, 0.75)]
    assert epsilon(events, 1e-5) == pytest.approx(alone)
    assert isinstance(epsilon([Gaussian(3.0, 1.0)], 1e-5), float)


# --- slack -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "slack"), [(0.3, 1e-12), (1.0, 1e-25), (2.5, 1e-8), (1.0, 1e-3)])
@pytest.mark.parametrize("e", [0.0, 0.5, 2.0, 5.0])
def test_slack_adds_to_delta_and_epsilon_is_its_inverse(m, slack, e):
    """δ(ε) + (1 + e^ε)·slack by mpmath, least over all ε' ≤ ε."""
    event = Gaussian(m, 1.0, slack=slack)
    known = [float(exact_delta(m, x) + (1 + mpmath.exp(x)) * slack) for x in np.linspace(0, e, 501)]
    found = delta([event], e)
    assert found <= min(known) * (1 + 1e-9)
    assert found == pytest.approx(min(known), rel=1e-3)  # the best ε' lies between two of the points
    if found == pytest.approx(known[-1], rel=1e-9) and known[-1] < known[0]:
        assert epsilon([event], found) == pytest.approx(e, rel=1e-6)
        assert epsilon([event], found * (1 + 1e-9)) <= e


def test_a_slack_above_delta_leaves_nothing_to_say():
    """A sampler that is cut off is no zCDP release either: its slack counts there, too."""
    event = Gaussian(1.0, 1.0, slack=1e-4)
    for more in ([], [ZCDP(0.2)], [PureDP(0.1)]):
        assert epsilon([event, *more], 1e-5) == math.inf
    assert delta([event], 300.0) > 1e-4 and delta([event, ZCDP(0.2)], 1.0) > 3e-4 < delta([event, PureDP(0.1)], 1.0)
    assert delta([Gaussian(0.0, 1.0, slack=1e-4)], 1.0) == pytest.approx(2e-4)
    assert epsilon([Gaussian(1.0, 1.0, slack=3.0)], 1e-5) == math.inf
    small = Gaussian(1.0, 1.0, slack=1e-9)
    bare = delta([ZCDP(0.7)], 2.0)
    assert delta([small, ZCDP(0.2)], 2.0) == pytest.approx(bare + (1 + math.exp(2.0)) * 1e-9, rel=1e-12)


def test_slack_with_pure_epsilon_counts_in_delta():
    gaussian, pure = Gaussian(0.5, 1.0, slack=1e-9), [PureDP(0.3)] * 3
    for e in (0.5, 1.5):
        bare = delta([Gaussian(0.5, 1.0), *pure], e)
        assert delta([gaussian, *pure], e) == pytest.approx(bare + (1 + math.exp(e)) * 1e-9, rel=1e-12)
    e = epsilon([gaussian, *pure], 1e-6)
    assert e == pytest.approx(epsilon([Gaussian(0.5, 1.0), *pure], 1e-6 - (1 + math.exp(e)) * 1e-9), rel=1e-9)


def test_slack_moves_the_trade_off_by_its_size_both_ways():
    a, event = np.array([0.0, 0.05, 0.4, 1.0]), Gaussian(1.3, 1.0, slack=[0.0, 0.01])
    bare = [Gaussian(1.3, 1.0)]
    assert trade_off([event], a)[:, 0] == pytest.approx(trade_off(bare, a))
    shifted = trade_off(bare, np.minimum(a + 0.01, 1)) - 0.01
    assert trade_off([event], a)[:, 1] == pytest.approx(np.maximum(shifted, 0))
    assert distinguish([event]) == pytest.approx(distinguish(bare) + np.array([0.0, 0.01]))
    assert reconstruct([event], 0.1) == pytest.approx(1 - trade_off([event], 0.1))
    assert distinguish([Gaussian(1.3, 1.0, slack=1.0)]) <= 1


# --- zCDP ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 5.0, 200.0])
@pytest.mark.parametrize("d", [1e-200, 1e-9, 1e-3, 0.2])
def test_zcdp_conversion_is_the_best_order(rho, d):
    """Oracle: the conversion of Canonne, Kamath and Steinke (Proposition 12) minimised over a dense grid."""
    a = 1 + np.geomspace(1e-8, 1e8, 400_001)
    bounds = rho * a + np.log1p(-1 / a) - (math.log(d) + np.log(a)) / (a - 1)
    e, oracle = epsilon([ZCDP(rho)], d), max(0.0, bounds.min())
    assert e == pytest.approx(oracle, rel=1e-6, abs=1e-9)
    assert e <= oracle * (1 + 1e-12)
    if e > 0:
        assert delta([ZCDP(rho)], e) == pytest.approx(d, rel=1e-8)


@pytest.mark.parametrize("m", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("d", [1e-10, 1e-3])
def test_zcdp_lies_between_the_exact_gaussian_and_the_simple_bound(m, d):
    rho = m * m / 2
    simple = rho + 2 * math.sqrt(rho * math.log(1 / d))  # Bun and Steinke, Proposition 1.3
    assert epsilon([Gaussian(m, 1.0)], d) < epsilon([ZCDP(rho)], d) < simple


def test_zcdp_composes_with_gaussians_in_rho():
    assert epsilon([ZCDP(0.3), Gaussian(2.0, 1.0)], 1e-6) == pytest.approx(epsilon([ZCDP(2.3)], 1e-6))
    mixed = epsilon([ZCDP([0.0, 0.3]), Gaussian(2.0, 1.0)], 1e-6)
    assert mixed == pytest.approx([epsilon([Gaussian(2.0, 1.0)], 1e-6), epsilon([ZCDP(2.3)], 1e-6)])


# --- pure ε ----------------------------------------------------------------------------------------------


def optimal_composition(e, n, target):
    """δ of n ε-DP releases at `target`: Kairouz, Oh and Viswanath, Theorem 3.3, summed over outcomes."""
    with mpmath.workdps(60):
        e, q = mpmath.mpf(e), mpmath.exp(e) / (1 + mpmath.exp(e))
        chance = [mpmath.binomial(n, k) * q ** (n - k) * (1 - q) ** k for k in range(n + 1)]
        gaps = [p - mpmath.exp(target) * r for p, r in zip(chance, chance[::-1], strict=True)]
        return float(mpmath.fsum(gap for gap in gaps if gap > 0))


@pytest.mark.parametrize(("e", "n"), [(0.1, 1), (0.1, 100), (0.46, 25), (2.0, 7), (0.01, 400)])
@pytest.mark.parametrize("d", [1e-9, 1e-5, 0.05])
def test_equal_pure_releases_compose_optimally(e, n, d):
    total = epsilon([PureDP(e)] * n, d)
    assert total <= n * e
    assert optimal_composition(e, n, total) == pytest.approx(d, rel=1e-4) or total == 0
    assert delta([PureDP(e)] * n, total) == pytest.approx(optimal_composition(e, n, total), rel=1e-4)


def test_unequal_pure_releases():
    """Oracle: all 2^n outcomes of n independent randomised responses."""
    es = [0.1, 0.25, 0.3, 0.55, 0.7, 0.71, 0.9, 1.3]
    signs = np.array(np.meshgrid(*[[1, -1]] * len(es))).reshape(len(es), -1)
    loss = np.array(es) @ signs
    p = np.prod(np.where(signs > 0, *[[[1 / (1 + math.exp(-s * e))] for e in es] for s in (1, -1)]), axis=0)
    target = 2.0
    exact = float(np.sum(p * np.maximum(0, 1 - np.exp(target - loss))))
    found = delta([PureDP(e) for e in es], target)
    assert exact * (1 - 1e-9) <= found <= exact * 1.01
    assert target - 1e-9 <= epsilon([PureDP(e) for e in es], exact) <= target + 0.01


def test_pure_kinds_cost_their_epsilon():
    pure = [PureDP(0.7), ObjectivePerturbation(2.0, 0.25, 0.5)]
    assert epsilon(pure, 0.0) == pytest.approx(0.7 + 0.5 + math.log(1.5))
    assert epsilon([RandomizedResponse(0.7, 4)] * 3, 0.0) == pytest.approx(2.1)
    assert delta(pure, 0.7 + 0.5 + math.log(1.5) + 1e-12) == 0
    assert epsilon([PureDP(900.0)] * 2, 1e-6) == pytest.approx(1800.0, rel=1e-6)  # e^900 is not a double


# --- mixtures --------------------------------------------------------------------------------------------


def mixture_delta(m, e, n, target):
    """Gaussian μ = m with n ε-DP releases: the Gaussian δ averaged over the n-fold randomised response."""
    chance = stats.binom.pmf(range(n + 1), n, 1 / (1 + math.exp(-e)))
    return sum(p * float(exact_delta(m, target - (2 * k - n) * e)) for k, p in enumerate(chance))


@pytest.mark.parametrize(("m", "e", "n"), [(1.0, 0.1, 10), (0.3, 1.0, 2), (3.0, 0.2, 5), (0.05, 0.5, 1)])
def test_gaussian_with_pure(m, e, n):
    events = [Gaussian(m, 1.0)] + [PureDP(e)] * n
    for d in (1e-7, 1e-3):
        total = epsilon(events, d)
        exact = mixture_delta(m, e, n, total)
        assert exact <= d * (1 + 1e-6)  # never below the truth
        assert exact >= d * 0.99  # and close to it
        assert delta(events, total) == pytest.approx(d, rel=1e-3)


def test_mixture_agrees_with_a_distribution_built_by_hand():
    by_hand = pld.from_gaussian_mechanism(0.5).compose(pld.from_laplace_mechanism(1 / 0.3))
    total = epsilon([Gaussian(2.0, 1.0), PureDP(0.3)], 1e-5)
    assert by_hand.get_epsilon_for_delta(1e-5) <= total  # Laplace is one 0.3-DP release among others
    assert total <= epsilon([Gaussian(2.0, 1.0)], 1e-5) + 0.3


def test_mixture_per_agent_and_extremes():
    events = [Gaussian([0.0, 1.0, 1.0, np.inf], 1.0), PureDP([0.2, 0.0, 0.2, 0.2])]
    total = epsilon(events, 1e-5)
    assert total[0] == pytest.approx(epsilon([PureDP(0.2)], 1e-5))
    assert total[1] == pytest.approx(epsilon([Gaussian(1.0, 1.0)], 1e-5))
    assert total[2] == pytest.approx(epsilon([Gaussian(1.0, 1.0), PureDP(0.2)], 1e-5))
    assert total[3] == math.inf
    tiny = [Gaussian(1.0, 1.0), PureDP(1e-9)]
    assert epsilon(tiny, 1e-5) == pytest.approx(epsilon([Gaussian(1.0, 1.0)], 1e-5), rel=1e-4)
    huge = [Gaussian(1.0, 1.0), PureDP(900.0)]  # beyond the library's range closed forms still hold
    assert 900 < epsilon(huge, 1e-5) <= epsilon([Gaussian(1.0, 1.0)], 1e-5) + 900 + 1e-9
    assert epsilon(tiny, 1e-30) <= epsilon([Gaussian(1.0, 1.0)], 1e-30) + 1e-8


def test_without_dp_accounting(monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return original(name, *rest)

    best = epsilon([PureDP(0.1)] * 50, 1e-5)
    monkeypatch.setattr(builtins, "__import__", without)
    assert best < epsilon([PureDP(0.1)] * 50, 1e-5) < 5.0  # valid, only looser
    with pytest.raises(ImportError, match=r"^mixing .* needs dp-accounting: pip install confide\[accounti"):
        epsilon([Gaussian(1.0, 1.0), PureDP(0.1)], 1e-5)


# --- what does not add up --------------------------------------------------------------------------------


def test_kinds_do_not_add():
    events = [Gaussian(1.0, 1.0), RandomizedResponse(0.5, 2), Gaussian(1.0, 2.0), Free(unit="label")]
    with pytest.raises(ValueError, match=r"label/replace/network and row/replace/network: events of different kind"):
        epsilon(events, 1e-5)
    assert totals(events, 1e-5) == {
        ("row", "replace", "network"): epsilon([events[0], events[2]], 1e-5),
        ("label", "replace", "network"): epsilon([events[1]], 1e-5),
    }
    assert totals([Free()], 1e-5) == {}


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: epsilon([ZCDP(0.1), PureDP(0.1)], 1e-5), "zCDP and pure-ε events cannot be mixed"),
        (lambda: mu([PureDP(0.1)]), "mu is defined for Gaussian events only"),
        (
            lambda: epsilon([PureDP([1.0] * 2), PureDP([1.0] * 3)], 1e-5),
            r"events of \[2, 3\] agents: must describe equally many",
        ),
        (lambda: trade_off([Gaussian(1.0, 1.0), PureDP(0.1)], 0.5), "trade-off curve is for"),
        (lambda: trade_off([Gaussian(1.0, 1.0)], 1.5), r"alpha=1.5: must be in \[0, 1\]"),
        (lambda: distinguish([], 0.0), r"prior=0.0: must be in \(0, 1\)"),
        (lambda: reconstruct([], 1.0), r"prior=1.0: must be in \(0, 1\)"),
        *[(lambda d=d: epsilon([], d), r"delta=.*: must be in \[0, 1\)") for d in (-0.1, 1.0, math.nan)],
        *[(lambda e=e: delta([], e), "epsilon=.*: must be finite and at") for e in (-1.0, math.inf, math.nan)],
    ],
)
def test_clear_lines(call, line):
    with pytest.raises(ValueError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_unknown_event_is_an_error():
    class Laplace(Event):
        pass

    for events in ([Laplace()], [Gaussian(1.0, 1.0), Laplace()], ["Gaussian"]):
        for ask in (lambda e: epsilon(e, 1e-5), lambda e: delta(e, 1.0), mu, lambda e: totals(e, 1e-5)):
            with pytest.raises(TypeError, match=r"^unknown event (Laplace|str): the accountant knows Gauss"):
                ask(events)


# --- trade-off and what a number means -------------------------------------------------------------------


def test_gaussian_equivalent_against_mpmath():
    for e in (1e-12, 1e-3, 0.7, 1.0, 5.0, 40.0, 600.0):
        with mpmath.workdps(600):
            m = mpmath.mpf(gaussian_equivalent(e))
            assert mpmath.ncdf(-m / 2) * (1 + mpmath.exp(e)) == pytest.approx(1, abs=1e-9)
    assert np.all(np.diff(gaussian_equivalent(np.linspace(0, 5, 1001))) > 0)
    assert gaussian_equivalent(0.0) == 0


@pytest.mark.parametrize("e", [0.1, 1.0, 4.0])
def test_pure_epsilon_is_above_its_gaussian_equivalent(e):
    a = np.linspace(0, 1, 1001)
    assert np.all(trade_off([PureDP(e)], a) >= trade_off([Gaussian(gaussian_equivalent(e), 1.0)], a) - 1e-12)


def test_trade_off_of_the_gaussian_is_the_neyman_pearson_test():
    m, a = 1.7, np.array([0.01, 0.3, 0.9])
    threshold = stats.norm.isf(a)  # reject "no record" above this
    assert trade_off([Gaussian(m, 1.0)], a) == pytest.approx(stats.norm.cdf(threshold - m))
    assert trade_off([Gaussian([0.0, m], 1.0)], a).shape == (3, 2)
    assert trade_off([], 0.25) == pytest.approx(0.75)
    assert trade_off([Unbounded()], [0.0, 0.5]).tolist() == [0.0, 0.0]


def test_trade_off_of_pure_epsilon_is_that_of_randomised_response():
    q = float(Fraction(3, 4))  # truth with odds 3 : 1
    assert trade_off([PureDP(math.log(3))], [0, 1 - q, 0.5, 1]) == pytest.approx([1, 1 - q, 0.5 / 3, 0])
    assert trade_off([PureDP([0.0, 1e4])], 0.5) == pytest.approx([0.5, 0.0])


@pytest.mark.parametrize("m", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("prior", [0.02, 0.5, 0.7])
def test_distinguish_is_the_success_of_bayes_rule(m, prior):
    def right(x):
        return max(prior * stats.norm.pdf(x, m), (1 - prior) * stats.norm.pdf(x))

    split = m / 2 + math.log((1 - prior) / prior) / m
    oracle = integrate.quad(right, -12, 16, points=[split], limit=200)[0]
    assert distinguish([Gaussian(m, 1.0)], prior) == pytest.approx(oracle, abs=1e-9)
    assert distinguish(m, prior) == distinguish([Gaussian(m, 1.0)], prior)


def test_distinguish_at_even_odds():
    assert distinguish(1.4) == pytest.approx(stats.norm.cdf(0.7))
    assert distinguish(np.array([0.0, 1.4])) == pytest.approx([0.5, stats.norm.cdf(0.7)])
    assert distinguish([PureDP(math.log(3))]) == pytest.approx(0.75)
    assert distinguish([PureDP(math.log(3))], 0.9) == pytest.approx(0.9)  # the prior is the better guide
    assert distinguish([Unbounded()]) == 1


def test_reconstruct_bounds_naming_one_of_many_candidates():
    """Candidates at mutual distance μ (a simplex) in one Gaussian release; the best guess is the nearest."""
    m, n = 1.5, 8
    centres = np.eye(n) * m / math.sqrt(2)
    noise = np.random.default_rng(0).standard_normal((20_000, n))
    named = np.mean(np.argmax((centres[0] + noise) @ centres.T, axis=1) == 0)
    bound = reconstruct(m, 1 / n)
    assert bound == pytest.approx(stats.norm.cdf(stats.norm.ppf(1 / n) + m))
    assert 1 / n < named < bound
    assert reconstruct([PureDP(math.log(2))], 0.1) == pytest.approx(0.2)  # at most e^ε times a blind guess
    assert distinguish(m) < reconstruct(m, 0.5)
