"""Slack: secure noise is a Gaussian up to a total variation, which a budget keeps room for inside its δ."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.node.ending import end_run
from confide.privacy import ZCDP, Gaussian, mu_for
from confide.privacy.budget import HEADROOM, Balance, Bill, Cost, headroom, limit
from confide.privacy.ledger import ROW, BudgetExceeded, Ledger

mp = mpmath.mp.clone()
mp.dps = 60
DELTA = 1e-6


def secure(mu: float, slack: float) -> Gaussian:
    """A Gaussian event with slack."""
    event = Gaussian(mu, 1.0)
    object.__setattr__(event, "slack", slack)
    return event


def delta_of(epsilon: float, square: float, slack: float) -> Any:
    """δ at ε, written afresh: the exact Gaussian curve and (1 + e^ε)·slack."""
    e, mu = mp.mpf(epsilon), mp.sqrt(mp.mpf(square))
    lost = (1 + mp.exp(e)) * mp.mpf(slack)
    return lost if mu == 0 else mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu) + lost


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as book:
        book.open_population("p", 1.0, DELTA)
        yield book


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
@pytest.mark.parametrize("share", [1e-14, 1e-6, 0.5, 1 - 1e-9])
def test_the_limit_leaves_room_for_slack_and_no_more(epsilon: float, delta: float, share: float) -> None:
    slack = share * delta / (1 + math.exp(epsilon))
    most = limit(epsilon, delta, "gaussian", slack)
    lost = delta_of(epsilon, most * (1 + 1e-12), slack)
    assert lost <= delta and lost > delta * (1 - 1e-8)
    assert most <= limit(epsilon, delta) and limit(epsilon, delta, "pure", slack) == epsilon


def test_slack_that_takes_all_of_delta_leaves_nothing() -> None:
    for epsilon in (1.0, 30.0, 800.0):
        assert limit(epsilon, DELTA, "gaussian", 1.1 * DELTA / (1 + math.exp(min(epsilon, 700)))) == 0.0
    assert limit(800.0, DELTA, "gaussian", 0.0) > 0


@given(st.floats(1e-6, 9.0), st.floats(1e-30, 1e-7), st.sampled_from([1e-9, 1e-6, 1e-2]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_epsilon_with_slack_is_the_least_that_holds(square: float, slack: float, delta: float) -> None:
    spent = Balance("p", ROW, 1.0, delta, "gaussian", square, spent_slack=slack).spent_epsilon
    if math.isfinite(spent):
        assert delta_of(spent * (1 + 1e-9) + 1e-15, square, slack) <= delta * (1 + 1e-9)
        if spent > 0:
            assert delta_of(spent * (1 - 1e-6), square, slack) > delta * (1 - 1e-9)
    else:  # nowhere on the curve
        assert all(delta_of(e, square, slack) > delta * (1 - 1e-9) for e in (0.0, *(2.0**k for k in range(-10, 6))))


def test_distinguishing_gains_the_slack_at_most() -> None:
    exact = Balance("p", ROW, 1.0, DELTA, "gaussian", 0.25)
    for prior in (0.5, 0.9):
        loose = Balance("p", ROW, 1.0, DELTA, "gaussian", 0.25, spent_slack=1e-3)
        assert loose.distinguish(prior) == pytest.approx(exact.distinguish(prior) + 1e-3, rel=1e-12)
    assert Balance("p", ROW, 1.0, DELTA, "gaussian", 400.0, spent_slack=0.5).distinguish() == 1.0


def test_bills_add_slack_and_never_below_the_sum() -> None:
    slacks = [1e-20, 3e-26, 0.1, 0.0]
    cost = Bill.of([secure(0.1, s) for s in slacks]).costs[ROW]
    exact = sum((mp.mpf(s) for s in slacks), mp.mpf(0))
    assert exact < cost.slack <= exact * (1 + 1e-13) and cost.pure == math.inf
    assert Bill.of([Gaussian(0.1, 1.0)]).costs[ROW].slack == 0.0
    assert Cost.sum([]) == (0, 0, 0)


@pytest.mark.parametrize("share", [1e-13, 1e-3, 0.5])
def test_a_run_calibrated_beside_its_slack_fits_exactly(ledger: Ledger, share: float) -> None:
    rounds = 20
    slack = share * DELTA / (1 + math.e)
    mu = float(mu_for(1.0, DELTA - (1 + math.e) * slack)) / math.sqrt(rounds)
    events = [[secure(mu, slack / rounds)]] * rounds
    ledger.reserve("p", "r", events)
    for t, now in enumerate(events, start=1):
        assert ledger.charge("p", "r", t, now) == "charged"
    balance = ledger.balance("p")
    assert balance.spent_slack == pytest.approx(slack, rel=1e-12) and balance.spent_slack <= balance.slack
    assert ledger.spent("p") == pytest.approx(1.0, rel=1e-8)
    assert delta_of(1.0, balance.spent, balance.spent_slack) <= DELTA
    with pytest.raises(BudgetExceeded):
        ledger.charge("p", "r", rounds + 1, [secure(1e-3, 0.0)])


def test_a_budget_fixes_its_slack_once(ledger: Ledger) -> None:
    """Who could trade squares for slack after seeing outputs would pass δ: see the proof in `budget`."""
    room = headroom(1.0, DELTA)
    assert (1 + math.e) * room == pytest.approx(HEADROOM * DELTA, rel=1e-12)
    ledger.reserve("p", "a", [[secure(0.02, 1e-22)]] * 3)
    assert ledger.balance("p").slack == room
    ledger.charge("p", "a", 1, [secure(0.02, 1e-22)])
    ledger.charge("p", "b", 1, [secure(0.02, 0.9 * room)])
    with pytest.raises(BudgetExceeded, match="is kept") as error:
        ledger.charge("p", "b", 2, [secure(0.02, 0.2 * room)])
    assert "\n" not in str(error.value)
    ledger.change_budget("p", 1.0, DELTA, slack=3 * room)
    assert ledger.charge("p", "b", 2, [secure(0.02, 0.2 * room)]) == "charged"
    with pytest.raises(ValueError, match="would lie below"):
        ledger.change_budget("p", 1.0, DELTA, slack=room)
    with pytest.raises(ValueError, match="slack="):
        ledger.change_budget("p", 1.0, DELTA, slack=math.nan)


def test_slack_beyond_delta_is_refused_and_held_slack_counts(ledger: Ledger) -> None:
    whole = DELTA / (1 + math.e)
    with pytest.raises(BudgetExceeded):
        ledger.charge("p", "r", 1, [secure(1e-9, 1.01 * whole)])
    ledger.reserve("p", "r", [[secure(1e-3, 0.3 * whole)]] * 2)
    with pytest.raises(BudgetExceeded):
        ledger.charge("p", "s", 1, [secure(1e-3, 0.5 * whole)])
    ledger.end("p", "r")
    ledger.change_budget("p", 1.0, DELTA, slack=0.7 * whole)
    assert ledger.charge("p", "s", 1, [secure(1e-3, 0.5 * whole)]) == "charged"
    with pytest.raises(BudgetExceeded):
        ledger.charge("p", "s", 2, [secure(1e-3, 0.5 * whole)])
    balance = ledger.balance("p")
    assert delta_of(balance.spent_epsilon, balance.spent, balance.spent_slack) <= DELTA * (1 + 1e-12)


def zcdp_delta(epsilon: float, square: float, slack: float) -> Any:
    """δ at ε in zCDP, written afresh (Canonne, Kamath and Steinke 2020, Proposition 12): the best of all orders."""
    e, rho = mp.mpf(epsilon), mp.mpf(square) / 2

    def log_delta(u: Any) -> Any:  # the order is 1 + e^u
        x = mp.exp(u)
        return x * ((1 + x) * rho - e) + x * mp.log(x / (1 + x)) - mp.log1p(x)

    low, high, golden = mp.mpf(-12), mp.mpf(12), (mp.sqrt(5) - 1) / 2
    for _ in range(120):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if log_delta(a) < log_delta(b) else (a, high)
    return min(mp.mpf(1), mp.exp(log_delta(low))) + (1 + mp.exp(e)) * mp.mpf(slack)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-12), (1.0, 1e-6), (8.0, 1e-6), (8.0, 0.1)])
@pytest.mark.parametrize("share", [1e-14, 1e-6, 0.5, 1 - 1e-9])
def test_the_limit_in_zcdp_leaves_room_for_slack_and_no_more(epsilon: float, delta: float, share: float) -> None:
    slack = share * delta / (1 + math.exp(epsilon))
    most = limit(epsilon, delta, "zcdp", slack)
    lost = zcdp_delta(epsilon, most * (1 + 1e-12), slack)
    assert lost <= delta and lost > delta * (1 - 1e-8)
    balance = Balance("p", ROW, epsilon, delta, "zcdp", most, slack=slack, spent_slack=slack)
    spent = balance.spent_epsilon  # the least that holds: where slack takes most of δ, a smaller one does
    assert spent <= epsilon * (1 + 1e-9) and balance.left == 0
    assert zcdp_delta(spent, most, slack) <= delta * (1 + 1e-9)
    assert zcdp_delta(spent * (1 - 1e-3), most, slack) > delta  # near a tangent it takes a little too much


def test_a_population_opened_under_zcdp_continues_and_keeps_slack(ledger: Ledger) -> None:
    """There a discrete Gaussian costs μ²/2 as zCDP, up to its slack, as in Gaussian DP."""
    ledger.charge("p", "old", 1, [ZCDP(0.002)])
    assert ledger.balance("p").slack == 0.0
    slack = 0.3 * DELTA / (1 + math.e)
    whole = math.sqrt(limit(1.0, DELTA, "zcdp") - 0.004)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("p", "new", [[secure(whole / 2, slack / 4)]] * 4)  # fits without the slack
    mu = math.sqrt((limit(1.0, DELTA, "zcdp", slack * (1 + 1e-9)) - 0.004) / 4)
    events = [[secure(mu, slack / 4)]] * 4
    ledger.reserve("p", "new", events)
    for t, now in enumerate(events, start=1):
        assert ledger.charge("p", "new", t, now) == "charged"
    balance = ledger.balance("p")
    assert balance.calculus == "zcdp" and ledger.spent("p") == pytest.approx(1.0, rel=1e-8)
    assert slack <= balance.spent_slack <= balance.slack <= slack * (1 + 1e-11)
    assert zcdp_delta(1.0, balance.spent, balance.spent_slack) <= DELTA
    with pytest.raises(BudgetExceeded):
        ledger.charge("p", "new", 5, [secure(1e-6, slack / 4)])
    with pytest.raises(ValueError, match=r"zCDP does not add|would lie below"):
        ledger.change_budget("p", 2.0, DELTA, calculus="gaussian")


@pytest.mark.parametrize("calculus", ["gaussian", "zcdp"])
def test_a_run_ended_by_word_takes_the_slack_it_held(ledger: Ledger, calculus: str) -> None:
    ledger.change_budget("p", 1.0, DELTA, calculus=calculus)
    ledger.reserve("p", "r", [[secure(0.02, 1e-20)]] * 3)
    held, slack = ledger.balance("p").held, ledger.holds("p")[0].slack
    end_run(ledger, "r", None, None, 2)
    balance = ledger.balance("p")
    assert (balance.calculus, balance.held) == (calculus, 0.0)
    assert balance.spent == pytest.approx(held, rel=1e-12) and balance.spent >= held
    assert balance.spent_slack == pytest.approx(slack, rel=1e-12) and balance.spent_slack >= slack > 2.9e-20


def test_spare_attempts_hold_their_slack_too(ledger: Ledger) -> None:
    room = headroom(1.0, DELTA)
    ledger.reserve("p", "r", [[secure(0.01, 0.1 * room)], [secure(0.02, 0.2 * room)]], spare=2)
    balance = ledger.balance("p")
    assert balance.held == pytest.approx(0.01**2 + 3 * 0.02**2, rel=1e-12)
    with pytest.raises(BudgetExceeded, match="is kept"):
        ledger.charge("p", "s", 1, [secure(0.01, 0.4 * room)])  # 0.1 + 3·0.2 are held
    assert ledger.charge("p", "s", 1, [secure(0.01, 0.3 * room * (1 - 1e-9))]) == "charged"


@given(st.lists(st.tuples(st.floats(1e-3, 0.3), st.floats(0.0, 2e-8)), min_size=1, max_size=25))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_whatever_is_charged_the_total_keeps_to_delta(releases: list[tuple[float, float]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger") as book:
        book.open_population("p", 1.0, DELTA)
        for t, (mu, slack) in enumerate(releases, start=1):
            try:
                book.charge("p", "r", t, [secure(mu, slack)])
            except BudgetExceeded as refusal:
                assert "\n" not in str(refusal)
        balance = book.balance("p")
        # the constants that the proof needs: the most squares there can ever be, and the most slack
        assert delta_of(1.0, balance.limit * (1 + 1e-12), balance.slack) <= DELTA
        assert balance.spent <= balance.limit * (1 + 1e-12) and balance.spent_slack <= balance.slack
