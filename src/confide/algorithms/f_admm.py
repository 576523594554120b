"""F-ADMM: consensus ADMM with a server that averages exact local minimisers. No privacy.

Zhou and Xiang, "ADMM-based differential privacy learning for penalized quantile regression on distributed functional
data", Mathematics 10(16), 2022, Algorithm 1.

    1  w ← 0, γ_i ← 0
    2  for l = 1, 2, …
    3    w_i ← argmin f_i(w_i) - γ_iᵀ(w_i - w) + ρ/2 ‖w_i - w‖²                (16)
    4    send w_i - γ_i/ρ to the hub
    5    w ← mean of what was sent                                             (17)
    6    γ_i ← γ_i - ρ (w_i - w)                                               (18)

paper       code           shape    public argument
w           average        S A P
w_i         primal         S A P
γ_i         dual           S A P
ρ           coupling       scalar   coupling

Differs from the paper: the message is w_i - γ_i/ρ, all that (17) needs, so that the hub only relays a sum.
Privacy: none; messages are functions of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Algorithm, Array
from confide.algorithms.dp_admm import ServerState
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class FADMM(Algorithm):
    """Exact local minimisers, averaged by a hub.

    coupling     ρ, above 0: how strongly agents are pulled to the hub's average
    tolerance    above 0: how long the gradient may be where a local minimisation stops
    """

    topology = "all"
    paper = "Zhou and Xiang 2022, F-ADMM"

    coupling: float = 1.0
    tolerance: float = 1e-9

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling", "tolerance")

    def init(self, public: Public) -> ServerState:
        zero = np.zeros((1, len(public.agents), public.width))
        return ServerState(zero, zero, zero, zero)

    def local(self, t: int, state: ServerState, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        w = block.argmin(
            -state.dual - self.coupling * state.average, self.coupling, public.penalty, public.mask,
            1.0 / public.count, state.primal, self.tolerance,
        )  # fmt: skip  # (16)
        return w - state.dual / self.coupling

    def absorb(self, t: int, state: ServerState, message: Array, received: Array, public: Public) -> ServerState:
        average = received / public.count  # (17)
        primal = message + state.dual / self.coupling
        return ServerState(primal, state.dual - self.coupling * (primal - average), average, average)  # (18)

    def estimate(self, state: ServerState, public: Public) -> Array:
        return state.average
