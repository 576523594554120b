"""Linearised ADMM: each agent takes one gradient step on its augmented Lagrangian, then the duals follow.

Ling, Shi, Wu and Ribeiro, "DLM: decentralized linearized alternating direction method of multipliers", IEEE Trans.
Signal Process. 63(15), 2015. Equation numbers are those of Gauthier, Gratton, Venkategowda and Werner, whose private
forms `CDPADMM` and `DDPADMM` add noise to the message and change nothing else.

    1  β̃_k ← 0, γ_k ← 0
    2  for t = 1, 2, …
    3    g̃_k ← ∂f_k(β̃_k) + N(0, (h_t σ_k,t)² I),  h_t = 1/η_t + 2ρ|N_k|
    4    β̃_k ← argmin f̂_k(β; β̃) + βᵀγ_k + ρ Σ_l ‖β - (β̃_k + β̃_l)/2‖²     (7), (8), f̂_k of (6) with slope g̃_k
    5    send β̃_k to the neighbours
    6    γ_k ← γ_k + ρ Σ_l (β̃_k - β̃_l)                                     (9)

paper       code           shape    public argument
β̃_k         primal         S A P
γ_k         dual           S A P
Σ_l β̃_l     neighbours     S A P
ρ           coupling       A 1      coupling
η_k^t       eta            A 1      step / t^step_decay, or step · step_profile[t - 1]
h_t         stiffness      A 1
c1          row_bound      A 1      clip or assumed_bound
h_t σ_k,t   noise_scale    A 1      noise: h_1 σ_k,1

Differs from the paper: every state is the broadcast, noised one; (7) lacks its square and its tildes in print. The
noise is on the gradient, not on its result β_k: line 4 divides it by h_t, so that β̃_k carries the paper's N(0, σ²_k,t
I), the same in law. `proximal=True` keeps the penalty out of the linearisation and applies its prox, which converges
for L1 where a subgradient does not; the prox then acts on the noise too, which makes it another algorithm than noise
after a prox.

Privacy: the clipped gradient at β̃_k is the only question; line 4 is post-processing, whatever neighbours send. The
adversary sees every message. Proven where the row gradients are clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.algorithms.base import Array, Consensus, Parameter
from confide.algorithms.gaussian import Ask, GaussianMethod
from confide.errors import ConfideError
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class LinearizedADMM(GaussianMethod):
    """One gradient step per round on the augmented Lagrangian; no noise unless given.

    coupling        η, above 0: how strongly neighbours are pulled together; one number, or one per agent
    step            above 0: length of the step in round 1; one number, or one per agent
    step_decay      at least 0: the step of round t is step·t^-step_decay
    step_profile    (rounds,) or (rounds, agents), above 0: in the place of t^-step_decay; None: that
    proximal        whether the penalty acts by its prox; else by its subgradient
    """

    paper = "Ling et al. 2015"

    coupling: Parameter = 1.0
    step: Parameter = 1.0
    step_decay: float = 0.0
    step_profile: Any = None  # (rounds,) or (rounds, agents), in the place of t^-step_decay
    proximal: bool = False

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling", "step")
        self.nonnegative("step_decay")
        if self.step_profile is not None:
            given = np.asarray(self.step_profile, float)
            fits = given.ndim in (1, 2) and len(given) >= self.rounds and given.shape[1:] in ((), (public.count,))
            if not (fits and np.all(np.isfinite(given)) and np.all(given > 0)):
                raise ConfideError(
                    f"{self.name} step_profile of shape {given.shape}: must be finite, above 0, and one for each of "
                    f"{self.rounds} rounds, or one for each of them and each of {public.count} agents"
                )

    def eta(self, t: int, public: Public) -> Array:
        """η_k^t of each agent: (A, 1)."""
        if self.step_profile is None:
            return public.each(self.step) / t**self.step_decay
        now = np.asarray(self.step_profile, float)[t - 1]
        return public.each(self.step) * public.each(now)

    def stiffness(self, t: int, public: Public) -> Array:
        """h_t = 1/η_t + 2ρ|N_k|, what line 4 divides by: (A, 1)."""
        return 1.0 / self.eta(t, public) + 2.0 * public.each(self.coupling) * public.degree

    def noise_shape(self, t: int) -> float:
        """σ_k,t / σ_k,1 of the noise that the primal carries."""
        return 1.0

    def noise_scale(self, t: int, public: Public) -> Array:
        return public.each(self.noise) * (self.noise_shape(t) * self.stiffness(t, public) / self.stiffness(1, public))

    def message(self, t: int, state: Consensus, ask: Ask, public: Public) -> Array:
        rho, degree = public.each(self.coupling), public.degree
        eta, h = self.eta(t, public), self.stiffness(t, public)
        g = ask(state.primal)  # line 3
        pull = state.primal / eta + rho * (degree * state.primal + state.neighbours)
        if self.proximal:
            return public.penalty_prox((pull - g - state.dual) / h, 1.0 / h)  # (7) with R kept
        return (pull - g - public.penalty_gradient(state.primal) - state.dual) / h  # (7), (8)

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.coupling) * (public.degree * message - received)  # (9)
        return Consensus(message, dual, received)

    def longest_step(self, t: int, public: Public) -> Array:
        return self.longest_answer(t, public) / self.stiffness(t, public)
