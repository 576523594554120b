"""What a member of a federation does in a round, with a disk and without a network.

`Trainer` is a party and `Hub` the hub of methods with a server; who learns by private sums is a `summer.Summer`. All
replay their journal when they begin, `begin` what can be sent at once, and turn the frames of a round into the next one
by `step`. `sent` rounds are in the journal and may be served, `t` rounds are complete. Order on a party: ledger, then
noise, then journal, then send.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from confide.errors import ConfideError
from confide.files.library import sparse as sp
from confide.network import wire
from confide.network.identity import Card, Identity
from confide.network.peer import AHEAD
from confide.node import compaction
from confide.node.amended_cost import prices_of
from confide.node.federation import Federation
from confide.node.journal import Journal, run_name
from confide.node.purse import Purse
from confide.node.rows import read_block
from confide.node.witness import Witness
from confide.privacy.noise import SimulatedNoise
from confide.privacy.secure import SecureNoise
from confide.problem.block import Block
from confide.runs.party import LARGEST, Party, add

Frames = Mapping[str, bytes]  # of one round, by the sender's name
COMPACTED = "left out when the journal was compacted, for all neighbours had it: restore the newest copy of yours"


class Member(Protocol):
    """What the daemon carries over the network."""

    neighbours: dict[str, Card]
    rounds: int
    notice: str  # what the owner should know, once open

    last: int  # what is asked for last: the last round, or its number
    ahead: int  # how far beyond `latest` a neighbour may ask

    @property
    def t(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def latest(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def silenced(self) -> str: ...
    def frame(self, number: int) -> bytes: ...
    def longest(self) -> int: ...
    def check(self, name: str, number: int, frame: bytes) -> None: ...
    def believe(self, alarm: bytes) -> Exception: ...
    def open(self) -> None: ...
    def admit(self, shown: int) -> None: ...
    def begin(self) -> None: ...
    def spent(self) -> float | None: ...
    def end(self) -> None: ...
    @property
    def left(self) -> float | None: ...
    @property
    def few(self) -> float | None: ...
    @property
    def distance(self) -> float | None: ...
    @property
    def estimate(self) -> list[float] | None: ...


class Base:
    """The journal and the public schedule, which parties and hub have in common."""

    ahead = AHEAD
    silenced = "run again to go on"
    few: float | None = None

    def __init__(self, federation: Federation, identity: Identity, journal: Journal) -> None:
        self.federation, self.identity, self.journal = federation, identity, journal
        self.neighbours = federation.neighbours(identity.card.name)
        self.rounds, self.t, self.notice = federation.algorithm.rounds, 0, ""
        self.last = self.rounds
        self._widths = federation.algorithm.schedule(federation.public).widths
        self.radius = max(min(now.algorithm.message_bound(now.public), LARGEST) for now in federation.history)
        self.witness = Witness(federation, identity.card.name)
        self._held: dict[tuple[bytes, str], int] = {}  # by terms and name, the last round of a key that was revoked

    @property
    def sent(self) -> int:
        return self.journal.last(self.identity.card.digest)

    @property
    def latest(self) -> int:
        return self.sent

    @property
    def done(self) -> bool:
        return self.t >= self.rounds

    def frame(self, number: int) -> bytes:
        """What a neighbour who asks for this round hears, or one line."""
        found = self.journal.frame(self.identity.card.digest, number)
        if wire.form_of(found) == wire.Form.SEAL:
            raise ConfideError(f"round {number}: {COMPACTED}")
        return found

    def believe(self, alarm: bytes) -> Exception:
        """What a neighbour's alarm proves, or one line."""
        return self.witness.believe(alarm)

    def width(self, t: int) -> int:
        """Numbers in a message of round t."""
        return int(self._widths[t - 1])

    def longest(self) -> int:
        """Bytes of a frame at most."""
        return wire.frame_size(int(max(self._widths)), self.witness.longest())

    def check(self, name: str, t: int, frame: bytes) -> None:
        """Raises unless this is a neighbour's frame of round t, in the public ball, and all it states is true."""
        if name not in self.neighbours:
            raise ConfideError(f"frame of {name}, who is no neighbour")
        now = self.federation.under(wire.run_of(frame))  # what its sender held to
        if t > (last := self._last_under(now, name)):
            raise ConfideError(f"frame of round {t} under {now.head.hex()[:16]}, by which {name} signs to round {last}")
        told: int | None = len(self.witness.told(name, t, now))
        if wire.is_frame(frame) and wire.form_of(frame) == wire.Form.NUMBERS:
            mine = self.identity.card.name
            if mine in now.cards and name in now.neighbours(mine):
                raise ConfideError(f"the statements of round {t}: {COMPACTED}")
            told = None  # sent before there was a link
        wire.unpack(frame, now.cards[name], now.head, t, self.width(t), self.radius, told)
        self.witness.check(name, t, frame)

    def _last_under(self, now: Federation, name: str) -> int:
        """The last round that a member can have signed under these terms, with the key that they name.

        Of what lies beyond the rounds of its terms nobody else believes that it was signed (`witness.valid`). And two
        messages do not contradict each other if one has a key that was revoked: who went on with it could tell everyone
        something else. A message needs those of all neighbours of the round before, and nobody who holds to another key
        hands the old one any. Who was no neighbour then is ahead by no more rounds than there are parties.
        """
        key, mine = now.cards[name].digest, self.identity.card
        if key == self.federation.cards[name].digest:
            return now.algorithm.rounds
        if (now.head, name) not in self._held:
            heads = (wire.run_of(self.journal.frame(mine.digest, t)) for t in range(1, self.sent + 1))
            held = sum(self.federation.under(head).cards[name].digest == key for head in heads)  # of the own rounds
            ahead = 1 if name in now.neighbours(mine.name) else len(now.parties)
            self._held[now.head, name] = min(now.algorithm.rounds, held + ahead)
        return self._held[now.head, name]

    def _commit(self, t: int, payload: bytes, attempt: int = 1) -> None:
        frame = wire.pack(self.identity, self.federation.head, t, payload, self.witness.statements(t))
        self.journal.commit(frame, attempt)
        self.witness.recall(self.identity.card.name, t, frame)

    def _heard(self, t: int, frames: Frames) -> None:
        """All frames of round t are here."""
        for name, frame in frames.items():
            self.witness.recall(name, t, frame)
        self.witness.forget(t)

    def _compact(self, state: Any = None, *, end: bool = False) -> None:
        name = self.identity.card.name
        compaction.compact(self.journal, self.federation, name, self.t, self.witness.reach, state, end=end)

    def _own(self, t: int) -> bytes:
        return wire.payload_of(self.journal.frame(self.identity.card.digest, t))


class Trainer(Base):
    """Party k: its rows are read by `begin`, after all neighbours have shown the same federation."""

    def __init__(self, federation: Federation, identity: Identity, journal: Journal,
                 purse: Purse | None = None, data: Path | None = None) -> None:  # fmt: skip
        super().__init__(federation, identity, journal)
        k = federation.parties.index(identity.card.name)
        seed = federation.test_noise_seed
        number = federation.founding.parties.index(identity.card.name)
        noise = SecureNoise() if seed is None else SimulatedNoise(np.array([seed]), np.array([number]))
        self.party = Party(k, federation.algorithm, federation.public, None, noise)
        self.purse, self._data = purse, data
        if federation.hub is not None:
            self.radius *= len(federation.parties)  # the hub's sum
        self._last: tuple[bytes, list[bytes]] | None = None  # the last own message and what came with it
        self._replay()

    def _replay(self) -> None:
        """State is a function of the messages in the journal: no row is read, no noise drawn."""
        self.t, self.party.state, _ = compaction.unpacked(
            self.journal, self.federation, self.identity.card.name, self.party.state
        )
        self.party.t = self.t
        self._witness_again()
        for t in range(self.t + 1, self.sent + 1):
            frames = {name: self.journal.get(card.digest, t) for name, card in self.neighbours.items()}
            self.party.restore(self._own(t))
            self.witness.recall(self.identity.card.name, t, self.journal.frame(self.identity.card.digest, t))
            if None in frames.values():
                break
            self._receive({name: frame for name, frame in frames.items() if frame is not None})

    def _witness_again(self) -> None:
        """Recall the frames that the state in the journal counts already."""
        for t in range(max(1, self.t - 2 * self.witness.reach), self.t + 1):
            cards = {self.identity.card.name: self.identity.card, **self.neighbours}
            self._heard(t, {name: self.journal.frame(card.digest, t) for name, card in cards.items()})

    def open(self) -> None:
        """Settle the ledger with the journal and hold the rest of the schedule, or refuse."""
        if self.purse is not None:
            if self.federation.before is not None:
                self.purse.prices = prices_of(self.federation, self.identity.card.name, self.heads)
            self.notice = self.purse.open(run_name(self.journal), self.attempts, self.journal.path.parent)

    def admit(self, shown: int) -> None:
        """Charge the rounds up to one that a neighbour has with the own signature: they were released."""
        if self.purse is not None:
            self.purse.settle([*self.attempts, *[1] * (min(shown, self.rounds) - self.sent)])

    @property
    def heads(self) -> list[bytes]:
        """What this party held to in each round that it sent."""
        mine = self.identity.card.digest
        return [wire.run_of(self.journal.frame(mine, t)) for t in range(1, self.sent + 1)]

    @property
    def attempts(self) -> list[int]:
        """How often noise was drawn for each round that was sent."""
        return self.journal.draws(self.identity.card.digest)

    def begin(self) -> None:
        """Read the rows and make the first message that is not in the journal yet."""
        if self.t < self.rounds:
            assert self._data is not None
            block = self._block(self._data)
            self.party.hold(block)
            if self.purse is not None:
                said = self.purse.note_rows(bytes_of(block))
                self.notice = "; ".join(filter(None, (self.notice, said)))
            self._send()

    def _block(self, data: Path) -> Block:
        work = self.journal.path.with_name("rows")
        return read_block(data, self.federation, self.party.k, work, training=self.sent > 0)

    def _send(self) -> None:
        t = self.t + 1
        if t > self.sent:
            attempt = 1 if self.purse is None else self.purse.pay(t)
            self._commit(t, self.party.send(), attempt)
        else:  # it waited for old messages of a new neighbour: what it sent stands
            self.party.restore(self._own(t))

    def step(self, frames: Frames) -> None:
        """Keep and absorb the neighbours' frames of this round, and make the next message."""
        self.journal.keep(frames.values())
        self._receive(frames)
        if self.t < self.rounds:
            self._send()
        else:
            self.journal.sync()
        self._compact(self.party.state)

    def _receive(self, frames: Frames) -> None:
        self._heard(self.t + 1, frames)
        heard = {name: wire.payload_of(frame) for name, frame in frames.items()}
        if self.federation.hub is not None:
            total = heard[self.federation.hub]
            self._last = (self.party.send(), [total])
            self.party.receive_sum(total)
        else:
            self._last = (self.party.send(), list(heard.values()))
            number = {name: k for k, name in enumerate(self.federation.parties)}
            self.party.receive({number[name]: payload for name, payload in heard.items()})
        self.t = self.party.t

    @property
    def distance(self) -> float | None:
        """Largest distance from the own message to a neighbour's, or to the hub's mean, over its length: all public."""
        if self._last is None:
            return None
        own, *others = (np.frombuffer(v, "<f8") for v in (self._last[0], *self._last[1]))
        share = 1.0 if self.federation.hub is None else 1.0 / len(self.federation.parties)
        return max(float(np.linalg.norm(share * v - own)) for v in others) / max(float(np.linalg.norm(own)), 1e-300)

    def spent(self) -> float | None:
        return None if self.purse is None else self.purse.spent()

    @property
    def left(self) -> float | None:
        """ε that other runs may spend, as of the last `spent`."""
        return None if self.purse is None else self.purse.left

    def end(self) -> None:
        if self.purse is not None:
            self.purse.end()
        self._compact(self.party.state, end=True)

    @property
    def estimate(self) -> list[float] | None:
        return [float(v) for v in self.party.estimate]


def bytes_of(block: Block) -> Iterator[bytes]:
    """The rows as they are trained on, a few at a time: they may be larger than memory."""
    X, y = block.shards.X, block.shards.y
    for at in range(0, len(y), 4096):
        part = X[at : at + 4096]
        yield np.ascontiguousarray(part.toarray() if sp.issparse(part) else part).tobytes()
        yield np.ascontiguousarray(y[at : at + 4096]).tobytes()


class Hub(Base):
    """The hub: adds up what all parties sent and hands out the sum. It holds no rows and is no agent."""

    distance: float | None = None
    estimate: list[float] | None = None
    left: float | None = None

    def __init__(self, federation: Federation, identity: Identity, journal: Journal) -> None:
        super().__init__(federation, identity, journal)
        self.t = self.sent

    def open(self) -> None: ...

    def admit(self, shown: int) -> None: ...

    def begin(self) -> None: ...

    def step(self, frames: Frames) -> None:
        t = self.t + 1
        self.journal.keep(frames.values())
        self._heard(t, frames)
        self._commit(t, add([wire.payload_of(frames[name]) for name in self.federation.parties], self.width(t)))
        self.t = t
        self._compact()

    def spent(self) -> float | None:
        return None

    def end(self) -> None:
        self._compact(end=True)
