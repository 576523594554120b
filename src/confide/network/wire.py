"""One message on the wire: what it is, its numbers, what was heard of others, and the signature over all of it.

    header 84 = magic 4 | version 2 | kind 2 | run 32 | sender 32 | round 4 | phase 2 | attempt 2 | count 4
    frame     = header | salt 16 | count × 8 bytes | statements × 96 | signature 64                    little-endian

`run` is the federation's hash and `sender` the SHA-256 of the sender's certificate, so a frame means one thing only
and can settle a dispute by itself. Decoding is strict: a frame is exactly what was asked for, or one line says why not.

The signature is over the header and the *commitment*, SHA-256(salt | numbers | statements). So the commitment and the
signature, the frame's *statement* of 96 bytes, prove to anyone what its sender signed, and the salt keeps from those
who have not the frame whatever its numbers would tell. A frame carries the statements of what its sender heard of
others; two statements of one frame that differ prove a lie (`node.witness`).

A `kind` says what the 8 bytes are: doubles, or whole numbers of protocols that have `phase`s within a round and may
begin it anew (`attempt`): private sums, see `frames`. Version 1 had neither kinds nor statements; its frames are read
from old journals.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.network.identity import SIGNATURE, Card, Identity

Array = NDArray[np.float64]
MAGIC, VERSION = b"CNFD", 2
_HEADER = struct.Struct("<4sHH32s32sIHHI")
_FIRST = struct.Struct("<4sH32s32sII")  # of version 1
_REQUEST = struct.Struct("<32sQ")
SALT, COMMITMENT = 16, 32
STATEMENT = COMMITMENT + SIGNATURE
REQUEST_SIZE = _REQUEST.size
LARGEST_ROUND = 2**32 - 1
PHASE_BITS = 3


class Kind(IntEnum):
    """What the numbers of a frame are."""

    REAL = 0  # doubles, finite and in the public ball
    WHOLE = 1  # 64-bit integers


def frame_size(count: int, statements: int = 0) -> int:
    """Bytes of a frame with `count` numbers and so many statements."""
    return _HEADER.size + SALT + 8 * count + STATEMENT * statements + SIGNATURE


def pack(identity: Identity, run: bytes, round: int, payload: bytes, statements: bytes = b"", *,
         kind: Kind = Kind.REAL, phase: int = 0, attempt: int = 0) -> bytes:  # fmt: skip
    """The signed frame of a round."""
    count = len(payload) // 8
    head = _HEADER.pack(MAGIC, VERSION, kind, run, identity.card.digest, round, phase, attempt, count)
    body = os.urandom(SALT) + payload + statements
    return head + body + identity.sign(head + hashlib.sha256(body).digest())


def unpack(frame: bytes, sender: Card, run: bytes, round: int, count: int, radius: float = math.inf,
           statements: int = 0, *, kind: Kind = Kind.REAL, phase: int = 0, attempt: int = 0) -> bytes:  # fmt: skip
    """The payload, if this is `sender`'s frame of that run and round with `count` numbers and so many statements.

    Doubles must be finite and of norm ≤ `radius`. Cheap checks come first: who floods us with junk must not cost us a
    signature each; but what is only wrong by its values is a signed lie, so for them the signature comes first.
    """
    size = frame_size(count, statements)
    if len(frame) != size:
        raise ConfideError(f"frame of {len(frame)} bytes: must be {size}, for {count} numbers")
    magic, version, sort, of_run, who, t, step, again, n = _HEADER.unpack_from(frame)
    if magic != MAGIC:
        raise ConfideError(f"not a frame: it begins with {magic.hex()}")
    if version != VERSION:
        raise ConfideError(f"frame of version {version}: this program reads version {VERSION}")
    if of_run != run:
        raise ConfideError(f"frame of another run: {of_run.hex()[:16]}, this is {run.hex()[:16]}")
    if who != sender.digest:
        raise ConfideError(f"frame of another sender: {who.hex()[:16]}, expected {sender.name}")
    if t != round:
        raise ConfideError(f"frame of round {t}: asked for round {round}")
    if (sort, step, again) != (kind, phase, attempt):
        raise ConfideError(f"frame of kind {sort}, phase {step}, attempt {again}: must be {kind:d}, {phase}, {attempt}")
    if n != count:
        raise ConfideError(f"frame that claims {n} numbers: must be {count}")
    if not sender.verify(frame[-SIGNATURE:], frame[: _HEADER.size] + _commitment(frame)):
        raise ConfideError(f"frame is not signed by {sender.name}")
    if kind == Kind.REAL:
        check_ball(frame, count, radius)
    return payload_of(frame)


class Outside(ConfideError):
    """A frame with its sender's valid signature whose numbers no honest sender would send."""


def check_ball(frame: bytes, count: int, radius: float) -> None:
    values = np.frombuffer(frame, "<f8", count, _HEADER.size + SALT)
    if not np.isfinite(values).all():
        raise Outside("frame holds a value that is not finite")
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(values))
    if length > radius * (1 + 1e-9):  # an honest sender's rounding
        raise Outside(f"frame of norm {length:.3g}: must lie in the public ball of radius {radius:.3g}")


def authentic(frame: bytes, sender: Card, run: bytes) -> None:
    """Whether `sender` signed this frame in that run, whichever round it is of."""
    if len(frame) < frame_size(0):
        raise ConfideError(f"frame of {len(frame)} bytes: must be {frame_size(0)} or more")
    magic, version, _, of_run, who, *_ = _HEADER.unpack_from(frame)
    if (magic, version, of_run, who) != (MAGIC, VERSION, run, sender.digest):
        raise ConfideError(f"frame of another run, sender or version: must be of {sender.name} in {run.hex()[:16]}")
    if not sender.verify(frame[-SIGNATURE:], frame[: _HEADER.size] + _commitment(frame)):
        raise ConfideError(f"frame is not signed by {sender.name}")


def _commitment(frame: bytes) -> bytes:
    return hashlib.sha256(memoryview(frame)[_HEADER.size : -SIGNATURE]).digest()


def statement(frame: bytes) -> bytes:
    """What proves to others that its sender signed this frame, without its numbers: commitment and signature."""
    return _commitment(frame) + frame[-SIGNATURE:]


def stated(statement: bytes, sender: Card, run: bytes, round: int, count: int) -> bool:
    """Whether `sender` signed a frame of doubles of that round with this statement."""
    head = _HEADER.pack(MAGIC, VERSION, Kind.REAL, run, sender.digest, round, 0, 0, count)
    return sender.verify(statement[COMMITMENT:], head + statement[:COMMITMENT])


def statements(frame: bytes) -> list[bytes]:
    """The statements that a checked frame carries of others."""
    (count,) = struct.unpack_from("<I", frame, _HEADER.size - 4)
    rest = frame[_HEADER.size + SALT + 8 * count : -SIGNATURE]
    return [rest[at : at + STATEMENT] for at in range(0, len(rest), STATEMENT)]


def payload_of(frame: bytes) -> bytes:
    """The numbers of a frame that was checked before, such as one in the journal; of version 1, too."""
    if version_of(frame) == 1:
        return frame[_FIRST.size : -SIGNATURE]
    (count,) = struct.unpack_from("<I", frame, _HEADER.size - 4)
    return frame[_HEADER.size + SALT : _HEADER.size + SALT + 8 * count]


def run_of(frame: bytes) -> bytes:
    """Which run a frame says it belongs to, before anything of it is checked."""
    return frame[8:40]


def version_of(frame: bytes) -> int:
    return int.from_bytes(frame[4:6], "little")


def pack_request(run: bytes, round: int) -> bytes:
    return _REQUEST.pack(run, round)


def unpack_request(data: bytes) -> tuple[bytes, int]:
    """(run, round) that a neighbour asks for."""
    if len(data) != REQUEST_SIZE:
        raise ConfideError(f"request of {len(data)} bytes: must be {REQUEST_SIZE}")
    run, round = _REQUEST.unpack(data)
    return run, round


def number(round: int, phase: int, attempt: int) -> int:
    """What a frame of whole numbers is asked for by, and kept under: it rises with stage, round, attempt and phase.

    A phase has 3 bits; what is above them is the *stage*, which changes with the members of a run.
    """
    return (phase >> PHASE_BITS) << 32 | round << 12 | attempt << 3 | phase & (1 << PHASE_BITS) - 1


def round_in(number: int) -> int:
    """The round of that."""
    return number >> 12 & 2**20 - 1


def stage_in(number: int) -> int:
    """The stage of that."""
    return number >> 32


def source(frame: bytes) -> tuple[bytes, int]:
    """(sender, what it is asked for by) of a frame that was checked before: its round, or its `number`."""
    if version_of(frame) == 1:
        return _FIRST.unpack_from(frame)[3:5]
    _, _, kind, _, sender, round, phase, attempt, _ = _HEADER.unpack_from(frame)
    return sender, round if kind == Kind.REAL else number(round, phase, attempt)


def place(frame: bytes) -> tuple[int, int, int]:
    """(round, phase, attempt) of a frame that was checked before."""
    if version_of(frame) == 1:
        return _FIRST.unpack_from(frame)[4], 0, 0
    _, _, _, _, _, round, phase, attempt, _ = _HEADER.unpack_from(frame)
    return round, phase, attempt


def is_frame(data: bytes) -> bool:
    """Whether it is one of this version, as long as it says; its signature is not checked."""
    if len(data) < frame_size(0) or (data[:4], version_of(data)) != (MAGIC, VERSION):
        return False
    (count,) = struct.unpack_from("<I", data, _HEADER.size - 4)
    return (len(data) - frame_size(count)) % STATEMENT == 0 and len(data) >= frame_size(count)


def kind_of(frame: bytes) -> int:
    """Of a frame that was checked before."""
    return Kind.REAL if version_of(frame) == 1 else int.from_bytes(frame[6:8], "little")


SMALLEST = _FIRST.size + SIGNATURE  # bytes of the shortest frame there ever was


def signed_of_old(frame: bytes, sender: Card) -> bool:
    """Whether `sender` signed this frame of version 1."""
    return sender.verify(frame[-SIGNATURE:], frame[:-SIGNATURE])
