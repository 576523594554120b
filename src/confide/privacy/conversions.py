"""One agent's conversions between what events cost and (ε, δ): Gaussian-DP, zCDP, and pure ε as Gaussian-DP."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from confide.files.library import special
from confide.privacy.events import Number, checked
from confide.privacy.roots import root

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_RTOL = 4 * np.finfo(float).eps


def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """ln δ(ε) of a μ-Gaussian-DP release."""
    if mu == 0:
        return -math.inf
    return _log_delta(mu, epsilon / mu - mu / 2) if mu < math.inf else 0.0


def _log_delta(mu: float, a: float) -> float:
    """ln δ at ε = μ²/2 + a·μ, that is a deviations above the mean loss, without cancellation.

    With b = a + μ the identity e^ε·φ(b) = φ(a) gives δ = φ(a)·[m(a) − m(b)], m the Mills ratio. For small
    μ the bracket is integrated, −m'(x) = 1 − x·m(x), rather than subtracted.
    """
    if a > 40:
        return -a * a / 2  # Φ(−a) bounds δ by this; it is below the smallest double anyhow
    if mu < 1:
        x = a + mu * (1 + _NODES) / 2
        gap = float(_WEIGHTS @ (1 - x * _mills(x))) * mu / 2
    elif a > 0:
        gap = float(_mills(a) - _mills(a + mu))
    else:  # m(a) overflows for very negative a; δ itself is large
        return math.log(special.ndtr(-a) - math.exp(-a * a / 2) * _mills(a + mu) / math.sqrt(2 * math.pi))
    return -a * a / 2 - math.log(2 * math.pi) / 2 + math.log(gap)


def _mills(x: Any) -> Any:
    """Mills ratio Φ(−x)/φ(x)."""
    return math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))


def gaussian_epsilon(mu: float, delta: float) -> float:
    if mu == 0 or delta == 0 or mu == math.inf:
        return math.inf if mu else 0.0
    target = math.log(delta)
    if log_gaussian_delta(mu, 0.0) <= target:
        return 0.0
    low = max(-mu / 2, -10.0)  # ε = 0, or as far down as δ = 1 in doubles
    high = math.sqrt(-2 * target)  # there δ ≤ Φ(−√(2 ln 1/δ)) < the target
    a = _root(lambda a: _log_delta(mu, a) - target, low, high, 1e-17 * min(mu, 1.0))
    return mu * (mu / 2 + a)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Least ρ(1+x) − ln(1+1/x) + (ln 1/δ − ln(1+x))/x over orders 1+x, where ρx² + ln(1+x) = ln 1/δ."""
    if delta == 0:
        return math.inf
    budget, rho = -math.log(delta), max(rho, 1e-200)  # a larger ρ is valid, and x² stays a double
    x = _root(lambda x: rho * x * x + math.log1p(x) - budget, 0.0, 2 * math.sqrt(budget / rho))
    return max(0.0, rho * (1 + x) - math.log1p(1 / x) + (budget - math.log1p(x)) / x)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The same curve read the other way; ln δ is convex in the order, least where ρ(1+2x) − ln(1+1/x) = ε."""

    def slope(u: float) -> float:
        return rho * (1 + 2 * math.exp(u)) - math.log1p(math.exp(-u)) - epsilon

    low, high = -690.0, min(690.0, max(0.0, math.log(epsilon + 1) - math.log(rho)))
    if slope(low) >= 0:
        return 1.0  # ρ so large that nothing below δ = 1 is known
    x = math.exp(_root(slope, low, high, 1e-15) if slope(high) > 0 else high)  # every order is valid
    return math.exp(min(0.0, x * ((1 + x) * rho - epsilon - math.log1p(1 / x)) - math.log1p(x)))


def slack_delta(slack: float, epsilon: float) -> float:
    """(1 + e^ε)·slack: what a total variation of `slack` on both data sets adds to δ (`discrete` has the proof)."""
    return slack + math.exp(min(epsilon + math.log(slack), 1.0)) if slack > 0 else 0.0  # beyond 1 all is lost


def slack_turn(mu: float, slack: float) -> float:
    """ε up to which δ(ε) + (1 + e^ε)·slack of a μ-Gaussian-DP release falls: where Φ(−μ/2 − ε/μ) = slack."""
    return max(0.0, -mu * (mu / 2 + float(special.ndtri(slack)))) if 0 < slack < 1 else (0.0 if slack else math.inf)


def slack_epsilon(at: Callable[[float], float], slack: float, delta: float) -> float:
    """Smallest ε with δ(ε) + (1 + e^ε)·slack ≤ `delta`, up to 1e-14; `at` is the inverse of δ(ε), ∞ if there is none.

    From below: ε ← at(delta − (1 + e^ε)·slack) never passes the smallest solution, as `at` falls and e^ε rises, and
    what is returned has been tried. Where the sum touches `delta` so slowly that the steps do not end, ∞ is valid too.
    """
    if slack == 0:
        return at(delta)
    found = 0.0
    for _ in range(100):
        left = delta - slack_delta(slack, found)
        if left <= 0:
            break
        now = at(left)
        if now <= found:
            return found
        found = now * (1 + 1e-14)
    return math.inf


def _root(function: Callable[[float], float], low: float, high: float, xtol: float = 1e-300) -> float:
    least = math.ulp(0.0)  # a tolerance of a tiny root may have underflowed, and none is refused
    return root(function, low, high, xtol=max(xtol, least), rtol=_RTOL)


def gaussian_equivalent(epsilon: Number) -> Number:
    """μ = 2Φ⁻¹(e^ε/(1+e^ε)): every ε-DP release is μ-Gaussian-DP, so that pure ε can enter a running Σμ².

    Both trade-off curves pass through (0,1), (1,0) and the same fixed point; the pure one is made of the
    two chords of the convex Gaussian one, hence above it.
    """
    value = np.asarray(checked("gaussian_equivalent", "epsilon", epsilon, "at least 0"))
    # Two forms of one formula: the first keeps small ε, the second keeps e^−ε beyond 1e-16.
    small = 2 * math.sqrt(2) * special.erfinv(np.tanh(np.minimum(value, 1.0) / 2))
    mu = np.where(value < 1, small, -2 * special.ndtri_exp(special.log_expit(-np.maximum(value, 1.0))))
    return mu if mu.ndim else float(mu)
