"""Neighbours over mutual TLS on loopback: what is held, who is refused, and that hostile answers change nothing."""

import asyncio
import datetime
import socket
import time
from dataclasses import replace

import grpc
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from confide.network import peer, wire
from confide.network.identity import Card, Identity
from confide.network.peer import SERVICE, Link, Server

RUN, ROUNDS, WIDTH = bytes(range(32)), 20, 3


def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def people(tmp_path):
    names = ("ash", "birch", "cedar")
    return {name: Identity.create(tmp_path / name, name, f"127.0.0.1:{port()}") for name in names}


def frames(identity, rounds=ROUNDS):
    return {t: wire.pack(identity, RUN, t, np.full(WIDTH, float(t)).tobytes()) for t in range(1, rounds + 1)}


def served(people, body, *, latest=ROUNDS, rounds=ROUNDS):
    """Run body(server, link) with ash serving birch."""

    async def main():
        ash, birch = people["ash"], people["birch"]
        server = Server(ash, {"birch": birch.card}, RUN, rounds, frames(ash, rounds).__getitem__)
        await server.start(ash.card.address)
        server.publish(latest)
        link = Link(birch, ash.card, RUN, WIDTH)
        try:
            return await body(server, link)
        finally:
            await link.close()
            await server.stop(0)

    return asyncio.run(main())


def test_a_round_is_held_until_it_is_published(people):
    async def body(server, link):
        asked = asyncio.create_task(link.fetch(2, WIDTH))
        await asyncio.sleep(0.3)
        assert not asked.done()
        server.publish(2)
        payload = wire.unpack(await asked, people["ash"].card, RUN, 2, WIDTH)
        assert payload == np.full(WIDTH, 2.0).tobytes() and link.up

    served(people, body, latest=1)


def test_hello_says_which_federation_and_finish_is_remembered(people):
    async def body(server, link):
        assert await link.hello() == (RUN, 0)
        assert server.finished == set()
        await link.finish(ROUNDS)
        assert server.finished == {"birch"}

    served(people, body)


def test_the_options_are_those_of_the_design():
    keepalive = {
        "grpc.keepalive_time_ms": 10000, "grpc.keepalive_timeout_ms": 5000, "grpc.http2.ping_timeout_ms": 5000,
        "grpc.keepalive_permit_without_calls": 1, "grpc.http2.max_pings_without_data": 0,
    }  # fmt: skip
    server = {**keepalive, "grpc.http2.max_ping_strikes": 0, "grpc.so_reuseport": 0}
    client = {
        **keepalive, "grpc.initial_reconnect_backoff_ms": 200, "grpc.max_reconnect_backoff_ms": 1000,
        "grpc.enable_http_proxy": 0,
    }  # fmt: skip
    assert server.items() <= dict(peer.SERVER).items() and client.items() <= dict(peer.CLIENT).items()


def test_hello_shows_our_own_last_message_and_a_forged_one_is_not_believed(people):
    own, another = frames(people["birch"]), frames(people["ash"])

    async def body(server, link):
        server._kept = {"birch": own[3]}.__getitem__
        assert await link.hello() == (RUN, 3)
        for shown in (another[7], own[3][:-1], own[3][:-1] + bytes([own[3][-1] ^ 1]), b"x"):
            server._kept = lambda name, shown=shown: shown
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(link.hello(), 0.3)
            assert link.trouble

    served(people, body)


# --- requests ---------------------------------------------------------------------------------------------------------


def raw(identity, server_card, method="Fetch"):
    """A call without any of the link's good manners."""
    credentials = grpc.ssl_channel_credentials(server_card.pem, identity.secret, identity.card.pem)
    options = (("grpc.ssl_target_name_override", server_card.name), ("grpc.enable_http_proxy", 0))
    channel = grpc.aio.secure_channel(server_card.address, credentials, options=options)
    return channel, channel.unary_unary(f"/{SERVICE}/{method}")


async def refusal(call, request, seconds=3.0):
    try:
        await call(request, timeout=seconds, wait_for_ready=False)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"", "INVALID_ARGUMENT"), (wire.pack_request(bytes(32), 1), "INVALID_ARGUMENT"),
        (wire.pack_request(RUN, 0), "INVALID_ARGUMENT"), (wire.pack_request(RUN, 8), "INVALID_ARGUMENT"),
        (wire.pack_request(RUN, 2**32 - 1), "INVALID_ARGUMENT"), (bytes(10_000), "RESOURCE_EXHAUSTED"),
        (wire.pack_request(RUN, 5), None),
    ],
)  # fmt: skip
def test_a_bad_request_is_refused(people, request_, code):
    async def body(server, link):
        channel, call = raw(people["birch"], people["ash"].card)
        found = await refusal(call, request_)
        await channel.close()
        assert (found and found.name) == code

    served(people, body, latest=5)


def test_calls_are_limited_in_rate_and_in_number(people, monkeypatch):
    monkeypatch.setattr(peer, "BURST", 20.0)
    monkeypatch.setattr(peer, "RATE", 1.0)

    async def body(server, link):
        channel, call = raw(people["birch"], people["ash"].card)
        held = [asyncio.create_task(refusal(call, wire.pack_request(RUN, 2))) for _ in range(peer.HELD + 3)]
        await asyncio.sleep(0.5)
        turned_away = [task.result().name for task in held if task.done()]
        assert turned_away == ["RESOURCE_EXHAUSTED"] * 3
        waiting = [task for task in held if not task.done()]
        server.publish(2)
        assert [await task for task in waiting] == [None] * peer.HELD
        codes = [await refusal(call, wire.pack_request(RUN, 1)) for _ in range(20)]
        assert codes[-1] is grpc.StatusCode.RESOURCE_EXHAUSTED and server.refused > 3
        await channel.close()

    served(people, body, latest=1)


def test_questions_share_one_call_and_each_counts(people, monkeypatch):
    monkeypatch.setattr(peer, "BURST", 10.0)
    monkeypatch.setattr(peer, "RATE", 0.0)

    async def body(server, link):
        calls = []
        opened = link._open
        link._open = lambda **how: calls.append(1) or opened(**how)
        for t in range(1, 11):
            assert wire.source(await link.fetch(t, WIDTH)) == (people["ash"].card.digest, t)
        assert len(calls) == 1 and server._held["birch"] == 1
        with pytest.raises(TimeoutError):  # the eleventh question is turned away, and so is asking it again
            await asyncio.wait_for(link.fetch(11, WIDTH), 1)
        assert "ask more slowly" in link.trouble and server.refused > 1
        assert server._held["birch"] == 0  # a call that was turned away is over

    served(people, body)


def test_the_last_question_ends_the_call(people):
    async def body(server, link):
        assert await link.fetch(ROUNDS, WIDTH)
        await link.finish(ROUNDS)
        began = time.monotonic()
        await server.stop(grace=5)  # waits for calls under way: there is none
        assert time.monotonic() - began < 3

    served(people, body)


# --- strangers --------------------------------------------------------------------------------------------------------


def minted(name, issuer):
    """A fresh key whose certificate for `name` is signed with the issuer's key: it passes TLS."""
    key = ec.generate_private_key(ec.SECP256R1())
    root = x509.load_der_x509_certificate(issuer.card.certificate)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "minted")])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(root.subject).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(9))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False).add_extension(usage, False)
        .add_extension(x509.BasicConstraints(False, None), True).sign(issuer.key, hashes.SHA256())
    )  # fmt: skip
    der = certificate.public_bytes(serialization.Encoding.DER)
    return Identity(Card(name, issuer.card.address, der), key)


def strangers(people, tmp_path):
    return {
        "another certificate": Identity.create(tmp_path / "x", "stranger", "127.0.0.1:1"),
        "the right name with another key": Identity.create(tmp_path / "y", "birch", "127.0.0.1:1"),
        "signed with a neighbour's key": minted("birch", people["birch"]),
        "a member that is no neighbour": people["cedar"],
    }  # fmt: skip


def test_strangers_are_refused_by_every_method(people, tmp_path):
    async def body(server, link):
        for who, identity in strangers(people, tmp_path).items():
            for method, request in (("Fetch", wire.pack_request(RUN, 1)), ("Hello", b"")):
                channel, call = raw(identity, people["ash"].card, method)
                code = await refusal(call, request)
                await channel.close()
                assert code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED), who
                if who == "signed with a neighbour's key":  # only the handler's check stands in its way
                    assert code is grpc.StatusCode.PERMISSION_DENIED
        assert await link.fetch(1, WIDTH)  # and the neighbour is served all the same

    served(people, body)


def test_a_member_that_is_no_neighbour_is_refused_though_another_link_vouches_for_it(people):
    """Two neighbours' certificates are trust roots of one server: the check is by digest, not by trust."""
    ash, birch, cedar = people.values()

    async def main():
        server = Server(ash, {"birch": birch.card}, RUN, ROUNDS, frames(ash).__getitem__)
        server._neighbours = {"birch": birch.card, "cedar": cedar.card}  # TLS would let cedar in
        await server.start(ash.card.address)
        channel, call = raw(cedar, ash.card)
        assert await refusal(call, wire.pack_request(RUN, 1)) is grpc.StatusCode.PERMISSION_DENIED
        await channel.close()
        await server.stop(0)

    asyncio.run(main())


def test_a_server_with_another_key_is_not_believed(people, tmp_path):
    """Whoever listens at a neighbour's address under its name, without its key, is never connected to."""
    ash, birch, _ = people.values()
    impostor = Identity.create(tmp_path / "impostor", "ash", ash.card.address)

    async def main():
        server = Server(impostor, {"birch": birch.card}, RUN, ROUNDS, frames(impostor).__getitem__)
        await server.start(ash.card.address)
        server.publish(ROUNDS)
        link = Link(birch, ash.card, RUN, WIDTH)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(link.fetch(1, WIDTH), 2)
        assert not link.up
        await link.close()
        await server.stop(0)

    asyncio.run(main())


# --- hostile neighbours -----------------------------------------------------------------------------------------------


def test_a_link_outlives_its_neighbour(people):
    async def body(server, link):
        ash, birch = people["ash"], people["birch"]
        assert await link.fetch(1, WIDTH)
        await server.stop(0)
        asked = asyncio.create_task(link.fetch(2, WIDTH))
        await asyncio.sleep(1)
        assert not asked.done() and not link.up
        again = Server(ash, {"birch": birch.card}, RUN, ROUNDS, frames(ash).__getitem__)
        await again.start(ash.card.address)
        again.publish(2)
        assert wire.source(await asyncio.wait_for(asked, 15)) == (ash.card.digest, 2)
        assert link.up
        await again.stop(0)

    served(people, body)


@pytest.mark.slow
def test_ten_thousand_hostile_answers_are_not_taken(people, monkeypatch):
    """The neighbour itself lies, with its own key: truncated, NaN, wrong run, replayed, from the future, oversized."""
    monkeypatch.setattr(peer, "PAUSE", 0.0)
    monkeypatch.setattr(peer, "RATE", 1e9)
    monkeypatch.setattr(peer, "BURST", 1e9)
    ash = people["ash"]
    rng, good = np.random.default_rng(1), frames(ash)
    nan = wire.pack(ash, RUN, 2, np.array([1.0, np.nan, 1.0]).tobytes())
    kinds = [
        lambda: good[2][: int(rng.integers(len(good[2])))], lambda: nan, lambda: good[1], lambda: good[3],
        lambda: wire.pack(ash, bytes(32), 2, bytes(8 * WIDTH)), lambda: wire.pack(ash, RUN, 2, bytes(800)),
        lambda: rng.bytes(len(good[2])), lambda: _flipped(good[2], rng), lambda: good[2] + b"\0", lambda: b"",
    ]  # fmt: skip
    answers, lied = [], 10_000

    def read(t):
        if len(answers) < lied:
            answers.append(kinds[len(answers) % len(kinds)]())
            return answers[-1]
        return good[t]

    async def body(server, link):
        server._read = read
        began = time.monotonic()
        assert await link.fetch(2, WIDTH) == good[2]
        assert len(answers) == lied and link.up and link.trouble == ""
        return time.monotonic() - began

    assert served(people, body) < 90


def _flipped(frame, rng):
    out = bytearray(frame)
    out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def test_a_taken_port_is_one_line(people):
    async def body(server, link):
        other = Server(replace(people["ash"]), {}, RUN, ROUNDS, dict.__getitem__)
        with pytest.raises(OSError, match="cannot listen on"):
            await other.start(people["ash"].card.address)

    served(people, body)
