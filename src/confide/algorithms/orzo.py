"""OR-ZO: central zeroth-order stochastic descent on the pooled rows; a baseline for D-ZOA. No privacy.

Duchi, Jordan, Wainwright and Wibisono, "Optimal rates for zero-order convex optimization: the power of two function
evaluations", IEEE Trans. Inf. Theory 61(5), 2015.

    1  β ← 0
    2  for t = 1, 2, …
    3    g ← mean of J two-point gradients of f at β
    4    β ← β - α_t g,  α_t = α0 R / (L √(t P log 2P))
    5  the model is the mean of the iterates after `average_from` of the rounds

paper       code           shape    public argument
β           primal         S 1 P
α0, R, L    step_size      scalar   step, radius, lipschitz
u1          smoothing      scalar   smoothing
J           –              scalar   directions

Differs from the paper: nothing; the mean may leave out the first iterates.
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


class Averaged(NamedTuple):
    """The iterate and the mean of the last ones."""

    primal: Array
    tail: Array


@dataclass(frozen=True, eq=False)
class ORZO(zeroth.CentralZeroth):
    """Central two-point descent."""

    paper = "Duchi et al. 2015, OR-ZO"

    def init(self, public: Public) -> Averaged:
        zero = np.zeros((1, len(public.agents), public.width))
        return Averaged(zero, zero)

    def local(self, t: int, state: Averaged, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        u1, u2 = zeroth.smoothing(t, public.width, self.smoothing)
        value = zeroth.risk(block, public)
        g = zeroth.two_point(value, state.primal, u1, u2, self.directions, noise, "direction")
        return state.primal - zeroth.step_size(t, public.width, self.step, self.radius, self.lipschitz) * g

    def absorb(self, t: int, state: Averaged, message: Array, received: Array, public: Public) -> Averaged:
        return Averaged(message, tail_mean(state.tail, message, t, self.rounds, self.average_from))

    def estimate(self, state: Averaged, public: Public) -> Array:
        return state.tail
