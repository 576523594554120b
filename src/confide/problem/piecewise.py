"""Inner argmins of piecewise linear losses: method of multipliers on z = Xβ with semismooth Newton steps.

The Hessian of a step sums only the rows at a kink. Like `solvers`, a pure function of its arguments, compiled; agents
and seeds share the cores.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import njit
from confide.problem.kernels import margins
from confide.problem.margin import prox1, slope1
from confide.problem.rows import adds, dots

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@njit
def augmented_one(
    rows: Any, y: Array, w: Array, start: int, stop: int, beta: Array, code: int, a: float,
    scale: float, linear: Array, quad: Array, l1: Array, unit: Array, tolerance: float, limit: int,
) -> float:  # fmt: skip
    """Minimise in place from `beta` (W,); the residual it stopped at.

    With v_i a subgradient of ℓ at z_i, and v_j one of |·| at b_j, it bounds |x_iᵀβ - z_i|, unit_j·|β_j - b_j| and the
    norm of linear + quad·β + Σ c_i v_i x_i + l1·v: `PVP` says what that means for the distance to the exact argmin.
    `unit` (W,) is the size of each coordinate: every step is as it would be if all were of size 1.
    """
    width, n = beta.size, stop - start
    model = beta.reshape(1, width)  # a view: the row functions take one line per class
    iw = 1 if w.size > 1 else 0
    v, vc = np.zeros(n), np.zeros(width)  # multipliers, divided by their term's weight: subgradients of ℓ and |·|
    vn, vcn = np.empty(n), np.empty(width)
    along, x, one = np.empty((1, n)), np.empty((1, width)), np.ones((1, 1))
    force = np.empty((1, n))
    margin = margins(rows, start, stop, model)
    spread = 0.0
    for i in range(n):
        spread += abs(margin[0, i] - y[start + i]) / n
    spread = max(spread, 1e-3)
    delta = 0.3 * spread
    omega = 1e-3 * scale * n / spread  # proximal weight: a unique minimum even without a penalty
    largest = max(1.0, np.max(unit))
    residual = before = math.inf
    for _ in range(limit):
        anchor: Array = beta.copy()
        size, gap = math.inf, 0.0
        for _ in range(100):  # semismooth Newton on the augmented function
            g = (linear + quad * beta + omega * unit * unit * (beta - anchor)).reshape(1, width)
            H = np.diag(quad + omega * unit * unit)
            dots(rows, start, n, model, 0, margin)
            gap = 0.0
            for i in range(n):
                z = margin[0, i] + delta * v[i]
                p = prox1(code, a, z, y[start + i], delta)
                gap = max(gap, abs(margin[0, i] - p))
                c = scale * w[iw * (start + i)]
                kink = p == y[start + i]
                vn[i] = (z - p) / delta if kink else slope1(code, a, p, y[start + i])
                force[0, i] = c * vn[i]
                if kink:
                    x[:] = 0.0
                    adds(rows, start + i, 1, one, 0, x)
                    for j in range(width):
                        if x[0, j] != 0.0:
                            for l in range(width):
                                H[j, l] += c / delta * x[0, j] * x[0, l]
            adds(rows, start, n, force, 0, g)
            for j in range(width):
                z = unit[j] * beta[j] + delta * vc[j]
                vcn[j] = min(1.0, max(-1.0, z / delta))
                g[0, j] += l1[j] * vcn[j]
                if l1[j] > 0:
                    gap = max(gap, delta * abs(vcn[j] - vc[j]))
                if abs(z) <= delta:
                    H[j, j] += l1[j] * unit[j] / delta
            for j in range(width):
                g[0, j] /= unit[j]
                for l in range(width):
                    H[j, l] /= unit[j] * unit[l]
            size = math.sqrt(np.dot(g[0], g[0]))
            if largest * size <= 0.5 * tolerance:  # the other half is for the proximal term
                break
            d: Any = np.linalg.solve(H, -g[0])
            slope = np.dot(g[0], d)
            d /= unit
            step, low, high = 1.0, 0.0, math.inf
            dots(rows, start, n, d.reshape(1, width), 0, along)
            for _ in range(40):
                new = beta + step * d
                e = np.dot(linear + quad * new + omega * unit * unit * (new - anchor), d)
                for i in range(n):
                    z = margin[0, i] + step * along[0, i] + delta * v[i]
                    s = (z - prox1(code, a, z, y[start + i], delta)) / delta
                    e += scale * w[iw * (start + i)] * s * along[0, i]
                for j in range(width):
                    z = unit[j] * (beta[j] + step * d[j]) / delta + vc[j]
                    e += l1[j] * min(1.0, max(-1.0, z)) * d[j]
                if abs(e) <= -0.5 * slope or abs(slope) < 1e-30:
                    break
                if e > 0:
                    high = step
                else:
                    low = step
                step = 2 * step if high == math.inf else 0.5 * (low + high)
            beta += step * d
        v[:] = vn
        vc[:] = vcn
        moved = unit * (beta - anchor)
        residual = largest * max(gap, size + omega * math.sqrt(np.dot(moved, moved)))
        if residual <= tolerance:
            break
        # Multipliers are differences of margins divided by delta: below some size they are rounding, which shows in a
        # gradient that does not vanish, and above it two rows at nearly the same kink take long to part.
        if largest * size > 0.5 * tolerance:
            delta *= 5.0
        elif delta > 1e-6 * spread or gap > 0.5 * before:
            delta *= 0.2
        before = gap
        omega *= 0.2
    return residual


@njit(nogil=True)
def augmented(
    rows: Any, y: Array, w: Array, offsets: Index, beta: Array, code: int, a: float, scale: Array, linear: Array,
    quad: Array, l1: Array, unit: Array, tolerance: float, limit: int, residual: Array, first: int, end: int,
) -> None:  # fmt: skip
    """Minimise in place, job = agent·seeds + seed: beta, linear and l1 (S, A, W), quad and unit (A, W)."""
    seeds = beta.shape[0]
    for job in range(first, end):
        k, s = job // seeds, job % seeds
        residual[s, k] = augmented_one(
            rows, y, w, offsets[k], offsets[k + 1], beta[s, k], code, a, scale[k],
            linear[s, k], quad[k], l1[s, k], unit[k], tolerance, limit,
        )  # fmt: skip
