"""Strangers and hostile neighbours: who is none of the neighbours gets no answer, and no answer of a liar is taken."""

import asyncio
import datetime
from dataclasses import replace

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from test_peer import ROUNDS, RUN, WIDTH, Raw, frames, served, sound
from test_peer import people as people
from waiting import unanswered, until

from confide.network import link as asking
from confide.network import peer, wire
from confide.network.channel import Word
from confide.network.identity import Card, Identity
from confide.network.link import Link
from confide.network.peer import Server

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
            for kind, request in ((Word.FETCH, wire.pack_request(RUN, 1)), (Word.HELLO, b"")):
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
        assert await raw.answer(Word.FETCH, wire.pack_request(RUN, 1)) == (Word.REFUSED, peer.STRANGER.encode())
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
    monkeypatch.setattr(asking, "PAUSE", 0.0)
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
