"""What the adversary sees: every message of the target, and what either data set would have sent in its place."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.audit.canary import Canary
from confide.privacy.noise import SimulatedNoise

Array = NDArray[np.float64]
PUBLISHED = "directions "  # draws whose name begins so are known to all (PrivateZeroth's); D-ZOA means to hide its own


@dataclass(frozen=True, eq=False)
class Transcript:
    """Of S repetitions; F numbers sent over all rounds, and the round each of them belongs to.

    `residual` is the message less the mean of the two predictions, `shift` the second prediction less the first, both
    given the messages before: where noise is added to the message, the mean of `residual` is ∓ ½ shift.
    """

    messages: Array  # (S, F)
    residual: Array  # (S, F)
    shift: Array  # (S, F)
    rounds: NDArray[np.int64]  # (F,)


class Unpredictable(Exception):
    """A message that is not a function of data plus noise, so that silence predicts nothing."""


class Silent:
    """The noise of a run with everything secret set to zero."""

    def __init__(self, noise: SimulatedNoise) -> None:
        self.noise = noise

    def gaussian(self, name: str, value: Array, scale: Array) -> Array:
        return value

    def gamma_norm(self, name: str, width: int) -> Array:
        return np.zeros((len(self.noise.seeds), len(self.noise.agents), width))

    def ball(self, name: str, width: int) -> Array:
        return self.gamma_norm(name, width)

    def public_normal(self, name: str, width: int) -> Array:
        if not name.startswith(PUBLISHED):
            raise Unpredictable
        return self.noise.public_normal(name, width)

    def once(self) -> Silent:
        return self


def observe(
    algorithm: Algorithm, canary: Canary, world: int, seeds: NDArray[np.int64],
    step: Callable[[], Any] = lambda: None, predict: bool = True,
) -> Transcript:  # fmt: skip
    """Run the target alone on data set `world` (0 or 1), once for each seed; `step` is called every round.

    Without `predict`, which costs two thirds of the time, predictions are zero.
    """
    public, blocks = canary.view(algorithm), canary.blocks(algorithm)
    # A method that keeps more than its public state is audited with what it keeps: one copy for each use of it.
    real, models = deepcopy(algorithm), (deepcopy(algorithm), deepcopy(algorithm))
    schedule, noise = algorithm.schedule(public), SimulatedNoise(seeds, public.agents)
    own = own_weight(algorithm, canary)
    start = algorithm.init(public)
    state = type(start)(*(np.repeat(a, len(seeds), axis=0) for a in start))
    messages, residual, shift = [], [], []
    for t, touch in enumerate(schedule.touches, start=1):
        draws = noise.at(t)
        first = second = np.zeros(1)
        if predict:
            try:
                first, second = (
                    model.local(t, state, block if touch else None, public, Silent(draws))
                    for model, block in zip(models, blocks, strict=True)
                )
            except Unpredictable:
                predict = False
        message = real.local(t, state, blocks[world] if touch else None, public, draws)
        if not np.all(np.isfinite(message)):
            raise FloatingPointError(f"round {t}: the target diverged: lower the step or raise the penalty parameter")
        messages.append(message[:, 0])
        residual.append((message - 0.5 * (first + second))[:, 0])
        shift.append((np.zeros_like(message) + second - first)[:, 0])
        heard = canary.heard[(t - 1) % len(canary.heard)]
        state = algorithm.absorb(t, state, message, own * message + heard, public)
        step()
    rounds = np.repeat(np.arange(len(schedule.widths)), schedule.widths)
    return Transcript(np.hstack(messages), np.hstack(residual), np.hstack(shift), rounds)


def own_weight(algorithm: Algorithm, canary: Canary) -> float:
    """What the target's own message counts in what it receives."""
    if algorithm.topology != "peer":
        return 1.0
    return float(algorithm.weights(canary.graph).tocsr()[canary.target, canary.target])
