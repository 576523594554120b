"""D-ZOA: ADMM whose primal update is a zeroth-order inner loop. Its intrinsic privacy claim is refuted.

Gratton, Venkategowda, Arablouei and Werner, "Privacy-preserved distributed learning with zeroth-order optimization",
IEEE Trans. Inf. Forensics Secur. 17, 2022, Algorithm 1.

    1  β_k ← 0, γ_k ← 0
    2  for m = 1, 2, …
    3    β̃ ← 0
    4    for t = 1, …, T:  β̃ ← β̃ - α_t · mean of J two-point gradients of F_k at β̃        (7), (8), (9)
    5    β_k ← β̃;  send β_k to the neighbours
    6    γ_k ← γ_k + ρ Σ_l (β_k - β_l)                                                      (5)

where F_k(β) = f_k(β) + βᵀγ_k + ρ Σ_l ‖β - ½(β_k + β_l)‖²                                   (4)

paper       code           shape    public argument
β_k         primal         S A P
γ_k         dual           S A P
ρ           penalty        A 1      penalty
T, J        –              scalar   inner_steps, directions
α0, R, L    step_size      scalar   step, radius, lipschitz
u1          smoothing      scalar   smoothing

Differs from the paper: the prox function is ½‖·‖², g^(t) is taken at β̃^(t-1), and γ's index is off by one in print.

Privacy: refuted. Lemma 2 equates the variance with an upper bound on it, while privacy needs a lower bound; so ε of
(22) can be given any value through R while the method stays the same, the measured variance is 15 to 2,000 times
smaller, and the inner loop's bias leaks too. `PrivateZeroth` is the rigorous form of the idea.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms import zeroth
from confide.algorithms.base import Algorithm, Array, Consensus, Parameter
from confide.privacy import Guarantee, Label, published
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class DZOA(Algorithm):
    """Zeroth-order ADMM; only values of the objective are used."""

    paper = "Gratton et al. 2022, D-ZOA"

    penalty: Parameter = 4.0
    inner_steps: int = 100
    directions: int = 20
    step: float = 0.54
    radius: float = 1.0
    lipschitz: float = 2.5
    smoothing: float = 1.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("penalty", "step", "radius", "lipschitz", "smoothing")
        self.counts("inner_steps", "directions")

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        P, rho = public.width, public.each(self.penalty)
        centre = 0.5 * (state.primal + state.neighbours / public.degree)
        loss = zeroth.risk(block, public)

        def lagrangian(beta: Array) -> Array:  # (4), less a constant; beta (S·J, A, P)
            repeat = len(beta) // len(state.primal)
            dual, middle = np.repeat(state.dual, repeat, axis=0), np.repeat(centre, repeat, axis=0)
            pull = rho * public.degree * (beta - middle) ** 2
            return loss(beta) + np.sum(beta * dual + pull, axis=2)

        beta = np.zeros_like(state.primal)
        for i in range(1, self.inner_steps + 1):
            u1, u2 = zeroth.smoothing(i, P, self.smoothing)
            g = zeroth.two_point(lagrangian, beta, u1, u2, self.directions, noise, f"inner {i}")
            beta = beta - zeroth.step_size(i, P, self.step, self.radius, self.lipschitz) * g  # (9)
        return beta

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.penalty) * (public.degree * message - received)  # (5)
        return Consensus(message, dual, received)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        """(25) of (22), for the agent it is largest for; c1 = 1 as published where nothing bounds a row's gradient."""
        if public.width < 2:
            return []
        known = public.row_norm is not None and np.isfinite(public.loss.slope_bound)
        c1 = public.loss.slope_bound * float(public.row_norm or 1.0) if known else 1.0
        # (22) falls with ρ|V_k|N_k alone, so the agent with the smallest has the largest ε
        k = int(np.argmin(public.each(self.penalty)[:, 0] * public.degree[:, 0] * public.sizes[public.agents]))
        setting = published.DZOASetting(
            c1, float(public.each(self.penalty)[k, 0]), int(public.degree[k, 0]), int(public.sizes[public.agents[k]]),
            public.width, self.inner_steps, self.radius, self.step,
        )  # fmt: skip
        one = float(published.d_zoa_iteration(setting, self.directions, delta).epsilon)
        return [published.d_zoa_total(one, self.rounds, delta)]

    def guarantee(self, public: Public) -> Guarantee:
        return Guarantee(Label.REFUTED, "the claimed variance bounds the wrong side: the noise is not there")
