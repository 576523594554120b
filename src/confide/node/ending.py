"""Ending a run that nobody goes on with: what it released is charged first, by its journal's word or by the owner's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.privacy import Free
from confide.privacy.budget import events_of_cost
from confide.privacy.events import EVERYONE
from confide.privacy.ledger import Ledger


def end_run(book: Ledger, run: str, population: str | None, journal: Path | None, released: int | None
            ) -> list[dict[str, Any]]:  # fmt: skip
    """Charge what the run released and was not charged for, then give back what it holds; what was done.

    population   only this one; None: every population that the run was charged to
    journal      the run's folder in its node's home, whose journal says what was released
    released     without a journal: the owner's word that rounds 1 to so many were released, and no more
    """
    if (journal is None) == (released is None):
        given = "neither of" if journal is None else "both"
        raise ConfideError(
            f"--end {run} with {given} --journal and --released: give one, which says what the run released"
        )
    found = [(name, party) for name, party in book.who(run) if population in (None, name)]
    if journal is not None:
        from confide.node.closing import Closing

        word = Closing.read(journal, run)
        found = [(name, party) for name, party in found if party == word.party] or (
            [] if population is None else [(population, word.party)])  # fmt: skip
    if not found:
        where = "" if population is None else f" of {population!r}"
        raise ConfideError(f"no run {run!r}{where} in {book.path}: see `confide account`")
    if released is not None and released < 0:
        raise ConfideError(f"--released {released}: must be 0 or more")
    out = []
    with book.together():  # for all populations, or for none
        for name, party in found:
            before = {b.kind: b for b in book.balances(name)}
            if journal is not None:
                done = book.settle(name, run, word.released(), party=party, method=word.method,
                                   guarantee=word.guarantee)  # fmt: skip
            else:
                assert released is not None
                done = _by_word(book, name, run, party, released)
            holds = [h for h in book.holds(name) if (h.run, h.party) == (run, party)]
            book.end(name, run, party=party)
            if journal is not None:
                word.forget()
            out.append({
                "population": name, "run": run, "party": party, "rounds": len(book.attempts(name, run, party=party)),
                "charged_now": [{"round": t, "attempt": a} for t, a in done],
                "given_back": [{"unit": h.kind[0], "epsilon": before[h.kind].at(h.amount)} for h in holds],
            })  # fmt: skip
    return out


def _by_word(book: Ledger, population: str, run: str, party: str, released: int) -> list[tuple[int, int]]:
    """Charge rounds 1 to `released`. What the missing ones cost is not known: all that the run holds covers them."""
    charged = book.attempts(population, run, party=party)
    missing = [t for t in range(1, released + 1) if t not in charged]
    if not missing:
        return []
    calculi = {balance.kind: balance.calculus for balance in book.balances(population)}
    holds = {h.kind: h for h in book.holds(population) if (h.run, h.party) == (run, party)}
    events = [event for h in holds.values() if h.kind[2] == EVERYONE  # and a coalition pays as if it were everyone
              for event in events_of_cost(h.amount, calculi[h.kind], h.kind, h.slack)]  # fmt: skip
    if not events:
        raise ConfideError(f"run {run!r} holds nothing, and what round {missing[0]} cost is not known: give --journal")
    first, *rest = missing
    return book.settle(population, run, [(first, 1, events), *((t, 1, [Free()]) for t in rest)], party=party,
                       guarantee="assumed: charged by the owner's word, all that the run held")  # fmt: skip
