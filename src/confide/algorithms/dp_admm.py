"""DP-ADMM: linearised ADMM with a server that averages noisy models.

Huang, Hu, Guo, Chan-Tin and Gong, "DP-ADMM: ADMM-based distributed learning with differential privacy", IEEE Trans.
Inf. Forensics Secur. 15, 2020; equation numbers of Zhou and Xiang, whose FDP-ADMM is this method on functional data.

    1  w ← 0, w̃_i ← 0, γ_i ← 0
    2  for l = 1, 2, …
    3    w_i ← argmin f̂_i(w_i; w̃_i) - γ_iᵀ(w_i - w) + ρ/2 ‖w_i - w‖²        (21), f̂_i of (19)
    4    w̃_i ← w_i + N(0, σ²_i,l I)                                         (22)
    5    send w̃_i - γ_i/ρ to the hub
    6    w ← mean of what was sent                                           (23)
    7    γ_i ← γ_i - ρ (w̃_i - w)                                            (24)

paper       code           shape    public argument
w           average        S A P
w̃_i         primal         S A P
γ_i         dual           S A P
ρ           penalty        scalar   penalty
η_l         step           scalar   step / l^step_decay
σ_i,l       noise_scale    A 1      noise × sensitivity

Differs from the paper: w̃_i and γ_i enter (23) only through w̃_i - γ_i/ρ, so that is the message and the hub merely
relays a sum; it holds no rows. The model is w, or with `average_from` the mean of the last w.

Privacy: replacing one row moves line 3 by at most 2·c1·q_i/m_i / (ρ + 1/η): the paper's m_i² is m_i. `noise` is a
multiple of that sensitivity, so each round is (1/noise)-Gaussian-DP. Who sees the message: the hub and, through the
sum, everyone. Proven where row gradients are clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from confide.algorithms.base import Array, GaussianMethod, decayed, tail_mean
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


class ServerState(NamedTuple):
    """Own noisy model, dual, the average everyone has, and its running mean over the last rounds."""

    primal: Array
    dual: Array
    average: Array
    tail: Array


@dataclass(frozen=True, eq=False)
class DPADMM(GaussianMethod):
    """Linearised consensus ADMM with a hub; `noise` multiplies each round's sensitivity."""

    topology = "all"
    paper = "Huang et al. 2020, DP-ADMM"

    penalty: float = 1.0
    step: float = 1.0
    step_decay: float = 0.5
    proximal: bool = False
    average_from: float = 1.0  # the model is the mean of w over rounds after this fraction; 1: the last w

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("penalty", "step")
        self.nonnegative("step_decay")
        self.fraction("average_from")

    def init(self, public: Public) -> ServerState:
        zero = np.zeros((1, len(public.agents), public.width))
        return ServerState(zero, zero, zero, zero)

    def stiffness(self, t: int) -> float:
        """ρ + 1/η_l, what line 3 divides by."""
        return self.penalty + 1.0 / decayed(self.step, self.step_decay, t)

    def local(self, t: int, state: ServerState, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        h, eta = self.stiffness(t), decayed(self.step, self.step_decay, t)
        g = block.gradient(state.primal, public.each(self.clip))
        v = state.primal / eta + state.dual + self.penalty * state.average - g
        if self.proximal:
            w = public.penalty_prox(v / h, 1.0 / h)  # (21), P kept
        else:
            w = (v - public.penalty_gradient(state.primal)) / h  # (21)
        if self.private(public):
            w = noise.gaussian("primal", w, self.noise_scale(t, public))  # (22)
        return w - state.dual / self.penalty

    def absorb(self, t: int, state: ServerState, message: Array, received: Array, public: Public) -> ServerState:
        average = received / public.count  # (23)
        primal = message + state.dual / self.penalty
        dual = state.dual - self.penalty * (primal - average)  # (24)
        tail = tail_mean(state.tail, average, t, self.rounds, self.average_from)
        return ServerState(primal, dual, average, tail)

    def estimate(self, state: ServerState, public: Public) -> Array:
        return state.tail

    def noise_scale(self, t: int, public: Public) -> Array:
        return public.each(self.noise) * self.sensitivity(t, public)

    def sensitivity(self, t: int, public: Public) -> Array:
        h = self.stiffness(t)
        move = 2.0 * self.row_bound(public) * public.scale / h  # Lemma 2
        return move * float(public.penalty.expansion(1.0 / (h * public.count))) if self.proximal else move
