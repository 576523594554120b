"""Private second moment: every agent's mean of x xᵀ, released once with symmetric Gaussian noise and averaged by a hub.

Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component analysis",
STOC 2014. A phase before learning: its eigenvectors are a basis that has been paid for.

    1  A_k ← mean over agent k's rows of x xᵀ, rows shortened to norm C
    2  send A_k + E, E symmetric, E_ii ~ N(0, s²), E_ij ~ N(0, s²/2)
    3  the estimate is the mean of what was sent

paper       code           shape        public argument
A_k         –              A p p
C           norm           A            norm
s           noise_scale    A 1          noise × sensitivity

Differs from the paper: replacement of a row rather than removal, and one release for each agent.

Privacy: a symmetric matrix is sent as its diagonal and √2 times its upper triangle, a vector of the same Euclidean
norm. Replacing one row moves A_k by at most ‖x xᵀ - x'x'ᵀ‖_F / M_k ≤ √2·C²/M_k, attained by orthogonal rows. One
Gaussian event; proven, rows are clipped here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from confide.algorithms.base import Array, GaussianMethod, Parameter, Schedule
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


class Mean(NamedTuple):
    """What the hub handed out, over the number of agents: (S, A, p(p+1)/2)."""

    mean: Array


@dataclass(frozen=True, eq=False)
class SecondMoment(GaussianMethod):
    """One round; `noise` multiplies the sensitivity."""

    topology = "all"
    paper = "Dwork et al. 2014, Analyze Gauss"

    rounds: int = 1
    norm: Parameter = 1.0

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("norm")
        if self.rounds != 1:
            raise ValueError(f"{self.name} rounds={self.rounds}: it releases once, rounds must be 1")

    def length(self, public: Public) -> int:
        """Numbers in a symmetric matrix."""
        return public.features * (public.features + 1) // 2

    def schedule(self, public: Public) -> Schedule:
        return Schedule(np.ones(1, bool), np.full(1, self.length(public)))

    def init(self, public: Public) -> Mean:
        return Mean(np.zeros((1, len(public.agents), self.length(public))))

    def local(self, t: int, state: Mean, block: Block | None, public: Public, noise: Noise) -> Array:
        assert block is not None
        A = pack(block.second_moment(public.each(self.norm)[:, 0]))
        sent = np.broadcast_to(A, (len(state.mean), *A.shape))
        return noise.gaussian("moment", sent, self.noise_scale(t, public)) if self.private(public) else sent.copy()

    def absorb(self, t: int, state: Mean, message: Array, received: Array, public: Public) -> Mean:
        return Mean(received / public.count)

    def estimate(self, state: Mean, public: Public) -> Array:
        return state.mean

    def matrix(self, state: Mean, public: Public) -> Array:
        """The second moment everyone has: (S, A, p, p)."""
        return unpack(state.mean, public.features)

    def row_bound(self, public: Public) -> Array:
        return public.each(self.norm)

    def noise_scale(self, t: int, public: Public) -> Array:
        return public.each(self.noise) * self.sensitivity(t, public)

    def sensitivity(self, t: int, public: Public) -> Array:
        return math.sqrt(2.0) * public.each(self.norm) ** 2 / public.sizes[public.agents][:, None]

    def enforced(self, public: Public) -> str:
        return "rows are clipped"


def pack(A: Array) -> Array:
    """Symmetric (…, p, p) as (…, p(p+1)/2) of the same Euclidean norm."""
    i, j = np.triu_indices(A.shape[-1])
    return A[..., i, j] * np.where(i == j, 1.0, math.sqrt(2.0))


def unpack(v: Array, p: int) -> Array:
    """The symmetric matrix again."""
    i, j = np.triu_indices(p)
    A = np.zeros((*v.shape[:-1], p, p))
    A[..., i, j] = A[..., j, i] = v / np.where(i == j, 1.0, math.sqrt(2.0))
    return A
