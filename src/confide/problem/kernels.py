"""Compiled passes over the rows: margins, slopes, clipping and sums of a tile of rows before the next tile is read.

Nothing of the data's size is ever built. Sums run in chunks of rows counted from each agent's first row, so an agent's
sum does not depend on who else is in the pass, nor on the number of threads or seeds. In float64 a chunked sum of n
terms is off by at most (chunk + n/chunk)·1.1e-16 relative to Σ|terms|: 1e-12 for 2·10⁷ rows, far below any
sensitivity 2c/n.

`w`, `q` and `norms` (row weights, label noise, row lengths) have one entry a row, or a single entry for all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from confide.problem.margin import LOGISTIC, curvature1, row_slopes, row_value, slope1, value1
from confide.problem.rows import adds, adds_together, dots, dots_together, side_by_side, squares

Array = NDArray[np.float64]
Index = NDArray[np.int64]

CHUNK_BYTES = 128 * 1024  # a chunk stays in the second-level cache while every seed passes over it
TILE = 32  # rows that go through margin, slope and sum together
SEEDS_TOGETHER = 32  # seeds that pass over a tile side by side


def chunk_table(offsets: Index, row_bytes: Array) -> Index:
    """(chunks, 3): agent, first row, end row; an agent's chunks depend on its own rows' size (A,) alone."""
    lengths = np.clip(CHUNK_BYTES / np.maximum(row_bytes, 1.0), 64, 8192).astype(int)
    table = [
        (k, start, min(start + int(lengths[k]), int(offsets[k + 1])))
        for k in range(len(offsets) - 1)
        for start in range(int(offsets[k]), int(offsets[k + 1]), int(lengths[k]))
    ]
    return np.array(table, np.int64).reshape(-1, 3)


@njit(cache=True)
def row_norms(rows: Any, n: int, intercept: bool, out: Array) -> None:
    """‖(x_i, 1)‖₂ of every row, or ‖x_i‖₂ without an intercept."""
    squares(rows, n, out)
    for i in range(n):
        out[i] = math.sqrt(out[i] + (1.0 if intercept else 0.0))


@njit(cache=True)
def seed_groups(seeds: int) -> int:
    """Groups of seeds that pass over the rows together."""
    return (seeds + SEEDS_TOGETHER - 1) // SEEDS_TOGETHER


@njit(cache=True)
def _each(values: Array, i: int) -> float:
    """values[i], or the one value there is."""
    return values[i] if values.size > 1 else values[0]


# --- gradients ------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _slopes(
    z: Array, y: Array, w: Array, q: Array, norms: Array, first: int, count: int, code: int, a: float, clip: float
) -> None:
    """Margins of a tile become weighted, clipped slopes, in place; z (m, at least count)."""
    if z.shape[0] > 1:
        _class_slopes(z, y, w, q, norms, first, count, code, a, clip)
        return
    if q.size == 1 and q[0] == 0.0:
        if code == LOGISTIC:  # a loop of its own, so that the compiler can vectorise it
            for t in range(count):
                z[0, t] = slope1(LOGISTIC, a, z[0, t], y[first + t])
        else:
            for t in range(count):
                z[0, t] = slope1(code, a, z[0, t], y[first + t])
    else:
        for t in range(count):
            i, s = first + t, z[0, t]
            noisy = _each(q, i)
            z[0, t] = (1.0 + noisy) * slope1(code, a, s, y[i]) - noisy * slope1(code, a, s, -y[i])
    if w.size > 1 or w[0] != 1.0:
        for t in range(count):
            z[0, t] *= _each(w, first + t)
    if clip < math.inf:
        for t in range(count):
            size = abs(z[0, t]) * norms[first + t]
            z[0, t] *= clip / size if size > clip else 1.0


@njit(cache=True)
def _class_slopes(
    z: Array, y: Array, w: Array, q: Array, norms: Array, first: int, count: int, code: int, a: float, clip: float
) -> None:
    """`_slopes` for several margins a row."""
    m = z.shape[0]
    margin, s = np.empty(m), np.empty(m)
    for t in range(count):
        i = first + t
        for c in range(m):
            margin[c] = z[c, t]
        row_slopes(code, a, margin, y[i], _each(q, i), s)
        factor, size = _each(w, i), math.sqrt(np.dot(s, s))
        if clip < math.inf:
            factor *= min(1.0, clip / max(size * norms[i] * abs(factor), 1e-300))
        for c in range(m):
            z[c, t] = factor * s[c]


@njit(cache=True)
def add_gradients(
    rows: Any, y: Array, w: Array, q: Array, norms: Array, start: int, stop: int,
    beta: Array, code: int, a: float, clip: float, out: Array,
) -> None:  # fmt: skip
    """out += Σ w_i ∇ℓ_i(β) over rows start..stop, each row's gradient shortened to norm `clip`; beta, out (m, P)."""
    m = beta.shape[0]
    z = np.empty((m, TILE))
    for first in range(start, stop, TILE):
        count = min(TILE, stop - first)
        for c in range(m):
            dots(rows, first, count, beta, c, z)
        _slopes(z, y, w, q, norms, first, count, code, a, clip)
        for c in range(m):
            adds(rows, first, count, z, c, out)


@njit(cache=True, error_model="numpy")
def _add_gradients_together(
    rows: Any, y: Array, w: Array, q: Array, norms: Array, start: int, stop: int,
    beta: Array, code: int, a: float, clip: float, out: Array,
) -> None:  # fmt: skip
    """`add_gradients` for many seeds side by side and one margin, to the same bits; beta, out (seeds, 1, P)."""
    seeds, _, width = beta.shape
    b, total = np.empty((width, seeds)), np.zeros((width, seeds))
    b[:, :] = beta[:, 0, :].T
    z = np.empty((TILE, seeds))
    for first in range(start, stop, TILE):
        count = min(TILE, stop - first)
        dots_together(rows, first, count, b, z)
        for t in range(count):
            i = first + t
            weight, noisy, target = _each(w, i), _each(q, i), y[i]
            for n in range(seeds):
                s = slope1(code, a, z[t, n], target)
                if noisy != 0.0:
                    s = (1.0 + noisy) * s - noisy * slope1(code, a, z[t, n], -target)
                s *= weight
                if clip < math.inf:
                    size = abs(s) * norms[i]
                    s *= clip / size if size > clip else 1.0
                z[t, n] = s
        adds_together(rows, first, count, z, total)
    out[:, 0, :] = total.T


@njit(cache=True, nogil=True)
def gradient_jobs(
    rows: Any, y: Array, w: Array, q: Array, norms: Array, table: Index, beta: Array, code: int, a: float,
    clip: Array, part: Array, first: int, end: int,
) -> None:  # fmt: skip
    """part[t, s] = Σ w_i clip(∇ℓ_i(β_sk)) over chunk t; job = chunk·groups + group of seeds; beta (S, A, m, P)."""
    seeds = beta.shape[0]
    groups = seed_groups(seeds)
    for job in range(first, end):
        t, s = job // groups, (job % groups) * SEEDS_TOGETHER
        k, start, stop = table[t, 0], table[t, 1], table[t, 2]
        last = min(s + SEEDS_TOGETHER, seeds)
        if last - s >= 4 and beta.shape[2] == 1 and side_by_side(rows):
            group, sums = beta[s:last, k], part[t, s:last]
            _add_gradients_together(rows, y, w, q, norms, start, stop, group, code, a, clip[k], sums)
        else:
            for n in range(s, last):
                add_gradients(rows, y, w, q, norms, start, stop, beta[n, k], code, a, clip[k], part[t, n])


@njit(cache=True)
def sum_chunks(part: Array, table: Index, scale: Array, out: Array) -> None:
    """out[s, k] += scale_k·Σ part[t, s] over agent k's chunks, in row order; part (T, S, n), out (S, A, n)."""
    for t in range(part.shape[0]):
        k = table[t, 0]
        for s in range(part.shape[1]):
            for j in range(part.shape[2]):
                out[s, k, j] += scale[k] * part[t, s, j]


# --- values ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _values(z: Array, y: Array, w: Array, q: Array, first: int, count: int, code: int, a: float) -> None:
    """Margins of a tile become weighted losses, in place in z[0]; z (m, at least count)."""
    m = z.shape[0]
    if m > 1:
        margin = np.empty(m)
        for t in range(count):
            for c in range(m):
                margin[c] = z[c, t]
            z[0, t] = _each(w, first + t) * row_value(code, a, margin, y[first + t], _each(q, first + t))
        return
    for t in range(count):
        i = first + t
        noisy, v = _each(q, i), value1(code, a, z[0, t], y[i])
        if noisy != 0.0:
            v = (1.0 + noisy) * v - noisy * value1(code, a, z[0, t], -y[i])
        z[0, t] = _each(w, i) * v


@njit(cache=True)
def add_values(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, beta: Array, code: int, a: float
) -> float:
    """Σ w_i ℓ_i(β) over rows start..stop; beta (m, P)."""
    m = beta.shape[0]
    z = np.empty((m, TILE))
    total = 0.0
    for first in range(start, stop, TILE):
        count = min(TILE, stop - first)
        for c in range(m):
            dots(rows, first, count, beta, c, z)
        _values(z, y, w, q, first, count, code, a)
        for t in range(count):
            total += z[0, t]
    return total


@njit(cache=True)
def _add_values_together(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, beta: Array, code: int, a: float, out: Array
) -> None:
    """`add_values` for many seeds side by side and one margin, to the same bits; beta (seeds, 1, P), out (seeds, 1)."""
    seeds, _, width = beta.shape
    b, z = np.empty((width, seeds)), np.empty((TILE, seeds))
    b[:, :] = beta[:, 0, :].T
    for first in range(start, stop, TILE):
        count = min(TILE, stop - first)
        dots_together(rows, first, count, b, z)
        for t in range(count):
            i = first + t
            weight, noisy, target = _each(w, i), _each(q, i), y[i]
            for n in range(seeds):
                v = value1(code, a, z[t, n], target)
                if noisy != 0.0:
                    v = (1.0 + noisy) * v - noisy * value1(code, a, z[t, n], -target)
                out[n, 0] += weight * v


@njit(cache=True, nogil=True)
def value_jobs(
    rows: Any, y: Array, w: Array, q: Array, table: Index, beta: Array, code: int, a: float,
    part: Array, first: int, end: int,
) -> None:  # fmt: skip
    """part[t, s, 0] = Σ w_i ℓ_i(β_sk) over chunk t; job = chunk·groups + group of seeds; beta (S, A, m, P)."""
    seeds = beta.shape[0]
    groups = seed_groups(seeds)
    for job in range(first, end):
        t, s = job // groups, (job % groups) * SEEDS_TOGETHER
        k, start, stop = table[t, 0], table[t, 1], table[t, 2]
        last = min(s + SEEDS_TOGETHER, seeds)
        if last - s >= 4 and beta.shape[2] == 1 and side_by_side(rows):
            _add_values_together(rows, y, w, q, start, stop, beta[s:last, k], code, a, part[t, s:last])
        else:
            for n in range(s, last):
                part[t, n, 0] = add_values(rows, y, w, q, start, stop, beta[n, k], code, a)


@njit(cache=True, nogil=True)
def difference_jobs(
    rows: Any, y: Array, w: Array, q: Array, table: Index, plus: Array, minus: Array, gap: float,
    code: int, a: float, clip: Array, part: Array, first: int, end: int,
) -> None:  # fmt: skip
    """part[t, s, 0] = Σ clip(w_i [ℓ_i(plus) - ℓ_i(minus)]/gap) over chunk t; job = chunk·seeds + seed."""
    seeds, _, m, _ = plus.shape
    up, down = np.empty((m, TILE)), np.empty((m, TILE))
    for job in range(first, end):
        t, s = job // seeds, job % seeds
        k, total = table[t, 0], 0.0
        for start in range(table[t, 1], table[t, 2], TILE):
            count = min(TILE, table[t, 2] - start)
            for c in range(m):
                dots(rows, start, count, plus[s, k], c, up)
                dots(rows, start, count, minus[s, k], c, down)
            _values(up, y, w, q, start, count, code, a)
            _values(down, y, w, q, start, count, code, a)
            for n in range(count):
                total += min(clip[k], max(-clip[k], (up[0, n] - down[0, n]) / gap))
        part[t, s, 0] = total


# --- for the solvers ------------------------------------------------------------------------------------------------


@njit(cache=True)
def margins(rows: Any, start: int, stop: int, beta: Array) -> Array:
    """x_iᵀβ over rows start..stop for one coefficient vector: (1, rows) from (1, P)."""
    z = np.empty((1, stop - start))
    dots(rows, start, stop - start, beta, 0, z)
    return z


@njit(cache=True)
def curvatures(z: Array, y: Array, w: Array, start: int, code: int, a: float) -> Array:
    """w_i ℓ''(z_i, y_i) for the margins of rows start onwards."""
    out = np.empty(z.size)
    for i in range(z.size):
        out[i] = _each(w, start + i) * curvature1(code, a, z[i], y[start + i])
    return out
