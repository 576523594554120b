"""Events: what a release was, in the terms that an accountant needs.

An event carries parameters only; :mod:`confide.privacy.accounting` says what they cost. A numeric parameter
is a float (all agents alike) or a one-dimensional array with one value per agent. Every event names the
*unit* whose change it hides ("row", "label"), the *adjacency* of data sets and the *adversary*: costs of
different kinds protect different things and never add up.

| event                 | release                                                  | cost                    |
|-----------------------|----------------------------------------------------------|-------------------------|
| Gaussian              | value + N(0, scale²·I), of given L2 sensitivity          | μ = sensitivity / scale |
| PureDP                | any ε-differentially private release                     | ε                       |
| ZCDP                  | any ρ-zero-concentrated private release                  | ρ                       |
| RandomizedResponse    | a label, true with odds e^ε against each other class     | ε                       |
| ObjectivePerturbation | minimiser of a strongly convex objective + noiseᵀ·model  | ε, see there            |
| Free                  | anything computed from earlier releases                  | 0                       |
| Unbounded             | a release without a proof                                | ∞                       |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Number = float | Array
Kind = tuple[str, str, str]

UNITS = ("row", "label")

# The text is what an error message says; the function is what it means. NaN satisfies none of them.
_RULES: dict[str, Callable[[Array], NDArray[np.bool_]]] = {
    "at least 0": lambda v: v >= 0,
    "finite and at least 0": lambda v: (v >= 0) & np.isfinite(v),
    "finite and above 0": lambda v: (v > 0) & np.isfinite(v),
}


def checked(owner: str, name: str, value: Any, rule: str) -> Number:
    """`value` as a float or a read-only array over agents, or one line that says what is wrong with it."""
    try:
        array = np.array(value)
    except ValueError:  # ragged lists
        array = np.array("")
    if array.dtype.kind not in "fiu" or array.ndim > 1 or array.size == 0:
        raise ValueError(f"{owner}: {name} must be a number or one number per agent, given {value!r}")
    array = array.astype(np.float64)
    wrong = array[~_RULES[rule](array)]
    if wrong.size:
        raise ValueError(f"{owner}: {name} must be {rule}, given {wrong.flat[0]}")
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Event:
    """Base of all events: what is protected, between which data sets, from whom."""

    unit: str = field(default="row", kw_only=True)
    adjacency: str = field(default="replace", kw_only=True)
    adversary: str = field(default="network", kw_only=True)

    rules: ClassVar[dict[str, str]] = {}  # numeric field -> the rule it must satisfy

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.unit not in UNITS:
            raise ValueError(f"{name}: unit must be one of {', '.join(UNITS)}, given {self.unit!r}")
        for label, text in (("adjacency", self.adjacency), ("adversary", self.adversary)):
            if not isinstance(text, str) or not text:
                raise ValueError(f"{name}: {label} must be a non-empty text, given {text!r}")
        for label, rule in self.rules.items():
            object.__setattr__(self, label, checked(name, label, getattr(self, label), rule))
        lengths = {np.size(v) for label in self.rules if np.ndim(v := getattr(self, label))}
        if len(lengths) > 1:
            raise ValueError(f"{name}: parameters must describe equally many agents, given {sorted(lengths)}")

    @property
    def kind(self) -> Kind:
        """(unit, adjacency, adversary): only events of one kind add up."""
        return self.unit, self.adjacency, self.adversary

    def __repr__(self) -> str:
        # Parameters first; the kind only where it differs from the default.
        own = [f for f in fields(self) if not f.kw_only]
        told = [f for f in fields(self) if f.kw_only and getattr(self, f.name) != f.default]
        shown = ", ".join(f"{f.name}={_shown(getattr(self, f.name))}" for f in own + told)
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash((type(self), self.kind))  # parameters may be arrays: equal events still hash alike


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", threshold=6, edgeitems=2, max_line_width=10**6)
    return repr(value)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Event):
    """A value of L2 `sensitivity` released with independent normal noise of standard deviation `scale`.

    Without noise (scale 0) a value that depends on the data costs infinity.
    """

    sensitivity: Number
    scale: Number
    rules: ClassVar[dict[str, str]] = {"sensitivity": "at least 0", "scale": "finite and at least 0"}

    @property
    def mu(self) -> Number:
        """Gaussian-DP parameter sensitivity/scale; 0 where nothing depends on the data."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(np.equal(self.sensitivity, 0), 0.0, np.divide(self.sensitivity, self.scale))
        return ratio if ratio.ndim else float(ratio)


@dataclass(frozen=True, eq=False, repr=False)
class PureDP(Event):
    """A release known only to be ε-differentially private."""

    epsilon: Number
    rules: ClassVar[dict[str, str]] = {"epsilon": "at least 0"}


@dataclass(frozen=True, eq=False, repr=False)
class ZCDP(Event):
    """A release known only to be ρ-zCDP (Bun and Steinke 2016, Definition 1.1), e.g. a discrete Gaussian."""

    rho: Number
    rules: ClassVar[dict[str, str]] = {"rho": "at least 0"}


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedResponse(Event):
    """A label out of `classes`, reported truthfully with odds e^ε against each other class."""

    epsilon: Number
    classes: int
    unit: str = field(default="label", kw_only=True)
    rules: ClassVar[dict[str, str]] = {"epsilon": "at least 0"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.classes, int | np.integer) or self.classes < 2:  # True is 1: refused too
            raise ValueError(f"RandomizedResponse: classes must be an integer from 2, given {self.classes!r}")


@dataclass(frozen=True, eq=False, repr=False)
class ObjectivePerturbation(Event):
    """One step of an objective-perturbed method (private R-ADMM, DVP), as pure ε.

    The released model f minimises J(f) + eᵀf exactly, with noise density ∝ exp(−noise_rate·‖e‖), so that
    f reveals e = −∇J(f). Replacing a row changes two factors of f's density:

    * the noise that explains f, by at most `shift` in norm: a factor exp(noise_rate·shift);
    * the determinant of ∇²J, whose part common to both data sets is at least h·I, by one rank-one term
      each: a factor of at most 1 + `curvature_ratio`.

    For (C/B)·Σ loss with |loss'| ≤ 1, loss'' ≤ c1, rows of norm at most b: shift = 2·C·b/B and
    curvature_ratio = c1·C·b²/(B·h). This replaces the term 2.8·c1·C/(B·h) of Theorem V.1 in the Recycled
    ADMM paper; since ln(1+x) ≤ x it is never larger, and no condition on c1 is needed.
    An inexact minimiser is outside this event: release it with further noise and charge that too.

    With `width`, the dimension of e, the accountant also uses that the shift lies in a subspace of dimension `rank`
    (the span of two rows) and most of the noise does not: see `mixtures`.
    """

    noise_rate: Number
    shift: Number
    curvature_ratio: Number
    width: int | None = None
    rank: int = 2
    rules: ClassVar[dict[str, str]] = {
        "noise_rate": "finite and above 0",
        "shift": "at least 0",
        "curvature_ratio": "at least 0",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, least in (("width", self.width, 1), ("rank", self.rank, 1)):
            if value is not None and (not isinstance(value, int | np.integer) or value < least):
                raise ValueError(f"ObjectivePerturbation: {name} must be an integer from {least}, given {value!r}")

    @property
    def epsilon(self) -> Number:
        """noise_rate·shift + ln(1 + curvature_ratio)."""
        cost = np.asarray(np.multiply(self.noise_rate, self.shift) + np.log1p(self.curvature_ratio))
        return cost if cost.ndim else float(cost)


@dataclass(frozen=True, eq=False, repr=False)
class Free(Event):
    """Post-processing: a function of earlier releases and public values."""


@dataclass(frozen=True, eq=False, repr=False)
class Unbounded(Event):
    """A release that nothing bounds."""


EVENT_TYPES: tuple[type[Event], ...] = (
    Gaussian,
    PureDP,
    ZCDP,
    RandomizedResponse,
    ObjectivePerturbation,
    Free,
    Unbounded,
)
