"""A relay: joins connections that members of a federation opened to it, and passes on bytes that it cannot read.

Whoever runs it need not be trusted: inside each joined pair the two members speak TLS 1.3 with their own certificates
(`dialling`). The relay can keep them apart and see who talks to whom, when, and how many bytes; nothing else. It serves
holders of the certificates it was given, and joins two only if one federation has both. What a member can cost is
bounded: so many connections, and bytes per second, beyond which it is read more slowly.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from confide.errors import ConfideError
from confide.network.channel import Channel, Word, context
from confide.network.dialling import CALL_SECONDS, LONGEST_WORD, PING_SECONDS, PONG_SECONDS
from confide.network.door import Door
from confide.network.identity import Card, Identity

SWEEP_SECONDS = 2.0
SILENT_SECONDS = PING_SECONDS + 3 * PONG_SECONDS  # who says nothing for so long is gone
IDLE_SECONDS = 4 * SILENT_SECONDS  # a joined pair over which nothing goes: nodes ping each other
EACH, SPARE = 4, 8  # connections of a member: so many for each it may call, and some more
STRANGER = "no federation has this certificate"
LOG = logging.getLogger("confide.relay")


@dataclass(frozen=True)
class Limits:
    """What a relay gives at most."""

    members: int = 1000  # in all its federations
    connections: int = 4096  # in all
    bytes_per_second: int = 1 << 24  # from one member

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 1:
                raise ConfideError(f"{name.replace('_', '-')}={value}: must be 1 or more")


class Relay:
    """Serves the members of `federations`, each the cards of one."""

    def __init__(self, identity: Identity, federations: Sequence[Collection[Card]], limits: Limits) -> None:
        self._identity, self._limits = identity, limits
        self.cards: dict[bytes, Card] = {}
        self._groups: dict[bytes, list[frozenset[bytes]]] = {}
        self._lines: dict[bytes, list[Line]] = {}
        self._allowance: dict[bytes, Allowance] = {}
        self._waiting: dict[tuple[bytes, bytes], Line] = {}  # (run, who takes calls)
        self._calling: dict[tuple[bytes, bytes], deque[Line]] = {}  # (run, who is called)
        self._door = Door(context(identity, (), server=True), self._line)
        self._sweeping: asyncio.Task[None] | None = None
        self.joined, self.bytes = 0, 0  # calls and bytes so far
        self.serve(federations)

    def serve(self, federations: Sequence[Collection[Card]]) -> None:
        """From now on these: who is no member of one any more is hung up on, and whoever stays notices nothing."""
        cards = {card.digest: card for group in federations for card in group}
        if not cards:
            raise ConfideError("no federation: a relay serves the members of at least one")
        if len(cards) > self._limits.members:
            raise ConfideError(f"{len(cards)} members: this relay takes at most {self._limits.members}")
        left = [line for digest, lines in self._lines.items() if digest not in cards for line in lines]
        self.cards, self._groups = cards, {digest: [] for digest in cards}
        for together in (frozenset(card.digest for card in group) for group in federations):
            for digest in together:
                self._groups[digest].append(together)
        self._lines = {digest: self._lines.get(digest, []) for digest in cards}
        rate = self._limits.bytes_per_second
        self._allowance = {digest: self._allowance.get(digest) or Allowance(rate) for digest in cards}
        self._door.tls = context(self._identity, cards.values(), server=True)
        for line in left:
            line.close(STRANGER)

    @property
    def refused(self) -> int:
        """Connections turned away."""
        return self._door.turned_away

    @property
    def here(self) -> int:
        """Members that have a connection."""
        return sum(map(bool, self._lines.values()))

    async def start(self, address: str) -> None:
        self._door.open(address)
        self._sweeping = asyncio.ensure_future(self._sweep())

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._door.close()
        for line in [line for lines in self._lines.values() for line in lines]:
            line.close()
        await asyncio.sleep(0)

    # --- one connection -----------------------------------------------------------------------------------------------

    def _line(self) -> Line:
        return Line(self._heard, self._made, self._lost, self._came)

    def _made(self, line: Channel) -> None:
        assert isinstance(line, Line)
        if line.digest not in self.cards:
            self._turn_away(line, STRANGER)
        elif len(self._lines[line.digest]) >= SPARE + EACH * sum(map(len, self._groups[line.digest])):
            self._turn_away(line, "too many connections of this member")
        elif sum(map(len, self._lines.values())) >= self._limits.connections:
            self._turn_away(line, "too many connections")
        else:
            self._door.known.add(line.address)
            self._lines[line.digest].append(line)

    def _turn_away(self, line: Line, why: str) -> None:
        self._door.count(line.address)
        line.refuse(why)

    def _heard(self, line: Channel, kind: int, body: bytes) -> None:
        assert isinstance(line, Line)
        if kind == Word.PING:
            if line.caller is None:  # else it hears that it is called, and what follows is the caller's
                line.send(Word.PONG)
        elif kind == Word.WAIT and len(body) == 32 and line.fresh:
            self._wait(line, body)
        elif kind == Word.CALL and len(body) == 64 and line.fresh:
            self._call(line, body[:32], body[32:])
        elif kind == Word.READY and line.caller is not None and line.partner is None:
            self._join(line, line.caller)
        else:
            line.refuse("not what a relay is told here")

    def _wait(self, line: Line, run: bytes) -> None:
        """The newest place is the true one: of an older the other end may be gone."""
        place = (run, line.digest)
        if older := self._waiting.pop(place, None):
            older.close()
        line.place, line.fresh = place, False
        self._waiting[place] = line
        queue = self._calling.get(place, deque())
        while queue:
            if not (first := queue.popleft()).closed:
                self._offer(line, first)
                break

    def _call(self, line: Line, run: bytes, whom: bytes) -> None:
        """Joined at once, or when whoever is called has a place again: after each call it takes a new one."""
        if whom == line.digest or not any(whom in together for together in self._groups[line.digest]):
            line.refuse("no federation has both")
            return
        place, line.fresh = (run, whom), False
        if waiting := self._waiting.get(place):
            self._offer(waiting, line)
            return
        self._calling.setdefault(place, deque()).append(line)
        asyncio.get_running_loop().call_later(CALL_SECONDS / 2, self._give_up, place, line)

    def _give_up(self, place: tuple[bytes, bytes], line: Line) -> None:
        queue = self._calling.get(place, deque())
        if line in queue:
            queue.remove(line)
            line.refuse("it is not there")
        if not queue:
            self._calling.pop(place, None)

    def _offer(self, waiting: Line, caller: Line) -> None:
        self._waiting.pop(waiting.place, None)
        waiting.caller, caller.callee = caller, waiting
        waiting.send(Word.JOIN, caller.digest)

    def _join(self, waiting: Line, caller: Line) -> None:
        waiting.partner, caller.partner = caller, waiting
        if caller.closed:
            waiting.end()
            return
        self.joined += 1
        caller.send(Word.JOIN)

    def _came(self, line: Line, count: int) -> None:
        """Who has used up its bytes is not read for a while."""
        self.bytes += count
        if line.digest in self.cards and (pause := self._allowance[line.digest].take(count)) > 0:
            line.hold("bytes")
            asyncio.get_running_loop().call_later(pause, line.release, "bytes")

    def _lost(self, line: Channel) -> None:
        assert isinstance(line, Line)
        if line in self._lines.get(line.digest, ()):
            self._lines[line.digest].remove(line)
        if line.place and self._waiting.get(line.place) is line:
            del self._waiting[line.place]
        if line.partner is not None:
            line.partner.end()
        elif line.caller is not None:
            line.caller.refuse("it hung up")
        elif line.callee is not None:
            line.callee.end()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = asyncio.get_running_loop().time()
            for line in [line for lines in self._lines.values() for line in lines]:
                if now - line.spoke > (IDLE_SECONDS if line.partner else SILENT_SECONDS):
                    line.close()


class Line(Channel):
    """A member's connection: messages to the relay, then, once joined, bytes for the other end."""

    def __init__(self, heard: Any, made: Any, lost: Any, came: Any) -> None:
        super().__init__(LONGEST_WORD, heard, made, lost)
        self._came, self._reasons = came, set[str]()
        self.fresh = True  # has not said what it wants
        self.place: Any = None  # where it waits for calls
        self.caller: Line | None = None  # to whom it was offered
        self.callee: Line | None = None  # who was offered to it
        self.partner: Line | None = None  # whom it is joined with

    def data_received(self, data: bytes) -> None:
        self._came(self, len(data))
        if self.partner is None:
            super().data_received(data)
            return
        self.spoke = asyncio.get_running_loop().time()
        if not self.partner.closed:
            self.partner.transport.write(data)

    def pause_writing(self) -> None:
        (self.partner or self).hold("full")  # it does not read: nor do we, from where its bytes come

    def resume_writing(self) -> None:
        for line in (self, self.partner):
            if line is not None:
                line.release("full")

    def hold(self, reason: str) -> None:
        self._reasons.add(reason)
        if not self.closed:
            self.transport.pause_reading()

    def release(self, reason: str) -> None:
        self._reasons.discard(reason)
        if not self._reasons and not self.closed:
            self.transport.resume_reading()


class Allowance:
    """So many bytes per second of one member, two seconds' worth at once."""

    def __init__(self, rate: float) -> None:
        self.rate, self.left, self.at = rate, 2 * rate, time.monotonic()

    def take(self, count: int) -> float:
        """Seconds to wait before more is read."""
        now = time.monotonic()
        self.left = min(2 * self.rate, self.left + self.rate * (now - self.at)) - count
        self.at = now
        return max(0.0, -self.left / self.rate)
