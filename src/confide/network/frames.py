"""Frames of a private sum: what one member hands to its parent or its children in a tree, signed.

They are frames of `wire` that hold whole numbers, with a phase within the round and an attempt:

    header of `wire` | salt 16 | heard 32 | payload | signature 64

The header's phase holds a *stage*, too: the members of a run may change, and what they say to each other begins anew
with every change.

`heard` is the sender's hash of everything that all must have in common so far: the key list, then each total
(`private_sum`); so a parent and a child who differ find out with the next frame. The payload is 64-bit integers, or the
bytes of keys and signatures.

Every frame has one form: rounds, attempts and hashes that mean nothing in a phase are zero, and decoding refuses all
else. A frame is exactly what was asked for, or one line says why not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import Card, Identity

NOTHING = bytes(32)  # heard so far
LAST_ROUND, LAST_ATTEMPT = 2**20 - 1, 2**9 - 1  # so that a place within a stage is a number of 32 bits
LAST_STAGE = 2**13 - 1


class Phase(IntEnum):
    """What a frame carries, and which way: up to the parent, or down to the children."""

    KEYS_UP = 1
    KEYS_DOWN = 2
    AGREED_UP = 3
    AGREED_DOWN = 4
    AGAIN = 5  # to all neighbours: the round begins again, as this attempt
    SUM_UP = 6
    SUM_DOWN = 7

    @property
    def up(self) -> bool:
        return self in (Phase.KEYS_UP, Phase.AGREED_UP, Phase.SUM_UP)

    @property
    def down(self) -> Phase:
        """The same content on its way down."""
        return Phase(self + 1) if self.up else self


Key = tuple[Phase, int, int]


@dataclass(frozen=True)
class Place:
    """Where a frame belongs. In a later stage a sum of round 0, without an attempt, is how far everyone is."""

    phase: Phase
    round: int = 0
    attempt: int = 0
    heard: bytes = NOTHING
    stage: int = 0

    def __post_init__(self) -> None:
        standing = self.stage > 0 and self.phase >= Phase.SUM_UP and self.round == self.attempt == 0
        sums, keys = self.phase >= Phase.AGAIN and not standing, self.phase <= Phase.KEYS_DOWN
        if not 0 <= self.stage <= LAST_STAGE:
            raise ConfideError(f"stage {self.stage}: must be from 0 to {LAST_STAGE}")
        if not (0 <= self.round <= LAST_ROUND and 0 <= self.attempt <= LAST_ATTEMPT):
            raise ConfideError(
                f"round {self.round}, attempt {self.attempt}: must be from 0 to {LAST_ROUND}, {LAST_ATTEMPT}"
            )
        if len(self.heard) != len(NOTHING):
            raise ConfideError(f"heard so far: {len(self.heard)} bytes, must be {len(NOTHING)}")
        if (self.attempt > 0) != sums or (sums and self.round == 0):
            raise ConfideError(f"{self}: sums have rounds and attempts from 1, other frames have no attempt")
        if keys and (self.round > 0 or self.heard != NOTHING):
            raise ConfideError(f"{self}: keys are shown before round 1, and nothing was heard before them")

    @property
    def key(self) -> Key:
        return self.phase, self.round, self.attempt

    @property
    def number(self) -> int:
        """What a neighbour asks for it by."""
        return wire.number(self.round, self.sort, self.attempt)

    @property
    def sort(self) -> int:
        """Stage and phase, as the header of a frame has them."""
        return self.stage << wire.PHASE_BITS | self.phase

    def __str__(self) -> str:
        again = f", stage {self.stage}" if self.stage else ""
        return f"{self.phase.name.lower().replace('_', ' ')}, round {self.round}, attempt {self.attempt}{again}"


def place_of(number: int) -> Key:
    """Phase, round and attempt that a neighbour asks for, if they mean anything."""
    stage = wire.stage_in(number)
    try:
        return Place(Phase(number & 7), wire.round_in(number), number >> 3 & LAST_ATTEMPT, stage=stage).key
    except ValueError:
        raise ConfideError(f"number {number}: no place of a frame") from None


def frame_size(payload: int) -> int:
    """Bytes of a frame with so many bytes of payload."""
    return wire.frame_size((len(NOTHING) + payload) // 8)


def pack(identity: Identity, run: bytes, place: Place, payload: bytes) -> bytes:
    """The signed frame."""
    if len(payload) % 8:
        raise ConfideError(f"payload of {len(payload)} bytes: must be a multiple of 8")
    return wire.pack(identity, run, place.round, place.heard + payload, kind=wire.Numbers.WHOLE, phase=place.sort,
                     attempt=place.attempt)  # fmt: skip


class Differs(ConfideError):
    """A frame with its sender's valid signature that shows that not everybody heard the same."""


def unpack(frame: bytes, sender: Card, run: bytes, place: Place, size: int) -> bytes:
    """The payload, if this is `sender`'s frame of that run and place with `size` bytes of it."""
    wire.unpack(frame, sender, run, place.round, (len(NOTHING) + size) // 8, kind=wire.Numbers.WHOLE, phase=place.sort,
                attempt=place.attempt)  # fmt: skip
    if heard_of(frame) != place.heard:  # last: the signature is the evidence
        raise Differs(
            f"{sender.name} has heard something else than we have before {place}: a member told different things to "
            "different members; begin another run"
        )
    return payload_of(frame)


def is_whole(frame: bytes) -> bool:
    """Whether a frame that was checked before still has its numbers (`node.compaction`)."""
    return wire.form_of(frame) == wire.Form.WHOLE


def heard_of(frame: bytes) -> bytes:
    """Of a frame that was checked before."""
    return wire.payload_of(frame)[: len(NOTHING)]


def payload_of(frame: bytes) -> bytes:
    """Of a frame that was checked before, such as one in the journal."""
    return wire.payload_of(frame)[len(NOTHING) :]


def source(frame: bytes) -> tuple[bytes, Place]:
    """(sender, place) of a frame, which must at least have a header of one form; its signature is not checked."""
    if len(frame) < frame_size(0):
        raise ConfideError(f"frame of {len(frame)} bytes: must be {frame_size(0)} or more")
    round, sort, attempt = wire.place(frame) if wire.version_of(frame) == wire.VERSION else (0, 0, 0)
    stage, phase = divmod(sort, 1 << wire.PHASE_BITS)
    whole = wire.is_frame(frame) and (wire.kind_of(frame), wire.form_of(frame)) == (wire.Numbers.WHOLE, wire.Form.WHOLE)
    if not whole or phase not in set(Phase):
        raise ConfideError(f"not a frame of a private sum: it begins with {frame[:8].hex()}")
    return wire.source(frame)[0], Place(Phase(phase), round, attempt, heard_of(frame), stage)
