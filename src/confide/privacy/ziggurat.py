"""Fast standard normals for draws on which no privacy rests, such as search directions.

The ziggurat of Marsaglia and Tsang (J. Stat. Softw. 5(8), 2000) in Doornik's form ("An improved ziggurat method",
2005), which takes the layer and the value from different bits, on words of Philox-4x32-10: entry i of a draw comes from
word i alone, 24 bits of it, and from words of its own in the one case of 140 that the first is rejected. So any prefix
of a draw, of any seed and agent, can be had by itself.

Measured side by side on one thread (benchmarks/by_hand.py, three runs): a million numbers take 3 ms; NumPy's ziggurat
takes 3.4 to 5.3 times as long on PCG64 and 4.9 to 7.0 on its Philox, Numba's own normals 13 to 19 times, and Box and
Muller on the same counters (`noise.fill`) 7.5 to 11 times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import njit
from confide.privacy.philox import MASK, SHIFT, W1, philox

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LAYERS = 256
EDGE, AREA = 3.6541528853610088, 4.92867323399e-3  # of 256 layers: start of the tail, area of each
TILE = 256  # entries whose words are drawn together

_EIGHT, _LOW = np.uint64(8), np.uint64(LAYERS - 1)
_AGAIN = np.uint64(0x80000000)  # counters of words for rejected entries lie above those of first words
_SALT = np.uint64(0x5A16)  # a draw of `noise.fill` by the same name shares no words


def _edges() -> Array:
    """x_0 > x_1 = EDGE > … > x_256 = 0: the layers' right ends, all of the same area."""
    x = np.zeros(LAYERS + 1)
    x[0], x[1] = AREA / math.exp(-0.5 * EDGE**2), EDGE
    for i in range(2, LAYERS):
        x[i] = math.sqrt(-2 * math.log(AREA / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    return x


_X = _edges()
_RATIO = _X[1:] / _X[:-1]


@njit
def _words(block: Any, agent: Any, t: Any, name: Any, k0: Any, k1: Any, count: int, out: Any) -> None:
    """Words of `count` blocks from `block` on, word i of a block in row i; a loop that the compiler turns to SIMD."""
    for b in range(count):
        c0, c1, c2, c3 = philox(block + np.uint64(b), agent, t, name, k0, k1)
        out[0, b], out[1, b], out[2, b], out[3, b] = c0, c1, c2, c3


@njit
def _uniform(word: Any) -> float:
    return (float(np.int64(word)) + 0.5) / 4294967296.0


@njit
def _value(word: Any) -> float:
    """In (-1, 1): the upper 24 bits of a word."""
    return (float(np.int64(word >> _EIGHT)) + 0.5) * 2.0**-23 - 1.0


@njit
def _slow(word: Any, i: int, agent: Any, t: Any, name: Any, k0: Any, k1: Any) -> float:
    """Entry i when its first word lies outside the layer's core: wedge, tail or another try, from words of its own."""
    again, own = name, _AGAIN + np.uint64(i)
    while True:
        layer, u = np.int64(word & _LOW), _value(word)
        if abs(u) < _RATIO[layer]:
            return float(u * _X[layer])
        again = (again + W1) & MASK
        w0, w1, w2, _ = philox(own, agent, t, again, k0, k1)
        if layer == 0:  # the tail, by Marsaglia's rejection: once in it, it is not left
            x, y = math.log(_uniform(w0)) / EDGE, math.log(_uniform(w1))
            while -2.0 * y < x * x:
                again = (again + W1) & MASK
                w0, w1, _, _ = philox(own, agent, t, again, k0, k1)
                x, y = math.log(_uniform(w0)) / EDGE, math.log(_uniform(w1))
            return x - EDGE if u < 0 else EDGE - x
        x = u * _X[layer]
        low = math.exp(-0.5 * (_X[layer] ** 2 - x * x))
        high = math.exp(-0.5 * (_X[layer + 1] ** 2 - x * x))
        if high + _uniform(w0) * (low - high) < 1.0:
            return float(x)
        word = w2


@njit
def normals(seed: Any, agent: Any, t: Any, name: Any, first: int, count: int, out: Array) -> None:
    """out[:count] = entries first, first + 1, … of the draw (seed, agent, t, name); `first` is a multiple of 4."""
    seed, agent, t, name = np.uint64(seed), np.uint64(agent), np.uint64(t), np.uint64(name) ^ _SALT
    k0, k1 = seed & MASK, seed >> SHIFT
    words = np.empty((4, TILE // 4), np.uint64)
    for start in range(0, count, TILE):
        size = min(TILE, count - start)
        _words(np.uint64((first + start) // 4), agent, t, name, k0, k1, (size + 3) // 4, words)
        for j in range(size):
            word = words[j & 3, j >> 2]
            layer, u = np.int64(word & _LOW), _value(word)
            if abs(u) < _RATIO[layer]:
                out[start + j] = u * _X[layer]
            else:
                out[start + j] = _slow(word, first + start + j, agent, t, name, k0, k1)


@njit(nogil=True)
def fill_normals(seeds: Index, agents: Index, t: int, name: int, out: Array, first: int, end: int) -> None:
    """out[s, a, :] for the jobs first..end (job = s·agents + a)."""
    for job in range(first, end):
        i, j = job // agents.size, job % agents.size
        normals(seeds[i], agents[j], t, name, 0, out.shape[2], out[i, j])
