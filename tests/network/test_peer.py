"""Neighbours over mutual TLS on loopback: what is held, who is refused, and that hostile answers change nothing."""

import asyncio
import datetime
from dataclasses import replace

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from ports import free_port
from waiting import unanswered, until

from confide.errors import ConfideError
from confide.network import peer, wire
from confide.network.channel import Channel, Kind, context, listener
from confide.network.identity import Card, Identity
from confide.network.peer import Link, Server

RUN, ROUNDS, WIDTH = bytes(range(32)), 20, 3


@pytest.fixture
def people(tmp_path):
    names = ("ash", "birch", "cedar")
    return {name: Identity.create(tmp_path / name, name, f"127.0.0.1:{free_port()}") for name in names}


def frames(identity, rounds=ROUNDS):
    return {t: wire.pack(identity, RUN, t, np.full(WIDTH, float(t)).tobytes()) for t in range(1, rounds + 1)}


def sound(link, t):
    """The check of a frame of round t."""
    return lambda frame: wire.unpack(frame, link.card, RUN, t, WIDTH)


def served(people, body, *, latest=ROUNDS, rounds=ROUNDS):
    """Run body(server, link) with ash serving birch."""

    async def main():
        ash, birch = people["ash"], people["birch"]
        server = Server(ash, {"birch": birch.card}, RUN, rounds, frames(ash, rounds).__getitem__)
        await server.start(ash.card.address)
        server.publish(latest)
        link = Link(birch, ash.card, RUN, wire.frame_size(WIDTH))
        try:
            return await body(server, link)
        finally:
            await link.close()
            await server.stop(0)

    return asyncio.run(main())


def test_a_round_is_held_until_it_is_published(people):
    async def body(server, link):
        asked = asyncio.create_task(link.fetch(2, sound(link, 2)))
        await asyncio.sleep(0.3)
        assert not asked.done()
        server.publish(2)
        payload = wire.unpack(await asked, people["ash"].card, RUN, 2, WIDTH)
        assert payload == np.full(WIDTH, 2.0).tobytes() and link.up

    served(people, body, latest=1)


def test_hello_says_which_federation_and_finish_is_remembered(people):
    async def body(server, link):
        assert await link.hello() == 0
        assert server.finished == set()
        await link.finish(ROUNDS)
        assert server.finished == {"birch"}

    served(people, body)


def test_a_link_that_gives_no_sign_of_life_is_given_up(people, monkeypatch):
    """A black-holed link: the connection stands, and nothing comes."""
    monkeypatch.setattr(peer, "PING_SECONDS", 0.1)
    monkeypatch.setattr(peer, "PONG_SECONDS", 2.0)

    async def body(server, link):
        pings, hears = [], server._heard

        def heard(channel, kind, body):
            pings.append(kind) if kind == Kind.PING else None
            hears(channel, kind, body)

        server._heard = heard
        asked = asyncio.create_task(link.fetch(2, sound(link, 2)))
        await until(lambda: len(pings) >= 3)
        assert link.up and not asked.done() and len(server._held["birch"]) == 1  # held, and pings are answered
        server._heard = lambda *_: None
        for held in server._held["birch"]:
            held._heard = server._heard
        await until(lambda: link.trouble == "cannot be reached")
        assert not link.up
        server._heard = hears
        server.publish(2)
        assert wire.source(await asyncio.wait_for(asked, 120)) == (people["ash"].card.digest, 2) and link.up

    served(people, body, latest=1)


def test_hello_shows_our_own_last_message_and_a_forged_one_is_not_believed(people):
    own, another = frames(people["birch"]), frames(people["ash"])

    async def body(server, link):
        server._kept = {"birch": own[3]}.__getitem__
        assert await link.hello() == 3
        for shown in (another[7], own[3][:-1], own[3][:-1] + bytes([own[3][-1] ^ 1]), b"x"):
            server._kept, link.trouble = lambda name, shown=shown: shown, ""
            await unanswered(link.hello(), link)

    served(people, body)


def test_another_federation_is_asked_again_until_it_is_the_same(people):
    """A neighbour can keep us waiting, never make us fail."""

    async def body(server, link):
        server.run = bytes(32)
        asked = asyncio.create_task(link.hello())
        await until(lambda: "holds another federation, 0000000000000000" in link.trouble)
        assert not asked.done() and not link.up
        server.run = RUN
        assert await asyncio.wait_for(asked, 120) == 0 and link.up

    served(people, body)


def test_what_was_signed_and_lies_outside_the_ball_is_evidence(people):
    """Only with the neighbour's signature: what anyone may have altered accuses nobody."""
    ash = people["ash"]
    lie = wire.pack(ash, RUN, 2, np.full(WIDTH, 1e308).tobytes())
    forged = lie[:-1] + bytes([lie[-1] ^ 1])

    async def body(server, link):
        accused = []
        link.accuse = lambda frame, why: accused.append((frame, why))
        truth, answers = server._read, [forged, lie]
        server._read = lambda t: answers.pop(0) if answers else truth(t)

        def check(frame):
            wire.unpack(frame, link.card, RUN, 2, WIDTH, radius=100.0)

        assert wire.source(await link.fetch(2, check)) == (ash.card.digest, 2)
        assert [frame for frame, _ in accused] == [lie] and "public ball of radius 100" in accused[0][1]
        assert link.misbehaved == accused[0][1] and link.up  # it answers again, and what it did stays shown

    served(people, body)


# --- requests ---------------------------------------------------------------------------------------------------------


class Raw:
    """A connection without any of the link's good manners: what was said, and whether it was hung up on."""

    def __init__(self):
        self.said, self.taken, self.ended = [], 0, asyncio.Event()

    async def open(self, identity, card):
        host, port = listener(card.address)
        loop = asyncio.get_running_loop()
        self.transport, self.channel = await loop.create_connection(
            lambda: Channel(1 << 20, lambda _, kind, body: self.said.append((Kind(kind), body)), lambda _: None,
                            lambda _: self.ended.set()),
            host, port, ssl=context(identity, [card], server=False), server_hostname=card.name,
        )  # fmt: skip
        return self

    async def answer(self, kind, body):
        """The next message, or None if it is hung up on before."""
        self.channel.send(kind, body)
        await until(lambda: len(self.said) > self.taken or self.ended.is_set())
        self.taken += 1
        return self.said[self.taken - 1] if len(self.said) >= self.taken else None

    def close(self):
        self.channel.close()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (b"", "must be 40"), (wire.pack_request(bytes(32), 1), "not the one here"),
        (wire.pack_request(RUN, 0), "round 0"), (wire.pack_request(RUN, 8), "round 8: at most 2 rounds past 5"),
        (wire.pack_request(RUN, 2**32 - 1), "round 4294967295"), (bytes(200), "request of 200 bytes"),
        (bytes(10_000), None), (wire.pack_request(RUN, 5), "an answer"),
    ],
)  # fmt: skip
def test_a_bad_request_is_refused(people, request_, said):
    async def body(server, link):
        raw = await Raw().open(people["birch"], people["ash"].card)
        found = await raw.answer(Kind.FETCH, request_)
        if said == "an answer":
            assert found == (Kind.ANSWER, frames_of[5]) and not raw.ended.is_set()
        elif said is None:  # too long to be read
            assert found is None and raw.ended.is_set()
        else:
            assert found[0] is Kind.REFUSED and said in found[1].decode() and server.refused == 1
        raw.close()

    frames_of = {}

    async def keeping(server, link):
        frames_of[5] = server._read(5)
        await body(server, link)

    served(people, keeping, latest=5)


def test_a_message_that_is_no_question_and_a_second_question_are_refused(people):
    async def body(server, link):
        for kind in (0, Kind.ANSWER, Kind.ALARM, 255):
            raw = await Raw().open(people["birch"], people["ash"].card)
            assert "must be a question" in (await raw.answer(kind, b""))[1].decode()
            raw.close()
        raw = await Raw().open(people["birch"], people["ash"].card)
        raw.channel.send(Kind.FETCH, wire.pack_request(RUN, 2))  # held
        assert "one at a time" in (await raw.answer(Kind.FETCH, wire.pack_request(RUN, 2)))[1].decode()

    served(people, body, latest=1)


def test_connections_of_a_neighbour_are_limited_and_the_newest_stays(people):
    """A neighbour whose router forgot its old connections must not have to wait for their end."""

    async def body(server, link):
        raws = [await Raw().open(people["birch"], people["ash"].card) for _ in range(peer.HELD + 3)]
        await until(lambda: sum(raw.ended.is_set() for raw in raws) >= 3)
        assert [raw.ended.is_set() for raw in raws] == [True] * 3 + [False] * peer.HELD
        assert (await raws[-1].answer(Kind.FETCH, wire.pack_request(RUN, 1)))[0] is Kind.ANSWER
        for raw in raws:
            raw.close()

    served(people, body, latest=1)


def test_questions_share_one_connection_and_each_counts(people, monkeypatch):
    monkeypatch.setattr(peer, "BURST", 10.0)
    monkeypatch.setattr(peer, "RATE", 0.0)

    async def body(server, link):
        calls = []
        opened = link._connect
        link._connect = lambda: calls.append(1) or opened()
        for t in range(1, 11):
            assert wire.source(await link.fetch(t, sound(link, t))) == (people["ash"].card.digest, t)
        assert len(calls) == 1 and len(server._held["birch"]) == 1
        asked = asyncio.create_task(link.fetch(11, sound(link, 11)))
        await until(lambda: server.refused > 1)  # the eleventh question is turned away, and so is asking it again
        await until(lambda: "ask more slowly" in link.trouble)
        assert not asked.done()
        asked.cancel()
        await until(lambda: not server._held["birch"])  # a connection that was turned away is over

    served(people, body)


def test_who_never_reads_its_answers_is_not_read_either(people, monkeypatch):
    """Answers that nobody takes must not pile up in memory: 5,000 questions for 80 kB each would be 400 MB."""
    monkeypatch.setattr(peer, "BURST", 1e9)
    size = 80_000

    async def main():
        ash, birch = people["ash"], people["birch"]
        server = Server(ash, {"birch": birch.card}, RUN, 10, lambda t: bytes(size))
        await server.start(ash.card.address)
        server.publish(10)
        raw = await Raw().open(birch, ash.card)
        raw.transport.pause_reading()
        for _ in range(5000):
            raw.channel.send(Kind.FETCH, wire.pack_request(RUN, 1))
        await asyncio.sleep(1)
        (held,) = server._held["birch"]
        under = held.transport._ssl_protocol._transport
        waiting = held.transport.get_write_buffer_size() + under.get_write_buffer_size() + len(held._buffer)
        assert waiting < 4 << 20, waiting
        raw.close()
        await server.stop(0)

    asyncio.run(main())


def test_what_a_neighbour_says_shows_no_control_characters(people):
    async def body(server, link):
        server._round_of = lambda request: (_ for _ in ()).throw(ConfideError("\x1b[2Jgone\r\n"))
        await unanswered(link.fetch(1, sound(link, 1)), link, "gone")
        assert link.trouble == "refused: ?[2Jgone??"

    served(people, body)


# --- strangers --------------------------------------------------------------------------------------------------------


def minted(name, issuer):
    """A fresh key whose certificate for `name` is signed with the issuer's key: some TLS libraries take it."""
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


def test_strangers_get_no_answer(people, tmp_path):
    async def body(server, link):
        for who, identity in strangers(people, tmp_path).items():
            before = server.refused
            for kind, request in ((Kind.FETCH, wire.pack_request(RUN, 1)), (Kind.HELLO, b"")):
                raw = await Raw().open(identity, people["ash"].card)  # in TLS 1.3 a client hears of refusal later
                assert await raw.answer(kind, request) is None, who
                await until(raw.ended.is_set)
            await until(lambda before=before: server.refused >= before + 2)
            assert server.refused == before + 2, who
        assert await link.fetch(1, sound(link, 1))  # and the neighbour is served all the same

    served(people, body)


def test_a_member_that_is_no_neighbour_is_refused_though_another_link_vouches_for_it(people):
    """Two neighbours' certificates are trust roots of one server: the check is by digest, not by trust."""
    ash, birch, cedar = people.values()

    async def main():
        server = Server(ash, {"birch": birch.card, "cedar": cedar.card}, RUN, ROUNDS, frames(ash).__getitem__)
        del server._names[cedar.card.digest]  # TLS lets cedar in
        await server.start(ash.card.address)
        raw = await Raw().open(cedar, ash.card)
        assert await raw.answer(Kind.FETCH, wire.pack_request(RUN, 1)) == (Kind.REFUSED, peer.STRANGER.encode())
        link = Link(cedar, ash.card, RUN, wire.frame_size(WIDTH))
        await unanswered(link.fetch(1, sound(link, 1)), link, "does not count this node among its neighbours")
        await link.close()
        await server.stop(0)

    asyncio.run(main())


def test_a_server_that_a_neighbour_vouches_for_is_not_believed(people):
    """A certificate signed with the neighbour's key is not the one on its card."""
    ash, birch, _ = people.values()
    other = minted("ash", ash)

    async def main():
        server = Server(other, {"birch": birch.card}, RUN, ROUNDS, frames(other).__getitem__)
        await server.start(ash.card.address)
        server.publish(ROUNDS)
        link = Link(birch, ash.card, RUN, wire.frame_size(WIDTH))
        await unanswered(link.fetch(1, sound(link, 1)), link, "not the one on its card")
        assert not link.up
        await link.close()
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
        link = Link(birch, ash.card, RUN, wire.frame_size(WIDTH))
        await unanswered(link.fetch(1, sound(link, 1)), link)
        assert not link.up
        await link.close()
        await server.stop(0)

    asyncio.run(main())


# --- hostile neighbours -----------------------------------------------------------------------------------------------


def test_a_link_outlives_its_neighbour(people):
    async def body(server, link):
        ash, birch = people["ash"], people["birch"]
        assert await link.fetch(1, sound(link, 1))
        await server.stop(0)
        asked = asyncio.create_task(link.fetch(2, sound(link, 2)))
        await until(lambda: link.trouble)
        assert not asked.done() and not link.up
        again = Server(ash, {"birch": birch.card}, RUN, ROUNDS, frames(ash).__getitem__)
        await again.start(ash.card.address)
        again.publish(2)
        assert wire.source(await asyncio.wait_for(asked, 120)) == (ash.card.digest, 2)
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
        assert await link.fetch(2, sound(link, 2)) == good[2]
        assert len(answers) == lied and link.up and link.trouble == ""

    served(people, body)


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
