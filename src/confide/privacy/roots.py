"""Brent's method for a root of a function of one number (Algorithms for Minimization without Derivatives, 1973).

SciPy's `brentq` step by step, to the last bit: loading scipy.optimize for it took longer than all that is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from confide.errors import ConfideError


def root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float, most: int = 2000
) -> float:
    """A root within xtol + rtol·|root|; the function has different signs at `low` and `high`, or is 0 there."""

    def at(x: float) -> float:
        value = float(function(x))
        if math.isnan(value):
            raise ConfideError(f"the function is not a number at {x!r}: it has no root to be found")
        return value

    before, now = low, high  # the last two points
    f_before, f_now = at(before), at(now)
    if f_before == 0 or f_now == 0:
        return before if f_before == 0 else now
    if (f_before > 0) == (f_now > 0):
        raise ConfideError(f"{f_before!r} at {low!r} and {f_now!r} at {high!r}: must have different signs")
    other, f_other, step_before, step = 0.0, 0.0, 0.0, 0.0  # other: where the sign is different from that at `now`
    for _ in range(most):
        if f_before != 0 and f_now != 0 and (f_before > 0) != (f_now > 0):
            other, f_other = before, f_before
            step_before = step = now - before
        if abs(f_other) < abs(f_now):
            before, now, other = now, other, now
            f_before, f_now, f_other = f_now, f_other, f_now
        near = (xtol + rtol * abs(now)) / 2
        half = (other - now) / 2
        if f_now == 0 or abs(half) < near:
            return now
        step_before, step = _steps(before, now, other, f_before, f_now, f_other, step_before, step, half, near)
        before, f_before = now, f_now
        now += step if abs(step) > near else math.copysign(near, half)
        f_now = at(now)
    raise ConfideError(f"no root between {low!r} and {high!r} after {most} steps")


def _steps(
    before: float, now: float, other: float, f_before: float, f_now: float, f_other: float,
    step_before: float, step: float, half: float, near: float,
) -> tuple[float, float]:  # fmt: skip
    """The last step and the next: interpolated where that is short, else half of the interval."""
    if not (abs(step_before) > near and abs(f_now) < abs(f_before)):
        return half, half
    try:
        if before == other:
            tried = -f_now * (now - before) / (f_now - f_before)
        else:
            slope_before = (f_before - f_now) / (before - now)
            slope_other = (f_other - f_now) / (other - now)
            tried = -f_now * (f_other * slope_other - f_before * slope_before)
            tried /= slope_other * slope_before * (f_other - f_before)
    except ZeroDivisionError:  # a product that underflowed
        return half, half
    longest, room = abs(step_before), 3 * abs(half) - near
    return (step, tried) if 2 * abs(tried) < (longest if longest < room else room) else (half, half)
