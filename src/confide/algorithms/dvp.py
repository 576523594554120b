"""DVP: ADMM with noise on the dual variable inside every primal update.

T. Zhang and Q. Zhu, "Dynamic differential privacy for ADMM-based distributed classification learning", IEEE Trans.
Inf. Forensics Secur. 12(1), 2017: dual variable perturbation; the "private ADMM" of the Recycled ADMM paper.

    1  f_i ← 0, γ_i ← 0
    2  for t = 1, 2, …
    3    draw ε_i with density ∝ exp(-α‖ε‖)
    4    f_i ← argmin O(f) + (γ_i + ε_i)ᵀf + η Σ_j ‖½(f_i + f_j) - f‖²
    5    send f_i to the neighbours
    6    γ_i ← γ_i + η Σ_j (f_i - f_j)

paper       code             shape    public argument
f_i         primal           S A P
2λ_i        dual             S A P
η           coupling         A 1      coupling
α           rate             A 1      noise_rate
noise sd    –                A 1      noise: N(0, noise² I) in place of line 3, as D-ZOA's authors take it

Differs from the paper: the published guarantee is that of one iteration of one node; here every round is charged.
Privacy: see `objective`. Proven with `release_noise`, else assumed. With Gaussian `noise` none: the shift of e between
neighbours depends on e through f, so that a round is no Gaussian mechanism, and every round counts as unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from confide.algorithms.base import Algorithm, Array, Consensus, Parameter
from confide.algorithms.objective import PerturbedADMM
from confide.errors import ConfideError
from confide.privacy import Event, Guarantee, Label
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class DVP(PerturbedADMM):
    """Objective perturbation in every round: the published `noise_rate`, or Gaussian `noise`, which has no account.

    noise    at least 0: standard deviation of a Gaussian linear term; 0: none
    """

    paper = "Zhang and Zhu 2017, DVP"

    noise: Parameter = 0.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("noise")
        if self.gaussian(public) and np.any(public.each(self.noise_rate) > 0):
            raise ConfideError(f"{self.name} has both noise and noise_rate: give one of them")

    def gaussian(self, public: Public) -> bool:
        return bool(np.any(public.each(self.noise) > 0))

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        if not self.gaussian(public):
            return super().local(t, state, block, public, noise)
        e = noise.gaussian("dual", np.zeros_like(state.dual), public.each(self.noise))
        return self.minimise(state, block, public, self.eta(t, public), e)

    def events(self, public: Public) -> list[list[Event]]:
        return Algorithm.events(self, public) if self.gaussian(public) else super().events(public)

    def stated(self, public: Public) -> Guarantee:
        if self.gaussian(public):
            return Guarantee(Label.NONE, "Gaussian noise inside the argmin has no account here: set noise_rate")
        return super().stated(public)

    def calibrated(self, public: Public, epsilon: float, delta: float = 0.0) -> Self:
        if self.gaussian(public):
            raise ConfideError(f"{self.name} noise={self.noise}: Gaussian noise has no account here, set noise_rate")
        return super().calibrated(public, epsilon, delta)
