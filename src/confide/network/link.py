"""The way to one neighbour: one question after the other over one lasting connection, opened anew after any failure.

A neighbour can keep us waiting, never make us fail: its errors are kept as `trouble` to be shown, and asked again.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from confide.errors import ConfideError
from confide.network import wire
from confide.network.channel import Channel, Word, context
from confide.network.dialling import LONGEST_PAUSE, PAUSE, Ways, fault, printable
from confide.network.identity import BY_RELAY, Card, Identity
from confide.network.peer import LONGEST_QUESTION, PING_SECONDS, PONG_SECONDS, STRANGER

REST, LONGEST_REST = 1.0, 3600.0  # seconds between looks for a way around the relay: doubled each time


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

        answer = await self._insist(Word.HELLO, b"", check)
        return wire.source(answer[32:])[1] if answer[32:] else 0

    async def fetch(self, t: int, check: Callable[[bytes], None]) -> bytes:
        """The neighbour's frame of round t, once `check` lets it pass; asked for until it comes."""
        return await self._insist(Word.FETCH, wire.pack_request(self.run, t), check)

    async def papers(self, held: bytes) -> bytes | None:
        """What the neighbour has of signatures, unread; nothing if it has those of hash `held`, which are here.

        It is asked once, for there may be another key to ask with: None, and `trouble`, if there is no answer.
        """
        return await self._try(Word.PAPERS, self.run + held, lambda answer: None)

    async def finish(self, rounds: int) -> None:
        """Tell the neighbour that its last round is in our journal."""
        await self._insist(Word.FETCH, wire.pack_request(self.run, rounds + 1), _nothing)

    # --- one question -------------------------------------------------------------------------------------------------

    async def _insist(self, kind: Word, question: bytes, check: Callable[[bytes], None]) -> bytes:
        pause = PAUSE
        while (answer := await self._try(kind, question, check)) is None:
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # so that neighbours do not return in step
            pause = min(2 * pause, LONGEST_PAUSE)
        return answer

    async def _try(self, kind: Word, question: bytes, check: Callable[[bytes], None]) -> bytes | None:
        """The answer, or None, and `trouble` says why."""
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
        return None

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

    async def _ask(self, kind: Word, question: bytes) -> bytes:
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
            channel.send(Word.PING)
        self._pulse = loop.call_later(PONG_SECONDS if silent >= PING_SECONDS else PING_SECONDS - silent, self._beat,
                                      channel)  # fmt: skip

    def _hang_up(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _heard(self, channel: Channel, kind: int, body: bytes) -> None:
        if kind == Word.PONG:
            return
        if kind == Word.REFUSED:
            channel.why = _refusal(body)  # should it hang up
            self._fail(channel.why)
        elif kind not in (Word.ANSWER, Word.ALARM) or self._answer is None or self._answer.done():
            channel.close("speaks without being asked")
        elif kind == Word.ALARM:
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
