"""The second moment of all rows as one private sum: the mean of x xᵀ, with noise that the parties share.

Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component analysis",
STOC 2014, whose curator is replaced by a masked sum. A phase before learning: its eigenvectors are a basis that has
been paid for.

    1  every party k: send A_k + E, A_k = s_k Σ x xᵀ over its rows, clipped to norm C; E symmetric, E_ii ~ N(0, σ²),
       E_ij ~ N(0, σ²/2), σ = Δ/(μ√h)
    2  everybody: the estimate is the sum over Σ s_k M_k

paper       code           shape           public argument
C           norm           A               norm
–           mean           S A p(p+1)/2

Differs from the paper: replacement of a row rather than removal; the noise is drawn in parts, by parties.

Privacy: one answer of `questions.OuterProducts`, all rows counting alike, so Δ = √2·C²·s; shared as `summed` proves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.algorithms.base import Array, Parameter
from confide.algorithms.second_moment import Mean
from confide.algorithms.summed import SummedMethod, mass
from confide.problem import questions
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class JointMoment(SummedMethod):
    """The mean of x xᵀ over all parties' rows, in one round.

    norm    above 0: longer rows are clipped to it
    """

    paper = "Dwork et al. 2014, Analyze Gauss"

    rounds: int = 1
    norm: Parameter = 1.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("norm")
        self.once()

    def question(self, t: int, public: Public) -> questions.OuterProducts:
        return questions.OuterProducts(self.enforced_bound(public), rows_alike=True)

    def enforced_bound(self, public: Public) -> Array:
        return public.each(self.norm)

    def enforced(self, public: Public) -> str:
        return "rows are clipped"

    def init(self, public: Public) -> Mean:
        return Mean(np.zeros((1, len(public.agents), self.question(1, public).numbers(public))))

    def points(self, t: int, state: Mean, public: Public) -> tuple[int]:
        return (len(state.mean),)

    def learn(self, t: int, state: Mean, total: Array, public: Public) -> Mean:
        return Mean(total / mass(public))

    def estimate(self, state: Mean, public: Public) -> Array:
        return state.mean
