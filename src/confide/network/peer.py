"""Neighbours over mutual TLS. A node never sends: it answers `fetch(run, round)` once the round is published.

`Server` answers, `Link` asks one neighbour: one question after the other over one lasting connection, which is opened
anew after any failure. A neighbour is a pinned certificate and nothing else: its certificate alone is the trust root of
the link, and both ends compare the SHA-256 of the certificate at the other end, because some TLS libraries take a
certificate that is signed with a neighbour's key. Messages are raw bytes; nothing received is ever unpickled. A
neighbour can keep us waiting, never make us fail: its errors are kept as `trouble` to be shown, and asked again.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from confide.errors import ConfideError
from confide.network import wire
from confide.network.channel import Channel, Kind, context, listener
from confide.network.dialling import LONGEST_PAUSE, PAUSE, Ways, fault, printable, secured
from confide.network.door import Bucket, Door
from confide.network.identity import BY_RELAY, Card, Identity

AHEAD = 2  # a neighbour is at most one round ahead of what we published, and asks for one more early
HELD = 4  # connections of one neighbour at a time: one more takes the place of the oldest
RATE, BURST = 2000.0, 4000.0  # messages per second of one neighbour, and at once
LONGEST_QUESTION = 256  # bytes
REST, LONGEST_REST = 1.0, 3600.0  # seconds between looks for a way around the relay: doubled each time
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
            if kind == Kind.PING:
                channel.send(Kind.PONG)
            elif kind in (Kind.HELLO, Kind.PAPERS) and self.alarm:
                channel.send(Kind.ALARM, self.alarm)
                self.alarmed.add(name)
            elif kind == Kind.HELLO:
                channel.send(Kind.ANSWER, self.run + self._kept(name))
            elif kind == Kind.PAPERS:
                channel.send(Kind.ANSWER, self.papers(name, body))
            elif kind == Kind.FETCH and not channel.waits:
                channel.waits = self._round_of(body)
                self._answer(name, channel)
            else:
                raise ConfideError(f"message of kind {kind}: must be a question, one at a time")
        except ConfideError as error:
            self._refusals += 1
            channel.send(Kind.REFUSED, str(error).encode())

    def _answer(self, name: str, channel: Channel) -> None:
        """The signed frame of the round asked for, if it is published. One past the last says: I have it all."""
        t = channel.waits
        if self.alarm:
            channel.waits = 0
            channel.send(Kind.ALARM, self.alarm)
            self.alarmed.add(name)
        elif self.latest >= min(t, self.rounds):
            channel.waits = 0
            if t > self.rounds:
                self.finished.add(name)
            channel.send(Kind.ANSWER, b"" if t > self.rounds else self._read(t))

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


class Link:
    """The way to one neighbour."""

    def __init__(self, identity: Identity, neighbour: Card, run: bytes, longest: int, ways: Ways | None = None) -> None:
        self.card, self.run = neighbour, run
        self._ways, self.way = ways or Ways(identity, run), ""  # the last one taken: "straight" or "relay"
        self._again, self._rest = 0.0, REST  # when to look for a straighter way
        self.trouble = self.misbehaved = ""  # why the last attempt failed; what it signed and never should have
        self.accuse: Callable[[bytes, str], None] = lambda answer, why: None  # told of the evidence
        self.alarmed: Callable[[bytes], None] = _unfounded  # raises if the alarm is true
        self.own: Callable[[bytes], None] = partial(wire.authentic, sender=identity.card, run=run)  # raises if not
        self._tls = context(identity, [neighbour], server=False)
        self._longest = max(len(run) + longest, LONGEST_QUESTION)
        self._channel: Channel | None = None  # the lasting one, while it is sound
        self._answer: asyncio.Future[bytes] | None = None
        self._pulse: asyncio.TimerHandle | None = None

    @property
    def up(self) -> bool:
        """Whether there is a live connection to someone who holds the neighbour's key and answers well."""
        return self._channel is not None and not self._channel.closed and not self.trouble

    async def close(self) -> None:
        self._hang_up()
        await asyncio.sleep(0)

    async def hello(self) -> int:
        """The last round of ours that the neighbour can show, once it holds the same federation."""

        def check(answer: bytes) -> None:
            if len(answer) < len(self.run):
                raise ConfideError(f"hash of {len(answer)} bytes: must be {len(self.run)}")
            if answer[:32] != self.run:
                raise ConfideError(
                    f"holds another federation, {answer[:8].hex()}, and this node {self.run.hex()[:16]}: "
                    "compare the files; no row was read"
                )
            if answer[32:]:
                self.own(answer[32:])

        answer = await self._insist(Kind.HELLO, b"", check)
        return wire.source(answer[32:])[1] if answer[32:] else 0

    async def fetch(self, t: int, check: Callable[[bytes], None]) -> bytes:
        """The neighbour's frame of round t, once `check` lets it pass; asked for until it comes."""
        return await self._insist(Kind.FETCH, wire.pack_request(self.run, t), check)

    async def papers(self, held: bytes) -> bytes:
        """What the neighbour has of signatures, unread; nothing if it has those of hash `held`, which are here."""
        return await self._insist(Kind.PAPERS, self.run + held, lambda answer: None)

    async def finish(self, rounds: int) -> None:
        """Tell the neighbour that its last round is in our journal."""
        await self._insist(Kind.FETCH, wire.pack_request(self.run, rounds + 1), _nothing)

    # --- one question -------------------------------------------------------------------------------------------------

    async def _insist(self, kind: Kind, question: bytes, check: Callable[[bytes], None]) -> bytes:
        pause = PAUSE
        while True:
            try:
                answer = await self._ask(kind, question)
                self._weigh(answer, check)
                self.trouble = ""
                return answer
            except _Alarm as alarm:
                self.trouble = self._believe(alarm.args[0])
            except ConfideError as error:  # not what was asked for
                self.trouble = str(error)
            except ssl.SSLCertVerificationError as error:
                self.trouble = f"shows a certificate that {fault(error, self.card)}"
            except ConnectionError as error:
                self.trouble = str(error) if type(error) is ConnectionError else "cannot be reached"
            except OSError:  # a time-out among them
                self.trouble = "cannot be reached"
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # so that neighbours do not return in step
            pause = min(2 * pause, LONGEST_PAUSE)

    def _weigh(self, answer: bytes, check: Callable[[bytes], None]) -> None:
        """Raises unless it is what was asked for; what the neighbour signed all the same is evidence."""
        try:
            check(answer)
        except wire.Outside as error:
            self.misbehaved = str(error)
            self.accuse(answer, str(error))
            raise

    def _believe(self, alarm: bytes) -> str:
        try:
            self.alarmed(alarm)
        except ConfideError as error:
            return str(error)
        return "raises a false alarm"

    async def _ask(self, kind: Kind, question: bytes) -> bytes:
        """One answer over the lasting connection. It may be held for long: that the link lives, pings find out."""
        if self._channel is None or self._channel.closed:
            await self._connect()
        else:
            await self._straighten()
        assert self._channel is not None
        if self._channel.closed:  # turned away at once
            raise ConnectionError(self._channel.why)
        self._answer = asyncio.get_running_loop().create_future()
        self._channel.send(kind, question)
        try:
            return await self._answer
        except asyncio.CancelledError:
            self._hang_up()  # an answer to nobody's question would come
            raise
        finally:
            self._answer = None

    async def _connect(self) -> None:
        channel, self.way = await self._ways.open(self.card, self._tls, self._new)
        self._take(channel)

    async def _straighten(self) -> None:
        """Whoever is reached through the relay and has an address is tried there now and then: it may listen by now."""
        now = asyncio.get_running_loop().time()
        if self.way != "relay" or self.card.address == BY_RELAY or now < self._again:
            return
        self._again, self._rest = now + self._rest, min(2 * self._rest, LONGEST_REST)
        with suppress(OSError):
            older, channel = self._channel, await self._ways.straight(self.card, self._tls, self._new)
            self._take(channel)
            self.way = "straight"
            if older is not None:
                older.close()

    def _new(self) -> Channel:
        return Channel(self._longest, self._heard, lambda channel: None, self._lost)

    def _take(self, channel: Channel) -> None:
        if channel.digest != self.card.digest:  # signed with the neighbour's key, and not its own
            channel.close()
            raise ConnectionError("shows a certificate that is not the one on its card")
        self._channel = channel
        self._pulse = asyncio.get_running_loop().call_later(PING_SECONDS, self._beat, channel)

    def _beat(self, channel: Channel) -> None:
        """Ask a link that has been silent for a sign of life; hang up on one that gives none."""
        loop = asyncio.get_running_loop()
        silent = loop.time() - channel.spoke
        if channel.closed:
            return
        if silent >= PING_SECONDS + PONG_SECONDS:
            channel.close("cannot be reached")
            return
        if silent >= PING_SECONDS:
            channel.send(Kind.PING)
        self._pulse = loop.call_later(PONG_SECONDS if silent >= PING_SECONDS else PING_SECONDS - silent, self._beat,
                                      channel)  # fmt: skip

    def _hang_up(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _heard(self, channel: Channel, kind: int, body: bytes) -> None:
        if kind == Kind.PONG:
            return
        if kind == Kind.REFUSED:
            channel.why = _refusal(body)  # should it hang up
            self._fail(channel.why)
        elif kind not in (Kind.ANSWER, Kind.ALARM) or self._answer is None or self._answer.done():
            channel.close("speaks without being asked")
        elif kind == Kind.ALARM:
            self._answer.set_exception(_Alarm(body))
        else:
            self._answer.set_result(body)

    def _lost(self, channel: Channel) -> None:
        if channel is self._channel:
            self._fail(channel.why)

    def _fail(self, why: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(why))


class _Alarm(Exception):
    """What came instead of an answer: its argument."""


def _unfounded(alarm: bytes) -> None:
    raise ConfideError("raises an alarm that nobody here can check")


def _refusal(body: bytes) -> str:
    """What a neighbour says, as far as a terminal may show it."""
    if body == STRANGER.encode():
        return "does not count this node among its neighbours"
    return f"refused: {printable(body)}"


def _nothing(answer: bytes) -> None:
    if answer:
        raise ConfideError(f"answer of {len(answer)} bytes: must be empty")
