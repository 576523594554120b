"""Neighbours over mutual TLS. A node never sends: it answers `fetch(run, round)` once the round is published.

`Server` answers; `link.Link` asks one neighbour. A neighbour is a pinned certificate and nothing else: its certificate
alone is the trust root of the link, and both ends compare the SHA-256 of the certificate at the other end, because some
TLS libraries take a certificate that is signed with a neighbour's key. Messages are raw bytes; nothing received is ever
unpickled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from confide.errors import ConfideError
from confide.network import wire
from confide.network.channel import Channel, Word, context, listener
from confide.network.dialling import Ways, secured
from confide.network.door import Bucket, Door
from confide.network.identity import BY_RELAY, Card, Identity

AHEAD = 2  # a neighbour is at most one round ahead of what we published, and asks for one more early
HELD = 4  # connections of one neighbour at a time: one more takes the place of the oldest
RATE, BURST = 2000.0, 4000.0  # messages per second of one neighbour, and at once
LONGEST_QUESTION = 256  # bytes
PING_SECONDS, PONG_SECONDS = 10.0, 5.0  # a silent link is asked for a sign of life, and has so long to give one
STRANGER = "not the certificate of a neighbour"


class Server:
    """Hands each published round to pinned neighbours who ask for it; `read(t)` fetches it from the journal.

    `kept(name)` is the last frame that came from a neighbour, or b"": it hears of it in the greeting.
    """

    def __init__(self, identity: Identity, neighbours: Mapping[str, Card], run: bytes, rounds: int,
                 read: Callable[[int], bytes], kept: Callable[[str], bytes] = lambda name: b"",
                 ahead: int = AHEAD) -> None:  # fmt: skip
        self.run, self.rounds, self._read, self._kept, self._ahead = run, rounds, read, kept, ahead
        self._neighbours = neighbours
        self._names = {card.digest: name for name, card in neighbours.items()}
        self._buckets = {name: Bucket(RATE, BURST) for name in neighbours}
        self._held: dict[str, list[Channel]] = {name: [] for name in neighbours}
        self.latest = 0  # rounds published so far
        self.finished: set[str] = set()  # neighbours that have our last round in their journal
        self.alarm = b""  # two signatures that contradict each other: what everyone hears from then on
        self.alarmed: set[str] = set()  # neighbours that have heard it
        self.papers: Callable[[str, bytes], bytes] = lambda name, question: b""
        self._refusals = 0
        self._door = Door(context(identity, neighbours.values(), server=True), self._channel)
        self._tasks: set[asyncio.Task[None]] = set()
        self.relay = ""  # "up", or why nobody can call through the relay; "" without one

    @property
    def refused(self) -> int:
        """Connections and questions turned away."""
        return self._refusals + self._door.turned_away

    async def start(self, address: str, ways: Ways | None = None) -> None:
        """Listen there, unless there is no such place, and take calls at the relay, if there is one."""
        if address != BY_RELAY:
            known = [card.address for card in self._neighbours.values() if card.address != BY_RELAY]
            await self._door.learn(listener(one)[0] for one in known)
            self._door.open(address)
        self._begin(self._sweep())
        if ways is not None and ways.relay is not None:
            self._begin(ways.attend(lambda called: self._begin(self._let_in(called)), self._attended))

    def _begin(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, grace: float = 1.0) -> None:
        """Listen no more and hang up, once what was answered is sent or `grace` seconds are over."""
        for task in list(self._tasks):
            task.cancel()
        self._door.close()
        end = time.monotonic() + grace
        left = [channel for held in self._held.values() for channel in held]
        for channel in left:
            channel.end()
        while time.monotonic() < end and any(self._held.values()):
            await asyncio.sleep(0.01)
        for channel in left:
            channel.close()
        await asyncio.sleep(0)

    def _attended(self, how: str) -> None:
        self.relay = how

    async def _let_in(self, called: Any) -> None:
        try:
            await secured(called, self._channel(), self._door.tls, server=True)
        except OSError:
            self._refusals += 1

    def publish(self, t: int) -> None:
        """Rounds up to t are in the journal: answer who waits for them."""
        self.latest = t
        for name, held in self._held.items():
            for channel in held:
                if channel.waits:
                    self._answer(name, channel)

    def warn(self, alarm: bytes) -> None:
        """From now on every question is answered by this."""
        self.alarm = alarm
        self.publish(self.latest)

    # --- one connection -----------------------------------------------------------------------------------------------

    def _channel(self) -> Channel:
        return Channel(LONGEST_QUESTION, self._heard, self._made, self._lost)

    def _made(self, channel: Channel) -> None:
        name = self._names.get(channel.digest)
        if name is None:
            self._door.count(channel.address)
            channel.refuse(STRANGER)
            return
        self._door.known.add(channel.address)  # the relay's, too: no worse than any neighbour's
        held = self._held[name]
        if len(held) >= HELD:
            held[0].close()
            held.pop(0)
        held.append(channel)

    def _lost(self, channel: Channel) -> None:
        name = self._names.get(channel.digest)
        if name is not None and channel in self._held[name]:
            self._held[name].remove(channel)

    def _heard(self, channel: Channel, kind: int, body: bytes) -> None:
        name = self._names[channel.digest]
        if not self._buckets[name].take():
            self._refusals += 1
            channel.refuse("too many questions: ask more slowly")
            return
        try:
            if kind == Word.PING:
                channel.send(Word.PONG)
            elif kind in (Word.HELLO, Word.PAPERS) and self.alarm:
                channel.send(Word.ALARM, self.alarm)
                self.alarmed.add(name)
            elif kind == Word.HELLO:
                channel.send(Word.ANSWER, self.run + self._kept(name))
            elif kind == Word.PAPERS:
                channel.send(Word.ANSWER, self.papers(name, body))
            elif kind == Word.FETCH and not channel.waits:
                channel.waits = self._round_of(body)
                self._answer(name, channel)
            else:
                raise ConfideError(f"message of kind {kind}: must be a question, one at a time")
        except ConfideError as error:
            self._refusals += 1
            channel.send(Word.REFUSED, str(error).encode())

    def _answer(self, name: str, channel: Channel) -> None:
        """The signed frame of the round asked for, if it is published. One past the last says: I have it all."""
        t = channel.waits
        if self.alarm:
            channel.waits = 0
            channel.send(Word.ALARM, self.alarm)
            self.alarmed.add(name)
        elif self.latest >= min(t, self.rounds):
            channel.waits = 0
            if t > self.rounds:
                self.finished.add(name)
            channel.send(Word.ANSWER, b"" if t > self.rounds else self._read(t))

    def _round_of(self, request: bytes) -> int:
        run, t = wire.unpack_request(request)
        if run != self.run:
            raise ConfideError(f"run {run.hex()[:16]} is not the one here")
        if not 1 <= t <= min(self.latest + self._ahead, self.rounds + 1):
            raise ConfideError(f"round {t}: at most {self._ahead} rounds past {self.latest} may be asked for")
        return t

    async def _sweep(self) -> None:
        """Hang up on those from whom nothing has come for longer than their pings allow."""
        while True:
            await asyncio.sleep(PONG_SECONDS)
            since = asyncio.get_running_loop().time() - PING_SECONDS - 3 * PONG_SECONDS
            for held in self._held.values():
                for channel in [one for one in held if one.spoke < since]:
                    channel.close()
