"""What the adversary sees: every message of the target, and what either data set would have sent in its place.

A run that breaks off is seen, too: a message that is not finite is not sent, nor is one that a solver gave up on.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.audit.adversary import LARGEST
from confide.audit.canary import Canary
from confide.privacy.noise import SimulatedNoise
from confide.problem.questions import within

Array = NDArray[np.float64]
PUBLISHED = "directions "  # draws whose name begins so are known to all (PrivateZeroth's); D-ZOA means to hide its own
SHOWN = 1e70  # longer numbers are clipped to it, so that squares of squares are finite


@dataclass(frozen=True, eq=False)
class Transcript:
    """Of S repetitions; F numbers sent over all rounds, and the round each of them belongs to.

    `residual` is the message less the mean of the two predictions, `shift` the second prediction less the first, both
    given the messages before: where noise is added to the message, the mean of `residual` is ∓ ½ shift. After a run has
    broken off all three are 0.
    """

    messages: Array  # (S, F)
    residual: Array  # (S, F)
    shift: Array  # (S, F)
    rounds: NDArray[np.int64]  # (F,)
    stopped: NDArray[np.int64]  # (S,) the round that sent nothing; 0: all were sent
    predicted: bool = True

    @staticmethod
    def stack(parts: list[Transcript]) -> Transcript:
        """Repetitions of several transcripts of one method as one."""
        first = parts[0]
        messages, residual, shift = (
            np.concatenate([getattr(p, name) for p in parts]) for name in ("messages", "residual", "shift")
        )
        stopped = np.concatenate([p.stopped for p in parts])
        return Transcript(messages, residual, shift, first.rounds, stopped, all(p.predicted for p in parts))


class Unpredictable(Exception):
    """A message that is not a function of data plus noise, so that silence predicts nothing."""


class SilentNoise:
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

    def once(self) -> SilentNoise:
        return self


def observe(
    algorithm: Algorithm, canary: Canary, world: int, seeds: NDArray[np.int64],
    step: Callable[[], Any] = lambda: None, predict: bool = True,
) -> Transcript:  # fmt: skip
    """Run the target alone on data set `world` (0 or 1), once for each seed; `step` is called every round.

    Without `predict`, which costs two thirds of the time, predictions are zero. Messages stay in the method's public
    ball: the target clips its own to it, and what lies outside would not be heard.
    """
    try:
        with np.errstate(all="ignore"):  # overflow is what some adversaries are after
            return _observe(algorithm, canary, world, seeds, step, predict)
    except ArithmeticError:  # of one repetition or more; each of them is a run of its own
        half = len(seeds) // 2
        parts = (seeds[:half], seeds[half:])
        return Transcript.stack([observe(algorithm, canary, world, s, step, predict) for s in parts])


def _observe(
    algorithm: Algorithm, canary: Canary, world: int, seeds: NDArray[np.int64], step: Callable[[], Any],
    predict: bool,
) -> Transcript:  # fmt: skip
    public, blocks = canary.view(algorithm), canary.blocks(algorithm)
    # A method that keeps more than its public state is audited with what it keeps: one copy for each use of it.
    real, models = deepcopy(algorithm), (deepcopy(algorithm), deepcopy(algorithm))
    schedule, noise = algorithm.schedule(public), SimulatedNoise(seeds, public.agents)
    own, others = weights(algorithm, canary)
    start = algorithm.init(public)
    state = type(start)(*(np.repeat(a, len(seeds), axis=0) for a in start))
    sent: list[Array] = []
    residual, shift = [], []
    stopped = np.zeros(len(seeds), np.int64)
    company = Company(algorithm, canary, seeds)
    ball = min(algorithm.message_bound(public), LARGEST)
    for t, (touch, width) in enumerate(zip(schedule.touches, schedule.widths, strict=True), start=1):
        draws, nothing = noise.at(t), np.full((len(seeds), 1, int(width)), np.nan)
        if np.all(stopped):
            message = first = second = nothing
        else:
            first, second = np.zeros((2, 1, 1, 1))
            if predict:
                try:
                    first, second = (
                        model.local(t, state, block if touch else None, public, SilentNoise(draws))
                        for model, block in zip(models, blocks, strict=True)
                    )
                except Unpredictable:
                    predict = False
                except ArithmeticError:  # one of the two worlds would break off
                    first = second = nothing
                first, second = (one + company.messages(t, state, silent=True) for one in (first, second))
            try:
                message = real.local(t, state, blocks[world] if touch else None, public, draws)
            except ArithmeticError:
                if len(seeds) > 1:
                    raise
                message = nothing
        stopped[~np.all(np.isfinite(message), axis=(1, 2)) & (stopped == 0)] = t
        over = stopped[:, None] > 0
        message = np.where(over[:, None], 0.0, message)
        message[:, 0] = within(message[:, 0], ball)
        message = np.where(over[:, None], 0.0, message + company.messages(t, state))
        sent.append(message[:, 0])
        residual.append(np.where(over, 0.0, tame((message - 0.5 * first - 0.5 * second)[:, 0])))
        shift.append(np.where(over, 0.0, tame((np.zeros_like(message) + second - first)[:, 0])))
        heard = canary.adversary.heard(t, sent, canary.bound, others * ball)
        state = algorithm.absorb(t, state, message, own * message + heard[:, None], public)
        if np.any(over):  # nothing follows: any state will do
            state = type(state)(*(np.where(stopped.reshape(-1, *[1] * (a.ndim - 1)) > 0, 0.0, a) for a in state))
        step()
    rounds = np.repeat(np.arange(len(schedule.widths)), schedule.widths)
    return Transcript(tame(np.hstack(sent)), np.hstack(residual), np.hstack(shift), rounds, stopped, predict)


class Company:
    """Honest parties in whose sum the target's message is hidden, each with its own rows and noise; perhaps none."""

    def __init__(self, algorithm: Algorithm, canary: Canary, seeds: NDArray[np.int64]) -> None:
        public = canary.public(algorithm)
        self.algorithm, self.parties = algorithm, [
            (public.at(k), canary.one.only(k), SimulatedNoise(seeds, np.array([k]))) for k in canary.hidden(algorithm)
        ]  # fmt: skip

    def messages(self, t: int, state: Any, silent: bool = False) -> Array:
        """The sum of what they send in round t: (S, 1, W), or 0; their state is the target's, as it is public."""
        total: Any = 0.0
        for public, block, noise in self.parties:
            draws = SilentNoise(noise.at(t)) if silent else noise.at(t)
            total = total + self.algorithm.local(t, state, block, public, draws)
        return np.asarray(total)


def tame(x: Array) -> Array:
    """Numbers that can be squared twice: what is longer is cut, what is none is 0."""
    return np.clip(np.nan_to_num(x, nan=0.0), -SHOWN, SHOWN)


def weights(algorithm: Algorithm, canary: Canary) -> tuple[float, float]:
    """What the target's own message counts in what it receives, and what its neighbours' count together."""
    if algorithm.topology != "peer":
        return 1.0, float(canary.graph.size - 1 - len(canary.hidden(algorithm)))
    row = algorithm.weights(canary.graph).tocsr()[[canary.target], :].toarray()[0]
    own = float(row[canary.target])
    return own, float(np.abs(row).sum() - abs(own))
