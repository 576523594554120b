"""DP-ADMM: linearised ADMM with a server that averages noisy models.

Huang, Hu, Guo, Chan-Tin and Gong, "DP-ADMM: ADMM-based distributed learning with differential privacy", IEEE Trans.
Inf. Forensics Secur. 15, 2020; equation numbers of Zhou and Xiang, whose FDP-ADMM is this method on functional data.

    1  w ← 0, w̃_i ← 0, γ_i ← 0
    2  for l = 1, 2, …
    3    g̃_i ← ∂f_i(w̃_i) + N(0, (h_l σ_i,l)² I),  h_l = ρ + 1/η_l
    4    w̃_i ← argmin f̂_i(w_i; w̃_i) - γ_iᵀ(w_i - w) + ρ/2 ‖w_i - w‖²        (21), (22), f̂_i of (19) with slope g̃_i
    5    send w̃_i - γ_i/ρ to the hub
    6    w ← mean of what was sent                                           (23)
    7    γ_i ← γ_i - ρ (w̃_i - w)                                            (24)

paper       code           shape    public argument
w           average        S A P
w̃_i         primal         S A P
γ_i         dual           S A P
ρ           coupling       scalar   coupling
η_l         step           scalar   step / l^step_decay
h_l         stiffness      scalar
h_l σ_i,l   noise_scale    A 1      noise

Differs from the paper: w̃_i and γ_i enter (23) only through w̃_i - γ_i/ρ, so that is the message and the hub merely
relays a sum; it holds no rows. The model is w, or with `average_from` the mean of the last w. The noise is on the
gradient, not on its result w_i: line 4 divides it by h_l, the same in law; with `proximal=True` it also passes the
prox, which makes it another algorithm. Lemma 2's m_i² is m_i.

Privacy: the clipped gradient is the only question, of sensitivity 2·c1·q_i/m_i in every round; line 4 is
post-processing, whatever the hub sends. Who sees the message: the hub and, through the sum, everyone. Proven where row
gradients are clipped. As γ_i/ρ is the last average less the last message, the public ball of messages bounds all
state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from confide.algorithms.base import Array, decayed, tail_mean
from confide.algorithms.gaussian import Ask, GaussianMethod, root_claim
from confide.privacy.published import PublishedBound
from confide.problem.problem import Public


class ServerState(NamedTuple):
    """Own noisy model, dual, the average everyone has, and its running mean over the last rounds."""

    primal: Array
    dual: Array
    average: Array
    tail: Array


@dataclass(frozen=True, eq=False)
class DPADMM(GaussianMethod):
    """Linearised consensus ADMM with a hub.

    coupling        ρ, above 0: how strongly agents are pulled to the hub's average
    step            η, above 0: length of the step in round 1
    step_decay      at least 0: the step of round t is step·t^-step_decay
    proximal        whether the penalty acts by its prox; else by its subgradient
    average_from    in [0, 1]: the model is the mean of w over rounds after this fraction; 1: the last w
    """

    topology = "all"
    paper = "Huang et al. 2020, DP-ADMM"

    coupling: float = 1.0
    step: float = 1.0
    step_decay: float = 0.5
    proximal: bool = False
    average_from: float = 1.0  # the model is the mean of w over rounds after this fraction; 1: the last w

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling", "step")
        self.nonnegative("step_decay")
        self.fraction("average_from")

    def init(self, public: Public) -> ServerState:
        zero = np.zeros((1, len(public.agents), public.width))
        return ServerState(zero, zero, zero, zero)

    def stiffness(self, t: int) -> float:
        """h_l = ρ + 1/η_l, what line 4 divides by."""
        return self.coupling + 1.0 / decayed(self.step, self.step_decay, t)

    def message(self, t: int, state: ServerState, ask: Ask, public: Public) -> Array:
        h, eta = self.stiffness(t), decayed(self.step, self.step_decay, t)
        g = ask(state.primal)  # line 3
        v = state.primal / eta + state.dual + self.coupling * state.average - g
        if self.proximal:
            w = public.penalty_prox(v / h, 1.0 / h)  # (21) with P kept
        else:
            w = (v - public.penalty_gradient(state.primal)) / h  # (21), (22)
        return w - state.dual / self.coupling

    def absorb(self, t: int, state: ServerState, message: Array, received: Array, public: Public) -> ServerState:
        average = received / public.count  # (23)
        primal = message + state.dual / self.coupling
        dual = state.dual - self.coupling * (primal - average)  # (24)
        tail = tail_mean(state.tail, average, t, self.rounds, self.average_from)
        return ServerState(primal, dual, average, tail)

    def estimate(self, state: ServerState, public: Public) -> Array:
        return state.tail

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        if not (self.private(public) and self.bounded(public)):
            return []
        return [root_claim(self, public, delta)]

    def longest_step(self, t: int, public: Public) -> Array:
        return 3.0 * self.longest_answer(t, public) / self.stiffness(t)  # w̃_i, and γ_i/ρ: two messages
