"""PDML: labels randomised by the users, then ADMM with one bounded objective noise and decaying primal noise.

Wang, Ishii, Du, Cheng and Chen, "Privacy-preserving distributed machine learning via local randomization and ADMM
perturbation", IEEE Trans. Signal Process. 68, 2020. Phase 1 is at the user (`privacy.randomize_labels`); the rows here
carry randomised labels, and the loss is `NoisyLabels(Logistic(), epsilon)`, equation (19).

    1  draw η_i once, bounded by R
    2  w̃_i ← 0, γ_i ← 0
    3  for t = 1, 2, …
    4    w_i ← argmin Ĵ_i(w) + η_iᵀw/n + γ_iᵀw + β Σ_l ‖w - ½(w̃_i + w̃_l)‖²      (15), Ĵ_i of (22)
    5    w̃_i ← w_i + N(0, ρ^(t-1) V² I)                                            (16)
    6    send w̃_i to the neighbours
    7    γ_i ← γ_i + β Σ_l (w̃_i - w̃_l)                                            (17)

paper       code               shape    public argument
w̃_i         primal             S A P
γ_i         dual               S A P
β           coupling           A 1      coupling
η_i         objective_noise    S A P    objective_noise: R; drawn once per run, never sent
V_i         noise              A 1      noise
ρ           noise_decay        scalar   noise_decay
a           public.penalty     scalar   L2(a), a > 0

Differs from the paper: η_i is uniform in the ℓ2 ball of radius R. The text's ‖η_i‖∞ ≤ R is `cube=True`, which fits its
own table worse; with `exponential=True` η_i has the density ∝ exp(-R‖η‖) of Remark 1. Every label is reported with the
odds e^ε : 1.
An intercept is not penalised and may then have no optimum with few rows or a small ε: append a column of ones instead.

Privacy: labels are ε-locally private whatever happens afterwards: proven, at the user. Features: none. Noise bounded
by R and drawn once gives only (0, δ) with δ far above 1/m, and the Gaussian part falls so fast that its exact total
grows like ρ^(-T/2); it is charged as it is. `PrivatePDML` is the rigorous replacement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.admm import ADMM
from confide.algorithms.base import Array, Consensus, Parameter
from confide.algorithms.gaussian import GaussianRelease
from confide.errors import ConfideError
from confide.files.library import special
from confide.privacy import Guarantee, Label, published
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.problem.block import Block
from confide.problem.losses import Logistic, Multinomial, NoisyLabels
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class PDML(GaussianRelease, ADMM):
    """Exact ADMM on randomised labels, with the two noises of the paper.

    coupling           above 0: how strongly neighbours are pulled together
    objective_noise    R, at least 0: radius of the objective's noise, drawn once per run; 0: none
    exponential        whether that noise has the density ∝ exp(-R‖η‖) of Remark 1; else it is uniform
    cube               whether it is uniform in ‖η‖∞ ≤ R, as the text has it; else in the ball ‖η‖ ≤ R
    noise_decay        in (0, 1]: the factor by which the variance of messages' noise falls per round
    """

    paper = "Wang et al. 2020, PDML"
    needs = "Logistic, Multinomial"

    coupling: Parameter = 0.2
    objective_noise: float = 0.0
    exponential: bool = False
    cube: bool = False
    noise_decay: float = 0.8

    def check(self, public: Public) -> None:
        super().check(public)
        check_labels_loss(self.name, public)
        self.nonnegative("objective_noise")
        self.positive("noise_decay")
        self.fraction("noise_decay")
        if self.cube and self.exponential:
            raise ConfideError(f"{self.name}: cube=True and exponential=True: give at most one of them")
        if isinstance(public.loss, NoisyLabels) and not public.penalty.l2 > 0:
            raise ConfideError(f"{self.name}: the corrected loss is unbounded below, give L2(a) with a above 0")

    def local(self, t: int, state: Consensus, block: Block | None, public: Public, noise: Noise) -> Array:
        eta = self.bounded_noise(public, noise) / public.count
        w = self.minimise(state, block, public, public.each(self.coupling), eta)  # (15)
        if not self.private(public):
            return w
        return noise.gaussian("primal", w, self.noise_scale(t, public))  # (16)

    def bounded_noise(self, public: Public, noise: Noise) -> Array | float:
        """η_i, the same in every round."""
        if self.objective_noise == 0:
            return 0.0
        if self.exponential:
            return noise.once().gamma_norm("objective", public.width) / self.objective_noise
        ball = noise.once().ball("objective", public.width)
        if self.cube:  # uniform in [-R, R] by the normal's distribution function
            one = np.ones((len(public.agents), 1))
            normal = noise.once().gaussian("cube", np.zeros_like(ball), one)
            return self.objective_noise * (2.0 * special.ndtr(normal) - 1.0)
        return self.objective_noise * ball

    def noise_scale(self, t: int, public: Public) -> Array:
        return public.each(self.noise) * self.noise_decay ** ((t - 1) / 2)

    def sensitivity(self, t: int, public: Public) -> Array:
        return 2.0 * (self.row_bound(public) * public.scale + self.tolerance) / self.convexity(t, public)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        made = []
        if isinstance(public.loss, NoisyLabels) and public.loss.epsilon is not None:
            made.append(published.pdml_labels(float(public.loss.epsilon)))
        if self.private(public) and self.bounded(public):
            first = float(np.max(self.sensitivity(1, public) / self.noise_scale(1, public)))
            made.append(published.pdml_iteration(first, self.rounds, delta))
        return made

    def stated(self, public: Public) -> Guarantee:
        labels = "labels are ε-locally private (proven); " if isinstance(public.loss, NoisyLabels) else ""
        if not self.private(public) and self.objective_noise == 0:
            return Guarantee(Label.NONE, labels + "features: messages carry no noise")
        return Guarantee(Label.NONE, labels + "features: noise drawn once and bounded hides no row")


def check_labels_loss(name: str, public: Public) -> None:
    """Only losses whose correction for randomised labels is convex."""
    if not isinstance(public.loss.base, (Logistic, Multinomial)):
        given = type(public.loss.base).__name__
        raise ConfideError(f"{name} with {given}: needs Logistic or Multinomial: its corrected loss is not convex")
    if not np.isfinite(public.loss.slope_bound):
        raise ConfideError(f"{name} needs a loss of bounded slope")
