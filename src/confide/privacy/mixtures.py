"""Pure ε, objective and output perturbation, alone or with Gaussian releases: the smallest of several valid bounds.

**Objective perturbation, tighter than its pure ε.** A round releases f = argmin J(f) + eᵀf with noise density
∝ exp(-α‖e‖) in d dimensions. For neighbours D, D' let e and e + Δ be the noises that explain the same f; Δ = ∇J_D(f) -
∇J_D'(f) up to sign. The log-likelihood ratio is at most α(‖e + Δ‖ - ‖e‖) + c with c = ln(1 + x) for the determinants
(`events.ObjectivePerturbation`), and so at most αr + c: the pure ε. But Δ depends on f only through the slopes of the
two rows that differ: it lies in their span, a fixed plane, and ‖Δ‖ ≤ r. With P the projection on that plane,

    ‖e + Δ‖ ≤ √((‖Pe‖ + r)² + ‖(I - P)e‖²) = √(‖e‖² + 2r‖Pe‖ + r²),

so the loss is at most G + c, G = √(ϱ² + 2ϱbs + s²) - ϱ with s = αr, ϱ = α‖e‖ and b = ‖Pe‖/‖e‖. Under D the noise e is
exactly the one drawn, hence ϱ ~ Gamma(d, 1) and b² ~ Beta(1, (d-2)/2), independent of each other, of D, D' and of all
earlier rounds, even when a round's objective depends on them (a span of dimension k: Beta(k/2, (d-k)/2)). Since
δ(ε) = E_D[(1 - e^(ε-loss))₊] grows with the loss, the sum of independent G_t + c_t over the rounds bounds it. In high
dimensions b is about √(2/d): most of the noise does not point at the rows, which is what the pure ε ignores.

G falls in ϱ and rises in b, so a grid of cells whose corner with the smallest ϱ and the largest b stands for the whole
cell, rounded up to the library's grid, keeps it an upper bound. Composition is dp-accounting's.

**Output perturbation, tighter still.** A round releases f(D) + e with the same density of e, and given what was
released before, f(D) and f(D') are two fixed points (the solver is deterministic): Δ = f(D) - f(D') does not depend on
e. So the loss is α(‖e + Δ‖ - ‖e‖) itself, where e may as well point away from Δ as along it:

    L = √(ϱ² + 2ϱcs + s²) - ϱ,   s = α‖Δ‖,   c = eᵀΔ/(‖e‖‖Δ‖) in [-1, 1],

with ϱ ~ Gamma(d, 1) as before and c, independent of it, one coordinate of a uniform direction: (1 + c)/2 ~
Beta((d-1)/2, (d-1)/2), and ±1 with equal chance for d = 1. D and D' may be exchanged: e and -e have one law.

The worst Δ has the full length r. Given the part of e across Δ, whose law is the same under D and D', the part along
it has the log-concave density ∝ exp(-α√(x² + const)), so the likelihood ratio of a shift by t is monotone in x, the
best set is a half line, and its P(x ≤ a) - e^ε P(x ≤ a - t) grows with t for every a; so does the average over the part
across. By symmetry the direction does not matter: the pair (e, e + r·u) dominates every round, whatever D, D' and the
past, and such pairs compose adaptively (Zhu, Dong and Wang 2022, Theorem 10).

L rises in c, and falls in ϱ as (ϱ + cs)² ≤ ϱ² + 2ϱcs + s². So ϱ is cut into cells that count as their lower ends, and
for such an end the chance of L ≤ l is that of c ≤ (l² + 2lϱ - s²)/(2ϱs), exactly; what lies between two points of the
library's grid counts as the upper one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from confide.errors import MissingExtra
from confide.files.library import special
from confide.privacy.conversions import gaussian_epsilon, gaussian_equivalent, log_gaussian_delta
from confide.privacy.events import Array

_PLD_FLOOR = 1e-12  # FFT convolutions carry absolute errors: no δ below this is taken from them
_PLD_POINTS = 2**18  # grid points: a second of work, and as fine as dp-accounting's default at μ = 1
_CELLS = 600  # of the objective's loss, in either direction, apart from the tails
_TAIL = 1e-12  # probability of the outermost cells
_STEPS = 2000  # grid points for a loss of output perturbation between 0 and its pure ε
_RADII = 200  # cells of its radius, apart from the tails
_LEAST = 1e-100  # μ below counts as this, which costs more: squares stay among the doubles inside the library
_GUARD = 1e-12  # more than scipy's incomplete beta function errs by
_END = 1e-6  # relative; more than its inverse functions err by, and of no weight in G or L


def pure_epsilon(mu: float, pure: Array, radial: Array, delta: float) -> float:
    """Smallest ε known at δ for one agent: `mu` of its Gaussian releases, every pure ε, and their shapes (n, 4)."""
    whole = float(pure.sum())
    if mu == 0:
        # One ε-DP release is (ln(e^ε(1−δ) − δ), δ)-private: binary randomised response is the worst case.
        rest = 1 - delta - delta * math.exp(-whole)
        basic = max(0.0, whole + math.log(rest)) if rest > 0 else 0.0
    else:
        basic = gaussian_epsilon(mu, delta) + whole
    bounds = [basic, gaussian_epsilon(_all_gaussian(mu, pure), delta)]
    if delta >= _PLD_FLOOR and (loss := _loss_distribution(mu, pure, radial)) is not None:
        bounds.append(float(loss.get_epsilon_for_delta(delta)))
    return min(bounds)


def pure_delta(mu: float, pure: Array, radial: Array, epsilon: float) -> float:
    """Smallest δ known at ε for one agent."""
    whole = float(pure.sum())
    if mu == 0:
        basic = max(0.0, -math.expm1(epsilon - whole) / (1 + math.exp(-whole))) if epsilon < whole else 0.0
    else:
        basic = math.exp(log_gaussian_delta(mu, epsilon - whole)) if epsilon >= whole else 1.0
    bounds = [basic, math.exp(log_gaussian_delta(_all_gaussian(mu, pure), epsilon))]
    if min(bounds) > _PLD_FLOOR and (loss := _loss_distribution(mu, pure, radial)) is not None:
        bounds.append(max(_PLD_FLOOR, float(loss.get_delta_for_epsilon(epsilon))))
    return min(bounds)


def _all_gaussian(mu: float, pure: Array) -> float:
    return math.hypot(mu, *np.atleast_1d(gaussian_equivalent(pure)))


def _loss_distribution(mu: float, pure: Array, radial: Array) -> Any:
    """dp-accounting's privacy loss distribution, or None where closed forms are exact or have to do.

    The Gaussian enters with standard deviation 1/μ at sensitivity 1 and add-or-remove direction: our
    sensitivities already count replacement, which the library's REPLACE_ONE would double.
    """
    shaped = radial[:, 2] > radial[:, 3]
    if mu == 0 and pure.size == 1 and not shaped.any():
        return None
    try:
        from dp_accounting.pld import common, pld_pmf
        from dp_accounting.pld import privacy_loss_distribution as library
    except ImportError:
        if mu == 0:
            return None  # pure ε alone keeps its closed forms, which are valid and only looser
        raise MissingExtra(
            "mixing Gaussian and pure-ε events needs dp-accounting: pip install confide[accounting]"
        ) from None
    span = mu * mu + 20 * mu + 2 * float(pure.sum())
    if span > 600:
        return None  # e^loss leaves the doubles inside the library
    values, counts = np.unique(pure[~shaped], return_counts=True)
    step = max(1e-3 * min(float(pure.mean()), mu or math.inf), span / _PLD_POINTS)
    if shaped.any():  # a loss of many sizes: every event's rounding adds up to at most a per mille
        finest = float(pure[shaped].min()) / _STEPS if np.any(radial[shaped][:, 3] == 0) else math.inf
        step = max(min(step, 0.001 * float(pure.sum()) / pure.size, finest), span / _PLD_POINTS)
        step = 2.0 ** math.floor(math.log2(step))
    elif values.size == 1 and (mu == 0 or values[0] >= step):
        # A grid that divides ε makes the pure part exact; halving keeps the division exact in doubles.
        halvings = max(0, math.ceil(math.log2(values[0] / step))) if mu else 0
        step = float(values[0]) / 2**halvings
    else:
        step = 2.0 ** math.floor(math.log2(step))
    loud = 1 / max(mu, _LEAST)
    parts = [] if mu == 0 else [library.from_gaussian_mechanism(loud, value_discretization_interval=step)]
    for value, count in zip(values, counts, strict=True):
        on_grid = math.ceil(value / step) * step  # rounding ε up keeps the bound valid
        part = library.from_privacy_parameters(common.DifferentialPrivacyParameters(on_grid, 0.0), step)
        parts.append(part.self_compose(int(count)))
    for (s, c, width, rank), count in zip(*np.unique(radial[shaped], axis=0, return_counts=True), strict=True):
        losses = _objective_loss(s, c, width, rank, step) if rank else _output_loss(s, width, step)
        pmf = pld_pmf.create_pmf(losses, step, 0.0, pessimistic_estimate=True)
        parts.append(library.PrivacyLossDistribution(pmf).self_compose(int(count)))
    loss = parts[0]
    for part in parts[1:]:
        loss = loss.compose(part)
    return loss


def _objective_loss(s: float, c: float, width: float, rank: float, step: float) -> dict[int, float]:
    """Probabilities of G + c rounded up to multiples of `step`; every cell counts as its worst corner."""
    tail = np.geomspace(_TAIL, 0.01, _CELLS // 6)
    edge = np.concatenate([[0.0], tail, np.linspace(0.01, 0.99, _CELLS)[1:-1], 1 - tail[::-1]])
    low = special.gammaincinv(width, edge) * (1 - _END)  # ϱ at the lower end of its cell
    # b at the upper end
    high = np.sqrt(special.betaincinv(rank / 2, (width - rank) / 2, np.append(edge[1:], 1.0))) * (1 + _END)
    mass = np.diff(np.append(edge, 1.0))
    rho, b = low[:, None], high[None, :]
    # √(ϱ² + 2ϱbs + s²) - ϱ without cancellation
    rise = (2 * rho * b * s + s * s) / (np.sqrt(rho * rho + 2 * rho * b * s + s * s) + rho)
    place = np.ceil((np.minimum(rise, s) + c) / step).astype(np.int64)
    total = np.bincount(place.ravel(), weights=np.outer(mass, mass).ravel())
    return {int(k): float(total[k]) for k in np.flatnonzero(total)}


def _output_loss(s: float, width: float, step: float) -> dict[int, float]:
    """Probabilities of L rounded up to multiples of `step`, the radius counting as the lower end of its cell."""
    tail = np.geomspace(_TAIL, 0.01, _RADII // 6)
    edge = np.concatenate([[0.0], tail, np.linspace(0.01, 0.99, _RADII)[1:-1], 1 - tail[::-1]])
    radius = special.gammaincinv(width, edge)[1:] * (1 - _END)
    mass = np.diff(np.append(edge, 1.0))
    places = np.arange(math.floor(-s / step), math.ceil(s / step) + 1)
    level = places * step
    below = np.zeros(len(level))  # P(L ≤ level); in the first cell, of radius 0, L counts as s
    for rho, weight in zip(radius, mass[1:], strict=True):
        cosine = (level * level + 2 * level * rho - s * s) / (2 * rho * s)
        cosine[level < -min(s, rho)] = -2.0  # L is at least -s and -ϱ
        below += weight * _coordinate(cosine - _GUARD, int(width))
    below[-1] = 1.0
    total = np.maximum(np.diff(below, prepend=0.0), 0.0)
    return {int(places[k]): float(total[k]) for k in np.flatnonzero(total)}


def _coordinate(cosine: Array, width: int) -> Array:
    """A lower bound of P(c ≤ cosine), c one coordinate of a uniform direction: its value at the next lower point."""
    if width == 1:
        return np.where(cosine >= 1, 1.0, np.where(cosine >= -1, 0.5, 0.0))
    reach, table = _coordinate_table(width)
    place = np.floor((cosine + reach) * ((len(table) - 1) / (2 * reach)))
    return table[np.clip(place, -1, len(table) - 1).astype(np.int64)] * (place >= 0)


@lru_cache(maxsize=64)
def _coordinate_table(width: int) -> tuple[float, Array]:
    """P(c ≤ x) at even points over ±reach; beyond twelve deviations there is less than 1e-30."""
    reach = min(1.0, 12 / math.sqrt(width))
    points = np.linspace(-reach, reach, 2**15 + 1)
    return reach, np.asarray(special.betainc((width - 1) / 2, (width - 1) / 2, (1 + points) / 2)) * (1 - _GUARD)
