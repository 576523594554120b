"""One message on the wire: what it is, its numbers, what was heard of others, and the signature over all of it.

    header 84 = magic 4 | version 2 | kind 2 | run 32 | sender 32 | round 4 | phase 2 | attempt 2 | count 4
    frame     = header | salt 16 | count × 8 bytes | statements × 96 | signature 64                    little-endian

`run` is the federation's hash and `sender` the SHA-256 of the sender's certificate, so a frame means one thing only
and can settle a dispute by itself. Decoding is strict: a frame is exactly what was asked for, or one line says why not.

The signature is over the header and the *commitment*, SHA-256(salt | numbers | SHA-256(statements)). So the commitment
and the signature, the frame's *statement* of 96 bytes, prove to anyone what its sender signed, and the salt keeps from
those who have not the frame whatever its numbers would tell. A frame carries the statements of what its sender heard of
others; two statements of one frame that differ prove a lie (`node.witness`).

A frame that was kept for long may be shorter, and its signature still proves what it was (`node.compaction`). The
second byte of its kind, which is 0 when it is signed, says what was left out:

    without statements    header | salt | count × 8 bytes | SHA-256(statements) 32 | signature
    without numbers       header | commitment 32 | signature

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
PHASE_BITS = 3


class Numbers(IntEnum):
    """What the numbers of a frame are."""

    REAL = 0  # doubles, finite and in the public ball
    WHOLE = 1  # 64-bit integers


class Form(IntEnum):
    """What a kept frame still has."""

    WHOLE = 0
    NUMBERS = 1  # no statements
    SEAL = 2  # nothing but header, commitment and signature


def frame_size(count: int, statements: int = 0) -> int:
    """Bytes of a frame with `count` numbers and so many statements."""
    return _HEADER.size + SALT + 8 * count + STATEMENT * statements + SIGNATURE


def pack(identity: Identity, run: bytes, round: int, payload: bytes, statements: bytes = b"", *,
         kind: Numbers = Numbers.REAL, phase: int = 0, attempt: int = 0) -> bytes:  # fmt: skip
    """The signed frame of a round."""
    count = len(payload) // 8
    head = _HEADER.pack(MAGIC, VERSION, kind, run, identity.card.digest, round, phase, attempt, count)
    body = os.urandom(SALT) + payload
    return head + body + statements + identity.sign(head + _committed(body, hashlib.sha256(statements).digest()))


def unpack(frame: bytes, sender: Card, run: bytes, round: int, count: int, radius: float = math.inf,
           statements: int | None = 0, *, kind: Numbers = Numbers.REAL, phase: int = 0,
           attempt: int = 0) -> bytes:  # fmt: skip
    """The payload, if this is `sender`'s frame of that run and round with `count` numbers and so many statements.

    None is for a frame that was kept without them. Doubles must be finite and of norm ≤ `radius`. Cheap checks come
    first: who floods us with junk must not cost us a signature each; but what is only wrong by its values is a signed
    lie, so for them the signature comes first.
    """
    form = Form.WHOLE if statements is not None else Form.NUMBERS
    size = frame_size(count, statements) if statements is not None else frame_size(count) + COMMITMENT
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
    if (sort, step, again) != (kind | form << 8, phase, attempt):
        raise ConfideError(f"frame of kind {sort}, phase {step}, attempt {again}: must be {kind:d}, {phase}, {attempt}")
    if n != count:
        raise ConfideError(f"frame that claims {n} numbers: must be {count}")
    if not sender.verify(frame[-SIGNATURE:], _signed_part(frame)):
        raise ConfideError(f"frame is not signed by {sender.name}")
    if kind == Numbers.REAL:
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
    if not is_frame(frame):
        raise ConfideError(f"frame of {len(frame)} bytes: not one of this version, as long as it says")
    _, _, _, of_run, who, *_ = _HEADER.unpack_from(frame)
    if (of_run, who) != (run, sender.digest):
        raise ConfideError(f"frame of another run or sender: must be of {sender.name} in {run.hex()[:16]}")
    if not sender.verify(frame[-SIGNATURE:], _signed_part(frame)):
        raise ConfideError(f"frame is not signed by {sender.name}")


def _committed(body: bytes | memoryview, others: bytes | memoryview) -> bytes:
    """The commitment to salt and numbers and to the hash of the statements."""
    made = hashlib.sha256(body)
    made.update(others)
    return made.digest()


def _commitment(frame: bytes) -> bytes:
    form, end = form_of(frame), _end_of_numbers(frame)
    inner = memoryview(frame)[_HEADER.size : -SIGNATURE]
    if form == Form.SEAL:
        return bytes(inner)
    body, rest = inner[: end - _HEADER.size], inner[end - _HEADER.size :]
    return _committed(body, rest if form == Form.NUMBERS else hashlib.sha256(rest).digest())


def _signed_part(frame: bytes) -> bytes:
    """What the signature is over, whatever was left out since."""
    return _head_of(frame) + _commitment(frame)


def _head_of(frame: bytes, form: Form = Form.WHOLE) -> bytes:
    """The header of a frame with what says its form."""
    return frame[:7] + bytes([form]) + frame[8 : _HEADER.size]


def _end_of_numbers(frame: bytes) -> int:
    (count,) = struct.unpack_from("<I", frame, _HEADER.size - 4)
    return _HEADER.size + SALT + 8 * int(count)


def form_of(frame: bytes) -> int:
    """What it still has; frames of version 1 are whole."""
    return frame[7] if version_of(frame) == VERSION else Form.WHOLE


def shortened(frame: bytes, form: Form) -> bytes:
    """A checked frame with nothing but what this form has; one that has less already stays as it is."""
    if version_of(frame) != VERSION or form_of(frame) >= form:
        return frame
    if form == Form.SEAL:
        return _head_of(frame, form) + statement(frame)
    end = _end_of_numbers(frame)
    others = hashlib.sha256(memoryview(frame)[end:-SIGNATURE]).digest()
    return _head_of(frame, form) + frame[_HEADER.size : end] + others + frame[-SIGNATURE:]


def seal(frame: bytes) -> bytes:
    """What is the same of one signed frame in every form, and different for any other: header and statement."""
    return shortened(frame, Form.SEAL)


def statement(frame: bytes) -> bytes:
    """What proves to others that its sender signed this frame, without its numbers: commitment and signature."""
    return _commitment(frame) + frame[-SIGNATURE:]


def stated(statement: bytes, sender: Card, run: bytes, round: int, count: int) -> bool:
    """Whether `sender` signed a frame of doubles of that round with this statement."""
    head = _HEADER.pack(MAGIC, VERSION, Numbers.REAL, run, sender.digest, round, 0, 0, count)
    return sender.verify(statement[COMMITMENT:], head + statement[:COMMITMENT])


def statements(frame: bytes) -> list[bytes]:
    """The statements that a checked frame carries of others; none if they were left out since."""
    rest = frame[_end_of_numbers(frame) : -SIGNATURE] if form_of(frame) == Form.WHOLE else b""
    return [rest[at : at + STATEMENT] for at in range(0, len(rest), STATEMENT)]


def payload_of(frame: bytes) -> bytes:
    """The numbers of a frame that was checked before, such as one in the journal; of version 1, too."""
    if version_of(frame) == 1:
        return frame[_FIRST.size : -SIGNATURE]
    if form_of(frame) == Form.SEAL:
        raise LookupError(f"round {source(frame)[1]}: its numbers were left out when the journal was compacted")
    return frame[_HEADER.size + SALT : _end_of_numbers(frame)]


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
    return sender, round if kind & 255 == Numbers.REAL else number(round, phase, attempt)


def place(frame: bytes) -> tuple[int, int, int]:
    """(round, phase, attempt) of a frame that was checked before."""
    if version_of(frame) == 1:
        return _FIRST.unpack_from(frame)[4], 0, 0
    _, _, _, _, _, round, phase, attempt, _ = _HEADER.unpack_from(frame)
    return round, phase, attempt


def is_frame(data: bytes) -> bool:
    """Whether it is one of this version, in one of its forms, as long as it says; its signature is not checked."""
    if len(data) < frame_size(0) or (data[:4], version_of(data)) != (MAGIC, VERSION):
        return False
    more = len(data) - _end_of_numbers(data) - SIGNATURE
    match form_of(data):
        case Form.WHOLE:
            return more >= 0 and more % STATEMENT == 0
        case Form.NUMBERS:
            return more == COMMITMENT
        case Form.SEAL:
            return len(data) == SEAL_SIZE
    return False


def kind_of(frame: bytes) -> int:
    """Of a frame that was checked before."""
    return Numbers.REAL if version_of(frame) == 1 else frame[6]


SMALLEST = _FIRST.size + SIGNATURE  # bytes of the shortest frame there ever was
SEAL_SIZE = _HEADER.size + STATEMENT  # of one without numbers


def signed_of_old(frame: bytes, sender: Card) -> bool:
    """Whether `sender` signed this frame of version 1."""
    return sender.verify(frame[-SIGNATURE:], frame[:-SIGNATURE])
