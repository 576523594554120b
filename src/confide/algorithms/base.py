"""The contract of an algorithm, and what most of them share.

An algorithm is cut where the network is: `local` holds the paper's lines up to the message and is the only function
that sees private rows; `absorb` holds the lines after it and is post-processing. Everything else is public. State is a
NamedTuple of arrays (seeds, agents, …); in `local` and `absorb` the round `t` counts from 1, as in the papers.
"""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import Signature, signature
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide.errors import ConfideError, WrongType
from confide.privacy import Event, Free, Gaussian, Guarantee, Label, Unbounded
from confide.privacy.noise import Noise
from confide.privacy.published import PublishedBound
from confide.privacy.secure import charge
from confide.problem.block import Block
from confide.problem.checks import finite, whole
from confide.problem.problem import Public

Array = NDArray[np.float64]
Parameter = Any  # a number, or one number per agent
ROOM = 10.0  # radius of the public ball, in units of the longest way that rows and noise can move a model


# What a method outside this package may override and still be proven: public arithmetic, and what it asks.
OPEN = frozenset({
    "message", "absorb", "init", "estimate", "weights", "question", "asks", "noise_scale", "longest_step", "claims",
    "check", "paper", "needs", "topology", "rounds",
})  # fmt: skip


class Schedule(NamedTuple):
    """What each round does, as everyone may know it.

    touches    (rounds,) whether private rows are read
    widths     (rounds,) numbers in a message
    noised     (rounds,) numbers that carry noise
    """

    touches: NDArray[np.bool_]
    widths: NDArray[np.int64]
    noised: NDArray[np.int64]


class Consensus(NamedTuple):
    """State of the peer methods: own last broadcast, dual, and the sum of the neighbours' last broadcasts."""

    primal: Array
    dual: Array
    neighbours: Array


class FormerNames(type):
    """Parameters may be given by a name that they had before: 0.1.0 called an ADMM's coupling its penalty."""

    @property
    def __signature__(cls) -> Signature:  # what help and documents show: the parameters, not the door before them
        return signature(partial(cls.__init__, None))  # type: ignore[misc]

    def __call__(cls, *args: Any, **given: Any) -> Any:
        known = {one.name for one in fields(cls)}  # type: ignore[arg-type]
        if "penalty" in given and "coupling" in known and "penalty" not in known:
            if "coupling" in given:
                raise ConfideError(
                    f"{cls.__name__} penalty={given['penalty']}: also coupling is given, leave penalty out"
                )
            warnings.warn(f"{cls.__name__}: penalty is now called coupling", DeprecationWarning, stacklevel=2)
            given["coupling"] = given.pop("penalty")
        return super().__call__(*args, **given)


@dataclass(frozen=True, eq=False)
class Algorithm(metaclass=FormerNames):
    """Base of every method; subclasses are frozen dataclasses of public parameters.

    rounds    a whole number of at least 1: how many messages each agent sends
    ball      radius of the public ball that messages lie in, above 0; None: that of `message_bound`; inf: none, as
              published

    A parameter of type `Parameter` is one number, or one per agent.
    """

    topology: ClassVar[str] = "peer"  # "all": server methods; "central": no network
    paper: ClassVar[str] = ""
    needs: ClassVar[str] = "any loss"  # for the list of algorithms
    open: ClassVar[frozenset[str]] = OPEN

    rounds: int = 100
    ball: float | None = field(default=None, kw_only=True)  # see `message_bound`

    def __post_init__(self) -> None:
        for one in fields(self):  # Python's numbers, which neither wrap around nor lose digits
            if isinstance(value := getattr(self, one.name), np.generic):
                object.__setattr__(self, one.name, value.item())

    def __getattr__(self, name: str) -> Any:  # asked only for what is not there
        if name == "penalty" and "coupling" in {one.name for one in fields(self)}:
            warnings.warn(f"{self.name}: penalty is now called coupling", DeprecationWarning, stacklevel=2)
            return self.coupling
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    # --- public -----------------------------------------------------------------------------------------------------

    def check(self, public: Public) -> None:
        """One clear line where this method does not suit the problem."""
        self.counts("rounds")
        if self.ball is not None and not (self.ball == math.inf or (finite(self.ball) and self.ball > 0)):
            raise ConfideError(f"{self.name} ball={self.ball}: must be above 0; inf switches it off, None derives it")

    def schedule(self, public: Public) -> Schedule:
        widths = np.full(self.rounds, public.width)
        return Schedule(np.ones(self.rounds, bool), widths, widths)

    def bytes_sent(self, public: Public, rounds: int | None = None) -> int:
        """Payload of the messages of the agents at hand, in all rounds or the first so many.

        8 bytes for each number, to every neighbour; with a hub or up a tree, there and back. One party sends nothing.
        """
        if self.topology == "central" or public.graph is None:
            return 0
        copies = 2 * len(public.agents) if self.topology == "all" else int(public.degree.sum())
        return int(8 * copies * self.schedule(public).widths[:rounds].sum())

    def weights(self, graph: Any) -> Any:
        """What a neighbour's message counts in `received`: by default 1."""
        return graph.adjacency

    def init(self, public: Public) -> Any:
        """State before round 1, with one seed: (1, agents, …)."""
        zero = np.zeros((1, len(public.agents), public.width))
        return Consensus(zero, zero, zero)

    def local(self, t: int, state: Any, block: Block | None, public: Public, noise: Noise) -> Array:
        """The message of round t: the only function that sees private rows."""
        raise WrongType(f"{self.name} does not say what it sends: a method needs `local`")

    def absorb(self, t: int, state: Any, message: Array, received: Array, public: Public) -> Any:
        """The next state, from public values only."""
        raise WrongType(f"{self.name} does not say what it keeps: a method needs `absorb`")

    def estimate(self, state: Any, public: Public) -> Array:
        """Each agent's model: (seeds, agents, width)."""
        return np.asarray(state.primal)

    def message_bound(self, public: Public) -> float:
        """Radius of the public ball: a sender clips its message to it, a receiver refuses what lies outside.

        So what neighbours can make an agent compute with is bounded, whatever they send. `ball` sets it; by default it
        is ten times the longest way that rows and noise can move a model in all rounds, and none where that is
        unbounded or no noise is drawn.
        """
        if self.ball is not None:
            return float(self.ball)
        if not self.private(public):
            return math.inf
        return ROOM * float(np.max(sum(self.longest_step(t, public.whole) for t in range(1, self.rounds + 1))))

    def longest_step(self, t: int, public: Public) -> Array:
        """How far rows and noise can move the message in round t, but for one chance in 10^15: (A, 1)."""
        return np.full((len(public.agents), 1), math.inf)

    def private(self, public: Public) -> bool:
        """Whether every agent's messages carry noise."""
        return False

    def events(self, public: Public) -> list[list[Event]]:
        """What round 1, 2, … releases, with one parameter per agent; known before a row is read."""
        return [[Unbounded() if touch else Free()] for touch in self.schedule(public).touches]

    def charged(self, public: Public) -> list[list[Event]]:
        """The same events as secure noise makes them: the price of every round, and the only place that sets it."""
        return charge(self.events(public), self.schedule(public).noised)

    def stated(self, public: Public) -> Guarantee:
        """What a method says of itself; `guarantee` is what holds."""
        return Guarantee(Label.NONE, "messages carry no noise")

    @final
    def guarantee(self, public: Public) -> Guarantee:
        """Label and reason. A class outside this package that overrides more than `OPEN` is proven by nobody."""
        said = self.stated(public)
        if said.label == Label.PROVEN and (own := overridden(self)):
            said = Guarantee(Label.ASSUMED, f"{self.name} has a {own} of its own, which nobody has proven")
        return said.backed_by(event for now in self.events(public) for event in now)

    def total_cost(self, public: Public, delta: float) -> tuple[float, float | None]:
        """What the accountants say of all rounds: the largest ε over agents, and μ if all events are Gaussian."""
        return cost(self.events(public), delta)

    def claims(self, public: Public, delta: float) -> list[PublishedBound]:
        """What the paper itself claims for these parameters, to be shown beside the exact total."""
        return []

    # --- common -----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return type(self).__name__

    def positive(self, *names: str) -> None:
        """One clear line for a parameter that is not above 0."""
        for name in names:
            if not np.all(self._numbers(name) > 0):
                raise ConfideError(f"{self.name} {name}={getattr(self, name)}: must be finite and above 0")

    def nonnegative(self, *names: str) -> None:
        """One clear line for a parameter that is below 0."""
        for name in names:
            if not np.all(self._numbers(name) >= 0):
                raise ConfideError(f"{self.name} {name}={getattr(self, name)}: must be finite and at least 0")

    def once(self) -> None:
        """One line unless it has the one round that it releases in."""
        if self.rounds != 1:
            raise ConfideError(f"{self.name} rounds={self.rounds}: it releases once, rounds must be 1")

    def fraction(self, *names: str) -> None:
        """One clear line for a parameter outside [0, 1]."""
        for name in names:
            v = self._numbers(name)
            if not np.all((v >= 0) & (v <= 1)):
                raise ConfideError(f"{self.name} {name}={getattr(self, name)}: must lie in [0, 1]")

    def counts(self, *names: str, least: int = 1) -> None:
        """One clear line for a parameter that is not a whole number of at least `least`."""
        for name in names:
            given = getattr(self, name)
            if not whole(given) or given < least:
                raise ConfideError(f"{self.name} {name}={given}: must be a whole number of at least {least}")

    def _numbers(self, name: str) -> Array:
        """A parameter, common or one per agent, as an array of finite numbers."""
        given = getattr(self, name)
        values = [given] if np.ndim(given) == 0 else list(given)
        if not all(finite(v) for v in values):
            raise ConfideError(f"{self.name} {name}={given}: must be a finite number, or one per agent")
        return np.asarray(values, float)


def cost(events: list[list[Event]], delta: float) -> tuple[float, float | None]:
    """Of the events of all rounds: the largest ε over agents, and μ if all are Gaussian."""
    every = [event for now in events for event in now]
    gaussian = all(isinstance(event, Gaussian | Free) for event in every)
    return float(np.max(privacy.epsilon(every, delta))), float(np.max(privacy.mu(every))) if gaussian else None


def overridden(method: Algorithm) -> str:
    """A name that a proof rests on and that others than this package have defined anew; empty if there is none.

    By a class or by a field of it, on the object itself, or by a way of one's own to look names up. Parameters of our
    own may have other defaults, and others may be added; one that is computed may differ from look to look. Two of our
    methods under one class are a mixture: each proof speaks of its own method alone.
    """
    if type(type(method)) is not FormerNames:  # it could say anything of its classes
        return "metaclass"
    kinds = type(method).__mro__
    ours = [c for c in kinds if at_home(c)]
    if not all(issubclass(ours[0], c) for c in ours):
        return "mixture of methods"
    parameters = {one.name for one in fields(ours[0])}  # type: ignore[arg-type]
    free = ours[0].open | parameters  # type: ignore[attr-defined]
    foreign = [c for c in kinds if c is not object and not at_home(c)]
    for c in foreign:
        for name, value in vars(c).items():
            if name in parameters and hasattr(type(value), "__get__") and not isinstance(value, MemberDescriptorType):
                return name  # a slot holds a parameter as the object itself would
            if name == "__dict__" and not isinstance(value, GetSetDescriptorType):
                return name
    given = [name for c in foreign for name in vars(c)] + [one.name for one in fields(method)]
    for name in (*given, *vars(method)):
        if name == "__getattribute__":
            return name
        if not name.startswith("__") and name not in free and any(name in vars(base) for base in ours):
            return name
    return ""


def at_home(kind: type) -> bool:
    """Whether a class is one of this package's own: the very one that its module has under its name.

    A class may say of itself that it comes from anywhere. This keeps mistakes out, not whoever rewrites the modules.
    """
    found: Any = sys.modules.get(kind.__module__) if kind.__module__.split(".")[0] == "confide" else None
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def longest_gradient(public: Public) -> float:
    """Norm of a row's gradient where rows are clipped and the loss's slope is bounded; ∞ otherwise.

    The bound of a loss from outside this package is its author's word, and enforces nothing.
    """
    known = at_home(type(public.loss)) and at_home(type(public.loss.base))
    return float(public.loss.slope_bound) * row_length(public) if known else math.inf


def row_length(public: Public) -> float:
    """Enforced bound on ‖(x, 1)‖; ∞ without one."""
    return math.inf if public.row_norm is None else math.hypot(float(public.row_norm), float(public.intercept))


def tail_mean(mean: Array, new: Array, t: int, rounds: int, average_from: float) -> Array:
    """Running mean of the iterates of rounds after the fraction `average_from`; at 1, the last iterate alone."""
    first = min(int(average_from * rounds), rounds - 1)  # rounds left out of the mean
    return mean + (new - mean) / max(t - first, 1)


def decayed(step: float, decay: float, t: int) -> float:
    """η_t = step / t^decay."""
    return float(step / t**decay)
