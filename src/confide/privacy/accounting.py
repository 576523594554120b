"""Accounting: what a sequence of events costs in total.

Three calculi, each exact or the best known for what it is given, applied per agent:

1. Gaussian releases only: μ² = Σ (sensitivity/scale)² and the exact conversion
   δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
   (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollaries 2.13 and 3.3).
2. zCDP, alone or with Gaussians: ρ = Σρ_i + μ²/2, converted with the optimal Rényi order
   (Canonne, Kamath and Steinke 2020, Proposition 12). An upper bound: ρ alone does not determine δ(ε).
3. Pure ε, alone or with Gaussians: the smallest of several valid bounds, among them dp-accounting's privacy
   loss distribution, which is optimal for pure ε (Kairouz, Oh and Viswanath 2015) up to a pessimistic grid.
   It holds for parameters fixed in advance; a running budget takes `gaussian_equivalent` instead.

A Gaussian event may carry slack η, a total variation from the Gaussian release it describes (`discrete`). Slack adds
up, and costs (1+e^ε)·Ση of δ under all three: a release within η of a Gaussian one is within η of a μ²/2-zCDP one.

zCDP with pure ε is refused, and so are events of different kind (unit, adjacency, adversary).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from confide.errors import ConfideError, WrongType
from confide.files.library import special
from confide.privacy.conversions import (
    gaussian_epsilon,
    slack_delta,
    slack_epsilon,
    slack_turn,
    zcdp_delta,
    zcdp_epsilon,
)
from confide.privacy.conversions import (
    gaussian_equivalent as gaussian_equivalent,
)
from confide.privacy.conversions import (
    log_gaussian_delta as log_gaussian_delta,
)
from confide.privacy.events import (
    EVENT_TYPES,
    ZCDP,
    Array,
    Event,
    Free,
    Gaussian,
    Kind,
    Number,
    ObjectivePerturbation,
    PureDP,
    RadialNoise,
    RandomizedResponse,
    Unbounded,
    checked,
)
from confide.privacy.mixtures import pure_delta, pure_epsilon

# --- all agents ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Total:
    """The composed cost of events of one kind; arrays have shape () or (agents,).

    gaussian    Σ (sensitivity/scale)²; infinite where something is unbounded
    zcdp        Σ ρ of the zCDP events alone
    slack       Σ slack of the Gaussian events
    pure        every pure ε, (events,) or (events, agents)
    radial      of the same events: αr, ln(1+x), width and rank, (events, [agents,] 4); see `mixtures`
    """

    gaussian: Array
    zcdp: Array
    slack: Array
    pure: Array
    radial: Array

    @classmethod
    def of(cls, events: Iterable[Event]) -> Total:
        """Compose; one clear line if the events do not add up."""
        events = list(events)
        parts: dict[str, list[Number]] = {"gaussian": [0.0], "zcdp": [0.0], "slack": [0.0], "pure": []}
        shapes: list[tuple[Number, Number, int, int]] = []
        for event in events:
            calculus, value = _cost(event)
            parts[calculus].append(value)
            if calculus == "pure":
                shapes.append(_radial(event))
            elif isinstance(event, Gaussian):
                parts["slack"].append(event.slack)
        kinds = {event.kind for event in events if not isinstance(event, Free)}
        if len(kinds) > 1:
            shown = " and ".join("/".join(kind) for kind in sorted(kinds))
            raise ConfideError(f"{shown}: events of different kind do not add up: use totals()")
        sizes = {np.size(v) for values in parts.values() for v in values if np.ndim(v)}
        if len(sizes) > 1:
            raise ConfideError(f"events of {sorted(sizes)} agents: must describe equally many")
        shape = tuple(sizes)
        stack = {
            name: np.array([np.broadcast_to(v, shape) for v in values]).reshape(len(values), *shape)
            for name, values in parts.items()
        }
        radial = np.array([np.stack([np.broadcast_to(v, shape) for v in one], axis=-1) for one in shapes])
        radial = radial.reshape(len(shapes), *shape, 4)
        sums = {name: stack[name].sum(axis=0) for name in ("gaussian", "zcdp", "slack")}
        total = cls(**sums, pure=stack["pure"], radial=radial)
        if np.any((total.zcdp > 0) & (total.pure > 0).any(axis=0) & np.isfinite(total.gaussian)):
            raise ConfideError(
                "zCDP and pure-ε events cannot be mixed: charge the pure ε as Gaussian(gaussian_equivalent(ε), 1)"
            )
        return total

    def epsilon(self, delta: float) -> Number:
        """Smallest ε known for this δ, per agent."""

        def one(gaussian: float, zcdp: float, slack: float, pure: Array, radial: Array) -> float:
            if not math.isfinite(gaussian + zcdp + pure.sum()):
                return math.inf
            mu = math.sqrt(gaussian)
            if zcdp > 0:
                return slack_epsilon(lambda d: zcdp_epsilon(zcdp + gaussian / 2, d), slack, delta)
            if pure.size:
                return slack_epsilon(lambda d: pure_epsilon(mu, pure, radial, d), slack, delta)
            return slack_epsilon(lambda d: gaussian_epsilon(mu, d), slack, delta)

        return self._each(one)

    def delta(self, epsilon: float) -> Number:
        """Smallest δ known for this ε, per agent."""

        def one(gaussian: float, zcdp: float, slack: float, pure: Array, radial: Array) -> float:
            if not math.isfinite(gaussian + zcdp + pure.sum()):
                return 1.0
            mu = math.sqrt(gaussian)
            if zcdp > 0:
                return min(1.0, zcdp_delta(zcdp + gaussian / 2, epsilon) + slack_delta(slack, epsilon))
            if pure.size:
                return min(1.0, pure_delta(mu, pure, radial, epsilon) + slack_delta(slack, epsilon))
            best = min(epsilon, slack_turn(mu, slack))  # what holds at a smaller ε holds at this one
            return min(1.0, math.exp(log_gaussian_delta(mu, best)) + slack_delta(slack, best))

        return self._each(one)

    def _each(self, one: Callable[[float, float, float, Array, Array], float]) -> Number:
        """Apply a one-agent conversion to every agent, once per distinct total."""
        n, agents = len(self.pure), self.gaussian.size
        radial = np.moveaxis(self.radial.reshape(n, agents, 4), 1, 0).reshape(agents, 4 * n)
        sums = np.stack([self.gaussian, self.zcdp, self.slack], axis=-1).reshape(agents, 3)
        rows, back = np.unique(np.hstack([sums, self.pure.reshape(n, agents).T, radial]), axis=0, return_inverse=True)
        values = []
        for row in rows:
            pure, shape = row[3 : 3 + n], row[3 + n :].reshape(n, 4)
            gaussian, zcdp, slack = (float(v) for v in row[:3])
            values.append(one(gaussian, zcdp, slack, pure[pure > 0], shape[pure > 0]))
        return np.array(values)[back.ravel()] if self.gaussian.ndim else float(values[0])


def _radial(event: Event) -> tuple[Number, Number, int, int]:
    """αr, ln(1+x), width and rank of an objective perturbation; rank 0 for a fixed shift, width 0 for other pure ε."""
    if isinstance(event, RadialNoise):
        return event.epsilon, 0.0, int(event.width), 0
    if not isinstance(event, ObjectivePerturbation) or event.width is None:
        return 0.0, 0.0, 0, 0
    return np.multiply(event.noise_rate, event.shift), np.log1p(event.curvature_ratio), event.width, event.rank


def _cost(event: Event) -> tuple[str, Number]:
    """The calculus an event belongs to and its cost there."""
    match event:
        case Gaussian():
            with np.errstate(over="ignore"):
                return "gaussian", np.square(event.mu)
        case PureDP() | RandomizedResponse() | ObjectivePerturbation() | RadialNoise():
            return "pure", event.epsilon
        case ZCDP():
            return "zcdp", event.rho
        case Free():
            return "gaussian", 0.0
        case Unbounded():
            return "gaussian", math.inf
    known = ", ".join(kind.__name__ for kind in EVENT_TYPES)
    raise WrongType(f"unknown event {type(event).__name__}: the accountant knows {known}")


def bounded(event: Event) -> bool:
    """Whether every agent's cost is finite: some ε holds at every δ above 0; a slack of 1 or more says nothing."""
    slack = event.slack if isinstance(event, Gaussian) else 0.0
    return bool(np.all(np.isfinite(_cost(event)[1])) and np.all(np.less(slack, 1)))


# --- the public questions --------------------------------------------------------------------------------


def epsilon(events: Iterable[Event], delta: float) -> Number:
    """Total ε at `delta` in [0, 1): a float, or an array if any event has one value per agent."""
    if not 0 <= delta < 1:
        raise ConfideError(f"delta={delta}: must be in [0, 1)")
    return Total.of(events).epsilon(float(delta))


def delta(events: Iterable[Event], epsilon: float) -> Number:
    """Total δ at `epsilon` ≥ 0."""
    if not 0 <= epsilon < math.inf:
        raise ConfideError(f"epsilon={epsilon}: must be finite and at least 0")
    return Total.of(events).delta(float(epsilon))


def totals(events: Iterable[Event], delta: float) -> dict[Kind, Number]:
    """Total ε per kind (unit, adjacency, adversary), by first appearance; free events belong to none."""
    groups: dict[Kind, list[Event]] = {}
    for event in events:
        _cost(event)  # an unknown event is an error here too
        if not isinstance(event, Free):
            groups.setdefault(event.kind, []).append(event)
    return {kind: epsilon(group, delta) for kind, group in groups.items()}


def mu(events: Iterable[Event]) -> Number:
    """Gaussian-DP parameter sqrt(Σ(sensitivity/scale)²) of purely Gaussian events.

    With slack it is that of the Gaussian releases described, from which what was released differs in total variation by
    at most `Total.of(events).slack`; epsilon, delta, trade_off, distinguish and reconstruct count both.
    """
    total = Total.of(events)
    if np.any(total.zcdp > 0) or np.any(total.pure > 0):
        raise ConfideError("zCDP or pure-ε events: mu is defined for Gaussian events only: use epsilon()")
    root = np.sqrt(total.gaussian)
    return root if root.ndim else float(root)


def trade_off(events: Iterable[Event], alpha: float | Sequence[float] | Array) -> Number:
    """Smallest false-negative rate β of any test of two neighbours at false-positive rate `alpha`.

    G_μ(α) = Φ(Φ⁻¹(1−α) − μ) for Gaussian events, f_ε(α) = max(0, 1 − e^ε·α, e^−ε·(1−α)) with the summed ε
    for pure ones (Dong, Roth and Su 2022, section 2); with slack η it is max(0, f(α + η) − η). Shape: that of `alpha`,
    then agents.
    """
    level = np.asarray(alpha, dtype=np.float64)
    if not np.all((level >= 0) & (level <= 1)):
        raise ConfideError(f"alpha={alpha}: must be in [0, 1]")
    total = Total.of(events)
    whole = total.pure.sum(axis=0)
    if np.any(total.zcdp > 0) or (np.any(whole > 0) and np.any(total.gaussian > 0)):
        raise ConfideError("a mixture of events, or zCDP: the trade-off curve is for Gaussian or for pure-ε events")
    if total.gaussian.ndim:
        level = level[..., None]
    level = np.minimum(level + total.slack, 1.0)
    lost = np.isinf(total.gaussian) | np.isinf(whole)
    with np.errstate(divide="ignore", over="ignore"):
        root, whole = np.where(lost, 0.0, np.sqrt(total.gaussian)), np.where(lost, 0.0, whole)
        normal = special.ndtr(special.ndtri(1 - level) - root)
        chords = np.maximum(-np.expm1(whole + np.log(level)), np.exp(-whole) * (1 - level))
    beta = np.where(lost, 0.0, np.maximum(np.where(whole > 0, chords, normal) - total.slack, 0.0))
    return beta if beta.ndim else float(beta)


def distinguish(events: Iterable[Event] | float | Array, prior: float = 0.5) -> Number:
    """Chance that the best guess between two neighbouring data sets is right, the second having `prior` p.

    Bayes' rule errs least; its success is m + (1−m)·δ(ln(m/(1−m))) with m = max(p, 1−p), since δ(ε) is the
    largest P'(S) − e^ε·P(S). At p = ½ this is Φ(μ/2) for Gaussian events and e^ε/(1+e^ε) for a pure one.
    A number in place of events is a Gaussian-DP μ.
    """
    if not 0 < prior < 1:
        raise ConfideError(f"prior={prior}: must be in (0, 1)")
    sure = max(prior, 1 - prior)
    return sure + (1 - sure) * delta(_as_events(events), math.log(sure / (1 - sure)))


def reconstruct(events: Iterable[Event] | float | Array, prior: float) -> Number:
    """Bound on the chance of naming the record among many candidates, `prior` being that of a blind guess.

    1 − f(p) with f the trade-off curve: Φ(Φ⁻¹(p) + μ) for Gaussian events (Hayes, Mahloujifar and Balle
    2023). It holds for any number of candidates, each a neighbour of one fixed data set; for exactly two,
    `distinguish` is exact and smaller (Φ(μ/2), not Φ(μ), at prior ½).
    """
    if not 0 < prior < 1:
        raise ConfideError(f"prior={prior}: must be in (0, 1)")
    return 1 - trade_off(_as_events(events), prior)


def _as_events(events: Iterable[Event] | float | Array) -> Iterable[Event]:
    if isinstance(events, int | float | np.ndarray):
        return [Gaussian(checked("mu", "value", events, "at least 0"), 1.0)]
    return events
