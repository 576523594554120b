"""What proves to every member of a private sum that not all of them hold the same keys and totals.

Who hears from a neighbour something that can't be ends the run, and shows all its neighbours why; who believes it ends
the run, too, and shows it on. So those who noticed nothing need not wait for a total that never comes. It is

* *two frames of one round* by different members who had heard different things before it: that of the neighbour, and
  the own one, or, where there is none, one without numbers that is signed for this. A member lied to one of the two, or
  one of them lies now;
* or *one frame* that hands on keys or signatures that are none. An honest member checks both, whichever way they go;
* or *two members' offers* of one key, each after its fingerprint: one of the two copied it, and nobody can tell which.

Each has valid signatures of members, and nothing else is believed: nobody but a member can end a run this way, as it
can at any time by silence, and it leaves its signature.

    alarm = length 4 | frame or offer | length 4 | frame or offer                         little-endian
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import Phase, Place
from confide.network.identity import Card
from confide.network.pairing import SHOWN, SIZE, Copied, KeyList
from confide.network.private_sum import handed_on
from confide.network.tree import SpanningTree

_LENGTH = struct.Struct("<I")
NOTHING = "alarm without valid signatures that contradict each other"


def pack(proof: Sequence[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(frame)) + frame for frame in proof)


def unpack(alarm: bytes) -> list[bytes]:
    """One or two frames, or two offers, as they were packed."""
    out: list[bytes] = []
    while alarm and len(out) < 3:
        size = _LENGTH.unpack_from(alarm)[0] if len(alarm) >= _LENGTH.size else len(alarm)
        out.append(alarm[_LENGTH.size : _LENGTH.size + size])
        alarm = alarm[_LENGTH.size + size :]
    sizes = [len(one) for one in out]
    if sizes != [SHOWN, SHOWN] and not (1 <= len(out) <= 2 and min(sizes) >= frames.frame_size(0)):
        raise ConfideError(f"alarm of {len(out)} frames: must be one or two, each whole")
    return out


class Found(Exception):
    """What an alarm proves: who signed it, one or both of two, one of whom lies; of which round, and what is wrong."""

    def __init__(self, party: str, round: int, why: str) -> None:
        self.party, self.round = party, round
        super().__init__(why)


def proven(proof: Sequence[bytes], run: bytes, stage: int, tree: SpanningTree, cards: Sequence[Card]) -> Found:
    """What these frames prove of a stage of a run; one line if it is nothing. `cards` are its members', by number."""
    if len(proof[0]) == SHOWN:
        return _copied(proof, run, cards)
    signed = [_signed(frame, run, stage, cards) for frame in proof]
    (first, place), name = signed[0], cards[signed[0][0]].name
    if len(signed) == 1:
        said = handed_on(proof[0], run, tree, first, cards)
        if said:
            return Found(name, place.round, said)
    else:
        (second, other) = signed[1]
        same = place.round == other.round and min(place.phase, other.phase) >= Phase.AGREED_UP
        if first != second and same and place.heard != other.heard:
            names = sorted((name, cards[second].name))
            return Found("-and-".join(names), place.round, (
                f"{' and '.join(names)} signed that they heard different things before round {place.round}: "
                "a member told different things to different members; begin another run"
            ))  # fmt: skip
    raise ConfideError(NOTHING)


def _copied(proof: Sequence[bytes], run: bytes, cards: Sequence[Card]) -> Found:
    """Who both offer one key, by their own signatures."""
    signed = {one[:SIZE]: one[SIZE:] for one in proof}
    try:
        KeyList.read(run, {card.digest: card for card in cards if card.digest in signed}, signed)
    except Copied as error:
        return Found("-and-".join(error.names), 0, str(error))
    raise ConfideError(NOTHING)


def _signed(frame: bytes, run: bytes, stage: int, cards: Sequence[Card]) -> tuple[int, Place]:
    """Who signed it, by number, and where it belongs."""
    who, place = frames.source(frame)
    found = next((k for k, card in enumerate(cards) if card.digest == who), None)
    if found is None or place.stage != stage:
        raise ConfideError(f"alarm by {who.hex()[:16]}, {place}: must be of a member, in stage {stage}")
    wire.authentic(frame, cards[found], run)
    return found, place
