"""Running budgets: what a release adds to a total that is not known in advance, and where that total stops.

A run may depend on what earlier runs released, so a ledger needs sums that stay valid under adaptive choice (filters).
A release costs, on the scale of μ² and, where it is pure, in ε:

| release         | square                                                            | pure     | slack          |
|-----------------|-------------------------------------------------------------------|----------|----------------|
| Gaussian        | (sensitivity/scale)²                                              | infinite | its own        |
| zCDP            | 2ρ, as a μ-Gaussian release is μ²/2-zCDP                          | infinite | 0              |
| pure ε          | `gaussian_equivalent(ε)`², as every ε-DP release is μ-Gaussian-DP | ε        | 0              |
| free; unbounded | 0; refused, whatever the budget                                   | 0        | 0              |

and a budget (ε, δ) is a limit to one of the sums. Its *calculus* says which:

* **gaussian**: squares up to `mu_for(ε, δ)`², exact for Gaussians (Smith and Thakurta 2022: a Gaussian-DP filter);
* **zcdp**: squares up to 2ρ, ρ the largest that converts to (ε, δ); smaller (Feldman and Zrnic 2021: a Rényi filter);
* **pure**: ε up to ε. A single pure ε is a poor Gaussian (ε=1 becomes ε=6 at δ=1e-6), so this suits randomised labels.

The calculus is fixed before the first release. Choosing the limit release by release would be no filter: who may change
the yardstick after seeing outputs can spend δ under each. So zCDP in a Gaussian budget, pure ε in a zCDP one and
anything but pure ε in a pure one are errors.

**Slack.** Secure noise is a Gaussian only up to a total-variation distance, the event's *slack*. Let M bound the sum
of squares and S the sum of slacks on every path that a run can take. Couple the real releases with exact Gaussian ones:
given the same past, the next two differ with probability at most the slack, so all are equal but with probability S
under either data set, and for any set A of outputs

    P(A) ≤ P°(A) + S ≤ e^ε·Q°(A) + δ°(ε; M) + S ≤ e^ε·Q(A) + δ°(ε; M) + (1 + e^ε)·S,     P°, Q° the exact releases,

δ° being the curve of the budget's calculus, Gaussian or zCDP. (An exact discrete Gaussian would be (μ²/2)-zCDP itself;
our sampler is exact only up to a total variation, which is part of the slack: see `discrete`.) So a budget admits as
much as (ε, δ − (1+e^ε)·S) does without slack. M and S must be constants: who may trade one for the other after seeing
outputs gives up squares where they would be worth little and keeps them where they matter. Hence a budget fixes its S,
as it fixes its calculus, before the first release that has slack, as large as that run needs and not less than
`HEADROOM` of δ where there is room, so that others fit later. If releases without slack were charged before, such as
by 0.1.0 in zCDP, that choice came after outputs, and δ may be passed by what S takes of it: (1+e^ε)·S, that is
`HEADROOM` of δ, or the first run's own need where that is larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from confide.errors import ConfideError
from confide.privacy.accounting import Total, distinguish, epsilon, gaussian_equivalent
from confide.privacy.calibration import mu_for
from confide.privacy.events import EVERYONE, ZCDP, Event, Free, Gaussian, Kind, PureDP
from confide.privacy.roots import root

GAUSSIAN, RHO, PURE = CALCULI = ("gaussian", "zcdp", "pure")
ROW: Kind = ("row", "replace", EVERYONE)

# A calibrated run meets its limit up to the last digits. Limits to squares lie 2e-12 below the exact value (as `mu_for`
# does), so that this tolerance never reaches past the budget; a pure sum may pass ε by 1e-12·ε, that is a δ of 1e-12·ε.
TOLERANCE = 1e-12
_MARGIN = 2e-12
_ROUND_UP = 1 + 1e-14
HEADROOM = 2.0**-30  # of δ, for slack: at ε=1 and δ=1e-6 four billion numbers of secure noise; takes 1e-10 of ε


NOTHING = "nothing was charged"  # how a refusal ends


class BudgetExceeded(ConfideError):
    """A release that the owner's budget does not cover: it was not charged, and may not be made."""


class Cost(NamedTuple):
    """What is added to each of the sums."""

    square: float
    pure: float
    slack: float = 0.0

    def on(self, calculus: str) -> float:
        return self.pure if calculus == PURE else self.square

    @classmethod
    def sum(cls, costs: Iterable[Cost]) -> Cost:
        """Correctly rounded, so that no small cost is lost beside large ones."""
        costs = list(costs)
        return cls(*(added(cost[k] for cost in costs) for k in range(len(cls._fields))))


@dataclass(frozen=True)
class Bill:
    """What one release, or a whole run, costs by kind, and what it is made of."""

    costs: dict[Kind, Cost]
    parts: dict[Kind, frozenset[str]]  # of "gaussian", "zcdp", "pure"

    @classmethod
    def of(cls, events: Iterable[Event]) -> Bill:
        """The bill of one round of one agent, rounded up, so that no rounding ever under-counts.

        What is stated against a coalition is also a cost against everyone.
        """
        groups: dict[Kind, list[Event]] = {}
        for event in events:
            Total.of([event])  # an unknown event is an error
            if not isinstance(event, Free):
                for one in dict.fromkeys((event, event.everyone)):
                    if one is not None:
                        groups.setdefault(one.kind, []).append(one)
        bill = cls({}, {})
        for kind, group in groups.items():
            total = Total.of(group)
            gaussian, rho, pure = float(total.gaussian), float(total.zcdp), [float(e) for e in total.pure]
            equal = [float(gaussian_equivalent(e)) for e in pure]
            square = math.nextafter(added([gaussian, 2 * rho, *(mu * mu for mu in equal)]) * _ROUND_UP, math.inf)
            slack = _up(added(float(getattr(e, "slack", 0.0)) for e in group))
            if not math.isfinite(square + slack):
                raise BudgetExceeded(f"no budget covers {group[-1]!r}: a release needs a bound and noise")
            mixed = len(pure) < len(group)
            bill.costs[kind] = Cost(square, math.inf if mixed else math.nextafter(added(pure), math.inf), slack)
            used = {GAUSSIAN: mixed and not rho, RHO: rho > 0, PURE: any(pure)}
            bill.parts[kind] = frozenset(name for name, there in used.items() if there)
        return bill

    def against(self, kind: Kind) -> tuple[Cost, frozenset[str]] | None:
        """Cost and parts for a budget of this kind: as stated, else as against everyone, whom no coalition exceeds."""
        for known in (kind, everyone(kind)):
            if known in self.costs:
                return self.costs[known], self.parts[known]
        return None

    def times(self, count: int) -> Bill:
        """So often, rounded up."""
        costs = {kind: Cost(*(_up(amount * count) if amount and count else 0.0 for amount in cost))
                 for kind, cost in self.costs.items()}  # fmt: skip
        return Bill(costs, self.parts)

    @classmethod
    def largest(cls, bills: Iterable[Bill]) -> Bill:
        """What no single one of them exceeds."""
        bills = list(bills)
        whole = cls.sum(bills)
        costs = {kind: Cost(*map(max, zip(*(b.costs[kind] for b in bills if kind in b.costs), strict=True)))
                 for kind in whole.costs}  # fmt: skip
        return cls(costs, whole.parts)

    @classmethod
    def sum(cls, bills: Iterable[Bill]) -> Bill:
        """The bill of several rounds."""
        bills = list(bills)
        kinds = dict.fromkeys(kind for bill in bills for kind in bill.costs)
        return cls(
            {kind: Cost.sum(bill.costs[kind] for bill in bills if kind in bill.costs) for kind in kinds},
            {kind: frozenset().union(*(bill.parts.get(kind, frozenset()) for bill in bills)) for kind in kinds},
        )


def everyone(kind: Kind) -> Kind:
    """The same unit and adjacency, against everyone."""
    return kind[0], kind[1], EVERYONE


def check_stated(events: Iterable[Event]) -> None:
    """One line for a release that does not say what it costs against everyone: no budget would notice it."""
    for event in events:
        if event.everyone is None and not isinstance(event, Free):
            raise ConfideError(
                f"{event!r}: says what it costs against {event.adversary!r}, not against everyone; a ledger needs both"
            )


def of_agent(events: Iterable[Event], agent: int | None) -> list[Event]:
    """The events of one agent: of parameters with one value per agent, the agent's own."""
    out = []
    for event in events:
        arrays = {name: value for name in event.rules if np.ndim(value := getattr(event, name))}
        if arrays and agent is None:
            raise ConfideError(f"{event!r} has one value per agent: say which with agent=")
        for value in arrays.values():
            if not 0 <= (agent or 0) < np.size(value):
                raise ConfideError(f"agent {agent} of {np.size(value)}: must be 0 to {np.size(value) - 1}")
        own: dict[str, Any] = {name: float(value[agent]) for name, value in arrays.items()}
        out.append(replace(event, **own) if own else event)
    return out


def check_addable(population: str, kind: Kind, calculus: str | None, parts: frozenset[str]) -> None:
    """One line where a release does not add to the sum its budget is kept in."""
    counts = f"population {population!r} counts each {kind[0]} in"
    if calculus == GAUSSIAN and RHO in parts:
        raise ConfideError(f"{counts} Gaussian DP, to which zCDP does not add: see change_budget(calculus='zcdp')")
    if calculus == RHO and PURE in parts:
        raise ConfideError(f"{counts} zCDP, to which pure ε does not add: charge Gaussian(gaussian_equivalent(ε), 1)")
    if calculus == PURE and parts - {PURE}:
        raise ConfideError(f"{counts} pure ε, to which nothing else adds: see change_budget(calculus='gaussian')")


def added(amounts: Iterable[float]) -> float:
    """The correctly rounded sum; infinite beyond all doubles."""
    try:
        return math.fsum(amounts)
    except OverflowError:
        return math.inf


def _up(amount: float) -> float:
    """Not below the exact sum; nothing stays nothing."""
    return math.nextafter(amount * _ROUND_UP, math.inf) if amount > 0 else 0.0


def lost(epsilon: float, slack: float) -> float:
    """(1 + e^ε)·slack: what slack takes of δ."""
    if slack == 0:
        return 0.0
    return _up((1 + math.exp(epsilon)) * slack) if epsilon < 700 else math.inf


@lru_cache(maxsize=1024, typed=True)  # True is not 1 here
def limit(epsilon: float, delta: float, calculus: str = GAUSSIAN, slack: float = 0.0) -> float:
    """Largest sum of costs that (ε, δ) allows; of squares beside this total `slack`."""
    if calculus not in CALCULI:
        raise ConfideError(f"calculus={calculus!r}: must be one of {', '.join(CALCULI)}")
    exact = float(mu_for(epsilon, delta)) ** 2  # one line for ε or δ out of range
    if calculus == PURE:
        return float(epsilon)
    if slack:
        rest = math.nextafter(delta - lost(epsilon, slack), 0.0)
        return limit(epsilon, rest, calculus) if rest > 0 else 0.0
    if calculus == GAUSSIAN:
        return exact
    # ρ + 2√(ρ·ln 1/δ) bounds ε from above, the exact Gaussian curve from below: the root lies between.
    far = math.sqrt(-math.log(delta))
    low = max((epsilon / (math.sqrt(epsilon + far**2) + far)) ** 2, 1e-200)  # below, ε is not told apart
    high = exact / 2 * (1 + 1e-9)
    if _converted(2 * low, delta, RHO) >= epsilon:
        return 0.0
    rho = root(lambda rho: _converted(2 * rho, delta, RHO) - epsilon, low, high, xtol=1e-300, rtol=1e-15)
    return 2 * rho * (1 - _MARGIN)


def headroom(epsilon: float, delta: float) -> float:
    """The slack that takes `HEADROOM` of δ."""
    return HEADROOM * delta * math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _events(amount: float, calculus: str) -> list[Event]:
    """One event that costs `amount`."""
    match calculus:
        case "gaussian":
            return [Gaussian(math.sqrt(amount), 1.0)]
        case "zcdp":
            return [ZCDP(amount / 2)]
    return [PureDP(amount)]


def events_of_cost(amount: float, calculus: str, kind: Kind, slack: float = 0.0) -> list[Event]:
    """Events of this kind that cost `amount`, and `slack`, which only a Gaussian event can carry."""
    loose = [Gaussian(0.0, 1.0, slack=slack)] if slack and calculus != PURE else []
    return [replace(event, unit=kind[0], adjacency=kind[1], adversary=kind[2])
            for event in [*_events(amount, calculus), *loose]]  # fmt: skip


def _converted(amount: float, delta: float, calculus: str, slack: float = 0.0) -> float:
    """ε of an amount; with slack the least ε for which δ°(ε) + (1+e^ε)·slack ≤ δ, infinite if there is none."""
    if not math.isfinite(amount):
        return math.inf
    if calculus == PURE or slack == 0:
        return amount if amount == 0 or calculus == PURE else float(epsilon(_events(amount, calculus), delta))

    def needed(guess: float) -> float:  # rises with the guess: from below, it climbs to the least that needs no more
        rest = math.nextafter(delta - lost(guess, slack), 0.0)
        return math.inf if rest <= 0 else _converted(amount, rest, calculus)

    found, step = 0.0, 1e-14
    while (more := needed(found)) > found:
        found, step = more * (1 + step), 2 * step  # where it climbs slowly a little too much is taken, and still valid
    return found


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
    slack: float = 0.0  # total variation kept for secure noise; none in pure ε
    spent_slack: float = 0.0

    @property
    def limit(self) -> float:
        return limit(self.epsilon, self.delta, self.calculus, self.slack)

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.spent - self.held)

    @property
    def spent_epsilon(self) -> float:
        """ε at the budget's δ of everything charged."""
        return _converted(self.spent, self.delta, self.calculus, self.spent_slack)

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
        if not math.isfinite(self.spent):
            return 1.0
        # (1 + e^ε)·slack at e^ε = m/(1−m), times 1−m: the slack itself
        return min(1.0, float(distinguish(_events(self.spent, self.calculus), prior)) + self.spent_slack)

    def __str__(self) -> str:
        return f"ε={self.epsilon:g} at δ={self.delta:g}"
