"""Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): words that depend on a counter and a key alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.compiled import njit

MASK = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@njit(inline="always")  # so that a loop over counters becomes SIMD
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Four 32-bit words, held in uint64."""
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> SHIFT) ^ c1 ^ k0, p1 & MASK, (p0 >> SHIFT) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + W0) & MASK, (k1 + W1) & MASK
    return c0, c1, c2, c3
