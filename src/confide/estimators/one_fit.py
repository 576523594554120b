"""One fit: what it will cost, the payment, and then the rounds, with secure noise or in a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide.algorithms import Algorithm, GaussianRelease, SummedMethod
from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.privacy import ZCDP, Free, Gaussian, Guarantee, Label, Total, discrete_gaussian
from confide.privacy import secure as secure_noise
from confide.privacy.secure import SecureNoise
from confide.problem.problem import Problem, Public
from confide.runs.driver import Driver
from confide.runs.priced import Priced
from confide.runs.run import SEEDED
from confide.runs.trust import Trust, trust

Array = NDArray[np.float64]
SELECTION = "this fit only; selection not covered"


@dataclass(frozen=True, eq=False)
class FitPrivacy:
    """What a fit spent on each row of any party.

    `spent` is the ε of the noise as it is drawn: Gaussian, rounded to a grid, with its slack; `exact` that of the same
    noise before rounding, and `zcdp` what the sampler's own proof says, where that applies. A simulation shows what a
    real fit would spend, and guarantees nothing.

    One process holds all rows, draws every party's noise and masks nothing, so what is promised is promised of what
    leaves it: the model and every round's sum. Each sum carries K parties' noise, and `spent` counts that of K - c: it
    holds, without any assumption, even for one who knew what c of the parties drew. Parties that run nodes with these
    settings get the same numbers, there by masks and so computationally.
    """

    spent: float
    exact: float
    zcdp: float | None
    delta: float
    guarantee: Guarantee
    method: str
    rounds: int
    charged: Gaussian | None  # the whole fit as one release, which is what a ledger is charged, where it is one
    not_covered: tuple[str, ...]
    trust: Trust | None = None  # where parties share their noise

    def __str__(self) -> str:
        """The first line says whom one must trust, where one must."""
        beside = "" if self.zcdp is None else f" (through zCDP {self.zcdp:.4g})"
        cost = f"ε={self.spent:.4g} at δ={self.delta:g} for each row{beside}"
        first = "" if self.trust is None else f"{self.trust.line(self.spent)}\n"
        return first + "; ".join([cost, f"guarantee {self.guarantee}", *self.not_covered])


def budget(epsilon: float, delta: float) -> float:
    """Gaussian-DP μ whose noise, drawn securely, costs (epsilon, delta)."""
    return secure_noise.budget(epsilon, delta)


def calibrated(method: Algorithm, public: Public, mu: float, epsilon: float, delta: float) -> Any:
    """The method with the noise that spends μ, its rounding included; one of pure ε with the noise that spends ε."""
    method.check(public)
    if not hasattr(method, "calibrated"):
        return method
    if not isinstance(method, GaussianRelease):
        return method.calibrated(public, epsilon)
    method = method.calibrated(public, mu=mu)  # what a method asks may depend on what it can pay for
    plan = method.schedule(public)
    left = mu - secure_noise.rounding(plan.noised[plan.touches])
    if not left > 0:
        raise ConfideError(f"epsilon={epsilon:g}: does not even cover the rounding of secure noise, give more")
    return method.calibrated(public, mu=left)


def price(phases: Sequence[tuple[Any, Public]], delta: float, secure: bool, not_covered: tuple[str, ...]) -> FitPrivacy:
    """The cost of these methods together, known before a row is read."""
    if secure:
        SecureNoise()  # one line if there is no sampler
    plain = [event for method, public in phases for events in method.events(public) for event in events]
    charged = [event for method, public in phases for events in method.charged(public) for event in events]
    gaussian = all(isinstance(event, Gaussian | Free) for event in charged)
    exact = float(np.max(privacy.epsilon(plain, delta)))
    spent = float(np.max(privacy.epsilon(charged, delta))) if charged != plain else exact
    whole = zcdp = None
    if gaussian:  # a row is with one party, so what it pays is the largest of the parties' totals, not their sum
        total = Total.of(charged)
        whole = Gaussian(math.sqrt(float(np.max(total.gaussian))), 1.0, slack=float(np.max(total.slack)))
        zcdp = float(privacy.epsilon([ZCDP(float(whole.mu) ** 2 / 2)], delta))
    guarantees = [promised(method, public) for method, public in phases]
    return FitPrivacy(
        spent, exact, zcdp, delta, next((g for g in guarantees if g.label != Label.PROVEN), guarantees[0]),
        names(phases), sum(method.rounds for method, _ in phases),
        whole, not_covered, trust(phases, delta),
    )  # fmt: skip


def names(phases: Sequence[tuple[Any, Public]]) -> str:
    """The methods, the last first; several of a kind are counted."""
    runs = [(name, len(list(same))) for name, same in groupby(method.name for method, _ in reversed(phases))]
    return " after ".join(name if count == 1 else f"{count} {name}" for name, count in runs)


def beside(spent: FitPrivacy, evaluation: tuple[Any, Public], delta: float) -> FitPrivacy:
    """The cost of a fit and of an evaluation that reads other rows: a row is in one of them, and pays the dearer."""
    other = price([evaluation], delta, False, ())
    charged = None
    if spent.charged is not None and other.charged is not None:
        mu, slack = (max(float(getattr(one.charged, name)) for one in (spent, other)) for name in ("mu", "slack"))
        charged = Gaussian(mu, 1.0, slack=slack)
    return replace(
        spent, spent=max(spent.spent, other.spent), exact=max(spent.exact, other.exact), charged=charged,
        zcdp=None if spent.zcdp is None or other.zcdp is None else max(spent.zcdp, other.zcdp),
        trust=dearer(spent.trust, other.trust),
    )  # fmt: skip


def dearer(one: Trust | None, other: Trust | None) -> Trust | None:
    """Of two promises against the same c the one that leaves more against everyone."""
    if one is None or other is None:
        return one or other
    assert one.colluders == other.colluders
    return max(one, other)


def promised(method: Any, public: Public) -> Guarantee:
    """The method's guarantee, and of what it is said where one process plays all parties."""
    said: Guarantee = method.guarantee(public)
    if said.label != Label.PROVEN or not isinstance(method, SummedMethod):
        return said
    if public.count == 1:
        return Guarantee(said.label, f"{said.reason}; one process holds all rows: said of the model and every sum")
    if method.honest(public) == 1:
        return said
    return Guarantee(
        said.label,
        f"{said.reason}; here one process played all parties and masked nothing: said, without assuming anything, of "
        "the model and every sum",
    )


def simulated(promise: Guarantee) -> Guarantee:
    return Guarantee(Label.NONE, f"{SEEDED}; with secure noise {promise}")


def rounds(
    problem: Problem, graph: Graph | None, method: Algorithm, seed: int | None, priced: Priced | None = None
) -> Iterator[Array]:
    """Every party's model (parties, width) after each round; `seed=None` draws each party's noise securely.

    `priced`: what the method asked for when it was paid, where other rounds have passed since.
    """
    driver = Driver(problem, graph, method, [0 if seed is None else seed])
    driver.priced = priced or driver.priced
    if seed is None:
        kind = SummedNoise if isinstance(method, SummedMethod) else EveryonesNoise
        driver.noise = noise = kind(len(driver.public.agents))  # type: ignore[assignment]  # draws by another hand
    for numbers in driver.schedule.noised:
        if seed is None:
            noise.prepare(int(numbers))
        driver.step()
        yield driver.estimates[0]


class EveryonesNoise:
    """Secure noise of every party that one process plays: one draw for all of them, each (round, name) once."""

    def __init__(self, parties: int) -> None:
        self.parties, self.round = parties, 0
        self.drawn: set[tuple[int, str]] = set()
        self.ahead = discrete_gaussian.Reservoir()

    def at(self, t: int) -> EveryonesNoise:
        """The draws of round t."""
        self.round = t
        return self

    def prepare(self, numbers: int) -> None:
        """Draw a round's noise before its inputs are known: the time that takes depends on what is drawn."""
        self.ahead.fill(numbers * self.parties)

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        """The value (1, parties, numbers) with noise of deviation scale, one of each party."""
        if value.shape[:2] != (1, self.parties):
            raise ConfideError(
                f"secure noise for {value.shape[:2]} seeds and agents: here are {(1, self.parties)}, each pays once"
            )
        if (self.round, name) in self.drawn:
            raise RuntimeError(f"round {self.round}: noise {name!r} was drawn already")
        self.drawn.add((self.round, name))
        return self.released(value, np.broadcast_to(scale, (1, self.parties, 1)).ravel())

    def released(self, value: Array, deviations: Array) -> Array:
        if np.all(deviations == deviations[0]):
            return discrete_gaussian.gaussian(value, float(deviations[0]), self.ahead)
        own = [discrete_gaussian.gaussian(value[0, k], float(s), self.ahead) for k, s in enumerate(deviations)]
        return np.array(own)[None]

    def public_normal(self, name: str, width: int) -> Array:
        return np.random.default_rng().normal(size=(1, self.parties, width))  # nothing rests on it

    def __getattr__(self, name: str) -> Any:
        return getattr(SecureNoise(), name)  # others have no secure sampler, and say so


class SummedNoise(EveryonesNoise):
    """That of a private sum, which alone is released: parts are added up as whole numbers of steps, as nodes add them.

    A part that became a double would show in the last bits of a sum of doubles: from 2^j on doubles lie twice as far
    apart as below, so an odd sum tells that a part was below, and only that part's own noise hides it. Every party is
    given its share of the total, so that whatever is made of these is made of the total.
    """

    def released(self, value: Array, deviations: Array) -> Array:
        scale = float(deviations[0])
        if np.any(deviations != scale):
            raise RuntimeError(f"noise of deviations {deviations} in one sum: parties share theirs")
        noise = self.ahead.take(value.size).reshape(value.shape)
        steps = (discrete_gaussian.quantise(value, scale) + noise).sum(axis=1, keepdims=True)  # modulo 2^64, as masked
        return np.repeat(discrete_gaussian.doubles(steps, scale) / self.parties, self.parties, axis=1)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Every party's model (parties, width), and public values by round."""

    estimates: Array
    history: dict[str, Array]


def follow(models: Iterator[Array]) -> Fitted:
    """The last of each party's models, and how they came to be: all of it is post-processing of what was sent."""
    now: Any = 0.0
    before: Any = 0.0
    history: dict[str, list[float]] = {"round": [], "consensus": [], "moved": []}
    for t, now in enumerate(models, start=1):
        centre = now.mean(axis=0)
        history["round"].append(t)
        history["consensus"].append(float(np.linalg.norm(now - centre, axis=1).max()))
        history["moved"].append(float(np.linalg.norm(centre - before)))
        before = centre
    return Fitted(np.asarray(now), {name: np.array(values) for name, values in history.items()})
