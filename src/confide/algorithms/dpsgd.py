"""DPSGD: decentralised subgradient descent with Gaussian noise on every message.

Nedić and Ozdaglar, "Distributed subgradient methods for multi-agent optimization", IEEE Trans. Autom. Control 54(1),
2009, with the noise that Gratton, Venkategowda, Arablouei and Werner add to it as a baseline for D-ZOA.

    1  x̃_i ← 0
    2  for t = 1, 2, …
    3    g̃_i ← ∂f_i(x̃_i) + N(0, σ² I)
    4    x̃_i ← Σ_j W_ij x̃_j - η_t g̃_i
    5    send x̃_i to the neighbours

paper       code           shape    public argument
x̃_i         primal         S A P
Σ W_ij x̃_j  mixed          S A P    Metropolis weights, own included
η_t         step           scalar   step / t^step_decay
σ           noise_scale    A 1      noise

Differs from the paper: nothing. The noise is on the gradient, so that in the message it falls with the step.

Privacy: the clipped gradient is the only question; line 4 is post-processing. Proven where row gradients are clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from confide.algorithms.base import Array, decayed
from confide.algorithms.gaussian import Ask, GaussianMethod, advanced_claims
from confide.privacy.published import PublishedBound
from confide.problem.problem import Public


class Mixed(NamedTuple):
    """Own last broadcast and the weighted mean of the neighbourhood's."""

    primal: Array
    mixed: Array


@dataclass(frozen=True, eq=False)
class DPSGD(GaussianMethod):
    """Mix with the neighbours, then a subgradient step.

    step          above 0: length of the step in round 1
    step_decay    at least 0: the step of round t is step·t^-step_decay
    """

    paper = "Nedić and Ozdaglar 2009, with noise"

    step: float = 1.0
    step_decay: float = 0.5

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("step")
        self.nonnegative("step_decay")

    def weights(self, graph: Any) -> Any:
        return graph.metropolis()

    def init(self, public: Public) -> Mixed:
        zero = np.zeros((1, len(public.agents), public.width))
        return Mixed(zero, zero)

    def message(self, t: int, state: Mixed, ask: Ask, public: Public) -> Array:
        g = ask(state.primal) + public.penalty_gradient(state.primal)
        return state.mixed - decayed(self.step, self.step_decay, t) * g

    def absorb(self, t: int, state: Mixed, message: Array, received: Array, public: Public) -> Mixed:
        return Mixed(message, received)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        return advanced_claims(self, public, delta)

    def longest_step(self, t: int, public: Public) -> Array:
        return decayed(self.step, self.step_decay, t) * self.longest_answer(t, public)


@dataclass(frozen=True, eq=False)
class Alone(DPSGD):
    """One party by itself: noisy gradient descent on its own rows, whose model it may then publish."""

    topology = "central"
