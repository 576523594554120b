"""What a member of a federation does in a round, with a disk and without a network.

`Trainer` is a party and `Relay` the hub of methods with a server. Both replay their journal when they begin, `begin`
what can be sent at once, and turn the frames of a round into the next one by `step`. `sent` rounds are in the journal
and may be served, `t` rounds are complete. Order on a party: ledger, then journal, then send.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from confide.network import wire
from confide.network.identity import Card, Identity
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.party import Party, add
from confide.node.purse import Purse
from confide.node.rows import read_block
from confide.privacy.noise import SimulatedNoise
from confide.privacy.secure import SecureNoise
from confide.problem.block import Block

Frames = Mapping[str, bytes]  # of one round, by the sender's name


class Member(Protocol):
    """What the daemon carries over the network."""

    neighbours: dict[str, Card]
    rounds: int
    t: int

    @property
    def sent(self) -> int: ...
    def width(self, t: int) -> int: ...
    def open(self) -> None: ...
    def begin(self) -> None: ...
    def step(self, frames: Frames) -> None: ...
    def spent(self) -> float | None: ...
    def end(self) -> None: ...
    @property
    def distance(self) -> float | None: ...
    @property
    def estimate(self) -> list[float] | None: ...


class Base:
    """The journal and the public schedule, which parties and hub have in common."""

    def __init__(self, federation: Federation, identity: Identity, journal: Journal) -> None:
        self.federation, self.identity, self.journal = federation, identity, journal
        self.neighbours = federation.neighbours(identity.card.name)
        self.rounds, self.t = federation.algorithm.rounds, 0
        self._widths = federation.algorithm.schedule(federation.public).widths

    @property
    def sent(self) -> int:
        return self.journal.last(self.identity.card.digest)

    def width(self, t: int) -> int:
        """Numbers in a message of round t."""
        return int(self._widths[t - 1])

    def _commit(self, t: int, payload: bytes) -> None:
        self.journal.commit(wire.pack(self.identity, self.federation.digest, t, payload))

    def _own(self, t: int) -> bytes:
        return wire.payload_of(self.journal.frame(self.identity.card.digest, t))


class Trainer(Base):
    """Party k: its rows are read by `begin`, after all neighbours have shown the same federation."""

    def __init__(self, federation: Federation, identity: Identity, journal: Journal,
                 purse: Purse | None = None, data: Path | None = None) -> None:  # fmt: skip
        super().__init__(federation, identity, journal)
        k = federation.parties.index(identity.card.name)
        seed = federation.test_noise_seed
        noise = SecureNoise() if seed is None else SimulatedNoise(np.array([seed]), np.array([k]))
        self.party = Party(k, federation.algorithm, federation.public, None, noise)
        self.purse, self._data = purse, data
        self._heard: tuple[bytes, list[bytes]] | None = None  # the last own message and what came with it
        self._replay()

    def _replay(self) -> None:
        """State is a function of the messages in the journal: no row is read, no noise drawn."""
        for t in range(1, self.sent + 1):
            frames = {name: self.journal.get(card.digest, t) for name, card in self.neighbours.items()}
            self.party.restore(self._own(t))
            if None in frames.values():
                break
            self._receive({name: frame for name, frame in frames.items() if frame is not None})

    def open(self) -> None:
        """Hold the whole schedule in the ledger, or refuse."""
        if self.purse is not None:
            self.purse.open(f"{self.federation.digest.hex()[:16]}/{self.journal.nonce.hex()[:16]}", self.sent)

    def begin(self) -> None:
        """Read the rows and make the first message that is not in the journal yet."""
        if self.t < self.rounds:
            assert self._data is not None
            self.party.block = self._block(self._data)
            self._send()

    def _block(self, data: Path) -> Block:
        work = self.journal.path.with_name("rows")
        return read_block(data, self.federation, self.party.k, work, training=self.sent > 0)

    def _send(self) -> None:
        t = self.t + 1
        if t > self.sent:
            if self.purse is not None:
                self.purse.pay(t)
            self._commit(t, self.party.send())

    def step(self, frames: Frames) -> None:
        """Keep and absorb the neighbours' frames of this round, and make the next message."""
        self.journal.keep(frames.values())
        self._receive(frames)
        if self.t < self.rounds:
            self._send()
        else:
            self.journal.sync()

    def _receive(self, frames: Frames) -> None:
        heard = {name: wire.payload_of(frame) for name, frame in frames.items()}
        if self.federation.hub is not None:
            total = heard[self.federation.hub]
            self._heard = (self.party.send(), [total])
            self.party.receive_sum(total)
        else:
            self._heard = (self.party.send(), list(heard.values()))
            number = {name: k for k, name in enumerate(self.federation.parties)}
            self.party.receive({number[name]: payload for name, payload in heard.items()})
        self.t = self.party.t

    @property
    def distance(self) -> float | None:
        """Largest distance from the own message to a neighbour's, or to the hub's mean, over its length: all public."""
        if self._heard is None:
            return None
        own, *others = (np.frombuffer(v, "<f8") for v in (self._heard[0], *self._heard[1]))
        share = 1.0 if self.federation.hub is None else 1.0 / len(self.federation.parties)
        return max(float(np.linalg.norm(share * v - own)) for v in others) / max(float(np.linalg.norm(own)), 1e-300)

    def spent(self) -> float | None:
        return None if self.purse is None else self.purse.spent()

    def end(self) -> None:
        if self.purse is not None:
            self.purse.end()

    @property
    def estimate(self) -> list[float] | None:
        return [float(v) for v in self.party.estimate]


class Relay(Base):
    """The hub: adds up what all parties sent and hands out the sum. It holds no rows and is no agent."""

    distance: float | None = None
    estimate: list[float] | None = None

    def __init__(self, federation: Federation, identity: Identity, journal: Journal) -> None:
        super().__init__(federation, identity, journal)
        self.t = self.sent

    def open(self) -> None: ...

    def begin(self) -> None: ...

    def step(self, frames: Frames) -> None:
        t = self.t + 1
        self.journal.keep(frames.values())
        self._commit(t, add([wire.payload_of(frames[name]) for name in self.federation.parties], self.width(t)))
        self.t = t

    def spent(self) -> float | None:
        return None

    def end(self) -> None: ...
