"""Whether a release or a whole run fits a budget: questions inside a transaction of the ledger."""

from __future__ import annotations

from confide.errors import ConfideError
from confide.privacy.budget import (
    GAUSSIAN,
    NOTHING,
    PURE,
    RHO,
    TOLERANCE,
    Balance,
    Bill,
    BudgetExceeded,
    Cost,
    added,
    check_addable,
    everyone,
    headroom,
    limit,
)
from confide.privacy.events import EVERYONE, Kind
from confide.privacy.storage import (
    Budget,
    Connection,
    Key,
    append,
    budget_of,
    entries_of,
    kind_text,
    kinds_of,
    reserved_by,
    spent_by,
)


def admit(db: Connection, population: str, key: Key, bill: Bill, what: str, *, whole: bool,
          forced: bool = False) -> None:  # fmt: skip
    """Refuse a bill that does not fit beside what all others spent or hold, unless it is `forced`.

    The first one fixes the calculus, and the first with slack how much of it the budget keeps.
    """
    for kind, (cost, parts) in due(db, population, bill).items():
        budget = in_force(db, population, kind)
        calculus = budget.calculus or (RHO if RHO in parts else GAUSSIAN)
        check_addable(population, kind, calculus, parts)
        used, held, needed = sums(db, population, kind, column_of(calculus), key, cost.on(calculus), whole)
        slack, asked = budget.slack or 0.0, 0.0
        if calculus != PURE and (budget.slack is not None or cost.slack > 0):
            asked = added(sums(db, population, kind, "slack", key, cost.slack, whole)[1:])
            slack = kept(budget, calculus, asked, added([held, needed]))
        if (calculus, slack) != (budget.calculus, budget.slack or 0.0):
            append(db, "budgets", population=population, kind=kind, epsilon=budget.epsilon, delta=budget.delta,
                   calculus=calculus, slack=slack if slack > 0 else budget.slack)  # fmt: skip
        most = limit(budget.epsilon, budget.delta, calculus, slack) * (1 + TOLERANCE)
        if forced or (added([held, needed]) <= most and asked <= slack):
            continue
        now = Balance(population, kind, budget.epsilon, budget.delta, calculus, used, held, slack)
        waits = f" (ε={now.at(now.held):.4g} is held by other runs)" if now.held > 0 else ""
        hint = "; for pure ε alone, calculus='pure' counts less" if parts == {PURE} != {calculus} else ""
        seen = "" if kind[2] == EVERYONE else f" against {kind[2]}"
        if asked > slack:
            hint = f"; its noise has a slack of {asked:.3g} in all, {slack:.3g} is kept: change_budget(slack=…)"
        raise BudgetExceeded(
            f"population {population!r}: {what} costs ε={now.at(cost.on(calculus)):.4g}, and of {now} for each "
            f"{kind[0]}{seen} ε={now.left_epsilon:.4g} is left{waits}: {NOTHING}{hint}"
        )


def due(db: Connection, population: str, bill: Bill) -> dict[Kind, tuple[Cost, frozenset[str]]]:
    """What a bill costs every budget that it touches: everyone's, which must be there, and each coalition's that is."""
    kinds = [kind for kind in bill.costs if kind[2] == EVERYONE]
    kinds += [kind for kind in kinds_of(db, population) if kind[2] != EVERYONE]
    return {kind: found for kind in kinds if (found := bill.against(kind)) is not None}


def recorded(db: Connection, population: str, bill: Bill) -> dict[Kind, Cost]:
    """What is written down of a bill: all that it states, and what it costs each coalition that has a budget."""
    return bill.costs | {kind: cost for kind, (cost, _) in due(db, population, bill).items()}


def parts_charged(db: Connection, population: str, kind: Kind) -> frozenset[str]:
    """What a budget of this kind was charged for so far."""
    bill = Bill.sum(Bill.of(e.events) for e in entries_of(db, population))
    return frozenset().union(*(bill.parts.get(known, frozenset()) for known in (kind, everyone(kind))))


def calculus_before(db: Connection, population: str, kind: Kind) -> str | None:
    """How a coalition's new budget counts, unless the owner says: as everyone's does."""
    budget = None if kind[2] == EVERYONE else budget_of(db, population, everyone(kind))
    return None if budget is None else budget.calculus


def catch_up(db: Connection, population: str, kind: Kind, calculus: str | None) -> None:
    """A coalition's new budget begins with what was charged and is held: as stated, else as against everyone."""
    if kind[2] == EVERYONE:
        return
    check_addable(population, kind, calculus, parts_charged(db, population, kind))
    whole = kind_text(everyone(kind))
    for release, *sums in db.execute(
        "SELECT release, square, pure, slack FROM costs JOIN releases ON release = releases.id WHERE population = ? "
        "AND kind = ? AND release NOT IN (SELECT release FROM costs WHERE kind = ?) ORDER BY release",
        (population, whole, kind_text(kind)),
    ).fetchall():  # fmt: skip
        append(db, "costs", release=release, kind=kind, **Cost(*sums)._asdict())
    stated = reserved_by(db, population, kind)
    for (run, party), (_, cost) in reserved_by(db, population, everyone(kind)).items():
        if (run, party) not in stated:
            append(db, "reservations", population=population, run=run, party=party, kind=kind, **cost._asdict())


def sums(db: Connection, population: str, kind: Kind, column: str, key: Key, amount: float, whole: bool
         ) -> tuple[float, float, float]:  # fmt: skip
    """Spent by all; held by others; and what all would have spent with this amount, which may be a whole run's."""
    spent = spent_by(db, population, kind, column)
    rest = [max(0.0, getattr(cost, column) - spent.get(k, 0.0))
            for k, (_, cost) in reserved_by(db, population, kind).items() if k != key]  # fmt: skip
    own = spent.pop(key, 0.0)
    mine = max(own, amount) if whole else own + amount
    return added([*spent.values(), own]), added(rest), added([*spent.values(), mine])


def kept(budget: Budget, calculus: str, asked: float, squares: float) -> float:
    """What the budget keeps for slack: decided once, by the first bill that has any."""
    if budget.slack is not None:
        return budget.slack
    least = asked * (1 + TOLERANCE)  # the last digits of a sum depend on how it is grouped
    roomy = max(least, headroom(budget.epsilon, budget.delta))
    fits = squares <= limit(budget.epsilon, budget.delta, calculus, roomy) * (1 + TOLERANCE)
    return roomy if fits else least


def in_force(db: Connection, population: str, kind: Kind) -> Budget:
    """The budget; one line if there is none."""
    if budget := budget_of(db, population, kind):
        return budget
    raise ConfideError(f"population {population!r} has no budget for {'/'.join(kind)}: open_population sets it")


def balance(db: Connection, population: str, kind: Kind, calculus: str | None = None) -> Balance:
    """What is spent, held and left, in the budget's calculus or another."""
    budget = in_force(db, population, kind)
    calculus = calculus or budget.calculus or GAUSSIAN
    spent = spent_by(db, population, kind, column_of(calculus))
    held = added(max(0.0, cost.on(calculus) - spent.get(k, 0.0))
                     for k, (_, cost) in reserved_by(db, population, kind).items())  # fmt: skip
    slack = (0.0, 0.0)
    if calculus != PURE:
        slack = (budget.slack or 0.0, added(spent_by(db, population, kind, "slack").values()))
    return Balance(population, kind, budget.epsilon, budget.delta, calculus, added(spent.values()), held, *slack)


def column_of(calculus: str) -> str:
    """The sum that a calculus limits."""
    return "pure" if calculus == PURE else "square"
