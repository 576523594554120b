"""CDP-ADMM with the mistakes that users of other libraries were burnt by. The audit must catch each of them."""

from dataclasses import dataclass

import numpy as np

from confide.algorithms import CDPADMM, Schedule
from confide.privacy import Free


class Louder:
    """Another's noise, its Gaussian scale multiplied."""

    def __init__(self, noise, factor):
        self.noise, self.factor = noise, factor

    def gaussian(self, name, value, scale):
        return self.noise.gaussian(name, value, self.factor * scale)


@dataclass(frozen=True, eq=False)
class NoiseHalved(CDPADMM):
    """Draws half the noise it reports."""

    def local(self, t, state, block, public, noise):
        return super().local(t, state, block, public, Louder(noise, 0.5))


@dataclass(frozen=True, eq=False)
class FactorMissing(CDPADMM):
    """Takes c1 for the sensitivity, as if a row were added; a replaced row moves the gradient by 2·c1."""

    def sensitivity(self, t, public):
        return super().sensitivity(t, public) / 2


@dataclass(frozen=True, eq=False)
class NoisedAgain(CDPADMM):
    """Crashes after every send, and sends the same round again with fresh noise: the wire carries both."""

    def schedule(self, public):
        touches, widths = super().schedule(public)
        return Schedule(touches, 2 * widths)

    def local(self, t, state, block, public, noise):
        sent = super().local(t, state, block, public, noise)
        quiet = super().local(t, state, block, public, Louder(noise, 0.0))
        again = noise.gaussian("after the crash", quiet, self.noise_scale(t, public))
        return np.concatenate([sent, again], axis=2)

    def absorb(self, t, state, message, received, public):
        half = message.shape[2] // 2
        return super().absorb(t, state, message[:, :, half:], received[:, :, half:], public)


@dataclass(frozen=True, eq=False)
class OwnStateWithoutNoise(CDPADMM):
    """Continues from its un-noised iterate, which the neighbours never see, instead of from its broadcast."""

    def local(self, t, state, block, public, noise):
        if t > 1:
            state = state._replace(primal=self.own)
        object.__setattr__(self, "own", super().local(t, state, block, public, Louder(noise, 0.0)))
        return noise.gaussian("primal", self.own, self.noise_scale(t, public))


@dataclass(frozen=True, eq=False)
class RoundNotCounted(CDPADMM):
    """Reports the last round as free."""

    def events(self, public):
        return [*super().events(public)[:-1], [Free()]]


BUGS = (NoiseHalved, FactorMissing, NoisedAgain, OwnStateWithoutNoise, RoundNotCounted)
