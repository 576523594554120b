"""The journal of one run on one node: every message sent and received, written once, never changed.

    header | record | record | …
    record = length 4 | attempt 4 | crc32 of the frame 4 | crc32 of these 12 bytes 4 | frame

* Own message: synced to disk before anyone may have it, so that a node that crashed finds it and sends the same bytes.
* Received messages of a round: appended before they are used, so that a dispute can be settled from either side; they
  reach the disk with the next own message, since until then they can be asked for again.
* An own message says by its attempt how often noise was drawn for the round: 1, unless a payment was found without its
  message. It is not in the frame, which is what neighbours see.
* State is a function of messages, so there is no other file: a restart replays the journal. (Private sums have secrets
  besides: `summer`.) A message is known by its sender and what it is asked for by: its round, or, where a round has
  several, its `number`.

Once nobody can ask for old rounds again they are shortened (`compaction`): the file is written anew beside the old one
and takes its place whole. A record that begins with `STATE` instead of a frame then says what the rounds came to whose
numbers were left out.

A crash can only tear the end of the file, which nobody has seen: opening cuts it off. Damage anywhere else is refused,
for computing a lost message anew would draw a second noise. A lock keeps a second process away. The random `nonce`
names this very file in the ledger: who loses the journal pays again rather than release twice for one price.

Files of version 1, which had no attempts, are read as they are and rewritten when they are opened for writing.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from confide.errors import ConfideError
from confide.files import OWNER_ONLY, sync_folder, write_beside, write_whole
from confide.network import wire
from confide.privacy.chain import Damaged

MAGIC = b"confide journal\0"
NONCE = 16
_HEADER = struct.Struct("<16sH32s16sI")
_RECORD = struct.Struct("<IIII")
VERSION = 2
STATE = b"CNFS"
LOOK_SECONDS = 0.2  # who asks whether a run is in use (`running`) has the lock for less
LOG = logging.getLogger("confide.journal")


class Journal:
    """The journal in `folder`, made if it is not there; `write=False` reads it beside a running node.

    `aliases` says which certificates are of one sender, whose key was replaced: each -> the one to call it by.
    """

    def __init__(self, folder: Path, run: bytes, *, write: bool = True,
                 aliases: Mapping[bytes, bytes] | None = None) -> None:  # fmt: skip
        self.path, self.run, self._write, self._aliases = folder / "journal", run, write, aliases or {}
        self._at: dict[tuple[bytes, int], tuple[int, int]] = {}  # (sender, number) -> offset and length of the frame
        self._attempts: dict[tuple[bytes, int], int] = {}
        self._draws: dict[bytes, dict[int, int]] = {}  # by sender and round
        self._last: dict[bytes, int] = {}
        self.state = b""  # what the rounds came to whose numbers were left out
        self.horizon = self.shortened = 0  # the last round that was shortened, and the byte where such records end
        self._swap = threading.Lock()  # a neighbour is answered while the file is replaced
        self._lock = self._file = -1
        try:
            if write:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._lock = _locked(folder / "lock")
                for part in folder.glob(".journal.*.part"):  # of a crash
                    part.unlink(missing_ok=True)
                if not self.path.exists():
                    _create(self.path, run, os.urandom(NONCE))
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND if self._write else os.O_RDONLY)
        self._load()
        if self._write and self._version != VERSION:
            pieces = (piece for _, _, frame in self.frames() for piece in (_head(frame, 1), frame))
            _create(self.path, self.run, self.nonce, pieces)
            os.close(self._file)
            self._file = -1
            self._open()

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
        """The latest round of this sender, or 0; of a private sum the latest number."""
        return self._last.get(self._name(sender), 0)

    def _name(self, sender: bytes) -> bytes:
        return self._aliases.get(sender, sender)

    def get(self, sender: bytes, t: int) -> bytes | None:
        """The frame of a round, if it is here."""
        with self._swap:
            place = self._at.get((self._name(sender), t))
            return None if place is None else os.pread(self._file, place[1], place[0])

    def frame(self, sender: bytes, t: int) -> bytes:
        """The frame of a round that must be here."""
        frame = self.get(sender, t)
        if frame is None:
            raise LookupError(f"{self.path} holds no round {t} of {sender.hex()[:16]}")
        return frame

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._end

    @property
    def outdated(self) -> bool:
        """Whether it holds frames of an older version, which neighbours do not take."""
        return any(wire.version_of(os.pread(self._file, 6, place)) != wire.VERSION for place, _ in self._at.values())

    def attempt(self, sender: bytes, t: int) -> int:
        """How often noise was drawn for this message, which must be here and own."""
        return self._attempts[self._name(sender), t]

    def draws(self, owner: bytes) -> list[int]:
        """How often noise was drawn for each round that the owner sent; of a private sum, in which it said numbers."""
        drawn = self._draws.get(self._name(owner), {})
        return [drawn[t] for t in sorted(drawn)]

    def numbers(self) -> Iterator[tuple[bytes, int]]:
        """(sender, round or number) of everything, in order of writing."""
        return iter(self._at)

    def frames(self) -> Iterator[tuple[bytes, int, bytes]]:
        """(sender, round or number, frame) of everything, in order of writing."""
        for (sender, t), (offset, length) in self._at.items():
            yield sender, t, os.pread(self._file, length, offset)

    # --- writing ------------------------------------------------------------------------------------------------------

    def keep(self, frames: Iterable[bytes]) -> None:
        """Append what was received; it is on disk after the next `commit`."""
        self._append([frame for frame in frames if not self._known(frame)], 0)

    def commit(self, frame: bytes, attempt: int = 1) -> None:
        """Append the own message of the next round and return when it cannot be lost any more.

        A private sum has several messages in a round; of those without numbers of its own noise was drawn 0 times.
        """
        sender, t = wire.source(frame)
        if self._known(frame):
            return
        if not (t > self.last(sender) if wire.kind_of(frame) == wire.Numbers.WHOLE else t == self.last(sender) + 1):
            raise ConfideError(f"{self.path}: round {t} cannot follow round {self.last(sender)}")
        self._append([frame], attempt)
        self.sync()

    def sync(self) -> None:
        """On disk, under its name: a file that was removed meanwhile would be lost with this process."""
        try:
            os.fdatasync(self._file)  # the frames and the file's length; its times may be lost
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        if self._write and os.fstat(self._file).st_nlink == 0:
            raise Damaged(f"{self.path}: was removed while the node ran: restore it, or begin another run")

    def _known(self, frame: bytes) -> bool:
        """Whether this very frame is here, maybe shortened; another of the same round is refused: one is written."""
        sender, t = wire.source(frame)
        found = self.get(sender, t)
        if found is not None and wire.seal(found) != wire.seal(frame):
            raise ConfideError(
                f"{self.path} holds another message of {sender.hex()[:16]} for round {t}: nothing written"
            )
        return found is not None

    def rewrite(self, kept: Callable[[bytes, int, bytes], bytes], state: bytes = b"") -> bool:
        """Put `kept(sender, round, frame)` in the place of each frame, `state` before them; order and attempts stay.

        The file is there as it was or as it will be, whatever happens. Without room on the disk it stays as it was, and
        False is returned; an error after that may not be passed over, for it is not known which of both is there.
        """
        at: dict[tuple[bytes, int], tuple[int, int]] = {}
        end, horizon, shortened = _HEADER.size, 0, 0

        def pieces() -> Iterator[bytes]:
            nonlocal end, horizon, shortened
            if state:
                yield from (_head(STATE + state, 0), STATE + state)
                end += _RECORD.size + len(STATE + state)
            for sender, t, frame in self.frames():
                new = kept(sender, t, frame)
                yield from (_head(new, self._attempts[sender, t]), new)
                at[sender, t] = end + _RECORD.size, len(new)
                end += _RECORD.size + len(new)
                if wire.form_of(new) != wire.Form.WHOLE:
                    horizon, shortened = max(horizon, wire.place(new)[0]), end

        try:
            part = write_beside(self.path, chain(_header(self.run, self.nonce), pieces()), OWNER_ONLY)
            was = os.fstat(self._file)
            os.utime(part, ns=(was.st_atime_ns, was.st_mtime_ns))  # patience counts from the last round (`office`)
            fresh = os.open(part, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            LOG.warning("%s: %s: stays as long as it is", self.path, error.strerror)
            return False
        with self._swap:
            part.replace(self.path)
            old, self._file, self._at, self._end = self._file, fresh, at, end
            os.close(old)
        self.state, self.horizon, self.shortened = state, horizon, shortened
        sync_folder(self.path.parent)  # before anything is added: the old file must not come back
        return True

    def _append(self, frames: list[bytes], attempt: int) -> None:
        pieces = [piece for frame in frames for piece in (_head(frame, attempt), frame)]
        try:
            written = os.writev(self._file, pieces) if pieces else 0
            if written < sum(map(len, pieces)):  # rare, as when the disk is nearly full: its error comes next
                rest = memoryview(b"".join(pieces))[written:]
                while rest:
                    rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            os.ftruncate(self._file, self._end)  # a full disk leaves no half of a record
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        for frame in frames:
            self._index(frame, self._end + _RECORD.size, attempt)
            self._end += _RECORD.size + len(frame)

    def _index(self, frame: bytes, offset: int, attempt: int) -> None:
        sender, t = wire.source(frame)
        sender = self._name(sender)
        self._at[sender, t], self._attempts[sender, t] = (offset, len(frame)), attempt
        self._last[sender] = max(t, self.last(sender))
        if wire.form_of(frame) != wire.Form.WHOLE:
            self.horizon, self.shortened = max(self.horizon, wire.place(frame)[0]), offset + len(frame)
        if attempt:
            drawn, round = self._draws.setdefault(sender, {}), wire.place(frame)[0]
            drawn[round] = max(attempt, drawn.get(round, 0))

    # --- opening ------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        head = os.pread(self._file, _HEADER.size, 0)
        if len(head) != _HEADER.size or head[:16] != MAGIC or zlib.crc32(head[:-4]) != _HEADER.unpack(head)[4]:
            raise Damaged(f"{self.path}: not a journal, or damaged")
        _, self._version, run, self.nonce, _ = _HEADER.unpack(head)
        if self._version not in (1, VERSION):
            raise ConfideError(f"{self.path}: a journal of version {self._version}, this program reads up to {VERSION}")
        if run != self.run:
            raise ConfideError(f"{self.path} belongs to another run, {run.hex()[:16]}")
        self._end, size = _HEADER.size, os.fstat(self._file).st_size
        ahead = _RECORD.size if self._version > 1 else _RECORD.size - 4  # version 1 had no attempt
        while self._end < size:
            start = self._end + ahead
            record = os.pread(self._file, ahead, self._end)
            if len(record) < ahead or self._zeros(record, size):
                break  # torn by a crash
            length, attempt, code, own_code = _RECORD.unpack(record if self._version > 1 else _with_attempt(record))
            sound = zlib.crc32(record[:-4]) == own_code
            if sound and start + length > size:
                break  # torn, too: nobody has seen it
            frame = os.pread(self._file, length, start) if sound else b""
            summary = frame.startswith(STATE)
            if not sound or zlib.crc32(frame) != code or (length < wire.SMALLEST and not summary):
                raise Damaged(f"{self.path}: damaged at byte {self._end}; restore it, or begin another run")
            if summary:
                self.state = frame[len(STATE) :]
            else:
                self._index(frame, start, attempt)
            self._end = start + length
        if self._write and self._end < size:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)

    def _zeros(self, record: bytes, size: int) -> bool:
        """Whether nothing but zeros follows: a file that a power failure left longer than its data."""
        pieces = range(self._end, size, 1 << 20)
        return not any(record) and not any(any(os.pread(self._file, min(1 << 20, size - at), at)) for at in pieces)


def run_name(journal: Journal) -> str:
    """What the ledger calls the run of this journal."""
    return f"{journal.run.hex()[:16]}/{journal.nonce.hex()[:16]}"


def _head(frame: bytes, attempt: int) -> bytes:
    """What stands before a frame in its record."""
    head = struct.pack("<III", len(frame), attempt, zlib.crc32(frame))
    return head + zlib.crc32(head).to_bytes(4, "little")


def _with_attempt(record: bytes) -> bytes:
    """The head of a record of version 1 as this one writes it."""
    return record[:4] + (1).to_bytes(4, "little") + record[4:]


def _locked(path: Path) -> int:
    lock, end = os.open(path, os.O_CREAT | os.O_RDWR, 0o600), time.monotonic() + LOOK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(lock)
                raise ConfideError(f"{path.parent}: this run is in use by another process") from None
        time.sleep(0.01)


def _create(path: Path, run: bytes, nonce: bytes, pieces: Iterable[bytes] = ()) -> None:
    """A journal, empty or of these pieces, there whole or not at all, even after a power failure."""
    write_whole(path, chain(_header(run, nonce), pieces), OWNER_ONLY)
    sync_folder(path.parent.parent)  # which the run's folder is new in


def _header(run: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    head = _HEADER.pack(MAGIC, VERSION, run, nonce, 0)[:-4]
    return head, zlib.crc32(head).to_bytes(4, "little")
