"""PVP: ADMM with noise on the primal variable before it is sent.

T. Zhang and Q. Zhu, "Dynamic differential privacy for ADMM-based distributed classification learning", IEEE Trans.
Inf. Forensics Secur. 12(1), 2017: primal variable perturbation.

    1  f̃_i ← 0, γ_i ← 0
    2  for t = 1, 2, …
    3    f_i ← argmin O(f) + γ_iᵀf + η Σ_j ‖½(f̃_i + f̃_j) - f‖²
    4    f̃_i ← f_i + noise
    5    send f̃_i to the neighbours
    6    γ_i ← γ_i + η Σ_j (f̃_i - f̃_j)

paper       code             shape    public argument
f̃_i         primal           S A P
2λ_i        dual             S A P
η           coupling         A 1      coupling
noise sd    noise_scale      A 1      noise: Gaussian
noise rate  rate             A 1      noise_rate: density ∝ exp(-rate‖·‖), as published

Differs from the paper: all state is the broadcast, noised one, and every round is charged.

Privacy: O + quadratic is h-strongly convex with h = 2η|N| + l2/K, so replacing one row, whose gradient is at most c1,
moves the exact argmin by at most 2·c1·q/M / h; stopping within τ/h of it adds 2τ/h. For a smooth loss τ is the norm of
the gradient at which the solver stops and as much again for floating point (`argmin`). For a piecewise linear one
(`residual`) the solver stops at a point f where g = Σ c_i v_i x_i + … has norm at most `tolerance`, v_i ∈ ∂ℓ(z_i) and
|x_iᵀf - z_i| ≤ tolerance; with f* the argmin, u_i its subgradients and d = f - f*, monotonicity of ∂ℓ between z_i and
x_iᵀf* gives

    h‖d‖² ≤ gᵀd - Σ c_i (v_i - u_i) x_iᵀd ≤ ‖g‖‖d‖ + Σ c_i |v_i - u_i| |x_iᵀf - z_i|,

so that h‖d‖ ≤ ‖g‖ + √(hE), E = tolerance·2s·Σ c_i, |ℓ'| ≤ s; an l1 term adds its own coordinates to E.
Proven where rows are clipped (`Shards.clip_rows`), the loss is smooth with a bounded slope, and the public ball makes
the solver's tolerance certain (`argmin`); else assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms import argmin
from confide.algorithms.admm import ADMM
from confide.algorithms.base import Array, Consensus, Parameter
from confide.algorithms.gaussian import GaussianRelease, advanced_claims
from confide.errors import ConfideError
from confide.privacy import Event, Label, RadialNoise, published
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class PVP(GaussianRelease, ADMM):
    """Exact ADMM with a noisy message: Gaussian `noise`, or the published `noise_rate`.

    tolerance     above 0: how long the gradient may be where a local minimisation stops
    noise_rate    at least 0: the noise has density ∝ exp(-rate‖e‖), so that more is less noise; 0: none
    """

    paper = "Zhang and Zhu 2017, PVP"

    tolerance: float = 1e-7  # reached for certain inside the public ball, where 1e-9 often is not: see `argmin`
    noise_rate: Parameter = 0.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("noise_rate")
        if self.exponential(public) and np.any(public.each(self.noise) > 0):
            raise ConfideError(f"{self.name} has both noise and noise_rate: give one of them")
        if not public.penalty.convex:
            raise ConfideError(f"{self.name} with {type(public.penalty).__name__}: needs a convex penalty")

    def exponential(self, public: Public) -> bool:
        return bool(np.all(public.each(self.noise_rate) > 0))

    def private(self, public: Public) -> bool:
        return super().private(public) or self.exponential(public)

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        f = self.minimise(state, block, public, public.each(self.coupling))
        if self.exponential(public):
            return f + noise.gamma_norm("primal", public.width) / public.each(self.noise_rate)
        return noise.gaussian("primal", f, self.noise_scale(t, public)) if self.private(public) else f

    def sensitivity(self, t: int, public: Public) -> Array:
        move = self.row_bound(public) * public.scale + self.residual(t, public)
        return 2.0 * move / self.convexity(t, public)

    def residual(self, t: int, public: Public) -> Array:
        """τ: the argmin that is sent lies within τ/h of the exact one: (A, 1)."""
        h, stop = self.convexity(t, public), self.tolerance
        if public.loss.smooth:
            return np.full_like(h, 2.0 * stop)  # half of it for floating point: see `argmin`
        total = public.scale * public.sizes[public.agents][:, None]  # Σ c_i
        kinks = public.width * public.penalty.l1 / public.count / np.sqrt(h)  # |f_j - b_j| ≤ tolerance/√h
        return stop + np.sqrt(h * stop * 2.0 * (public.loss.slope_bound * total + kinks))

    def gap(self, public: Public) -> str:
        return argmin.gap(self, public)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        if not self.exponential(public):
            return advanced_claims(self, public, delta)
        if not self.bounded(public):
            return []
        move = 2.0 * self.row_bound(public) * public.scale / self.convexity(1, public)
        clipped = self.guarantee(public).label == Label.PROVEN
        return [published.pvp_iteration((public.each(self.noise_rate) * move)[:, 0], self.rounds, clipped=clipped)]

    def longest_step(self, t: int, public: Public) -> Array:
        rows = self.enforced_bound(public) * public.scale * public.sizes[public.agents][:, None]
        step = (rows + self.residual(t, public)) / self.convexity(t, public)
        if self.exponential(public):
            return step + argmin.longest_noise(public.width) / public.each(self.noise_rate)
        return step + (np.sqrt(public.width) + 9.0) * self.noise_scale(t, public)

    def events(self, public: Public) -> list[list[Event]]:
        if self.exponential(public) and self.bounded(public):
            return [
                [RadialNoise(public.each(self.noise_rate)[:, 0], self.sensitivity(t, public)[:, 0], public.width)]
                for t in range(1, self.rounds + 1)
            ]
        return super().events(public)
