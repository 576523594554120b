"""Exact discrete Gaussian noise, compiled, from the operating system's entropy: P(y) ∝ exp(−y²/2σ²), y whole, σ = 2^m.

C. L. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020), algorithms 1–3.
Rejection from the discrete Laplace of scale t. One pass, repeated until it returns:

 1  draw u uniform in {0, …, t − 1} and a fair sign
 2  unless Bernoulli(exp(−u/t)): reject
 3  v ← 0; while Bernoulli(exp(−1)): v ← v + 1
 4  y ← u + t·v; if y = 0 and the sign is negative: reject        (so far: ±y has P ∝ exp(−|y|/t))
 5  unless Bernoulli(exp(−(y − σ²/t)²/2σ²)): reject
 6  return ±y

At t = σ a pass returns ±y with probability ∝ exp(−y/t − (y − t)²/2t²) = exp(−½)·exp(−y²/2t²); passes are independent.

Differs from the paper: t is σ, not ⌊σ⌋ + 1 (any t is exact; this one makes step 5's exponent (y − 2^m)²/2^(2m+1) and
step 2's u/2^m whole numbers of units 2^−56, in 64 bits), and Bernoulli(exp(−x)) is not by coin flips: x is a sum of
eight digits k·2^−8d, exp(−x) the product of exp(−k·2^−8d), and each factor, a constant cut to 192 bits, is compared
with a uniform number whose next 32 bits are drawn only where all before were equal. No floating point takes part.

How exact. A comparison succeeds with a probability less than 2^−192 too small, and nothing else is inexact except that
v = 23 is rejected at once. Let exact and real algorithm read the same uniform numbers: they part at a comparison with
probability < 2^−192, and at v = 23 only if the exact one went on to accept, exp(−23 − 22²/2) < 2^−381. A pass makes at
most 4 + 8 comparisons in steps 2 and 5 and 1/(1 − 1/e) < 1.59 on average in step 3. It accepts with probability
½(1 − 1/e)·exp(−½)·Σ_y exp(−y²/2σ²)/σ ≥ ½(1 − 1/e)·exp(−½)·√2π > 0.48 (Poisson's summation formula), so fewer than 2.09
are needed on average: fewer than 29 comparisons a number. **The total variation from the exact discrete Gaussian is
below 29·2^−192 + 2.09·2^−381 < 2^−187 per number**, whatever m; n numbers are drawn within n·2^−187.

What it costs. `gaussian` rounds exactly to a grid of scale/2^26 before it adds the noise, so a release of `width`
numbers of L2 sensitivity Δ has sensitivity Δ′ ≤ Δ + √width·scale/2^26, and is ½(Δ′/scale)²-zCDP (the paper's bound per
number, summed), or a Gaussian of μ = Δ′/scale up to the total variation of a discrete from a rounded normal; that
above goes into δ either way.

Time depends on what is drawn. A `Reservoir` is filled before the inputs arrive.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable
from functools import cache
from operator import index
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.compiled import njit
from confide.errors import ConfideError, WrongType

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Words = NDArray[np.uint32]

GRID = 26  # noise of `gaussian` has a deviation of 2^26 grid steps
LARGEST = 27  # m for which the exponent of step 5 is a whole number of units 2^-56
SATURATION = 1 << 62  # grid steps; values beyond are released as this
EXTREME = 960  # scales within 2^±960: the grid's step is a normal number, and no noisy value overflows

# exp(-1), cut to 320 bits: the tables' only source.
INVERSE_E = 0x5E2D58D8B3BCDF1A_BADEC7829054F90D_DA9805AAB56C7733_3024B9D0A507DAED_B16400BF472B4215
PRECISION, BITS, WORD = 320, 192, 32
LEVELS = BITS // WORD
BLOCK = 1 << 14  # words drawn at a time, at most; they stay in the processor's cache

_0, _1, _255 = np.uint64(0), np.uint64(1), np.uint64(255)
_55, _56 = np.uint64(55), np.uint64(56)
_LAST = np.uint64(22)  # largest v: (y - t)²/2t² < 22²/2 < 2^8


# --- Bernoulli(exp(-x)) -------------------------------------------------------------------------------------------


@cache
def table() -> Words:
    """(8, 256, 6): entry [d, k] is ⌊2^192·exp(−k·2^−8d)⌋, words of 32 bits, the highest first; k = 0 isn't used.

    Square roots and squares of exp(−1), and products of at most eight of these, in integers of 320 bits.
    """
    power = {0: INVERSE_E}  # j: exp(-2^j)
    for j in range(56):
        power[-j - 1] = math.isqrt(power[-j] << PRECISION)
    for j in range(7):
        power[j + 1] = power[j] ** 2 >> PRECISION
    entries = np.zeros((8, 256, LEVELS), np.uint32)
    for d in range(8):
        known = {0: 1 << PRECISION}
        for k in range(1, 256):
            rest = k & (k - 1)  # without its lowest bit
            known[k] = known[rest] * power[(k ^ rest).bit_length() - 1 - 8 * d] >> PRECISION
            cut = known[k] >> (PRECISION - BITS)
            entries[d, k] = [cut >> (BITS - WORD * (level + 1)) & 0xFFFFFFFF for level in range(LEVELS)]
    entries.flags.writeable = False
    return entries


@njit
def _below(words: Any, at: Any, table: Any, d: Any, k: Any) -> Any:
    """Whether a uniform number of 192 bits is below table[d, k]; the next position, beyond the end if words ran out."""
    for level in range(LEVELS):
        if at >= words.size:
            return False, words.size + 1
        word = words[at]
        at += 1
        if word != table[d, k, level]:
            return word < table[d, k, level], at
    return False, at


@njit
def _survives(words: Any, at: Any, x: Any, table: Any) -> Any:
    """Bernoulli(exp(−x/2^56)) and the next position."""
    for d in range(8):  # the highest digit first: most failures happen there
        k = (x >> np.uint64(56 - 8 * d)) & _255
        if k != _0:
            success, at = _below(words, at, table, d, k)
            if not success:
                return False, at
    return True, at


# --- The sampler --------------------------------------------------------------------------------------------------


@njit
def _attempt(words: Any, at: Any, m: Any, table: Any) -> Any:
    """One pass: accepted, the number, the next position; meaningless if the position is beyond the end."""
    if at >= words.size:
        return False, np.int64(0), words.size + 1
    word = np.uint64(words[at])  # m + 1 ≤ 28 of its bits are used
    negative = word & _1
    t = _1 << m
    u = (word >> _1) & (t - _1)
    success, at = _survives(words, at + 1, u << (_56 - m), table)  # step 2
    if not success:
        return False, np.int64(0), at
    v = _0
    success, at = _below(words, at, table, 0, 1)
    while success:  # step 3
        if v == _LAST:
            return False, np.int64(0), at
        v += _1
        success, at = _below(words, at, table, 0, 1)
    y = u + (v << m)
    if y == _0 and negative != _0:  # step 4
        return False, np.int64(0), at
    distance = y - t if y > t else t - y
    accepted, at = _survives(words, at, distance * distance << (_55 - m - m), table)  # step 5
    return accepted, -np.int64(y) if negative != _0 else np.int64(y), at


_WORDS = "Array(uint32, 1, 'C', readonly=True)"  # takes writable arrays too
_TABLE = "Array(uint32, 3, 'C', readonly=True)"


@njit(f"UniTuple(int64, 2)({_WORDS}, int64, int64[::1], uint64, {_TABLE})", nogil=True)
def fill(words: Words, at: int, out: Whole, m: int, table: Words) -> tuple[int, int]:
    """Fill `out` from the words at `at` on. Returns how many numbers are done and where the next one's words begin.

    Short of words it stops, and the words of the unfinished number are left: with more behind them, it reads the same
    ones again. So the numbers are a function of the stream of words, the same however it is cut into blocks.
    """
    for i in range(out.size):
        now = at
        accepted = False
        while not accepted:
            accepted, number, now = _attempt(words, now, m, table)
            if now > words.size:
                return i, at
        out[i] = number
        at = now
    return out.size, at


@cache
def _chacha20() -> Callable[[bytes, int], bytes] | None:
    """(key, size) -> that many bytes of the key's stream; None without the library."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    except ImportError:
        return None
    return lambda key, size: Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor().update(bytes(size))


def _entropy(count: int) -> Words:
    """Random words: ChaCha20 under a key of the operating system that is used here once and forgotten, so that no
    forked process shares it. Without `cryptography` the operating system's own stream, which takes 0.2 µs a number more
    and several times that on a busy machine."""
    stream = _chacha20()
    size = 4 * count
    return np.frombuffer(os.urandom(size) if stream is None else stream(os.urandom(32), size), np.uint32)


def _power(m: int) -> int:
    if not 0 <= index(m) <= LARGEST:
        raise ConfideError(f"noise of deviation 2^{m} grid steps: the power is 0 to {LARGEST}")
    return index(m)


def sample(count: int, m: int = GRID) -> Whole:
    """(count,) numbers of the discrete Gaussian of σ = 2^m, m at most 27, below 23·2^m in size."""
    count, m = index(count), _power(m)
    if count < 0:
        raise ConfideError(f"{count} numbers: ask for 0 or more")
    out, done = np.empty(count, np.int64), 0
    words = np.empty(0, np.uint32)
    while done < count:
        words = np.concatenate([words, _entropy(min(BLOCK, 18 * (count - done) + 64))])  # a number takes 17 on average
        new, at = fill(words, 0, out[done:], m, table())
        done, words = done + new, words[at:]
    return out


class Reservoir:
    """Noise drawn ahead: `fill` it before a round's inputs arrive, `take` from it when they have.

    Each number is given once: safe among threads, empty in a forked process, and neither copied nor stored.
    """

    def __init__(self, m: int = GRID) -> None:
        self.m = m
        self._empty()
        _RESERVOIRS.add(self)

    def _empty(self) -> None:
        self._lock = threading.Lock()
        self._numbers = sample(0, self.m)

    def __len__(self) -> int:
        return self._numbers.size

    def fill(self, count: int) -> None:
        """Draw until `count` numbers are there; in another thread, say: `take` doesn't wait for it."""
        more = sample(max(0, count - len(self)), self.m)
        with self._lock:
            self._numbers = np.concatenate([self._numbers, more])

    def take(self, count: int) -> Whole:
        """(count,) numbers; those that are not there are drawn now."""
        if count < 0:
            raise ConfideError(f"{count} numbers: ask for 0 or more")
        with self._lock:
            taken, self._numbers = self._numbers[:count].copy(), self._numbers[count:]
        return np.concatenate([taken, sample(count - taken.size, self.m)])

    def __reduce__(self) -> NoReturn:
        raise WrongType("a reservoir of noise can't be copied or stored: each number is used once")


_RESERVOIRS: weakref.WeakSet[Reservoir] = weakref.WeakSet()


def _after_fork() -> None:
    for reservoir in _RESERVOIRS:
        reservoir._empty()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- Noise for real numbers ---------------------------------------------------------------------------------------


@njit("void(int64[::1], int64[::1], int64, int64[::1])", nogil=True)
def _divide(mantissas: Whole, powers: Whole, divisor: int, out: Whole) -> None:
    """out = a·2^power/divisor, half to even, within ±SATURATION; |a| is 0 or, like the divisor, in [2^52, 2^53)."""
    for i in range(out.size):
        a, s, b = abs(mantissas[i]), powers[i], divisor
        if a == 0 or s < -1:  # below a quarter
            out[i] = 0
            continue
        if s > 62:
            quotient = SATURATION
        else:
            if s == -1:
                b, s = 2 * b, 0
            quotient, rest = a // b, a % b
            while s > 0:  # ten binary digits at a time: the rest is below 2^53
                step = min(s, 10)
                rest <<= step
                quotient = (quotient << step) + rest // b
                rest %= b
                s -= step
            if 2 * rest > b or (2 * rest == b and quotient & 1):
                quotient += 1
            quotient = min(quotient, SATURATION)
        out[i] = quotient if mantissas[i] > 0 else -quotient


def quantise(values: ArrayLike, scale: float, m: int = GRID) -> Whole:
    """The values in steps of scale/2^m, rounded exactly and half to even; beyond ±2^62 steps, infinity included, ±2^62.

    Rounding moves each by at most half a step, and saturation brings no two further apart.
    """
    values = np.asarray(values, float)
    if np.isnan(values).any():
        raise ConfideError("a value is not a number: noise is added to numbers")
    _check(scale)
    largest = np.finfo(float).max
    mantissas, exponents = np.frexp(np.clip(values, -largest, largest).ravel())
    mantissa, exponent = math.frexp(scale)
    out = np.empty(values.size, np.int64)
    powers = exponents.astype(np.int64) - exponent + _power(m)
    _divide((mantissas * 2.0**53).astype(np.int64), powers, int(mantissa * 2.0**53), out)
    return out.reshape(values.shape)


def gaussian(values: ArrayLike, scale: float, reservoir: Reservoir | None = None) -> Array:
    """The values on a grid of scale/2^26 (see `quantise`) plus noise of deviation `scale` on it, in the values' shape.

    What is released is the whole number of steps, values and noise. Turning it into a double (`doubles`) is
    post-processing: correctly rounded below 2^53 steps, 10^8 scales, and to the last but one bit above.
    """
    _check(scale)
    if reservoir is not None and reservoir.m != GRID:
        raise ConfideError(f"a reservoir of deviation 2^{reservoir.m} steps: the noise here has 2^{GRID}")
    steps = quantise(values, scale)
    noise = sample(steps.size) if reservoir is None else reservoir.take(steps.size)
    return doubles(steps + noise.reshape(steps.shape), scale)


def doubles(steps: Whole, scale: float, m: int = GRID) -> Array:
    """What so many steps of scale/2^m stand for: the same doubles on every machine."""
    return np.ldexp(steps.astype(float), -m) * scale


def _check(scale: float) -> None:
    if not 2.0**-EXTREME <= scale <= 2.0**EXTREME:
        raise ConfideError(f"noise scale {scale}: a release needs noise of a scale from 2^-{EXTREME} to 2^{EXTREME}")
