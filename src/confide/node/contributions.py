"""Who contributed to which rounds of a run, by the word of one member's journal."""

from __future__ import annotations

from collections.abc import Sequence

from confide.network import wire
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.witness import UNKNOWN, Witness


def contributions(federation: Federation, journal: Journal, rounds: int, made: Sequence[int] = ()) -> str:
    """One line: who was there throughout, and until when those who left; `made` has the stage of each private sum."""
    stay = f"{', '.join(federation.parties)}: {_to(rounds)}"

    def last(name: str) -> int:
        if federation.summed:  # a sum holds the numbers of all who were members then, or there is none
            return sum(name in federation.stages[stage].cards for stage in made)
        return last_heard(federation, name, journal)

    gone = [
        f"{name}: {_to(last(name))}, left by amendment {left(federation, name)}"
        for name in federation.founding.parties if name not in federation.cards
    ]  # fmt: skip
    return "; ".join([stay, *gone])


def left(federation: Federation, name: str) -> int:
    """The number of the amendment after which a member is no longer there."""
    return next(k for k, now in enumerate(federation.history) if name not in now.cards)


def last_heard(federation: Federation, name: str, journal: Journal) -> int:
    """The last round of a member of which a message, or a neighbour's word of one, is in the journal; or 0."""
    founding = federation.founding
    last, number = journal.last(founding.cards[name].digest), founding.parties.index(name)
    names = {card.digest: one for one, card in founding.cards.items()}
    witness = Witness(federation, name)
    for sender, t, frame in journal.frames():
        told = witness.told(names[sender], t, federation.under(wire.run_of(frame)))
        stated = zip(told, wire.statements(frame), strict=False)
        last = max(last, *(round for (party, round), one in stated if party == number and one != UNKNOWN), 0)
    return last


def _to(last: int) -> str:
    return f"rounds 1 to {last}" if last else "no round"
