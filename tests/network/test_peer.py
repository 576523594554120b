"""Neighbours over mutual TLS on loopback: what is held, who is refused, and that hostile answers change nothing."""

import asyncio

import numpy as np
import pytest
from ports import free_port
from waiting import unanswered, until

from confide.errors import ConfideError
from confide.network import link as asking
from confide.network import peer, wire
from confide.network.channel import Channel, Word, context, listener
from confide.network.identity import Identity
from confide.network.link import Link
from confide.network.peer import Server

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
        await until(lambda: any(one.waits == 2 for one in server._held["birch"]))
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
    for end in (peer, asking):
        monkeypatch.setattr(end, "PING_SECONDS", 0.1)
        monkeypatch.setattr(end, "PONG_SECONDS", 2.0)

    async def body(server, link):
        pings, hears = [], server._heard

        def heard(channel, kind, body):
            pings.append(kind) if kind == Word.PING else None
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
            lambda: Channel(1 << 20, lambda _, kind, body: self.said.append((Word(kind), body)), lambda _: None,
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
        found = await raw.answer(Word.FETCH, request_)
        if said == "an answer":
            assert found == (Word.ANSWER, frames_of[5]) and not raw.ended.is_set()
        elif said is None:  # too long to be read
            assert found is None and raw.ended.is_set()
        else:
            assert found[0] is Word.REFUSED and said in found[1].decode() and server.refused == 1
        raw.close()

    frames_of = {}

    async def keeping(server, link):
        frames_of[5] = server._read(5)
        await body(server, link)

    served(people, keeping, latest=5)


def test_a_message_that_is_no_question_and_a_second_question_are_refused(people):
    async def body(server, link):
        for kind in (0, Word.ANSWER, Word.ALARM, 255):
            raw = await Raw().open(people["birch"], people["ash"].card)
            assert "must be a question" in (await raw.answer(kind, b""))[1].decode()
            raw.close()
        raw = await Raw().open(people["birch"], people["ash"].card)
        raw.channel.send(Word.FETCH, wire.pack_request(RUN, 2))  # held
        assert "one at a time" in (await raw.answer(Word.FETCH, wire.pack_request(RUN, 2)))[1].decode()

    served(people, body, latest=1)


def test_connections_of_a_neighbour_are_limited_and_the_newest_stays(people):
    """A neighbour whose router forgot its old connections must not have to wait for their end."""

    async def body(server, link):
        raws = [await Raw().open(people["birch"], people["ash"].card) for _ in range(peer.HELD + 3)]
        await until(lambda: sum(raw.ended.is_set() for raw in raws) >= 3)
        assert [raw.ended.is_set() for raw in raws] == [True] * 3 + [False] * peer.HELD
        assert (await raws[-1].answer(Word.FETCH, wire.pack_request(RUN, 1)))[0] is Word.ANSWER
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
            raw.channel.send(Word.FETCH, wire.pack_request(RUN, 1))
        await until(lambda: any(one._held for one in server._held["birch"]))  # it reads no more
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
