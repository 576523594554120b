"""PrivatePDML: PDML's two phases with fresh Gaussian noise on a clipped gradient, exactly accounted.

The first phase is PDML's (Wang, Ishii, Du, Cheng and Chen, IEEE Trans. Signal Process. 68, 2020): users randomise their
labels and keep their own ε. The second replaces the exact argmin and its bounded noise by linearised ADMM:

    1  w̃_i ← 0, γ_i ← 0
    2  for t = 1, 2, …
    3    w_i ← argmin of the linearised Ĵ_i at w̃_i + γ_iᵀw + β Σ_l ‖w - ½(w̃_i + w̃_l)‖²
    4    w̃_i ← w_i + N(0, σ² I);  send w̃_i to the neighbours
    5    γ_i ← γ_i + β Σ_l (w̃_i - w̃_l)

`LinearizedADMM` has the symbols.

Differs from the paper: the second phase is not the paper's; that is its purpose.

Privacy: labels ε-locally private at the user; every row (features and reported label) by Gaussian noise at the
sensitivity of `LinearizedADMM`. Slopes are within (1 + coth(ε/2))/2 for binary labels, so with rows of bounded norm no
clipping is needed. Both proven.
"""

from __future__ import annotations

from dataclasses import dataclass

from confide.algorithms.linearized_admm import LinearizedADMM
from confide.algorithms.pdml import check_labels_loss
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class PrivatePDML(LinearizedADMM):
    """Linearised ADMM on randomised labels with constant Gaussian noise."""

    paper = "after Wang et al. 2020, made rigorous"
    needs = "Logistic, Multinomial"

    def check(self, public: Public) -> None:
        super().check(public)
        check_labels_loss(self.name, public)
