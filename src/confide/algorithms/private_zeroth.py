"""PrivateZeroth: zeroth-order ADMM with clipped two-point differences and calibrated noise on each of them.

The rigorous form of D-ZOA's idea, after Zhang, Li, Thekumparampil, Oh and He, "DPZero: private fine-tuning of language
models without backpropagation", ICML 2024: only values of the loss are used, and a difference of values is a scalar.

    1  β̃_k ← 0, γ_k ← 0
    2  for m = 1, 2, …
    3    β ← β̃_k
    4    for i = 1, …, T and J directions ν, uniform on the sphere and public
    5      d_j ← mean over rows of clip([ℓ(β + uν) - ℓ(β - uν)]/2u, ±C) + N(0, σ²)
    6      β ← β - α (P·mean_j d_j ν_j + ∂R(β)/K + γ_k + 2ρ|N|β - ρ(|N|β̃_k + Σ_l β̃_l))
    7    β̃_k ← β;  send β̃_k to the neighbours;  γ_k ← γ_k + ρ Σ_l (β̃_k - β̃_l)

symbol      code           shape    public argument
β̃_k         primal         S A P
γ_k         dual           S A P
ρ           penalty        A 1      penalty
T, J        –              scalar   inner_steps, directions
α           –              scalar   step / m^step_decay
u           –              scalar   smoothing
C           clip           A 1      clip
σ           noise          A 1      noise

Differs from the paper: DPZero is central; here its gradient sits inside ADMM. Penalty and quadratic are public and stay
outside the clip; the inner state moves by noised values only.

Privacy: each of the T·J scalars of a round moves by at most 2C·q_k/M_k when one row is replaced, and each is released:
a round is one Gaussian event of sensitivity √(TJ)·2C·q_k/M_k and scale σ. Proven.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Array, Consensus, GaussianMethod, Parameter, decayed
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class PrivateZeroth(GaussianMethod):
    """Zeroth-order ADMM with a proof; without noise and clip, its non-private form."""

    paper = "after Zhang et al. 2024, DPZero"

    penalty: Parameter = 1.0
    inner_steps: int = 1
    directions: int = 10
    step: float = 0.1
    step_decay: float = 0.5
    smoothing: float = 1e-3

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("penalty", "step", "smoothing")
        self.counts("inner_steps", "directions")
        self.nonnegative("step_decay")
        if self.assumed_bound is not None:
            raise ValueError(f"{self.name} assumed_bound={self.assumed_bound}: it clips differences, set clip")

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        (S, A, P), J, u = state.primal.shape, self.directions, self.smoothing
        rho, degree = public.each(self.penalty), public.degree
        pull = rho * (degree * state.primal + state.neighbours)
        beta = state.primal
        for i in range(self.inner_steps):
            nu = noise.public_normal(f"directions {i}", J * P).reshape(S, A, J, P)
            nu = np.moveaxis(nu / np.linalg.norm(nu, axis=3, keepdims=True), 2, 1)  # (S, J, A, P)
            plus, minus = (beta[:, None] + u * nu).reshape(-1, A, P), (beta[:, None] - u * nu).reshape(-1, A, P)
            d = block.difference(plus, minus, 2 * u, public.each(self.clip)).reshape(S, J, A).swapaxes(1, 2)
            if self.private(public):
                d = noise.gaussian(f"differences {i}", d, public.each(self.noise))
            g = P * np.mean(d.swapaxes(1, 2)[:, :, :, None] * nu, axis=1)
            g = g + public.penalty_gradient(beta) + state.dual + 2 * rho * degree * beta - pull
            beta = beta - decayed(self.step, self.step_decay, t) * g
        return beta

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.penalty) * (public.degree * message - received)
        return Consensus(message, dual, received)

    def row_bound(self, public: Public) -> Array:
        return public.each(self.clip)  # a difference is clipped whatever the rows

    def sensitivity(self, t: int, public: Public) -> Array:
        return math.sqrt(self.inner_steps * self.directions) * 2.0 * self.row_bound(public) * public.scale
