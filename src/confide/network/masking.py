"""Masks: every party adds numbers that nobody else knows, and that cancel in the sum of all parties.

In round t, attempt a, of the members S, party i holds whole numbers y_i (values on a grid, with their noise) and sends

    z_i = y_i + Σ_{j > i} F(s_ij; t, a, S) - Σ_{j < i} F(s_ij; t, a, S)   mod 2^64,    i, j ∈ S, ordered by fingerprint,

F being a stream of uniform 64-bit numbers: ChaCha20 under a key that HKDF derives from the pair's secret s_ij, the
round, the attempt and the hash of S. Each F is added once and subtracted once, so Σ z_i = Σ y_i mod 2^64.

**What a coalition sees.** Let C pool all they know and H = S \\ C have at least two parties. C knows every F with a
member in C and can take those away. What remains of i ∈ H's mask is ± F over H \\ {i}. Were the F truly uniform, the
remaining (z_i)_{i∈H} would be uniform among all vectors of the sum Σ_{i∈H} y_i: the map from the F of a spanning tree
of H to the masks of all but one of H is a bijection, for any values of the other F. (H is joined completely, and any
connected graph on H would do; with masks along network links alone H may fall apart, and each part's sum is seen.)
So they tell nothing but that sum. The F are pseudorandom: see docs/private-sum.md for what that costs.

**One message per stream.** Were F to mask two messages, their difference would be bare. The attempt is on disk before
its stream exists (`Claims`), and is claimed once: a party that crashed after claiming can't mask again in this attempt.
It sends what its journal holds, byte for byte, or all members go on to the next attempt, which is charged again.

**The grid.** Values are rounded to steps of σ/2^m, σ the deviation of a party's noise, before noise of 2^m steps is
drawn (`discrete_gaussian`): rounding moves the two values of a row by half a step each in every number, so that the
sensitivity grows by at most √width steps, σ√width/2^m. Noise never passes 23σ. If no answer passes `bound`, a message
is within (bound/σ + 23)·2^m + ½ steps, and m is the largest up to 26 for which `parties` of them stay below 2^63:
nothing can wrap around. If it did, it would spoil the sum and tell no more: the sum mod 2^64 is a function of the sum.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import ArrayLike, NDArray

from confide.errors import ConfideError
from confide.files import sync_folder
from confide.network.pairing import SIZE, expand
from confide.privacy.chain import Damaged
from confide.privacy.discrete import SMALLEST
from confide.privacy.discrete_gaussian import GRID, Reservoir, doubles, quantise, sample

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Words = NDArray[np.uint64]

STREAM_LABEL, MEMBERS_LABEL = b"confide mask\0", b"confide members\0"
LONGEST_NOISE = 23  # deviations: beyond, the sampler never goes
LARGEST_NUMBER = 2**32 - 1  # of a round or an attempt


# --- The grid -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Steps of scale/2^power, to which answers are rounded: noise of deviation `scale` has 2^power of them."""

    scale: float
    power: int = GRID

    @classmethod
    def fitting(cls, scale: float, bound: float, parties: int) -> Grid:
        """The finest grid on which `parties` answers within ±`bound`, each with its noise, can't wrap around."""
        if not (0 < scale < math.inf and 0 <= bound < math.inf):
            raise ConfideError(
                f"noise of deviation {scale} on answers within {bound}: both must be finite, noise above 0"
            )
        for power in range(GRID, int(math.log2(SMALLEST)), -1):
            if parties * ((bound / scale + LONGEST_NOISE) * 2.0**power + 1) < 2.0**63:
                return cls(scale, power)
        raise ConfideError(
            f"{parties} answers within {bound:g} and noise of deviation {scale:g}: their sum does not fit 64 bits; "
            "noise would have to be louder"
        )

    def round(self, values: ArrayLike) -> Whole:
        """The values as whole numbers of steps, exactly rounded."""
        return quantise(values, self.scale, self.power)

    def noised(self, values: ArrayLike, reservoir: Reservoir | None = None) -> Whole:
        """The same with exact discrete Gaussian noise of deviation `scale`; drawn ahead where there is a reservoir."""
        steps = self.round(values)
        if reservoir is not None and reservoir.m != self.power:
            raise ConfideError(f"a reservoir of deviation 2^{reservoir.m} steps: the noise here has 2^{self.power}")
        noise = sample(steps.size, self.power) if reservoir is None else reservoir.take(steps.size)
        return steps + noise.reshape(steps.shape)

    def values(self, steps: Whole) -> Array:
        """What a sum of so many steps stands for."""
        return doubles(steps, self.scale, self.power)


# --- One message per stream ---------------------------------------------------------------------------------------


class Claims(Protocol):
    """Which streams were made, on a disk."""

    last: tuple[int, int]  # (round, attempt) of the latest

    def claim(self, round: int, attempt: int) -> None:
        """Return when it is on disk that the streams of this round and attempt exist; raise if they ever did."""


class ClaimFile:
    """Claims in a file of their own, each later than all before: another attempt of the last round, or a later round.

    A record is 8 bytes and their checksum. One that a crash cut short was never returned from: no stream was made.
    """

    _RECORD = struct.Struct("<III")

    @classmethod
    def create(cls, path: Path) -> ClaimFile:
        """Without a claim, beside a key that was made now; one that is there is never overwritten."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise ConfideError(f"{path} holds the claims of a run already: end that run first") from None
        return cls(path)

    def __init__(self, path: Path) -> None:
        """Those of a run that goes on; a file that is gone would forget which streams were used."""
        self.path, self.last = path, (0, 0)
        if not path.exists():
            raise Damaged(f"{path}: gone, so that what was masked is not known: restore it, or begin another run")
        self._file = os.open(path, os.O_RDWR)
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        whole = len(data) - len(data) % self._RECORD.size
        for at, (round, attempt, code) in enumerate(self._RECORD.iter_unpack(data[:whole])):
            if zlib.crc32(struct.pack("<II", round, attempt)) == code and (round, attempt) > self.last:
                self.last = (round, attempt)
            elif not any(data[at * self._RECORD.size :]):  # a power failure left the file longer than its data
                whole = at * self._RECORD.size
                break
            else:
                self.close()
                raise Damaged(f"{path}: damaged at record {at + 1}, so that what was masked is not known: restore it, "
                              "or begin another run")  # fmt: skip
        if whole < len(data):
            os.ftruncate(self._file, whole)
        self._end = whole
        os.fsync(self._file)
        sync_folder(path.absolute().parent)

    def claim(self, round: int, attempt: int) -> None:
        if not (1 <= round <= LARGEST_NUMBER and 1 <= attempt <= LARGEST_NUMBER):
            raise ConfideError(f"round {round}, attempt {attempt}: must be from 1 to {LARGEST_NUMBER}")
        if (round, attempt) <= self.last:
            raise ConfideError(
                f"round {round}, attempt {attempt}: its masks were used, the last in round {self.last[0]}, attempt "
                f"{self.last[1]}; send the stored message again, or agree on another attempt"
            )
        body = struct.pack("<II", round, attempt)
        self._append(body + zlib.crc32(body).to_bytes(4, "little"))
        self.last = (round, attempt)

    def _append(self, record: bytes) -> None:
        """All of it, in the place of what a full disk may have left of one before; no claim is made of less."""
        try:
            written = 0
            while written < len(record):  # less is written where the disk is nearly full: its error comes next
                written += os.pwrite(self._file, record[written:], self._end + written)
            os.fdatasync(self._file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self._end += len(record)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


# --- Masks --------------------------------------------------------------------------------------------------------


def members_hash(members: Iterable[bytes]) -> bytes:
    """Of a set of fingerprints."""
    return hashlib.sha256(MEMBERS_LABEL + b"".join(sorted(members))).digest()


def keystream(key: bytes, size: int, start: bytes = bytes(16)) -> bytes:
    """ChaCha20 (RFC 8439): so many bytes from the block that `start` names, its counter and nonce."""
    return Cipher(algorithms.ChaCha20(key, start), None).encryptor().update(bytes(size))


def stream(secret: bytes, round: int, attempt: int, members: bytes, width: int) -> Words:
    """F: (width,) uniform 64-bit numbers of a pair, under a key of this round, attempt and member set alone."""
    info = STREAM_LABEL + members + struct.pack("<II", round, attempt)
    return np.frombuffer(keystream(expand(secret, info), 8 * width), "<u8")


class Masks:
    """The masks of one party. `secrets` are those with all other members of the run, by fingerprint."""

    def __init__(self, own: bytes, secrets: Mapping[bytes, bytes], claims: Claims) -> None:
        if own in secrets or any(len(who) != SIZE for who in (own, *secrets)):
            sizes = ", ".join(map(str, sorted({len(who) for who in (own, *secrets)})))
            both = ", the own among the others" if own in secrets else ""
            raise ConfideError(f"fingerprints of {sizes} bytes{both}: must be of {SIZE}, the own not among the others")
        self.own, self._secrets, self._claims = own, dict(secrets), claims

    def apply(self, round: int, attempt: int, values: Whole, members: Collection[bytes] | None = None) -> Words:
        """(width,) numbers masked, once for each round and attempt; all members take part unless some are named."""
        present = set(self._secrets) | {self.own} if members is None else set(members)
        if self.own not in present or not present - {self.own} <= set(self._secrets):
            raise ConfideError(f"{len(present)} members to mask for: must be this party and others of the run")
        if len(present) < 2:
            raise ConfideError("masks for one member alone hide nothing: at least 2 are needed")
        if values.dtype != np.int64 or values.ndim != 1:
            raise ConfideError(
                f"{values.dtype} numbers of shape {values.shape}: masks need a vector of 64-bit integers"
            )
        self._claims.claim(round, attempt)
        named, out = members_hash(present), values.view(np.uint64).copy()
        for other in present - {self.own}:
            mask = stream(self._secrets[other], round, attempt, named, values.size)
            out = out + mask if self.own < other else out - mask  # mod 2^64
        return out


def total(messages: Iterable[Words]) -> Words:
    """The sum mod 2^64 of masked numbers, of all members or some."""
    first, *rest = messages
    out: Any = first.copy()
    for more in rest:
        if more.shape != first.shape:
            raise ConfideError(f"messages of {first.size} and {more.size} numbers don't add up")
        out += more
    return np.asarray(out, np.uint64)


def unmasked(everyone: Words) -> Whole:
    """The total of all members as signed numbers of steps."""
    return everyone.view(np.int64)
