"""Budgets by adversary: a release counts against everyone, and against a coalition at what it states or in full."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import confide
from confide.algorithms import JointDescent
from confide.privacy import ZCDP, Gaussian, PureDP
from confide.privacy.budget import ROW, Bill, BudgetExceeded
from confide.privacy.ledger import Ledger
from confide.privacy.serialize import event_from_json, event_to_json

DELTA = 1e-6
TWO_OF_FIVE, NINE_OF_TWENTY = (
    ("row", "replace", f"outsiders and any {c} of {K} parties together") for c, K in ((2, 5), (9, 20))
)


def masked(mu, honest, kind=TWO_OF_FIVE):
    """A release of this μ against the coalition, whose noise `honest` parties share."""
    return Gaussian(mu, 1.0, adversary=kind[2], alone=1 / math.sqrt(honest))


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger") as book:
        yield book


def spent(book, kind, population="p"):
    return math.sqrt(book.balance(population, kind).spent)


# --- events -----------------------------------------------------------------------------------------------------------


def test_an_event_says_what_is_left_against_everyone():
    event = masked(0.3, 4)
    assert event.everyone == Gaussian(0.3, 0.5) and event.everyone.everyone == event.everyone
    assert Gaussian(0.3, 1.0, adversary="server").everyone is None and PureDP(1.0, adversary="server").everyone is None
    assert event_from_json(event_to_json(event)) == event and "alone" not in event_to_json(Gaussian(0.3, 1.0))
    bill = Bill.of([event])
    assert {kind: math.sqrt(cost.square) for kind, cost in bill.costs.items()} == pytest.approx(
        {TWO_OF_FIVE: 0.3, ROW: 0.6}
    )
    with pytest.raises(ValueError, match=r"alone=0.5 against everyone: their noise is `scale`"):
        Gaussian(0.3, 1.0, alone=0.5)
    with pytest.raises(ValueError, match=r"alone=.*: must be at most scale"):
        Gaussian(0.3, 1.0, alone=1.5, adversary="server")


# --- what is charged --------------------------------------------------------------------------------------------------


def test_a_coalition_is_so_many_of_so_many_of_each_federation(ledger):
    """Two federations of five that state the same share its budget, as docs/private-sum.md says; everyone's is full."""
    ledger.open_population("p", 3.0, DELTA)
    ledger.open_population("p", 1.0, DELTA, kind=TWO_OF_FIVE)
    for federation in ("one", "another"):
        ledger.charge("p", federation, 1, [masked(0.1, 3)])
    assert spent(ledger, TWO_OF_FIVE) == pytest.approx(0.1 * math.sqrt(2))
    ledger.charge("p", "of twenty", 1, [masked(0.1, 3, NINE_OF_TWENTY)])
    assert spent(ledger, TWO_OF_FIVE) == pytest.approx(0.1 * math.sqrt(2 + 3))
    assert spent(ledger, ROW) == pytest.approx(0.1 * math.sqrt(3 * 3))


def test_a_masked_release_is_charged_against_its_coalition_and_against_everyone(ledger):
    ledger.open_population("p", 3.0, DELTA)
    ledger.open_population("p", 2.0, DELTA, kind=TWO_OF_FIVE)
    ledger.charge("p", "run", 1, [masked(0.1, 3)])
    ledger.charge("p", "run", 2, [Gaussian(0.05, 1.0)])  # without masks: in full against all
    ledger.charge("p", "run", 3, [masked(0.1, 11, NINE_OF_TWENTY)])  # says nothing of 2 of 5: as against everyone
    assert spent(ledger, TWO_OF_FIVE) == pytest.approx(math.sqrt(0.01 + 0.0025 + 0.11))
    assert spent(ledger, ROW) == pytest.approx(math.sqrt(0.03 + 0.0025 + 0.11))


def test_no_coalition_escapes_the_budget_against_everyone(ledger):
    ledger.open_population("p", 1.0, DELTA)
    ledger.open_population("p", 50.0, DELTA, kind=TWO_OF_FIVE)
    mu = ledger.balance("p").left_mu
    for refused in ([masked(mu, 3)], [masked(mu / math.sqrt(3) * 1.001, 3)]):
        with pytest.raises(BudgetExceeded, match=r"and of ε=1 at δ=1e-06 for each row ε=1 is left"):
            ledger.charge("p", "run", 1, refused)
        with pytest.raises(BudgetExceeded, match="is left"):
            ledger.reserve("p", "run", [refused])
    ledger.charge("p", "run", 1, [masked(mu / math.sqrt(3) * 0.999, 3)])
    assert len(ledger.entries("p")) == 1


def test_a_coalition_has_a_limit_of_its_own(ledger):
    ledger.open_population("p", 50.0, DELTA)
    ledger.open_population("p", 1.0, DELTA, kind=TWO_OF_FIVE)
    mu = ledger.balance("p", TWO_OF_FIVE).left_mu
    with pytest.raises(BudgetExceeded, match="for each row against outsiders and any 2 of 5 parties together"):
        ledger.charge("p", "run", 1, [masked(mu * 1.001, 3)])
    with pytest.raises(BudgetExceeded, match="against outsiders and any 2 of 5"):
        ledger.charge("p", "run", 1, [Gaussian(mu * 1.001, 1.0)])  # a release without masks does not escape it either
    assert not ledger.entries("p")
    ledger.charge("p", "run", 1, [masked(mu * 0.999, 3)])


def test_a_budget_against_everyone_must_be_there(ledger):
    ledger.open_population("p", 1.0, DELTA, kind=TWO_OF_FIVE)
    with pytest.raises(ValueError, match="has no budget for row/replace/network"):
        ledger.charge("p", "run", 1, [masked(0.01, 3)])
    ledger.open_population("p", 1.0, DELTA)
    ledger.charge("p", "run", 1, [masked(0.01, 3)])  # and one for the coalition need not be
    ledger.charge("p", "run", 2, [masked(0.01, 11, NINE_OF_TWENTY)])


@pytest.mark.parametrize("event", [Gaussian(0.01, 1.0, adversary="server"), PureDP(0.01, adversary="server"),
                                   Gaussian(0.01, 1.0, adversary=TWO_OF_FIVE[2])])  # fmt: skip
def test_an_adversary_that_says_nothing_of_everyone_is_refused(ledger, event):
    ledger.open_population("p", 1.0, DELTA)
    ledger.open_population("p", 1.0, DELTA, kind=event.kind)
    before = ledger.head()
    for act in (lambda: ledger.charge("p", "run", 1, [event]), lambda: ledger.reserve("p", "run", [[event]]),
                lambda: ledger.settle("p", "run", [(1, 1, [event])])):  # fmt: skip
        with pytest.raises(ValueError, match="not against everyone; a ledger needs both"):
            act()
    assert ledger.head() == before


def test_a_budget_opened_later_begins_with_what_was_charged_and_held_before(ledger):
    ledger.open_population("p", 5.0, DELTA)
    ledger.charge("p", "old", 1, [Gaussian(0.1, 1.0)])
    ledger.charge("p", "old", 2, [masked(0.1, 3)])
    ledger.reserve("p", "now", [[Gaussian(0.2, 1.0)]])
    ledger.reserve("p", "shared", [[masked(0.2, 3)]])
    ledger.open_population("p", 2.0, DELTA, kind=TWO_OF_FIVE)
    balance = ledger.balance("p", TWO_OF_FIVE)
    assert balance.spent == pytest.approx(0.02) and balance.held == pytest.approx(0.08)
    assert ledger.balance("p").held == pytest.approx(0.04 + 0.12)
    for run in ("now", "shared"):
        ledger.end("p", run)
    assert ledger.balance("p", TWO_OF_FIVE).held == 0 == ledger.balance("p").held
    assert ledger.open_population("p", 2.0, DELTA, kind=TWO_OF_FIVE) == "already"


def test_a_coalition_counts_as_everyone_does(ledger):
    """What was charged in zCDP does not add to a Gaussian sum, also where the budget came later."""
    ledger.open_population("p", 5.0, DELTA)
    ledger.charge("p", "old", 1, [ZCDP(0.01)])
    with pytest.raises(ValueError, match="Gaussian DP, to which zCDP does not add"):
        ledger.open_population("p", 5.0, DELTA, kind=TWO_OF_FIVE, calculus="gaussian")
    ledger.open_population("p", 5.0, DELTA, kind=TWO_OF_FIVE)
    balance = ledger.balance("p", TWO_OF_FIVE)
    assert balance.calculus == "zcdp" and balance.spent == pytest.approx(0.02)


def test_a_run_that_ended_holds_nothing_of_a_budget_opened_later(ledger):
    ledger.open_population("p", 5.0, DELTA)
    ledger.reserve("p", "run", [[masked(0.2, 3)]])
    ledger.end("p", "run")
    ledger.open_population("p", 2.0, DELTA, kind=TWO_OF_FIVE)
    assert ledger.balance("p", TWO_OF_FIVE).held == 0


EVENTS = st.one_of(
    st.floats(0.01, 0.6).map(lambda mu: Gaussian(mu, 1.0)),
    st.tuples(st.floats(0.01, 0.6), st.integers(2, 20), st.sampled_from([TWO_OF_FIVE, NINE_OF_TWENTY])).map(
        lambda given: masked(*given)
    ),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(EVENTS, st.sampled_from([TWO_OF_FIVE, NINE_OF_TWENTY])), max_size=12))
def test_every_budget_has_the_sum_of_what_it_must(tmp_path_factory, actions):
    """Releases and budgets in any order; the sums written out again from the events."""
    with Ledger(tmp_path_factory.mktemp("any") / "ledger") as book:
        book.open_population("p", 4.0, DELTA)
        done, kinds = [], {ROW}
        for round, act in enumerate(actions):
            if isinstance(act, tuple):
                book.open_population("p", 100.0, DELTA, kind=act)
                kinds.add(act)
                continue
            try:
                book.charge("p", "run", round, [act])
                done.append(act)
            except BudgetExceeded:
                assert act.everyone.mu**2 + sum(e.everyone.mu**2 for e in done) > book.balance("p").limit
        for kind in kinds:
            wanted = sum((e if e.kind == kind else e.everyone).mu ** 2 for e in done)
            assert book.balance("p", kind).spent == pytest.approx(wanted, rel=1e-9)
            assert book.balance("p", kind).spent <= book.balance("p").spent * (1 + 1e-12)


# --- a method on private sums -----------------------------------------------------------------------------------------


def test_what_a_method_on_sums_charges_covers_every_coalition(ledger):
    """Against everyone √h times the claim, rounding included; the ledger refuses it where that is not allowed."""
    shards = confide.Shards.split(np.zeros((50, 2)), np.ones(50), 5).clip_rows(1.0)
    public = confide.Problem(shards, confide.losses.Logistic(), None, "rows").public(confide.Graph.ring(5))
    method = JointDescent(rounds=4).calibrated(public, mu=0.2)
    rounds = method.charged(public)
    assert all(0 < float(np.max(e.slack)) < 1e-30 for now in rounds for e in now)
    ledger.open_population("p", 3.0, DELTA)
    ledger.open_population("p", 1.0, DELTA, kind=TWO_OF_FIVE)
    ledger.reserve("p", "run", rounds, agent=0)
    for t, now in enumerate(rounds, start=1):
        ledger.charge("p", "run", t, now, agent=0)
    assert spent(ledger, TWO_OF_FIVE) == pytest.approx(0.2, rel=1e-5) and spent(ledger, TWO_OF_FIVE) > 0.2 * (1 - 1e-9)
    assert spent(ledger, ROW) == pytest.approx(0.2 * math.sqrt(3), rel=1e-5)
    ledger.open_population("small", 0.8, DELTA)
    with pytest.raises(BudgetExceeded, match="is left"):
        ledger.reserve("small", "run", rounds, agent=0)
