"""What a run remembers of the ledger it pays into, in a small file beside its journal.

A ledger's chain shows damage, but not that the whole file is an older copy; and where journal and ledger lose the same
last round, neither shows it. So after every payment, before any noise is drawn, a run writes down how far the chain had
come (its head, and the last row that was not the run's own), and what it paid for.

    slot | slot        slot = serial 8 | rows 8 | tag 32 | others' rows 8 | others' tag 32 | others released 1
                              | round 8 | attempt 8 | run 64 | population 800 | crc32 4

The two slots are written in turn, each in place and without waiting for the disk: a crash leaves the other one, a power
failure perhaps an older one. An older memory sees less, and never refuses a sound ledger.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confide.privacy.chain import Damaged
from confide.privacy.ledger import Head

FILE = "ledger-head"
LONGEST = 800  # bytes of a population's name
_SLOT = struct.Struct(f"<QQ32sQ32s?QQ64s{LONGEST}s")
_SIZE = _SLOT.size + 4


class Memory(NamedTuple):
    """The ledger's head after this run's last row; the last row of others; whether others had released anything.

    Then the run as the ledger calls it, which tells its journal from any other; whose budget pays; and the round and
    the attempt that were paid for last.
    """

    head: Head = Head()
    others: Head = Head()
    released: bool = False
    run: str = ""
    population: str = ""
    round: int = 0
    attempt: int = 0

    def draws(self, run: str, attempts: Sequence[int]) -> list[int]:
        """How often noise may have been drawn for each round of this run, beyond what its journal shows.

        A round was paid for before it was drawn, so what is paid for may be drawn, and known to everyone.
        """
        out = list(attempts)
        if self.run == run and self.round > 0:
            out += [1] * (self.round - len(out))
            out[self.round - 1] = max(out[self.round - 1], self.attempt)
        return out


class Remembered:
    """The memory in `folder`, empty if there is none."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._file = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            self._serial, self.memory = _read(self._file, self.path)
        except BaseException:
            self.close()
            raise

    def keep(self, memory: Memory) -> None:
        if memory != self.memory:
            self._serial, self.memory = self._serial + 1, memory
            body = _SLOT.pack(self._serial, *memory.head, *memory.others, memory.released, memory.round, memory.attempt,
                              memory.run.encode(), memory.population.encode())  # fmt: skip
            self._write(body + zlib.crc32(body).to_bytes(4, "little"), self._serial % 2 * _SIZE)

    def _write(self, slot: bytes, place: int) -> None:
        try:
            if os.pwrite(self._file, slot, place) < len(slot):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def recall(folder: Path) -> Memory:
    """The memory in `folder`, without making one."""
    try:
        with (folder / FILE).open("rb") as file:
            return _read(file.fileno(), folder / FILE)[1]
    except FileNotFoundError:
        return Memory()


def beside(folder: Path) -> dict[Path, Memory]:
    """What every other run of the home remembers whose run in `folder` asks, by its folder."""
    return {path.parent: recall(path.parent) for path in sorted(folder.parent.glob(f"*/{FILE}")) if
            path.parent != folder}  # fmt: skip


def _read(file: int, path: Path) -> tuple[int, Memory]:
    """The later of the sound slots, and its serial number."""
    slots = [os.pread(file, _SIZE, k * _SIZE) for k in (0, 1)]
    sound = [s[:-4] for s in slots if len(s) == _SIZE and zlib.crc32(s[:-4]) == int.from_bytes(s[-4:], "little")]
    if sound:
        serial, rows, tag, other, other_tag, released, t, attempt, *names = max(_SLOT.unpack(slot) for slot in sound)
        run, population = (name.rstrip(b"\0").decode() for name in names)
        return serial, Memory(Head(rows, tag), Head(other, other_tag), released, run, population, t, attempt)
    if os.fstat(file).st_size > _SIZE:  # less is a first slot that a power failure tore
        raise Damaged(f"{path}: damaged; remove it if the ledger is the newest there is")
    return 0, Memory()
