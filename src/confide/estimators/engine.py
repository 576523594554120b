"""One fit: what it will cost, the payment, and then the rounds, with secure noise or in a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide.algorithms.base import Algorithm, GaussianMethod
from confide.network.graph import Graph
from confide.node.party import Party
from confide.privacy import ZCDP, Event, Gaussian, Guarantee, Label
from confide.privacy.budget import limit
from confide.privacy.secure import SecureNoise, charge
from confide.problem.problem import Problem, Public
from confide.run import SEEDED
from confide.simulation import Driver

Array = NDArray[np.float64]
ROUNDING = 1e-9  # of μ: left for the sampler's rounding term, which is below 1e-10
SELECTION = "this fit only; selection not covered"


@dataclass(frozen=True, eq=False)
class FitPrivacy:
    """What a fit spent on each row of any party.

    `spent` is the ε that the noise sampler proves (zCDP), `exact` that of the same noise in Gaussian-DP. A simulation
    shows what a real fit would spend, and guarantees nothing.
    """

    spent: float
    exact: float
    delta: float
    guarantee: Guarantee
    method: str
    rounds: int
    rho: float | None  # zCDP of the whole fit, where it is one
    not_covered: tuple[str, ...]

    def __str__(self) -> str:
        cost = f"ε={self.spent:.4g} at δ={self.delta:g} for each row (exact {self.exact:.4g})"
        return "; ".join([cost, f"guarantee {self.guarantee}", *self.not_covered])


def budget(epsilon: float, delta: float) -> float:
    """Gaussian-DP μ whose noise, charged as the secure sampler proves it, costs (epsilon, delta)."""
    return math.sqrt(limit(epsilon, delta, "zcdp")) * (1 - ROUNDING)


def calibrated(method: Algorithm, public: Public, mu: float, epsilon: float, delta: float) -> Any:
    """The method with the noise that spends μ; one of pure ε with the noise that spends ε."""
    method.check(public)
    if not hasattr(method, "calibrated"):
        return method
    if not isinstance(method, GaussianMethod):
        return method.calibrated(public, epsilon)
    return method.calibrated(public, float(privacy.epsilon([Gaussian(mu, 1.0)], delta)), delta)


def price(phases: Sequence[tuple[Any, Public]], delta: float, secure: bool, not_covered: tuple[str, ...]) -> FitPrivacy:
    """The cost of these methods together, known before a row is read."""
    plain: list[Event] = []
    charged: list[Event] = []
    for method, public in phases:
        for events, width in zip(method.events(public), method.schedule(public).widths, strict=True):
            plain.extend(events)
            charged.extend(charge([events], int(width))[0] if secure else map(as_zcdp, events))
    rho = sum((np.asarray(e.rho) for e in charged if isinstance(e, ZCDP)), np.zeros(1))
    pure = any(not isinstance(e, ZCDP | privacy.Free) for e in charged)
    guarantees = [method.guarantee(public) for method, public in phases]
    promise = next((g for g in guarantees if g.label != Label.PROVEN), guarantees[0])
    exact = float(np.max(privacy.epsilon(plain, delta)))
    return FitPrivacy(
        exact if pure else float(np.max(privacy.epsilon(charged, delta))), exact, delta, promise,
        " after ".join(method.name for method, _ in reversed(phases)), sum(method.rounds for method, _ in phases),
        None if pure else float(np.max(rho)), not_covered,
    )  # fmt: skip


def as_zcdp(event: Event) -> Event:
    return ZCDP(np.square(event.mu) / 2) if isinstance(event, Gaussian) else event


def simulated(promise: Guarantee) -> Guarantee:
    return Guarantee(Label.NONE, f"{SEEDED}; with secure noise {promise}")


def rounds(problem: Problem, graph: Graph, method: Algorithm, seed: int | None) -> Iterator[Array]:
    """Every party's model (parties, width) after each round; `seed=None` draws each party's noise securely."""
    if seed is not None:
        driver = Driver(problem, graph, method, [seed])
        for _ in range(method.rounds):
            driver.step()
            yield driver.estimates[0]
        return
    public = problem.public(graph)
    agents = range(public.count)
    parties = [Party(k, method, public, problem.only(k), SecureNoise()) for k in agents]
    for _ in range(method.rounds):
        sent = {k: party.send() for k, party in enumerate(parties)}
        for party in parties:
            party.receive(sent)
        yield np.array([party.estimate for party in parties])


@dataclass(frozen=True, eq=False)
class Outcome:
    """Every party's model (parties, width), and public values by round."""

    estimates: Array
    history: dict[str, Array]


def follow(models: Iterator[Array], total: int, average_from: float) -> Outcome:
    """Average each party's models over the last rounds: all of it is post-processing of what was sent."""
    first = min(int(average_from * total), total - 1)
    mean: Any = 0.0
    before: Any = 0.0
    history: dict[str, list[float]] = {"round": [], "consensus": [], "moved": []}
    for t, now in enumerate(models, start=1):
        centre = now.mean(axis=0)
        history["round"].append(t)
        history["consensus"].append(float(np.linalg.norm(now - centre, axis=1).max()))
        history["moved"].append(float(np.linalg.norm(centre - before)))
        mean, before = mean + (now - mean) / max(t - first, 1), centre
    return Outcome(np.asarray(mean), {name: np.array(values) for name, values in history.items()})
