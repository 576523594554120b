"""Running budgets: what a release adds to a total that is not known in advance, and where that total stops.

A run may depend on what earlier runs released, so a ledger needs sums that stay valid under adaptive choice (filters).
A release costs, on the scale of μ² and, where it is pure, in ε:

| release         | square                                                            | pure     |
|-----------------|-------------------------------------------------------------------|----------|
| Gaussian        | (sensitivity/scale)²                                              | infinite |
| zCDP            | 2ρ, as a μ-Gaussian release is μ²/2-zCDP                          | infinite |
| pure ε          | `gaussian_equivalent(ε)`², as every ε-DP release is μ-Gaussian-DP | ε        |
| free; unbounded | 0; refused, whatever the budget                                   | 0        |

and a budget (ε, δ) is a limit to one of the sums. Its *calculus* says which:

* **gaussian**: squares up to `mu_for(ε, δ)`², exact for Gaussians (Smith and Thakurta 2022: a Gaussian-DP filter);
* **zcdp**: squares up to 2ρ, ρ the largest that converts to (ε, δ); smaller (Feldman and Zrnic 2021: a Rényi filter);
* **pure**: ε up to ε. A single pure ε is a poor Gaussian (ε=1 becomes ε=6 at δ=1e-6), so this suits randomised labels.

The calculus is fixed before the first release. Choosing the limit release by release would be no filter: who may change
the yardstick after seeing outputs can spend δ under each. So zCDP in a Gaussian budget, pure ε in a zCDP one and
anything but pure ε in a pure one are errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from confide.privacy.accounting import Total, distinguish, epsilon, gaussian_equivalent
from confide.privacy.calibration import mu_for
from confide.privacy.events import ZCDP, Event, Free, Gaussian, Kind, PureDP

GAUSSIAN, RHO, PURE = CALCULI = ("gaussian", "zcdp", "pure")
ROW: Kind = ("row", "replace", "network")

# A calibrated run meets its limit up to the last digits. Limits to squares lie 2e-12 below the exact value (as `mu_for`
# does), so that this tolerance never reaches past the budget; a pure sum may pass ε by 1e-12·ε, that is a δ of 1e-12·ε.
TOLERANCE = 1e-12
_MARGIN = 2e-12
_ROUND_UP = 1 + 1e-14


class BudgetExceeded(ValueError):
    """A release that the owner's budget does not cover: nothing was charged, nothing may be sent."""


class Cost(NamedTuple):
    """What is added to each of the two sums."""

    square: float
    pure: float

    def on(self, calculus: str) -> float:
        return self.pure if calculus == PURE else self.square

    @classmethod
    def sum(cls, costs: Iterable[Cost]) -> Cost:
        """Correctly rounded, so that no small cost is lost beside large ones."""
        costs = list(costs)
        return cls(math.fsum(c.square for c in costs), math.fsum(c.pure for c in costs))


@dataclass(frozen=True)
class Bill:
    """What one release, or a whole run, costs by kind, and what it is made of."""

    costs: dict[Kind, Cost]
    parts: dict[Kind, frozenset[str]]  # of "gaussian", "zcdp", "pure"

    @classmethod
    def of(cls, events: Iterable[Event]) -> Bill:
        """The bill of one round of one agent, rounded up, so that no rounding ever under-counts."""
        groups: dict[Kind, list[Event]] = {}
        for event in events:
            Total.of([event])  # an unknown event is an error
            if not isinstance(event, Free):
                groups.setdefault(event.kind, []).append(event)
        bill = cls({}, {})
        for kind, group in groups.items():
            total = Total.of(group)
            gaussian, rho, pure = float(total.gaussian), float(total.zcdp), [float(e) for e in total.pure]
            square = math.fsum([gaussian, 2 * rho, *(float(gaussian_equivalent(e)) ** 2 for e in pure)])
            if not math.isfinite(square):
                raise BudgetExceeded(f"no budget covers {group[-1]!r}: a release needs a bound and noise")
            mixed = len(pure) < len(group)
            added = math.inf if mixed else math.nextafter(math.fsum(pure), math.inf)
            bill.costs[kind] = Cost(math.nextafter(square * _ROUND_UP, math.inf), added)
            used = {GAUSSIAN: mixed and not rho, RHO: rho > 0, PURE: any(pure)}
            bill.parts[kind] = frozenset(name for name, there in used.items() if there)
        return bill

    @classmethod
    def sum(cls, bills: Iterable[Bill]) -> Bill:
        """The bill of several rounds."""
        bills = list(bills)
        kinds = dict.fromkeys(kind for bill in bills for kind in bill.costs)
        return cls(
            {kind: Cost.sum(bill.costs[kind] for bill in bills if kind in bill.costs) for kind in kinds},
            {kind: frozenset().union(*(bill.parts.get(kind, frozenset()) for bill in bills)) for kind in kinds},
        )


def of_agent(events: Iterable[Event], agent: int | None) -> list[Event]:
    """The events of one agent: of parameters with one value an agent, the agent's own."""
    out = []
    for event in events:
        arrays = {name: value for name in event.rules if np.ndim(value := getattr(event, name))}
        if arrays and agent is None:
            raise ValueError(f"{event!r} has one value per agent: say which with agent=")
        for value in arrays.values():
            if not 0 <= (agent or 0) < np.size(value):
                raise ValueError(f"agent {agent} of {np.size(value)}: must be 0 to {np.size(value) - 1}")
        own: dict[str, Any] = {name: float(value[agent]) for name, value in arrays.items()}
        out.append(replace(event, **own))
    return out


def check_addable(population: str, kind: Kind, calculus: str | None, parts: frozenset[str]) -> None:
    """One line where a release does not add to the sum its budget is kept in."""
    counts = f"population {population!r} counts each {kind[0]} in"
    if calculus == GAUSSIAN and RHO in parts:
        raise ValueError(f"{counts} Gaussian DP, to which zCDP does not add: see change_budget(calculus='zcdp')")
    if calculus == RHO and PURE in parts:
        raise ValueError(f"{counts} zCDP, to which pure ε does not add: charge Gaussian(gaussian_equivalent(ε), 1)")
    if calculus == PURE and parts - {PURE}:
        raise ValueError(f"{counts} pure ε, to which nothing else adds: see change_budget(calculus='gaussian')")


@lru_cache(maxsize=256)
def limit(epsilon: float, delta: float, calculus: str = GAUSSIAN) -> float:
    """Largest sum of costs that (ε, δ) allows."""
    if calculus not in CALCULI:
        raise ValueError(f"calculus must be one of {', '.join(CALCULI)}, given {calculus!r}")
    exact = float(mu_for(epsilon, delta)) ** 2  # one line for ε or δ out of range
    if calculus != RHO:
        return exact if calculus == GAUSSIAN else float(epsilon)
    # ρ + 2√(ρ·ln 1/δ) bounds ε from above, the exact Gaussian curve from below: the root lies between.
    root = math.sqrt(-math.log(delta))
    low, high = (epsilon / (math.sqrt(epsilon + root**2) + root)) ** 2, exact / 2 * (1 + 1e-9)
    rho = brentq(lambda rho: _converted(2 * rho, delta, RHO) - epsilon, low, high, xtol=1e-300, rtol=1e-15)
    return 2 * float(rho) * (1 - _MARGIN)


def _events(amount: float, calculus: str) -> list[Event]:
    """One event that costs `amount`."""
    match calculus:
        case "gaussian":
            return [Gaussian(math.sqrt(amount), 1.0)]
        case "zcdp":
            return [ZCDP(amount / 2)]
    return [PureDP(amount)]


def _converted(amount: float, delta: float, calculus: str) -> float:
    if amount == 0 or calculus == PURE:
        return amount
    return float(epsilon(_events(amount, calculus), delta))


@dataclass(frozen=True)
class Balance:
    """The budget of one population for one kind, and how much of it is gone, in its calculus."""

    population: str
    kind: Kind
    epsilon: float
    delta: float
    calculus: str
    spent: float = 0.0
    held: float = 0.0  # reserved by runs that have not used it yet

    @property
    def limit(self) -> float:
        return limit(self.epsilon, self.delta, self.calculus)

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.spent - self.held)

    @property
    def spent_epsilon(self) -> float:
        """ε at the budget's δ of everything charged."""
        return self.at(self.spent)

    @property
    def left_epsilon(self) -> float:
        """Largest ε, at the budget's δ, of one more run; squares add and ε does not, so this is no difference."""
        return self.at(self.left)

    @property
    def left_mu(self) -> float:
        """Largest Gaussian-DP μ of one more run: what to calibrate its noise to; none fits a pure budget."""
        return 0.0 if self.calculus == PURE else math.sqrt(self.left)

    def at(self, amount: float) -> float:
        """ε of an amount, at the budget's δ."""
        return _converted(amount, self.delta, self.calculus)

    def distinguish(self, prior: float = 0.5) -> float:
        """Chance that the best guess between two values of one unit is right, after everything charged."""
        if self.spent == 0:
            return max(prior, 1 - prior)
        return float(distinguish(_events(self.spent, self.calculus), prior))

    def __str__(self) -> str:
        return f"ε={self.epsilon:g} at δ={self.delta:g}"
