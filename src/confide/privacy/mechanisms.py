"""What happens at the user before training: randomised response on labels.

A label moves to one of the other k - 1 classes with probability q = (k-1)/(e^ε + k-1), else it is kept: odds of e^ε
against each other class. A q rounded to a double would be 0 beyond ε = 37 (a label that is never changed has no ε at
all) and would leave ε behind where it is tiny. So q is never rounded: with U uniform on [0, 1), its binary digits drawn
64 at a time, the label moves where U < q. The first word almost always decides, against bounds of q in doubles that are
wide enough for their rounding; where it does not (one label in 2^46), more digits of U are drawn until they lie outside
an interval around q, whose e^ε comes correctly rounded from `decimal` at that many digits. q is irrational for ε > 0:
this ends, and the law is exact for every double ε, on the assumption that the words are uniform and independent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError

Array = NDArray[np.float64]
Words = Callable[[int], NDArray[np.uint64]]  # so many independent uniform 64-bit words

_ROUNDING = 2.0**-48  # relative; q takes five operations in doubles, each correct to 2^-52 or better


def randomize_labels(labels: Any, epsilon: Any, classes: int = 2, *, seed: int | None = None) -> Array:
    """k-ary randomised response: each label kept with odds e^ε against each other class (Warner 1965; Kairouz 2016).

    Binary labels are -1 and 1, others 0..classes-1. `epsilon`: one number, or one per user, chosen before the label is
    read. ε-locally private for each label, once: draw once per person and keep the result, since a second draw costs ε
    again. `seed=None` takes the operating system's entropy; a seed is for simulations and protects nobody.
    """
    y = np.asarray(labels, float)
    eps = np.broadcast_to(np.asarray(epsilon, float), y.shape)
    if isinstance(classes, bool) or int(classes) != classes or classes < 2:
        raise ConfideError(f"classes={classes}: must be a whole number of at least 2")
    if not (np.all(eps > 0) and np.all(np.isfinite(eps))):
        raise ConfideError(f"epsilon={epsilon}: must be finite and above 0")
    allowed = np.array([-1.0, 1.0]) if classes == 2 else np.arange(float(classes))
    if not np.all(np.isin(y, allowed)):
        bad = y[~np.isin(y, allowed)].flat[0]
        raise ConfideError(f"label {bad:g}: must be {'-1 or 1' if classes == 2 else f'0 to {classes - 1}'}")
    if seed is None:
        moves, other = _moves(eps.ravel(), int(classes), _secure), _below(int(classes) - 1, y.size, _secure)
    else:
        rng = np.random.default_rng(seed)
        moves = _moves(eps.ravel(), int(classes), lambda count: ~rng.bit_generator.random_raw(count))
        other = rng.integers(0, int(classes) - 1, y.size)
    index = np.searchsorted(allowed, y)
    moved = (index + 1 + other.reshape(y.shape)) % int(classes)
    return np.asarray(allowed[np.where(moves.reshape(y.shape), moved, index)])


def _secure(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * count), np.uint64)


def _moves(eps: Array, classes: int, words: Words) -> NDArray[np.bool_]:
    """For each ε (n,) whether U < (k-1)/(e^ε + k-1), U having the words drawn as its digits to base 2^64."""
    first = np.asarray(words(eps.size))
    with np.errstate(over="ignore"):  # e^ε beyond the doubles leaves 0, which the lower bound stays above
        chance = (classes - 1) / (np.exp(eps) + (classes - 1)) * 2.0**64
    low, high = np.floor(chance * (1 - _ROUNDING)), np.floor(chance * (1 + _ROUNDING)) + 1
    top = 2.0**64 - 2048  # the largest double that is a 64-bit word
    certain = first < np.minimum(low, top).astype(np.uint64)
    open_ = ~certain & ((first <= np.minimum(high, top).astype(np.uint64)) | (high > top))
    for i in np.flatnonzero(open_):
        certain[i] = _below_chance(int(first[i]), float(eps[i]), classes, words)
    return certain


def _below_chance(drawn: int, epsilon: float, classes: int, words: Words) -> bool:
    """Whether U < (k-1)/(e^ε + k-1), `drawn` being U's first word: as many more as the answer needs."""
    bits = 64
    while True:
        low, high = _chance(epsilon, classes, bits)
        if drawn + 1 <= low:  # U < (drawn + 1)/2^bits
            return True
        if drawn >= high:
            return False
        drawn, bits = (drawn << 64) + int(words(1)[0]), bits + 64


def _chance(epsilon: float, classes: int, bits: int) -> tuple[int, int]:
    """Whole numbers around 2^bits·(k-1)/(e^ε + k-1), a unit or two apart."""
    others = classes - 1
    if epsilon > bits + others.bit_length():  # e^ε > 2^bits·(k-1)
        return 0, 1
    digits = (bits + others.bit_length() + 32) * 31 // 100 + 2  # 10^-digits < 2^-(bits + 32)
    power = Fraction(Decimal(epsilon).exp(Context(prec=digits, Emin=-(10**6), Emax=10**6)))
    slip = power / 10 ** (digits - 1)  # more than the unit in the last place of a correctly rounded result
    wide = others << bits
    return int(wide / (power + slip + others)), -int(-wide // (power - slip + others))


def _below(count: int, size: int, words: Words) -> NDArray[np.int64]:
    """`size` independent uniform numbers from 0 to count - 1."""
    if count == 1:
        return np.zeros(size, np.int64)
    found = np.array(words(size))
    if last := 2**64 % count:  # a word from here on would favour the small numbers
        while np.any(again := found >= np.uint64(2**64 - last)):
            found[again] = words(int(again.sum()))
    return (found % np.uint64(count)).astype(np.int64)
