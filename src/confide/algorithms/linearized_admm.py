"""Linearised ADMM: each agent takes one gradient step on its augmented Lagrangian, then the duals follow.

Ling, Shi, Wu and Ribeiro, "DLM: decentralized linearized alternating direction method of multipliers", IEEE Trans.
Signal Process. 63(15), 2015. Equation numbers are those of Gauthier, Gratton, Venkategowda and Werner, whose private
forms `CDPADMM` and `DDPADMM` add noise to the message and change nothing else.

    1  β̃_k ← 0, γ_k ← 0
    2  for t = 1, 2, …
    3    β_k ← argmin f̂_k(β; β̃) + βᵀγ_k + ρ Σ_l ‖β - (β̃_k + β̃_l)/2‖²      (7), f̂_k of (6)
    4    β̃_k ← β_k + noise                                                 (8)
    5    send β̃_k to the neighbours
    6    γ_k ← γ_k + ρ Σ_l (β̃_k - β̃_l)                                     (9)

paper       code           shape    public argument
β̃_k         primal         S A P
γ_k         dual           S A P
Σ_l β̃_l     neighbours     S A P
ρ           penalty        A 1      penalty
η_t         step           scalar   step / t^step_decay
c1          row_bound      A 1      clip or assumed_bound
σ_k,t       noise_scale    A 1      noise

Differs from the paper: every state is the broadcast, noised one; (7) lacks its square and its tildes in print.
`proximal=True` keeps the penalty out of the linearisation and applies its prox, which converges for L1 where a
subgradient does not.

Privacy: replacing one row of agent k moves the gradient by at most 2·c1·q_k/M_k and line 3 divides by 1/η + 2ρ|N_k|;
everything else in line 3 is public. A penalty prox is nonexpansive (concave penalties: times `expansion`). The
adversary sees every message. Proven where the row gradients are clipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Array, Consensus, GaussianMethod, Parameter, decayed
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class LinearizedADMM(GaussianMethod):
    """One gradient step a round on the augmented Lagrangian; no noise unless given."""

    paper = "Ling et al. 2015"

    penalty: Parameter = 1.0
    step: float = 1.0
    step_decay: float = 0.0
    proximal: bool = False

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("penalty", "step")
        self.nonnegative("step_decay")

    def stiffness(self, t: int, public: Public) -> Array:
        """1/η_t + 2ρ|N_k|, what line 3 divides by: (A, 1)."""
        return 1.0 / decayed(self.step, self.step_decay, t) + 2.0 * public.each(self.penalty) * public.degree

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        rho, degree = public.each(self.penalty), public.degree
        eta, h = decayed(self.step, self.step_decay, t), self.stiffness(t, public)
        g = block.gradient(state.primal, public.each(self.clip))
        pull = state.primal / eta + rho * (degree * state.primal + state.neighbours)
        if self.proximal:
            beta = public.penalty_prox((pull - g - state.dual) / h, 1.0 / h)  # (7), R kept
        else:
            beta = (pull - g - public.penalty_gradient(state.primal) - state.dual) / h  # (7)
        if not self.private(public):
            return beta
        return noise.gaussian("primal", beta, self.noise_scale(t, public))  # (8)

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.penalty) * (public.degree * message - received)  # (9)
        return Consensus(message, dual, received)

    def sensitivity(self, t: int, public: Public) -> Array:
        h = self.stiffness(t, public)
        move = 2.0 * self.row_bound(public) * public.scale / h  # Lemma I
        return move * np.asarray(public.penalty.expansion(1.0 / (h * public.count))) if self.proximal else move
