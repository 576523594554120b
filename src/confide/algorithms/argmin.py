"""When an argmin is certain to be found to its tolerance, whatever neighbours send and whatever the rows are.

A round minimises J(f) = Σ_i s·ℓ_i(x_iᵀf) + R(f)/K + lᵀf + ½a‖f‖². Let rows have norm at most b, |ℓ'| ≤ S, ℓ'' ≤ c, q =
M·s the weight of all rows, J be h-strongly convex and H = c·b²·q + a + l2/K, so that h ≤ ∇²J ≤ H.

1. *What enters.* Messages and the start lie in a public ball of radius R, so ‖l‖ ≤ L = 2|N|R(max_t η_t + Σ_t of the
   dual's steps), plus the objective's noise, whose norm is Gamma distributed and above `longest_noise` with probability
   `MISSED` only.
2. *How large f gets.* ‖∇J(0)‖ ≤ G = qSb + L, so the argmin f* has ‖f*‖ ≤ G/h. Descent with step 1/H from a start in the
   ball never moves away from f*: all its iterates have norm at most F = R + 2G/h.
3. *Floating point.* With u = 2⁻⁵³ a margin is off by (W + 4)u·bF, a slope by c times that and 8uS, a sum over M rows by
   M·u·qSb, and the public terms by 4u(L + aF + qSb): the computed gradient is off by at most their sum e, the update
   f - g/H by e again.
4. *Descent arrives.* ‖f_(k+1) - f*‖ ≤ (1 - h/H)‖f_k - f*‖ + e/H, so after (H/h)·ln(hF/e) ≤ 40·H/h steps ‖f - f*‖ ≤
   2e/h, the gradient is at most 2eH/h and the computed one e more. If e(1 + 2H/h) ≤ tolerance and H/h is at most
   `solvers.WORST_CONDITION`, a point with computed gradient norm ≤ tolerance is found for certain: the block falls
   back to descent wherever a faster solver gives up. Its true gradient is within tolerance + e ≤ 2·tolerance, which is
   what sensitivities count.

No stop, no error and no other branch then depends on rows. Piecewise linear losses and l1 penalties have no such bound
here: their methods are labelled *assumed*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.algorithms.base import Array, at_home, row_length
from confide.files.library import special
from confide.problem.problem import Public
from confide.problem.solvers import WORST_CONDITION

MISSED = 1e-18  # chance that a round's noise is longer than `longest_noise`
UNIT = 2.0**-53
EXTREME = 1e100


def longest_noise(width: int) -> float:
    """Of a vector of density ∝ exp(-‖·‖), but for `MISSED`."""
    return float(special.gammainccinv(width, MISSED))


def gap(method: Any, public: Public) -> str:
    """Why the solver's tolerance is not certain; empty if it is."""
    if not (public.loss.smooth and public.penalty.smooth):
        return "the solver's tolerance is certain for smooth losses and penalties only"
    if not at_home(type(public.penalty)):
        return f"{type(public.penalty).__name__} is a penalty from outside, whose word enforces nothing"
    numbers = [method.tolerance, row_length(public), *np.ravel(public.each(method.coupling))]
    if not all(1 / EXTREME <= v <= EXTREME for v in numbers):
        return (
            f"numbers from {min(numbers):.3g} to {max(numbers):.3g}: squares of those beyond 1e±100 leave the doubles"
        )
    radius = method.message_bound(public)
    if not radius <= EXTREME:
        return "neighbours may send anything: the solver's tolerance is certain inside a public ball only"
    start = float(np.max(np.linalg.norm(method.init(public.whole).primal, axis=-1)))  # public, and in no ball
    need = float(np.max(least_tolerance(method, public, max(radius, start))))
    if not need <= method.tolerance:
        return f"floating point cannot promise a tolerance below {need:.1e} here: raise tolerance"
    return ""


def least_tolerance(method: Any, public: Public, radius: float) -> Array:
    """The tolerance that is certain to be reached, ∞ if the problem is too ill-conditioned for descent: (A, 1)."""
    rounds = range(1, method.rounds + 1)
    loss, degree = public.loss, public.degree
    rows = public.sizes[public.agents].astype(float)[:, None]
    b, q = row_length(public), public.scale * rows
    S, c, W = loss.slope_bound, loss.curvature_bound, public.width
    etas = np.array([method.eta(t, public) for t in rounds])
    a, h = 2.0 * etas.max(axis=0) * degree, np.min([method.convexity(t, public) for t in rounds], axis=0)
    l2 = public.penalty.l2 / public.count
    duals = sum(method.dual_size(t, public) for t in rounds)
    linear = 2.0 * degree * radius * (etas.max(axis=0) + duals)
    if hasattr(method, "objective_noise_bound"):
        linear = linear + np.max([method.objective_noise_bound(t, public) for t in rounds], axis=0)
    H = c * b * b * q + a + l2
    G = q * S * b + linear
    F = radius + 2.0 * G / h
    e = UNIT * (q * b * (c * (W + 4) * b * F + 8 * S) + rows * q * S * b + 4 * (linear + (a + l2) * F + q * S * b))
    e = 2.0 * e  # the update's rounding
    return np.where(h * WORST_CONDITION >= H, e * (1.0 + 2.0 * H / h), np.inf)
