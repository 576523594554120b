"""The D-ZOA paper's statements as calculators: (22) and its inverse, (23), (26) and Theorem 3, (29).

Gratton, Venkategowda, Arablouei and Werner, IEEE Trans. Inf. Forensics Secur. 17, 2022. What (22) says of privacy is
**not supported**: Lemma 2 takes an upper bound on the variance for the variance (`confide.privacy.published` says so
with every value). The convergence bounds (23), (26) and (29) are functions of public numbers; (29) needs ‖β^c‖, which
is not public, so that a party may use it for a simulation or with a public bound in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from confide.errors import ConfideError
from confide.papers.theory.conditions import positive
from confide.privacy.published import DZOASetting, PublishedBound, d_zoa_directions, d_zoa_iteration, d_zoa_scale

if TYPE_CHECKING:
    from confide.network.graph import Graph

__all__ = ["DZOASetting", "directions", "inner_gap", "inner_rounds", "iteration_epsilon", "outer_gap", "variance"]

_MOST = 10_000_000  # inner rounds tried before (23) is called out of reach


def iteration_epsilon(setting: DZOASetting, directions: int, delta: float) -> PublishedBound:
    """(22): what the paper claims for one iteration with J = `directions`; never valid."""
    return d_zoa_iteration(setting, directions, delta)


def directions(setting: DZOASetting, epsilon: float, delta: float) -> int:
    """(22) solved for J and rounded, as in the simulations."""
    if not 0 < epsilon <= 1:
        raise ConfideError(f"epsilon={epsilon}: must be in (0, 1], as Theorem 1 asks")
    return d_zoa_directions(setting, epsilon, delta)


def variance(setting: DZOASetting, directions: int) -> float:
    """(17): the variance that Lemma 2 ascribes to every entry of β_k, an upper bound taken for the value."""
    if directions < 1:
        raise ConfideError(f"directions={directions}: must be at least 1")
    return setting.spread / (directions * setting.width)


def inner_rounds(width: int, radius: float, step: float, solution_norm: float, constant: float) -> int:
    """(23): the smallest T with T > 4‖β^c‖² log(2P) / (c R² α0² (s1(1 + log P) + s2)), s1 and s2 summed to T.

    The right side falls as T grows, so the first T that meets it is the smallest, and every larger one meets it too.
    """
    positive(width=width, radius=radius, step=step, constant=constant)
    if not solution_norm >= 0 or not math.isfinite(solution_norm):
        raise ConfideError(f"solution_norm={solution_norm}: must be finite and at least 0")
    need = 4 * solution_norm**2 * math.log(2 * width) / (constant * (radius * step) ** 2)
    sums = 0.0
    for t in range(1, _MOST + 1):
        sums += (1 + math.log(width)) / t + t**-1.5
        if t * sums > need:
            return t
    raise ConfideError(f"(23) is not met by any T up to {_MOST:,}: raise the radius or the step")


def inner_gap(
    width: int, inner_rounds: int, radius: float, lipschitz: float, step: float, smoothing: float, constant: float
) -> float:
    """(26): bound on E[F_k(mean of the inner iterates) - min F_k] after T inner rounds with one direction each."""
    positive(width=width, inner_rounds=inner_rounds, radius=radius, lipschitz=lipschitz, step=step,
              smoothing=smoothing, constant=constant)  # fmt: skip
    start = max(step, 1 / step) * math.sqrt(math.log(2 * width))
    rest = smoothing * math.log(2 * inner_rounds) / math.sqrt(inner_rounds)
    return constant * radius * lipschitz * math.sqrt(width / inner_rounds) * (start + rest)


@dataclass(frozen=True)
class OuterGap:
    """The two terms of (29), and what it says in all; `printed` counts one agent's noise where there are K agents'."""

    start: float  # ‖q(0) - q‖²_G / M
    privacy: float  # Σ_k of the second term
    printed: float  # the second term as printed, of the agent where it is largest

    @property
    def total(self) -> float:
        return self.start + self.privacy


def outer_gap(
    graph: Graph, solution: ArrayLike, rounds: int, epsilon: float, delta: float, *, gradient_bound: float,
    coupling: float, rows: ArrayLike,
) -> OuterGap:  # fmt: skip
    """Theorem 3, (29): E[f(ŵ) - f(w*)] after M = `rounds` from a start at 0, `solution` β^c and N_k = `rows`.

    With r = 0, as the proof takes it, ‖q(0) - q‖²_G = ρ/2·w*ᵀL₊w*, and L₊ = D + A, L₋ = D - A blockwise.
    Differs from the paper: E‖ξ‖² is the sum over all K agents, of which (56) keeps one; `printed` is that one.
    The number of the theorem, which is not proved by the paper: (53) does not follow from (52) (docs/errata.md).
    """
    if not 0 < epsilon <= 1:
        raise ConfideError(f"epsilon={epsilon}: must be in (0, 1], as Theorem 1 asks")
    beta, counts = np.asarray(solution, float), np.broadcast_to(np.asarray(rows, float), graph.size)
    positive(rounds=rounds, gradient_bound=gradient_bound, coupling=coupling, rows=float(np.min(counts)))
    adjacency = np.asarray(graph.adjacency.todense(), float)
    degree = np.asarray(graph.degrees, float)
    plus, minus = (np.linalg.eigvalsh(np.diag(degree) + sign * adjacency) for sign in (1, -1))
    if minus[1] <= 1e-12 * minus[-1]:
        raise ConfideError("the graph is not connected: (29) needs λ_min(L₋) of a connected graph")
    start = coupling / 2 * float(beta @ beta) * float((degree + adjacency.sum(axis=1)).sum()) / rounds
    settings = [DZOASetting(gradient_bound, coupling, int(d), int(n), max(beta.size, 2), 1, 1.0)
                for d, n in zip(degree, counts, strict=True)]  # fmt: skip
    scales = np.array([d_zoa_scale(setting, epsilon, delta) for setting in settings])  # (20)
    terms = coupling * plus[-1] ** 2 / (2 * minus[1]) * beta.size * scales**2
    return OuterGap(start, float(terms.sum()), float(terms.max()))
