"""`Party`: one agent as an object of its own, exchanging bytes. No input or output: a driver carries the bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.errors import ConfideError, Diverged
from confide.privacy.noise import SimulatedNoise
from confide.privacy.secure import SecureNoise
from confide.problem.block import Block
from confide.problem.problem import Public
from confide.problem.questions import within
from confide.runs.priced import Priced

Array = NDArray[np.float64]
LARGEST = 2.0**300  # longest message where a method knows no ball: squares and sums of it are finite


def encode(message: Array) -> bytes:
    """A vector as little-endian doubles."""
    return np.ascontiguousarray(message, "<f8").tobytes()


def decode(data: bytes, width: int) -> Array:
    """The vector again; its length and every number are checked."""
    if len(data) != 8 * width:
        raise ConfideError(f"message of {len(data)} bytes: must be {8 * width}, {width} numbers")
    values = np.frombuffer(data, "<f8").astype(float)
    if not np.isfinite(values).all():
        raise ConfideError("message holds a value that is not finite")
    return values


def add(messages: Iterable[bytes], width: int) -> bytes:
    """What a hub relays: the sum of all parties' messages, added in their order as the simulator does."""
    total = np.zeros(width)
    for data in messages:
        total += decode(data, width)
    return encode(total)


class Party:
    """Agent k of a network: the algorithm's own functions on arrays (1, 1, width)."""

    def __init__(
        self, k: int, algorithm: Algorithm, public: Public, block: Block | None, noise: SimulatedNoise | SecureNoise
    ) -> None:
        self.k, self.algorithm, self.noise = k, algorithm, noise
        self.public = public.at(k)
        self.schedule = algorithm.schedule(self.public)
        self.priced = Priced(algorithm, self.public)
        self.state: Any = algorithm.init(self.public)
        self.weights = self._weights(public)
        self.radius = min(algorithm.message_bound(self.public), LARGEST)
        self.t = 0
        self._sent: bytes | None = None
        self.hold(block)

    def hold(self, block: Block | None) -> None:
        """Its rows, or none: one that only follows others' messages has no use for noise."""
        self.block = block
        self._draw_ahead(self.t + 1)

    def _draw_ahead(self, t: int) -> None:
        """Secure noise of round t, before its inputs are here: the time that takes depends on what is drawn."""
        if self.block is not None and isinstance(self.noise, SecureNoise) and t <= len(self.schedule.noised):
            self.noise.prepare(int(self.schedule.noised[t - 1]))

    def _weights(self, public: Public) -> dict[int, float]:
        if self.algorithm.topology == "all":
            return dict.fromkeys(range(public.count), 1.0)
        row = self.algorithm.weights(public.graph).tocsr()[[self.k]]
        return {int(l): float(w) for l, w in zip(row.indices, row.data, strict=True)}

    def send(self) -> bytes:
        """The message of the next round: computed once, then the same bytes each time."""
        if self._sent is None:
            t = self.t + 1
            self.priced.check(t)
            block = self.block if self.schedule.touches[t - 1] else None
            message = within(self.algorithm.local(t, self.state, block, self.public, self.noise.at(t)), self.radius)
            if not np.isfinite(message).all():
                raise Diverged(f"round {t}: diverged: lower the step or raise the coupling")
            self._sent = encode(message)
            self._draw_ahead(t + 1)
        return self._sent

    def restore(self, data: bytes) -> None:
        """The stored message of this round stands: nothing is computed and no noise drawn again."""
        decode(data, int(self.schedule.widths[self.t]))
        self._sent = data
        self._draw_ahead(self.t + 2)

    def abandon(self) -> None:
        """Nobody will use the message of this round: `send` computes another, which is another release."""
        self._sent = None
        self._draw_ahead(self.t + 1)

    def receive(self, messages: Mapping[int, bytes]) -> None:
        """The neighbours' messages of this round, by agent; a missing one is replaced by the own message."""
        own, width = self.send(), int(self.schedule.widths[self.t])
        received = np.zeros((1, 1, width))
        for l in sorted(self.weights):
            data = own if l == self.k else messages.get(l, own)
            received[0, 0] += self.weights[l] * decode(data, width)
        self._absorb(own, received)

    def receive_sum(self, total: bytes) -> None:
        """What a hub relays: the sum over all parties, this one included."""
        self._absorb(self.send(), decode(total, int(self.schedule.widths[self.t]))[None, None])

    def _absorb(self, own: bytes, received: Array) -> None:
        t = self.t + 1
        message = decode(own, received.shape[2])[None, None]
        self.state = self.algorithm.absorb(t, self.state, message, received, self.public)
        self.t, self._sent = t, None

    @property
    def estimate(self) -> Array:
        return np.asarray(self.algorithm.estimate(self.state, self.public)[0, 0])
