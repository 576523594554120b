"""What a ledger says of a population: its budgets, each with the runs charged to it and those that hold a part."""

from __future__ import annotations

from typing import Any

from confide.errors import ConfideError
from confide.privacy.budget import Balance, Cost
from confide.privacy.ledger import Entry, Ledger

PRIOR = 0.5


def statements(book: Ledger, population: str | None = None) -> list[dict[str, Any]]:
    """Of every population, or of one: tables and lists as JSON has them."""
    names = book.populations()
    if population is not None and population not in names:
        raise ConfideError(f"no population {population!r} in {book.path}: there are {', '.join(names) or 'none'}")
    return [statement(book, name) for name in names if population in (None, name)]


def statement(book: Ledger, population: str) -> dict[str, Any]:
    """Of one population."""
    entries, holds = book.entries(population), book.holds(population)
    budgets = []
    for balance in book.balances(population):
        unit, adjacency, adversary = balance.kind
        budgets.append({
            "unit": unit, "adjacency": adjacency, "adversary": adversary, "calculus": balance.calculus,
            "epsilon": balance.epsilon, "delta": balance.delta, "spent_epsilon": balance.spent_epsilon,
            "held_epsilon": balance.at(balance.held), "left_epsilon": balance.left_epsilon,
            "left_mu": balance.left_mu, "slack": balance.slack, "spent_slack": balance.spent_slack,
            "held": [
                {"run": hold.run, "party": hold.party, "epsilon": balance.at(hold.amount), "since": hold.at}
                for hold in holds if hold.kind == balance.kind
            ],
            "distinguish": {"prior": PRIOR, "probability": balance.distinguish(PRIOR)},
            "runs": _runs(balance, [entry for entry in entries if balance.kind in entry.costs]),
        })  # fmt: skip
    return {"name": population, "budgets": budgets}


def _runs(balance: Balance, entries: list[Entry]) -> list[dict[str, Any]]:
    """Each run, and what all its releases cost together."""
    runs: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        runs.setdefault((entry.run, entry.party), []).append(entry)
    return [
        {
            "run": run, "party": party, "method": mine[-1].method, "guarantee": mine[-1].guarantee,
            "rounds": len({e.round for e in mine}), "releases": len(mine), "first": mine[0].at, "last": mine[-1].at,
            "epsilon": balance.at(Cost.sum(e.costs[balance.kind] for e in mine).on(balance.calculus)),
        }
        for (run, party), mine in runs.items()
    ]  # fmt: skip
