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
    return max(journal.last(federation.founding.cards[name].digest), last_word(federation, name, journal)[0])


def last_word(federation: Federation, name: str, journal: Journal) -> tuple[int, tuple[bytes, int] | None]:
    """The last round of a member of which others' frames here say a word, and (sender, round) of the first of them."""
    founding = federation.founding
    number, names = founding.parties.index(name), {card.digest: one for one, card in founding.cards.items()}
    witness, last, where = Witness(federation, name), 0, None
    for sender, t, frame in journal.frames():
        told = witness.told(names[sender], t, federation.under(wire.run_of(frame)))
        for (party, round), one in zip(told, wire.statements(frame), strict=False):
            if party == number and one != UNKNOWN and round > last:
                last, where = round, (sender, t)
    return last, where


def _to(last: int) -> str:
    return f"rounds 1 to {last}" if last else "no round"
