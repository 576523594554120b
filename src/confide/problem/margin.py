"""Compiled losses of one margin z = xᵀβ and one target y, and of all margins of a row.

A kernel receives a loss's `code` and its one parameter `a`, so that one compiled kernel serves all losses.

Randomised labels need no kernel of their own. With q = 1/(e^ε - 1) the unbiased loss of PDML's (19) is
(1 + q)·ℓ(y') - q·ℓ(-y'), and for k classes the weights of `softmax` become 1 + (k-1)q on y' and -q elsewhere;
q = 0 is the plain loss.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled import intrinsic, njit

Array = NDArray[np.float64]

LOGISTIC, SQUARED, HUBER, ABSOLUTE, QUANTILE, HINGE, SQUARED_HINGE, SMOOTHED_HINGE, MULTINOMIAL = range(9)


# --- an exponential the compiler can vectorise ---------------------------------------------------------------------


@intrinsic
def _bits(context: Any, x: Any) -> Any:
    """The 64 bits of a float64 as an integer."""
    from llvmlite import ir
    from numba import types

    return types.int64(types.float64), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _float(context: Any, n: Any) -> Any:
    """The float64 with these 64 bits."""
    from llvmlite import ir
    from numba import types

    return types.float64(types.int64), lambda _, builder, __, args: builder.bitcast(args[0], ir.DoubleType())


_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 1.5 * 2.0**52  # added to a small number it leaves the nearest integer in the lowest bits
_F = tuple(1.0 / math.factorial(n) for n in range(14))


@njit(error_model="numpy")
def exp_negative(x: float) -> float:
    """e^x for x ≤ 0 within two units in the last place; e^-708 below -708.

    Arithmetic alone, where `math.exp` is a call: a loop over rows runs four at a time. x = n ln 2 + r, |r| ≤ ½ ln 2,
    e^r by its Taylor sum (the first term left out is below 2e-17), 2^n by adding n to the exponent's bits. Measured
    side by side (benchmarks/by_hand.py): slopes of the logistic loss take 3.9 to 4.2 times as long with Numba's
    `math.exp` and 2.6 to 2.7 times with NumPy's `exp`.
    """
    x = x if x > -708.0 else -708.0
    k = x * _LOG2E + _ROUND
    n = k - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (_F[2] + _F[3] * r) * r2 + ((_F[4] + _F[5] * r) + (_F[6] + _F[7] * r) * r2) * r4
    high = ((_F[8] + _F[9] * r) + (_F[10] + _F[11] * r) * r2) + (_F[12] + _F[13] * r) * r4
    return _float(_bits(1.0 + (r + (low + high * (r4 * r4)))) + (_bits(k) << np.int64(52)))


# --- one margin --------------------------------------------------------------------------------------------------


@njit
def value1(code: int, a: float, z: float, y: float) -> float:
    """ℓ(z, y)."""
    if code == LOGISTIC:
        m = y * z  # log(1 + e^-m) without overflow
        return math.log1p(math.exp(-m)) if m > 0 else math.log1p(math.exp(m)) - m
    if code == SQUARED:
        return 0.5 * (z - y) * (z - y)
    if code == HUBER:
        r = abs(z - y)
        return 0.5 * r * r if r <= a else a * (r - 0.5 * a)
    if code == ABSOLUTE:
        return abs(z - y)
    if code == QUANTILE:
        r = y - z
        return a * r if r > 0 else (a - 1.0) * r
    if code == HINGE:
        return max(0.0, 1.0 - y * z)
    if code == SQUARED_HINGE:
        h = max(0.0, 1.0 - y * z)
        return 0.5 * h * h
    h = 1.0 - y * z  # SMOOTHED_HINGE: quadratic over a width a below the kink
    if h <= 0.0:
        return 0.0
    return 0.5 * h * h / a if h < a else h - 0.5 * a


@njit(error_model="numpy")  # no check for division by zero, which would forbid vectorising
def slope1(code: int, a: float, z: float, y: float) -> float:
    """A subgradient of ℓ in z."""
    if code == LOGISTIC:
        m = y * z
        e = exp_negative(-abs(m))  # one exponential whatever the sign: a branch on it would be mispredicted
        top = e if m > 0 else 1.0
        return -y * top / (1.0 + e)
    if code == SQUARED:
        return z - y
    if code == HUBER:
        return min(a, max(-a, z - y))
    if code == ABSOLUTE:
        return 1.0 if z > y else (-1.0 if z < y else 0.0)
    if code == QUANTILE:
        return -a if y > z else 1.0 - a
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -y * max(0.0, 1.0 - y * z)
    return -y * min(1.0, max(0.0, (1.0 - y * z) / a))  # SMOOTHED_HINGE


@njit
def curvature1(code: int, a: float, z: float, y: float) -> float:
    """ℓ'' in z, where it exists; 0 at the kinks of a piecewise linear loss."""
    if code == LOGISTIC:
        e = math.exp(-abs(z))
        return e / ((1.0 + e) * (1.0 + e))
    if code == SQUARED:
        return 1.0
    if code == HUBER:
        return 1.0 if abs(z - y) <= a else 0.0
    if code == SQUARED_HINGE:
        return 1.0 if y * z < 1.0 else 0.0
    if code == SMOOTHED_HINGE:
        return 1.0 / a if 1.0 - a < y * z < 1.0 else 0.0
    return 0.0


@njit
def prox1(code: int, a: float, z: float, y: float, t: float) -> float:
    """argmin over u of t·ℓ(u, y) + ½(u - z)²."""
    if code == SQUARED:
        return (z + t * y) / (1.0 + t)
    if code == HUBER:
        r = z - y
        return y + (r / (1.0 + t) if abs(r) <= a * (1.0 + t) else r - t * a * (1.0 if r > 0 else -1.0))
    if code == ABSOLUTE:
        r = z - y
        return y if abs(r) <= t else z - t * (1.0 if r > 0 else -1.0)
    if code == QUANTILE:
        r = y - z
        if r > a * t:
            return z + a * t
        return z - (1.0 - a) * t if r < (a - 1.0) * t else y
    if code == HINGE:
        m = y * z
        return z if m >= 1.0 else (y if m >= 1.0 - t else z + t * y)
    if code == SQUARED_HINGE:
        m = y * z
        return z if m >= 1.0 else y * (m + t) / (1.0 + t)
    if code == SMOOTHED_HINGE:
        m = y * z
        if m >= 1.0:
            return z
        return y * (m * a + t) / (a + t) if m >= 1.0 - a - t else z + t * y
    # LOGISTIC: Newton on a strongly convex scalar; the slope is within [-1, 1], so is the bracket. A Newton step that
    # leaves it, or is more than half the step before last, would cycle: halve the bracket instead.
    low, high, u = z - t, z + t, z
    before = last = 2.0 * t
    for _ in range(100):
        g = u - z + t * slope1(code, a, u, y)
        if g > 0:
            high = u
        else:
            low = u
        step = g / (1.0 + t * curvature1(code, a, u, y))
        if not low < u - step < high or abs(step) > 0.5 * before:
            step = u - 0.5 * (low + high)
        u -= step
        before, last = last, abs(step)
        if last <= 1e-15 * (1.0 + abs(u)):
            break
    return u


# --- all margins of a row, with the randomised-label correction ---------------------------------------------------


@njit
def row_value(code: int, a: float, z: Array, y: float, q: float) -> float:
    """ℓ̂ of one row; z holds one margin per class (one for every loss but `Multinomial`)."""
    if code == MULTINOMIAL:
        k = z.size
        top = z[0]
        for c in range(1, k):
            top = max(top, z[c])
        total, mean = 0.0, 0.0
        for c in range(k):
            total += math.exp(z[c] - top)
            mean += z[c]
        return top + math.log(total) - (1.0 + k * q) * z[int(y)] + q * mean
    v = value1(code, a, z[0], y)
    return v if q == 0.0 else (1.0 + q) * v - q * value1(code, a, z[0], -y)


@njit
def row_slopes(code: int, a: float, z: Array, y: float, q: float, out: Array) -> None:
    """∂ℓ̂/∂z of one row, written to `out`."""
    if code == MULTINOMIAL:
        k = z.size
        top = z[0]
        for c in range(1, k):
            top = max(top, z[c])
        total = 0.0
        for c in range(k):
            out[c] = math.exp(z[c] - top)
            total += out[c]
        for c in range(k):
            out[c] = out[c] / total + q
        out[int(y)] -= 1.0 + k * q
        return
    s = slope1(code, a, z[0], y)
    out[0] = s if q == 0.0 else (1.0 + q) * s - q * slope1(code, a, z[0], -y)
