"""What several parties' discrete Gaussian noise adds up to, and how far that is from the Gaussian it is charged as.

**A sum of discrete Gaussians is nearly one** (Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism
for Federated Learning with Secure Aggregation", ICML 2021). Let X, Y be independent on the whole numbers, P(X = x) ∝
exp(-x²/2a²), P(Y = y) ∝ exp(-y²/2b²), and Z with a² + b². Completing the square, ρ² = 1/(1/a² + 1/b²) and c = z·ρ²/b²,

    P(X + Y = z) ∝ exp(-z²/2(a² + b²)) · Σ_x exp(-(x - c)²/2ρ²),

and by Poisson's summation formula the sum over x is √2π·ρ·(1 + e(z)), |e(z)| ≤ θ = 2 Σ_{m≥1} exp(-2π²ρ²m²), whatever c.
So P(X + Y = z) = P(Z = z)·(1 + e(z))/E(1 + e(Z)), and

    TV(X + Y, Z) = ½ E|e(Z) - E e(Z)| / (1 + E e(Z)) ≤ θ/(1 - θ).

Add n of deviation s one after the other: the k-th sum has ρ² = s²·k/(k+1), and distances add up (adding an independent
variable to both sides brings nothing further apart). Hence with q_k = exp(-2π²s²k/(k+1)) and θ_k ≤ 2q_k/(1 - q_k)

    TV(X_1 + … + X_n, discrete Gaussian of deviation s√n) ≤ Σ_{k=1}^{n-1} θ_k/(1 - θ_k) ≤ Σ 2q_k/(1 - 3q_k).

The paper's bound on the ratio of the two is 10·Σ q_k. On our grid, s = 2^26 steps, q_1 = exp(-π²·2^52): no computer
holds a number that small. It is counted as the smallest double all the same.

**And one is nearly a rounded normal**: TV ≤ 4.9e-4/(s²n)² against N(0, ns² - 1/12), as `discrete` proves. The sampler
itself is within 2^-187 per number and party. Together, a number of the sum has a slack of at most `sum_slack`.
"""

from __future__ import annotations

import math

from confide.errors import ConfideError
from confide.privacy.discrete import total_variation

SAMPLER = 2.0**-187  # total variation of one number drawn (`discrete_gaussian`)
LEAST = 0.5  # deviation from which on the first bound is of any use


def sum_variation(deviation: float, count: int) -> float:
    """Bound on TV(sum of `count` discrete Gaussians, one of deviation √count times theirs); `deviation` in steps."""
    if not deviation >= LEAST:
        raise ConfideError(f"deviation {deviation:g} grid steps: must be at least {LEAST:g}")
    if count < 1:
        raise ConfideError(f"{count} parties: noise is added by at least 1")
    terms = [math.exp(-2 * math.pi**2 * deviation**2 * k / (k + 1)) for k in range(1, count)]
    return math.nextafter(math.fsum(2 * q / (1 - 3 * q) for q in terms) * (1 + 1e-12), math.inf) if terms else 0.0


def sum_slack(deviation: float, count: int) -> float:
    """Total variation of a number of the sum from a rounded normal of variance count·deviation² - 1/12."""
    one = float(total_variation(deviation * math.sqrt(count)))
    return (sum_variation(deviation, count) + one + count * SAMPLER) * (1 + 1e-12)


def parties_of(scale: float, alone: float) -> int:
    """How many parties' noise of deviation `alone` makes `scale` together; one line where it is no whole number."""
    count = (scale / alone) ** 2
    if round(count) < 1 or abs(count - round(count)) > 1e-9 * count:
        raise ConfideError(f"noise of {scale:g} together and {alone:g} alone: not that of a whole number of parties")
    return round(count)
