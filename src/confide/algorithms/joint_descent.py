"""Joint descent: gradient descent with momentum on private sums, after a first round that looks at the features' scale.

No paper: the rule below was found by trial on generated problems, Adult, Waveform and Twonorm (docs/auto.md). All that
it needs to know is public, or bought in round 1 and then public.

    1  g ← 9/(4√2)·f·√p/(nμ√.1), f = √(K/h): how loud the moments' noise would be beside them
    2  g < .4: buy m, q, the means of x and x∘x, for 10 % of μ²; s: the noise's deviation in q
    3    m ← m·(1 - 4ps²/‖m‖²)₊, r ← q - m∘m, r̄ ← mean of r, within [max(.05, g)/p, 1/p]
    4    B ← S/(S + s²), S = (var r - (1 + √(2/p))s²)₊; v ← (r̄ + B(r - mean r))₊
    5    a ← (v + .15Bs)^-½, scaled to Σ v a² = ρ; κ ← 1/√ρ
    6  .4 ≤ g < 1: buy V, the mean of ½‖x - x'‖² over pairs, for 5 % of μ²; κ ← 1/√V, V within [.15, 1]; a ← 1, m ← 0
       (regressions go by line 2 up to g < 1)
    7  g ≥ 1: buy nothing; κ ← 1, a ← 1, m ← 0
    8  α ← κω/(s_g T), at most 1.9·(1.8/.2)/L; s_g: deviation of a gradient's noise if one round had all that is left
       of μ²; T rounds share it by what each will weigh in the model; λ: by loss after line 2, else 1
       (logistic, after line 2: ω√(.05/g) where that is more, at most 1.5ω)
    9  for T rounds: g̃ ← Σ_k ∇_θ on (u, ½), u = a∘(x - m), slopes clipped, rows weighed by min(1, 1/‖u‖), + noise
   10    α_t ← min(α, 1.15 α_t-1, .8·1.9·(1.8/.2)/b), b: the largest curvature along a move so far, from g̃ and θ
   11    θ⁺ ← prox(θ - .2α_t λ∘g̃ + .8(θ - θ⁻), .2α_t), λ in the intercept's place, 1 in all others
   12  the model is the mean of the last 40 % of θ, in the coordinates of x

symbol      code             shape     public argument
θ, θ⁻       model, before    S A W
m, a        centre, stretch  S A p
α, α_t, b   goal, step, bend  S A 1
T           descents         number    rounds, less one where round 1 buys something
c, h        colluders        number    collusion
g, μ        loudness         number    noise: deviation on a party's own answer in round 1
ω, ρ, λ, L  DescentConstants number    by loss; and clip, of a row's gradient in units of (u, ½)

Rows are in units of the row norm. After T rounds without curvature noise has moved every coefficient of θ by α·s_g·T =
κω: noise and travel grow together, and line 8 says how far to go: farther where noise is so low that what is not yet
reached, along features that rise and fall together, is more than what noise adds. Rows that are far from the centre
weigh less, which bounds them; a slope is clipped at what it is where θ = 0. Line 11 without a penalty is
w ← .8w + λ∘g̃, θ ← θ - .2αw. ρ, the mean of ‖u‖², says how many rows are shortened: beyond 1 most of them speak equally
loud, above the same noise. The intercept answers to a feature of ½, and with λ = 1 it is late where classes are uneven
and rows easy to part.
L = ℓ''·max(¼, max v a²) bounds the curvature along features, not along all of them together, which may be 1/max v a²
times that where features rise and fall together: without line 10 such a descent never comes to rest. It starts at a
step that is safe for any rows, and costs nothing.

Privacy: one `Moments` or `PairDistances`, then `Standardised` gradients at what the sums so far say, as `summed`
proves; everything else is arithmetic on public sums. Rows must be within a norm that is enforced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from confide.algorithms.base import Array, tail_mean
from confide.algorithms.gaussian import wanted_mu
from confide.algorithms.summed import SummedMethod, mass
from confide.errors import ConfideError
from confide.problem.losses import Huber, Logistic, Loss, Multinomial, Quantile, SmoothedHinge, Squared
from confide.problem.problem import Public
from confide.problem.questions import EXTREME, Moments, PairDistances, Question, Standardised, usable_norm
from confide.problem.standardised import HALF, tamed

PRICE = {"moments": 0.1, "spread": 0.05, "gradient": 0.0}  # of μ², for what round 1 buys
SURE = math.sqrt(2.0)  # times s²/√p: one deviation of what noise alone adds to var r
LOUD = 1.0  # g beyond which nothing is worth its price
MOMENTUM, TAIL = 0.8, 0.4
CLEAR = 0.05  # g below which a longer way is worth its noise
GROWTH, CALM = 1.15, 0.8  # of the step, from round to round and below what the bends seen so far allow
BRISK = 1.9 * (1 + MOMENTUM) / (1 - MOMENTUM)  # largest α·L: below 2(1 + .8)/(1 - .8), where momentum diverges


class DescentConstants(NamedTuple):
    """What suits a loss."""

    slope: float  # to which a row's is clipped
    curvature: float  # largest, of the loss in the margin
    wander: float  # ω: of a coefficient, by noise
    quiet: float = 0.4  # g up to which moments are worth their price
    length: float = 1.0  # ρ: mean of ‖u‖², where moments say it
    haste: float = 1.0  # λ: of the intercept's step beside the coefficients', there
    reach: float = 1.0  # times ω at the most, where g is below CLEAR


def descent_constants(loss: Loss) -> DescentConstants:
    """Constants by loss, the targets of regressions being in [-1, 1].

    A wrong scale of the features leaves a classifier's answers as they are, but not a prediction: regressions do
    without the spread.
    """
    match loss:
        case Logistic():
            return DescentConstants(0.5, 0.25, 1.0, length=1.5, haste=2.25, reach=1.5)
        case Multinomial():
            return DescentConstants(0.7 * math.sqrt(1 - 1 / loss.classes), 0.5, 1.0)
        case SmoothedHinge():
            return DescentConstants(1.0, loss.curvature_bound, 0.5)
        case Squared():
            return DescentConstants(0.25, 1.0, 0.2, LOUD)
        case Huber():
            return DescentConstants(min(loss.width, 0.25), 1.0, 0.2, LOUD)
        case Quantile():
            return DescentConstants(loss.slope_bound, 4.0, 0.2, LOUD)  # it bends as densely as targets lie
    raise ConfideError(f"JointDescent has no settings for {type(loss).__name__}")


class Journey(NamedTuple):
    """Where the descent is, in standardised coordinates, and what those are."""

    model: Array
    before: Array
    tail: Array
    centre: Array
    stretch: Array
    goal: Array
    gradient: Array
    bend: Array
    step: Array


@dataclass(frozen=True, eq=False)
class JointDescent(SummedMethod):
    """Gradient descent on the sum of all parties' clipped gradients, features standardised where that can be paid.

    rounds    a whole number of at least 2: round 1 buys `first`, all others are steps
    first     what round 1 buys: "moments", "spread" or "gradient"; None: as μ allows, see `calibrated`
    """

    needs = "logistic, multinomial, smoothed hinge, squared, Huber or quantile loss; rows within a norm"

    rounds: int = 61
    first: str | None = None  # what round 1 buys: moments, spread or gradient; None: as μ allows, see `calibrated`

    def check(self, public: Public) -> None:
        super().check(public)
        descent_constants(public.loss)
        if self.first is not None and self.first not in PRICE:
            raise ConfideError(f"{self.name} first={self.first!r}: must be one of {', '.join(PRICE)}, or None")
        if self.descents(public) < 1:
            raise ConfideError(f"{self.name} rounds={self.rounds}: round 1 buys {self.buys(public)}, give at least 2")
        if public.row_norm is None:
            raise ConfideError(f"{self.name}: rows must be within a norm, see Shards.clip_rows")
        if not usable_norm(public.row_norm):
            raise ConfideError(
                f"{self.name}: row norm {public.row_norm}: must be between {1 / EXTREME:g} and {EXTREME:g}"
            )

    # --- what is asked, and for how much ----------------------------------------------------------------------------

    def buys(self, public: Public) -> str:
        """What round 1 buys."""
        return self.first or ("moments" if self.private(public) else "gradient")

    def descents(self, public: Public) -> int:
        """T."""
        return self.rounds - (self.buys(public) != "gradient")

    def enforced_bound(self, public: Public) -> Array:
        """Of a row's gradient in standardised coordinates; ∞ where rows may be of any length."""
        if public.row_norm is None:
            return public.each(math.inf)
        slope = descent_constants(public.loss).slope if self.private(public) else math.inf
        longest = math.sqrt(1 + HALF**2 * public.intercept)
        return np.minimum(public.each(self.clip), public.each(min(slope, public.loss.slope_bound) * longest))

    def question(self, t: int, public: Public) -> Question:
        norm = public.each(norm_of(public))
        if t == 1 and self.buys(public) == "moments":
            return Moments(norm)
        if t == 1 and self.buys(public) == "spread":
            return PairDistances(norm)
        return Standardised(self.enforced_bound(public), norm)

    def shares(self, public: Public) -> Array:
        T = self.descents(public)
        return all_shares(PRICE[self.buys(public)], self.rounds - T, T)

    def calibrated(
        self, public: Public, epsilon: float | None = None, delta: float | None = None, *, mu: float | None = None
    ) -> Self:
        """The least noise that keeps to the budget; round 1 buys what the budget can pay for."""
        target = wanted_mu(epsilon, delta, mu)
        g = self.loudness(public, target)
        first = self.first or (
            "moments" if g < descent_constants(public.loss).quiet else "spread" if g < LOUD else "gradient"
        )
        if self.first is None and self.rounds == 1:
            first = "gradient"  # one round has none to give away
        return super(JointDescent, replace(self, first=first)).calibrated(public, mu=target)

    def loudness(self, public: Public, mu: float) -> float:
        """g: the length of the noise that squares of features would carry, beside rows of length 1."""  # line 1
        unit = float(np.max(Moments(public.each(1.0)).exact_sensitivity(public.whole))) / mass(public)
        f = math.sqrt(public.count / self.honest(public))
        return unit * f * math.sqrt(public.features) / (mu * math.sqrt(PRICE["moments"]))

    # --- the descent ------------------------------------------------------------------------------------------------

    def init(self, public: Public) -> Journey:
        one = (1, len(public.agents))
        zero, flat = np.zeros((*one, public.width)), np.zeros((*one, public.features))
        alone = np.ones((*one, 1))
        safe = BRISK / (descent_constants(public.loss).curvature * (1 + HALF**2))  # no rows of length 1 bend more
        goal = self.pace(1.0, 1.0, public) * alone
        return Journey(zero, zero, zero, flat, flat + 1.0, goal, zero, 0.0 * alone, safe / GROWTH * alone)

    def pace(self, kappa: Array | float, largest: Array | float, public: Public) -> Array:
        """α, where the largest variance of a feature of u is `largest`."""  # line 8
        likes, T = descent_constants(public.loss), self.descents(public)
        most = BRISK / (likes.curvature * np.maximum(0.25, largest))
        if not self.private(public):
            return np.asarray(most)
        loud = self.gradient_noise(T, public) * math.sqrt(float(gradient_shares(T)[-1]))  # s_g
        return np.minimum(kappa * likes.wander / (loud * T), most)

    def gradient_noise(self, t: int, public: Public) -> float:
        """Standard deviation of the noise in the t-th gradient; 0 for t = 0."""
        if t == 0 or not self.private(public):
            return 0.0
        return float(self.sum_scale(self.rounds - self.descents(public) + t, public)[0, 0]) / mass(public)

    def points(self, t: int, state: Journey, public: Public) -> tuple[object, ...]:
        if t > self.rounds - self.descents(public):
            return state.model, state.centre, state.stretch
        return (len(state.model),)

    def learn(self, t: int, state: Journey, total: Array, public: Public) -> Journey:
        total = total / mass(public)
        bought = self.rounds - self.descents(public)
        if t > bought:
            return self.descend(t - bought, state, total, public)
        if self.buys(public) == "spread":
            return state._replace(goal=self.pace(spread_factor(total, public), 1.0, public))  # line 6
        noise = float(self.sum_scale(1, public)[0, 0]) / mass(public) if self.private(public) else 0.0
        rho, g = descent_constants(public.loss).length, noise / norm_of(public) ** 2 * math.sqrt(public.features)
        farther = min(max(math.sqrt(CLEAR / max(g, 1e-300)), 1.0), descent_constants(public.loss).reach)
        centre, stretch, variance = standards(total, noise, norm_of(public), public.intercept, rho)
        largest = np.max(variance * stretch**2, axis=-1, keepdims=True)
        return state._replace(centre=centre, stretch=stretch, goal=self.pace(farther * rho**-0.5, largest, public))

    def goes_on(self, t: int, state: Journey, public: Public) -> Journey:
        """From where it is, at rest: the gradient of fewer rows is another function, and says nothing of the bend of
        the one before, nor is the way it was going theirs."""
        return super().goes_on(t, state._replace(before=state.model), public)

    def descend(self, t: int, state: Journey, gradient: Array, public: Public) -> Journey:
        moved = state.model - state.before
        bend = np.maximum(state.bend, self.bend(t, state, gradient, moved, public))
        most = np.minimum(state.goal, GROWTH * state.step)
        step = np.minimum(most, CALM * BRISK / np.maximum(bend, 1e-300))  # line 10
        eta = (1 - MOMENTUM) * step
        v = state.model - eta * self.speeds(state, public) * gradient + MOMENTUM * moved
        model = self.shrunk(v, eta, state, public)  # line 11
        tail = tail_mean(state.tail, model, t, self.descents(public), 1 - TAIL)
        return state._replace(model=model, before=state.model, tail=tail, gradient=gradient, bend=bend, step=step)

    def speeds(self, state: Journey, public: Public) -> Array:
        """λ for the intercept and 1 for coefficients, (S, A, W); less where the step's cap would not hold for it."""
        likes, outputs = descent_constants(public.loss), public.loss.outputs
        out = np.ones((*state.goal.shape[:2], outputs, public.width // outputs))
        if public.intercept and self.buys(public) == "moments":
            most = BRISK / (state.goal * likes.curvature * HALF**2)  # (S, A, 1)
            out[..., -1] = np.clip(most, 1.0, likes.haste)
        return out.reshape(*state.goal.shape[:2], -1)

    def bend(self, t: int, state: Journey, gradient: Array, moved: Array, public: Public) -> Array:
        """Curvature of the loss along the last move, from the sums: (S, A, 1); less what their noise adds to it.

        The last gradient's noise, of variance s² a number, is in the move -.2αλ times, and -1 times in the change. A
        move is measured in coordinates in which all steps are alike: there the bend bounds α.
        """
        speeds = self.speeds(state, public)
        added = (1 - MOMENTUM) * state.step * np.sum(speeds, axis=-1, keepdims=True)
        along = np.sum((gradient - state.gradient) * moved, axis=-1, keepdims=True)
        along = along - added * self.gradient_noise(t - 1, public) ** 2
        size = np.sum(moved * moved / speeds, axis=-1, keepdims=True)
        return np.divide(along, size, out=np.zeros_like(size), where=size > 0)

    def shrunk(self, v: Array, eta: Array, state: Journey, public: Public) -> Array:
        """argmin of η·R(β)/mass + ½‖θ - v‖², the penalty being on the coefficients β = a∘θ/C of x."""
        if not (public.penalty.l1 or public.penalty.l2) and public.penalty.convex:
            return v
        a, shape = self.coordinates(state, public)[0], (*v.shape[:2], public.loss.outputs, -1)
        unit = np.where(a > 0, a, 1.0)[:, :, None] / norm_of(public)
        out = v.reshape(shape).copy()
        p = public.features
        steps = eta[..., None] * unit**2 / mass(public)
        out[..., :p] = public.penalty.prox(out[..., :p] * unit, steps) / unit
        return out.reshape(v.shape)

    def coordinates(self, state: Journey, public: Public) -> tuple[Array, Array]:
        """a and m as the question takes them."""
        return tamed(state.centre, state.stretch, public.intercept)

    def estimate(self, state: Journey, public: Public) -> Array:
        a, m = self.coordinates(state, public)
        p, S, A = public.features, *state.tail.shape[:2]
        model = state.tail.reshape(S, A, public.loss.outputs, -1).copy()
        model[..., :p] *= a[:, :, None]
        if public.intercept:
            model[..., p] = HALF * model[..., p] - np.sum(model[..., :p] * m[:, :, None], axis=-1)
        model[..., :p] /= norm_of(public)  # line 12
        return model.reshape(S, A, -1)


@lru_cache(maxsize=64)
def all_shares(price: float, bought: int, T: int) -> Array:
    """Of every round: `price` for each that is bought, then the gradients' shares of the rest."""
    out = np.concatenate([np.full(bought, price), (1 - price) * gradient_shares(T)])
    out.flags.writeable = False  # kept: nobody else may change it
    return out


def gradient_shares(T: int) -> Array:
    """What each gradient spends of what is left: ∝ √max(w_t, .2), 1 together.

    w_t = mean over the averaged s of (1 - .8^(s-t+1))₊ is what the t-th gradient weighs in the model where nothing
    bends: late ones are in few of the averaged iterates. Shares ∝ w_t waste nothing there; bends forget early ones.
    """
    first, t = int((1 - TAIL) * T) + 1, np.arange(1.0, T + 1)
    s = np.maximum(first, t)  # the first averaged iterate that the gradient is in
    count = T - s + 1
    geometric = MOMENTUM ** (s - t + 1) * (1 - MOMENTUM**count) / (1 - MOMENTUM)  # Σ .8^(s-t+1)
    weight = (count - geometric) / (T - first + 1)
    share = np.sqrt(np.maximum(weight, 0.2))
    return np.asarray(share / share.sum())


def norm_of(public: Public) -> float:
    """C: the enforced row norm, ∞ without one."""
    return math.inf if public.row_norm is None else public.row_norm


def standards(total: Array, s: float, norm: float, intercept: bool, length: float = 1.0) -> tuple[Array, Array, Array]:
    """m, a and v from the noised means of (½C·x, x∘x); s: the noise's deviation, C: the row norm, length: ρ."""
    half, q = np.split(total / norm**2, 2, axis=-1)
    m, s, p = 2.0 * half, s / norm**2, q.shape[-1]
    size = np.maximum(np.sum(m * m, axis=-1, keepdims=True), 1e-300)
    m = m * np.maximum(1.0 - 4.0 * p * s * s / size, 0.0) if intercept else np.zeros_like(m)  # line 3
    r = q - m * m
    middle = np.mean(r, axis=-1, keepdims=True)
    signal = np.maximum(np.var(r, axis=-1, keepdims=True) - (1 + SURE / math.sqrt(p)) * s * s, 0.0)
    B = signal / np.maximum(signal + s * s, 1e-300)  # line 4
    least = min(max(0.05, s * math.sqrt(p)), 1.0)  # no scale is taken from what may be noise
    v = np.maximum(np.clip(middle, least / p, 1.0 / p) + B * (r - middle), 0.0)
    a = 1.0 / np.sqrt(np.maximum(v + 0.15 * B * s, 1e-12))  # line 5
    a = a * np.sqrt(length / np.maximum(np.sum(v * a * a, axis=-1, keepdims=True), 1e-12))
    return m, a, v


def spread_factor(total: Array, public: Public) -> Array:
    """κ = 1/√V; the sum counts every pair 2/n of all rows, and there may be odd ones."""
    pairs = float(public.whole.scale[:, 0] @ (public.sizes // 2)) * 2.0 / mass(public)
    V = np.clip(total / pairs, 0.15, 1.0) if pairs > 0 else np.ones_like(total)
    return 1.0 / np.sqrt(V)
