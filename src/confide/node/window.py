"""Small web servers beside a node, each in a thread: metrics for a monitor, a live page for the node's own people.

They read an `Outlook` and nothing else, answer GET alone, and cannot hold up the node: who is slow waits alone, and at
most PLACES are answered at a time. The page is served to this machine only, under its own names, so that no other site
can read it through a browser; it asks for nothing from anywhere else.
"""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, ClassVar

from confide.network.channel import listener
from confide.node.outlook import Outlook

PLACES = 16
SECONDS = 5.0  # for a connection, from its beginning to the last byte of the answer
LOCAL = ("localhost", "127.0.0.1", "[::1]")
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
form-action 'none'; frame-ancestors 'none'"
Answer = tuple[int, str, bytes]  # status, type, body


def metrics(outlook: Outlook) -> dict[str, Callable[[], Answer]]:
    """/metrics and /healthz."""
    from confide.node.metrics import CONTENT_TYPE, exposition

    return {
        "/metrics": lambda: (HTTPStatus.OK, CONTENT_TYPE, exposition(outlook.state())),
        "/healthz": lambda: _health(outlook),
    }


def page(outlook: Outlook) -> dict[str, Callable[[], Answer]]:
    """The live page and what it asks for."""
    here = files("confide.node")

    def file(name: str, kind: str) -> Answer:
        return HTTPStatus.OK, f"{kind}; charset=utf-8", (here / name).read_bytes()

    return {
        "/": lambda: file("live.html", "text/html"),
        "/live.css": lambda: file("live.css", "text/css"),
        "/live.js": lambda: file("live.js", "text/javascript"),
        "/state": lambda: (HTTPStatus.OK, "application/json", json.dumps(outlook.state()).encode()),
        "/healthz": lambda: _health(outlook),
    }


def _health(outlook: Outlook) -> Answer:
    well, words = outlook.health()
    return HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", f"{words}\n".encode()


class Window:
    """Answers at `address` by `routes` until closed; `local` refuses whoever asks for another host's name."""

    def __init__(self, address: str, routes: dict[str, Callable[[], Answer]], *, local: bool = False) -> None:
        host, port = listener(address)
        try:
            self._server = _Server((host, port), partial(_Handler, routes, local))
        except OSError:
            raise OSError(f"cannot listen on {address}: in use, or not an address of this machine") from None
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *args: Any) -> None:
        self._places = threading.BoundedSemaphore(PLACES)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who hangs up in the middle of an answer is no news."""


class _Line(io.RawIOBase):
    """A connection that ends at one moment, however slowly the other side speaks or listens until then."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self._connection, self._end = connection, end

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self._hurry()
        return self._connection.recv_into(into)

    def write(self, data: Any) -> int:
        self._hurry()
        self._connection.sendall(data)
        return len(data)

    def _hurry(self) -> None:
        if (left := self._end - time.monotonic()) <= 0:
            raise TimeoutError
        self._connection.settimeout(left)


class _Handler(BaseHTTPRequestHandler):
    timeout: ClassVar[float] = SECONDS
    server_version, sys_version = "confide", ""

    def __init__(self, routes: dict[str, Callable[[], Answer]], local: bool, *args: Any) -> None:
        self._routes, self._local = routes, local
        super().__init__(*args)

    def setup(self) -> None:
        self.connection = self.request
        line = _Line(self.request, time.monotonic() + self.timeout)
        self.rfile, self.wfile = io.BufferedReader(line), line  # type: ignore[assignment]

    def do_GET(self) -> None:
        asked = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        if self._local and asked not in LOCAL:
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", b"for this machine alone\n")
            return
        route = self._routes.get(self.path.partition("?")[0])
        self._answer(*(route() if route else (HTTPStatus.NOT_FOUND, "text/plain", b"not here\n")))

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
            ("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing is logged of who looks."""
