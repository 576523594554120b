"""What counted errors prove: confidence bounds on the privacy loss of two neighbouring data sets.

A test guesses which of two worlds an output came from. Of `repetitions` outputs of each world it takes `false_alarms`
of the first for the second, and has `misses` the other way round.

- (ε, δ): 1 - FNR ≤ e^ε·FPR + δ, and the same with the worlds exchanged (Kairouz, Oh and Viswanath, ICML 2015); so
  a share w of wrong guesses over both worlds has 1 - w ≤ e^ε·w + δ.
- Gaussian-DP: Φ⁻¹(1 - FPR) - Φ⁻¹(FNR) ≤ μ (Dong, Roth and Su, J. R. Stat. Soc. B 84(1), 2022; as an audit: Nasr et al.,
  USENIX Security 2023), and at prior ½ no guess is right more often than Φ(μ/2).

FPR and FNR are bounded by Clopper and Pearson (Biometrika 26, 1934) at half the error level each. The share of wrong
guesses over both worlds needs one such bound and so costs less: it is a mean of Bernoulli variables of two means, which
is spread less than a binomial one of their average (Hoeffding, Ann. Math. Stat. 27, 1956).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, log_ndtr, ndtri

Array = NDArray[np.float64]


def upper(count: Any, trials: int, level: float) -> Array:
    """Clopper and Pearson's bound: a rate above it would give so few with probability at most `level`."""
    k = np.asarray(count, float)
    return np.where(k >= trials, 1.0, betaincinv(k + 1, np.maximum(trials - k, 1e-9), 1 - level))


def epsilon_from_rates(false_alarms: Any, misses: Any, repetitions: int, level: float, delta: float) -> Array:
    """ε that both error rates together prove, at error level `level`; 0 where they prove nothing."""
    fpr, fnr = upper(false_alarms, repetitions, level / 2), upper(misses, repetitions, level / 2)
    power = np.maximum(1 - delta - np.array([fnr, fpr]), 1e-300)
    return np.maximum(np.log(power / np.array([fpr, fnr])).max(axis=0), 0.0)


def epsilon_from_accuracy(false_alarms: Any, misses: Any, repetitions: int, level: float, delta: float) -> Array:
    """ε that the share w of wrong guesses proves: 1 - w ≤ e^ε·w + δ, the mean of the two inequalities."""
    wrong = _wrong(false_alarms, misses, repetitions, level)
    return np.maximum(np.log(np.maximum(1 - delta - wrong, 1e-300) / wrong), 0.0)


def mu_from_rates(false_alarms: Any, misses: Any, repetitions: int, level: float) -> Array:
    """μ that both error rates together prove; 0 where they prove nothing."""
    fpr, fnr = upper(false_alarms, repetitions, level / 2), upper(misses, repetitions, level / 2)
    sure = (fpr < 1) & (fnr < 1)
    return np.where(sure, np.maximum(-ndtri(np.where(sure, fpr, 0.5)) - ndtri(np.where(sure, fnr, 0.5)), 0.0), 0.0)


def mu_from_accuracy(false_alarms: Any, misses: Any, repetitions: int, level: float) -> Array:
    """μ that the share of right guesses proves; 0 where it proves nothing."""
    return np.maximum(-2 * ndtri(np.minimum(_wrong(false_alarms, misses, repetitions, level), 0.5)), 0.0)


def _wrong(false_alarms: Any, misses: Any, repetitions: int, level: float) -> Array:
    """Bound on the share of wrong guesses when both worlds are as likely."""
    return upper(np.asarray(false_alarms) + np.asarray(misses), 2 * repetitions, level)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε at `delta` of a Gaussian release: δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)."""
    from scipy.optimize import brentq  # a second, which what is refused need not wait for

    def excess(epsilon: float) -> float:
        first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        return float(first + math.log(max(-math.expm1(min(second - first, 0.0)), 1e-300)) - math.log(delta))

    if mu <= 0 or excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0))
