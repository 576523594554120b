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

zCDP with pure ε is refused, and so are events of different kind (unit, adjacency, adversary).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, erfinv, log_expit, ndtr, ndtri, ndtri_exp

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
    RandomizedResponse,
    Unbounded,
    checked,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_RTOL = 4 * np.finfo(float).eps
_PLD_FLOOR = 1e-12      # FFT convolutions carry absolute errors: no δ below this is taken from them
_PLD_POINTS = 2**18     # grid points: a second of work, and as fine as dp-accounting's default at μ = 1


# --- one agent: conversions -------------------------------------------------------------------------------

def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """ln δ(ε) of a μ-Gaussian-DP release."""
    if mu == 0:
        return -math.inf
    return _log_delta(mu, epsilon / mu - mu / 2) if mu < math.inf else 0.0


def _log_delta(mu: float, a: float) -> float:
    """ln δ at ε = μ²/2 + a·μ, that is a deviations above the mean loss, without cancellation.

    With b = a + μ the identity e^ε·φ(b) = φ(a) gives δ = φ(a)·[m(a) − m(b)], m the Mills ratio. For small
    μ the bracket is integrated, −m'(x) = 1 − x·m(x), rather than subtracted.
    """
    if a > 40:
        return -a * a / 2         # Φ(−a) bounds δ by this; it is below the smallest double anyhow
    if mu < 1:
        x = a + mu * (1 + _NODES) / 2
        gap = float(_WEIGHTS @ (1 - x * _mills(x))) * mu / 2
    elif a > 0:
        gap = float(_mills(a) - _mills(a + mu))
    else:                         # m(a) overflows for very negative a; δ itself is large
        return math.log(ndtr(-a) - math.exp(-a * a / 2) * _mills(a + mu) / math.sqrt(2 * math.pi))
    return -a * a / 2 - math.log(2 * math.pi) / 2 + math.log(gap)


def _mills(x: Any) -> Any:
    """Mills ratio Φ(−x)/φ(x)."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _gaussian_epsilon(mu: float, delta: float) -> float:
    if mu == 0 or delta == 0 or mu == math.inf:
        return math.inf if mu else 0.0
    target = math.log(delta)
    if log_gaussian_delta(mu, 0.0) <= target:
        return 0.0
    low = max(-mu / 2, -10.0)                             # ε = 0, or as far down as δ = 1 in doubles
    high = math.sqrt(-2 * target)                         # there δ ≤ Φ(−√(2 ln 1/δ)) < the target
    a = _root(lambda a: _log_delta(mu, a) - target, low, high, 1e-17 * min(mu, 1.0))
    return mu * (mu / 2 + a)


def _zcdp_epsilon(rho: float, delta: float) -> float:
    """Least ρ(1+x) − ln(1+1/x) + (ln 1/δ − ln(1+x))/x over orders 1+x, where ρx² + ln(1+x) = ln 1/δ."""
    if delta == 0:
        return math.inf
    budget, rho = -math.log(delta), max(rho, 1e-200)      # a larger ρ is valid, and x² stays a double
    x = _root(lambda x: rho * x * x + math.log1p(x) - budget, 0.0, 2 * math.sqrt(budget / rho))
    return max(0.0, rho * (1 + x) - math.log1p(1 / x) + (budget - math.log1p(x)) / x)


def _zcdp_delta(rho: float, epsilon: float) -> float:
    """The same curve read the other way; ln δ is convex in the order, least where ρ(1+2x) − ln(1+1/x) = ε."""

    def slope(u: float) -> float:
        return rho * (1 + 2 * math.exp(u)) - math.log1p(math.exp(-u)) - epsilon
    low, high = -690.0, min(690.0, max(0.0, math.log(epsilon + 1) - math.log(rho)))
    if slope(low) >= 0:
        return 1.0                # ρ so large that nothing below δ = 1 is known
    x = math.exp(_root(slope, low, high, 1e-15) if slope(high) > 0 else high)      # every order is valid
    return math.exp(min(0.0, x * ((1 + x) * rho - epsilon - math.log1p(1 / x)) - math.log1p(x)))


def _root(function: Callable[[float], float], low: float, high: float, xtol: float = 1e-300) -> float:
    return float(brentq(function, low, high, xtol=xtol, rtol=_RTOL, maxiter=2000))


def gaussian_equivalent(epsilon: Number) -> Number:
    """μ = 2Φ⁻¹(e^ε/(1+e^ε)): every ε-DP release is μ-Gaussian-DP, so that pure ε can enter a running Σμ².

    Both trade-off curves pass through (0,1), (1,0) and the same fixed point; the pure one is made of the
    two chords of the convex Gaussian one, hence above it.
    """
    value = np.asarray(checked("gaussian_equivalent", "epsilon", epsilon, "at least 0"))
    # Two forms of one formula: the first keeps small ε, the second keeps e^−ε beyond 1e-16.
    small = 2 * math.sqrt(2) * erfinv(np.tanh(np.minimum(value, 1.0) / 2))
    mu = np.where(value < 1, small, -2 * ndtri_exp(log_expit(-np.maximum(value, 1.0))))
    return mu if mu.ndim else float(mu)


# --- one agent: pure ε, alone or with Gaussians -----------------------------------------------------------

def _pure_epsilon(mu: float, pure: Array, delta: float) -> float:
    whole = float(pure.sum())
    if mu == 0:
        # One ε-DP release is (ln(e^ε(1−δ) − δ), δ)-private: binary randomised response is the worst case.
        rest = 1 - delta - delta * math.exp(-whole)
        basic = max(0.0, whole + math.log(rest)) if rest > 0 else 0.0
    else:
        basic = _gaussian_epsilon(mu, delta) + whole
    bounds = [basic, _gaussian_epsilon(_all_gaussian(mu, pure), delta)]
    if delta >= _PLD_FLOOR and (loss := _loss_distribution(mu, pure)) is not None:
        bounds.append(float(loss.get_epsilon_for_delta(delta)))
    return min(bounds)


def _pure_delta(mu: float, pure: Array, epsilon: float) -> float:
    whole = float(pure.sum())
    if mu == 0:
        basic = max(0.0, -math.expm1(epsilon - whole) / (1 + math.exp(-whole))) if epsilon < whole else 0.0
    else:
        basic = math.exp(log_gaussian_delta(mu, epsilon - whole)) if epsilon >= whole else 1.0
    bounds = [basic, math.exp(log_gaussian_delta(_all_gaussian(mu, pure), epsilon))]
    if min(bounds) > _PLD_FLOOR and (loss := _loss_distribution(mu, pure)) is not None:
        bounds.append(max(_PLD_FLOOR, float(loss.get_delta_for_epsilon(epsilon))))
    return min(bounds)


def _all_gaussian(mu: float, pure: Array) -> float:
    return math.hypot(mu, *np.atleast_1d(gaussian_equivalent(pure)))


def _loss_distribution(mu: float, pure: Array) -> Any:
    """dp-accounting's privacy loss distribution, or None where closed forms are exact or have to do.

    The Gaussian enters with standard deviation 1/μ at sensitivity 1 and add-or-remove direction: our
    sensitivities already count replacement, which the library's REPLACE_ONE would double.
    """
    if mu == 0 and pure.size == 1:
        return None
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as library
    except ImportError:
        if mu == 0:
            return None           # pure ε alone keeps its closed forms, which are valid and only looser
        raise ImportError(
            "mixing Gaussian and pure-ε events needs dp-accounting: pip install confide[accounting]"
        ) from None
    span = mu * mu + 20 * mu + 2 * float(pure.sum())
    if span > 600:
        return None               # e^loss leaves the doubles inside the library
    values, counts = np.unique(pure, return_counts=True)
    step = max(1e-3 * min(float(pure.mean()), mu or math.inf), span / _PLD_POINTS)
    if values.size == 1 and (mu == 0 or values[0] >= step):
        # A grid that divides ε makes the pure part exact; halving keeps the division exact in doubles.
        halvings = max(0, math.ceil(math.log2(values[0] / step))) if mu else 0
        step = float(values[0]) / 2**halvings
    else:
        step = 2.0 ** math.floor(math.log2(step))
    loss = None if mu == 0 else library.from_gaussian_mechanism(1 / mu, value_discretization_interval=step)
    for value, count in zip(values, counts, strict=True):
        on_grid = math.ceil(value / step) * step          # rounding ε up keeps the bound valid
        part = library.from_privacy_parameters(common.DifferentialPrivacyParameters(on_grid, 0.0), step)
        part = part.self_compose(int(count))
        loss = part if loss is None else loss.compose(part)
    return loss


# --- all agents ------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Total:
    """The composed cost of events of one kind; arrays have shape () or (agents,)."""

    gaussian: Array     # Σ (sensitivity/scale)²; infinite where something is unbounded
    zcdp: Array         # Σ ρ of the zCDP events alone
    pure: Array         # every pure ε, (events,) or (events, agents)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Total:
        """Compose; one clear line if the events do not add up."""
        events = list(events)
        parts: dict[str, list[Number]] = {"gaussian": [0.0], "zcdp": [0.0], "pure": []}
        for event in events:
            calculus, value = _cost(event)
            parts[calculus].append(value)
        kinds = {event.kind for event in events if not isinstance(event, Free)}
        if len(kinds) > 1:
            shown = " and ".join("/".join(kind) for kind in sorted(kinds))
            raise ValueError(f"events of different kind do not add up, given {shown}: use totals()")
        sizes = {np.size(v) for values in parts.values() for v in values if np.ndim(v)}
        if len(sizes) > 1:
            raise ValueError(f"events must describe equally many agents, given {sorted(sizes)}")
        shape = tuple(sizes)
        stack = {name: np.array([np.broadcast_to(v, shape) for v in values]).reshape(len(values), *shape)
                 for name, values in parts.items()}
        total = cls(stack["gaussian"].sum(axis=0), stack["zcdp"].sum(axis=0), stack["pure"])
        if np.any((total.zcdp > 0) & (total.pure > 0).any(axis=0) & np.isfinite(total.gaussian)):
            raise ValueError("zCDP and pure-ε events cannot be mixed: "
                             "charge the pure ε as Gaussian(gaussian_equivalent(ε), 1)")
        return total

    def epsilon(self, delta: float) -> Number:
        """Smallest ε known for this δ, per agent."""
        def one(gaussian: float, zcdp: float, pure: Array) -> float:
            if not math.isfinite(gaussian + zcdp + pure.sum()):
                return math.inf
            if zcdp > 0:
                return _zcdp_epsilon(zcdp + gaussian / 2, delta)
            if pure.size:
                return _pure_epsilon(math.sqrt(gaussian), pure, delta)
            return _gaussian_epsilon(math.sqrt(gaussian), delta)
        return self._each(one)

    def delta(self, epsilon: float) -> Number:
        """Smallest δ known for this ε, per agent."""
        def one(gaussian: float, zcdp: float, pure: Array) -> float:
            if not math.isfinite(gaussian + zcdp + pure.sum()):
                return 1.0
            if zcdp > 0:
                return _zcdp_delta(zcdp + gaussian / 2, epsilon)
            if pure.size:
                return _pure_delta(math.sqrt(gaussian), pure, epsilon)
            return math.exp(log_gaussian_delta(math.sqrt(gaussian), epsilon))
        return self._each(one)

    def _each(self, one: Callable[[float, float, Array], float]) -> Number:
        """Apply a one-agent conversion to every agent, once per distinct total."""
        table = np.vstack([self.gaussian, self.zcdp, self.pure.reshape(len(self.pure), self.gaussian.size)]).T
        rows, back = np.unique(table, axis=0, return_inverse=True)
        values = np.array([one(float(r[0]), float(r[1]), r[2:][r[2:] > 0]) for r in rows])
        return values[back.ravel()] if self.gaussian.ndim else float(values[0])


def _cost(event: Event) -> tuple[str, Number]:
    """The calculus an event belongs to and its cost there."""
    match event:
        case Gaussian():
            with np.errstate(over="ignore"):
                return "gaussian", np.square(event.mu)
        case PureDP() | RandomizedResponse() | ObjectivePerturbation():
            return "pure", event.epsilon
        case ZCDP():
            return "zcdp", event.rho
        case Free():
            return "gaussian", 0.0
        case Unbounded():
            return "gaussian", math.inf
    known = ", ".join(kind.__name__ for kind in EVENT_TYPES)
    raise TypeError(f"unknown event {type(event).__name__}: the accountant knows {known}")


# --- the public questions --------------------------------------------------------------------------------

def epsilon(events: Iterable[Event], delta: float) -> Number:
    """Total ε at `delta` in [0, 1): a float, or an array if any event has one value per agent."""
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), given {delta}")
    return Total.of(events).epsilon(float(delta))


def delta(events: Iterable[Event], epsilon: float) -> Number:
    """Total δ at `epsilon` ≥ 0."""
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be finite and at least 0, given {epsilon}")
    return Total.of(events).delta(float(epsilon))


def totals(events: Iterable[Event], delta: float) -> dict[Kind, Number]:
    """Total ε per kind (unit, adjacency, adversary), by first appearance; free events belong to none."""
    groups: dict[Kind, list[Event]] = {}
    for event in events:
        _cost(event)              # an unknown event is an error here too
        if not isinstance(event, Free):
            groups.setdefault(event.kind, []).append(event)
    return {kind: epsilon(group, delta) for kind, group in groups.items()}


def mu(events: Iterable[Event]) -> Number:
    """Gaussian-DP parameter sqrt(Σ(sensitivity/scale)²) of purely Gaussian events."""
    total = Total.of(events)
    if np.any(total.zcdp > 0) or np.any(total.pure > 0):
        raise ValueError("mu is defined for Gaussian events only, given zCDP or pure-ε events: use epsilon()")
    root = np.sqrt(total.gaussian)
    return root if root.ndim else float(root)


def trade_off(events: Iterable[Event], alpha: float | Sequence[float] | Array) -> Number:
    """Smallest false-negative rate β of any test of two neighbours at false-positive rate `alpha`.

    G_μ(α) = Φ(Φ⁻¹(1−α) − μ) for Gaussian events, f_ε(α) = max(0, 1 − e^ε·α, e^−ε·(1−α)) with the summed ε
    for pure ones (Dong, Roth and Su 2022, section 2). Shape: that of `alpha`, then agents.
    """
    level = np.asarray(alpha, dtype=np.float64)
    if not np.all((level >= 0) & (level <= 1)):
        raise ValueError(f"alpha must be in [0, 1], given {alpha}")
    total = Total.of(events)
    whole = total.pure.sum(axis=0)
    if np.any(total.zcdp > 0) or (np.any(whole > 0) and np.any(total.gaussian > 0)):
        raise ValueError("the trade-off curve is for Gaussian or for pure-ε events, given a mixture or zCDP")
    if total.gaussian.ndim:
        level = level[..., None]
    lost = np.isinf(total.gaussian) | np.isinf(whole)
    with np.errstate(divide="ignore", over="ignore"):
        root, whole = np.where(lost, 0.0, np.sqrt(total.gaussian)), np.where(lost, 0.0, whole)
        normal = ndtr(ndtri(1 - level) - root)
        chords = np.maximum(-np.expm1(whole + np.log(level)), np.exp(-whole) * (1 - level))
    beta = np.where(lost, 0.0, np.where(whole > 0, np.maximum(chords, 0.0), normal))
    return beta if beta.ndim else float(beta)


def distinguish(events: Iterable[Event] | float | Array, prior: float = 0.5) -> Number:
    """Chance that the best guess between two neighbouring data sets is right, the second having `prior` p.

    Bayes' rule errs least; its success is m + (1−m)·δ(ln(m/(1−m))) with m = max(p, 1−p), since δ(ε) is the
    largest P'(S) − e^ε·P(S). At p = ½ this is Φ(μ/2) for Gaussian events and e^ε/(1+e^ε) for a pure one.
    A number in place of events is a Gaussian-DP μ.
    """
    if not 0 < prior < 1:
        raise ValueError(f"prior must be in (0, 1), given {prior}")
    sure = max(prior, 1 - prior)
    return sure + (1 - sure) * delta(_as_events(events), math.log(sure / (1 - sure)))


def reconstruct(events: Iterable[Event] | float | Array, prior: float) -> Number:
    """Bound on the chance of naming the record among many candidates, `prior` being that of a blind guess.

    1 − f(p) with f the trade-off curve: Φ(Φ⁻¹(p) + μ) for Gaussian events (Hayes, Mahloujifar and Balle
    2023). It holds for any number of candidates, each a neighbour of one fixed data set; for exactly two,
    `distinguish` is exact and smaller (Φ(μ/2), not Φ(μ), at prior ½).
    """
    if not 0 < prior < 1:
        raise ValueError(f"prior must be in (0, 1), given {prior}")
    return 1 - trade_off(_as_events(events), prior)


def _as_events(events: Iterable[Event] | float | Array) -> Iterable[Event]:
    if isinstance(events, int | float | np.ndarray):
        return [Gaussian(checked("mu", "value", events, "at least 0"), 1.0)]
    return events
