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
ρ           coupling       A 1      coupling
T, J        –              scalar   inner_steps, directions
α           –              scalar   step / m^step_decay
u           –              scalar   smoothing
C           clip           A 1      clip
σ           noise          A 1      noise

Differs from the paper: DPZero is central; here its gradient sits inside ADMM. Penalty and quadratic are public and stay
outside the clip; the inner state moves by noised values only.

Privacy: the question is J clipped differences, asked T times per round, and every answer counts as released: a round is
one Gaussian event of sensitivity √(TJ)·2C·q_k/M_k and scale σ. Proven; for a `losses.BlackBox`
assumed, since nothing forces its function to treat each row alone and to remember none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Array, Consensus, Parameter, decayed
from confide.algorithms.gaussian import Ask, GaussianMethod
from confide.errors import ConfideError
from confide.problem.problem import Public
from confide.problem.questions import Differences


@dataclass(frozen=True, eq=False)
class PrivateZeroth(GaussianMethod):
    """Zeroth-order ADMM with a proof; without noise and clip, its non-private form.

    coupling       above 0: how strongly neighbours are pulled together; one number, or one per agent
    inner_steps    a whole number of at least 1: steps per round, each with answers of its own
    directions     a whole number of at least 1: random directions per step
    step           above 0: length of the first step
    step_decay     at least 0: the step of round t is step·t^-step_decay
    smoothing      above 0: how far apart the two points of a difference lie
    """

    paper = "after Zhang et al. 2024, DPZero"

    coupling: Parameter = 1.0
    inner_steps: int = 1
    directions: int = 10
    step: float = 0.1
    step_decay: float = 0.5
    smoothing: float = 1e-3

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling", "step", "smoothing")
        self.counts("inner_steps", "directions")
        self.nonnegative("step_decay")
        if self.assumed_bound is not None:
            raise ConfideError(f"{self.name} assumed_bound={self.assumed_bound}: it clips differences, set clip")

    def question(self, t: int, public: Public) -> Differences:
        return Differences(self.enforced_bound(public), self.directions, 2 * self.smoothing)

    def asks(self, t: int) -> int:
        return self.inner_steps

    def message(self, t: int, state: Consensus, ask: Ask, public: Public) -> Array:
        (S, A, P), J, u = state.primal.shape, self.directions, self.smoothing
        rho, degree = public.each(self.coupling), public.degree
        pull = rho * (degree * state.primal + state.neighbours)
        beta = state.primal
        for i in range(self.inner_steps):
            nu = ask.public_normal(f"directions {i}", J * P).reshape(S, A, J, P)
            nu = np.moveaxis(nu / np.linalg.norm(nu, axis=3, keepdims=True), 2, 1)  # (S, J, A, P)
            d = ask(beta[:, None] + u * nu, beta[:, None] - u * nu)  # line 5
            g = P * np.mean(d.swapaxes(1, 2)[:, :, :, None] * nu, axis=1)
            g = g + public.penalty_gradient(beta) + state.dual + 2 * rho * degree * beta - pull
            beta = beta - decayed(self.step, self.step_decay, t) * g
        return beta

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.coupling) * (public.degree * message - received)
        return Consensus(message, dual, received)

    def enforced_bound(self, public: Public) -> Array:
        return public.each(self.clip)  # a difference is clipped whatever the rows

    def longest_step(self, t: int, public: Public) -> Array:
        slope = public.width * self.longest_answer(t, public) / math.sqrt(self.directions)  # of P·mean_j d_j ν_j
        return decayed(self.step, self.step_decay, t) * self.inner_steps * slope
