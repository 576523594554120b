"""Witnesses: what everyone heard of everyone, so that nobody can tell one neighbour this and another that.

A frame of round t carries a *statement* (`network.wire`, 96 bytes: commitment and signature) of every other party's
frame: that of a party d links away is of round t - d, the latest that can have come this far. So each frame's statement
reaches all parties along all shortest ways, and two different ones of one sender and round meet where these ways do: at
the latest after as many rounds as the network is wide. Both carry the sender's signature, which makes them proof to
anyone who has the sender's card, and nothing else ends a run. A statement without a valid signature is the fault of the
neighbour who passed it on: an honest one checks before it does.

So a node verifies each statement once, whoever brings it: the same 96 bytes again need no other look. To wait until two
differ would be cheaper, and weaker. Where all shortest ways to an honest node lead through liars they could hand it
something that nobody signed; unverified, it would pass that on in the one frame that has a place for it, and two honest
neighbours, each with another true statement of one sender, would compare twice the same invention.

With a hub there are no ways around it, and no statements: `confide node compare` lays two parties' journals side by
side.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import Card
from confide.node.federation import Federation

_ALARM = struct.Struct(f"<II{wire.STATEMENT}s{wire.STATEMENT}s")
ALARM_SIZE = _ALARM.size
UNKNOWN = bytes(wire.STATEMENT)


class Contradiction(Exception):
    """Two valid signatures of one party for one round, of different messages."""

    def __init__(self, federation: Federation, party: int, round: int, first: bytes, second: bytes) -> None:
        self.party, self.round, self.pair = federation.founding.parties[party], round, (first, second)
        self.alarm = _ALARM.pack(party, round, first, second)
        self._federation = federation
        super().__init__(
            f"{self.party} signed two different messages for round {round}: "
            "its neighbours were told different things, and the run cannot be trusted"
        )

    def evidence(self) -> str:
        """All that anyone needs to check it, as JSON."""
        now = next(now for now in reversed(self._federation.history) if self.party in now.cards)
        card = now.cards[self.party]
        return json.dumps({
            "what": str(self), "federation": self._federation.digest.hex(),
            "heads": [one.head.hex() for one in self._federation.history], **card.to_json(), "round": self.round,
            "numbers": int(widths(self._federation)[self.round - 1]), "statements": [one.hex() for one in self.pair],
        }, indent=2)  # fmt: skip


class Witness:
    """What member `name` knows of the others' frames."""

    def __init__(self, federation: Federation, name: str) -> None:
        self.federation, self.name = federation, name
        self.parties = federation.founding.parties  # whose numbers stay when one of them leaves
        self._number = {name: k for k, name in enumerate(self.parties)}
        self._known: dict[tuple[int, int], bytes] = {}  # (party, round) -> statement
        self._oldest = 1
        self._away = distances(federation)
        self.reach = int(self._away.max()) if self._away.size else 0

    def told(self, sender: str, t: int, under: Federation | None = None) -> list[tuple[int, int]]:
        """(party, round) of each statement in `sender`'s frame of round t, in order: public.

        `under` is what the frame's sender held to, this federation or one before an amendment.
        """
        now = under or self.federation
        if now.hub is not None:
            return []
        away = distances(now)[now.parties.index(sender)]
        return [(self._number[name], t - int(d)) for name, d in zip(now.parties, away, strict=True)
                if name != sender and t - d >= 1]  # fmt: skip

    def longest(self) -> int:
        """Statements in a frame at most, of earlier rounds too."""
        return 0 if self.federation.hub is not None else len(self.parties) - 1

    def statements(self, t: int) -> bytes:
        """What the own frame of round t carries."""
        return b"".join(self._known.get(key, UNKNOWN) for key in self.told(self.name, t))

    def check(self, sender: str, t: int, frame: bytes) -> None:
        """Take the statements of a checked frame; raises a Contradiction, or an error if one of them is not valid."""
        for (party, round), one in self._of(sender, t, frame):
            known = self._known.get((party, round))
            if one == known:
                continue
            if one == UNKNOWN and len(self.federation.stages) > 1:
                continue  # links changed, and word that takes another way comes later
            own = self.parties[party] == sender  # its frame was checked
            if not own and not valid(self.federation, party, round, one):
                raise wire.Outside(f"frame states what {self.parties[party]} did not sign in round {round}")
            if known is not None:
                if known[: wire.COMMITMENT] == one[: wire.COMMITMENT]:
                    continue  # signed twice, and the same
                if not self._counts(party, round, one):
                    continue  # whoever has a revoked key can sign anything
                if self._counts(party, round, known):
                    raise Contradiction(self.federation, party, round, known, one)
            if round >= self._oldest:
                self._known[party, round] = one

    def recall(self, sender: str, t: int, frame: bytes) -> None:
        """Take the statements of a frame in the journal, which was checked when it came: what `check` knew then."""
        if wire.version_of(frame) == wire.VERSION:
            for key, one in self._of(sender, t, frame):
                known = self._known.get(key)
                if one != UNKNOWN and (known is None or self._gives_way(*key, known, one)):
                    self._known[key] = one

    def _of(self, sender: str, t: int, frame: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
        if self.federation.hub is None:
            under = self.federation.under(wire.run_of(frame))
            yield (self._number[sender], t), wire.statement(frame)
            yield from zip(self.told(sender, t, under), wire.statements(frame), strict=False)

    def forget(self, t: int) -> None:
        """Round t is complete: what was said longer ago than it takes to go round is of no more use."""
        self._oldest = max(1, t - 2 * self.reach)
        for key in [key for key in self._known if key[1] < self._oldest]:
            del self._known[key]

    def _counts(self, party: int, round: int, one: bytes) -> bool:
        """Whether it is signed by one who is still a member, with a key that is still its own."""
        return valid(self.federation, party, round, one, revoked=False)

    def _gives_way(self, party: int, round: int, known: bytes, one: bytes) -> bool:
        """Whether what is known is of a revoked key, which hides nothing that a key in force has signed."""
        other = known[: wire.COMMITMENT] != one[: wire.COMMITMENT]
        return other and not self._counts(party, round, known) and self._counts(party, round, one)

    def believe(self, alarm: bytes) -> Contradiction:
        """The contradiction that a neighbour shows, if it is one."""
        if len(alarm) != ALARM_SIZE:
            raise ConfideError(f"alarm of {len(alarm)} bytes: must be {ALARM_SIZE}")
        party, round, first, second = _ALARM.unpack(alarm)
        if not (party < len(self.parties) and 1 <= round <= self.federation.algorithm.rounds
                and first[: wire.COMMITMENT] != second[: wire.COMMITMENT]
                and all(self._counts(party, round, one) for one in (first, second))):  # fmt: skip
            raise ConfideError("alarm without two valid signatures that contradict each other")
        return Contradiction(self.federation, party, round, first, second)


def valid(federation: Federation, party: int, round: int, one: bytes, *, revoked: bool = True) -> bool:
    """Whether this party, by its number in the file, signed a frame of that round with this statement.

    It may have held to the file or to any amendment. Members that left since and keys that were revoked count unless
    `revoked` is False.
    """
    name = federation.founding.parties[party]
    last: Card | None = federation.cards.get(name)
    return any(
        wire.stated(one, now.cards[name], now.head, round, int(widths(now)[round - 1]))
        for now in reversed(federation.history)  # most are of the last
        if name in now.cards and round <= now.algorithm.rounds
        and (revoked or (last is not None and now.cards[name].digest == last.digest))
    )  # fmt: skip


@lru_cache(maxsize=8)
def widths(federation: Federation) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Numbers in a message, by round."""
    return np.asarray(federation.algorithm.schedule(federation.public).widths)


@lru_cache(maxsize=8)
def distances(federation: Federation) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Links between any two parties, (K, K)."""
    if federation.hub is not None:
        return np.zeros((0, 0), np.int64)
    from scipy.sparse.csgraph import shortest_path

    return np.asarray(shortest_path(federation.graph.adjacency, unweighted=True), np.int64)
