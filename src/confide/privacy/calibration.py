"""Calibration: the inverse of accounting. Given a total (ε, δ), how much Gaussian noise in which round?

A *shape* says how noise is spread over rounds t = 1..T; one common factor then makes the exact total meet
the target. Two kinds of shape:

| shape          | what it fixes                                  | parameter       |
|----------------|------------------------------------------------|-----------------|
| constant       | noise scale σ_t ∝ 1                            |                 |
| geometric      | noise variance σ_t² ∝ decay^(t−1) (CDP-ADMM)   | decay in (0, 1] |
| inverse-sqrt   | noise variance σ_t² ∝ 1/√t (DDP-ADMM)          |                 |
| growing-budget | privacy spent: (Δ_t/σ_t)² ∝ t                  |                 |

The first three fix the noise whatever the sensitivities Δ_t; the last fixes the cost and so follows them.
"""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.privacy.conversions import log_gaussian_delta
from confide.privacy.events import Array, Number
from confide.privacy.roots import root

SHAPES = ("constant", "geometric", "inverse-sqrt", "growing-budget")

# The last digits of a composed total depend on the order of summation; calibrated noise covers that.
_MARGIN = 1e-12


def mu_for(epsilon: Number, delta: float) -> Number:
    """Largest Gaussian-DP parameter μ whose δ at `epsilon` (one or one per agent) is at most `delta`."""
    if not (isinstance(delta, Real) and 0 < delta < 1):
        raise ConfideError(f"delta={delta!r}: must be in (0, 1)")
    budgets = np.asarray(epsilon)
    numbers = budgets.dtype.kind in "iuf" and budgets.ndim < 2
    if not (numbers and np.all((budgets > 0) & np.isfinite(budgets))):
        raise ConfideError(f"epsilon={epsilon!r}: must be finite and above 0")
    found = np.array([_mu_for(float(value), math.log(delta)) for value in np.atleast_1d(budgets)])
    return found if budgets.ndim else float(found[0])


def _mu_for(epsilon: float, log_delta: float) -> float:
    # μ²/2 + μ·√(2 ln 1/δ) bounds ε from above: its root in μ is too small.
    low = 2 * epsilon / (math.sqrt(2 * (epsilon - log_delta)) + math.sqrt(-2 * log_delta))
    high = low = max(low, sys.float_info.min)
    if log_gaussian_delta(low, epsilon) > log_delta:
        return 0.0  # no double is small enough
    while log_gaussian_delta(high, epsilon) <= log_delta:
        high *= 2
    mu = root(lambda mu: log_gaussian_delta(mu, epsilon) - log_delta, low, high, xtol=1e-300, rtol=1e-15)
    return mu * (1 - _MARGIN)


def noise_shape(kind: str, rounds: int, **params: float) -> Array:
    """Relative noise scales, shape (rounds,), first entry 1, at equal sensitivities."""
    if kind not in SHAPES:
        raise ConfideError(f"shape={kind!r}: must be one of {', '.join(SHAPES)}")
    if not isinstance(rounds, int | np.integer) or rounds < 1:
        raise ConfideError(f"rounds={rounds!r}: must be a whole number from 1")
    wanted = {"decay"} if kind == "geometric" else set()
    if set(params) != wanted:
        raise ConfideError(f"shape {kind!r} with {_listed(params)}: takes {_listed(wanted)}")
    t = np.arange(1, rounds + 1, dtype=np.float64)
    match kind:
        case "geometric":
            decay = params["decay"]
            if not 0 < decay <= 1:
                raise ConfideError(f"decay={decay}: must be in (0, 1]")
            scales = decay ** ((t - 1) / 2)
            if scales[-1] < 1e-100:  # its inverse square would leave the doubles
                raise ConfideError(f"decay {decay} leaves no noise after {rounds} rounds: take fewer")
            return scales
        case "inverse-sqrt":
            return t**-0.25
        case "growing-budget":
            return t**-0.5
        case _:
            return np.ones(rounds)


def calibrate(
    epsilon: Number,
    delta: float,
    sensitivities: Any,
    shape: str = "constant",
    *,
    rounds: int | None = None,
    **params: float,
) -> Array:
    """Noise scales per round whose exact Gaussian total is (epsilon, delta), and never more.

    `sensitivities` has shape (rounds,) or (rounds, agents), or is one number together with `rounds`;
    the result has the same shape. `epsilon` may hold one budget per agent. Where nothing depends on the data
    (all sensitivities of an agent are 0) no noise is needed and none is returned.
    """
    mu = mu_for(epsilon, delta)
    steps = _sensitivities(sensitivities, rounds)
    if np.ndim(mu) and steps.shape[1:] != np.shape(mu):
        raise ConfideError(
            f"sensitivities of shape {steps.shape}: must have shape (rounds, {np.size(mu)}), one column per budget"
        )
    profile = noise_shape(shape, len(steps), **params).reshape(-1, *[1] * (steps.ndim - 1))
    if shape == "growing-budget":
        profile = profile * steps  # μ_t = Δ_t/σ_t follows √t, whatever Δ_t is
    spent = np.divide(steps, profile, out=np.zeros_like(steps), where=profile > 0)
    scales: Array = np.sqrt(np.sum(spent**2, axis=0)) / mu * profile
    return scales


def _sensitivities(given: Any, rounds: int | None) -> Array:
    try:
        steps = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfideError(f"sensitivities={given!r}: must be an array of numbers") from None
    if steps.ndim == 0 and rounds is not None:
        steps = np.full(len(noise_shape("constant", rounds)), steps)
    if steps.ndim not in (1, 2) or steps.size == 0:
        raise ConfideError(
            f"sensitivities of shape {steps.shape}: must have shape (rounds,) or (rounds, agents), or be one number "
            "with rounds="
        )
    if rounds is not None and len(steps) != rounds:
        raise ConfideError(f"rounds={rounds} does not match {len(steps)} rounds of sensitivities")
    wrong = steps[~((steps >= 0) & np.isfinite(steps))]
    if wrong.size:
        raise ConfideError(f"sensitivities={wrong[0]}: must be finite and at least 0")
    return steps


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "no parameter"
