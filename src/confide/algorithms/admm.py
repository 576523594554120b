"""Consensus ADMM over a graph: each agent minimises its augmented Lagrangian exactly. No privacy.

Shi, Ling, Yuan, Wu and Yin, "On the linear convergence of the ADMM in decentralized consensus optimization", IEEE
Trans. Signal Process. 62(7), 2014; equation numbers of Zhang, Khalili and Liu, "Recycled ADMM", with 2λ_i = γ_i.

    1  f_i ← 0, γ_i ← 0
    2  for t = 1, 2, …
    3    f_i ← argmin O(f) + γ_iᵀf + η Σ_j ‖½(f_i + f_j) - f‖²              (8)
    4    send f_i to the neighbours
    5    γ_i ← γ_i + η Σ_j (f_i - f_j)                                       (9)

paper       code           shape    public argument
f_i         primal         S A P
2λ_i        dual           S A P
Σ_j f_j     neighbours     S A P
η           coupling       A 1      coupling

Differs from the paper: nothing. The argmin stops at a gradient norm of `tolerance`.
Privacy: none; messages are functions of the rows. Methods that add noise to this one need to know how far from the
argmin the solver may stop, whatever neighbours send: see `argmin`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Algorithm, Array, Consensus, Parameter
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class ADMM(Algorithm):
    """Exact primal updates; the base of every method that minimises.

    coupling     η, above 0: how strongly neighbours are pulled together; one number, or one per agent
    tolerance    above 0: how long the gradient may be where a local minimisation stops
    """

    paper = "Shi et al. 2014"

    coupling: Parameter = 1.0
    tolerance: float = 1e-9

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling", "tolerance")

    def eta(self, t: int, public: Public) -> Array:
        """The coupling of round t: (A, 1)."""
        return public.each(self.coupling)

    def dual_size(self, t: int, public: Public) -> Array:
        """By what the gap to the neighbours is multiplied before it enters the dual in round t: (A, 1)."""
        return self.eta(t, public)

    def convexity(self, t: int, public: Public) -> Array:
        """h: strong convexity of the objective of round t without any row: (A, 1)."""
        return 2.0 * self.eta(t, public) * public.degree + public.mask.min() * public.penalty.l2 / public.count

    def minimise(
        self, state: Consensus, block: Block | None, public: Public, eta: Array, shift: Array | float = 0.0
    ) -> Array:
        """argmin O(f) + (γ_i + shift)ᵀf + η Σ_j ‖½(f_i + f_j) - f‖², started from the own last broadcast."""
        assert block is not None
        pull = eta * (public.degree * state.primal + state.neighbours)
        return block.argmin(
            state.dual + shift - pull, 2.0 * eta * public.degree, public.penalty, public.mask, 1.0 / public.count,
            state.primal, self.tolerance,
        )  # fmt: skip

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        return self.minimise(state, block, public, public.each(self.coupling))  # (8)

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.coupling) * (public.degree * message - received)  # (9)
        return Consensus(message, dual, np.asarray(received))
