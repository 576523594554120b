"""R-ADMM: ADMM whose even rounds recycle the odd ones and never touch data; private when given noise.

Zhang, Khalili and Liu, "Recycled ADMM: Improving the Privacy and Accuracy of Distributed Algorithms", IEEE Trans.
Inf. Forensics Secur. 15, 2020, Algorithm 1, and Algorithm 3 with a constant η; γ_i stands for the paper's 2λ_i.

    1  f_i ← 0, γ_i ← 0
    2  for k = 1, 2, …
    3    draw ε_i with density ∝ exp(-α‖ε‖)
    4    f_i(2k-1) ← argmin O(f) + (γ_i + ε_i)ᵀf + η Σ_j ‖½(f_i + f_j) - f‖²              (12), (18)
    5    send f_i(2k-1);  γ_i ← γ_i + η Σ_j (f_i(2k-1) - f_j(2k-1))                        (13)
    6    ε_i + ∇O(f_i(2k-1)) = -γ_i(2k-2) - η Σ_j (2f_i(2k-1) - f_i(2k-2) - f_j(2k-2)), by line 4
    7    f_i(2k) ← f_i(2k-1) - {line 6 + γ_i + η Σ_j (f_i - f_j)(2k-1)} / (2ηV_i + γ)        (10), (19)
    8    send f_i(2k)

paper       code             shape    public argument
f_i         primal           S A P
2λ_i        dual             S A P
line 6      recycled         S A P
η           eta              A 1      coupling
γ           damping          scalar   damping
α_i(k)      rate             A 1      noise_rate · noise_profile[k - 1]; 0: no noise
f_i(0)      primal           S A P    start_size · a normal draw of start_seed; 0: from 0
V_i         public.degree    A 1

`perturbation="output"` is section VII-B: line 4 without ε_i, and line 5 sends f_i + z, density ∝ exp(-α‖z‖). The exact
f_i is private then, so line 6 and the even round are made of what was sent: they carry z instead of being a gradient.
`recycle=False` leaves lines 6 to 8 out: every round is an odd one, to see what the even ones bring.

Differs from the paper: V_i is missing from the step of (10) and a bracket of the KKT line is misplaced in print. The
sum in line 7 reduces to η Σ_j [f_i(2k-2) + f_j(2k-2) - 2f_j(2k-1)]: no data. The start is 0 unless `start_size` is
given; a random one is public, and depends on no row. `noise_profile`, one number or one per agent for each round that
minimises, is what α_i(k) is in proportion to: `calibrated` keeps it.

Privacy: an odd round costs what `objective` derives, which replaces Theorem V.1's constant 2.8 and its condition on
c1; an even round is post-processing (Lemma V.1). Proven with `release_noise`, else assumed. Output perturbation: by
h-strong convexity the argmins of neighbours, each found to within 2τ/h, lie at most 2(sb·q/B + 2τ)/h apart (`argmin`):
noise z on a value that moves by one fixed vector (`RadialNoise`). Proven where rows are clipped; the paper gives no
bound for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from confide.algorithms import argmin
from confide.algorithms.base import Array, Consensus, Schedule, row_length
from confide.algorithms.objective import PerturbedADMM, bounded
from confide.errors import ConfideError
from confide.privacy import Event, Guarantee, Label, RadialNoise
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.problem import Public


class Recycled(NamedTuple):
    """Consensus state, and line 6 for the even round that follows."""

    primal: Array
    dual: Array
    neighbours: Array
    recycled: Array


@dataclass(frozen=True, eq=False)
class RADMM(PerturbedADMM):
    """Odd rounds minimise, even rounds recycle.

    damping          γ, at least 0: in the denominator of an even round's step
    noise_profile    (K,) or (K, agents), above 0: what noise_rate is multiplied with in each of the K rounds that
                     minimise; None: 1
    start_size       at least 0: standard deviation of the public random start; 0: from 0
    start_seed       a whole number of at least 0: what the start is drawn from
    perturbation     "objective" (a random linear term) or "output" (noise on what is sent)
    recycle          whether even rounds recycle; else every round minimises
    """

    paper = "Zhang et al. 2020, R-ADMM"
    claim = "R-ADMM, Theorem V.1"

    damping: float = 0.5
    noise_profile: Any = None  # (K,) or (K, agents), K rounds that minimise
    start_size: float = 0.0
    start_seed: int = 0
    perturbation: str = "objective"
    recycle: bool = True

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("damping", "start_size")
        self.counts("start_seed", least=0)
        self.profile("noise_profile", public)
        if self.perturbation not in ("objective", "output"):
            raise ConfideError(f"{self.name} perturbation={self.perturbation!r}: must be 'objective' or 'output'")
        if self.perturbation == "output" and np.any(public.each(self.release_noise) > 0):
            raise ConfideError(
                f"{self.name}: output perturbation is itself noise on the release, leave release_noise 0"
            )

    def profile(self, name: str, public: Public) -> Array | None:
        """A parameter for each round that minimises and each agent, (K, agents); None if it is not given."""
        given = getattr(self, name)
        if given is None:
            return None
        values, count = np.asarray(given, float), sum(self.minimises(t) for t in range(1, self.rounds + 1))
        fits = values.ndim in (1, 2) and len(values) >= count and values.shape[1:] in ((), (public.count,))
        if not (fits and np.all(np.isfinite(values)) and np.all(values > 0)):
            raise ConfideError(
                f"{self.name} {name} of shape {values.shape}: must be finite, above 0, and one for each of the {count} "
                f"rounds that minimise, or one for each of them and each of {public.count} agents"
            )
        return np.broadcast_to(values.reshape(len(values), -1), (len(values), public.count))

    def turn(self, t: int) -> int:
        """k of round t, from 0: which of the rounds that minimise it is, or follows."""
        return (t + 1) // 2 - 1 if self.recycle else t - 1

    def rate(self, t: int, public: Public) -> Array:
        profile = self.profile("noise_profile", public)
        rate = super().rate(t, public)
        return rate if profile is None else rate * profile[self.turn(t)][public.agents][:, None]

    def minimises(self, t: int) -> bool:
        """Whether round t is one of the paper's odd rounds, which touch data."""
        return t % 2 == 1 or not self.recycle

    def schedule(self, public: Public) -> Schedule:
        touches = np.array([self.minimises(t) for t in range(1, self.rounds + 1)])
        widths = np.full(self.rounds, public.width)
        return Schedule(touches, widths, widths)

    def init(self, public: Public) -> Recycled:
        zero = np.zeros((1, len(public.agents), public.width))
        if self.start_size == 0:
            return Recycled(zero, zero, zero, zero)
        assert public.graph is not None
        start = self.start_size * np.random.default_rng(self.start_seed).normal(size=(public.count, public.width))
        around = public.graph.adjacency @ start
        return Recycled(start[public.agents][None], zero, np.asarray(around)[public.agents][None], zero)

    def local(self, t: int, state: Recycled, block: Block | None, public: Public, noise: Noise) -> Array:  # type: ignore[override]
        if self.minimises(t):
            before = Consensus(*state[:3])
            if self.perturbation == "objective":
                return super().local(t, before, block, public, noise)  # (12), (18)
            f = self.minimise(before, block, public, self.eta(t, public))
            return f + noise.gamma_norm("primal", public.width) / self.rate(t, public) if self.private(public) else f
        eta, degree = self.eta(t, public), public.degree
        gap = eta * (degree * state.primal - state.neighbours)
        return state.primal - (state.recycled + state.dual + gap) / (2 * eta * degree + self.damping)  # (19)

    def absorb(self, t: int, state: Recycled, message: Array, received: Array, public: Public) -> Recycled:  # type: ignore[override]
        if not self.minimises(t):
            return Recycled(message, state.dual, received, state.recycled)
        degree = public.degree
        before = degree * state.primal + state.neighbours
        recycled = -state.dual - self.eta(t, public) * (2 * degree * message - before)
        dual = state.dual + self.dual_size(t, public) * (degree * message - received)  # (13)
        return Recycled(message, dual, received, recycled)

    # --- output perturbation ----------------------------------------------------------------------------------------

    def release(self, t: int, public: Public) -> list[Event]:
        if self.perturbation == "objective":
            return super().release(t, public)
        slope = public.loss.slope_bound * row_length(public) * public.scale
        apart = 2.0 * (slope + 2.0 * self.tolerance) / self.convexity(t, public)  # half of it for floating point
        return [RadialNoise(self.rate(t, public)[:, 0], apart[:, 0], public.width)]

    def stated(self, public: Public) -> Guarantee:
        if self.perturbation == "objective" or not self.private(public) or not bounded(public):
            return super().stated(public)
        if gap := argmin.gap(self, public):
            return Guarantee(Label.ASSUMED, gap)
        return Guarantee(Label.PROVEN, "rows are clipped, and the solver's residual counts in the sensitivity")

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        return super().claims(public, delta) if self.perturbation == "objective" else []
