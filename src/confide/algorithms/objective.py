"""Objective perturbation inside ADMM: what DVP, M-ADMM, R-ADMM and MR-ADMM share.

A round's argmin gets a random linear term eᵀf whose density is ∝ exp(-α‖e‖). Chaudhuri, Monteleoni and Sarwate,
"Differentially private empirical risk minimization", J. Mach. Learn. Res. 12, 2011.

The cost of one round, for replacement of one row, when rows have norm at most b, |ℓ'| ≤ s, ℓ'' ≤ c, a row counts q/B in
the objective, and the objective without any one row is h-strongly convex: the released f determines e = -∇J(f), which
differs between neighbours by at most r = 2sb·q/B; the Jacobian ∇²J(f) differs by two terms of rank one, and
det(H + u)/det(H + v) ≤ det(H + u)/det(H) ≤ 1 + c·b²·q/(B·h). So the log density ratio is at most α·r + ln(1 + x),
x = c·b²·q/(B·h). With k classes a row's Hessian has rank k - 1, and the determinant's ratio is at most (1 + x)^(k-1).
An unpenalised intercept has b² = row_norm² + 1 and no help from the penalty in h. At δ > 0 a round costs much less than
its pure ε, because most of the noise does not point at the two rows: `privacy.mixtures` has the proof.

An argmin that stops at gradient norm τ lies within τ/h of the exact one. Releasing f + N(0, s²I) instead is
post-processing of the exact argmin, charged as above, and of (f - exact) + N(0, s²I), whose sensitivity is 2τ/h
(approximate minima perturbation; Iyengar et al., IEEE S&P 2019); τ is the solver's tolerance and as much again for
floating point (`argmin`). With s = 0 the claim takes the argmin for exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Self

import numpy as np

from confide.algorithms import argmin
from confide.algorithms.admm import ADMM
from confide.algorithms.base import Array, Consensus, Parameter, longest_gradient, row_length
from confide.errors import ConfideError
from confide.privacy import Event, Free, Gaussian, Guarantee, Label, ObjectivePerturbation, RadialNoise, published
from confide.privacy import epsilon as total_epsilon
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class PerturbedADMM(ADMM):
    """Exact ADMM whose argmin may carry a random linear term: private when `noise_rate` α is above 0.

    tolerance        above 0: how long the gradient may be where a local minimisation stops
    noise_rate       α, at least 0: the term has density ∝ exp(-α‖ε‖), so that more is less noise; 0: none
    release_noise    at least 0: standard deviation of Gaussian noise on what is sent, which covers the tolerance
    """

    needs = "smooth loss"
    claim: ClassVar[str] = "(32) of R-ADMM, every round"  # name of the published bound

    tolerance: float = 1e-7  # reached for certain inside the public ball, where 1e-9 often is not: see `argmin`
    noise_rate: Parameter = 0.0
    release_noise: Parameter = 0.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("noise_rate", "release_noise")
        if not (public.loss.smooth and public.penalty.smooth):
            pair = f"{type(public.loss.base).__name__} with {type(public.penalty).__name__}"
            raise ConfideError(f"{self.name} with {pair}: needs a smooth loss and penalty: use LinearizedADMM or PVP")

    def rate(self, t: int, public: Public) -> Array:
        """α of the linear term in round t: (A, 1)."""
        return public.each(self.noise_rate)

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        e: Array | float = 0.0
        if self.private(public):
            e = noise.gamma_norm("objective", public.width) / self.rate(t, public)
        f = self.minimise(state, block, public, self.eta(t, public), e)
        s = public.each(self.release_noise)
        return noise.gaussian("release", f, s) if np.any(s > 0) else f

    # --- privacy ----------------------------------------------------------------------------------------------------

    def private(self, public: Public) -> bool:
        return bool(np.all(public.each(self.noise_rate) > 0))

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        if not self.private(public) or row_length(public) * public.loss.slope_bound > 1:  # Theorem V.1 assumes both 1
            return []
        touched = np.flatnonzero(self.schedule(public).touches) + 1
        h = np.array([self.claimed_convexity(int(t), public)[:, 0] for t in touched])
        rate = np.array([self.rate(int(t), public)[:, 0] for t in touched])
        rows = 1.0 / public.scale[:, 0]
        return [replace(published.r_admm(1.0, rows, public.loss.curvature_bound, h, rate), name=self.claim)]

    def longest_step(self, t: int, public: Public) -> Array:
        rows = longest_gradient(public) * public.scale * public.sizes[public.agents][:, None]
        noise = argmin.longest_noise(public.width) / self.rate(t, public)
        loud = (math.sqrt(public.width) + 9.0) * public.each(self.release_noise)
        return (rows + noise + 2.0 * self.tolerance) / self.convexity(t, public) + loud

    def objective_noise_bound(self, t: int, public: Public) -> Array:
        """Of the linear term that the argmin carries, but for a chance that `argmin.MISSED` names: (A, 1)."""
        return argmin.longest_noise(public.width) / self.rate(t, public)

    def claimed_convexity(self, t: int, public: Public) -> Array:
        """h as the published bound takes it: (A, 1)."""
        return self.convexity(t, public)

    def events(self, public: Public) -> list[list[Event]]:
        if not self.private(public) or not bounded(public):
            return super().events(public)
        touches = self.schedule(public).touches
        return [self.release(t, public) if touch else [Free()] for t, touch in enumerate(touches, start=1)]

    def release(self, t: int, public: Public) -> list[Event]:
        """A round that minimises: the perturbed objective, and the residual of the solver."""
        h = self.convexity(t, public)
        b2 = row_length(public) ** 2
        shift = 2.0 * public.loss.slope_bound * math.sqrt(b2) * public.scale
        margins = max(1, public.loss.outputs - 1)  # a row's Hessian has this rank, its gradients span as much
        ratio = (1.0 + public.loss.curvature_bound * b2 * public.scale / h) ** margins - 1.0
        rate = self.rate(t, public)
        cost: list[Event] = [
            ObjectivePerturbation(rate[:, 0], shift[:, 0], ratio[:, 0], width=public.width, rank=2 * margins)
        ]
        s = public.each(self.release_noise)
        if np.any(s > 0):
            residual = (4.0 * self.tolerance / h)[:, 0]  # half of it for floating point
            cost.append(Gaussian(residual, s[:, 0], slack=argmin.MISSED))
        return cost

    def stated(self, public: Public) -> Guarantee:
        if not self.private(public):
            return super().stated(public)
        if not bounded(public):
            return Guarantee(Label.NONE, "rows or slopes are unbounded: use Shards.clip_rows")
        if not np.all(public.each(self.release_noise) > 0):
            return Guarantee(Label.ASSUMED, "the argmin is taken for exact: set release_noise")
        if gap := argmin.gap(self, public):
            return Guarantee(Label.ASSUMED, gap)
        return Guarantee(Label.PROVEN, "rows are clipped, and the solver's residual is noised and accounted")

    def calibrated(self, public: Public, epsilon: float, delta: float = 0.0) -> Self:
        """The same method with the largest noise rate that keeps every agent's total within (epsilon, delta).

        At delta = 0 the pure ε of the rounds add up; at delta > 0 the accountant's tighter total is inverted.
        """
        self.check(public)
        if not bounded(public):
            raise ConfideError(f"{self.name}: rows or slopes are unbounded, no noise is enough: use Shards.clip_rows")
        if not epsilon > 0:
            raise ConfideError(f"epsilon={epsilon}: must be above 0")
        pure = self._pure_rate(public, epsilon)
        rate = pure if delta == 0 else self._loosened(public, epsilon, delta, pure)
        return replace(self, noise_rate=rate if np.ptp(rate) > 0 else float(np.min(rate)))

    def _pure_rate(self, public: Public, epsilon: float) -> Array:
        """Noise rate of each agent at which the pure ε of all rounds add up to `epsilon`: (A,)."""
        rounds = replace(self, noise_rate=1.0, release_noise=0.0).events(public)
        cost = [e for events in rounds for e in events if isinstance(e, ObjectivePerturbation | RadialNoise)]
        fixed = np.sum([np.log1p(e.curvature_ratio) for e in cost], axis=0)
        slope = np.sum([np.multiply(e.noise_rate, e.shift) for e in cost], axis=0)
        if np.any(fixed >= epsilon):
            raise ConfideError(
                f"{self.name}: the determinants alone cost ε={np.max(fixed):.3g} of {epsilon:g}: "
                "take fewer rounds or a larger penalty"
            )
        return (epsilon - fixed) / slope * (1 - 1e-12)

    def _loosened(self, public: Public, epsilon: float, delta: float, rate: Array) -> Array:
        """Bisection from a rate that is private enough; totals of all agents at once."""
        whole = np.array(np.broadcast_to(rate, len(public.agents)), float)

        def spent(rates: Array) -> Array:
            given = np.zeros(public.count)
            given[public.agents] = rates
            events = replace(self, noise_rate=given).events(public)
            return np.broadcast_to(total_epsilon(chain.from_iterable(events), delta), len(whole))

        fits = spent(whole) <= epsilon
        low, high = np.where(fits, whole, 0.5 * whole), 2.0 * whole
        while np.any(more := spent(high) <= epsilon):
            low, high = np.where(more, high, low), np.where(more, 2.0 * high, high)
        for _ in range(12):  # to a per mille of the rate
            middle = np.sqrt(low * high)
            fits = spent(middle) <= epsilon
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        if np.any(spent(low) > epsilon):
            raise ConfideError(f"{self.name}: release_noise alone costs more than ε={epsilon:g} leaves: raise it")
        return low


def bounded(public: Public) -> bool:
    """Whether everything the cost needs is bounded."""
    return math.isfinite(longest_gradient(public) * public.loss.curvature_bound)
