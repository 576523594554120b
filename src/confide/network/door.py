"""The door of a node: who may begin to speak TLS, so that strangers can cost no more than a few sockets.

A connection waits at the door until its handshake is done, DEADLINE seconds at most, and costs a socket alone until it
speaks. There are two rows of places: one for addresses of neighbours (those on their cards, and those they came from),
one for all others, with a few places for each address. When a row is full the newcomer takes the place of the one that
has been silent longest, so that a flood of idle connections pushes out its own; a neighbour speaks at once. Who is
turned away is counted, and said at most once a minute.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from confide.network.channel import listener

PLACES = 64  # in each row
EACH = 16  # of one address that is no neighbour's
DEADLINE = 5.0  # seconds for a handshake
AT_ONCE = 64  # accepted before anything else gets its turn
SAY_SECONDS = 60.0
LOG = logging.getLogger("confide.door")


@dataclass(eq=False)
class _Guest:
    """A connection that is not known yet; its task is the handshake, once it has spoken."""

    socket: socket.socket
    address: str
    deadline: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None


@dataclass
class Door:
    """Listens, and hands each connection whose handshake is done to a protocol that `made` makes."""

    tls: ssl.SSLContext
    made: Callable[[], asyncio.Protocol]
    known: set[str] = field(default_factory=set)  # addresses of neighbours
    turned_away: int = 0
    _rows: dict[bool, list[_Guest]] = field(default_factory=lambda: {True: [], False: []})
    _listening: list[socket.socket] = field(default_factory=list)
    _said: float = -SAY_SECONDS
    _unsaid: int = 0

    def open(self, address: str) -> None:
        host, port = listener(address)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except socket.gaierror:
            found = []
        for family, _, _, _, where in dict.fromkeys(found):
            with suppress(OSError):
                one = socket.create_server(where[:2], family=family, backlog=1024)
                one.setblocking(False)
                self._listening.append(one)
        if not self._listening:
            raise OSError(f"cannot listen on {address}: in use, or not an address of this machine")
        for one in self._listening:
            self._watch(one)

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for one in self._listening:
            loop.remove_reader(one)
            one.close()
        self._listening.clear()
        for row in self._rows.values():
            for guest in list(row):
                self._leave(guest)

    async def learn(self, hosts: Iterable[str]) -> None:
        """Neighbours may come from these hosts."""
        loop = asyncio.get_running_loop()
        for host in hosts:
            with suppress(OSError):
                self.known |= {str(found[4][0]) for found in await loop.getaddrinfo(host, None)}

    def _watch(self, one: socket.socket) -> None:
        if one.fileno() >= 0:
            asyncio.get_running_loop().add_reader(one, self._accept, one)

    def _accept(self, one: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                guest, where = one.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor is left: let others end first
                loop = asyncio.get_running_loop()
                loop.remove_reader(one)
                loop.call_later(0.1, self._watch, one)
                return
            self._seat(_Guest(guest, str(where[0])))

    def _seat(self, guest: _Guest) -> None:
        row = self._rows[guest.address in self.known]
        same = [one for one in row if one.address == guest.address]
        if guest.address not in self.known and len(same) >= EACH:
            self._turn_away(_longest(same))
        elif len(row) >= PLACES:
            self._turn_away(_longest(row))
        loop = asyncio.get_running_loop()
        guest.socket.setblocking(False)
        guest.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        guest.deadline = loop.call_later(DEADLINE, self._turn_away, guest)
        loop.add_reader(guest.socket, self._spoke, guest)
        row.append(guest)

    def _spoke(self, guest: _Guest) -> None:
        asyncio.get_running_loop().remove_reader(guest.socket)
        guest.task = asyncio.ensure_future(self._greet(guest))

    async def _greet(self, guest: _Guest) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self.made, guest.socket, ssl=self.tls, ssl_handshake_timeout=DEADLINE,
                                               ssl_shutdown_timeout=DEADLINE)  # fmt: skip
        except (OSError, ssl.SSLError):
            self.count(guest.address)
        finally:
            self._forget(guest)

    def _turn_away(self, guest: _Guest) -> None:
        self.count(guest.address)
        self._leave(guest)

    def _leave(self, guest: _Guest) -> None:
        self._forget(guest)
        if guest.task is None:
            asyncio.get_running_loop().remove_reader(guest.socket)
            guest.socket.close()
        else:
            guest.task.cancel()  # which closes it

    def _forget(self, guest: _Guest) -> None:
        if guest.deadline is not None:
            guest.deadline.cancel()
        for row in self._rows.values():
            if guest in row:
                row.remove(guest)

    def count(self, address: str) -> None:
        """One more was turned away: said at most once a minute."""
        self.turned_away += 1
        self._unsaid += 1
        if time.monotonic() >= self._said + SAY_SECONDS:
            LOG.warning("turned away %d connections, the last from %s", self._unsaid, address)
            self._said, self._unsaid = time.monotonic(), 0


def _longest(guests: list[_Guest]) -> _Guest:
    """Who has waited longest without a word, or else with one."""
    return next((one for one in guests if one.task is None), guests[0])


class Bucket:
    """At most `rate` a second, `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst, self.left, self.at = rate, burst, burst, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self.left, self.at = min(self._burst, self.left + self._rate * (now - self.at)), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


def raise_descriptors() -> None:
    """As many open files as the machine's owner allows: a process begins with less."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
