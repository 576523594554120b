"""FDP-ADMM: DP-ADMM for penalised quantile regression on functional data, with a server.

Zhou and Xiang, "ADMM-based differential privacy learning for penalized quantile regression on distributed functional
data", Mathematics 10(16), 2022, Algorithm 2; rows are the curves' scores in a basis (`confide.problem.functional`).

    1  w ← 0, w̃_i ← 0, γ_i ← 0
    2  for l = 1, 2, …
    3    w_i ← argmin of (19): linearised loss and penalty, -γ_iᵀ(w_i - w) + ρ/2 ‖w_i - w‖²     (21)
    4    w̃_i ← w_i + N(0, σ²_i,l I),  σ_i,l = z·2c1 / (m_i h_l),  h_l = ρ + 1/η_l              (22)
    5    send w̃_i - γ_i/ρ to the hub;  w ← mean of what was sent                               (23)
    6    γ_i ← γ_i - ρ (w̃_i - w)                                                               (24)

Lines 3 to 6 are `DPADMM`'s; its table gives the symbols.

paper           code       public argument
h_l σ_i,l       noise      published(public, ε, δ): z·2c1/m_i with z = √(2 ln(1.25/δ))/ε
c1              row_bound  clip, or assumed_bound as published

Differs from the paper: Lemma 2's m_i² is m_i; Theorem 1's ε is that of one iteration, the total over L iterations is
μ = √L/z; the published tables fit z = √2·ln(1.25/δ)/ε (`published(…, tables=True)`) and the mean of all w
(`average_from=0`). Row gradients are clipped, never residuals or data: c1 ≈ 1 fails for 57 % of the paper's rows.
Two options that the paper does not have, both off by default: `at_average` linearises (19) at the average w, whose
noise is √M times smaller than that of w̃_i, and then needs no γ_i; `budget_growth` g gives iteration l a share
∝ l^g of μ² (σ_i,l falls by l^(g/2)), since late iterates count most in the model.

Privacy: as DP-ADMM, with either option: w is public. Proven with `clip`, else assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from confide.algorithms.base import Array
from confide.algorithms.dp_admm import DPADMM, ServerState
from confide.algorithms.gaussian import Ask
from confide.errors import ConfideError
from confide.privacy import Label, published
from confide.privacy.published import PublishedBound
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class FDPADMM(DPADMM):
    """DP-ADMM with the published noise formula.

    at_average       whether (19) is linearised at the hub's average w, which needs no dual; else at the agent's own
                     w̃_i
    budget_growth    at least 0: the share of μ² of round t grows as t^budget_growth; 0: constant noise
    """

    paper = "Zhou and Xiang 2022, FDP-ADMM"

    at_average: bool = False
    budget_growth: float = 0.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.nonnegative("budget_growth")

    def message(self, t: int, state: ServerState, ask: Ask, public: Public) -> Array:
        here = state._replace(primal=state.average) if self.at_average else state
        return super().message(t, here, ask, public)

    def absorb(self, t: int, state: ServerState, message: Array, received: Array, public: Public) -> ServerState:
        new = super().absorb(t, state, message, received, public)
        return new._replace(dual=state.dual) if self.at_average else new

    def noise_scale(self, t: int, public: Public) -> Array:
        return super().noise_scale(t, public) * float(t) ** (-self.budget_growth / 2)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        if not self.private(public) or self.budget_growth > 0:  # Theorem 1 has one ε for all iterations
            return []
        z = float(np.min(self.noise_scale(1, public) / self.sensitivity(1, public)))
        iteration = math.sqrt(2.0 * math.log(1.25 / delta)) / z
        proven = self.guarantee(public).label == Label.PROVEN
        return [published.fdp_admm(iteration, self.rounds, delta, clipped=proven)]

    def published(self, public: Public, epsilon: float, delta: float, *, tables: bool = False) -> Self:
        """The same method with the paper's noise for (epsilon, delta) in each iteration, or that of its tables."""
        z = multiplier(epsilon, delta, tables=tables)
        if not self.bounded(public):
            raise ConfideError(f"{self.name}: row gradients are unbounded: set clip or assumed_bound")
        return replace(self, noise=z * self.sensitivity(1, public.whole)[:, 0])


def multiplier(epsilon: float, delta: float, *, tables: bool = False) -> float:
    """z, the noise in units of the sensitivity: the paper's for one iteration, or that of its tables."""
    if not epsilon > 0 or not 0 < delta < 1:
        raise ConfideError(f"epsilon={epsilon}, delta={delta}: epsilon must be above 0, delta strictly in (0, 1)")
    log = math.log(1.25 / delta)
    return math.sqrt(2.0) * (log if tables else math.sqrt(log)) / epsilon
