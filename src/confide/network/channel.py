"""Messages over one TLS connection: kind 1 | length 4 | body, little-endian. Both ends are asyncio protocols.

TLS 1.3 and nothing older, a certificate on both sides, and a neighbour's certificate alone is trusted: who is at the
other end is the SHA-256 of the certificate it showed. What one connection can make us keep is bounded: a message longer
than the other end may send closes it, and while it does not read our answers, we do not read its questions.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from confide.errors import ConfideError
from confide.network.identity import Card, Identity

_HEAD = struct.Struct("<BI")
WRITE_AHEAD = 1 << 16  # bytes that may wait to be sent before reading pauses


class Word(IntEnum):
    """What a message is. A question has one answer, which may be held for long; a ping is answered at once."""

    HELLO = 1
    FETCH = 2
    PING = 3
    ANSWER = 4
    REFUSED = 5  # the body says why
    PONG = 6
    ALARM = 7  # instead of an answer: two signatures that contradict each other
    WAIT = 8  # to a relay: these four are explained in `dialling`
    CALL = 9
    JOIN = 10
    READY = 11
    PAPERS = 12  # what has the other one of signatures under the federation and its amendments?


def context(identity: Identity, trusted: Iterable[Card], *, server: bool) -> ssl.SSLContext:
    """TLS as `identity` speaks it with the holders of these certificates."""
    out = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    out.minimum_version = ssl.TLSVersion.TLSv1_3
    out.verify_mode = ssl.CERT_REQUIRED
    if server:
        out.num_tickets = 0  # nobody resumes: every connection shows its certificate
    if roots := b"".join(card.pem for card in trusted):
        out.load_verify_locations(cadata=roots.decode())
    with _readable(identity.secret + identity.card.pem) as pair:
        out.load_cert_chain(pair)
    return out


@contextmanager
def _readable(secret: bytes) -> Iterator[str]:
    """A path that OpenSSL can read the key from, in memory where the system can: Python takes keys from files alone."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(file, secret)
            yield f"/proc/self/fd/{file}"
        finally:
            os.close(file)
    else:
        with tempfile.NamedTemporaryFile(prefix="confide-") as whole:  # readable by this user alone
            whole.write(secret)
            whole.flush()
            yield whole.name


class Channel(asyncio.Protocol):
    """One connection: `heard(channel, kind, body)` for every message, `made` and `lost` once."""

    def __init__(self, longest: int, heard: Callable[[Channel, int, bytes], None],
                 made: Callable[[Channel], None], lost: Callable[[Channel], None]) -> None:  # fmt: skip
        self._longest, self._heard, self._made, self._lost = longest, heard, made, lost
        self._buffer, self._held = bytearray(), False
        self.transport: Any = None
        self.closed, self.why = False, ""
        self.spoke = 0.0  # when something came last
        self.digest = b""  # of the certificate at the other end
        self.waits = 0  # the round that it asked for and that is not there yet

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(WRITE_AHEAD)
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        self.digest = hashlib.sha256(shown).digest() if shown else b""
        self.spoke = asyncio.get_running_loop().time()
        self._made(self)
        self._parse()  # what came together with the end of the handshake

    @property
    def address(self) -> str:
        where = self.transport.get_extra_info("peername")
        return str(where[0]) if where else ""

    def data_received(self, data: bytes) -> None:
        self.spoke = asyncio.get_running_loop().time()
        self._buffer += data
        if self.transport is not None:
            self._parse()

    def _parse(self) -> None:
        while len(self._buffer) >= _HEAD.size and not self._held and not self.closed:
            kind, length = _HEAD.unpack_from(self._buffer)
            if length > self._longest:
                self.close(f"message of {length} bytes: at most {self._longest}")
                return
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            self._heard(self, kind, body)

    def pause_writing(self) -> None:
        self._held = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._held = False
        if not self.closed:
            self.transport.resume_reading()
            self._parse()

    def send(self, kind: Word, body: bytes = b"") -> None:
        if not self.closed:
            self.transport.write(_HEAD.pack(kind, len(body)) + body)

    def refuse(self, why: str) -> None:
        """Say why, and hang up."""
        self.send(Word.REFUSED, why.encode()[:200])
        self.end()

    def end(self) -> None:
        """Once everything is sent."""
        if not self.closed:
            self.closed = True
            self.transport.close()

    def close(self, why: str = "hung up") -> None:
        """Now, whatever is still to be sent."""
        self.closed, self.why = True, self.why or why
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed, self.why = True, self.why or said(error)
        self._lost(self)


def said(error: Exception | None) -> str:
    """One line on why a connection ended."""
    if isinstance(error, ssl.SSLError):
        return f"does not accept this node's certificate: {(error.reason or 'TLS').lower().replace('_', ' ')}"
    return "hung up"


def listener(text: str) -> tuple[str, int]:
    """Host and port of host:port, the brackets of an IPv6 address taken off."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ConfideError(f"address {text!r}: must be host:port, such as node.example.org:7000")
    return host.strip("[]"), int(port)
