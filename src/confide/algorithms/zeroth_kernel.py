"""D-ZOA's inner loop, compiled: draws, values of the objective and steps of one agent and seed together.

The same draws and, up to rounding, the same numbers as `zeroth.two_point` step by step, which serves what this does
not: sparse rows, several margins per row, concave penalties, and noise that is not simulated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import njit
from confide.privacy.ziggurat import normals
from confide.problem.margin import SQUARED, value1
from confide.problem.solvers import dot

Array = NDArray[np.float64]
Index = NDArray[np.int64]

DIRECTIONS = 128  # evaluated side by side


@njit(fastmath={"reassoc", "contract"})
def _margins(X: Any, i: int, beta: Array, z: Array) -> None:
    """z = x_iᵀβ for the columns of beta (P, J); four features at a time, so that z is written less often."""
    p = X.shape[1]
    if beta.shape[0] > p:
        z[:] = beta[p]
    else:
        z[:] = 0.0
    fours = p - p % 4
    for f in range(0, fours, 4):
        a, b, c, d = X[i, f], X[i, f + 1], X[i, f + 2], X[i, f + 3]
        for j in range(z.size):
            z[j] += a * beta[f, j] + b * beta[f + 1, j] + c * beta[f + 2, j] + d * beta[f + 3, j]
    for f in range(fours, p):
        a = X[i, f]
        for j in range(z.size):
            z[j] += a * beta[f, j]


@njit
def _add_loss_rises(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, scale: float, code: int, a: float,
    base: Array, along: Array, u2: float, z: Array, dz: Array, rise: Array,
) -> None:  # fmt: skip
    """rise += scale·Σ_i w_i [ℓ_i(base + u2·along) - ℓ_i(base)], a column of base, along (P, J) for each direction."""
    for i in range(start, stop):
        _margins(rows, i, base, z)
        _margins(rows, i, along, dz)
        target = y[i]
        weight = scale * (w[i] if w.size > 1 else w[0])
        noisy = q[i] if q.size > 1 else q[0]
        if code == SQUARED:
            for j in range(rise.size):
                low, high = z[j] - target, z[j] + u2 * dz[j] - target
                rise[j] += weight * (0.5 * high * high - 0.5 * low * low)
        else:
            for j in range(rise.size):
                low, high = z[j], z[j] + u2 * dz[j]
                v = value1(code, a, high, target) - value1(code, a, low, target)
                if noisy != 0.0:
                    u = value1(code, a, high, -target) - value1(code, a, low, -target)
                    v = (1.0 + noisy) * v - noisy * u
                rise[j] += weight * v


@njit
def _add_public_rises(
    base: Array, along: Array, u2: float, dual: Array, centre: Array, pull: float, l1: Array, l2: Array, rise: Array
) -> None:
    """rise += the same of βᵀγ + pull‖β - centre‖² + Σ l1|β| + ½l2β²."""
    for p in range(base.shape[0]):
        for j in range(base.shape[1]):
            low, high = base[p, j], base[p, j] + u2 * along[p, j]
            b, c = low - centre[p], high - centre[p]
            v = dual[p] * high + pull * c * c + l1[p] * abs(high) + 0.5 * l2[p] * high * high
            rise[j] += v - (dual[p] * low + pull * b * b + l1[p] * abs(low) + 0.5 * l2[p] * low * low)


@njit
def _quadratic(
    rows: Any, y: Array, w: Array, start: int, stop: int, scale: float, dual: Array, centre: Array, pull: float,
    l2: Array, H: Array, r: Array,
) -> None:  # fmt: skip
    """H (P, P) and r (P,) with F(β) = ½βᵀHβ - rᵀβ + Σ l1|β| and a constant, for the squared loss."""
    P, features = r.size, rows.shape[1]
    H[:] = 0.0
    for p in range(P):
        H[p, p] = 2.0 * pull + l2[p]
        r[p] = 2.0 * pull * centre[p] - dual[p]
    for i in range(start, stop):
        weight = scale * (w[i] if w.size > 1 else w[0])
        for p in range(P):
            x = weight * (rows[i, p] if p < features else 1.0)
            r[p] += x * y[i]
            for f in range(P):
                H[p, f] += x * (rows[i, f] if f < features else 1.0)


@njit
def _add_quadratic_rises(
    H: Array, r: Array, l1: Array, base: Array, along: Array, u2: float, mid: Array, h: Array, rise: Array
) -> None:
    """The same of all of F: a quadratic rises by its slope at the middle of the way."""
    for p in range(r.size):
        for j in range(rise.size):
            mid[p, j] = base[p, j] + 0.5 * u2 * along[p, j]
    for p in range(r.size):
        _margins(H, p, mid, h)
        for j in range(rise.size):
            rise[j] += u2 * along[p, j] * (h[j] - r[p])
        if l1[p] != 0.0:
            for j in range(rise.size):
                rise[j] += l1[p] * (abs(base[p, j] + u2 * along[p, j]) - abs(base[p, j]))


@njit(nogil=True)
def inner_loops(
    seeds: Index, agents: Index, t: int, names: Index, directions: Index, u1: Array, u2: Array, steps: Array,
    rows: Any, y: Array, w: Array, q: Array, offsets: Index, scale: Array, code: int, a: float,
    dual: Array, centre: Array, pull: Array, l1: Array, l2: Array, average: bool, beta: Array, first: int, end: int,
) -> None:  # fmt: skip
    """beta[s, k] after all steps (7) to (9), from 0; job = s·agents + k. `names` (T,) are the draws' keys.

    With `average` their mean instead, which (26) bounds.
    """
    P = beta.shape[2]
    draws, held = np.empty(2 * P * DIRECTIONS), np.empty((3, P * DIRECTIONS))
    lines, g, mean = np.empty((3, DIRECTIONS)), np.empty(P), np.empty(P)
    H, r = np.empty((P, P)), np.empty(P)
    for job in range(first, end):
        s, k = job // agents.size, job % agents.size
        b = beta[s, k]
        b[:], mean[:] = 0.0, 0.0
        quadratic = code == SQUARED and 2 * (offsets[k + 1] - offsets[k]) >= P  # fewer products than rows would take
        if quadratic:
            _quadratic(
                rows, y, w, offsets[k], offsets[k + 1], scale[k], dual[s, k], centre[s, k], pull[k], l2, H, r
            )  # fmt: skip
        for i in range(names.size):
            g[:] = 0.0
            for start in range(0, directions[k], DIRECTIONS):
                n = min(DIRECTIONS, directions[k] - start)
                normals(seeds[s], agents[k], t, names[i], 2 * P * start, 2 * P * n, draws)
                base, along = held[0, : P * n].reshape(P, n), held[1, : P * n].reshape(P, n)
                mid, z, dz, rise = held[2, : P * n].reshape(P, n), lines[0, :n], lines[1, :n], lines[2, :n]
                rise[:] = 0.0
                for p in range(P):
                    for j in range(n):
                        base[p, j] = b[p] + u1[i] * draws[2 * P * j + p]
                        along[p, j] = draws[2 * P * j + P + p]
                if quadratic:
                    _add_quadratic_rises(H, r, l1, base, along, u2[i], mid, z, rise)
                else:
                    _add_loss_rises(
                        rows, y, w, q, offsets[k], offsets[k + 1], scale[k], code, a, base, along, u2[i], z, dz, rise
                    )  # fmt: skip
                    _add_public_rises(base, along, u2[i], dual[s, k], centre[s, k], pull[k], l1, l2, rise)
                for p in range(P):
                    g[p] += dot(rise, along[p]) / u2[i]  # (7)
            for p in range(P):
                b[p] -= steps[i] / directions[k] * g[p]  # (8), (9)
                mean[p] += (b[p] - mean[p]) / (i + 1)
        if average:
            b[:] = mean
