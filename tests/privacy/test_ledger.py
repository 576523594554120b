"""The ledger: budgets hold, whoever charges them, in whatever order, and wherever a process dies."""

import math
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from confide.algorithms import CDPADMM
from confide.privacy import (
    ZCDP,
    Event,
    Free,
    Gaussian,
    ObjectivePerturbation,
    PureDP,
    RandomizedResponse,
    Unbounded,
    calibrate,
    epsilon,
    gaussian_equivalent,
    mu_for,
)
from confide.privacy.budget import Bill, limit
from confide.privacy.ledger import BudgetExceeded, Ledger

LABEL = ("label", "replace", "network")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as book:
        book.open_population("p", 1.0, 1e-6)
        yield book


def schedule(eps: float, rounds: int) -> list[list[Event]]:
    return [[Gaussian(1.0, float(s))] for s in calibrate(eps, 1e-6, np.ones(rounds))]


def one_line(error: pytest.ExceptionInfo[BaseException], *words: str) -> None:
    assert "\n" not in str(error.value) and all(word in str(error.value) for word in words), str(error.value)


# --- charging -----------------------------------------------------------------------------------------------------


def test_charging_the_same_release_twice_costs_once(ledger: Ledger) -> None:
    event = Gaussian(1.0, 50.0)
    assert ledger.charge("p", "r", 1, [event], method="CDPADMM", guarantee="proven: clipped") == "charged"
    spent = ledger.spent("p")
    assert ledger.charge("p", "r", 1, [event]) == "already" and ledger.spent("p") == spent
    (entry,) = ledger.entries("p")
    assert (entry.run, entry.round, entry.events, entry.method) == ("r", 1, (event,), "CDPADMM")
    with pytest.raises(ValueError) as error:
        ledger.charge("p", "r", 1, [Gaussian(1.0, 51.0)])
    one_line(error, "round 1", "scale=50.0", "scale=51.0", "another run")
    assert ledger.spent("p") == spent


@pytest.mark.parametrize("rounds", [1, 7, 200])
@pytest.mark.parametrize("eps", [0.01, 1.0, 20.0])
def test_a_calibrated_run_fits_exactly_and_nothing_more(tmp_path: Path, eps: float, rounds: int) -> None:
    with Ledger(tmp_path / "x") as book:
        book.open_population("p", eps, 1e-6)
        events = schedule(eps, rounds)
        book.reserve("p", "r", events)
        for t, now in enumerate(events, start=1):
            assert book.charge("p", "r", t, now) == "charged"
        assert book.spent("p") == pytest.approx(eps, rel=1e-9) and book.spent("p") <= eps
        assert book.remaining("p") == pytest.approx(0, abs=1e-4 * eps)
        with pytest.raises(BudgetExceeded):
            book.charge("p", "r", rounds + 1, [Gaussian(1e-3 * mu_for(eps, 1e-6), 1.0)])


def test_a_calibrated_method_fits_for_each_agent(tmp_path: Path) -> None:
    from confide.network.graph import Graph
    from confide.problem import losses
    from confide.problem.penalties import L2
    from confide.problem.problem import Public

    sizes = np.array([50, 90, 400])
    public = Public(Graph.ring(3), sizes, losses.Logistic(), L2(0.01), 4, row_norm=1.0, agents=np.arange(3))
    method = CDPADMM(rounds=30, clip=1.0).calibrated(public, 0.8, 1e-6)
    with Ledger(tmp_path / "x") as book:
        for k in range(3):
            book.open_population(f"party-{k}", 0.8, 1e-6)
            book.reserve(f"party-{k}", "r", method.events(public), agent=k)
            for t, events in enumerate(method.events(public), start=1):
                assert book.charge(f"party-{k}", "r", t, events, agent=k) == "charged"
            assert book.entries(f"party-{k}")[0].party == str(k)


def test_a_run_that_does_not_fit_is_refused_before_its_first_release(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded) as error:
        ledger.reserve("p", "r", schedule(1.0 + 1e-9, 40))
    one_line(error, "'p'", "run 'r' (40 rounds)", "ε=1 ", "left")
    assert ledger.entries("p") == [] and ledger.balance("p").held == 0


def test_exhaustion_stops_before_the_release_that_would_exceed(ledger: Ledger) -> None:
    step = Gaussian(1.0, math.sqrt(5.5) / mu_for(1.0, 1e-6))  # five and a half fit
    done = 0
    with pytest.raises(BudgetExceeded) as error:
        for t in range(1, 10):
            ledger.charge("p", "r", t, [step])
            done = t
    one_line(error, "round 6 of run 'r'")
    assert done == 5 == len(ledger.entries("p")) and ledger.spent("p") < 1
    assert ledger.charge("p", "small", 1, [Gaussian(0.1, step.scale)]) == "charged"  # a smaller one still fits


def test_the_remaining_epsilon_can_be_spent(ledger: Ledger) -> None:
    for run in ("a", "b"):
        left = ledger.remaining("p")
        events = schedule(left if run == "b" else 0.6, 12)
        ledger.reserve("p", run, events)
        for t, now in enumerate(events, start=1):
            ledger.charge("p", run, t, now)
    assert ledger.spent("p") == pytest.approx(1.0, rel=1e-9)


def test_a_reservation_holds_its_part_until_it_ends(ledger: Ledger) -> None:
    events = schedule(0.8, 4)
    ledger.reserve("p", "a", events)
    ledger.reserve("p", "a", events)  # a resumed run asks again
    before = ledger.remaining("p")
    ledger.charge("p", "a", 1, events[0])
    assert ledger.remaining("p") == pytest.approx(before, rel=1e-9)  # paid from what it held
    for attempt in (lambda: ledger.reserve("p", "b", events), lambda: ledger.charge("p", "b", 1, [Gaussian(0.2, 1.0)])):
        with pytest.raises(BudgetExceeded) as error:
            attempt()
        one_line(error, "held by other runs")
    ledger.end("p", "a")
    assert ledger.balance("p").held == 0
    assert ledger.charge("p", "b", 1, [Gaussian(0.15, 1.0)]) == "charged"
    ledger.end("p", "nosuch")


def test_agents_are_told_apart(ledger: Ledger) -> None:
    both = Gaussian(np.array([0.01, 0.02]), 1.0)
    for k in (0, 1):
        assert ledger.charge("p", "r", 1, [both], agent=k) == "charged"
    assert ledger.balance("p").spent == pytest.approx(5e-4, rel=1e-12)
    for agent, word in ((None, "agent="), (2, "0 to 1"), (-1, "0 to 1")):
        with pytest.raises(ValueError) as error:
            ledger.charge("p", "r", 2, [both], agent=agent)
        one_line(error, word)


def test_populations_and_ledgers_are_separate(ledger: Ledger) -> None:
    ledger.open_population("q", 1.0, 1e-6)
    ledger.charge("q", "r", 1, [Gaussian(0.1, 1.0)])
    assert ledger.populations() == ["p", "q"] and ledger.spent("p") == 0 < ledger.spent("q")


# --- arithmetic ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "amount"),
    [
        (Gaussian(3.0, 4.0), 0.5625), (ZCDP(0.125), 0.25), (Free(), None), (Gaussian(0.0, 1.0), 0.0),
        (PureDP(0.5), gaussian_equivalent(0.5) ** 2),
        (RandomizedResponse(0.5, 2, unit="row"), gaussian_equivalent(0.5) ** 2),
        (ObjectivePerturbation(0.5, 1.0, 0.0), gaussian_equivalent(0.5) ** 2), (Gaussian(1e-200, 1.0), 0.0),
    ],
)  # fmt: skip
def test_amounts_are_never_below_the_exact_cost(event: Event, amount: float | None) -> None:
    got = Bill.of([event]).costs
    if amount is None:
        assert got == {}
    else:
        assert list(got) == [event.kind]
        assert amount < got[event.kind].square <= amount * (1 + 1e-13) + 1e-300
        pure = 0.5 if hasattr(event, "epsilon") else math.inf
        assert pure <= got[event.kind].pure <= pure * (1 + 1e-15) + 1e-300


@pytest.mark.parametrize("event", [Unbounded(), Gaussian(1.0, 0.0), PureDP(math.inf), ZCDP(math.inf)])
def test_an_unbounded_release_is_always_refused(ledger: Ledger, event: Event) -> None:
    for attempt in (lambda: ledger.charge("p", "r", 1, [event]), lambda: ledger.reserve("p", "r", [[event]])):
        with pytest.raises(BudgetExceeded) as error:
            attempt()
        one_line(error, "no budget covers")
    assert ledger.entries("p") == []


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_limits_against_dp_accounting_and_mpmath(eps: float, delta: float) -> None:
    import mpmath
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    gaussian, zcdp = limit(eps, delta, "gaussian"), limit(eps, delta, "zcdp")
    assert zcdp < gaussian
    with mpmath.workdps(50):
        mu, e = mpmath.sqrt(mpmath.mpf(gaussian) * (1 + mpmath.mpf(10) ** -12)), mpmath.mpf(eps)
        lost = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        assert lost <= delta and lost > delta * (1 - 1e-8)  # the tolerance stays inside the budget, and tight
    orders = 1 + np.geomspace(1e-3, 1e5, 4000)
    accountant = RdpAccountant(orders)
    accountant.compose(dp_event.GaussianDpEvent(1 / math.sqrt(zcdp)))  # μ²/2-zCDP, by Rényi orders
    assert accountant.get_epsilon(delta) == pytest.approx(eps, rel=1e-4)
    assert epsilon([ZCDP(zcdp / 2 * (1 + 1e-12))], delta) <= eps


def test_zcdp_counts_in_its_own_limit_and_takes_gaussians(ledger: Ledger) -> None:
    rho = limit(1.0, 1e-6, "zcdp") / 2
    events: list[list[Event]] = [[ZCDP(rho / 2)], [Gaussian(math.sqrt(rho), 1.0)]]
    ledger.reserve("p", "r", events)
    assert [ledger.charge("p", "r", t, e) for t, e in enumerate(events)] == ["charged"] * 2
    assert ledger.balance("p").calculus == "zcdp" and ledger.spent("p") == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(BudgetExceeded):
        ledger.charge("p", "r", 2, [Gaussian(0.01, 1.0)])  # the Gaussian limit would have had room


def test_what_does_not_add_is_a_clear_error(ledger: Ledger) -> None:
    ledger.charge("p", "r", 1, [PureDP(0.01)])
    ledger.charge("p", "r", 2, [Gaussian(0.01, 1.0)])
    with pytest.raises(ValueError, match="Gaussian DP, to which zCDP does not add") as error:
        ledger.charge("p", "r", 3, [ZCDP(1e-4)])
    one_line(error, "change_budget")
    with pytest.raises(ValueError, match="pure ε does not add"):
        ledger.change_budget("p", 1.0, 1e-6, calculus="zcdp")
    ledger.open_population("q", 1.0, 1e-6)
    ledger.charge("q", "r", 1, [Gaussian(0.01, 1.0)])
    ledger.change_budget("q", 1.0, 1e-6, calculus="zcdp")  # declared by the owner, recorded
    assert ledger.charge("q", "r", 2, [ZCDP(1e-4)]) == "charged"
    for attempt in (
        lambda: ledger.charge("q", "r", 3, [PureDP(0.01)]),
        lambda: ledger.reserve("q", "s", [[ZCDP(1e-4)], [PureDP(0.01)]]),
        lambda: ledger.charge("q", "r", 3, [ZCDP(1e-4), PureDP(0.01)]),
        lambda: ledger.change_budget("q", 1.0, 1e-6, calculus="gaussian"),
    ):
        with pytest.raises(ValueError) as error:
            attempt()
        one_line(error)
    assert len(ledger.entries("q")) == 2


def test_a_refused_run_decides_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.reserve("p", "r", [[ZCDP(9.0)]])
    assert ledger.charge("p", "r", 1, [PureDP(0.01)]) == "charged"


def test_budgets_are_per_kind(ledger: Ledger) -> None:
    label = RandomizedResponse(0.4, 2)
    with pytest.raises(ValueError) as error:
        ledger.charge("p", "r", 0, [label, Gaussian(0.1, 1.0)])
    one_line(error, "no budget for label/replace/network")
    assert ledger.entries("p") == []  # neither half
    ledger.open_population("p", 4.0, 1e-6, kind=LABEL)
    assert ledger.charge("p", "r", 0, [label, Gaussian(0.1, 1.0), Free()]) == "charged"
    row, labels = ledger.balances("p")
    assert row.spent == pytest.approx(0.01) and labels.spent == pytest.approx(gaussian_equivalent(0.4) ** 2)
    with pytest.raises(BudgetExceeded, match="each label"):
        ledger.charge("p", "r", 1, [label] * 100)
    assert ledger.spent("p", LABEL) == labels.spent_epsilon < 4


def test_a_pure_budget_sums_epsilon(ledger: Ledger) -> None:
    label = RandomizedResponse(0.4, 2)
    ledger.open_population("p", 1.0, 1e-6, kind=LABEL)
    with pytest.raises(BudgetExceeded) as error:
        ledger.charge("p", "r", 0, [label])  # as a Gaussian it costs ε=2.3
    one_line(error, "calculus='pure'")
    ledger.change_budget("p", 1.2, 1e-6, kind=LABEL, calculus="pure")
    for t in range(3):
        assert ledger.charge("p", "r", t, [label]) == "charged"
    assert ledger.spent("p", LABEL) == pytest.approx(1.2, rel=1e-14)
    assert ledger.balance("p", LABEL).distinguish() == pytest.approx(math.exp(1.2) / (1 + math.exp(1.2)), rel=1e-12)
    with pytest.raises(BudgetExceeded) as error:
        ledger.charge("p", "r", 4, [RandomizedResponse(1e-9, 2)])
    one_line(error)
    with pytest.raises(ValueError, match="pure ε, to which nothing else adds"):
        ledger.charge("p", "r", 4, [Gaussian(1e-9, 1.0, unit="label")])
    with pytest.raises(ValueError, match="would lie below"):
        ledger.change_budget("p", 1.2, 1e-6, kind=LABEL, calculus="gaussian")
    ledger.open_population("q", 1.0, 1e-6, calculus="pure")
    ledger.reserve("q", "r", [[PureDP(0.25)]] * 4)
    with pytest.raises(ValueError, match="end them first"):
        ledger.change_budget("q", 1.0, 1e-6, calculus="gaussian")
    assert ledger.remaining("q") == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="another budget for population"):
        ledger.open_population("q", 1.0, 1e-6, calculus="gaussian")


def test_tiny_amounts_add_up(ledger: Ledger) -> None:
    """A running sum would lose them: 1 + 1e-17 is 1."""
    ledger.change_budget("p", 8.0, 1e-6)
    ledger.charge("p", "r", 0, [Gaussian(1.0, 1.0)])
    for t in range(1, 101):
        ledger.charge("p", "r", t, [Gaussian(1e-8, 1.0)])
    assert ledger.balance("p").spent - ledger.balance("p").limit == pytest.approx(
        math.fsum([1.0, *[1e-16] * 100]) * (1 + 1e-14) - limit(8.0, 1e-6), rel=1e-14)  # fmt: skip


# --- the owner's decisions ----------------------------------------------------------------------------------------


def test_a_budget_is_set_once_and_changed_only_on_purpose(ledger: Ledger) -> None:
    assert ledger.open_population("p", 1.0, 1e-6) == "already"
    with pytest.raises(ValueError, match="change_budget") as error:
        ledger.open_population("p", 2.0, 1e-6)
    one_line(error, "ε=1 ", "any calculus")
    for t, now in enumerate(schedule(1.0, 3)):
        ledger.charge("p", "r", t, now)
    ledger.change_budget("p", 2.0, 1e-6)
    assert ledger.open_population("p", 2.0, 1e-6) == "already" and ledger.remaining("p") > 1
    with pytest.raises(ValueError, match="would lie below") as error:
        ledger.change_budget("p", 0.9, 1e-6)
    one_line(error)
    ledger.change_budget("p", 1.0, 1e-6)
    with closing(sqlite3.connect(ledger.path)) as db:
        rows = db.execute("SELECT epsilon FROM budgets").fetchall()
    assert [e for (e,) in rows] == [1, 1, 2, 1]  # opened, calculus fixed, raised, lowered


@pytest.mark.parametrize("args", [("p", 0.0, 0.1), ("p", 1.0, 0.0), ("p", 1.0, 1.0), ("", 1.0, 0.1), ("a\n", 1.0, 0.1)])
def test_bad_budgets_are_one_line(ledger: Ledger, args: tuple[str, float, float]) -> None:
    with pytest.raises(ValueError) as error:
        ledger.open_population(*args)
    one_line(error)


def test_bad_charges_are_one_line(ledger: Ledger) -> None:
    good = [Gaussian(0.01, 1.0)]
    for args in (("nosuch", "r", 1, good), ("p", "", 1, good), ("p", "r", -1, good), ("p", "r", True, good),
                 ("p", "r", 1.5, good), ("p", "r", "x", good)):  # fmt: skip
        with pytest.raises(ValueError) as error:
            ledger.charge(*args)
        one_line(error)
    with pytest.raises(ValueError, match="kind="):
        ledger.open_population("p", 1.0, 1e-6, kind=("row", "replace"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="calculus="):
        ledger.change_budget("p", 1.0, 1e-6, calculus="renyi")

    class Odd(Event):
        pass

    with pytest.raises(TypeError, match="unknown event Odd"):
        ledger.charge("p", "r", 1, [Odd()])


def test_changed_data_warns_and_continues_the_spend(ledger: Ledger) -> None:
    ledger.charge("p", "r", 1, [Gaussian(0.1, 1.0)])
    spent = ledger.spent("p")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not ledger.note_data("p", [b"rows"]) and not ledger.note_data("p", [b"ro", b"ws"])
    with pytest.warns(UserWarning, match="'p' changed: its spend continues"):
        assert ledger.note_data("p", [b"other rows"])
    assert ledger.spent("p") == spent
    with closing(sqlite3.connect(ledger.path)) as db:
        stored = db.execute("SELECT hash FROM fingerprints").fetchall()
    import hashlib

    assert len(stored) == 2 and hashlib.sha256(b"rows").digest() not in {h for (h,) in stored}
