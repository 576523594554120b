"""M-ADMM: ADMM with couplings that grow, one per agent, a constant dual step, and noise inside the coupling term.

X. Zhang, M. M. Khalili and M. Liu, "Improving the privacy and accuracy of ADMM-based distributed algorithms", ICML
2018: penalty perturbation.

    1  f_i ← 0, γ_i ← 0
    2  for t = 1, 2, …
    3    draw ε_i with density ∝ exp(-α‖ε‖)
    4    f_i ← argmin O(f) + γ_iᵀf + η_i(t) Σ_j ‖f + ε_i - ½(f_i + f_j)‖²
    5    send f_i to the neighbours
    6    γ_i ← γ_i + θ Σ_j (f_i - f_j)

paper       code             shape    public argument
η_i(t)      eta              A 1      coupling · growth^t
θ           dual_step        scalar   dual_step
α           noise_rate       A 1      noise_rate

Differs from the paper: nothing; line 4's noise is a linear term 2η_iV_i ε_iᵀf, of rate α/(2η_iV_i).
Privacy: see `objective`. Proven with `release_noise`, else assumed. The published bound, Σ_t C(1.4c1 + α)/(η_iV_iB_i),
is that of R-ADMM with h = 2η_iV_i: it leaves out what the penalty adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Array, Consensus, Parameter
from confide.algorithms.objective import PerturbedADMM
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class MADMM(PerturbedADMM):
    """Growing couplings, constant dual step.

    growth       above 0: the coupling of round t is coupling·growth^t; one number, or one per agent
    dual_step    above 0: factor of the dual's step
    """

    paper = "Zhang et al. 2018, M-ADMM"
    claim = "M-ADMM, ICML 2018"

    growth: Parameter = 1.0
    dual_step: float = 1.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("growth", "dual_step")

    def eta(self, t: int, public: Public) -> Array:
        return public.each(self.coupling) * public.each(self.growth) ** t

    def dual_size(self, t: int, public: Public) -> Array:
        return np.full((len(public.agents), 1), self.dual_step)

    def rate(self, t: int, public: Public) -> Array:
        return public.each(self.noise_rate) / (2.0 * self.eta(t, public) * public.degree)

    def claimed_convexity(self, t: int, public: Public) -> Array:
        return 2.0 * self.eta(t, public) * public.degree

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        return Consensus(message, state.dual + self.dual_step * (public.degree * message - received), received)
