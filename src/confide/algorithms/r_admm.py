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
η           eta              A 1      penalty
γ           damping          scalar   damping
α           rate             A 1      noise_rate; 0: no noise
V_i         public.degree    A 1

`perturbation="output"` is section VII-B: line 4 without ε_i, and line 5 sends f_i + z, density ∝ exp(-α‖z‖). The exact
f_i is private then, so line 6 and the even round are made of what was sent: they carry z instead of being a gradient.
`recycle=False` leaves lines 6 to 8 out: every round is an odd one, to see what the even ones bring.

Differs from the paper: V_i is missing from the step of (10) and a bracket of the KKT line is misplaced in print. The
sum in line 7 reduces to η Σ_j [f_i(2k-2) + f_j(2k-2) - 2f_j(2k-1)]: no data. The start is 0 rather than random.

Privacy: an odd round costs what `objective` derives, which replaces Theorem V.1's constant 2.8 and its condition on
c1; an even round is post-processing (Lemma V.1). Proven with `release_noise`, else assumed. Output perturbation: by
h-strong convexity the argmins of neighbours, each found to within τ/h, lie at most 2(sb·q/B + τ)/h apart, so a round
costs what the objective ½‖f - f_i‖² + zᵀf would: no determinant, a shift in one direction. Proven where rows are
clipped; the paper gives no bound for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from confide.algorithms.base import Array, Consensus, Schedule
from confide.algorithms.objective import PerturbedADMM, bounded, row_length
from confide.privacy import Event, Guarantee, Label, ObjectivePerturbation
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
    """Odd rounds minimise, even rounds recycle."""

    paper = "Zhang et al. 2020, R-ADMM"
    claim = "R-ADMM, Theorem V.1"

    damping: float = 0.5
    perturbation: str = "objective"
    recycle: bool = True

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("damping")
        if self.perturbation not in ("objective", "output"):
            raise ValueError(f"{self.name} perturbation={self.perturbation!r}: must be 'objective' or 'output'")
        if self.perturbation == "output" and np.any(public.each(self.release_noise) > 0):
            raise ValueError(f"{self.name}: output perturbation is itself noise on the release, leave release_noise 0")

    def minimises(self, t: int) -> bool:
        """Whether round t is one of the paper's odd rounds, which touch data."""
        return t % 2 == 1 or not self.recycle

    def schedule(self, public: Public) -> Schedule:
        touches = np.array([self.minimises(t) for t in range(1, self.rounds + 1)])
        return Schedule(touches, np.full(self.rounds, public.width))

    def init(self, public: Public) -> Recycled:
        zero = np.zeros((1, len(public.agents), public.width))
        return Recycled(zero, zero, zero, zero)

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
        dual = state.dual + self.dual_step(t, public) * (degree * message - received)  # (13)
        return Recycled(message, dual, received, recycled)

    def dual_step(self, t: int, public: Public) -> Array:
        return self.eta(t, public)

    # --- output perturbation ----------------------------------------------------------------------------------------

    def release(self, t: int, public: Public) -> list[Event]:
        if self.perturbation == "objective":
            return super().release(t, public)
        slope = public.loss.slope_bound * row_length(public) * public.scale
        apart = 2.0 * (slope + self.tolerance) / self.convexity(t, public)
        return [ObjectivePerturbation(self.rate(t, public)[:, 0], apart[:, 0], 0.0, width=public.width, rank=1)]

    def guarantee(self, public: Public) -> Guarantee:
        if self.perturbation == "objective" or not self.private(public) or not bounded(public):
            return super().guarantee(public)
        return Guarantee(Label.PROVEN, "rows are clipped, and the solver's residual counts in the sensitivity")

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        return super().claims(public, delta) if self.perturbation == "objective" else []
