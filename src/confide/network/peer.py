"""Neighbours over gRPC with mutual TLS. A node never sends: it answers `Fetch(run, round)` once the round is published.

`Server` answers, `Link` asks one neighbour: one question after the other over one lasting call, which is opened anew
after any failure (a call a round would cost both sides nearly twice the time). A neighbour is a pinned certificate and
nothing else: its certificate alone is the trust root of the link, and every handler compares the SHA-256 of the
certificate at the other end, because a certificate signed with a neighbour's key passes TLS. Messages are raw bytes;
nothing received is ever unpickled. A neighbour can keep us waiting, never make us fail: its errors are kept as
`trouble` to be shown, and asked again.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # strangers at the door are not worth a line of its C++ each

import grpc
import grpc.aio

from confide.network import wire
from confide.network.identity import Card, Identity

SERVICE = "confide.Node"
AHEAD = 2  # a neighbour is at most one round ahead of what we published, and asks for one more early
HELD = 8  # calls of one neighbour at a time
RATE, BURST = 2000.0, 4000.0  # questions of one neighbour a second, and at once
CALL_SECONDS = 30.0  # how long a call may take to reach a neighbour
PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between attempts: doubled each time

# Without ping_timeout a black-holed link is never noticed; the rest keeps a long poll alive on an idle connection.
KEEPALIVE = (
    ("grpc.keepalive_time_ms", 10000),
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.http2.ping_timeout_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER = (
    *KEEPALIVE,
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 2 * wire.REQUEST_SIZE),
    ("grpc.max_concurrent_streams", 2 * HELD),
    ("grpc.max_metadata_size", 4096),
    ("grpc.absolute_max_metadata_size", 8192),
)
CLIENT = (
    *KEEPALIVE,
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 5000),  # despite its name: how long one attempt to connect may take
    ("grpc.enable_http_proxy", 0),
)


class Server:
    """Hands each published round to pinned neighbours who ask for it; `read(t)` fetches it from the journal.

    `kept(name)` is the last frame that came from a neighbour, or b"": it hears of it in the greeting.
    """

    def __init__(self, identity: Identity, neighbours: Mapping[str, Card], run: bytes, rounds: int,
                 read: Callable[[int], bytes], kept: Callable[[str], bytes] = lambda name: b"") -> None:  # fmt: skip
        self.run, self.rounds, self._read, self._kept = run, rounds, read, kept
        self._identity, self._neighbours = identity, neighbours
        self._names = {card.digest: name for name, card in neighbours.items()}
        self._buckets = {name: _Bucket() for name in neighbours}
        self._held: Counter[str] = Counter()
        self._news = asyncio.Event()
        self.latest = 0  # rounds published so far
        self.finished: set[str] = set()  # neighbours that have our last round in their journal
        self.refused = 0  # calls turned away
        self._server = grpc.aio.server(options=SERVER)
        handlers = {
            "Fetch": grpc.stream_stream_rpc_method_handler(self._fetch),
            "Hello": grpc.unary_unary_rpc_method_handler(self._hello),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

    async def start(self, address: str) -> None:
        roots = b"".join(card.pem for card in self._neighbours.values())
        pair = (self._identity.secret, self._identity.card.pem)
        credentials = grpc.ssl_server_credentials([pair], roots, require_client_auth=True)
        try:
            self._server.add_secure_port(address, credentials)
        except RuntimeError:
            raise OSError(f"cannot listen on {address}: in use, or not an address of this machine") from None
        await self._server.start()

    async def stop(self, grace: float = 1.0) -> None:
        await self._server.stop(grace)

    def publish(self, t: int) -> None:
        """Rounds up to t are in the journal: answer who waits for them."""
        self.latest = t
        self._news.set()
        self._news = asyncio.Event()

    @asynccontextmanager
    async def _neighbour(self, context: Any) -> AsyncIterator[str]:
        """Who calls, by its certificate; a stranger, and one call too many, are turned away."""
        name = self._names.get(_digest(context.auth_context().get("x509_pem_cert", [b""])[0]))
        if name is None:
            await self._refuse(context, grpc.StatusCode.PERMISSION_DENIED, "not the certificate of a neighbour")
        assert name is not None
        if self._held[name] >= HELD:
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls at a time")
        self._held[name] += 1
        try:
            yield name
        finally:
            self._held[name] -= 1

    async def _count(self, name: str, context: Any) -> None:
        if not self._buckets[name].take():
            await self._refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls: ask more slowly")

    async def _refuse(self, context: Any, code: grpc.StatusCode, why: str) -> None:
        self.refused += 1
        await context.abort(code, why)

    async def _hello(self, request: bytes, context: Any) -> bytes:
        """Which federation we hold, by its hash, and the last frame that came from who asks."""
        async with self._neighbour(context) as name:
            await self._count(name, context)
            return self.run + self._kept(name)

    async def _fetch(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        """The signed frame of each round asked for, held until it is published.

        Asking for one past the last says: I have it all.
        """
        async with self._neighbour(context) as name:
            async for request in requests:
                await self._count(name, context)
                try:
                    t = self._round_of(request)
                except ValueError as error:
                    await self._refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
                while self.latest < min(t, self.rounds):
                    await self._news.wait()
                if t > self.rounds:
                    self.finished.add(name)
                    yield b""
                    return
                yield self._read(t)

    def _round_of(self, request: bytes) -> int:
        run, t = wire.unpack_request(request)
        if run != self.run:
            raise ValueError(f"run {run.hex()[:16]} is not the one here")
        if not 1 <= t <= min(self.latest + AHEAD, self.rounds + 1):
            raise ValueError(f"round {t}: at most {AHEAD} rounds past {self.latest} may be asked for")
        return t


class Link:
    """The way to one neighbour."""

    def __init__(self, identity: Identity, neighbour: Card, run: bytes, widest: int) -> None:
        self.card, self.run, self._own = neighbour, run, identity.card
        self.trouble = ""  # why the last attempt failed; "" after a good one
        credentials = grpc.ssl_channel_credentials(neighbour.pem, identity.secret, identity.card.pem)
        options = (
            *CLIENT,
            ("grpc.ssl_target_name_override", neighbour.name),
            ("grpc.max_receive_message_length", len(run) + wire.frame_size(widest)),
        )
        self._channel = grpc.aio.secure_channel(neighbour.address, credentials, options=options)
        self._open = self._channel.stream_stream(f"/{SERVICE}/Fetch")
        self._call: Any = None  # the lasting one, while it is sound
        self._hello = self._channel.unary_unary(f"/{SERVICE}/Hello")

    @property
    def up(self) -> bool:
        """Whether there is a live connection to someone who holds the neighbour's key and answers well."""
        return self._channel.get_state() == grpc.ChannelConnectivity.READY and not self.trouble

    async def close(self) -> None:
        await self._channel.close()

    async def hello(self) -> tuple[bytes, int]:
        """The hash of the federation that the neighbour holds, and the last round of ours that it can show."""

        def check(answer: bytes) -> None:
            if len(answer) < len(self.run):
                raise ValueError(f"hash of {len(answer)} bytes: must be {len(self.run)}")
            if answer[:32] == self.run and answer[32:]:
                wire.authentic(answer[32:], self._own, self.run)

        answer = await self._insist(partial(self._hello, b"", timeout=CALL_SECONDS, wait_for_ready=True), check)
        theirs, shown = answer[:32], answer[32:]
        return theirs, wire.source(shown)[1] if shown and theirs == self.run else 0

    async def fetch(self, t: int, count: int) -> bytes:
        """The neighbour's frame of round t with `count` numbers, checked; asked for until it comes."""

        def check(frame: bytes) -> None:
            wire.unpack(frame, self.card, self.run, t, count)

        return await self._insist(partial(self._ask, wire.pack_request(self.run, t)), check)

    async def finish(self, rounds: int) -> None:
        """Tell the neighbour that its last round is in our journal."""
        await self._insist(partial(self._ask, wire.pack_request(self.run, rounds + 1)), _nothing)

    async def _ask(self, question: bytes) -> bytes:
        """One answer over the lasting call. It may be held for long: that the link lives, keepalive finds out."""
        try:
            if self._call is None or self._call.done():
                self._call = self._open(wait_for_ready=True)
                async with asyncio.timeout(CALL_SECONDS):
                    await self._call.write(question)
            else:
                await self._call.write(question)
            answer: bytes = await self._call.read()
        except BaseException:
            self._hang_up()
            raise
        if answer is grpc.aio.EOF:
            raise ConnectionError("hung up")
        return answer

    def _hang_up(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    async def _insist(self, ask: Callable[[], Awaitable[bytes]], check: Callable[[bytes], None]) -> bytes:
        pause = PAUSE
        while True:
            try:
                answer = await ask()
                check(answer)
                self.trouble = ""
                return answer
            except grpc.aio.AioRpcError as error:
                self.trouble = _why(error)
            except TimeoutError:
                self.trouble = "cannot be reached"
            except ConnectionError as error:
                self.trouble = str(error)
            except ValueError as error:  # not what was asked for; nor may the rest of such a call be
                self.trouble = str(error)
                self._hang_up()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # so that neighbours do not return in step
            pause = min(2 * pause, LONGEST_PAUSE)


class _Bucket:
    """At most RATE calls a second, BURST at once."""

    def __init__(self) -> None:
        self.left, self.at = BURST, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self.left, self.at = min(BURST, self.left + RATE * (now - self.at)), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@lru_cache(maxsize=64)
def _digest(pem: bytes) -> bytes:
    """SHA-256 of the certificate at the other end; empty if there is none."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).digest() if pem else b""


def _why(error: grpc.aio.AioRpcError) -> str:
    """One line on a failed call."""
    known = {
        grpc.StatusCode.UNAVAILABLE: "cannot be reached",
        grpc.StatusCode.DEADLINE_EXCEEDED: "cannot be reached",
        grpc.StatusCode.CANCELLED: "hung up",
        grpc.StatusCode.PERMISSION_DENIED: "does not count this node among its neighbours",
    }
    return known.get(error.code()) or f"refused: {' '.join((error.details() or str(error.code())).split())}"


def _nothing(answer: bytes) -> None:
    if answer:
        raise ValueError(f"answer of {len(answer)} bytes: must be empty")
