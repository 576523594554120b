"""The ledger against a model in memory: any sequence of calls, with the file closed and opened in between."""

import tempfile
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from scipy.optimize import brentq, minimize_scalar

from confide.privacy import ZCDP, Event, Free, Gaussian, PureDP, RandomizedResponse
from confide.privacy.ledger import ROW, BudgetExceeded, Ledger

DELTA = 1e-6
mp = mpmath.mp.clone()  # a precision of its own
mp.dps = 30
LABEL = ("label", "replace", "network")
EVENTS = (Gaussian(0.05, 1.0), Gaussian(0.2, 2.0), Gaussian(3.0, 20.0), PureDP(0.03), PureDP(0.1), ZCDP(0.004), Free(),
          RandomizedResponse(0.3, 2), RandomizedResponse(0.2, 3))  # fmt: skip
POPULATIONS, RUNS = ("p", "q"), ("r", "s", "t")


# --- the oracle: costs and limits written afresh ------------------------------------------------------------------


@lru_cache
def cost(event: Event) -> tuple[Any, Any]:
    """On the scale of μ², and in pure ε."""
    match event:
        case Gaussian():
            return (mp.mpf(event.sensitivity) / event.scale) ** 2, mp.inf
        case ZCDP():
            return 2 * mp.mpf(event.rho), mp.inf
        case PureDP() | RandomizedResponse():
            odds = mp.exp(event.epsilon)
            return (2 * mp.sqrt(2) * mp.erfinv(2 * odds / (1 + odds) - 1)) ** 2, mp.mpf(event.epsilon)
    raise AssertionError(event)


@lru_cache
def limit(epsilon: float, calculus: str) -> float:
    if calculus == "pure":
        return epsilon
    if calculus == "gaussian":

        def lost(mu: Any) -> Any:
            return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)

        root = mp.findroot(lambda mu: mp.log(lost(mu)) - mp.log(DELTA), (0.01, 5), solver="anderson")
        return float(root) ** 2

    def converted(rho: float) -> float:  # over Rényi orders 1 + e^u
        def bound(u: float) -> float:
            x = np.exp(u)
            return rho * (1 + x) - np.log1p(1 / x) + (-np.log(DELTA) - np.log1p(x)) / x

        return float(minimize_scalar(bound, bounds=(-5, 12), method="bounded", options={"xatol": 1e-12}).fun)

    return 2 * float(brentq(lambda rho: converted(rho) - epsilon, 1e-8, 10, rtol=1e-14))


class Model:
    def __init__(self) -> None:
        self.budgets: dict[Any, tuple[float, str | None]] = {}
        self.charges: dict[Any, list[Event]] = {}
        self.reserved: dict[Any, list[Event]] = {}

    def total(self, events: list[Event], calculus: str) -> Any:
        return mp.fsum(cost(e)[calculus == "pure"] for e in events)

    def spent(self, population: str, kind: Any, run: str | None = None) -> list[Event]:
        return [e for (p, r, *_), events in self.charges.items() for e in events
                if p == population and run in (None, r) and e.kind == kind and not isinstance(e, Free)]  # fmt: skip

    def held(self, population: str, kind: Any, calculus: str, but: str | None = None) -> Any:
        return mp.fsum(
            max(0, self.total(events, calculus) - self.total(self.spent(population, kind, run), calculus))
            for (p, run, k), events in self.reserved.items() if (p, k) == (population, kind) and run != but
        )  # fmt: skip

    def verdict(self, population: str, run: str, events: list[Event], whole: bool) -> str:
        """What should happen to a release or a schedule; "close" where rounding may decide."""
        fixed = {}
        for kind in dict.fromkeys(e.kind for e in events if not isinstance(e, Free)):
            mine = [e for e in events if e.kind == kind and not isinstance(e, Free)]
            epsilon, calculus = self.budgets[population, kind]
            calculus = calculus or ("zcdp" if any(isinstance(e, ZCDP) for e in mine) else "gaussian")
            bad = {"gaussian": (ZCDP,), "zcdp": (PureDP, RandomizedResponse), "pure": (Gaussian, ZCDP)}[calculus]
            if any(isinstance(e, bad) for e in mine):
                return "does not add"
            others = self.total(self.spent(population, kind), calculus)
            own = self.total(self.spent(population, kind, run), calculus)
            needed = max(own, self.total(mine, calculus)) if whole else own + self.total(mine, calculus)
            taken = others - own + needed + self.held(population, kind, calculus, run)
            share = float(taken / limit(epsilon, calculus))
            if abs(share - 1) < 1e-9:
                return "close"
            if share > 1:
                return "exceeds"
            fixed[population, kind] = (epsilon, calculus)
        self.budgets |= fixed
        return "fits"


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.ledger, self.model = Ledger(self.path), Model()
        for population, (kind, calculus) in product(POPULATIONS, ((ROW, None), (LABEL, "pure"))):
            self.ledger.open_population(population, 1.0, DELTA, kind=kind, calculus=calculus)
            self.model.budgets[population, kind] = (1.0, calculus)

    def teardown(self) -> None:
        self.ledger.close()
        self.folder.cleanup()

    populations, runs = st.sampled_from(POPULATIONS), st.sampled_from(RUNS)
    events = st.lists(st.sampled_from(EVENTS), min_size=1, max_size=2)

    @rule(population=populations, run=runs, t=st.integers(1, 5), events=events, attempt=st.sampled_from([1, 1, 2]))
    def charge(self, population: str, run: str, t: int, events: list[Event], attempt: int) -> None:
        key = (population, run, t, attempt)
        assume({PureDP, ZCDP} - {type(e) for e in events})  # the accountant itself refuses that sum, in other words
        if key in self.model.charges:
            if self.model.charges[key] == events:
                assert self.ledger.charge(population, run, t, events, attempt=attempt) == "already"
            else:
                with pytest.raises(ValueError, match="was charged"):
                    self.ledger.charge(population, run, t, events, attempt=attempt)
            return
        expected = self.model.verdict(population, run, events, whole=False)
        assume(expected != "close")
        if expected == "fits":
            assert self.ledger.charge(population, run, t, events, attempt=attempt) == "charged"
            self.model.charges[key] = events
        else:
            with pytest.raises(ValueError) as error:
                self.ledger.charge(population, run, t, events, attempt=attempt)
            assert isinstance(error.value, BudgetExceeded) == (expected == "exceeds")

    @rule(population=populations, run=runs, t=st.integers(1, 5), event=st.sampled_from(EVENTS[:3]))
    def settle(self, population: str, run: str, t: int, event: Event) -> None:
        """What was released counts, whether it fits or not."""
        if any(key[:3] == (population, run, t) for key in self.model.charges):
            assert self.ledger.settle(population, run, [(t, 1, [event])]) == []
            return
        epsilon, calculus = self.model.budgets[population, ROW]
        calculus = calculus or "gaussian"
        share = self.model.total([*self.model.spent(population, ROW), event], calculus) / limit(0.2, calculus)
        assume(share < 0.9)  # other rules take every budget for kept
        assert self.ledger.settle(population, run, [(t, 1, [event])]) == [(t, 1)]
        self.model.charges[population, run, t, 1] = [event]
        self.model.budgets[population, ROW] = (epsilon, calculus)

    @rule(population=populations, run=runs, rounds=st.integers(1, 12), event=st.sampled_from(EVENTS))
    def reserve(self, population: str, run: str, rounds: int, event: Event) -> None:
        expected = self.model.verdict(population, run, [event] * rounds, whole=True)
        assume(expected != "close")
        if expected == "fits":
            self.ledger.reserve(population, run, [[event]] * rounds)
            if not isinstance(event, Free):
                self.model.reserved[population, run, event.kind] = [event] * rounds
        else:
            with pytest.raises(ValueError) as error:
                self.ledger.reserve(population, run, [[event]] * rounds)
            assert isinstance(error.value, BudgetExceeded) == (expected == "exceeds")

    @rule(population=populations, run=runs)
    def end(self, population: str, run: str) -> None:
        self.ledger.end(population, run)
        for kind in (ROW, LABEL):
            self.model.reserved.pop((population, run, kind), None)

    @rule(population=populations, epsilon=st.sampled_from([0.2, 0.5, 1.0, 2.0]))
    def change(self, population: str, epsilon: float) -> None:
        _, calculus = self.model.budgets[population, ROW]
        share = float(self.model.total(self.model.spent(population, ROW), calculus or "gaussian")
                      / limit(epsilon, calculus or "gaussian"))  # fmt: skip
        assume(abs(share - 1) > 1e-9)
        if share < 1:
            self.ledger.change_budget(population, epsilon, DELTA)
            self.model.budgets[population, ROW] = (epsilon, calculus)
        else:
            with pytest.raises(ValueError, match="would lie below"):
                self.ledger.change_budget(population, epsilon, DELTA)

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = Ledger(self.path)

    @invariant()
    def agree(self) -> None:
        for population, kind in product(POPULATIONS, (ROW, LABEL)):
            epsilon, calculus = self.model.budgets[population, kind]
            balance, calculus = self.ledger.balance(population, kind), calculus or "gaussian"
            spent = float(self.model.total(self.model.spent(population, kind), calculus))
            assert (balance.epsilon, balance.calculus) == (epsilon, calculus)
            assert balance.spent == pytest.approx(spent, rel=1e-12, abs=1e-300) and balance.spent >= spent
            held = float(self.model.held(population, kind, calculus))
            assert balance.held == pytest.approx(held, rel=1e-9, abs=1e-12)
            assert balance.spent <= limit(epsilon, calculus) * (1 + 1e-12)
        for population in POPULATIONS:
            kept = {(e.population, e.run, e.round, e.attempt): list(e.events) for e in self.ledger.entries(population)}
            assert kept == {k: v for k, v in self.model.charges.items() if k[0] == population}


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip
