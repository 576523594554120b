"""A few rows of a data set, dense or sparse, inside compiled code.

`rows` is a dense (n, p) array or a CSR tuple (data, indices, indptr, p); these functions are the only places that know
which, so every kernel serves both. A coefficient vector longer than a row has the intercept last.

They work on `count` rows from `first`: a call on arrays costs reference counts, and a tile of rows makes them cheap
while it stays in the first-level cache, so that memory is read once all the same.

Dense rows of at least `WIDE` features are vectorised along their features and taken several at a time, so that
coefficients and sums are loaded once for them; the compiler chooses the order of those sums.
Shorter and sparse rows are summed in index order with strict arithmetic, so that `dots_together`, which takes many
seeds side by side and is vectorised along them, gives the same bits as `dots` for each of them.

`norms` and `clipped` carry proofs: they hold for every finite row, subnormal and near overflow included.
"""

from __future__ import annotations

import math
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import njit, overload
from confide.files.library import sparse as sp

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


def norms(rows: Any, n: int, one: float, out: Array) -> None:
    """out[i] = √(‖x_i‖² + one) of the first n rows, as `norm` computes it."""
    raise NotImplementedError("compiled only")


def _dense(rows: Any) -> bool:
    """Whether Numba's type of the rows is an array's."""
    from numba import types

    return isinstance(rows, types.Array)


@njit(fastmath={"reassoc", "contract"})
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


@njit(fastmath={"contract"})
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
    if _dense(rows):

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
    if _dense(rows):

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
    if _dense(rows):

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
    if _dense(rows):

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
    if _dense(rows):

        def dense(rows: Any) -> Any:
            return rows.shape[1] < WIDE

        return dense

    def csr(rows: Any) -> Any:
        return True

    return csr


# --- norms ----------------------------------------------------------------------------------------------------------


@njit
def _sum_of_squares(x: Array, power: int, one: float) -> float:
    """Σ (2^power·x_j)² + one, with what each addition loses added at the end: off by 2u and (pu)², not by pu."""
    total, lost = one, 0.0
    for j in range(x.size):
        v: float = np.float64(x[j])  # the square of a float32 entry may overflow
        if power != 0:
            v = math.ldexp(v, power)
        square = v * v
        new = total + square
        back = new - total
        lost += (total - (new - back)) + (square - back)
        total = new
    return total + lost if total < math.inf else total


@njit
def norm(x: Array, one: float) -> float:
    """√(‖x‖² + one) within 3u relative, u = 2⁻⁵³, for every finite x; `one` is 0 or 1.

    A sum of squares in a safe range is taken as it is: what underflowed is below 2⁻¹⁷⁰ of it. Otherwise the row is
    first multiplied by the power of two that brings its largest entry to [½, 1). A norm above the doubles is inf, one
    among the subnormal numbers, which have fewer digits, is rounded up: a bound that divides by it still holds.
    """
    total = _sum_of_squares(x, 0, one)
    if 2.0**-900 < total < 2.0**1000:
        return math.sqrt(total)
    top = 0.0
    for j in range(x.size):
        top = max(top, abs(np.float64(x[j])))
    if top == 0.0:
        return one
    power = math.frexp(top)[1]
    size = math.ldexp(math.sqrt(_sum_of_squares(x, -power, math.ldexp(one, -2 * power))), power)
    return size if size >= 2.0**-1022 else size + 2.0**-1074


@overload(norms)
def _norms(rows: Any, n: Any, one: Any, out: Any) -> Any:
    if _dense(rows):

        def dense(rows: Any, n: Any, one: Any, out: Any) -> Any:
            for i in range(n):
                out[i] = norm(rows[i], one)

        return dense

    def csr(rows: Any, n: Any, one: Any, out: Any) -> Any:
        data, _, indptr, _ = rows
        for i in range(n):
            out[i] = norm(data[indptr[i] : indptr[i + 1]], one)

    return csr


@njit
def row_norms(rows: Any, n: int, intercept: bool, out: Array) -> None:
    """‖(x_i, 1)‖₂ of every row, or ‖x_i‖₂ without an intercept; see `norm`."""
    norms(rows, n, 1.0 if intercept else 0.0, out)


def as_rows(X: Any) -> Any:
    """X (dense or CSR) as the kernels take it."""
    if sp.issparse(X):
        return (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64), int(X.shape[1]))
    view = np.asarray(X)[:]
    view.flags.writeable = False
    return view


def clipped(X: Any, bound: float | None, size: Array | None = None) -> Any:
    """A copy of X (n, p; dense or CSR) whose rows longer than `bound` are clipped to it; None leaves X as it is.

    size (n,) are the rows' norms, where they are known.

    Rows that are mapped from a file go to another one, without a name, in the folder for temporary files.

    ‖x_i‖ ≤ bound holds in exact arithmetic, not up to a rounding. A row kept as it is has size ≤ bound(1 - 8u), so
    ‖x‖ ≤ size·(1 + 4u) ≤ bound. Any other is divided by its size, which can't overflow, and multiplied by
    bound(1 - 16u), less four roundings of X's own type: quotient, product and size cost 6u and one such rounding. What
    underflows is at most `tiny` an entry, far below the room that is left if bound ≥ tiny/eps²; below that a
    longer row becomes 0, as does one whose norm exceeds the doubles.
    """
    if bound is None or X.shape[0] == 0:
        return X
    if size is None:
        size = np.empty(X.shape[0])
        row_norms(as_rows(X), X.shape[0], False, size)
    if sp.issparse(X):
        sizes = np.repeat(size, np.diff(X.indptr))
        return sp.csr_array((clipped(X.data[:, None], bound, sizes)[:, 0], X.indices, X.indptr), shape=X.shape)
    out, kind = _room_for(X), np.finfo(X.dtype)
    own = 4 * float(kind.eps) if kind.bits < 64 else 0.0
    target = bound * (1 - 2.0**-49 - own) if bound >= float(kind.tiny) / float(kind.eps) ** 2 else 0.0
    step = max(1, (1 << 16) // X.shape[1])
    with np.errstate(all="ignore"):  # a warning would tell of a row
        for first in range(0, len(out), step):
            long = first + np.flatnonzero(size[first : first + step] > bound * (1 - 2.0**-50))
            out[first : first + step] = X[first : first + step]
            out[long] = X[long] / size[long, None] * target
    return out


def _room_for(X: Array) -> Array:
    """An array like X: in memory, or on disk where X is."""
    base: Any = X
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    if base is None:
        return np.empty_like(X, order="C", subok=False)
    with tempfile.TemporaryFile() as file:  # its space is given back with the last view of the array
        file.truncate(X.nbytes)
        return np.memmap(file, X.dtype, "r+", shape=X.shape)
