"""HTTP proxies: connections by CONNECT, a name and a password where they are asked for, and never shown to others."""

import asyncio
import base64
import datetime
import ipaddress
import ssl
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from test_relay import people, relaying, serving, sound, ways  # noqa: F401
from waiting import unanswered, until

from confide.errors import ConfideError
from confide.network.dialling import Proxy, proxy_for
from confide.network.link import Link
from confide.network.wire import frame_size

NAME, PASSWORD = "alice", "p@ss:wörd"
ESCAPED = "alice:p%40ss%3Aw%C3%B6rd"


@asynccontextmanager
async def proxying(places, reply=None, tls=None):
    """An HTTP proxy that asks for a password and knows `places`: {"host:port": port here}; what it was asked."""
    asked, writers, tasks = [], [], []

    async def pump(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader, writer):
        writers.append(writer)
        tasks.append(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        asked.append(head)
        method, where, _ = head[0].split(" ")
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        expected = "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
        if reply is not None:
            writer.write(reply)
        elif fields.get("Proxy-Authorization") != expected:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")
        elif method != "CONNECT" or where not in places:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        else:
            there, back = await asyncio.open_connection("127.0.0.1", places[where])
            writers.append(back)
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)


def named(people, host="relay.test"):  # noqa: F811
    """The relay under a name that only a proxy knows; its port here."""
    card = people["relay"].card
    port = int(card.address.split(":")[1])
    return replace(card, address=f"{host}:{port}"), port


def through(people, card, proxy=None):  # noqa: F811
    mine = replace(ways(people, "birch", card), proxy=proxy)
    return Link(people["birch"], people["ash"].card, mine.run, frame_size(5), mine)


def test_the_relay_is_reached_through_a_proxy_with_a_password(people, monkeypatch):  # noqa: F811
    card, port = named(people)

    async def main():
        async with relaying(people), proxying({card.address: port}) as (proxy, asked):
            monkeypatch.setenv("HTTPS_PROXY", f"http://{ESCAPED}@127.0.0.1:{proxy}")
            async with serving(people, card=card) as (server, frame):
                link = through(people, card)
                assert await asyncio.wait_for(link.fetch(1, sound(people)), 20) == frame
                assert link.way == "relay" and server.relay == "up"
                await link.close()
                assert len(asked) >= 2 and {one[0] for one in asked} == {f"CONNECT {card.address} HTTP/1.1"}

    asyncio.run(main())


def test_a_setting_comes_before_the_environment_and_no_proxy_is_heeded(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "hospital.example,10.1.2.3")
    assert proxy_for("relay.example.org") == Proxy("proxy.example", 3128)
    assert proxy_for("node.hospital.example") is None and proxy_for("10.1.2.3") is None
    assert proxy_for("node.hospital.example", "https://other") == Proxy("other", 443, True)
    assert proxy_for("relay.example.org", "none") is None
    assert proxy_for("127.0.0.1") is None and proxy_for("::1") is None and proxy_for("localhost") is None
    monkeypatch.delenv("HTTPS_PROXY")
    assert proxy_for("relay.example.org") is None


@pytest.mark.parametrize("url", ["ftp://proxy:1", "http://", "http://proxy:x", "socks5://secret:pass@proxy:1"])
def test_strange_proxies_are_one_line_without_the_password(url):
    with pytest.raises(ConfideError, match="must be http://host:port") as error:
        Proxy.parse(url)
    assert "pass" not in str(error.value).replace("password", "")


def test_a_strange_proxy_is_said_at_once_if_given_and_when_it_is_used_if_found(people, monkeypatch):  # noqa: F811
    with pytest.raises(ConfideError, match="must be http://host:port"):
        through(people, people["relay"].card, "socks5://proxy:1080")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy:1080")
    card, _ = named(people)

    async def main():
        async with serving(people, card=card) as (server, _):
            link = through(people, card)
            await unanswered(link.fetch(1, sound(people)), link, "must be http://host:port")
            await until(lambda: "must be http://host:port" in server.relay)
            await link.close()

    asyncio.run(main())


def test_a_password_is_in_no_text_of_the_proxy():
    proxy = Proxy.parse(f"http://{ESCAPED}@proxy:3128")
    assert "alice" not in repr(proxy) and "Basic" not in str(proxy)
    assert base64.b64decode(proxy.authorization.split()[1]).decode() == f"{NAME}:{PASSWORD}"


@pytest.mark.parametrize(
    ("reply", "why"),
    [(None, "the proxy asks for another name or password"), (b"HTTP/1.1 403 No\r\n\r\n", "the proxy refuses: 403"),
     (b"SSH-2.0\r\n\r\n", "the proxy refuses: ?"), (b"x" * 20_000, "the proxy refuses: ?"),
     (b"HTTP/1.1 200 OK\r\n\r\nsurprise", "the proxy refuses: 200"), (b"", "the proxy hung up")],
)  # fmt: skip
def test_what_a_proxy_says_is_said(people, reply, why):  # noqa: F811
    card, port = named(people)

    async def main():
        async with proxying({card.address: port}, reply) as (proxy, _):
            link = through(people, card, f"http://alice:wrong@127.0.0.1:{proxy}")
            await unanswered(link.fetch(1, sound(people)), link)
            assert link.trouble == f"cannot be reached ({why})" and "wrong" not in link.trouble
            await link.close()

    asyncio.run(main())


def test_a_proxy_that_is_not_there(people):  # noqa: F811
    card, _ = named(people)

    async def main():
        link = through(people, card, "http://127.0.0.1:1")
        await unanswered(link.fetch(1, sound(people)), link)
        assert link.trouble == "cannot be reached (the proxy cannot be reached)"
        await link.close()

    asyncio.run(main())


def test_a_proxy_that_speaks_tls_itself(people, tmp_path, monkeypatch):  # noqa: F811
    """Three layers: TLS with the proxy, with the relay, and between the members."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "proxy")]), datetime.datetime.now(datetime.UTC)
    own = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(7).not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
        .add_extension(own, False).add_extension(x509.BasicConstraints(True, None), True).sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                               serialization.NoEncryption())  # fmt: skip
    (tmp_path / "pair.pem").write_bytes(secret + pem)
    (tmp_path / "root.pem").write_bytes(pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "root.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "pair.pem")
    card, port = named(people)

    async def main():
        async with relaying(people), proxying({card.address: port}, tls=tls) as (proxy, _), serving(people) as (_, one):
            link = through(people, card, f"https://{ESCAPED}@127.0.0.1:{proxy}")
            assert await asyncio.wait_for(link.fetch(1, sound(people)), 20) == one
            await link.close()

    asyncio.run(main())
