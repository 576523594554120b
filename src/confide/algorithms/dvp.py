"""DVP: ADMM with noise on the dual variable inside every primal update.

T. Zhang and Q. Zhu, "Dynamic differential privacy for ADMM-based distributed classification learning", IEEE Trans.
Inf. Forensics Secur. 12(1), 2017: dual variable perturbation; the "private ADMM" of the Recycled ADMM paper.

    1  f_i ← 0, γ_i ← 0
    2  for t = 1, 2, …
    3    draw ε_i with density ∝ exp(-α‖ε‖)
    4    f_i ← argmin O(f) + (γ_i + ε_i)ᵀf + η Σ_j ‖½(f_i + f_j) - f‖²
    5    send f_i to the neighbours
    6    γ_i ← γ_i + η Σ_j (f_i - f_j)

paper       code             shape    public argument
f_i         primal           S A P
2λ_i        dual             S A P
η           penalty          A 1      penalty
α           rate             A 1      noise_rate

Differs from the paper: the published guarantee is that of one iteration of one node; here every round is charged.
Privacy: see `objective`. Proven with `release_noise`, else assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from confide.algorithms.objective import PerturbedADMM


@dataclass(frozen=True, eq=False)
class DVP(PerturbedADMM):
    """Objective perturbation in every round."""

    paper = "Zhang and Zhu 2017, DVP"
