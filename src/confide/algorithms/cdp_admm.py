"""CDP-ADMM: linearised ADMM whose message carries Gaussian noise of geometrically falling variance.

Gauthier, Gratton, Venkategowda and Werner, "Privacy-Preserving Distributed Learning with Nonsmooth Objective
Functions", Algorithm 1.

    1  β̃_k ← 0, γ_k ← 0
    2  for t = 1, 2, …
    3    β_k ← argmin f̂_k(β; β̃) + βᵀγ_k + ρ Σ_l ‖β - (β̃_k + β̃_l)/2‖²      (7)
    4    β̃_k ← β_k + N(0, σ²_k,t I),  σ²_k,t = R σ²_k,t-1                    (8)
    5    send β̃_k to the neighbours
    6    γ_k ← γ_k + ρ Σ_l (β̃_k - β̃_l)                                     (9)

Lines 3, 4 and 6 are `LinearizedADMM`'s; its table gives the symbols.

paper       code           shape    public argument
h_1 σ_k,1   noise          A 1      noise
R           noise_decay    scalar   noise_decay

Differs from the paper: Algorithm 1's loop index is t; the corollary's ρ^∞ is φ and its ∞ is T, and it assumes a
constant sensitivity, so totals are computed exactly instead. Assumption 1 (‖ℓ'‖ ≤ c1) fails for squared loss by a
factor of 10 to 80 in the paper's own experiment: set `clip`, which enforces it, or `assumed_bound` to run as published.

Privacy: replacement of one row; the noise is on the gradient, at Lemma I's sensitivity times h_t; every message is
seen. Proven with `clip`, else assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.linearized_admm import LinearizedADMM
from confide.privacy import Label, published
from confide.privacy.published import PublishedBound
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class CDPADMM(LinearizedADMM):
    """Noise whose variance falls by the factor `noise_decay` each round.

    noise_decay    R in (0, 1], where 1 keeps the noise as it is
    """

    paper = "Gauthier et al., CDP-ADMM"

    noise_decay: float = 0.97

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("noise_decay")
        self.fraction("noise_decay")

    def noise_shape(self, t: int) -> float:
        return float(self.noise_decay ** ((t - 1) / 2))  # variance R^(t-1) σ²_1

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        bound = self.row_bound(public)
        if not (self.private(public) and np.all(np.isfinite(bound)) and self.noise_decay < 1):
            return []
        first = float(np.max((self.sensitivity(1, public) / self.noise_scale(1, public)) ** 2) / 2)  # (12)
        proven = self.guarantee(public).label == Label.PROVEN
        return [published.cdp_admm_corollary(first, self.noise_decay, self.rounds, delta, clipped=proven)]
