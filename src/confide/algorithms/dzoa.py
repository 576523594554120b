"""D-ZOA: ADMM whose primal update is a zeroth-order inner loop. Its intrinsic privacy claim is refuted.

Gratton, Venkategowda, Arablouei and Werner, "Privacy-preserved distributed learning with zeroth-order optimization",
IEEE Trans. Inf. Forensics Secur. 17, 2022, Algorithm 1.

    1  β_k ← 0, γ_k ← 0
    2  for m = 1, 2, …
    3    β̃ ← 0
    4    for t = 1, …, T:  β̃ ← β̃ - α_t · mean of J two-point gradients of F_k at β̃        (7), (8), (9)
    5    β_k ← β̃;  send β_k to the neighbours
    6    γ_k ← γ_k + ρ Σ_l (β_k - β_l)                                                      (5)

where F_k(β) = f_k(β) + βᵀγ_k + ρ Σ_l ‖β - ½(β_k + β_l)‖²                                   (4)

paper       code           shape    public argument
β_k         primal         S A P
γ_k         dual           S A P
ρ           coupling       A 1      coupling
T           –              scalar   inner_steps
J           –              A        directions
α0, R, L    step_size      scalar   step, radius, lipschitz
u1          smoothing      scalar   smoothing

`average=True` sends the mean of the inner iterates, β̂^(T) of (26), for which the inner loop's rate is stated; Algorithm
1 sends the last. Any loss will do, `losses.BlackBox` too: only values of it are asked for.

Differs from the paper: the prox function is ½‖·‖², g^(t) is taken at β̃^(t-1), and γ's index is off by one in print.

Privacy: refuted. Lemma 2 equates the variance with an upper bound on it, while privacy needs a lower bound; so ε of
(22) can be given any value through R while the method stays the same, the measured variance is 15 to 2,000 times
smaller, and the inner loop's bias leaks too. `PrivateZeroth` is the rigorous form of the idea.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide import threads
from confide.algorithms import zeroth
from confide.algorithms.base import Algorithm, Array, Consensus, Parameter
from confide.algorithms.zeroth_kernel import inner_loops
from confide.errors import ConfideError
from confide.privacy import Guarantee, Label, published
from confide.privacy.noise import Noise, SimulatedNoise, key
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.checks import whole
from confide.problem.losses import BlackBox
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class DZOA(Algorithm):
    """Zeroth-order ADMM; only values of the objective are used.

    coupling       ρ, above 0: how strongly neighbours are pulled together
    inner_steps    T, a whole number of at least 1: steps of the local minimisation
    directions     J, at least 1: random directions per step; one number, or one per agent
    step           α0, above 0: the factor of every inner step
    radius         R, above 0: what the step's formula takes for the distance to the solution
    lipschitz      L, above 0: what the step's formula takes for the Lipschitz constant
    smoothing      u1, above 0: how far apart the two points of the first difference lie
    average        whether an agent sends the mean of its inner iterates, (26); else the last
    """

    paper = "Gratton et al. 2022, D-ZOA"

    coupling: Parameter = 4.0
    inner_steps: int = 100
    directions: Parameter = 20
    step: float = 0.54
    radius: float = 1.0
    lipschitz: float = 2.5
    smoothing: float = 1.0
    average: bool = False

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("coupling", "step", "radius", "lipschitz", "smoothing")
        self.counts("inner_steps")
        given = [self.directions] if np.ndim(self.directions) == 0 else list(self.directions)
        if not all(whole(j) and j >= 1 for j in given):
            raise ConfideError(f"{self.name} directions={self.directions}: must be whole numbers of at least 1")

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        known = not isinstance(public.loss, BlackBox) and public.loss.outputs == 1 and public.penalty.convex
        known = known and public.penalty.separable
        plain = known and isinstance(block.arrays[0], np.ndarray)
        if plain and isinstance(noise, SimulatedNoise):
            return self.compiled(t, state, block, public, noise)
        value, beta = self.lagrangian(state, block, public), np.zeros_like(state.primal)
        mean = beta
        for i, (u1, u2, step) in enumerate(zip(*self.inner(public.width), strict=True)):
            g = zeroth.two_point(value, beta, u1, u2, self.counted(public), noise, f"inner {i}")
            beta = beta - step * g  # (9)
            mean = mean + (beta - mean) / (i + 1)
        return mean if self.average else beta

    def lagrangian(self, state: Consensus, block: Block, public: Public) -> zeroth.Values:
        """F_k of (4), less a constant, at points (S·J, A, P)."""
        rho, centre, loss = public.each(self.coupling), self.centre(state, public), zeroth.risk(block, public)

        def value(beta: Array) -> Array:
            repeat = len(beta) // len(state.primal)
            dual, middle = np.repeat(state.dual, repeat, axis=0), np.repeat(centre, repeat, axis=0)
            pull = rho * public.degree * (beta - middle) ** 2
            return np.asarray(loss(beta) + np.sum(beta * dual + pull, axis=2))

        return value

    def compiled(self, t: int, state: Consensus, block: Block, public: Public, noise: SimulatedNoise) -> Array:
        """The same, an agent at a time."""
        beta, counts = np.zeros_like(state.primal), self.counted(public)
        pull = (public.each(self.coupling) * public.degree)[:, 0]
        l1, l2 = (weight * public.mask / public.count for weight in (public.penalty.l1, public.penalty.l2))
        work = 50.0 * self.inner_steps * int(counts.sum()) * public.width * len(beta)
        threads.run(
            inner_loops, beta.shape[0] * beta.shape[1], work, noise.seeds, noise.agents, t, _names(self.inner_steps),
            counts, *self.inner(public.width), *block.arrays, state.dual, self.centre(state, public), pull, l1, l2,
            self.average, beta,
        )  # fmt: skip
        return beta

    def centre(self, state: Consensus, public: Public) -> Array:
        """Mean of ½(β_k + β_l) over the neighbours."""
        return np.asarray(0.5 * (state.primal + state.neighbours / public.degree))

    def counted(self, public: Public) -> NDArray[np.int64]:
        """J of each agent at hand: (A,)."""
        return public.each(self.directions)[:, 0].astype(np.int64)

    def inner(self, width: int) -> tuple[Array, Array, Array]:
        """u_1, u_2 and α of every inner step, each (T,)."""
        return _inner(self.inner_steps, width, self.step, self.radius, self.lipschitz, self.smoothing)

    def absorb(self, t: int, state: Consensus, message: Array, received: Array, public: Public) -> Consensus:
        dual = state.dual + public.each(self.coupling) * (public.degree * message - received)  # (5)
        return Consensus(message, dual, received)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        """(25) of (22), for the agent it is largest for; c1 = 1 as published where nothing bounds a row's gradient."""
        if public.width < 2:
            return []
        counts = self.counted(public)
        one = max(
            float(published.d_zoa_iteration(self._setting(public, k), int(counts[k]), delta).epsilon)
            for k in range(len(public.agents))
        )
        return [published.d_zoa_total(one, self.rounds, delta)]

    def _setting(self, public: Public, k: int) -> published.DZOASetting:
        """What (22) is computed from, for the k-th agent at hand."""
        known = public.row_norm is not None and np.isfinite(public.loss.slope_bound)
        c1 = public.loss.slope_bound * float(public.row_norm or 1.0) if known else 1.0
        return published.DZOASetting(
            c1, float(public.each(self.coupling)[k, 0]), int(public.degree[k, 0]), int(public.sizes[public.agents[k]]),
            public.width, self.inner_steps, self.radius, self.step,
        )  # fmt: skip

    def as_published(self, public: Public, epsilon: float, delta: float) -> tuple[DZOA, float]:
        """As many directions as (22) and (25) ask for a total (epsilon, delta) of one agent, and the ε they claim."""
        setting = self._setting(public, 0)
        share = epsilon / float(published.d_zoa_total(1.0, self.rounds, delta).epsilon)
        count = published.d_zoa_directions(setting, share, delta)
        one = float(published.d_zoa_iteration(setting, count, delta).epsilon)
        return replace(self, directions=count), float(published.d_zoa_total(one, self.rounds, delta).epsilon)

    def stated(self, public: Public) -> Guarantee:
        return Guarantee(Label.REFUTED, "the claimed variance bounds the wrong side: the noise is not there")


@lru_cache(16)
def _names(inner_steps: int) -> NDArray[np.int64]:
    """Keys of the draws of every inner step: (T,). Every round has the same."""
    return np.array([key(f"inner {i}") for i in range(inner_steps)], np.int64)


@lru_cache(16)
def _inner(
    inner_steps: int, width: int, step: float, radius: float, lipschitz: float, smoothing: float
) -> tuple[Array, Array, Array]:
    """What `DZOA.inner` gives, once for all rounds."""
    steps = range(1, inner_steps + 1)
    u = np.array([zeroth.smoothing(i, width, smoothing) for i in steps])
    alpha = np.array([zeroth.step_size(i, width, step, radius, lipschitz) for i in steps])
    return np.ascontiguousarray(u[:, 0]), np.ascontiguousarray(u[:, 1]), alpha
