"""Compiled passes over the rows: each reads a row once and leaves no temporary of the data's size.

`rows` is a dense (n, p) array or a CSR triple (data, indices, indptr); `row_dot` and `row_add` are the only places
that know which, so every kernel serves both. A coefficient vector longer than a row has the intercept last.

Sums run in chunks of rows counted from each agent's first row, so an agent's sum does not depend on who else is in
the pass, nor on the number of threads. In float64 a chunked sum of n terms is off by at most (chunk + n/chunk)·1.1e-16
relative to Σ|terms|: 1e-12 for 2·10⁷ rows, far below any sensitivity 2c/n.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from confide.problem.losses import curvature1, row_slopes, row_value

Array = NDArray[np.float64]
Index = NDArray[np.int64]

CHUNK_BYTES = 128 * 1024  # a chunk stays in the second-level cache while every seed passes over it
_LOOSE = {"reassoc", "contract"}  # lets the compiler vectorise a sum; the order is fixed at compile time


def row_dot(rows: Any, i: int, beta: Array) -> float:
    """x_iᵀβ, the intercept included."""
    raise NotImplementedError("compiled only")


def row_add(rows: Any, i: int, s: float, out: Array) -> None:
    """out += s·x_i, the intercept included."""
    raise NotImplementedError("compiled only")


@overload(row_dot, jit_options={"fastmath": _LOOSE, "cache": True})
def _row_dot(rows: Any, i: Any, beta: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, i: Any, beta: Any) -> Any:
            p = rows.shape[1]
            z = 0.0
            for j in range(p):
                z += rows[i, j] * beta[j]
            return z + beta[p] if beta.size > p else z

        return dense

    def csr(rows: Any, i: Any, beta: Any) -> Any:
        data, indices, indptr, p = rows
        z = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            z += data[j] * beta[indices[j]]
        return z + beta[p] if beta.size > p else z

    return csr


@overload(row_add, jit_options={"fastmath": _LOOSE, "cache": True})
def _row_add(rows: Any, i: Any, s: Any, out: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, i: Any, s: Any, out: Any) -> Any:
            p = rows.shape[1]
            for j in range(p):
                out[j] += s * rows[i, j]
            if out.size > p:
                out[p] += s

        return dense

    def csr(rows: Any, i: Any, s: Any, out: Any) -> Any:
        data, indices, indptr, p = rows
        for j in range(indptr[i], indptr[i + 1]):
            out[indices[j]] += s * data[j]
        if out.size > p:
            out[p] += s

    return csr


def chunk_table(offsets: Index, row_bytes: float) -> Index:
    """(chunks, 3): agent, first row, end row."""
    length = int(min(8192, max(64, CHUNK_BYTES / max(row_bytes, 1.0))))
    table = [
        (k, start, min(start + length, int(offsets[k + 1])))
        for k in range(len(offsets) - 1)
        for start in range(int(offsets[k]), int(offsets[k + 1]), length)
    ]
    return np.array(table, np.int64).reshape(-1, 3)


@njit(cache=True)
def row_norms(rows: Any, n: int, p: int, intercept: bool, out: Array) -> None:
    """‖(x_i, 1)‖₂ of every row, or ‖x_i‖₂ without an intercept."""
    for i in range(n):
        out[i] = math.sqrt(row_square(rows, i) + (1.0 if intercept else 0.0))


def row_square(rows: Any, i: int) -> float:
    """‖x_i‖²."""
    raise NotImplementedError("compiled only")


@overload(row_square, jit_options={"cache": True})
def _row_square(rows: Any, i: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, i: Any) -> Any:
            total = 0.0
            for j in range(rows.shape[1]):
                total += rows[i, j] * rows[i, j]
            return total

        return dense

    def csr(rows: Any, i: Any) -> Any:
        data, _, indptr, _ = rows
        total = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            total += data[j] * data[j]
        return total

    return csr


# --- sums over rows -------------------------------------------------------------------------------------------------


@njit(cache=True)
def add_gradients(
    rows: Any, y: Array, w: Array, q: Array, norms: Array, start: int, stop: int,
    beta: Array, code: int, a: float, clip: float, out: Array,
) -> None:  # fmt: skip
    """out += Σ w_i ∇ℓ_i(β) over rows start..stop, each row's gradient shortened to norm `clip`; beta, out (m, P).

    `w`, `q` and `norms` have one entry a row, or a single entry for all.
    """
    m = beta.shape[0]
    z, s = np.empty(m), np.empty(m)
    iw, iq = (1 if w.size > 1 else 0), (1 if q.size > 1 else 0)
    for i in range(start, stop):
        for c in range(m):
            z[c] = row_dot(rows, i, beta[c])
        row_slopes(code, a, z, y[i], q[iq * i], s)
        factor = w[iw * i]
        if clip < math.inf:
            size = 0.0
            for c in range(m):
                size += s[c] * s[c]
            size = math.sqrt(size) * norms[i] * abs(factor)
            if size > clip:
                factor *= clip / size
        for c in range(m):
            row_add(rows, i, factor * s[c], out[c])


@njit(cache=True, nogil=True)
def gradient_jobs(
    rows: Any, y: Array, w: Array, q: Array, norms: Array, table: Index, beta: Array, code: int, a: float,
    clip: Array, part: Array, first: int, end: int,
) -> None:  # fmt: skip
    """part[t, s] += Σ w_i clip(∇ℓ_i(β_sk)) over chunk t; job = chunk·seeds + seed; beta (S, A, m, P)."""
    seeds = beta.shape[0]
    for job in range(first, end):
        t, s = job // seeds, job % seeds
        k = table[t, 0]
        add_gradients(rows, y, w, q, norms, table[t, 1], table[t, 2], beta[s, k], code, a, clip[k], part[t, s])


@njit(cache=True)
def sum_chunks(part: Array, table: Index, scale: Array, out: Array) -> None:
    """out[s, k] += scale_k·Σ part[t, s] over agent k's chunks, in row order; part (T, S, n), out (S, A, n)."""
    for t in range(part.shape[0]):
        k = table[t, 0]
        for s in range(part.shape[1]):
            for j in range(part.shape[2]):
                out[s, k, j] += scale[k] * part[t, s, j]


@njit(cache=True)
def add_values(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, beta: Array, code: int, a: float
) -> float:
    """Σ w_i ℓ_i(β) over rows start..stop; beta (m, P)."""
    m = beta.shape[0]
    z = np.empty(m)
    iw, iq = (1 if w.size > 1 else 0), (1 if q.size > 1 else 0)
    total = 0.0
    for i in range(start, stop):
        for c in range(m):
            z[c] = row_dot(rows, i, beta[c])
        total += w[iw * i] * row_value(code, a, z, y[i], q[iq * i])
    return total


@njit(cache=True, nogil=True)
def value_jobs(
    rows: Any, y: Array, w: Array, q: Array, table: Index, beta: Array, code: int, a: float,
    part: Array, first: int, end: int,
) -> None:  # fmt: skip
    """part[t, s, 0] = Σ w_i ℓ_i(β_sk) over chunk t; job = chunk·seeds + seed; beta (S, A, m, P)."""
    seeds = beta.shape[0]
    for job in range(first, end):
        t, s = job // seeds, job % seeds
        part[t, s, 0] = add_values(rows, y, w, q, table[t, 1], table[t, 2], beta[s, table[t, 0]], code, a)


@njit(cache=True)
def margins(rows: Any, start: int, stop: int, beta: Array) -> Array:
    """x_iᵀβ over rows start..stop for one coefficient vector (P,)."""
    z = np.empty(stop - start)
    for i in range(start, stop):
        z[i - start] = row_dot(rows, i, beta)
    return z


@njit(cache=True)
def curvatures(z: Array, y: Array, w: Array, start: int, code: int, a: float) -> Array:
    """w_i ℓ''(z_i, y_i) for the margins of rows start onwards."""
    out = np.empty(z.size)
    iw = 1 if w.size > 1 else 0
    for i in range(z.size):
        out[i] = w[iw * (start + i)] * curvature1(code, a, z[i], y[start + i])
    return out
