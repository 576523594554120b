"""Members that reach each other through a relay, which learns nothing and can change nothing unnoticed."""

import asyncio
import datetime
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from cryptography import x509
from ports import free_port
from waiting import unanswered, until

from confide.network import dialling, wire
from confide.network import link as asking
from confide.network.dialling import Ways
from confide.network.identity import BY_RELAY, Identity, self_signed
from confide.network.link import Link
from confide.network.peer import Server
from confide.network.relay import Limits, Line, Relay

RUN, WIDTH = bytes(range(32)), 5
GONE = "cannot be reached (the relay cannot be reached)"
HUNG_UP = ("hung up", "does not accept this node's certificate")  # as this Python says why, or does not
NUMBERS = np.array([1.25, -3.5, 1e10, 2.0**-20, 7.0]).tobytes()


@pytest.fixture
def people(tmp_path):
    out = {name: Identity.create(tmp_path / name, name, BY_RELAY) for name in ("ash", "birch", "cedar")}
    return {**out, "relay": Identity.create(tmp_path / "relay", "relay", f"127.0.0.1:{free_port()}")}


def ways(people, name, card=None):
    return Ways(people[name], RUN, card or people["relay"].card)


def link_to(people, mine, other, card=None):
    return Link(people[mine], people[other].card, RUN, wire.frame_size(WIDTH), ways(people, mine, card))


def sound(people, name="ash"):
    return lambda frame: wire.unpack(frame, people[name].card, RUN, 1, WIDTH)


@asynccontextmanager
async def serving(people, name="ash", to=("birch",), address=BY_RELAY, card=None):
    """`name` hands out one round at the relay."""
    me = people[name]
    frame = wire.pack(me, RUN, 1, NUMBERS)
    server = Server(me, {one: people[one].card for one in to}, RUN, 1, lambda t: frame)
    await server.start(address, ways(people, name, card))
    server.publish(1)
    try:
        yield server, frame
    finally:
        await server.stop(0)


@asynccontextmanager
async def relaying(people, groups=(("ash", "birch", "cedar"),), limits=None):
    board = Relay(people["relay"], [[people[n].card for n in group] for group in groups], limits or Limits())
    await board.start(people["relay"].card.address)
    try:
        yield board
    finally:
        await board.stop()


def test_two_that_take_no_connections_meet_at_the_relay(people):
    async def main():
        async with relaying(people) as board, serving(people) as (server, frame):
            link = link_to(people, "birch", "ash")
            assert await link.hello() == 0
            assert await link.fetch(1, sound(people)) == frame
            await link.finish(1)
            assert link.up and link.way == "relay" and server.finished == {"birch"} and server.relay == "up"
            assert board.joined == 1 and board.bytes > len(frame) and board.here == 2
            await link.close()

    asyncio.run(main())


def test_who_can_be_reached_straight_is_and_else_through_the_relay(people):
    """The same server, once at its address, once with the address of a machine that does not answer."""
    port = free_port()
    people["ash"] = replace(people["ash"], card=replace(people["ash"].card, address=f"127.0.0.1:{port}"))

    async def main():
        async with relaying(people) as board, serving(people, address=f"127.0.0.1:{port}") as (_, frame):
            link = link_to(people, "birch", "ash")
            assert await link.fetch(1, sound(people)) == frame and link.way == "straight" and board.joined == 0
            await link.close()
            elsewhere = replace(people["ash"].card, address=f"127.0.0.1:{free_port()}")
            link = Link(people["birch"], elsewhere, RUN, wire.frame_size(WIDTH), ways(people, "birch"))
            assert await link.fetch(1, sound(people)) == frame and link.way == "relay" and board.joined == 1
            await link.close()

    asyncio.run(main())


def test_who_begins_to_listen_is_reached_straight_from_then_on(people, monkeypatch):
    """Reached through the relay at first, as its port was not open yet; both ways give the same answers."""
    monkeypatch.setattr(asking, "REST", 0.1)
    port = free_port()
    people["ash"] = replace(people["ash"], card=replace(people["ash"].card, address=f"127.0.0.1:{port}"))

    async def main():
        async with relaying(people) as board, serving(people) as (server, frame):
            link = link_to(people, "birch", "ash")
            for _ in range(3):
                assert await link.fetch(1, sound(people)) == frame and link.way == "relay"
                link._again = 0.0  # it looks for a straight way when it asks next
            server._door.open(f"127.0.0.1:{port}")
            end = asyncio.get_running_loop().time() + 20
            while link.way != "straight" and asyncio.get_running_loop().time() < end:
                assert await link.fetch(1, sound(people)) == frame
                await asyncio.sleep(0.05)
            assert link.way == "straight" and link.up and board.joined == 1
            await link.close()

    asyncio.run(main())


def test_the_relay_is_lost_and_found(people):
    """Killed between two questions, and started again on the same port: nobody fails, everyone comes back."""

    async def main():
        async with serving(people) as (server, frame):
            link = link_to(people, "birch", "ash")
            async with relaying(people):
                assert await link.fetch(1, sound(people)) == frame
            asked = asyncio.create_task(link.fetch(1, sound(people)))
            await until(lambda: server.relay == "the relay cannot be reached" and link.trouble == GONE)
            assert not asked.done() and not link.up
            async with relaying(people):
                assert await asyncio.wait_for(asked, 120) == frame and link.up and server.relay == "up"
            await link.close()

    asyncio.run(main())


# --- what it can learn, and change ------------------------------------------------------------------------------------


@pytest.fixture
def piped(monkeypatch):
    """Every byte that the relay passes on, as it sees it, by sender: [(digest, bytes)]; `alter(data)` may change it."""
    seen, state = [], {"alter": lambda line, data: data}
    honest = Line.data_received

    def record(self, data):
        if self.partner is not None:
            seen.append((self.digest, data))
            data = state["alter"](self, data)
        honest(self, data)

    monkeypatch.setattr(Line, "data_received", record)
    return seen, state


def test_a_recording_relay_learns_nothing(people, piped):
    """No run of 8 bytes of a frame, which is one number, and no certificate is in what it passes on."""
    seen, _ = piped

    async def main():
        async with relaying(people), serving(people) as (_, frame):
            link = link_to(people, "birch", "ash")
            await link.hello()
            assert await link.fetch(1, sound(people)) == frame
            await link.close()
            return frame

    frame = asyncio.run(main())
    told = b"".join(data for _, data in seen)
    certificates = [people[name].card.certificate for name in ("ash", "birch")]
    assert len(told) > len(frame) + sum(map(len, certificates))  # they did go through
    for secret in (frame, *certificates, RUN):
        assert not any(secret[i : i + 8] in told for i in range(len(secret) - 7))


@pytest.mark.slow
def test_an_altering_relay_changes_nothing_unnoticed(people, piped, monkeypatch):
    """One byte of one direction is changed, at 60 places of a session: only true frames reach the check, and the
    connection on which a byte was changed is given up.
    """
    monkeypatch.setattr(dialling, "CALL_SECONDS", 2.0)
    seen, state = piped
    rng = np.random.default_rng(11)

    async def session(board, frame):
        """Hello and a fetch over a new link; what the check was shown."""
        shown = []

        def check(answer):
            shown.append(answer)
            sound(people)(answer)

        link = link_to(people, "birch", "ash")
        assert await asyncio.wait_for(link.hello(), 120) == 0
        assert await asyncio.wait_for(link.fetch(1, check), 120) == frame
        await link.close()
        return shown

    async def main():
        async with relaying(people) as board, serving(people) as (server, frame):
            seen.clear()
            assert await session(board, frame) == [frame]
            await until(lambda: not any(line.partner for lines in board._lines.values() for line in lines))
            lengths = {who: sum(len(d) for digest, d in seen if digest == people[who].card.digest)
                       for who in ("ash", "birch")}  # fmt: skip
            for number in range(60):
                who = ("ash", "birch")[number % 2]
                at, passed, joined = int(rng.integers(lengths[who])), [0], board.joined

                def alter(line, data, who=who, at=at, passed=passed):
                    if line.digest != people[who].card.digest:
                        return data
                    begin, passed[0] = passed[0], passed[0] + len(data)
                    if begin <= at < passed[0]:
                        out = bytearray(data)
                        out[at - begin] ^= 1 << int(rng.integers(8))
                        return bytes(out)
                    return data

                state["alter"] = alter
                assert await session(board, frame) == [frame], (who, at)
                assert board.joined >= joined + 1
                if at < lengths[who] - 200:  # before the last words, which nobody needs to have read
                    assert board.joined >= joined + 2, (who, at)
            assert server.finished == set()

    asyncio.run(main())


def test_replayed_bytes_open_nothing(people, piped):
    """What a member once sent, sent again by the relay as if it called: no answer but the end."""
    seen, _ = piped

    async def main():
        async with relaying(people) as board, serving(people) as (server, frame):
            link = link_to(people, "birch", "ash")
            assert await link.fetch(1, sound(people)) == frame
            await link.finish(1)
            await link.close()
            server.finished.clear()
            old = [data for digest, data in seen if digest == people["birch"].card.digest]
            before = server.refused
            await until(lambda: board._waiting)
            called = await ways(people, "cedar")._call(people["ash"].card)  # the relay's own hand
            ended = asyncio.get_running_loop().create_future()

            class Deaf(asyncio.Protocol):
                def connection_lost(self, error):
                    ended.done() or ended.set_result(None)

            called.set_protocol(Deaf())
            called.resume_reading()
            for data in old:
                called.write(data)
            await asyncio.wait_for(ended, 120)
            assert server.refused == before + 1 and server.finished == set()

    asyncio.run(main())


@pytest.mark.parametrize("who", ["cedar", "relay"])
def test_a_relay_that_joins_with_somebody_else_is_found_out(people, who, monkeypatch):
    """With another member, or with itself: the certificate inside is not the one on the card."""
    monkeypatch.setattr(
        Relay,
        "_call",
        lambda self, line, run, whom: Relay._offer(self, self._waiting[run, people[who].card.digest], line),
    )

    async def main():
        groups = [("ash", "birch", "cedar", "relay")]
        async with relaying(people, groups) as board, serving(people, who) as (server, _):
            await until(lambda: board._waiting)
            link = link_to(people, "birch", "ash")
            await unanswered(link.fetch(1, sound(people)), link, "shows a certificate that is not the one on its card")
            assert board.joined
            assert server.finished == set()
            await link.close()

    asyncio.run(main())


def test_another_host_at_the_relays_address_is_not_told_anything(people, tmp_path):
    other = Identity.create(tmp_path / "other", "relay", people["relay"].card.address)

    async def main():
        async with relaying({**people, "relay": other}) as board, serving(people) as (server, _):
            await until(lambda: server.relay == "the relay shows a certificate that is not the one on its card")
            assert board.here == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("begin", "end", "words"), [(-20, -3, "expired on {end}"), (2, 30, "is valid from {begin} only")]
)
def test_a_certificate_out_of_date_is_called_so(people, tmp_path, monkeypatch, begin, end, words):
    """The relay's and a neighbour's: nothing stands between, as "not the one on its card" would say."""
    dated, made = [datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=d) for d in (begin, end)], self_signed

    def sign(key, name):
        usual = made(key, name)
        builder = x509.CertificateBuilder(usual.issuer, usual.subject, usual.public_key(), usual.serial_number,
                                          *(one.replace(tzinfo=None, microsecond=0) for one in dated),
                                          list(usual.extensions))  # fmt: skip
        return builder.sign(key, usual.signature_hash_algorithm)

    monkeypatch.setattr("confide.network.identity.self_signed", sign)
    said = words.format(begin=f"{dated[0]:%Y-%m-%d}", end=f"{dated[1]:%Y-%m-%d}")
    relay_of_old = Identity.create(tmp_path / "old relay", "relay", people["relay"].card.address)
    port = free_port()
    ash = Identity.create(tmp_path / "old ash", "ash", f"127.0.0.1:{port}")

    async def main():
        told = {**people, "relay": relay_of_old}
        async with relaying(told) as board, serving(told) as (server, _):
            await until(lambda: server.relay == f"the relay shows a certificate that {said}")
            assert board.here == 0
        server = Server(ash, {"birch": people["birch"].card}, RUN, 1, lambda t: b"")
        await server.start(ash.card.address)
        link = Link(people["birch"], ash.card, RUN, wire.frame_size(WIDTH))
        await unanswered(link.hello(), link, f"shows a certificate that {said}")
        await link.close()
        await server.stop(0)

    asyncio.run(main())
