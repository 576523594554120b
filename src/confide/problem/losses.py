"""Losses of a linear model, as functions of the margin z = xᵀβ and the target y.

Every loss is a frozen dataclass over the compiled functions of `margin`. Classification losses take y in {-1, +1};
`Multinomial` takes class indices 0..k-1 and has k margins; `NoisyLabels` corrects a loss for randomised labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, WrongType
from confide.problem.checks import finite, whole
from confide.problem.margin import (
    ABSOLUTE,
    HINGE,
    HUBER,
    LOGISTIC,
    MULTINOMIAL,
    QUANTILE,
    SMOOTHED_HINGE,
    SQUARED,
    SQUARED_HINGE,
    curvature1,
    prox1,
    row_slopes,
    row_value,
    slope1,
    value1,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """What an algorithm may ask of a loss. `slope_bound` and `curvature_bound` are what privacy proofs need."""

    code: ClassVar[int]
    smooth: ClassVar[bool] = True
    labels: ClassVar[str] = "real"  # "real", "sign" (y in {-1, 1}) or "class" (y in 0..k-1)
    slope_bound: ClassVar[float] = math.inf  # sup |ℓ'|
    curvature_bound: ClassVar[float] = math.inf  # sup ℓ''
    convex: ClassVar[bool] = True
    coefficients: ClassVar[int | None] = None  # of the model, where they are not one for each feature and output

    @property
    def parameter(self) -> float:
        """The one number the compiled functions take."""
        return 0.0

    @property
    def outputs(self) -> int:
        """Margins per row."""
        return 1

    @property
    def base(self) -> Loss:
        """The loss of the true label: itself, but for `NoisyLabels`."""
        return self

    def value(self, z: Any, y: Any) -> Array:
        """ℓ(z, y), elementwise."""
        return self._each(value1, z, y)

    def slope(self, z: Any, y: Any) -> Array:
        """A subgradient in z, elementwise."""
        return self._each(slope1, z, y)

    def curvature(self, z: Any, y: Any) -> Array:
        """ℓ'' in z, elementwise."""
        return self._each(curvature1, z, y)

    def prox(self, z: Any, y: Any, step: float) -> Array:
        """argmin over u of step·ℓ(u, y) + ½(u - z)², elementwise."""
        if not (finite(step) and step > 0):
            raise ConfideError(f"step={step}: a prox needs a step above 0")
        return self._each(prox1, z, y, float(step))

    def _each(self, f: Any, z: Any, y: Any, *rest: float) -> Array:
        zb, yb = np.broadcast_arrays(np.asarray(z, float), np.asarray(y, float))
        out = [f(self.code, self.parameter, u, v, *rest) for u, v in zip(zb.ravel(), yb.ravel(), strict=True)]
        return np.asarray(out, float).reshape(zb.shape)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^(-yz))."""

    code = LOGISTIC
    labels = "sign"
    slope_bound = 1.0
    curvature_bound = 0.25


@dataclass(frozen=True)
class Squared(Loss):
    """½(z - y)². Its slope has no bound: a private method must clip it, which makes it a Huber loss."""

    code = SQUARED
    curvature_bound = 1.0


@dataclass(frozen=True)
class Huber(Loss):
    """½r² up to |r| = width, above 0 and in the unit of the targets; linear beyond."""

    width: float = 1.0
    code = HUBER
    curvature_bound = 1.0

    def __post_init__(self) -> None:
        _positive("Huber width", self.width)

    @property
    def parameter(self) -> float:
        return float(self.width)

    @property
    def slope_bound(self) -> float:  # type: ignore[override]
        return float(self.width)


@dataclass(frozen=True)
class Absolute(Loss):
    """|z - y|."""

    code = ABSOLUTE
    smooth = False
    slope_bound = 1.0


@dataclass(frozen=True)
class Quantile(Loss):
    """The check loss r(τ - 1{r ≤ 0}) of r = y - z at `level` τ, strictly between 0 and 1."""

    level: float = 0.5
    code = QUANTILE
    smooth = False

    def __post_init__(self) -> None:
        if not (finite(self.level) and 0 < self.level < 1):
            raise ConfideError(f"Quantile level={self.level}: must lie strictly between 0 and 1")

    @property
    def parameter(self) -> float:
        return float(self.level)

    @property
    def slope_bound(self) -> float:  # type: ignore[override]
        return max(float(self.level), 1 - float(self.level))


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - yz)."""

    code = HINGE
    labels = "sign"
    smooth = False
    slope_bound = 1.0


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """½max(0, 1 - yz)²."""

    code = SQUARED_HINGE
    labels = "sign"
    curvature_bound = 1.0


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with a quadratic piece of this `width`, above 0 and in units of the margin, below its kink."""

    width: float = 0.5
    code = SMOOTHED_HINGE
    labels = "sign"
    slope_bound = 1.0

    def __post_init__(self) -> None:
        _positive("SmoothedHinge width", self.width)

    @property
    def parameter(self) -> float:
        return float(self.width)

    @property
    def curvature_bound(self) -> float:  # type: ignore[override]
        return 1.0 / float(self.width)


@dataclass(frozen=True)
class Multinomial(Loss):
    """-log softmax(z)_y over `classes` k, at least 2; the model has k coefficient vectors, laid out class by class."""

    classes: int = 3
    code = MULTINOMIAL
    labels = "class"
    slope_bound = math.sqrt(2.0)  # ‖softmax - e_y‖₂ < √2
    curvature_bound = 0.5  # the largest eigenvalue of diag(p) - ppᵀ

    def __post_init__(self) -> None:
        if not (whole(self.classes) and self.classes >= 2):
            raise ConfideError(f"Multinomial classes={self.classes}: must be a whole number of at least 2")

    @property
    def outputs(self) -> int:
        return int(self.classes)

    def value(self, z: Any, y: Any, q: float = 0.0) -> Array:
        zs, ys = self._rows(z, y)
        return np.array([row_value(self.code, 0.0, u, v, q) for u, v in zip(zs, ys, strict=True)])

    def slope(self, z: Any, y: Any, q: float = 0.0) -> Array:
        zs, ys = self._rows(z, y)
        out = np.empty_like(zs)
        for i in range(len(zs)):
            row_slopes(self.code, 0.0, zs[i], ys[i], q, out[i])
        return out

    def curvature(self, z: Any, y: Any) -> Array:
        raise WrongType("Multinomial has a matrix of curvatures per row: use curvature_bound")

    def prox(self, z: Any, y: Any, step: float) -> Array:
        raise WrongType("Multinomial couples the margins of a row: it has no elementwise prox")

    def _rows(self, z: Any, y: Any) -> tuple[Array, Array]:
        zs = np.atleast_2d(np.asarray(z, float))
        return np.ascontiguousarray(zs), np.broadcast_to(np.asarray(y, float), len(zs)).copy()


@dataclass(frozen=True)
class NoisyLabels(Loss):
    """The unbiased loss for labels that users randomised with `epsilon` before handing them over (PDML, (19)).

    `epsilon=None` reads each row's own ε from the shards' column "epsilon" and needs `epsilon_min`, the public
    smallest ε a user may choose: the slope bound rests on it. Convex for `Logistic` and `Multinomial` only.
    """

    loss: Loss = field(default_factory=Logistic)
    epsilon: float | None = None
    epsilon_min: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.loss, (Logistic, Multinomial)):
            name = type(self.loss).__name__
            raise ConfideError(f"NoisyLabels({name}()): the corrected loss is convex for Logistic and Multinomial only")
        if (self.epsilon is None) == (self.epsilon_min is None):
            given = f"epsilon={self.epsilon}, epsilon_min={self.epsilon_min}"
            raise ConfideError(f"NoisyLabels {given}: give one of them, epsilon_min where each row has its own epsilon")
        _positive("NoisyLabels epsilon", self.epsilon if self.epsilon is not None else self.epsilon_min)

    @property
    def smallest_epsilon(self) -> float:
        """The ε behind every bound: the common one, or the public minimum."""
        return float(self.epsilon if self.epsilon is not None else self.epsilon_min)  # type: ignore[arg-type]

    @property
    def q(self) -> float:
        """1/(e^ε - 1) at the smallest ε."""
        return 1.0 / math.expm1(self.smallest_epsilon) if self.smallest_epsilon < 709 else 0.0

    @property
    def code(self) -> int:  # type: ignore[override]
        return self.loss.code

    @property
    def labels(self) -> str:  # type: ignore[override]
        return self.loss.labels

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    @property
    def base(self) -> Loss:
        return self.loss

    def value(self, z: Any, y: Any) -> Array:
        q = self._common_q()
        if isinstance(self.loss, Multinomial):
            return self.loss.value(z, y, q)
        return (1 + q) * self.loss.value(z, y) - q * self.loss.value(z, -np.asarray(y, float))

    def slope(self, z: Any, y: Any) -> Array:
        q = self._common_q()
        if isinstance(self.loss, Multinomial):
            return self.loss.slope(z, y, q)
        return (1 + q) * self.loss.slope(z, y) - q * self.loss.slope(z, -np.asarray(y, float))

    def curvature(self, z: Any, y: Any) -> Array:
        return self.loss.curvature(z, y)  # the correction is linear in z for both losses

    def prox(self, z: Any, y: Any, step: float) -> Array:
        if isinstance(self.loss, Multinomial):
            return self.loss.prox(z, y, step)
        shift = step * self._common_q() * np.asarray(y, float)  # ℓ(y) - ℓ(-y) = -yz
        return self.loss.prox(np.asarray(z, float) + shift, y, step)

    def _common_q(self) -> float:
        if self.epsilon is None:
            raise WrongType("NoisyLabels with an epsilon per row has no one value at (z, y): ask the problem's block")
        return self.q

    @property
    def curvature_bound(self) -> float:  # type: ignore[override]
        return self.loss.curvature_bound  # the correction is linear in z for both losses

    @property
    def slope_bound(self) -> float:  # type: ignore[override]
        if isinstance(self.loss, Logistic):
            return 1.0 + self.q  # |σ-slope - shift|: (1 + κ)/2 with κ = coth(ε/2) = 1 + 2q
        k = self.loss.outputs
        # ‖softmax + q1 - (1 + kq)e_y‖ is convex in softmax: largest at a vertex other than y
        return math.sqrt((1 + self.q) ** 2 + (k - 2) * self.q**2 + (1 + (k - 1) * self.q) ** 2)


@dataclass(frozen=True)
class BlackBox(Loss):
    """Any objective of which only values are known: a simulator, a tree, a rule. Not a linear model, nor convex.

    function       (β (W,), X (n, p), y (n,)) -> n values; with by_row=True (β, x (p,), y) -> one value
    coefficients   W, as many as the model has
    bound          values are kept within ±bound, and one that is not a finite number, or an error, counts as +bound
    by_row         ask row by row: slower, but a function of one row can't mix rows by mistake. No guarantee is proven
                   all the same: nothing forces it to remember none

    Only methods that ask for values take it: DZOA, ORZO and ZOOADMM, which use them as they are, and PrivateZeroth.
    """

    function: Callable[..., Any] = field(compare=False, kw_only=True)
    coefficients: int = field(kw_only=True)  # type: ignore[misc]
    bound: float = field(default=1e6, kw_only=True)
    by_row: bool = field(default=False, kw_only=True)
    code = -1  # no compiled function knows it
    smooth = False
    convex = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise WrongType(f"BlackBox function={self.function!r}: must be callable, (beta, X, y) -> values")
        if not (whole(self.coefficients) and self.coefficients >= 1):
            raise ConfideError(f"BlackBox coefficients={self.coefficients}: must be a whole number of at least 1")
        _positive("BlackBox bound", self.bound)

    def values(self, beta: Array, X: Array, y: Array) -> Array:
        """ℓ of every row at one β: (n,), all within ±bound, whatever the function does."""
        beta, X, y = (_read_only(a) for a in (beta.copy(), X, y))
        try:
            with np.errstate(all="ignore"):
                if self.by_row:
                    return np.array([self._one(beta, x, t) for x, t in zip(X, y, strict=True)])
                found = np.asarray(self.function(beta, X, y), float).reshape(len(y))
        except Exception:  # an error on a row must not show
            return np.full(len(y), self.bound)
        return self._kept(found)

    def _one(self, beta: Array, x: Array, y: Any) -> float:
        try:
            return float(self._kept(np.asarray(self.function(beta, x, y), float).reshape(())))
        except Exception:
            return self.bound

    def _kept(self, found: Array) -> Array:
        return np.where(np.isfinite(found), np.clip(found, -self.bound, self.bound), self.bound)

    def value(self, z: Any, y: Any) -> Array:
        raise WrongType("BlackBox has no margin: ask `values(beta, X, y)`")

    slope = curvature = value


def _read_only(a: Array) -> Array:
    shown = a.view()
    shown.flags.writeable = False
    return shown


def _positive(name: str, x: Any) -> None:
    if not (finite(x) and x > 0):
        raise ConfideError(f"{name}={x}: must be a finite number above 0")


ALL = (Logistic, Squared, Huber, Absolute, Quantile, Hinge, SquaredHinge, SmoothedHinge, Multinomial, NoisyLabels)
