"""Recycled ADMM's theorems: when MR-ADMM converges, and how many rows it needs (Zhang, Khalili and Liu, 2020).

    from confide.papers.theory import recycled_admm
    print(recycled_admm.least_damping(graph, coupling=1.0, smoothness=437.5))       # the γ that Theorem IV.1 asks for

D is the diagonal matrix of degrees, A the adjacency, W = diag(η_i), D̃ = diag(2η_iV_i + γ), D_M = diag(M_i²) with M_i
the Lipschitz constant of agent i's gradient. X ≻ Y compares symmetric parts: xᵀ(X - Y)x > 0 for every x.

Differs from the paper, in the paper's numbering:
  Theorem IV.1   (ii) can't be met on a bipartite graph with a common η, however large γ: D + A is singular there. The
                 text says that a large γ always does. Neither can η_i(2k-1) = q^k with q > 1 be bounded.
  Theorem VI.2   for α → ∞ it asks for twice the rows of Theorem VI.1, not the same number; w is open in both.
The privacy bound of Theorem V.1 is `confide.privacy.published.r_admm`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.papers.theory.conditions import NotSatisfiable as NotSatisfiable

Array = NDArray[np.float64]
_SCALES = np.linspace(-6, 9, 46)  # log10 of L where Theorem IV.1's is looked for first,
_FACTORS = np.linspace(-3, 3, 19)  # and of μ - 1


# --- Theorem IV.1: convergence ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Convergence:
    """Conditions (i) and (ii) of Theorem IV.1 at one L and μ: the smallest eigenvalue of left minus right side.

    `second` is relative to the largest eigenvalue of W(D + A), so that both are pure numbers.
    """

    first: float
    second: float
    L: float
    mu: float

    @property
    def holds(self) -> bool:
        return self.first > 0 and self.second > 1e-12  # a singular D + A leaves rounding behind


def condition(
    graph: Graph, coupling: Any, damping: float, smoothness: Any, *, L: float, mu: float, next_coupling: Any = None
) -> Convergence:
    """(i) and (ii) for η_i(t) = `coupling`, η_i(t+1) = `next_coupling` (the same by default), γ = `damping`, M_i.

    With L = mu = 2 and one constant coupling these are the paper's (iii) and (iv).
    """
    if not (L > 0 and mu > 1):
        raise ConfideError(f"L={L}, mu={mu}: Theorem IV.1 takes L > 0 and mu > 1")
    terms = _Terms(graph, coupling, damping, smoothness, next_coupling)
    first, second = terms.margins(np.array([float(L)]), np.array([float(mu)]))
    return Convergence(float(first[0]), float(second[0]), L, mu)


def best_condition(
    graph: Graph, coupling: Any, damping: float, smoothness: Any, *, next_coupling: Any = None
) -> Convergence:
    """The conditions at the L and μ, "some constants" in the text, where the smaller margin is largest.

    Looked for on a logarithmic grid that closes in on its best point.
    """
    terms = _Terms(graph, coupling, damping, smoothness, next_coupling)
    scale, factor, width = _SCALES, _FACTORS, 1.0
    for _ in range(5):
        L, mu = (v.ravel() for v in np.meshgrid(10.0**scale, 1 + 10.0**factor))
        first, second = terms.margins(L, mu)
        best = int(np.argmax(np.minimum(first, second)))
        scale = math.log10(L[best]) + width * np.linspace(-1, 1, 19)
        factor = math.log10(mu[best] - 1) + width * np.linspace(-1, 1, 19)
        width /= 4
    return Convergence(float(first[best]), float(second[best]), float(L[best]), float(mu[best]))


def least_damping(graph: Graph, coupling: Any, smoothness: Any, *, next_coupling: Any = None) -> float:
    """Smallest γ, to a per cent, at which Theorem IV.1 promises convergence for some L and μ.

    Raises NotSatisfiable where no γ does: on a bipartite graph with a common η, or with η_i too unequal.
    """
    after = _each(graph, "next_coupling", coupling if next_coupling is None else next_coupling)
    limit = float(_lowest(after[:, None] * graph.signless_laplacian.toarray()))  # (ii) for γ → ∞
    if limit <= 1e-12 * float(after.max()):
        raise NotSatisfiable(
            f"W(D+A) has the smallest eigenvalue {limit:.2g}: (ii) fails for every γ"
            + (" (the graph is bipartite)" if _bipartite(graph) else "")
        )

    def holds(damping: float) -> bool:
        return best_condition(graph, coupling, damping, smoothness, next_coupling=next_coupling).holds

    if holds(0.0):
        return 0.0
    high = 1e-3
    while not holds(high):
        high *= 10
        if high > 1e15:
            raise NotSatisfiable("no γ up to 1e15 meets (i) and (ii)")
    low = high / 10
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def schedule_allowed(growth: Any) -> bool:
    """Whether η_i(2k-1) = η_i·growth_i^k stays positive, does not fall and is bounded, as the theorem demands."""
    return bool(np.all(np.asarray(growth, float) == 1.0))


class _Terms:
    """The matrices of (i) and (ii) that do not depend on L and μ."""

    def __init__(self, graph: Graph, coupling: Any, damping: float, smoothness: Any, next_coupling: Any) -> None:
        eta = _each(graph, "coupling", coupling)
        after = eta if next_coupling is None else _each(graph, "next_coupling", next_coupling)
        if np.any(after < eta):
            raise ConfideError(f"next_coupling={next_coupling}: Theorem IV.1 needs η_i(t+1) ≥ η_i(t) = {coupling}")
        if not (math.isfinite(damping) and damping >= 0):
            raise ConfideError(f"damping={damping}: must be finite and at least 0")
        plus, minus = graph.signless_laplacian.toarray(), graph.laplacian.toarray()
        D = 2 * eta * graph.degrees + damping
        self.least = float(D.min())
        self.M2 = np.diag(_each(graph, "smoothness", smoothness) ** 2)
        self.left = after[:, None] * plus  # W(t+1)(D+A)
        self.scaled = self.left / D  # W(t+1)(D+A)D̃⁻¹
        self.drift = self.scaled @ (eta[:, None] * minus)
        self.back = self.scaled @ self.left
        self.inverse = np.linalg.pinv(after[:, None] * minus, rcond=1e-12) @ self.M2
        self.unit = float(np.linalg.eigvalsh(_symmetric(self.left))[-1])

    def margins(self, L: Array, mu: Array) -> tuple[Array, Array]:
        """Smallest eigenvalues of left minus right side of (i), and of (ii) over that of W(D+A), for every (L, μ)."""
        L, mu = L[:, None, None], mu[:, None, None]
        weight = L * mu / (2 * self.least)
        first = np.eye(len(self.left)) + self.scaled - weight * self.inverse
        second = self.left - self.drift - (2 / L) * self.back - weight / (mu - 1) * self.M2
        return _lowest(first), _lowest(second) / self.unit


# --- Theorems VI.1 and VI.2: sample complexity ------------------------------------------------------------------------


def rows_needed(excess: Any, gap: float, reference_norm: float, failure: float, *, w: float) -> float:
    """Theorem VI.1: rows an agent needs so that non-private MR-ADMM's loss is within `gap` τ of the reference's.

    `excess` Δ_i(k) is the loss above the optimum's, one number an odd iteration; `reference_norm` is ‖f_ref‖, `failure`
    δ. The constant w is not given in the paper.
    """
    spare = _spare(excess, gap)
    _check(reference_norm, failure, w)
    return float(w * np.max(reference_norm**2 * -math.log(failure) / spare**2))


def private_rows_needed(
    excess: Any, gap: float, reference_norm: float, failure: float, *,
    w: float, a: float, noise_rate: Any, width: int, parties: int, loss_weight: float,
) -> float:  # fmt: skip
    """Theorem VI.2: the same for private MR-ADMM with noise density ∝ exp(-α‖ε‖), with probability 1 - 2δ.

    `noise_rate` α_i(k) is a number or one per iteration, `width` d, `parties` N, `loss_weight` C. Raises NotSatisfiable
    where the noise takes all of τ: no number of rows is enough then.
    """
    spare = _spare(excess, gap)
    _check(reference_norm, failure, w)
    taken = _noise_term(noise_rate, a, width, parties, loss_weight, failure)
    left = parties * loss_weight * spare**2 / (2 * reference_norm**2) - taken
    if np.any(left <= 0):
        need = least_noise_rate(excess, gap, reference_norm, failure, a=a, width=width, loss_weight=loss_weight)
        raise NotSatisfiable(
            f"no number of rows is enough at noise_rate={np.min(noise_rate):g}: τ={gap:g} needs one above {need:.4g}"
        )
    return float(w * np.max(loss_weight * parties * -math.log(failure) / left))


def least_noise_rate(
    excess: Any, gap: float, reference_norm: float, failure: float, *, a: float, width: int, loss_weight: float
) -> float:
    """α above which Theorem VI.2 holds for enough rows: √(2(1+a))·‖f_ref‖·d·ln(d/δ) / (C·(τ - Δ))."""
    spare = _spare(excess, gap)
    _check(reference_norm, failure, 1.0)
    root = math.sqrt(_noise_term(1.0, a, width, 1, loss_weight, failure) * 2 / loss_weight)
    return float(reference_norm * root / np.min(spare))


def _noise_term(noise_rate: Any, a: float, width: int, parties: int, loss_weight: float, failure: float) -> Array:
    """(1+a)·N·d²/(C·α²)·ln(d/δ)²."""
    rate = np.asarray(noise_rate, float)
    for name, value in (("noise_rate", rate), ("a", a), ("width", width), ("parties", parties), ("C", loss_weight)):
        if not (np.all(np.isfinite(value)) and np.all(np.asarray(value) > 0)):
            raise ConfideError(f"{name}={value}: must be finite and above 0")
    return np.asarray((1 + a) * parties * (width * math.log(width / failure) / rate) ** 2 / loss_weight)


# --- common -----------------------------------------------------------------------------------------------------------


def _spare(excess: Any, gap: float) -> Array:
    """τ - Δ_i(k), which must be above 0."""
    spare = gap - np.asarray(excess, float)
    if not np.all(spare > 0):
        raise NotSatisfiable(f"τ={gap:g} is not above Δ={np.max(excess):g}: the iterate itself is further away")
    return spare


def _check(norm: float, failure: float, w: float) -> None:
    if not (norm > 0 and w > 0):
        raise ConfideError(f"reference_norm={norm}, w={w}: both must be above 0")
    if not 0 < failure < 1:
        raise ConfideError(f"failure={failure}: must lie between 0 and 1")


def _each(graph: Graph, name: str, value: Any) -> Array:
    v = np.asarray(value, float)
    if v.shape not in ((), (graph.size,)) or not (np.all(np.isfinite(v)) and np.all(v > 0)):
        raise ConfideError(f"{name}={value}: must be finite and above 0, one number or one per agent ({graph.size})")
    return np.broadcast_to(v, graph.size).copy()


def _symmetric(matrix: Array) -> Array:
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _lowest(matrix: Array) -> Array:
    """Smallest eigenvalue of the symmetric part, of one matrix or of each."""
    return np.asarray(np.linalg.eigvalsh(_symmetric(matrix))[..., 0])


def _bipartite(graph: Graph) -> bool:
    return bool(_lowest(graph.signless_laplacian.toarray()) < 1e-10)
