"""Papers past a member whose key or address changes: whoever hears of it first, the others hear of it from nodes alone.

Real connections; a node where an amendment is in force knows the new card alone.
"""

import asyncio
from dataclasses import replace

import pytest
from ports import free_ports
from test_agreement import CDP, change, signed
from village import NAMES, Village
from waiting import until

from confide.network.dialling import Ways
from confide.network.identity import Identity
from confide.network.peer import Server
from confide.node import courier
from confide.node.agreement import Papers
from confide.node.courier import Courier
from confide.node.keys import Keys, new_key


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))


class Node:
    """A member that serves and carries papers and does nothing else, as the daemon does between two amendments."""

    def __init__(self, papers, identity, keys=()):
        federation = papers.current
        near = federation.neighbours(identity.card.name)
        self.papers, self.identity = papers, identity
        self.server = Server(identity, near, federation.digest, 1, lambda t: b"")
        self.courier = Courier(papers, federation, identity, near, {one.card.digest: one for one in keys})

    async def __aenter__(self):
        await self.server.start(self.papers.current.cards[self.identity.card.name].address)
        self.courier.start(self.server, Ways(self.identity, self.papers.founding.digest), None)
        return self

    async def __aexit__(self, *_):
        await self.courier.stop()
        await self.server.stop(0.0)


def all_but(name):
    return [one for one in NAMES if one != name]


def papers_of(village, identities, one, names):
    """Papers in which these have signed an amendment."""
    papers = Papers(village.federation)
    for name in NAMES:
        papers.sign(village.identities[name])
    return signed(papers, identities, one, names)


def rekeyed(village, **new):
    """The amendment that gives elm another card, and with which key each member signs it."""
    fresh = Identity.make("elm", new.get("address", village.identities["elm"].card.address))
    one = change(village.federation, cards=(fresh.card,))
    return fresh, one, {**village.identities, "elm": fresh}


@pytest.mark.parametrize("moved", [False, True], ids=["key", "key and address"])
def test_who_lacks_a_signature_hears_it_from_the_one_whose_key_changed(village, moved):
    """Elm holds to its new key already; ash, which waits for cedar's signature, has no other neighbour that is up."""
    fresh, one, keys = rekeyed(village, **({"address": f"127.0.0.1:{free_ports(1)[0]}"} if moved else {}))
    ahead, behind = papers_of(village, keys, one, NAMES), papers_of(village, keys, one, all_but("cedar"))
    assert ahead.chain and not behind.chain

    async def body():
        async with Node(ahead, fresh), Node(behind, village.identities["ash"]) as ash:
            await until(lambda: behind.chain, 30)
            async with asyncio.timeout(5):
                await ash.courier.amended()

    asyncio.run(body())
    assert behind.current.cards["elm"] == fresh.card


def test_who_moved_is_heard_at_its_new_address(village):
    card = replace(village.identities["elm"].card, address=f"127.0.0.1:{free_ports(1)[0]}")
    one = change(village.federation, cards=(card,))
    moved = {**village.identities, "elm": replace(village.identities["elm"], card=card)}
    ahead, behind = papers_of(village, moved, one, NAMES), papers_of(village, moved, one, all_but("cedar"))

    async def body():
        async with Node(ahead, moved["elm"]), Node(behind, village.identities["ash"]):
            await until(lambda: behind.chain, 30)

    asyncio.run(body())


def test_who_waits_for_a_neighbour_asks_with_a_key_that_it_got_meanwhile(village):
    """Elm asks ash, which is down; then its owner signs with the new key, and ash comes back knowing that one alone."""
    fresh, one, keys = rekeyed(village)
    ahead, behind = papers_of(village, keys, one, NAMES), papers_of(village, keys, one, [])

    async def body():
        async with Node(behind, village.identities["elm"], [fresh]) as elm:
            await asyncio.sleep(0.5)  # the question is under way
            signed(behind, keys, one, all_but("cedar"))
            async with Node(ahead, village.identities["ash"]):
                await until(lambda: behind.chain, 30)
                async with asyncio.timeout(5 + courier.HAND_OVER_SECONDS):
                    await elm.courier.amended()

    asyncio.run(body())


def test_who_has_the_old_key_and_never_answers_does_not_keep_others_from_the_new_one(village, monkeypatch):
    """A thief sits at elm's address; elm has moved, with another key."""
    monkeypatch.setattr(courier, "TURN_SECONDS", 1.0)
    fresh, one, keys = rekeyed(village, address=f"127.0.0.1:{free_ports(1)[0]}")
    ahead, behind = papers_of(village, keys, one, NAMES), papers_of(village, keys, one, all_but("cedar"))

    async def body():
        thief = Server(village.identities["elm"], village.federation.neighbours("elm"), village.federation.digest, 1,
                       lambda t: b"")  # fmt: skip
        heard, thief._heard = [], lambda channel, kind, body: heard.append(kind)
        await thief.start(village.identities["elm"].card.address)
        async with Node(ahead, fresh), Node(behind, village.identities["ash"]):
            await until(lambda: behind.chain, 30)
        await thief.stop(0.0)
        assert heard

    asyncio.run(body())


def test_an_amendment_that_a_member_did_not_sign_makes_it_call_nobody(village):
    """A member invents a key of elm's at an address of its choice: ash does not call there."""
    called = []

    async def body():
        server = await asyncio.start_server(lambda *_: called.append(True), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        _, one, keys = rekeyed(village, address=f"127.0.0.1:{port}")
        ash = papers_of(village, keys, one, ["birch", "elm"])
        async with Node(ash, village.identities["ash"]) as node:
            assert node.courier._turns("elm") == [(node.identity, village.federation.cards["elm"])]
            await asyncio.sleep(1.5)
            server.close()
            assert not called
            signed(ash, keys, one, ["ash"])
            assert [card.address for _, card in node.courier._turns("elm")][1:] == [f"127.0.0.1:{port}"]

    asyncio.run(body())


def test_a_key_that_someone_made_for_a_member_makes_it_call_nobody(village):
    """It signs that elm has moved, in the name of ash, whose node asks elm at its address as before."""
    made = Identity.make("ash", village.identities["ash"].card.address)
    moved = replace(village.identities["elm"].card, address="127.0.0.1:1")
    one = change(village.federation, cards=(made.card, moved))
    ash = papers_of(village, {**village.identities, "ash": made}, one, ["ash"])
    assert ash.pending[one.hash].signatures.keys() == {"ash"}
    node = Node(ash, village.identities["ash"])
    assert node.courier._turns("elm") == [(node.identity, village.federation.cards["elm"])]


def test_an_amendment_that_a_member_did_not_sign_opens_none_of_its_keys(village, tmp_path):
    """Elm has made a key and shown its card to birch, which signs: elm's node has no passphrase of it, and goes on."""
    keys = Keys(tmp_path / "elm", lambda path: pytest.fail("asked for a passphrase"))
    fresh = Identity.load(new_key(tmp_path / "elm", passphrase=b"word").parent, lambda path: b"word")
    one = change(village.federation, cards=(fresh.card,))
    papers = papers_of(village, village.identities, one, ["birch"])
    node = Node(papers, village.identities["elm"])
    node.courier._keys = keys
    assert fresh.card.digest in keys and len(node.courier._turns("ash")) == 1
    keys._passphrase = lambda path: b"word"
    signed(papers, {"elm": fresh}, one, ["elm"])
    assert [who.card for who, _ in node.courier._turns("ash")][1:] == [fresh.card]
