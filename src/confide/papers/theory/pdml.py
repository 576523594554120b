"""PDML's theorems: how far its classifiers are from the ideal one (Wang, Ishii, Du, Cheng and Chen, 2020).

    from confide.papers.theory import pdml
    print(pdml.condition(graph, strong=0.1, smooth=0.35).reason)       # what Lemma 5 and Theorem 1 need of a network

n servers, J̃ of Problem 3, ΔJ_P the excess of the regularised generalisation error over the ideal classifier's. With
D the degrees and W the adjacency, L₊ = D + W, L₋ = D - W, L̄ = D and Q = (L₋/2)^½; σ_max and σ_min are the largest and
the smallest nonzero eigenvalue.

Differs from the paper, in the paper's numbering:
  Lemma 1    J̃ is aκ/n-strongly convex (a sum over servers of functions of different variables), not aκ.
  Lemma 3    its gradient is (c₃ + aϱ/n)-Lipschitz, not nc₃ + aϱ.
  (24)       the last term is η_iᵀ(…)/n, which makes nR²/2 in (27) and (34) R²/(2n).
  (26)       a further factor 1 + φ in the denominator of H₂ is left out, which can only enlarge it.
  (32)       is at most R²/(aκ), since κ̂ = aκ/n; Corollary 1 divides it by n and comes out as printed.
  (34)       the noise of round k has variance ρ^(k-1)V², so that the sum over k is H₂/(C - ρ), not ρH₂/(C - ρ).
  R          bounds ‖η_i‖₂ (`ball`); for the text's ‖η_i‖_∞ (`cube`) R² becomes dR².
Every logarithm ln(4/δ) of (28) serves all n servers at once: the constant there is loose enough (`union_holds`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.papers.theory.conditions import NotSatisfiable as NotSatisfiable
from confide.papers.theory.conditions import positive

BALL, CUBE = "ball", "cube"


@dataclass(frozen=True)
class LossBounds:
    """Assumption 1: |ℓ| ≤ `value`, ‖∂ℓ/∂w‖ ≤ `gradient`, ‖∂²ℓ/∂w²‖ ≤ `curvature` over the classifiers."""

    value: float  # c₁
    gradient: float  # c₂
    curvature: float  # c₃


def logistic_bounds(radius: float, row_norm: float) -> LossBounds:
    """Of the logistic loss for ‖w‖ ≤ `radius` and ‖x‖ ≤ `row_norm`, all attained."""
    positive(radius=radius, row_norm=row_norm)
    return LossBounds(float(np.logaddexp(0.0, radius * row_norm)), row_norm, row_norm**2 / 4)


def linear_rademacher(radius: float, row_norm: float, rows: int) -> float:
    """Rad_i(W) ≤ radius·row_norm/√m of the linear classifiers ‖w‖ ≤ radius on m rows of norm at most row_norm."""
    positive(radius=radius, row_norm=row_norm, rows=rows)
    return radius * row_norm / math.sqrt(rows)


def strong_convexity(a: float, kappa: float, servers: int) -> float:
    """Lemma 1: aκ/n."""
    return a * kappa / servers


def smoothness(curvature: float, a: float, varrho: float, servers: int) -> float:
    """Lemma 3: c₃ + aϱ/n."""
    return curvature + a * varrho / servers


def label_factor(epsilon: float) -> float:
    """(21): (e^ε + 1)/(e^ε - 1), what randomised labels multiply the loss's bounds by."""
    positive(epsilon=epsilon)
    return 1.0 / math.tanh(epsilon / 2)


@dataclass(frozen=True)
class Spectrum:
    """Largest and smallest nonzero eigenvalue of L₊ and L₋, and the largest degree."""

    plus_max: float
    plus_min: float
    minus_max: float
    minus_min: float
    degree: float

    @property
    def q_min2(self) -> float:
        """σ²_min(Q)."""
        return self.minus_min / 2


def spectrum(graph: Graph) -> Spectrum:
    """Of a graph; each link counts in both directions, as in the paper's A₁ and A₂."""
    adjacency = graph.adjacency.toarray().astype(float)
    degrees = np.diag(adjacency.sum(axis=1))
    plus, minus = (np.linalg.eigvalsh(m) for m in (degrees + adjacency, degrees - adjacency))
    least = [float(e[e > 1e-9 * e[-1]][0]) for e in (plus, minus)]
    return Spectrum(float(plus[-1]), least[0], float(minus[-1]), least[1], float(degrees.max()))


@dataclass(frozen=True)
class Condition:
    """(25) for a graph at its most favourable, b → 0 and λ₁ → ∞: `reached` must exceed `needed`."""

    satisfiable: bool
    reached: float  # 1 + φ at λ₁ = ∞
    needed: float  # σ²_max(L₊)/σ²_min(L₊)
    reason: str


def condition(graph: Graph, strong: float, smooth: float) -> Condition:
    """Whether any b in (0, 1) and λ₁ > 1 meet (25), for J̃ with these constants of Lemmas 1 and 3."""
    s = spectrum(graph)
    reached, needed = 1 + _phi(s, strong, smooth, math.inf), (s.plus_max / s.plus_min) ** 2
    sides = f"(1-b)(1+φ) stays below {reached:.4g}, and σ²_max(L₊)/σ²_min(L₊) is {needed:.4g}"
    if reached > needed:
        return Condition(True, reached, needed, f"(25) can be met: {sides}")
    return Condition(False, reached, needed, f"not satisfiable: (25) asks for more than this graph has, {sides}")


def _phi(s: Spectrum, strong: float, smooth: float, lambda1: float) -> float:
    """φ, above Lemma 5."""
    positive(strong=strong, smooth=smooth)
    share = 1.0 if math.isinf(lambda1) else (lambda1 - 1) / lambda1
    return share * 2 * strong * s.q_min2 * s.plus_min**2 / (smooth**2 * s.plus_min**2 + 2 * strong * s.plus_max**2)


@dataclass(frozen=True)
class Rate:
    """Lemma 5: ‖w̃(t) - w̃*‖² ≤ C^t (H₁ + Σ_k C^-k H₂‖θ(k)‖²), with H₁ = ‖w(0) - w̃*‖² + `dual`·‖r(0) - r_opt‖²."""

    contraction: float  # C
    noise: float  # H₂
    dual: float
    coupling: float  # β, which the lemma prescribes


def lemma5(
    graph: Graph, strong: float, smooth: float, *, b: float, lambda1: float, lambda2: float, alpha: float
) -> Rate:
    """C, H₂ and β of (26), for the open constants b in (0, 1), λ₁, λ₂ > 1 and 0 < α < min(M₁, M₂).

    As printed, and a claim only: σ²(L₊)/4 stands there where the proof's norm has σ(L₊)/2. They agree for two servers,
    where computed distances stay below (26); on the complete graph of 60 they exceed it 16 times, without any noise.
    """
    s, c = spectrum(graph), condition(graph, strong, smooth)
    if not c.satisfiable:
        raise NotSatisfiable(c.reason)
    if not 0 < b < 1 or not min(lambda1, lambda2) > 1:
        raise ConfideError(f"b={b}, lambda1={lambda1}, lambda2={lambda2}: b must lie in (0, 1), the others above 1")
    phi = _phi(s, strong, smooth, lambda1)
    big, small = s.plus_max**2, s.plus_min**2
    slack = (1 - b) * (1 + phi) * small - big
    if not slack > 0:
        raise NotSatisfiable(f"not satisfiable with b={b:g}, λ₁={lambda1:g}: (25) is {slack:.4g}, must be above 0")
    part = b * small * (1 - 1 / lambda2)
    m1 = part * (1 + phi) / (4 * part + 16 * s.degree**2)
    m2 = slack / (4 * big + 4 * (1 - b) * small)
    if not 0 < alpha < min(m1, m2):
        raise NotSatisfiable(f"alpha={alpha:g}: must lie in (0, {min(m1, m2):.4g}), the smaller of M₁ and M₂")
    lambda3 = 1 + 2 * strong * big / (smooth**2 * small)
    lambda4 = 1 + math.sqrt((smooth**2 * small + 2 * strong * big) / (alpha * lambda3 * smooth**2 * small))
    spread = math.sqrt(2 * (lambda1 - 1) * s.q_min2 / (alpha * lambda1 * lambda3 * smooth**2))
    carried = 4 * phi * lambda1 * s.degree**2 / s.q_min2 + big * (math.sqrt(phi) + spread) ** 2
    room = (1 - b) * (1 + phi - 4 * alpha) * small
    return Rate(
        contraction=(1 + 4 * alpha) * big / room,
        noise=b * (lambda2 - 1) / (1 - b) + carried / room,
        dual=4 / ((1 + 4 * alpha) * big),
        coupling=math.sqrt(lambda1 * lambda3 * (lambda4 - 1) * smooth**2 / (lambda4 * (lambda1 - 1) * big * s.q_min2)),
    )


@dataclass(frozen=True)
class Bound:
    """An upper bound and the terms it is the sum of."""

    terms: dict[str, float]

    @property
    def value(self) -> float:
        return sum(self.terms.values())


def label_term(
    epsilon: float, sizes: Sequence[int], rademacher: Sequence[float], loss: LossBounds, delta: float
) -> float:
    """(28) summed over the servers: what a finite sample with randomised labels costs."""
    if not 0 < delta < 1:
        raise ConfideError(f"delta={delta}: must lie strictly between 0 and 1")
    if not union_holds(len(sizes), delta):
        raise NotSatisfiable(f"(28) with ln(4/δ) does not cover {len(sizes)} servers at once at delta={delta:g}")
    m, rad = np.asarray(sizes, float), np.asarray(rademacher, float)
    each = loss.gradient * rad + 2 * loss.value * np.sqrt(2 * math.log(4 / delta) / m)
    return 4 * label_factor(epsilon) * float(np.sum(each))


def union_holds(servers: int, delta: float) -> bool:
    """Whether (28), proved for one server, holds for all at once.

    One side of it is uniform over the class, 2·Rad + 4c√(2 ln(4/δ')/m), the other is Hoeffding's bound for the one
    classifier w*, c√(2 ln(1/δ')/m); with δ' = δ/(2n) each they must fit into the printed 8c√(2 ln(4/δ)/m).
    """
    each = 2 * servers / delta
    return 4 * math.sqrt(math.log(4 * each)) + math.sqrt(math.log(each)) <= 8 * math.sqrt(math.log(4 / delta))


@dataclass(frozen=True)
class NoiseSetting:
    """Phase 2: η_i within R in the given shape, θ_i(t) of variance decay^(t-1)·V_i² in d coordinates."""

    bound: float  # R
    deviations: Sequence[float]  # V_i
    decay: float  # ρ
    width: int  # d
    shape: str = BALL

    def __post_init__(self) -> None:
        if self.shape not in (BALL, CUBE) or not 0 < self.decay < 1:
            raise ConfideError(f"shape={self.shape!r}, decay={self.decay}: must be ball or cube, and in (0, 1)")

    @property
    def reach2(self) -> float:
        """Largest ‖η_i‖²."""
        return self.bound**2 * (self.width if self.shape == CUBE else 1)

    @property
    def variance(self) -> float:
        """Σ_i d·V_i²."""
        return self.width * float(np.sum(np.square(self.deviations)))


def theorem1(
    graph: Graph, rate: Rate, noise: NoiseSetting, rounds: int, *, a: float, kappa: float, distance: float,
    dual_distance: float, dual_start: float, labels: float,
) -> Bound:  # fmt: skip
    """(27), corrected, on E Σ_i ΔJ_P of the mean of the first t iterates; it holds where Lemma 5, `rate`, does.

    distance       ‖w(0) - w̃*‖², all servers together; dual_distance ‖r(0) - r_opt‖²; dual_start ‖r(0)‖²
    labels         `label_term`
    """
    if not noise.decay < rate.contraction:
        raise NotSatisfiable(f"noise decay {noise.decay:g}: Theorem 1 needs it below C = {rate.contraction:.4g}")
    s, n, gone = spectrum(graph), graph.size, rate.contraction / (1 - rate.contraction)
    start = distance + rate.dual * dual_distance  # H₁
    still = rate.noise / (rate.contraction - noise.decay) * noise.variance
    wander = (s.plus_max**2 / (2 * s.minus_max**2) + s.minus_max) * noise.variance / (1 - noise.decay)
    return Bound({
        "distance to w̃_opt": gone / (2 * rounds) * (start + still) + noise.reach2 / (2 * n),  # (34)
        "iterations": rate.coupling / rounds * (dual_start + s.plus_max / 2 * distance + wander),  # (31)
        "objective noise": noise.reach2 / (a * kappa),  # (32)
        "labels": labels,
    })  # fmt: skip


def any_graph(
    graph: Graph, coupling: float, noise: NoiseSetting, rounds: int, *, radius: float, distance: float,
    dual_start: float, labels: float,
) -> Bound:  # fmt: skip
    """What holds in the place of Theorem 1 on every graph and for every β, for classifiers ‖w_i‖ ≤ `radius`.

    With θ = w̃ - w, (15) to (17) read ∇J̃(w(k+1)) + 2βQr(k+1) + βL₊(w̃(k+1) - w̃(k)) = 2βDθ(k+1). Taking the product
    with w(k+1) - w*, w* any consensus point, telescoping ‖r‖² and ‖w̃ - w*‖² in L₊/2, completing two squares and using
    that θ(k+1) is independent of w(k+1), one has on average

        Σ_{k≤t} J̃(w(k)) - J̃(w*) ≤ β[‖r(0)‖² + ‖w̃(0) - w*‖²_{L₊/2} + Σ_k E θ(k)ᵀDθ(k)],

    which (31) follows from. At w* = ŵ* the objective noise adds -ηᵀ(w̄ - ŵ*)/n ≤ 2R·radius, and (25) is not needed.
    distance ‖w̃(0) - ŵ*‖², all servers together.
    """
    degree = np.asarray(graph.degrees, float)
    shaken = noise.width * float(np.sum(degree * np.square(noise.deviations))) / (1 - noise.decay)
    reach = spectrum(graph).plus_max / 2 * distance
    return Bound({
        "iterations": coupling / rounds * (dual_start + reach + shaken),
        "objective noise": 2 * math.sqrt(noise.reach2) * radius,
        "labels": labels,
    })  # fmt: skip


def theorem2(graph: Graph, coupling: float, rounds: int, *, distance: float, dual_start: float, labels: float) -> Bound:
    """(36), without Phase 2: no condition on graph or β. `distance` is ‖w(0) - ŵ*‖²."""
    reach = spectrum(graph).plus_max / 2 * distance
    return Bound({"iterations": coupling / rounds * (dual_start + reach), "labels": labels})


def corollary1(servers: int, noise: NoiseSetting, *, a: float, kappa: float, labels: float) -> Bound:
    """(35): ΔJ_P of the optimum with randomised labels and perturbed objectives."""
    return Bound({"objective noise": noise.reach2 / (servers * a * kappa), "labels": labels / servers})


def corollary2(servers: int, *, labels: float) -> Bound:
    """(37): the same without objective noise."""
    return Bound({"labels": labels / servers})
