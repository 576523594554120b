"""Penalties R(β), each with its strength inside: value, subgradient, prox and what the engine must know of them.

All methods work elementwise on arrays of any shape. `step` may be an array that broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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

    def expansion(self, step: Any) -> Any:
        """Lipschitz constant of the prox: at most 1 for a convex penalty, more for a concave one."""
        return 1.0 / (1.0 + np.asarray(step) * self.l2)


@dataclass(frozen=True)
class Zero(Penalty):
    """No penalty."""

    smooth = True


@dataclass(frozen=True)
class L1(Penalty):
    """strength·|β|."""

    strength: float = 1.0

    def __post_init__(self) -> None:
        _strength(self)

    @property
    def l1(self) -> float:  # type: ignore[override]
        return float(self.strength)


@dataclass(frozen=True)
class L2(Penalty):
    """strength·½β²."""

    strength: float = 1.0
    smooth = True

    def __post_init__(self) -> None:
        _strength(self)

    @property
    def l2(self) -> float:  # type: ignore[override]
        return float(self.strength)


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """strength·(ratio·|β| + (1 - ratio)·½β²), the parametrisation of scikit-learn."""

    strength: float = 1.0
    ratio: float = 0.5

    def __post_init__(self) -> None:
        _strength(self)
        if not (finite(self.ratio) and 0 <= self.ratio <= 1):
            raise ValueError(f"ElasticNet ratio={self.ratio}: must lie in [0, 1]")

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
            raise ValueError(f"MCP a={self.a}: must be a finite number above 1")

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

    def expansion(self, step: Any) -> Any:
        s = np.asarray(step, float)
        return np.where(s < self.a, 1.0 / np.maximum(1.0 - s / self.a, 1e-300), np.inf)


@dataclass(frozen=True)
class SCAD(Penalty):
    """Smoothly clipped absolute deviation (Fan and Li 2001). Not convex, see `MCP`. Experimental."""

    strength: float = 1.0
    a: float = 3.7
    convex = False

    def __post_init__(self) -> None:
        _strength(self)
        if not (finite(self.a) and self.a > 2):
            raise ValueError(f"SCAD a={self.a}: must be a finite number above 2")

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
            raise ValueError(f"SCAD a={a}: its prox with step {float(np.max(s)):.3g} needs a > 1 + step")
        middle = ((a - 1) * v - np.sign(v) * s * a * lam) / (a - 1 - s)
        return np.where(b <= (1 + s) * lam, soft(v, s * lam), np.where(b <= a * lam, middle, v))

    def expansion(self, step: Any) -> Any:
        s = np.asarray(step, float)
        return np.where(s < self.a - 1, (self.a - 1) / np.maximum(self.a - 1 - s, 1e-300), np.inf)


def _strength(penalty: Any) -> None:
    x = penalty.strength
    if not (finite(x) and x >= 0):
        raise ValueError(f"{type(penalty).__name__} strength={x}: must be a finite number of at least 0")


ALL = (Zero, L1, L2, ElasticNet, MCP, SCAD)
