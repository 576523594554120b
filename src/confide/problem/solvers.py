"""Inner argmins: min over β of f(β) + linearᵀβ + ½ Σ quad_j β_j² + l1ᵀ|β|, f the scaled loss of one agent's rows.

Six methods, each a pure function of its arguments (no memory between rounds, so a resumed run repeats its bytes):

- `linear_system`: squared loss, no l1. A kept inverse and iterative refinement; the rows are not read.
- `lasso_system`: squared loss with an l1 term. Coordinate descent on the Gram matrix; the rows are not read.
- `quasi_newton`: smooth loss, no l1. L-BFGS started from the inverse of the curvature bound c·XᵀX + diag(quad), which
  removes the data's conditioning, scaled as the last pair of steps says; the line search looks at slopes only, so it
  does not stall at 1e-8 as value-based ones do. Chosen by measurement: `benchmarks/solvers.py` has it several times
  faster than Newton, with a fresh or a kept Hessian, and than majorisation by the curvature bound. Compiled; agents and
  seeds share the cores. Where it gives up, `descend` takes over: slow, and certain to arrive (`algorithms.argmin`).
- `prox_newton`: another smooth loss with an l1 term. A Newton model whose lasso is solved by coordinate descent.
- `piecewise.augmented`: piecewise linear loss, with or without an l1 term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import njit
from confide.problem.kernels import add_gradients

Array = NDArray[np.float64]
Index = NDArray[np.int64]
MEMORY = 8
WORST_CONDITION = 25_000  # of a problem that `descend` takes on; 40 times as many passes over the rows are enough


@njit(fastmath={"reassoc", "contract"})
def dot(a: Array, b: Array) -> float:
    """aᵀb; for vectors this short a call of BLAS costs more than the sum."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit
def _add(out: Array, c: float, a: Array) -> None:
    """out += c·a, without a temporary."""
    for j in range(out.size):
        out[j] += c * a[j]


@njit(fastmath={"reassoc", "contract"})
def _times(c: float, A: Array, v: Array, out: Array) -> None:
    """out = c·Av, four rows at a time: each entry of v is loaded once for them."""
    fours = v.size - v.size % 4
    for i in range(0, fours, 4):
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for j in range(v.size):
            t0 += A[i, j] * v[j]
            t1 += A[i + 1, j] * v[j]
            t2 += A[i + 2, j] * v[j]
            t3 += A[i + 3, j] * v[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = c * t0, c * t1, c * t2, c * t3
    for i in range(fours, v.size):
        out[i] = c * dot(A[i], v)


@njit
def _direction(
    g: Array, inverse: Array, size: float, S: Array, Y: Array, r: Array, alpha: Array, used: int, last: int,
    left: Array, d: Array,
) -> None:  # fmt: skip
    """d = -H⁻¹g by the two-loop recursion from size·inverse; S, Y, r, alpha are rings of `used` pairs."""
    left[:] = g
    for n in range(used):
        i = (last - n) % MEMORY
        alpha[i] = r[i] * dot(S[i], left)
        _add(left, -alpha[i], Y[i])
    _times(-size, inverse, left, d)
    for n in range(used - 1, -1, -1):
        i = (last - n) % MEMORY
        _add(d, -alpha[i] - r[i] * dot(Y[i], d), S[i])


@njit
def _gradient(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, beta: Array, m: int,
    code: int, a: float, scale: float, linear: Array, quad: Array, out: Array,
) -> None:  # fmt: skip
    """out = ∇ of the scaled loss plus linear + quad·β."""
    out[:] = 0.0
    none = np.empty(0)
    add_gradients(rows, y, w, q, none, start, stop, beta.reshape(m, -1), code, a, math.inf, out.reshape(m, -1))
    for j in range(beta.size):
        out[j] = scale * out[j] + linear[j] + quad[j] * beta[j]


@njit
def descend(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, beta: Array, m: int, code: int, a: float,
    scale: float, linear: Array, quad: Array, curvature: float, tolerance: float, steps: int,
) -> float:  # fmt: skip
    """Gradient descent with step 1/curvature in place from `beta` (W,); the norm of the gradient it stopped at."""
    g = np.empty(beta.size)
    size = math.inf
    for _ in range(steps):
        _gradient(rows, y, w, q, start, stop, beta, m, code, a, scale, linear, quad, g)
        size = math.sqrt(dot(g, g))
        if size <= tolerance:
            break
        _add(beta, -1.0 / curvature, g)
    return size


@njit
def quasi_newton_one(
    rows: Any, y: Array, w: Array, q: Array, start: int, stop: int, beta: Array, m: int, code: int, a: float,
    scale: float, linear: Array, quad: Array, inverse: Array, tolerance: float, limit: int, pairs: Array, ring: Array,
    work: Array,
) -> float:  # fmt: skip
    """Minimise in place from `beta` (W,); the norm of the gradient it stopped at.

    `pairs` (2, MEMORY, W), `ring` (2, MEMORY) and `work` (5, W) are overwritten: an allocation costs as much as a sum.
    """
    width = beta.size
    S, Y, r, alpha = pairs[0], pairs[1], ring[0], ring[1]
    d, left, new, g, gn = work[0], work[1], work[2], work[3], work[4]
    used, last, gamma = 0, -1, 1.0
    _gradient(rows, y, w, q, start, stop, beta, m, code, a, scale, linear, quad, g)
    size = math.sqrt(dot(g, g))
    for _ in range(limit):
        if size <= tolerance:
            break
        _direction(g, inverse, gamma, S, Y, r, alpha, used, last, left, d)
        slope = dot(g, d)
        if not slope < 0:
            used, gamma = 0, 1.0
            _times(-1.0, inverse, g, d)
            slope = dot(g, d)
        step, low, high = 1.0, 0.0, math.inf
        for _ in range(31):  # a step is good once the slope along d has shrunk to 0.9 of its size
            for j in range(width):
                new[j] = beta[j] + step * d[j]
            _gradient(rows, y, w, q, start, stop, new, m, code, a, scale, linear, quad, gn)
            end = dot(gn, d)
            if abs(end) <= -0.9 * slope:
                break
            if end > 0:
                high = step
                step = 0.5 * (low + high)
            else:
                low = step
                step = 2 * step if high == math.inf else 0.5 * (low + high)
        sn = math.sqrt(dot(gn, gn))
        for j in range(width):  # the pair of this step; both vectors are free until the next direction
            left[j], d[j] = new[j] - beta[j], gn[j] - g[j]
        sy = dot(left, d)
        if sy <= 1e-300 or (size < 1e-11 and used > 0 and sn > size):
            if used == 0:
                break  # at the floor of float64
            used, gamma = 0, 1.0
            if sn >= size:
                continue
        else:
            last = (last + 1) % MEMORY
            used = min(used + 1, MEMORY)
            S[last], Y[last], r[last] = left, d, 1.0 / sy
            _times(1.0, inverse, d, left)
            gamma = sy / dot(d, left)
        beta[:] = new
        g, gn, size = gn, g, sn
    return size


@njit(nogil=True)
def quasi_newton(
    rows: Any, y: Array, w: Array, q: Array, offsets: Index, beta: Array, m: int, code: int, a: float, scale: Array,
    linear: Array, quad: Array, inverse: Array, tolerance: float, limit: int, residual: Array, first: int, end: int,
) -> None:  # fmt: skip
    """Minimise in place, job = agent·seeds + seed: beta, linear (S, A, W), quad (A, W), inverse (A, W, W)."""
    seeds, width = beta.shape[0], beta.shape[2]
    pairs, ring, work = np.empty((2, MEMORY, width)), np.empty((2, MEMORY)), np.empty((5, width))
    for job in range(first, end):
        k, s = job // seeds, job % seeds
        residual[s, k] = quasi_newton_one(
            rows, y, w, q, offsets[k], offsets[k + 1], beta[s, k], m, code, a, scale[k],
            linear[s, k], quad[k], inverse[k], tolerance, limit, pairs, ring, work,
        )  # fmt: skip


@njit(nogil=True)
def linear_system(
    gram: Array, moment: Array, beta: Array, linear: Array, quad: Array, inverse: Array, tolerance: float,
    residual: Array, first: int, end: int,
) -> None:  # fmt: skip
    """½βᵀGβ - momentᵀβ + linearᵀβ + ½Σ quad_j β_j², job = agent·seeds + seed: moment (A, W), the rest as above."""
    seeds, width = beta.shape[0], beta.shape[2]
    g, d = np.empty(width), np.empty(width)
    for job in range(first, end):
        k, s = job // seeds, job % seeds
        b = beta[s, k]
        b[:] = 0.0
        for j in range(width):
            g[j] = linear[s, k, j] - moment[k, j]
        for step in range(9):  # each removes rounding of the one before; the second is always worth it
            if step > 1 and residual[s, k] <= tolerance:
                break
            _times(-1.0, inverse[k], g, d)
            _add(b, 1.0, d)
            _times(1.0, gram[k], b, g)
            for j in range(width):
                g[j] += quad[k, j] * b[j] + linear[s, k, j] - moment[k, j]
            residual[s, k] = math.sqrt(dot(g, g))


# --- an l1 term -----------------------------------------------------------------------------------------------------


@njit
def l1_residual(g: Array, l1: Array, beta: Array) -> Array:
    """The smallest subgradient of smooth + l1ᵀ|·| at β, given the smooth gradient g."""
    out = np.empty_like(g)
    for j in range(g.size):
        if beta[j] == 0.0:
            out[j] = math.copysign(max(abs(g[j]) - l1[j], 0.0), g[j])
        else:
            out[j] = g[j] + math.copysign(l1[j], beta[j])
    return out


@njit
def lasso_model(H: Array, g: Array, l1: Array, beta: Array, tolerance: float, sweeps: int) -> Array:
    """argmin over d of ½dᵀHd + gᵀd + l1ᵀ|β + d| by cyclic coordinate descent."""
    d = np.zeros_like(g)
    r = g.copy()  # H d + g
    for _ in range(sweeps):
        worst = 0.0
        for j in range(g.size):
            h = H[j, j]
            old = beta[j] + d[j]
            if h == 0.0:  # no row has this feature: only the l1 term, if any, sees it
                v, t = old, (math.inf if l1[j] > 0 else 0.0)
            else:
                v, t = old - r[j] / h, l1[j] / h
            new = v - t if v > t else (v + t if v < -t else 0.0)
            if new != old:
                d[j] += new - old
                _add(r, new - old, H[j])
                worst = max(worst, abs(new - old) * h)
        if worst <= tolerance:
            break
    return d


@njit(nogil=True)
def lasso_system(
    gram: Array, moment: Array, beta: Array, linear: Array, quad: Array, l1: Array, tolerance: float,
    residual: Array, first: int, end: int,
) -> None:  # fmt: skip
    """`linear_system` with an l1 term, from `beta`: l1 (S, A, W)."""
    seeds, width = beta.shape[0], beta.shape[2]
    H, g = np.empty((width, width)), np.empty(width)
    for job in range(first, end):
        k, s = job // seeds, job % seeds
        b = beta[s, k]
        H[:] = gram[k]
        for j in range(width):
            H[j, j] += quad[k, j]
        for _ in range(9):  # again from where rounding left it
            _times(1.0, H, b, g)
            _add(g, 1.0, linear[s, k])
            _add(g, -1.0, moment[k])
            smallest = l1_residual(g, l1[s, k], b)
            residual[s, k] = math.sqrt(dot(smallest, smallest))
            if residual[s, k] <= tolerance:
                break
            step = lasso_model(H, g, l1[s, k], b, 0.01 * tolerance, 20_000)
            for j in range(width):  # a coefficient that became 0 is 0, not what rounding leaves of it
                new = b[j] + step[j]
                b[j] = new if abs(new) > 1e-15 * abs(step[j]) else 0.0


def prox_newton(
    value: Callable[[Array], float], gradient: Callable[[Array], Array],
    hessian: Callable[[Array, float], Array], l1: Array, beta: Array, tolerance: float, limit: int = 5000,
) -> tuple[Array, float]:  # fmt: skip
    """Minimise smooth(β) + l1ᵀ|β|; the point and its optimality residual.

    `hessian(β, floor)` lifts each row's curvature to at least `floor` times its bound. floor=1 majorises the loss,
    so a step that does not descend is tried again with a higher floor, and one with floor=1 is always taken.
    """
    floor = 1e-3
    height = value(beta) + float(l1 @ np.abs(beta))
    residual = float(np.linalg.norm(l1_residual(gradient(beta), l1, beta)))
    best, since = residual, 0
    for _ in range(limit):
        if residual <= tolerance or since > 500:  # so many steps without progress: at the floor of float64
            break
        new = beta + lasso_model(hessian(beta, floor), gradient(beta), l1, beta, 0.01 * tolerance, 20_000)
        after = float(np.linalg.norm(l1_residual(gradient(new), l1, new)))
        there = value(new) + float(l1 @ np.abs(new))
        level = 1e-14 * abs(height)  # below it values say nothing, and the residual decides
        if there < height - level or (there <= height + level and after < residual) or floor == 1.0:
            beta, residual, height, floor = new, after, there, max(floor / 4, 1e-3)
        else:
            floor = min(8 * floor, 1.0)
        best, since = (residual, 0) if residual < 0.99 * best else (best, since + 1)
    return beta, residual
