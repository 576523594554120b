"""How far a discrete Gaussian is from a rounded normal, and why it may be charged as the Gaussian that it is.

**One number.** Secure noise is Z on the whole numbers with P(n) ∝ exp(-n²/2s²), s being its deviation in grid steps.
Let φ_w be the normal density of variance w, v = s² - 1/12, and R(n) = ∫φ_v over [n-½, n+½]: a normal variable of
variance v, rounded to the nearest whole number (rounding gives it back the 1/12). Then for s ≥ 1000

    TV(P, R) = ½ Σ|P(n) - R(n)| ≤ 4.9e-4 / s⁴.

1. Taylor's formula around n: R(n) = φ_v + φ_v''/24 + φ_v''''/1920 + a(n), |a(n)| ≤ sup|φ_v⁽⁶⁾|/322560 over the cell.
2. The heat equation ∂φ_w/∂w = ½φ_w'' from w = v to s²: φ_s²(n) = φ_v + φ_v''/24 + φ_v''''/1152 + b(n) with
   b(n) = ∫ (s² - w)²/16 φ_w⁽⁶⁾(n) dw and ∫ (s² - w)²/16 dw = 1/82944. So R(n) - φ_s²(n) = -φ_v''''/2880 + a(n) - b(n).
3. Poisson's summation formula: Σφ_s²(n) = 1 + θ, θ = 2 Σ_{m≥1} exp(-2π²s²m²), so that Σ|P(n) - φ_s²(n)| = θ.
4. For differentiable g, Σ_n sup|g| over the cells is at most ∫|g| + ∫|g'|. With Hermite's polynomials ∫|φ_w⁽ᵏ⁾| =
   w^(-k/2)·E|He_k(X)|, at most √k!·w^(-k/2); for k = 4 and w = 1 it is 4(φ'''(x₁) - φ'''(x₂)) = 2.8006, x² = 3 ∓ √6.

Together 2·TV ≤ (2.8007 + √120/√v)/(2880v²) + (1/322560 + 1/82944)(√720 + √5040/√v)/v³ + θ, and this is below
9.8e-4/s⁴ from s = 1000 on, where the second term is 4e-3 of the first and all others are below 1e-6 of it. The same
steps against N(0, s²) itself give 0.0202/s²: there the 1/12 is missing. We use the finer bound; the Gaussian's
deviation √(s² - 1/12) is s up to a relative 1/(23s²).

**A release.** A value x, to which `width` numbers of noise are added, is rounded to the grid: y = round(x). Replacing a
row moves x by at most Δ and each coordinate of y - x by at most one step, so y has L2 sensitivity Δ + √width·step.
Since y is on the grid, y + (rounded normal) = round(y + normal): a function of an exact Gaussian release of y. What is
really released, y + Z, differs from that in total variation by at most width·TV: the event's `slack`. An exact
discrete Gaussian is besides ½(sensitivity/scale)²-zCDP itself (Canonne, Kamath and Steinke 2020); a sampler that is
exact only up to a total variation, such as one that never goes beyond 23 deviations, is not: slack counts in zCDP too.

**Many releases, chosen as they come.** Run the real process and the ideal one, all of whose releases are functions of
exact Gaussian ones, side by side, each next release coupled as well as can be given the common past. They part at a
release with probability at most its slack, whatever came before; so they part at all with probability at most Σ slack,
also when a filter stops by what was released, as long as Σ slack ≤ η on every path. Thus every event S has real and
ideal probabilities within η of each other, on both of two neighbouring data sets, and from the ideal process's δ(ε)

    P(S) ≤ P*(S) + η ≤ e^ε Q*(S) + δ(ε) + η ≤ e^ε Q(S) + δ(ε) + (1 + e^ε)·η,

and in the same way a test of level α has a false-negative rate of at least f(α + η) - η where the ideal one has f(α).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.errors import ConfideError

SMALLEST = 1000.0  # deviation, in grid steps, from which on the bound is proven


def total_variation(deviation: Any) -> Any:
    """Bound on TV(discrete Gaussian, rounded normal of variance s² - 1/12), s = `deviation` in grid steps."""
    s = np.asarray(deviation, float)
    if not np.all(s >= SMALLEST):
        raise ConfideError(f"deviation {np.min(s):g} grid steps: must be at least {SMALLEST:g}, take a finer grid")
    return 4.9e-4 / s**4
