"""DPSGD: decentralised subgradient descent with Gaussian noise on every message.

Nedić and Ozdaglar, "Distributed subgradient methods for multi-agent optimization", IEEE Trans. Autom. Control 54(1),
2009, with the noise that Gratton, Venkategowda, Arablouei and Werner add to it as a baseline for D-ZOA.

    1  x̃_i ← 0
    2  for t = 1, 2, …
    3    x_i ← Σ_j W_ij x̃_j - η_t ∂f_i(x̃_i)
    4    x̃_i ← x_i + N(0, σ² I)
    5    send x̃_i to the neighbours

paper       code           shape    public argument
x̃_i         primal         S A P
Σ W_ij x̃_j  mixed          S A P    Metropolis weights, own included
η_t         step           scalar   step / t^step_decay
σ           noise_scale    A 1      noise × η_t

Differs from the paper: nothing. `noise` is per unit of step, so that the noise falls with the step as the sensitivity
does.

Privacy: replacing one row moves line 3 by at most η_t·2·c1·q_i/M_i; everything else in it is public. Proven where row
gradients are clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from confide.algorithms.base import Array, GaussianMethod, decayed
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


class Mixed(NamedTuple):
    """Own last broadcast and the weighted mean of the neighbourhood's."""

    primal: Array
    mixed: Array


@dataclass(frozen=True, eq=False)
class DPSGD(GaussianMethod):
    """Mix with the neighbours, then a subgradient step."""

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

    def local(self, t: int, state: Mixed, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        g = block.gradient(state.primal, public.each(self.clip)) + public.penalty_gradient(state.primal)
        x = state.mixed - decayed(self.step, self.step_decay, t) * g
        if not self.private(public):
            return x
        return noise.gaussian("primal", x, self.noise_scale(t, public))

    def absorb(self, t: int, state: Mixed, message: Array, received: Array, public: Public) -> Mixed:
        return Mixed(message, received)

    def noise_scale(self, t: int, public: Public) -> Array:
        return public.each(self.noise) * decayed(self.step, self.step_decay, t)

    def sensitivity(self, t: int, public: Public) -> Array:
        return decayed(self.step, self.step_decay, t) * 2.0 * self.row_bound(public) * public.scale
