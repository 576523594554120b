"""ZOO-ADMM: central zeroth-order ADMM that splits loss and penalty; a baseline for D-ZOA. No privacy.

Liu, Chen, Chen and Hero, "Zeroth-order online alternating direction method of multipliers: convergence analysis and
applications", AISTATS 2018, with A = I, B = -I, c = 0 and G = I.

    1  x, y, λ ← 0
    2  for t = 1, 2, …
    3    g ← mean of J two-point gradients of the loss at x
    4    x ← argmin gᵀx - λᵀ(x - y) + ρ/2 ‖x - y‖² + ‖x - x_t‖²/(2η_t)
    5    y ← argmin R(y) - λᵀ(x - y) + ρ/2 ‖x - y‖²
    6    λ ← λ - ρ (x - y)

paper       code           shape    public argument
x, y, λ     primal, split, dual   S 1 P
ρ           coupling       scalar   coupling
η_t         step_size      scalar   step, radius, lipschitz
u1          smoothing      scalar   smoothing
J           –              scalar   directions

Differs from the paper: the gradient is the two-vector estimator that OR-ZO and D-ZOA use.
Privacy: none. `topology = "central"`: one agent holds all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from confide.algorithms import zeroth
from confide.algorithms.base import Array, tail_mean
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


class Split(NamedTuple):
    """Loss and penalty variables, their dual, and the mean of the last x."""

    primal: Array
    split: Array
    dual: Array
    tail: Array


@dataclass(frozen=True, eq=False)
class ZOOADMM(zeroth.CentralZeroth):
    """Central zeroth-order ADMM.

    coupling    ρ, above 0: how strongly the two blocks are pulled together
    """

    paper = "Liu et al. 2018, ZOO-ADMM"

    coupling: float = 1.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling")

    def init(self, public: Public) -> Split:
        zero = np.zeros((1, len(public.agents), public.width))
        return Split(zero, zero, zero, zero)

    def local(self, t: int, state: Split, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        u1, u2 = zeroth.smoothing(t, public.width, self.smoothing)
        g = zeroth.two_point(block.value, state.primal, u1, u2, self.directions, noise, "direction")
        eta = zeroth.step_size(t, public.width, self.step, self.radius, self.lipschitz)
        return (state.primal / eta - g + state.dual + self.coupling * state.split) / (self.coupling + 1.0 / eta)

    def absorb(self, t: int, state: Split, message: Array, received: Array, public: Public) -> Split:
        split = public.penalty_prox(message - state.dual / self.coupling, 1.0 / self.coupling)
        dual = state.dual - self.coupling * (message - split)
        return Split(message, split, dual, tail_mean(state.tail, message, t, self.rounds, self.average_from))

    def estimate(self, state: Split, public: Public) -> Array:
        return state.tail
