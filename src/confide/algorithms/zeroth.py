"""Two-point zeroth-order gradients: what D-ZOA, OR-ZO and ZOO-ADMM share.

Duchi, Jordan, Wainwright and Wibisono, "Optimal rates for zero-order convex optimization", IEEE Trans. Inf. Theory
61(5), 2015: two random vectors, the first of which keeps the second away from points where f is not smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.algorithms.base import Algorithm, Array
from confide.privacy.noise import Noise
from confide.problem.block import Block
from confide.problem.problem import Public


@dataclass(frozen=True, eq=False)
class CentralZeroth(Algorithm):
    """What the central baselines have in common.

    directions      J, a whole number of at least 1: random directions per step
    step            α0, above 0: the factor of every step
    radius          R, above 0: what the step's formula takes for the distance to the solution
    lipschitz       L, above 0: what the step's formula takes for the Lipschitz constant
    smoothing       u1, above 0: how far apart the two points of the first difference lie
    average_from    in [0, 1]: the model is the mean over rounds after this fraction
    """

    topology = "central"

    directions: int = 20
    step: float = 0.54
    radius: float = 1.0
    lipschitz: float = 2.5
    smoothing: float = 1.0
    average_from: float = 0.5

    def check(self, public: Public) -> None:
        super().check(public)
        self.positive("step", "radius", "lipschitz", "smoothing")
        self.counts("directions")
        self.fraction("average_from")


Values = Callable[[Array], Array]  # (S·J, A, P) -> (S·J, A)


def two_point(value: Values, beta: Array, u1: float, u2: float, directions: Any, noise: Noise, name: str) -> Array:
    """Mean over J directions of [F(β + u1ν1 + u2ν2) - F(β + u1ν1)]/u2 · ν2: (7), (8) of D-ZOA; beta (S, A, P).

    `directions` J is one number, or one per agent (A,).
    """
    seeds, agents, width = beta.shape
    most = int(np.max(directions))
    draws = noise.public_normal(name, 2 * most * width).reshape(seeds, agents, most, 2, width)
    nu1, nu2 = (np.moveaxis(draws[:, :, :, i], 2, 1) for i in (0, 1))  # each (S, J, A, P)
    base = beta[:, None] + u1 * nu1
    rise = value(_flat(base + u2 * nu2)) - value(_flat(base))
    used = np.arange(most)[:, None] < directions  # (J, A), or (J, 1)
    total = np.sum(rise.reshape(seeds, most, agents, 1) / u2 * nu2 * used[:, :, None], axis=1)
    return total / np.reshape(directions, (-1, 1))


def _flat(points: Array) -> Array:
    return points.reshape(-1, *points.shape[2:])


def risk(block: Block, public: Public) -> Values:
    """F = f_k: the agent's loss and its share of the penalty."""
    return lambda beta: block.value(beta) + np.sum(public.penalty.terms(beta) * public.mask, axis=2) / public.count


def step_size(t: int, width: int, start: float, radius: float, lipschitz: float) -> float:
    """α_t = α0·R / (L √(t P log 2P))."""
    return start * radius / (lipschitz * math.sqrt(t * width * math.log(2 * width)))


def smoothing(t: int, width: int, u1: float) -> tuple[float, float]:
    """u_{1,t} = u1/t and u_{2,t} = u1/(P t)²."""
    return u1 / t, u1 / (width * t) ** 2
