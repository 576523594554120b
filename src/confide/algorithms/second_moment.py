"""Private second moment: every agent's mean of x xᵀ, released once with symmetric Gaussian noise and averaged by a hub.

Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component analysis",
STOC 2014. A phase before learning: its eigenvectors are a basis that has been paid for.

    1  A_k ← mean over agent k's rows of x xᵀ, rows clipped to norm C
    2  send A_k + E, E symmetric, E_ii ~ N(0, s²), E_ij ~ N(0, s²/2)
    3  the estimate is the mean of what was sent

paper       code           shape        public argument
A_k         –              A p p
C           norm           A            norm
s           noise_scale    A 1          noise

Differs from the paper: replacement of a row rather than removal, and one release for each agent.

Privacy: one answer of `questions.OuterProducts`, whose sensitivity is √2·C²/M_k: one Gaussian event; proven, rows are
clipped where the question is answered. A symmetric matrix is sent as a vector of the same Euclidean norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from confide.algorithms.base import Array, Parameter, Schedule
from confide.algorithms.gaussian import Ask, GaussianMethod
from confide.problem import questions
from confide.problem.problem import Public


class Mean(NamedTuple):
    """What the hub handed out, over the number of agents: (S, A, p(p+1)/2)."""

    mean: Array


@dataclass(frozen=True, eq=False)
class SecondMoment(GaussianMethod):
    """Every party's mean of x xᵀ, in one round.

    norm    above 0: longer rows are clipped to it
    """

    topology = "all"
    paper = "Dwork et al. 2014, Analyze Gauss"

    rounds: int = 1
    norm: Parameter = 1.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("norm")
        self.once()

    def question(self, t: int, public: Public) -> questions.OuterProducts:
        return questions.OuterProducts(self.enforced_bound(public))

    def enforced_bound(self, public: Public) -> Array:
        return public.each(self.norm)

    def schedule(self, public: Public) -> Schedule:
        widths = np.full(1, self.question(1, public).numbers(public))
        return Schedule(np.ones(1, bool), widths, widths)

    def init(self, public: Public) -> Mean:
        return Mean(np.zeros((1, len(public.agents), self.question(1, public).numbers(public))))

    def message(self, t: int, state: Mean, ask: Ask, public: Public) -> Array:
        return ask(len(state.mean))  # lines 1 and 2

    def absorb(self, t: int, state: Mean, message: Array, received: Array, public: Public) -> Mean:
        return Mean(received / public.count)

    def estimate(self, state: Mean, public: Public) -> Array:
        return state.mean

    def matrix(self, state: Mean, public: Public) -> Array:
        """The second moment everyone has: (S, A, p, p)."""
        return questions.unpack(state.mean, public.features)

    def enforced(self, public: Public) -> str:
        return "rows are clipped"

    def longest_step(self, t: int, public: Public) -> Array:
        return self.longest_answer(t, public)
