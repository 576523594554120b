"""Whom a relay serves, and how much: only members, of one federation, within limits, and nobody's memory."""

import asyncio

import pytest
from test_relay import HUNG_UP, RUN, link_to, relaying, serving, sound, ways
from test_relay import people as people
from waiting import unanswered, until

from confide.errors import ConfideError
from confide.network import relay
from confide.network.channel import Channel, Word
from confide.network.identity import BY_RELAY, Identity
from confide.network.relay import Limits, Relay

# --- whom it serves, and how much -------------------------------------------------------------------------------------


def test_only_members_of_one_federation_are_joined(people, tmp_path):
    people["doum"] = Identity.create(tmp_path / "doum", "doum", BY_RELAY)

    async def main():
        groups = [("ash", "birch"), ("cedar",)]
        async with relaying(people, groups) as board, serving(people, to=("birch", "cedar", "doum")) as (_, frame):
            await until(lambda: board._waiting)
            for name, why in (("cedar", ("no federation has both",)), ("doum", HUNG_UP)):
                link = link_to(people, name, "ash")
                await unanswered(link.fetch(1, sound(people)), link, *why)
                await link.close()
            link = link_to(people, "birch", "ash")
            assert await link.fetch(1, sound(people)) == frame and board.joined == 1
            await link.close()

    asyncio.run(main())


def test_who_is_turned_away_is_not_told_that_all_is_well(people, tmp_path):
    """A stranger to the relay, and a member whose connections are used up: never "up", but why not."""
    people["doum"] = Identity.create(tmp_path / "doum", "doum", BY_RELAY)

    async def heard(name):
        said = []
        waits = asyncio.ensure_future(ways(people, name).attend(lambda called: None, said.append))
        await until(lambda: len(said) >= 3)
        waits.cancel()
        return said

    async def main():
        async with relaying(people):
            for words in await heard("doum"):
                assert words.startswith("the relay ") and any(one in words for one in HUNG_UP)
        async with relaying(people, limits=Limits(connections=1)):
            talk = await ways(people, "cedar")._talk()
            assert set(await heard("ash")) == {"the relay says: too many connections"}
            talk.channel.close()

    asyncio.run(main())


def test_a_caller_who_came_first_is_joined_at_once(people):
    """Whoever then takes a place hears of the call before its ping is answered: the sign of life is the call."""

    async def main():
        async with relaying(people) as board:
            calls = asyncio.ensure_future(ways(people, "birch")._call(people["ash"].card))
            await until(lambda: board._calling)
            said = []
            called = await ways(people, "ash").wait(lambda: said.append("up"))
            caller, taking = await calls, Taking()
            called.set_protocol(taking)
            called.resume_reading()
            caller.write(b"hello")
            await until(lambda: taking.got >= 5)
            assert said == ["up"] and taking.got == 5  # not a byte that the relay said
            caller.abort()
            called.abort()

    asyncio.run(main())


def test_whom_it_serves_may_change_while_it_runs(people, tmp_path):
    """Ash has a new key: the old one is hung up on and turned away, the new one let in, and birch stays."""
    old, new = people["ash"], Identity.create(tmp_path / "new", "ash", BY_RELAY)

    async def main():
        async with relaying(people) as board, serving(people), serving({**people, "ash": new}) as (server, frame):
            await until(lambda: (RUN, old.card.digest) in board._waiting and "relay" in server.relay)
            stays = await ways(people, "birch")._talk()
            await until(lambda: board.here == 2)
            board.serve([[one.card for one in (new, people["birch"], people["cedar"])]])
            await until(lambda: server.relay == "up")
            assert not stays.channel.closed and (RUN, old.card.digest) not in board._waiting
            link = link_to({**people, "ash": new}, "birch", "ash")
            assert await link.fetch(1, sound({**people, "ash": new})) == frame
            await link.close()
            with pytest.raises(ConnectionError, match="the relay"):
                await (await ways(people, "ash")._talk()).word(Word.PONG)
            link = link_to(people, "birch", "ash")
            await unanswered(link.fetch(1, sound(people)), link, "no federation has both")
            await link.close()
            stays.channel.close()

    asyncio.run(main())


def test_a_member_that_is_no_neighbour_gets_through_the_relay_and_no_answer(people):
    async def main():
        async with relaying(people), serving(people) as (server, _):
            link = link_to(people, "cedar", "ash")
            await unanswered(link.fetch(1, sound(people)), link, *HUNG_UP)
            assert server.refused
            await link.close()

    asyncio.run(main())


def test_who_does_not_wait_cannot_be_called(people):
    async def main():
        async with relaying(people):
            with pytest.raises(ConnectionError, match="the relay says: it is not there"):
                await ways(people, "birch")._call(people["ash"].card)

    asyncio.run(main())


def test_one_member_has_so_many_connections(people):
    """Beyond its share it is refused; the other members are served all the same."""

    async def main():
        async with relaying(people) as board, serving(people) as (_, frame):
            share = relay.SPARE + relay.EACH * 3
            taken = [await ways(people, "cedar")._talk() for _ in range(share)]
            await until(lambda: len(board._lines[people["cedar"].card.digest]) == share)
            one_more = await ways(people, "cedar")._talk()
            with pytest.raises(ConnectionError, match="too many connections of this member"):
                await one_more.word(Word.JOIN)
            link = link_to(people, "birch", "ash")
            assert await link.fetch(1, sound(people)) == frame and board.refused == 1
            await link.close()
            for talk in taken:
                talk.channel.close()

        async with relaying(people, limits=Limits(connections=2)) as board:
            taken = [await ways(people, "cedar")._talk() for _ in range(2)]
            await until(lambda: board.here == 1 and len(board._lines[people["cedar"].card.digest]) == 2)
            with pytest.raises(ConnectionError, match=r"the relay says: too many connections$"):
                await (await ways(people, "birch")._talk()).word(Word.JOIN)
            for talk in taken:
                talk.channel.close()

    asyncio.run(main())


def test_limits_are_checked_before_anything_listens(people):
    with pytest.raises(ConfideError, match="3 members: this relay takes at most 2"):
        Relay(people["relay"], [[people[n].card for n in ("ash", "birch", "cedar")]], Limits(members=2))
    with pytest.raises(ConfideError, match="no federation"):
        Relay(people["relay"], [], Limits())
    for field in ("members", "connections", "bytes_per_second"):
        with pytest.raises(ConfideError, match="must be 1 or more"):
            Limits(**{field: 0})


async def pair(people, board):
    """Both ends of a call from birch to ash, as the relay joined them."""
    waits = asyncio.ensure_future(ways(people, "ash").wait(lambda: None))
    await until(lambda: board._waiting)
    return await ways(people, "birch")._call(people["ash"].card), await waits


class Taking(asyncio.Protocol):
    got = 0

    def data_received(self, data):
        self.got += len(data)


def test_who_does_not_read_holds_up_who_sends_to_it_and_no_memory(people):
    """32 MiB for one that reads nothing: the relay takes what the kernels hold, and no more; then all of it arrives."""
    size = 1 << 25

    async def main():
        async with relaying(people, limits=Limits(bytes_per_second=1 << 40)) as board:
            caller, called = await pair(people, board)
            caller.write(bytes(size))
            held = [line for lines in board._lines.values() for line in lines]
            await until(lambda: any("full" in line._reasons for line in held))  # it takes no more from the caller
            assert board.bytes < size // 2 and all(line.transport.get_write_buffer_size() < 1 << 20 for line in held)
            taking = Taking()
            called.set_protocol(taking)
            called.resume_reading()
            await until(lambda: taking.got == size)
            caller.abort()
            called.abort()

    asyncio.run(main())


def test_who_sends_too_much_is_read_more_slowly_and_loses_nothing(people):
    async def main():
        async with relaying(people, limits=Limits(bytes_per_second=250_000)) as board:
            caller, called = await pair(people, board)
            taking = Taking()
            called.set_protocol(taking)
            called.resume_reading()
            caller.write(bytes(1_000_000))
            line = next(line for line in board._lines[people["birch"].card.digest])
            await until(lambda: "bytes" in line._reasons)
            assert taking.got < 1_000_000
            await until(lambda: taking.got == 1_000_000)
            caller.abort()
            called.abort()

    asyncio.run(main())


def test_silent_connections_are_swept_and_junk_is_refused(people, monkeypatch):
    monkeypatch.setattr(relay, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(relay, "SWEEP_SECONDS", 0.1)

    async def main():
        async with relaying(people) as board:
            silent = await ways(people, "ash")._talk()
            with pytest.raises(ConnectionError, match="the relay hung up"):
                await asyncio.wait_for(silent.word(Word.JOIN), 120)
            for kind, body in ((Word.WAIT, b"short"), (Word.CALL, bytes(63)), (Word.READY, b""), (77, b"")):
                talk = await ways(people, "ash")._talk()
                talk.channel.send(kind, body)
                with pytest.raises(ConnectionError, match="not what a relay is told here"):
                    await asyncio.wait_for(talk.word(Word.JOIN), 120)
            await until(lambda: board.here == 0)

    asyncio.run(main())


def test_what_comes_with_the_end_of_a_handshake_is_not_lost(people):
    """A question in the same packet as the caller's last words of the handshake."""

    async def main():
        async with relaying(people) as board, serving(people) as (_, frame):
            for _ in range(20):
                link = link_to(people, "birch", "ash")
                assert await asyncio.wait_for(link.fetch(1, sound(people)), 120) == frame
                await link.close()
            assert board.joined == 20
        early = Channel(100, lambda channel, kind, body: heard.append((kind, body)), lambda _: None, lambda _: None)
        heard = []
        early.data_received(b"\x03\x00\x00\x00\x00")
        assert heard == []
        early.close()  # and one that ends before it began

    asyncio.run(main())
