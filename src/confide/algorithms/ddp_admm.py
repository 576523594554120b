"""DDP-ADMM: CDP-ADMM with a variance that falls as 1/√t, the distributed form of DP-ADMM.

Gauthier, Gratton, Venkategowda and Werner, "Privacy-Preserving Distributed Learning with Nonsmooth Objective
Functions", Section IV-A and Algorithm 1, whose lines are in `cdp_admm`; only (8) differs:

    4    β̃_k ← β_k + N(0, σ²_k,t I),  σ²_k,t = σ²_k,1 / √t                    (8)

paper       code           shape    public argument
h_1 σ_k,1   noise          A 1      noise

Differs from the paper: nothing beyond what `cdp_admm` lists.
Privacy: as CDP-ADMM.
"""

from __future__ import annotations

from dataclasses import dataclass

from confide.algorithms.gaussian import root_claim
from confide.algorithms.linearized_admm import LinearizedADMM
from confide.privacy.published import PublishedBound
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class DDPADMM(LinearizedADMM):
    """Noise whose variance falls as 1/√t."""

    paper = "Gauthier et al., DDP-ADMM"

    def noise_shape(self, t: int) -> float:
        return float(t**-0.25)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        if not (self.private(public) and self.bounded(public)):
            return []
        return [root_claim(self, public, delta)]
