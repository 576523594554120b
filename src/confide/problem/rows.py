"""A few rows of a data set, dense or sparse, inside compiled code.

`rows` is a dense (n, p) array or a CSR tuple (data, indices, indptr, p); these functions are the only places that know
which, so every kernel serves both. A coefficient vector longer than a row has the intercept last.

They work on `count` rows from `first`: a call on arrays costs reference counts, and a tile of rows makes them cheap
while it stays in the first-level cache, so that memory is read once all the same.

Dense rows of at least `WIDE` features are vectorised along their features and taken several at a time, so that
coefficients and sums are loaded once for them; the compiler chooses the order of those sums.
Shorter and sparse rows are summed in index order with strict arithmetic, so that `dots_together`, which takes many
seeds side by side and is vectorised along them, gives the same bits as `dots` for each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[np.float64]
WIDE = 16


def dots(rows: Any, first: int, count: int, beta: Array, c: int, z: Array) -> None:
    """z[c, t] = x_(first+t)ᵀβ_c; beta (classes, P), z (classes, at least count)."""
    raise NotImplementedError("compiled only")


def adds(rows: Any, first: int, count: int, s: Array, c: int, out: Array) -> None:
    """out_c += Σ_t s[c, t]·x_(first+t); s (classes, at least count), out (classes, P)."""
    raise NotImplementedError("compiled only")


def dots_together(rows: Any, first: int, count: int, beta: Array, z: Array) -> None:
    """z[t] = x_(first+t)ᵀβ for many seeds; beta (P, seeds), z (at least count, seeds)."""
    raise NotImplementedError("compiled only")


def adds_together(rows: Any, first: int, count: int, s: Array, out: Array) -> None:
    """out += Σ_t x_(first+t) s[t] for many seeds; s (at least count, seeds), out (P, seeds)."""
    raise NotImplementedError("compiled only")


def side_by_side(rows: Any) -> bool:
    """Whether many seeds may pass over a row together, to the same bits."""
    raise NotImplementedError("compiled only")


def squares(rows: Any, n: int, out: Array) -> None:
    """out[i] = ‖x_i‖² of the first n rows."""
    raise NotImplementedError("compiled only")


@njit(cache=True, fastmath={"reassoc", "contract"})
def _wide_dots(rows: Array, first: int, count: int, beta: Array, c: int, z: Array) -> None:
    fours = count - count % 4
    for t in range(0, fours, 4):
        i, z0, z1, z2, z3 = first + t, 0.0, 0.0, 0.0, 0.0
        for j in range(rows.shape[1]):
            b = beta[c, j]
            z0 += rows[i, j] * b
            z1 += rows[i + 1, j] * b
            z2 += rows[i + 2, j] * b
            z3 += rows[i + 3, j] * b
        z[c, t], z[c, t + 1], z[c, t + 2], z[c, t + 3] = z0, z1, z2, z3
    for t in range(fours, count):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[first + t, j] * beta[c, j]
        z[c, t] = total


@njit(cache=True, fastmath={"contract"})
def _wide_adds(rows: Array, first: int, count: int, s: Array, c: int, out: Array) -> None:
    for t in range(0, count - 1, 2):
        i, s0, s1 = first + t, s[c, t], s[c, t + 1]
        for j in range(rows.shape[1]):
            out[c, j] += s0 * rows[i, j] + s1 * rows[i + 1, j]
    if count % 2:
        i, s0 = first + count - 1, s[c, count - 1]
        for j in range(rows.shape[1]):
            out[c, j] += s0 * rows[i, j]


@overload(dots)
def _dots(rows: Any, first: Any, count: Any, beta: Any, c: Any, z: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, first: Any, count: Any, beta: Any, c: Any, z: Any) -> Any:
            p = rows.shape[1]
            if p >= WIDE:
                _wide_dots(rows, first, count, beta, c, z)
            else:
                for t in range(count):
                    total = 0.0
                    for j in range(p):
                        total += rows[first + t, j] * beta[c, j]
                    z[c, t] = total
            if beta.shape[1] > p:
                for t in range(count):
                    z[c, t] += beta[c, p]

        return dense

    def csr(rows: Any, first: Any, count: Any, beta: Any, c: Any, z: Any) -> Any:
        data, indices, indptr, p = rows
        for t in range(count):
            total = 0.0
            for j in range(indptr[first + t], indptr[first + t + 1]):
                total += data[j] * beta[c, indices[j]]
            z[c, t] = total + beta[c, p] if beta.shape[1] > p else total

    return csr


@overload(adds)
def _adds(rows: Any, first: Any, count: Any, s: Any, c: Any, out: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, first: Any, count: Any, s: Any, c: Any, out: Any) -> Any:
            p = rows.shape[1]
            if p >= WIDE:
                _wide_adds(rows, first, count, s, c, out)
            else:
                for t in range(count):
                    x = s[c, t]
                    for j in range(p):
                        out[c, j] += x * rows[first + t, j]
            if out.shape[1] > p:
                for t in range(count):
                    out[c, p] += s[c, t]

        return dense

    def csr(rows: Any, first: Any, count: Any, s: Any, c: Any, out: Any) -> Any:
        data, indices, indptr, p = rows
        for t in range(count):
            for j in range(indptr[first + t], indptr[first + t + 1]):
                out[c, indices[j]] += s[c, t] * data[j]
            if out.shape[1] > p:
                out[c, p] += s[c, t]

    return csr


@overload(dots_together)
def _dots_together(rows: Any, first: Any, count: Any, beta: Any, z: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, first: Any, count: Any, beta: Any, z: Any) -> Any:
            p, seeds = rows.shape[1], z.shape[1]
            for t in range(count):
                z[t, :] = 0.0
                for j in range(p):
                    x = rows[first + t, j]
                    for n in range(seeds):
                        z[t, n] += x * beta[j, n]
                if beta.shape[0] > p:
                    for n in range(seeds):
                        z[t, n] += beta[p, n]

        return dense

    def csr(rows: Any, first: Any, count: Any, beta: Any, z: Any) -> Any:
        data, indices, indptr, p = rows
        for t in range(count):
            z[t, :] = 0.0
            for j in range(indptr[first + t], indptr[first + t + 1]):
                x, l = data[j], indices[j]
                for n in range(z.shape[1]):
                    z[t, n] += x * beta[l, n]
            if beta.shape[0] > p:
                for n in range(z.shape[1]):
                    z[t, n] += beta[p, n]

    return csr


@overload(adds_together)
def _adds_together(rows: Any, first: Any, count: Any, s: Any, out: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, first: Any, count: Any, s: Any, out: Any) -> Any:
            p, seeds = rows.shape[1], s.shape[1]
            for t in range(count):
                for j in range(p):
                    x = rows[first + t, j]
                    for n in range(seeds):
                        out[j, n] += s[t, n] * x
                if out.shape[0] > p:
                    for n in range(seeds):
                        out[p, n] += s[t, n]

        return dense

    def csr(rows: Any, first: Any, count: Any, s: Any, out: Any) -> Any:
        data, indices, indptr, p = rows
        for t in range(count):
            for j in range(indptr[first + t], indptr[first + t + 1]):
                x, l = data[j], indices[j]
                for n in range(s.shape[1]):
                    out[l, n] += s[t, n] * x
            if out.shape[0] > p:
                for n in range(s.shape[1]):
                    out[p, n] += s[t, n]

    return csr


@overload(side_by_side)
def _side_by_side(rows: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any) -> Any:
            return rows.shape[1] < WIDE

        return dense

    def csr(rows: Any) -> Any:
        return True

    return csr


@overload(squares)
def _squares(rows: Any, n: Any, out: Any) -> Any:
    if isinstance(rows, types.Array):

        def dense(rows: Any, n: Any, out: Any) -> Any:
            for i in range(n):
                out[i] = 0.0
                for j in range(rows.shape[1]):
                    x = np.float64(rows[i, j])  # the square of a float32 entry may overflow
                    out[i] += x * x

        return dense

    def csr(rows: Any, n: Any, out: Any) -> Any:
        data, _, indptr, _ = rows
        for i in range(n):
            out[i] = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                out[i] += data[j] * data[j]

    return csr
