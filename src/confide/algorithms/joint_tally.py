"""Counts, or a mean loss, over all rows as one private sum: how good a model is, on rows that nothing learned from.

No paper. One round, on rows that a public model has already been applied to: a row is the number of a public cell, such
as (class, score), or a residual.

    1  with `edges`: every party sends s_k times how many of its rows are in each cell, else s_k Σ ℓ(residual), each
       within ±`clip`; with noise of deviation σ = Δ/(μ√h)
    2  everybody: the sum over Σ s_k M_k, which is each cell's share of the rows, or the mean loss

symbol      code       shape        public argument
cells       edges      S A cells    edges
ℓ           public.loss             of a residual x, the target being 0: ℓ(0; -x)

Privacy: one answer of `questions.Counts`, Δ = √2·s, or of `questions.Differences` between the models -1 and 0 of a
single feature, Δ = 2·clip·s; shared as `summed` proves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.algorithms.base import Array
from confide.algorithms.second_moment import Mean
from confide.algorithms.summed import SummedMethod, mass
from confide.errors import ConfideError
from confide.problem.problem import Public
from confide.problem.questions import Counts, Differences, Question


@dataclass(frozen=True, eq=False)
class JointTally(SummedMethod):
    """Counts over all parties' rows, in one round.

    edges    rising numbers: the borders of the cells that are counted
    """

    needs = "cells of a public grid; or residuals, one feature without intercept, and a clip"

    rounds: int = 1
    edges: tuple[float, ...] = ()

    def check(self, public: Public) -> None:
        super().check(public)
        self.once()
        if any(b <= a for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ConfideError(f"{self.name} edges={self.edges}: must rise")
        if not self.edges and public.width != 1:
            raise ConfideError(f"{self.name}: {public.width} coefficients, residuals are one feature without intercept")

    def enforced_bound(self, public: Public) -> Array:
        return public.each(1.0 if self.edges else self.clip)

    def question(self, t: int, public: Public) -> Question:
        bound = self.enforced_bound(public)
        return Counts(bound, tuple(self.edges)) if self.edges else Differences(bound, 1, 1.0)

    def enforced(self, public: Public) -> str:
        return "a row is in one cell" if self.edges else "each row's loss is clipped"

    def init(self, public: Public) -> Mean:
        return Mean(np.zeros((1, len(public.agents), self.question(1, public).numbers(public))))

    def points(self, t: int, state: Mean, public: Public) -> tuple[Any, ...]:
        S, A = state.mean.shape[:2]
        if self.edges:
            return (S,)
        return np.full((S, 1, A, 1), -1.0), np.zeros((S, 1, A, 1))

    def learn(self, t: int, state: Mean, total: Array, public: Public) -> Mean:
        return Mean(total / mass(public))

    def estimate(self, state: Mean, public: Public) -> Array:
        return state.mean
