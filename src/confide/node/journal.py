"""The journal of one run on one node: every message sent and received, written once, never changed.

    header | record | record | …        record = length 4 | crc32 of the frame 4 | crc32 of these 8 bytes 4 | frame

* Own message: synced to disk before anyone may have it, so that a node that crashed finds it and sends the same bytes.
* Received messages of a round: appended before they are used, so that a dispute can be settled from either side; they
  reach the disk with the next own message, since until then they can be asked for again.
* State is a function of messages, so there is no other file: a restart replays the journal.

A crash can only tear the end of the file, which nobody has seen: opening cuts it off. Damage anywhere else is refused,
for computing a lost message anew would draw a second noise. A lock keeps a second process away. The random `nonce`
names this very file in the ledger: who loses the journal pays again rather than release twice for one price.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from confide.network import wire

MAGIC = b"confide journal\0"
NONCE = 16
_HEADER = struct.Struct("<16sH32s16sI")
_RECORD = struct.Struct("<III")
VERSION = 1


class Journal:
    """The journal in `folder`, made if it is not there; `write=False` reads it beside a running node."""

    def __init__(self, folder: Path, run: bytes, *, write: bool = True) -> None:
        self.path, self.run, self._write = folder / "journal", run, write
        self._at: dict[tuple[bytes, int], tuple[int, int]] = {}  # (sender, round) -> offset and length of the frame
        self._last: dict[bytes, int] = {}
        self._lock = -1
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "lock")
            if not self.path.exists():
                _create(self.path, run)
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND if write else os.O_RDONLY)
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for file in (self._file, self._lock):
            if file >= 0:
                os.close(file)
        self._file = self._lock = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def last(self, sender: bytes) -> int:
        """The latest round of this sender, or 0."""
        return self._last.get(sender, 0)

    def get(self, sender: bytes, t: int) -> bytes | None:
        """The frame of a round, if it is here."""
        place = self._at.get((sender, t))
        return None if place is None else os.pread(self._file, place[1], place[0])

    def frame(self, sender: bytes, t: int) -> bytes:
        """The frame of a round that must be here."""
        frame = self.get(sender, t)
        if frame is None:
            raise LookupError(f"{self.path} holds no round {t} of {sender.hex()[:16]}")
        return frame

    def frames(self) -> Iterator[tuple[bytes, int, bytes]]:
        """(sender, round, frame) of everything, in order of writing."""
        for (sender, t), (offset, length) in self._at.items():
            yield sender, t, os.pread(self._file, length, offset)

    # --- writing ------------------------------------------------------------------------------------------------------

    def keep(self, frames: Iterable[bytes]) -> None:
        """Append what was received; it is on disk after the next `commit`."""
        self._append([frame for frame in frames if not self._known(frame)])

    def commit(self, frame: bytes) -> None:
        """Append the own message of the next round and return when it cannot be lost any more."""
        sender, t = wire.source(frame)
        if self._known(frame):
            return
        if t != self.last(sender) + 1:
            raise ValueError(f"{self.path}: round {t} cannot follow round {self.last(sender)}")
        self._append([frame])
        self.sync()

    def sync(self) -> None:
        os.fdatasync(self._file)  # the frames and the file's length; its times may be lost

    def _known(self, frame: bytes) -> bool:
        """Whether this very frame is here; another one of the same round is refused: a round is written once."""
        sender, t = wire.source(frame)
        found = self.get(sender, t)
        if found is not None and found != frame:
            raise ValueError(f"{self.path} holds another message of {sender.hex()[:16]} for round {t}: nothing written")
        return found is not None

    def _append(self, frames: list[bytes]) -> None:
        pieces = [piece for frame in frames for piece in (_head(frame), frame)]
        try:
            written = os.writev(self._file, pieces) if pieces else 0
            if written < sum(map(len, pieces)):  # rare, as when the disk is nearly full: its error comes next
                rest = memoryview(b"".join(pieces))[written:]
                while rest:
                    rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._end)  # a full disk leaves no half of a record
            raise
        for frame in frames:
            self._index(frame, self._end + _RECORD.size)
            self._end += _RECORD.size + len(frame)

    def _index(self, frame: bytes, offset: int) -> None:
        sender, t = wire.source(frame)
        self._at[sender, t] = (offset, len(frame))
        self._last[sender] = max(t, self.last(sender))

    # --- opening ------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        head = os.pread(self._file, _HEADER.size, 0)
        if len(head) != _HEADER.size or head[:16] != MAGIC or zlib.crc32(head[:-4]) != _HEADER.unpack(head)[4]:
            raise ValueError(f"{self.path}: not a journal, or damaged")
        _, version, run, self.nonce, _ = _HEADER.unpack(head)
        if version != VERSION:
            raise ValueError(f"{self.path}: a journal of version {version}, this program reads version {VERSION}")
        if run != self.run:
            raise ValueError(f"{self.path} belongs to another run, {run.hex()[:16]}")
        self._end, size = _HEADER.size, os.fstat(self._file).st_size
        while self._end < size:
            start = self._end + _RECORD.size
            record = os.pread(self._file, _RECORD.size, self._end)
            if len(record) < _RECORD.size or self._zeros(record, size):
                break  # torn by a crash
            length, code, own_code = _RECORD.unpack(record)
            sound = zlib.crc32(record[:8]) == own_code
            if sound and start + length > size:
                break  # torn, too: nobody has seen it
            frame = os.pread(self._file, length, start) if sound else b""
            if not sound or zlib.crc32(frame) != code or length < wire.frame_size(0):
                raise ValueError(f"{self.path}: damaged at byte {self._end}; restore it, or begin another run")
            self._index(frame, start)
            self._end = start + length
        if self._write and self._end < size:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)

    def _zeros(self, record: bytes, size: int) -> bool:
        """Whether nothing but zeros follows: a file that a power failure left longer than its data."""
        pieces = range(self._end, size, 1 << 20)
        return not any(record) and not any(any(os.pread(self._file, min(1 << 20, size - at), at)) for at in pieces)


def _head(frame: bytes) -> bytes:
    """What stands before a frame in its record."""
    head = struct.pack("<II", len(frame), zlib.crc32(frame))
    return head + zlib.crc32(head).to_bytes(4, "little")


def _locked(path: Path) -> int:
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise ValueError(f"{path.parent}: this run is in use by another process") from None
    return lock


def _create(path: Path, run: bytes) -> None:
    """An empty journal, there whole or not at all, even after a power failure."""
    head = _HEADER.pack(MAGIC, VERSION, run, os.urandom(NONCE), 0)[:-4]
    part = path.with_name("journal.part")
    with os.fdopen(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        file.write(head + zlib.crc32(head).to_bytes(4, "little"))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    for folder in (path.parent, path.parent.parent):
        handle = os.open(folder, os.O_DIRECTORY)
        os.fsync(handle)
        os.close(handle)
