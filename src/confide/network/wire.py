"""One message on the wire: a fixed header, doubles, and the sender's signature over both.

    magic 4 | version 2 | run 32 | sender 32 | round 4 | count 4 | count × 8 bytes | signature 64      little-endian

`run` is the federation's hash and `sender` the SHA-256 of the sender's certificate, so a frame means one thing only
and can settle a dispute by itself. Decoding is strict: a frame is exactly what was asked for, or one line says why not.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from confide.network.identity import SIGNATURE, Card, Identity

Array = NDArray[np.float64]
MAGIC, VERSION = b"CNFD", 1
_HEADER = struct.Struct("<4sH32s32sII")
_REQUEST = struct.Struct("<32sI")
REQUEST_SIZE = _REQUEST.size
LARGEST_ROUND = 2**32 - 1


def frame_size(count: int) -> int:
    """Bytes of a frame with `count` numbers."""
    return _HEADER.size + 8 * count + SIGNATURE


def pack(identity: Identity, run: bytes, round: int, payload: bytes) -> bytes:
    """The signed frame of a round."""
    body = _HEADER.pack(MAGIC, VERSION, run, identity.card.digest, round, len(payload) // 8) + payload
    return body + identity.sign(body)


def unpack(frame: bytes, sender: Card, run: bytes, round: int, count: int) -> bytes:
    """The payload, if this is `sender`'s frame of that run and round with `count` finite numbers.

    Cheap checks come first: who floods us with junk must not cost us a signature each.
    """
    if len(frame) != frame_size(count):
        raise ValueError(f"frame of {len(frame)} bytes: must be {frame_size(count)}, for {count} numbers")
    magic, version, of_run, who, t, n = _HEADER.unpack_from(frame)
    if magic != MAGIC:
        raise ValueError(f"not a frame: it begins with {magic.hex()}")
    if version != VERSION:
        raise ValueError(f"frame of version {version}: this program reads version {VERSION}")
    if of_run != run:
        raise ValueError(f"frame of another run: {of_run.hex()[:16]}, this is {run.hex()[:16]}")
    if who != sender.digest:
        raise ValueError(f"frame of another sender: {who.hex()[:16]}, expected {sender.name}")
    if t != round:
        raise ValueError(f"frame of round {t}: asked for round {round}")
    if n != count:
        raise ValueError(f"frame that claims {n} numbers: must be {count}")
    if not np.isfinite(np.frombuffer(frame, "<f8", count, _HEADER.size)).all():
        raise ValueError("frame holds a value that is not finite")
    if not sender.verify(frame[-SIGNATURE:], memoryview(frame)[:-SIGNATURE]):
        raise ValueError(f"frame is not signed by {sender.name}")
    return payload_of(frame)


def authentic(frame: bytes, sender: Card, run: bytes) -> None:
    """Whether `sender` signed this frame in that run, whichever round it is of."""
    if len(frame) < frame_size(0):
        raise ValueError(f"frame of {len(frame)} bytes: must be {frame_size(0)} or more")
    _, _, _, _, t, count = _HEADER.unpack_from(frame)
    unpack(frame, sender, run, t, count)


def payload_of(frame: bytes) -> bytes:
    """The doubles of a frame that was checked before, such as one in the journal."""
    return frame[_HEADER.size : -SIGNATURE]


def pack_request(run: bytes, round: int) -> bytes:
    return _REQUEST.pack(run, round)


def unpack_request(data: bytes) -> tuple[bytes, int]:
    """(run, round) that a neighbour asks for."""
    if len(data) != REQUEST_SIZE:
        raise ValueError(f"request of {len(data)} bytes: must be {REQUEST_SIZE}")
    run, round = _REQUEST.unpack(data)
    return run, round


def source(frame: bytes) -> tuple[bytes, int]:
    """(sender, round) of a frame that was checked before."""
    _, _, _, sender, round, _ = _HEADER.unpack_from(frame)
    return sender, round
