"""Linearised ADMM as it should be, and with the mistakes that it must not have. The audit must catch each of them.

Nothing here leans on how the methods of the library clip, scale their noise or count it: a mistake that is mended there
stays one here. Rows and losses are plain NumPy (squared and logistic loss only).
"""

from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from scipy.special import expit

from confide.algorithms import Schedule
from confide.algorithms.base import Algorithm, Consensus
from confide.algorithms.dp_admm import ServerState
from confide.privacy import Free, Gaussian, mu, mu_for
from confide.problem.losses import Logistic


def rows(block):
    """The target's rows (M, W), with the intercept's 1, and its targets (M,)."""
    X = np.asarray(block.shards.X)
    return np.hstack([X, np.ones((len(X), 1))]) if block.intercept else X, block.shards.y


def slopes(block, beta):
    """ℓ' of every row: (S, M)."""
    X, y = rows(block)
    with np.errstate(all="ignore"):
        z = np.stack([np.sum(X * b, axis=1) for b in beta[:, 0]])
        return -y * expit(-y * z) if isinstance(block.loss, Logistic) else z - y


def clipped_gradient(block, beta, clip):
    """Each row's gradient clipped to `clip` whatever doubles it holds; one that is no number counts as 0."""
    X, _ = rows(block)
    s = slopes(block, beta)[:, :, None]
    top = np.maximum(np.abs(X).max(axis=1, keepdims=True), 5e-324)
    unit = X / top
    size = np.linalg.norm(unit, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        short = np.sign(s) * clip * unit / np.maximum(size, 5e-324)
        each = np.where(np.abs(s) * top * size > clip, short, s * X)
    each = np.where(np.isfinite(s), each, 0.0)
    return block.scale[0] * np.sum(each, axis=1)[:, None]


def gradient_that_overflows(block, beta, clip):
    """As it was: a margin beyond 1.8e308 gives ∞·0, which is no number, and nothing stops it."""
    s = slopes(block, beta)
    told = ~np.all(np.isfinite(s), axis=1)
    return np.where(told[:, None, None], np.nan, clipped_gradient(block, beta, clip))


def gradient_by_squared_norms(block, beta, clip):
    """As it was: a norm whose square underflows is 0, and its row is not clipped."""
    X, _ = rows(block)
    s = slopes(block, beta)
    with np.errstate(all="ignore"):
        size = np.abs(s) * np.sqrt(np.sum(X * X, axis=1))
        s = s * np.where(size > clip, clip / size, 1.0)
        each = s[:, :, None] * X
    return block.scale[0] * np.sum(np.where(np.isfinite(each), each, 0.0), axis=1)[:, None]


@dataclass(frozen=True, eq=False)
class Sound(Algorithm):
    """Rows answer with a clipped gradient, noise is added to the answer, and all else is public arithmetic."""

    clip: float = 1.0
    noise: float = 0.0  # standard deviation, on the gradient
    coupling: float = 1.0
    step: float = 1.0
    proximal: bool = False

    gradient = staticmethod(clipped_gradient)

    def stiffness(self, public):
        return 1 / self.step + 2 * self.coupling * public.degree

    def answer(self, t, state, block, public, noise):
        return noise.gaussian("gradient", self.gradient(block, state.primal, self.clip), public.each(self.noise))

    def move(self, g, state, public):
        """The public step: (7)."""
        h = self.stiffness(public)
        pull = state.primal / self.step + self.coupling * (public.degree * state.primal + state.neighbours)
        if self.proximal:
            return public.penalty_prox((pull - g - state.dual) / h, 1 / h)
        return (pull - g - public.penalty_gradient(state.primal) - state.dual) / h

    def local(self, t, state, block, public, noise):
        return self.move(self.answer(t, state, block, public, noise), state, public)

    def absorb(self, t, state, message, received, public):
        dual = state.dual + self.coupling * (public.degree * message - received)
        return Consensus(message, dual, received)

    def claimed(self, public):
        """Sensitivity of what carries the noise, and the noise's scale: (A, 1) each."""
        return 2 * self.clip * public.scale, public.each(self.noise)

    def events(self, public):
        sensitivity, scale = self.claimed(public)
        return [[Gaussian(sensitivity[:, 0], scale[:, 0])] for _ in range(self.rounds)]

    def calibrated(self, public, epsilon, delta):
        one = mu(chain.from_iterable(replace(self, noise=1.0).events(public)))
        return replace(self, noise=float(np.max(one)) / mu_for(epsilon, delta))


class Louder:
    """Another's noise, its Gaussian scale multiplied."""

    def __init__(self, noise, factor):
        self.noise, self.factor = noise, factor

    def gaussian(self, name, value, scale):
        return self.noise.gaussian(name, value, self.factor * scale)


# --- slips of the pen ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoiseHalved(Sound):
    """Draws half the noise it reports."""

    def local(self, t, state, block, public, noise):
        return super().local(t, state, block, public, Louder(noise, 0.5))


@dataclass(frozen=True, eq=False)
class FactorMissing(Sound):
    """Takes c1 for the sensitivity, as if a row were added; a replaced row moves the gradient by 2·c1."""

    def claimed(self, public):
        sensitivity, scale = super().claimed(public)
        return sensitivity / 2, scale


@dataclass(frozen=True, eq=False)
class NoisedAgain(Sound):
    """Crashes after every send, and sends the same round again with fresh noise: the wire carries both."""

    def schedule(self, public):
        touches, widths, noised = super().schedule(public)
        return Schedule(touches, 2 * widths, 2 * noised)

    def local(self, t, state, block, public, noise):
        quiet = self.gradient(block, state.primal, self.clip)
        drawn = (noise.gaussian(name, quiet, public.each(self.noise)) for name in ("gradient", "after the crash"))
        return np.concatenate([self.move(g, state, public) for g in drawn], axis=2)

    def absorb(self, t, state, message, received, public):
        half = message.shape[2] // 2
        return super().absorb(t, state, message[:, :, half:], received[:, :, half:], public)


@dataclass(frozen=True, eq=False)
class OwnStateWithoutNoise(Sound):
    """Continues from its un-noised iterate, which the neighbours never see, instead of from its broadcast."""

    def local(self, t, state, block, public, noise):
        if t > 1:
            state = state._replace(primal=self.own)
        g = self.gradient(block, state.primal, self.clip)
        object.__setattr__(self, "own", self.move(g, state, public))
        return self.move(noise.gaussian("gradient", g, public.each(self.noise)), state, public)


@dataclass(frozen=True, eq=False)
class RoundNotCounted(Sound):
    """Reports the last round as free."""

    def events(self, public):
        return [*super().events(public)[:-1], [Free()]]


@dataclass(frozen=True, eq=False)
class NoiseDrawnOnce(Sound):
    """Takes the same noise in every round: what one of them adds, the difference of two leaves out."""

    def local(self, t, state, block, public, noise):
        return super().local(t, state, block, public, noise.once())


# --- what an attack found -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoiseLast(Sound):
    """Adds noise to the finished message: what a neighbour sends near 2^52 rounds the gradient before it is hidden."""

    def claimed(self, public):
        return 2 * self.clip * public.scale / self.stiffness(public), public.each(self.noise)

    def local(self, t, state, block, public, noise):
        beta = self.move(self.gradient(block, state.primal, self.clip), state, public)
        return noise.gaussian("primal", beta, public.each(self.noise))


@dataclass(frozen=True, eq=False)
class InterceptContracts(NoiseLast):
    """Multiplies the sensitivity by the prox's contraction, which the intercept, unpenalised, does not share."""

    def claimed(self, public):
        sensitivity, scale = super().claimed(public)
        if self.proximal:
            sensitivity = sensitivity / (1 + public.penalty.l2 / (public.count * self.stiffness(public)))
        return sensitivity, scale


@dataclass(frozen=True, eq=False)
class HubRounds(Sound):
    """DP-ADMM whose noise comes last: a hub that relays a sum near 2^52 rounds the gradient."""

    topology = "all"

    def init(self, public):
        zero = np.zeros((1, len(public.agents), public.width))
        return ServerState(zero, zero, zero, zero)

    def stiffness(self, public):
        return np.full((len(public.agents), 1), self.coupling + 1 / self.step)

    def claimed(self, public):
        return 2 * self.clip * public.scale / self.stiffness(public), public.each(self.noise)

    def local(self, t, state, block, public, noise):
        g, h = self.gradient(block, state.primal, self.clip), self.stiffness(public)
        v = state.primal / self.step + state.dual + self.coupling * state.average - g
        if self.proximal:
            w = public.penalty_prox(v / h, 1 / h)
        else:
            w = (v - public.penalty_gradient(state.primal)) / h
        return noise.gaussian("primal", w, public.each(self.noise)) - state.dual / self.coupling

    def absorb(self, t, state, message, received, public):
        average, primal = received / public.count, message + state.dual / self.coupling
        return ServerState(primal, state.dual - self.coupling * (primal - average), average, average)


@dataclass(frozen=True, eq=False)
class MarginOverflows(Sound):
    """A neighbour who sends 5e307 makes one row's margin infinite: no number is sent, which tells the row."""

    gradient = staticmethod(gradient_that_overflows)


@dataclass(frozen=True, eq=False)
class ClipBySquares(Sound):
    """A row so short that its squared norm is 0 is not clipped, whatever its target makes of it."""

    gradient = staticmethod(gradient_by_squared_norms)


SLIPS = (NoiseHalved, FactorMissing, NoisedAgain, OwnStateWithoutNoise, RoundNotCounted, NoiseDrawnOnce)
FOUND = (  # the mistake, the loss that shows it, and what the audit must name: rows, or what was said, or what was seen
    (InterceptContracts, "logistic", "canary", "all zero"),
    (NoiseLast, "squared", "adversary", "neighbours say some"),
    (HubRounds, "squared", "adversary", "the hub adds some"),
    (MarginOverflows, "squared", "distinguisher", "where it breaks off"),
    (ClipBySquares, "squared", "canary", "1e-170"),
)
