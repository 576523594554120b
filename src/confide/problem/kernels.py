"""Compiled passes over the rows: margins, slopes, clipping and sums of a tile of rows before the next tile is read.

Nothing of the data's size is ever built. Sums run in chunks of rows counted from each agent's first row, and chunks are
added by halves, so an agent's sum does not depend on who else is in the pass, nor on the number of threads or seeds.
`rounding` says how far a clipped answer may exceed its sensitivity through rounding.

`w`, `q` and `limits` (row weights, label noise, largest slopes) have one entry per row, or a single entry for all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import njit
from confide.errors import ConfideError
from confide.problem.margin import LOGISTIC, curvature1, row_slopes, row_value, slope1, value1
from confide.problem.rows import adds, adds_together, dots, dots_together, side_by_side

Array = NDArray[np.float64]
Index = NDArray[np.int64]

CHUNK_BYTES = 128 * 1024  # a chunk stays in the second-level cache while every seed passes over it
LONGEST = 1024  # rows of a chunk at most: `rounding` grows with it
TILE = 32  # rows that go through margin, slope and sum together
SEEDS_TOGETHER = 32  # seeds that pass over a tile side by side
MOST = 2.0**900  # no sum of rows bounded by it overflows; a bound below 1/MOST, near underflow, counts as 0
FAINT = 2.0**-1000  # a smaller limit on a slope counts as 0: close to the subnormal numbers quotients lose digits
HUGE = float(np.finfo(float).max)


def rounding(rows: Any, features: int, intercept: bool = False, outputs: int = 1) -> Any:
    """κ(n): in floating point a clipped sum obeys its sensitivity times 1 + κ, whatever doubles rows and points hold.

    n = `rows` of an agent (a number or an array), p = `features` and intercept, m = `outputs`; u = 2⁻⁵³,
    γ_N = Nu/(1 - Nu). All public.
    *One row.* Let g_i be the exact product of the slopes s_i that a row has after clipping, doubles, and (x_i, 1).
    ‖(x_i, 1)‖ is known within 3u and (pu)² (`rows.norm`), the limit clip/‖(x_i, 1)‖ within one u more, and a slope is
    clamped to it, exactly. With several margins ‖s_i‖ is off by (m/2 + 2)u and clipping costs 3u. So
    ‖g_i‖ ≤ clip(1 + ρ), ρ = (m + 12)u + 2(pu)². A limit capped at the largest double is only tighter.
    *The sum.* Each product of g_i is rounded, added to fewer than min(n, `LONGEST`) others in its chunk, scaled, and
    added to others' chunks at most ⌈log₂ n⌉ times: with room for what is done to an answer entry by entry,
    N = min(n, LONGEST) + ⌈log₂ n⌉ + 8 roundings, in whatever order, fused or not. Each entry is off by
    |e| ≤ γ_N·scale·Σ|g_i|, so ‖e‖ ≤ γ_N·scale·n·clip(1 + ρ) by the triangle inequality. Where chunks of sparse rows end
    depends on the rows: on a neighbouring data set every rounding may differ. The answers differ by at most

        2·scale·clip(1 + ρ) + ‖e‖ + ‖e'‖ ≤ 2·scale·clip(1 + κ),  κ = ρ + √2·n·γ_N(1 + ρ)   (√2 for second moments).

    Products that underflow add n·m·p·2⁻¹⁰⁷⁴ to e: nothing beside u·clip, as clip ≥ 1/`MOST`.
    *Differences* are numbers clamped to ±clip, exactly: the same with ρ = 0.
    *Second moments.* ‖x_i‖ ≤ C exactly (`rows.clipped`). An entry of a piece of at most LONGEST rows is a BLAS sum of
    products in some order, and pieces are added by halves: |e| ≤ γ_N Σ|x_i||x_i|ᵀ, of Frobenius norm γ_N·n·C² at most.
    Two such errors beside the sensitivity √2·C² are κ ≥ √2·n·γ_N.
    *Counts* are whole numbers times scale: in each of two cells scale(1 + 2nu), less than scale(1 + κ).
    """
    u = 2.0**-53
    n = np.asarray(rows, float)
    N = np.minimum(n, LONGEST) + np.ceil(np.log2(np.maximum(n, 1.0))) + 8
    rho = (outputs + 12) * u + 2 * ((features + intercept) * u) ** 2
    kappa = (rho + math.sqrt(2.0) * n * N * u / (1 - N * u) * (1 + rho)) * (1 + 2.0**-40)  # and its own rounding
    return kappa if kappa.ndim else float(kappa)


def usable(bound: Array, most: float = MOST) -> Array:
    """Bounds on a row that can be kept in floating point: at most `most`, and 0 below 1/most; inf means none."""
    if not np.all(bound >= 0):
        raise ConfideError(f"bound {bound[~(bound >= 0)][0]} on a row: must be a number of at least 0")
    return np.where(bound == np.inf, bound, np.where(bound < 1 / most, 0.0, np.minimum(bound, most)))


def chunk_table(offsets: Index, row_bytes: Array) -> Index:
    """(chunks, 3): agent, first row, end row; an agent's chunks depend on its own rows' size (A,) alone."""
    lengths = np.clip(CHUNK_BYTES / np.maximum(row_bytes, 1.0), 64, LONGEST).astype(int)
    chunks = -(-np.diff(offsets) // lengths)
    agent = np.repeat(np.arange(len(chunks)), chunks)
    start = offsets[agent] + (np.arange(len(agent)) - np.repeat(np.cumsum(chunks) - chunks, chunks)) * lengths[agent]
    return np.column_stack([agent, start, np.minimum(start + lengths[agent], offsets[agent + 1])])


@njit(error_model="numpy")
def row_limits(norms: Array, offsets: Index, clip: Array, out: Array) -> None:
    """out[i] = clip_k/norms[i], the largest slope that leaves row i's gradient within clip_k; norms may be 0 or inf."""
    for k in range(clip.size):
        for i in range(offsets[k], offsets[k + 1]):
            limit = clip[k] / norms[i] if norms[i] > 0.0 else HUGE
            out[i] = 0.0 if limit < FAINT else min(limit, HUGE)


@njit
def seed_groups(seeds: int) -> int:
    """Groups of seeds that pass over the rows together."""
    return (seeds + SEEDS_TOGETHER - 1) // SEEDS_TOGETHER


@njit
def _each(values: Array, i: int) -> float:
    """values[i], or the one value there is."""
    return values[i] if values.size > 1 else values[0]


# --- gradients ------------------------------------------------------------------------------------------------------


@njit
def _clamp(s: float, limit: float) -> float:
    """s within ±limit, 0 where it is not a number."""
    s = s if s == s else 0.0
    s = s if s < limit else limit
    return s if s > -limit else -limit


@njit(error_model="numpy")
def _slopes(
    z: Array, y: Array, w: Array, q: Array, limits: Array, first: int, count: int, code: int, a: float, clip: float
) -> None:
    """Margins of a tile become weighted, clipped slopes, in place; z (m, at least count)."""
    if z.shape[0] > 1:
        _class_slopes(z, y, w, q, limits, first, count, code, a, clip)
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
            z[0, t] = _clamp(z[0, t], limits[first + t])


@njit(error_model="numpy")
def _class_slopes(
    z: Array, y: Array, w: Array, q: Array, limits: Array, first: int, count: int, code: int, a: float, clip: float
) -> None:
    """`_slopes` for several margins per row."""
    m = z.shape[0]
    margin, s = np.empty(m), np.empty(m)
    for t in range(count):
        i = first + t
        for c in range(m):
            margin[c] = z[c, t]
        row_slopes(code, a, margin, y[i], _each(q, i), s)
        for c in range(m):
            s[c] *= _each(w, i)
        if clip < math.inf:
            _clip_slopes(s, limits[i])
        for c in range(m):
            z[c, t] = s[c]


@njit(error_model="numpy")
def _clip_slopes(s: Array, limit: float) -> None:
    """s clipped to Euclidean norm `limit`; 0 where an entry is not finite."""
    top, total = 1.0, 0.0
    for c in range(s.size):
        total += s[c] * s[c]
    if not 2.0**-40 < total < 2.0**40:  # far from 1 a square or limit/size might underflow: relative to the largest
        top, total = 0.0, 0.0
        for c in range(s.size):
            top = max(top, abs(s[c])) if abs(s[c]) <= HUGE else math.inf
        if not 0.0 < top <= HUGE:
            s[:] = 0.0
            return
        for c in range(s.size):
            s[c] /= top
            total += s[c] * s[c]
    size = math.sqrt(total)
    factor = limit / size if top * size > limit else top
    for c in range(s.size):
        s[c] *= factor


@njit
def add_gradients(
    rows: Any, y: Array, w: Array, q: Array, limits: Array, start: int, stop: int,
    beta: Array, code: int, a: float, clip: float, out: Array,
) -> None:  # fmt: skip
    """out += Σ w_i ∇ℓ_i(β) over rows start..stop, each row's gradient clipped to norm `clip`; beta, out (m, P)."""
    m = beta.shape[0]
    z = np.empty((m, TILE))
    for first in range(start, stop, TILE):
        count = min(TILE, stop - first)
        for c in range(m):
            dots(rows, first, count, beta, c, z)
        _slopes(z, y, w, q, limits, first, count, code, a, clip)
        for c in range(m):
            adds(rows, first, count, z, c, out)


@njit(error_model="numpy")
def _add_gradients_together(
    rows: Any, y: Array, w: Array, q: Array, limits: Array, start: int, stop: int,
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
                z[t, n] = _clamp(s, limits[i]) if clip < math.inf else s
        adds_together(rows, first, count, z, total)
    out[:, 0, :] = total.T


@njit(nogil=True)
def gradient_jobs(
    rows: Any, y: Array, w: Array, q: Array, limits: Array, table: Index, beta: Array, code: int, a: float,
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
            _add_gradients_together(rows, y, w, q, limits, start, stop, group, code, a, clip[k], sums)
        else:
            for n in range(s, last):
                add_gradients(rows, y, w, q, limits, start, stop, beta[n, k], code, a, clip[k], part[t, n])


@njit
def sum_chunks(part: Array, table: Index, scale: Array, out: Array) -> None:
    """out[s, k] += scale_k·Σ part[t, s] over agent k's chunks, by halves; part (T, S, n) is used up, out (S, A, n)."""
    chunks, seeds, width = part.shape
    first = 0
    while first < chunks:
        k, end = table[first, 0], first
        while end < chunks and table[end, 0] == k:
            for s in range(seeds):
                for j in range(width):
                    part[end, s, j] *= scale[k]
            end += 1
        step = 1
        while step < end - first:
            for t in range(first, end - step, 2 * step):
                for s in range(seeds):
                    for j in range(width):
                        part[t, s, j] += part[t + step, s, j]
            step *= 2
        for s in range(seeds):
            for j in range(width):
                out[s, k, j] += part[first, s, j]
        first = end


# --- values ---------------------------------------------------------------------------------------------------------


@njit
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


@njit
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


@njit
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


@njit(nogil=True)
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


@njit(nogil=True)
def difference_jobs(
    rows: Any, y: Array, w: Array, q: Array, table: Index, plus: Array, minus: Array, gap: float,
    code: int, a: float, clip: Array, part: Array, first: int, end: int,
) -> None:  # fmt: skip
    """part[t, s, 0] = Σ clip(w_i [ℓ_i(plus) - ℓ_i(minus)]/gap) over chunk t; job = chunk·seeds + seed.

    What is not a number, as the difference of two infinite losses, counts as 0.
    """
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
                moved = (up[0, n] - down[0, n]) / gap
                total += _clamp(moved, clip[k]) if clip[k] < math.inf else moved
        part[t, s, 0] = total


# --- for the solvers ------------------------------------------------------------------------------------------------


@njit
def margins(rows: Any, start: int, stop: int, beta: Array) -> Array:
    """x_iᵀβ over rows start..stop for one coefficient vector: (1, rows) from (1, P)."""
    z = np.empty((1, stop - start))
    dots(rows, start, stop - start, beta, 0, z)
    return z


@njit
def curvatures(z: Array, y: Array, w: Array, start: int, code: int, a: float) -> Array:
    """w_i ℓ''(z_i, y_i) for the margins of rows start onwards."""
    out = np.empty(z.size)
    for i in range(z.size):
        out[i] = _each(w, start + i) * curvature1(code, a, z[i], y[start + i])
    return out
