"""The ways to a neighbour: straight to its address, or through the relay that the federation names; with an HTTP proxy
where the site has one.

A relay joins two connections that both ends opened to it. Inside runs the same TLS 1.3 between the two members as on a
straight connection, with the same certificates, so that the relay and proxies carry bytes that say nothing to them.

    who is called                     relay                        who calls
    WAIT run 32              ->
                                                  <-               CALL run 32 | digest of whom 32
                             <-  JOIN caller 32
    READY                    ->
                                 JOIN             ->
    TLS of the two members, and nothing else from here on

Each is a message of `channel` over TLS with the relay, to which a member shows its certificate. Who waits pings it.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import random
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from confide.errors import ConfideError
from confide.network.channel import Channel, Word, context, listener, said
from confide.network.identity import BY_RELAY, Card, Identity

CALL_SECONDS = 5.0  # how long an attempt to connect may take
STRAIGHT_SECONDS = 2.0  # the same, where there is a relay to try next
PAUSE, LONGEST_PAUSE = 0.2, 1.0  # seconds between attempts: doubled each time
PING_SECONDS, PONG_SECONDS = 10.0, 5.0  # a silent relay is asked for a sign of life, and has so long to give one
LONGEST_WORD = 256  # bytes of a message of the relay
LONGEST_REPLY = 1 << 14  # bytes of a proxy's answer
GONE = -1  # no kind of message: the connection is
NO_PROXY = "none"
ANOTHER = "is not the one on its card"
NOT_YET, EXPIRED = 9, 10  # X509_V_ERR_CERT_NOT_YET_VALID, _HAS_EXPIRED of OpenSSL, which looks for trust before dates


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy that opens connections for others by CONNECT."""

    host: str
    port: int
    tls: bool = False
    authorization: str = field(default="", repr=False)  # secret: shown to nobody but the proxy

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """Of http://name:password@host:port, or https://; the name and the password are %-escaped."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or parts.scheme not in ("http", "https"):
            raise ConfideError("proxy: must be http://host:port or https://host:port, with name:password@ before it "
                               "where it asks for them")  # fmt: skip
        secret = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            secret = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(host, port or (443 if parts.scheme == "https" else 80), parts.scheme == "https", secret)

    def request(self, host: str, port: int) -> bytes:
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        secret = f"Proxy-Authorization: {self.authorization}\r\n" if self.authorization else ""
        return f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{secret}\r\n".encode("latin-1")


def proxy_for(host: str, setting: str | None = None) -> Proxy | None:
    """The proxy to `host`: as `setting` says, "none" for none, or else HTTPS_PROXY and NO_PROXY; never to ourselves."""
    if setting == NO_PROXY or _loopback(host):
        return None
    if setting:
        return Proxy.parse(setting)
    found = getproxies_environment().get("https")
    return Proxy.parse(found) if found and not proxy_bypass_environment(host) else None


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Ways:
    """How `identity` reaches others of a run, and is reached by those who cannot reach its own address."""

    identity: Identity
    run: bytes
    relay: Card | None = None
    proxy: str | None = None  # instead of the environment's

    def __post_init__(self) -> None:
        if self.proxy and self.proxy != NO_PROXY:
            Proxy.parse(self.proxy)  # one line now, not at every attempt

    async def open(self, card: Card, tls: ssl.SSLContext, channel: Callable[[], Channel]) -> tuple[Channel, str]:
        """A connection to the holder of this card, and the way it took: "straight" or "relay"."""
        if card.address != BY_RELAY:
            try:
                return await self.straight(card, tls, channel), "straight"
            except OSError:  # a time-out among them, and another machine at the same private address
                if self.relay is None:
                    raise
        elif self.relay is None:
            raise ConnectionError("has no address, and the federation no relay")
        async with asyncio.timeout(CALL_SECONDS):
            try:
                joined = await self._call(card)
            except ConnectionError as error:
                why = str(error) if type(error) is ConnectionError else "the relay cannot be reached"
                raise ConnectionError(f"cannot be reached ({why})") from None
            return await secured(joined, channel(), tls, hostname=card.name), "relay"

    async def straight(self, card: Card, tls: ssl.SSLContext, channel: Callable[[], Channel]) -> Channel:
        """To the address on the card."""
        async with asyncio.timeout(CALL_SECONDS if self.relay is None else STRAIGHT_SECONDS):
            return await secured(await self._reach(card.address), channel(), tls, hostname=card.name)

    async def attend(self, take: Callable[[Any], None], told: Callable[[str], None]) -> None:
        """Take calls at the relay, one place after the other; `told` is "up", or why nobody can call."""
        pause = PAUSE
        while True:
            try:
                take(await self.wait(lambda: told("up")))
                pause = PAUSE
            except (OSError, ConfideError) as error:  # a time-out among them, and a strange HTTPS_PROXY
                told(str(error) if type(error) in (ConnectionError, ConfideError) else "the relay cannot be reached")
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # so that members do not return in step
                pause = min(2 * pause, LONGEST_PAUSE)

    async def wait(self, ready: Callable[[], None]) -> Any:
        """The bytes of whoever calls through the relay next, before any TLS of the two; `ready` once we are known."""
        async with asyncio.timeout(CALL_SECONDS):
            talk = await self._talk()
        try:
            talk.channel.send(Word.WAIT, self.run)
            called = False
            while not called:
                talk.channel.send(Word.PING)
                async with asyncio.timeout(PONG_SECONDS):
                    called = await talk.word(Word.PONG, Word.JOIN) == Word.JOIN
                ready()
                with suppress(TimeoutError):
                    async with asyncio.timeout(PING_SECONDS):
                        called = called or await talk.word(Word.JOIN) == Word.JOIN
        except BaseException:
            talk.channel.close()
            raise
        talk.channel.send(Word.READY)
        return talk.channel.transport

    async def _call(self, card: Card) -> Any:
        talk = await self._talk()
        try:
            talk.channel.send(Word.CALL, self.run + card.digest)
            await talk.word(Word.JOIN)
        except BaseException:
            talk.channel.close()
            raise
        return talk.channel.transport

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """With the relay: what counts is its certificate, so the name in the handshake may be its host's."""
        assert self.relay is not None
        out = context(self.identity, [self.relay], server=False)
        out.check_hostname = False
        return out

    async def _talk(self) -> _Talk:
        """A connection to the relay."""
        assert self.relay is not None
        there, talk = await self._reach(self.relay.address), _Talk()
        try:
            await secured(there, talk.channel, self._tls, hostname=listener(self.relay.address)[0])
        except ssl.SSLCertVerificationError as error:
            raise ConnectionError(f"the relay shows a certificate that {fault(error, self.relay)}") from None
        if talk.channel.digest != self.relay.digest:
            talk.channel.close()
            raise ConnectionError(f"the relay shows a certificate that {ANOTHER}")
        return talk

    async def _reach(self, address: str) -> Any:
        """A plain connection to this address, through the proxy where there is one."""
        loop, (host, port) = asyncio.get_running_loop(), listener(address)
        if (proxy := proxy_for(host, self.proxy)) is None:
            return (await loop.create_connection(asyncio.Protocol, host, port))[0]
        tls = ssl.create_default_context() if proxy.tls else None
        try:
            transport, reply = await loop.create_connection(_Reply, proxy.host, proxy.port, ssl=tls)
        except OSError:
            raise ConnectionError("the proxy cannot be reached") from None
        transport.write(proxy.request(host, port))
        try:
            await reply.done
        except BaseException:
            transport.abort()
            raise
        return transport


async def secured(transport: Any, channel: Channel, tls: ssl.SSLContext, *, hostname: str | None = None,
                  server: bool = False) -> Channel:  # fmt: skip
    """TLS over an open connection, which ends with it."""
    loop, below = asyncio.get_running_loop(), _Below(transport, channel)
    try:
        inner = await loop.start_tls(below, channel, tls, server_side=server, server_hostname=hostname,  # type: ignore
                                     ssl_handshake_timeout=CALL_SECONDS, ssl_shutdown_timeout=CALL_SECONDS)  # fmt: skip
    except BaseException:
        transport.abort()
        raise
    if inner is None or channel.closed:
        raise ConnectionError(channel.why or "hung up")
    channel.connection_made(inner)
    return channel


def fault(error: ssl.SSLCertVerificationError, card: Card) -> str:
    """What is wrong with the certificate that was shown as the one on this card."""
    if error.verify_code == EXPIRED:
        return f"expired on {card.valid_until:%Y-%m-%d}"
    return f"is valid from {card.valid_from:%Y-%m-%d} only" if error.verify_code == NOT_YET else ANOTHER


class _Below:
    """What TLS runs over: where that is TLS, too, asyncio of Python 3.11 stumbles over an error (gh-113214)."""

    _start_tls_compatible = True

    def __init__(self, transport: Any, above: Channel) -> None:
        self._transport, self._above = transport, above

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _force_close(self, error: Exception | None) -> None:
        self._above.why = self._above.why or said(error)
        self._transport.abort()


class _Talk:
    """What a member and the relay say to each other before a call begins."""

    def __init__(self) -> None:
        self.channel = Channel(LONGEST_WORD, self._heard, lambda channel: None, self._lost)
        self._words: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

    async def word(self, *kinds: Word) -> int:
        """The kind of the next message, which must be one of these."""
        got, body = await self._words.get()
        if got == GONE:
            raise ConnectionError(f"the relay {printable(body)}")
        if got == Word.REFUSED:
            raise ConnectionError(f"the relay says: {printable(body)}")
        if got not in kinds:
            raise ConnectionError("the relay speaks out of turn")
        return got

    def _heard(self, channel: Channel, kind: int, body: bytes) -> None:
        if kind == Word.JOIN:
            channel.transport.pause_reading()  # what follows is for the other member's TLS
        self._words.put_nowait((kind, body))

    def _lost(self, channel: Channel) -> None:
        self._words.put_nowait((GONE, channel.why.encode()))


class _Reply(asyncio.Protocol):
    """A proxy's answer to CONNECT; `done` when it has opened the connection."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._read = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, rest = self._read.partition(b"\r\n\r\n")
        if not end and len(self._read) <= LONGEST_REPLY:
            return
        self._transport.pause_reading()
        words = head.split(b"\r\n")[0].split(b" ", 2)
        code = words[1] if len(words) > 1 and words[0].startswith(b"HTTP/1.") else b"?"
        if code == b"407":
            self._fail("the proxy asks for another name or password")
        elif code != b"200" or rest or not end:
            self._fail(f"the proxy refuses: {printable(code)[:3]}")
        elif not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("the proxy hung up")

    def _fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(why))


def printable(body: bytes) -> str:
    """What others say, as far as a terminal may show it."""
    return "".join(c if c.isprintable() else "?" for c in body.decode(errors="replace"))
