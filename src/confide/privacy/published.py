"""The papers' own privacy bounds, to be shown beside the exact total.

Each calculator returns what its paper claims, and says whether the claim bounds the true loss. Where
a claim is about Gaussian noise, validity is decided by computing: the claim is valid if the exact total does
not exceed it. Otherwise the reason is given. Every number here is a statement *about* a paper; totals that a
user relies on come from :mod:`confide.privacy.accounting`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.privacy.accounting import epsilon as exact_epsilon
from confide.privacy.events import Gaussian, Number

_UNCLIPPED = "rests on a gradient bound c1 that nothing enforces without per-sample clipping"


@dataclass(frozen=True)
class PublishedBound:
    """A paper's claimed total ε, whether it is an upper bound on the loss, and why (not)."""

    name: str
    epsilon: Number
    valid: bool
    why: str


# --- CDP-ADMM (Gauthier, Gratton, Venkategowda, Werner) ---------------------------------------------------


def cdp_admm_corollary(first_cost: float, decay: float, rounds: int, delta: float, *, clipped: bool) -> PublishedBound:
    """Corollary: ε = φ + 2√(φ·ln 1/δ), φ = φ_1·(1−R^T)/(R^(T−1)−R^T), φ_1 the zCDP cost of the first round.

    Differs from the paper: its ρ^∞ is φ, and its ∞ is T.
    """
    _positive(first_cost=first_cost)
    _delta(delta)
    cost = first_cost * _growth(decay, rounds)
    claim = cost + 2 * math.sqrt(cost * -math.log(delta))
    why = "valid (zCDP) if no round's sensitivity exceeds the first one's; looser than the exact total"
    return PublishedBound("CDP-ADMM, corollary", claim, clipped, why if clipped else _UNCLIPPED)


def cdp_admm_first_cost(epsilon: float, delta: float, decay: float, rounds: int) -> float:
    """φ_1 for which the corollary gives `epsilon`: how the paper's simulations set their noise."""
    _positive(epsilon=epsilon)
    _delta(delta)
    root = math.sqrt(-math.log(delta))
    return (epsilon / (math.sqrt(epsilon + root**2) + root)) ** 2 / _growth(decay, rounds)


def _growth(decay: float, rounds: int) -> float:
    """(1−R^T)/(R^(T−1)−R^T), the summed cost of T rounds in units of the first."""
    _rounds(rounds)
    if not 0 < decay < 1:
        raise ConfideError(f"decay={decay}: must be in (0, 1)")
    return (1 - decay**rounds) / (decay ** (rounds - 1) * (1 - decay))


def sqrt_rounds(iteration_epsilon: float, rounds: int, delta: float, *, clipped: bool) -> PublishedBound:
    """√T·ε of (DDP-, DP-) ADMM: the "total privacy loss" on the axis of the CDP-ADMM paper's Fig. 1 and 2."""
    _rounds(rounds)
    claim = math.sqrt(rounds) * iteration_epsilon
    mu = classical_mu(iteration_epsilon, rounds, delta)
    return gaussian_claim("√T·ε, CDP-ADMM Fig. 1 and 2", claim, mu, rounds, delta, clipped=clipped)


# --- Recycled ADMM (Zhang, Khalili, Liu) ------------------------------------------------------------------


def r_admm(
    loss_weight: float, rows: Number, curvature: float, strong_convexity: Any, noise_rate: Any
) -> PublishedBound:
    """Theorem V.1, eq. (32): per agent Σ_k (2C/B)·(1.4·c1/h_k + α_k) over the rounds that touch data.

    `loss_weight` C, `rows` B (scalar or per agent), `curvature` c1 ≥ loss''; `strong_convexity`
    h_k = ρ/N + 2η_kV and `noise_rate` α_k have shape (rounds,) or (rounds, agents), and one of them may be
    a scalar. The paper's β is the largest entry.
    """
    h, rate, size = (np.asarray(v, dtype=np.float64) for v in (strong_convexity, noise_rate, rows))
    _positive(loss_weight=loss_weight, rows=size, curvature=curvature, strong_convexity=h, noise_rate=rate)
    if max(h.ndim, rate.ndim) == 0:
        raise ConfideError("strong_convexity and noise_rate are two scalars: one of them must have one value per round")
    if {h.ndim, rate.ndim} == {1, 2}:
        h, rate = (v if v.ndim == 2 else v[:, None] for v in (h, rate))
    per_round = 1.4 * curvature / h + rate  # (rounds,) or (rounds, agents)
    claim = 2 * loss_weight / size * per_round.sum(axis=0)  # (32)
    why = "valid for exact minimisers, but loose: ln(1+x) does for 2.8·x, x = c1·C/(B·h), whatever c1"
    return PublishedBound("R-ADMM, Theorem V.1", claim if np.ndim(claim) else float(claim), True, why)


# --- D-ZOA (zeroth-order ADMM) ----------------------------------------------------------------------------

_D_ZOA_WHY = "not supported: Lemma 2 bounds the inherent noise from above where privacy needs a lower bound"


@dataclass(frozen=True)
class DZOASetting:
    """What (17), (20) and (22) are made of, for one agent."""

    gradient_bound: float  # c1
    coupling: float  # ρ
    degree: int  # |V_k|
    rows: int  # N_k
    width: int  # P
    inner_rounds: int  # T
    radius: float  # R
    step: float = 0.54  # α_0
    constant: float = 0.5  # c, for normal directions
    solution_norm: float = 0.0  # ‖β^c‖

    def __post_init__(self) -> None:
        _positive(**{k: v for k, v in vars(self).items() if k != "solution_norm"})
        if self.spread <= 0:
            raise ConfideError(f"inner_rounds={self.inner_rounds}: must satisfy (23)")

    @property
    def sensitivity(self) -> float:
        """Lemma 3, (19)."""
        return self.gradient_bound / (self.coupling * self.degree * self.rows)

    @property
    def spread(self) -> float:
        """J·P·σ² of Lemma 2, (17), which is also the denominator in (22)."""
        t = np.arange(1, self.inner_rounds + 1)
        s1, s2 = float(np.sum(t**-1.0)), float(np.sum(t**-1.5))
        inherent = self.constant * (self.radius * self.step) ** 2 / math.log(2 * self.width)
        bias = 4 * self.solution_norm**2 / self.inner_rounds
        return inherent * (s1 * (1 + math.log(self.width)) + s2) - bias


def d_zoa_scale(setting: DZOASetting, epsilon: float, delta: float) -> float:
    """(20): the noise scale that would make one iteration (ε, δ)-private."""
    _positive(epsilon=epsilon)
    return setting.sensitivity * math.sqrt(2.1 * _log_1_25(delta)) / epsilon


def d_zoa_directions(setting: DZOASetting, epsilon: float, delta: float) -> int:
    """J for which (22) claims `epsilon`, to the nearest integer as in the simulations; at least 1."""
    return max(1, round(setting.spread / (setting.width * d_zoa_scale(setting, epsilon, delta) ** 2)))


def d_zoa_iteration(setting: DZOASetting, directions: int, delta: float) -> PublishedBound:
    """Corollary 1, (22): ε of one iteration, from the variance Lemma 2 ascribes to J directions."""
    _rounds(directions, "directions")
    inherent = math.sqrt(setting.spread / (directions * setting.width))
    return PublishedBound("D-ZOA, (22)", d_zoa_scale(setting, 1.0, delta) / inherent, False, _D_ZOA_WHY)


def d_zoa_total(iteration_epsilon: float, rounds: int, delta: float) -> PublishedBound:
    """Theorem 2, (25): ε·√(M·ln(1/δ) / (1.05·ln(1.25/δ))) over M iterations."""
    _positive(iteration_epsilon=iteration_epsilon)
    _rounds(rounds)
    factor = math.sqrt(rounds * -math.log(_delta(delta)) / (1.05 * _log_1_25(delta)))
    return PublishedBound("D-ZOA, (25)", iteration_epsilon * factor, False, _D_ZOA_WHY)


# --- FDP-ADMM ---------------------------------------------------------------------------------------------


def fdp_admm(iteration_epsilon: float, rounds: int, delta: float, *, clipped: bool) -> PublishedBound:
    """Theorem 1 claims (ε, δ) for the algorithm; its proof covers one iteration."""
    mu = classical_mu(iteration_epsilon, rounds, delta)
    return gaussian_claim("FDP-ADMM, Theorem 1", iteration_epsilon, mu, rounds, delta, clipped=clipped)


def classical_mu(iteration_epsilon: float, rounds: int, delta: float) -> float:
    """Exact total μ = √L·ε/√(2 ln(1.25/δ)) of L rounds, each with the classical noise Δ·√(2 ln(1.25/δ))/ε."""
    _positive(iteration_epsilon=iteration_epsilon)
    _rounds(rounds)
    return math.sqrt(rounds) * iteration_epsilon / math.sqrt(2 * _log_1_25(delta))


def classical_epsilon(mu: float, delta: float) -> float:
    """ε of one release of Gaussian noise σ at sensitivity Δ = μσ by the classical rule σ = Δ·√(2 ln(1.25/δ))/ε."""
    _positive(mu=mu)
    return mu * math.sqrt(2 * _log_1_25(delta))


# --- baselines whose claim is another paper's ---------------------------------------------------------------


def advanced(first_mu: float, rounds: int, total_mu: float, delta: float, *, clipped: bool) -> PublishedBound:
    """The noise of DPSGD and PVP as D-ZOA's authors compare them: (20) for one iteration, (25) for all of them."""
    iteration = first_mu * math.sqrt(2.1 * _log_1_25(delta))  # (20)
    claim = d_zoa_total(iteration, rounds, delta).epsilon  # (25)
    return gaussian_claim("(20) and (25) of the D-ZOA paper", float(claim), total_mu, rounds, delta, clipped=clipped)


def pvp_iteration(epsilon: Number, rounds: int, *, clipped: bool) -> PublishedBound:
    """Dynamic privacy of Zhang and Zhu 2017: ε of one iteration of one node, and nothing about all of them."""
    valid = clipped and rounds == 1
    why = _UNCLIPPED if not clipped else f"of one iteration; {rounds} iterations were made"
    return PublishedBound("PVP, one iteration", epsilon, valid, why)


def pdml_labels(epsilon: float) -> PublishedBound:
    """Proposition 1: a label reported with odds e^ε : 1."""
    why = "for labels: randomised response, which later rounds cannot undo"
    return PublishedBound("PDML, Proposition 1", epsilon, True, why)


def pdml_iteration(first_mu: float, rounds: int, delta: float) -> PublishedBound:
    """Dynamic privacy of (16): ε of one iteration; the paper itself says that all iterations together have none."""
    claim = classical_epsilon(first_mu, delta)
    why = f"for features: of one iteration of {rounds}, and noise drawn once hides no row from several messages"
    return PublishedBound("PDML, (16)", claim, False, why)


def gaussian_claim(name: str, claim: float, mu: float, rounds: int, delta: float, *, clipped: bool) -> PublishedBound:
    """A claim about Gaussian rounds, judged by their exact total μ."""
    exact = float(exact_epsilon([Gaussian(mu, 1.0)], delta))
    if not clipped:
        return PublishedBound(name, claim, False, _UNCLIPPED)
    relation = "at most" if exact <= claim else "above"
    why = f"the exact total of {rounds} rounds is {exact:.4g}, {relation} the claimed {claim:.4g}"
    return PublishedBound(name, claim, exact <= claim, why)


# --- checks -----------------------------------------------------------------------------------------------


def _positive(**values: Any) -> None:
    for name, value in values.items():
        if not np.all((np.asarray(value) > 0) & np.isfinite(value)):
            raise ConfideError(f"{name}={value}: must be finite and above 0")


def _rounds(value: int, name: str = "rounds") -> None:
    if not isinstance(value, int | np.integer) or value < 1:
        raise ConfideError(f"{name}={value!r}: must be a whole number from 1")


def _delta(value: float) -> float:
    if not 0 < value < 1:
        raise ConfideError(f"delta={value}: must be in (0, 1)")
    return value


def _log_1_25(delta: float) -> float:
    return math.log(1.25 / _delta(delta))
