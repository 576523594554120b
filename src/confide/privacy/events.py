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
| RadialNoise           | value + noise of density ∝ exp(−rate·‖·‖)                | ε = rate·shift, and less at δ > 0 |
| Free                  | anything computed from earlier releases                  | 0                       |
| Unbounded             | a release without a proof                                | ∞                       |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError

Array = NDArray[np.float64]
Number = float | Array
Kind = tuple[str, str, str]

UNITS = ("row", "label")
EVERYONE = "network"  # the adversary who is all others together and reads every message

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
        raise ConfideError(f"{owner}: {name}={value!r}: must be a number or one number per agent")
    array = array.astype(np.float64)
    wrong = array[~_RULES[rule](array)]
    if wrong.size:
        raise ConfideError(f"{owner}: {name}={wrong.flat[0]}: must be {rule}")
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Event:
    """Base of all events: what is protected, between which data sets, from whom.

    unit         what is protected: "row", "label", …
    adjacency    between which data sets: those where one unit is replaced
    adversary    from whom: everyone, or a named coalition
    """

    unit: str = field(default="row", kw_only=True)
    adjacency: str = field(default="replace", kw_only=True)
    adversary: str = field(default=EVERYONE, kw_only=True)

    rules: ClassVar[dict[str, str]] = {}  # numeric field -> the rule it must satisfy

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.unit not in UNITS:
            raise ConfideError(f"{name}: unit={self.unit!r}: must be one of {', '.join(UNITS)}")
        for label, text in (("adjacency", self.adjacency), ("adversary", self.adversary)):
            if not isinstance(text, str) or not text:
                raise ConfideError(f"{name}: {label}={text!r}: must be a non-empty text")
        for label, rule in self.rules.items():
            object.__setattr__(self, label, checked(name, label, getattr(self, label), rule))
        lengths = {np.size(v) for label in self.rules if np.ndim(v := getattr(self, label))}
        if len(lengths) > 1:
            raise ConfideError(f"{name}: parameters of {sorted(lengths)} agents: must describe equally many")

    @property
    def kind(self) -> Kind:
        """(unit, adjacency, adversary): only events of one kind add up."""
        return self.unit, self.adjacency, self.adversary

    @property
    def everyone(self) -> Event | None:
        """What the same release is against everyone; None where the event does not say."""
        return self if self.adversary == EVERYONE else None

    def __repr__(self) -> str:
        # Parameters first; slack and kind only where they differ from the default.
        own = [f for f in fields(self) if not f.kw_only]
        told = [f for f in fields(self) if f.kw_only and np.any(getattr(self, f.name) != f.default)]
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

    `slack` above 0 says that something else was released: on either of two neighbouring data sets, and whatever was
    released before, its distribution is within this total variation of such a release (or a function of one). That is
    what a discrete Gaussian is (`discrete`, with the proof of what slack costs).

    `alone` above 0 says that the noise is several parties' together, behind masks, and that the adversary is only some
    of them: against everyone the party's own noise, of this deviation, is all that there is.
    """

    sensitivity: Number
    scale: Number
    slack: Number = field(default=0.0, kw_only=True)
    alone: Number = field(default=0.0, kw_only=True)
    rules: ClassVar[dict[str, str]] = {
        "sensitivity": "at least 0",
        "scale": "finite and at least 0",
        "slack": "at least 0",
        "alone": "finite and at least 0",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.alone) and self.adversary == EVERYONE:
            raise ConfideError(f"Gaussian: alone={_shown(self.alone)} against everyone: their noise is `scale`")
        if np.any(np.greater(self.alone, self.scale)):
            raise ConfideError(f"Gaussian: alone={_shown(self.alone)}: must be at most scale")

    @property
    def everyone(self) -> Event | None:
        if self.adversary == EVERYONE:
            return self
        return replace(self, adversary=EVERYONE, scale=self.alone, alone=0.0) if np.all(self.alone) else None

    @property
    def mu(self) -> Number:
        """Gaussian-DP parameter sensitivity/scale; 0 where nothing depends on the data."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(np.equal(self.sensitivity, 0), 0.0, np.divide(self.sensitivity, self.scale))
        return ratio if ratio.ndim else float(ratio)


@dataclass(frozen=True, eq=False, repr=False)
class PureDP(Event):
    """A release known only to be ε-differentially private.

    epsilon    at least 0; one number, or one per agent
    """

    epsilon: Number
    rules: ClassVar[dict[str, str]] = {"epsilon": "at least 0"}


@dataclass(frozen=True, eq=False, repr=False)
class ZCDP(Event):
    """A release known only to be ρ-zCDP (Bun and Steinke 2016, Definition 1.1), e.g. a discrete Gaussian.

    rho    at least 0; one number, or one per agent
    """

    rho: Number
    rules: ClassVar[dict[str, str]] = {"rho": "at least 0"}


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedResponse(Event):
    """A label out of `classes`, reported truthfully with odds e^ε against each other class.

    epsilon    at least 0; one number, or one per agent
    classes    a whole number of at least 2
    """

    epsilon: Number
    classes: int
    unit: str = field(default="label", kw_only=True)
    rules: ClassVar[dict[str, str]] = {"epsilon": "at least 0"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.classes, int | np.integer) or self.classes < 2:  # True is 1: refused too
            raise ConfideError(f"RandomizedResponse: classes={self.classes!r}: must be an integer from 2")


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
                raise ConfideError(f"ObjectivePerturbation: {name}={value!r}: must be an integer from {least}")

    @property
    def epsilon(self) -> Number:
        """noise_rate·shift + ln(1 + curvature_ratio)."""
        cost = np.asarray(np.multiply(self.noise_rate, self.shift) + np.log1p(self.curvature_ratio))
        return cost if cost.ndim else float(cost)


@dataclass(frozen=True, eq=False, repr=False)
class RadialNoise(Event):
    """A value in `width` dimensions released with noise of density ∝ exp(−noise_rate·‖e‖): output perturbation.

    Replacing a row moves the value by at most `shift` in norm, and by one fixed vector given what was released before:
    pure ε = noise_rate·shift, and much less at δ > 0, since most of the noise does not point along it (`mixtures`).
    """

    noise_rate: Number
    shift: Number
    width: int
    curvature_ratio: ClassVar[float] = 0.0  # noise on what is released changes no determinant
    rules: ClassVar[dict[str, str]] = {"noise_rate": "finite and above 0", "shift": "at least 0"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.width, bool) or not isinstance(self.width, int | np.integer) or self.width < 1:
            raise ConfideError(f"RadialNoise: width={self.width!r}: must be an integer from 1")

    @property
    def epsilon(self) -> Number:
        """noise_rate·shift."""
        cost = np.asarray(np.multiply(self.noise_rate, self.shift))
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
    RadialNoise,
    Free,
    Unbounded,
)
