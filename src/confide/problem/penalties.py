"""Penalties R(β), each with its strength inside: value, subgradient, prox and what the engine must know of them.

All methods work elementwise on arrays of any shape. `step` may be an array that broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.problem.checks import finite

Array = NDArray[np.float64]


def soft(v: Array, threshold: Any) -> Array:
    """Soft threshold: the prox of threshold·|·|."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


@dataclass(frozen=True)
class Penalty:
    """Separable: R(β) = Σ r(β_j). `l1` and `l2` are the weights of |β| and ½β² in its convex part."""

    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    l1: ClassVar[float] = 0.0
    l2: ClassVar[float] = 0.0

    def terms(self, beta: Array) -> Array:
        """r(β_j), elementwise."""
        return self.l1 * np.abs(beta) + 0.5 * self.l2 * beta * beta

    def gradient(self, beta: Array) -> Array:
        """A subgradient, elementwise; 0 at 0."""
        return self.l1 * np.sign(beta) + self.l2 * beta

    def prox(self, v: Array, step: Any) -> Array:
        """argmin over β of step·r(β) + ½(β - v)²."""
        return soft(v, step * self.l1) / (1.0 + step * self.l2)


@dataclass(frozen=True)
class Zero(Penalty):
    """No penalty."""

    smooth = True


@dataclass(frozen=True)
class L1(Penalty):
    """strength·|β|; strength at least 0, beside the mean loss."""

    strength: float = 1.0

    def __post_init__(self) -> None:
        _strength(self)

    @property
    def l1(self) -> float:  # type: ignore[override]
        return float(self.strength)


@dataclass(frozen=True)
class L2(Penalty):
    """strength·½β²; strength at least 0, beside the mean loss."""

    strength: float = 1.0
    smooth = True

    def __post_init__(self) -> None:
        _strength(self)

    @property
    def l2(self) -> float:  # type: ignore[override]
        return float(self.strength)


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """strength·(ratio·|β| + (1 - ratio)·½β²), as in scikit-learn; strength at least 0, ratio from 0 to 1."""

    strength: float = 1.0
    ratio: float = 0.5

    def __post_init__(self) -> None:
        _strength(self)
        if not (finite(self.ratio) and 0 <= self.ratio <= 1):
            raise ConfideError(f"ElasticNet ratio={self.ratio}: must lie in [0, 1]")

    @property
    def l1(self) -> float:  # type: ignore[override]
        return float(self.strength * self.ratio)

    @property
    def l2(self) -> float:  # type: ignore[override]
        return float(self.strength * (1 - self.ratio))


@dataclass(frozen=True)
class MCP(Penalty):
    """Minimax concave penalty (Zhang 2010): strength·|β| - β²/(2a) up to |β| = a·strength, constant beyond.

    Not convex: methods stop at a stationary point that depends on the start. Experimental.
    """

    strength: float = 1.0
    a: float = 3.0
    convex = False

    def __post_init__(self) -> None:
        _strength(self)
        if not (finite(self.a) and self.a > 1):
            raise ConfideError(f"MCP a={self.a}: must be a finite number above 1")

    def terms(self, beta: Array) -> Array:
        b, lam, a = np.abs(beta), self.strength, self.a
        return np.where(b <= a * lam, lam * b - b * b / (2 * a), 0.5 * a * lam * lam)

    def gradient(self, beta: Array) -> Array:
        return np.sign(beta) * np.maximum(self.strength - np.abs(beta) / self.a, 0.0)

    def prox(self, v: Array, step: Any) -> Array:
        """Firm threshold where a > step; hard threshold where the prox's objective is concave."""
        lam, a, b = self.strength, self.a, np.abs(v)
        s = np.broadcast_to(np.asarray(step, float), v.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            firm = np.where(b <= a * lam, soft(v, s * lam) / (1.0 - s / a), v)
        hard = np.where(b > lam * np.sqrt(a * s), v, 0.0)
        return np.where(s < a, firm, hard)


@dataclass(frozen=True)
class SCAD(Penalty):
    """Smoothly clipped absolute deviation (Fan and Li 2001). Not convex, see `MCP`. Experimental.

    strength    at least 0: slope at 0, beside the mean loss
    a           above 2: from |β| = a·strength on it is constant
    """

    strength: float = 1.0
    a: float = 3.7
    convex = False

    def __post_init__(self) -> None:
        _strength(self)
        if not (finite(self.a) and self.a > 2):
            raise ConfideError(f"SCAD a={self.a}: must be a finite number above 2")

    def terms(self, beta: Array) -> Array:
        b, lam, a = np.abs(beta), self.strength, self.a
        middle = (2 * a * lam * b - b * b - lam * lam) / (2 * (a - 1))
        return np.where(b <= lam, lam * b, np.where(b <= a * lam, middle, 0.5 * lam * lam * (a + 1)))

    def gradient(self, beta: Array) -> Array:
        b, lam, a = np.abs(beta), self.strength, self.a
        return np.sign(beta) * np.where(b <= lam, lam, np.maximum(a * lam - b, 0.0) / (a - 1))

    def prox(self, v: Array, step: Any) -> Array:
        lam, a, b = self.strength, self.a, np.abs(v)
        s = np.asarray(step, float)
        if np.any(a <= 1 + s):
            raise ConfideError(f"SCAD a={a}: its prox with step {float(np.max(s)):.3g} needs a > 1 + step")
        middle = ((a - 1) * v - np.sign(v) * s * a * lam) / (a - 1 - s)
        return np.where(b <= (1 + s) * lam, soft(v, s * lam), np.where(b <= a * lam, middle, v))


@dataclass(frozen=True, eq=False)
class GeneralisedLasso(Penalty):
    """strength·‖Dβ‖₁ for a public matrix D (rows, P), such as differences of neighbouring coefficients.

    Not separable: only its subgradient strength·Dᵀsign(Dβ) is known, which is all that linearised methods ask for.
    Works on the last axis. `terms` are β_j times the subgradient's entry: their sum is the penalty.
    """

    matrix: Any
    strength: float = 1.0
    separable = False

    def __post_init__(self) -> None:
        _strength(self)
        D = np.asarray(self.matrix, float)
        if D.ndim != 2 or not np.all(np.isfinite(D)):
            raise ConfideError(f"GeneralisedLasso matrix of shape {D.shape}: must be two-dimensional and finite")

    @property
    def l2(self) -> float:  # type: ignore[override]
        raise ConfideError("GeneralisedLasso: no solver knows it, only linearised methods take it")

    l1 = l2  # type: ignore[assignment]

    def terms(self, beta: Array) -> Array:
        return beta * self.gradient(beta)

    def gradient(self, beta: Array) -> Array:
        D = np.asarray(self.matrix, float)
        if D.shape[1] != beta.shape[-1]:
            raise ConfideError(f"GeneralisedLasso matrix of {D.shape[1]} columns: the model has {beta.shape[-1]}")
        return np.asarray(self.strength * np.sign(beta @ D.T) @ D)

    def prox(self, v: Array, step: Any) -> Array:
        raise ConfideError("GeneralisedLasso has no prox here: use a linearised method without proximal=True")


def _strength(penalty: Any) -> None:
    x = penalty.strength
    if not (finite(x) and x >= 0):
        raise ConfideError(f"{type(penalty).__name__} strength={x}: must be a finite number of at least 0")


ALL = (Zero, L1, L2, ElasticNet, MCP, SCAD)
