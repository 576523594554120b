"""Papers of the own home: what its owner signed there is taken up, whatever others have shown before or beside it."""

import asyncio
import json

import pytest
from test_agreement import STAY, change, signed, text
from test_agreement import village as village
from test_courier import Line, started
from village import NAMES

from confide.errors import ConfideError
from confide.network.identity import AMENDMENT_LABEL, Card, Identity, load_card
from confide.node import agreement, office, packing
from confide.node import amendment as amendments
from confide.node.agreement import Papers
from confide.node.keys import new_key


def shown(one, **signers):
    """An amendment with these signatures, as papers hold it."""
    return {"text": one.document(), "signatures": {
        name: who.sign(one.hash, AMENDMENT_LABEL).hex() for name, who in signers.items()}}  # fmt: skip


def invented(village, name, **what):
    """An amendment that gives a member a key of someone else's making, which signs it."""
    fresh = Identity.make(name, village.identities[name].card.address)
    return shown(change(village.federation, cards=(fresh.card,), **what), **{name: fresh})


def rekeyed(village, name):
    """The owner of this home changes its key, beside its node; the amendment."""
    home = village.folder / name
    card = load_card(new_key(home))
    papers, keys = office.papers_and_keys(village.file, home)
    one = change(village.federation, cards=(card,))
    office.sign_amendment(papers, keys, papers.draft(one))
    return one


def test_what_someone_invents_ends_no_node_whose_owner_changes_its_key(village):
    """A new key of elm's under what may not be: elm's own, signed in its home, was not looked at: its node ended."""
    papers = Papers.of(village.folder / "elm", village.federation)
    with pytest.raises(ConfideError, match="more than the cap"):
        papers.take(text(papers, amendments=[invented(village, "elm", epsilon=0.001)]))
    one = rekeyed(village, "elm")
    assert papers.refresh() and list(papers.pending) == [one.hash]


def test_a_new_key_of_one_member_that_may_not_be_says_nothing_of_another(village):
    papers = Papers(village.federation)
    with pytest.raises(ConfideError, match="more than the cap"):
        papers.take(text(papers, amendments=[invented(village, "doum", epsilon=0.001)]))
    with pytest.raises(ConfideError, match="not looked at"):
        papers.take(text(papers, amendments=[invented(village, "doum", epsilon=0.001)]))
    assert papers.take(text(papers, amendments=[invented(village, "elm")]))


def test_keys_that_someone_invents_do_not_crowd_out_what_the_owner_signed(village):
    """The node wrote its papers without it: the owner's signature was gone."""
    papers = Papers.of(village.folder / "elm", village.federation)
    for _ in range(agreement.UNVOUCHED):
        papers.take(text(papers, amendments=[invented(village, "elm")]))
    one = rekeyed(village, "elm")
    assert papers.refresh() and one.hash in papers.pending
    papers.take(text(papers, amendments=[invented(village, "doum")]))
    assert one.hash in Papers.of(village.folder / "elm", village.federation).pending


def test_what_the_owner_signed_has_room_beside_all_that_waits(village, monkeypatch):
    """Papers that are as long as others can make them are read again with it."""
    monkeypatch.setattr(agreement, "WAITING", 0)
    for module in (agreement, packing):
        monkeypatch.setattr(module, "LONGEST_PAPERS", 130_000)
    papers = Papers.of(village.folder / "elm", village.federation)
    for k, name in enumerate(["ash", "birch", "cedar", "doum"]):
        fresh = Identity.make(name, "a" * (30_000 if k < 3 else 8_000) + ":1")
        one = shown(change(village.federation, cards=(fresh.card,)), **{name: fresh})
        try:
            papers.take(text(papers, amendments=[one]))
        except ConfideError as error:
            assert "no room for it" in str(error)
    card = load_card(new_key(village.folder / "elm", "a" * 30_000 + ":1"))
    mine, keys = office.papers_and_keys(village.file, village.folder / "elm")
    office.sign_amendment(mine, keys, mine.draft(change(village.federation, cards=(card,))))
    assert Papers.of(village.folder / "elm", village.federation).pending.keys() == mine.pending.keys()


def test_what_is_right_counts_though_something_wrong_comes_before_it(village):
    leave = change(village.federation, without=("cedar",))
    told = json.loads(signed(Papers(village.federation), village.identities, leave, STAY).pack())
    forged = {"text": {**leave.document(), "changes": "11" * 32}, "signatures": {"elm": "00" * 64}}
    papers = Papers.of(village.folder / "ash", village.federation)
    with pytest.raises(ConfideError, match="a signature under the file that 'oak' did not make"):
        papers.take(
            json.dumps({"signatures": {"oak": "00" * 64}, "amendments": [forged, *told["amendments"]]}).encode()
        )
    assert papers.current.head == leave.hash
    assert Papers.of(village.folder / "ash", village.federation).current.head == leave.hash


def test_it_is_foreseen_too_though_something_wrong_comes_before_it(village, monkeypatch):
    leave, work = change(village.federation, without=("cedar",)), []
    told = signed(Papers(village.federation), village.identities, leave, ["elm"])
    forged = {"text": {**leave.document(), "changes": "11" * 32}, "signatures": {"elm": "00" * 64}}
    data = text(told, amendments=[forged, *json.loads(told.pack())["amendments"]])
    real = agreement.amended
    monkeypatch.setattr(agreement, "amended", lambda *args: work.append(args) or real(*args))
    papers = Papers(village.federation)
    papers.foresee(data)
    assert len(work) == 1


@pytest.mark.parametrize("what", [{"rounds": 121}, {"cards": "long"}], ids=["rounds", "length"])
def test_what_was_in_force_before_there_were_limits_still_is(village, monkeypatch, what):
    """Limits are for what waits at the word of one member; what all have signed is in force, at home and elsewhere."""
    identities = village.identities
    if "cards" in what:
        elm = Identity.make("elm", "a" * amendments.LONGEST_AMENDMENT + ":1")
        identities, what = {**identities, "elm": elm}, {"cards": (elm.card,)}
    old = change(village.federation, **what)
    home, far = (Papers.of(village.folder / name, village.federation) for name in ("ash", "birch"))
    with monkeypatch.context() as before:
        before.setattr(amendments, "MOST_TIMES", 1000)
        before.setattr(amendments, "LONGEST_AMENDMENT", 1 << 20)
        signed(home, identities, old, NAMES[:-1])
        waits = home.pack()
        signed(home, identities, old, NAMES[-1:])
    again = Papers.of(village.folder / "ash", village.federation)
    assert again.current.head == old.hash
    with pytest.raises(ConfideError, match="must be at most"):
        far.take(waits)
    assert far.pending == {} and far.take(again.pack()) and far.current.head == old.hash
    assert Papers.of(village.folder / "birch", village.federation).current.head == old.hash


def test_a_node_goes_on_as_its_owner_changes_the_key(village, monkeypatch):
    """By its courier, while a neighbour shows it what may not be."""
    bogus = text(Papers(village.federation), amendments=[invented(village, "ash", epsilon=0.001)])
    line = Line(lambda: bogus)
    papers = Papers.of(village.folder / "ash", village.federation)

    async def body():
        made = started(village, monkeypatch, {"birch": line}, papers)
        async with asyncio.timeout(60):
            while not line.trouble:
                await asyncio.sleep(0.01)
            one = await asyncio.to_thread(rekeyed, village, "ash")
            while one.hash not in papers.pending and made._failure is None:
                await asyncio.sleep(0.01)
        assert made._failure is None
        await made.stop()

    asyncio.run(body())


def test_papers_full_of_what_one_member_signed_are_read_without_verifying_it(village, monkeypatch):
    """A neighbour that shows them again and again would keep a node busy; so would forged ones, or one many times."""
    elm, verified, real = village.identities["elm"], [], Card.verify
    many = [change(village.federation, epsilon=21.0 + k) for k in range(200)]
    papers = Papers(village.federation)
    told = text(papers, amendments=[shown(one, elm=elm) for one in many])
    forged = text(papers, amendments=[{**shown(one), "signatures": {"doum": "00" * 64}} for one in many])
    again = text(papers, amendments=[shown(many[0], elm=elm) for _ in many])
    monkeypatch.setattr(Card, "verify", lambda card, *args: verified.append(card.name) or real(card, *args))
    papers.foresee(told)
    assert papers.take(told) and verified == ["elm"] * 2 and list(papers.pending) == [many[0].hash]
    verified.clear()
    with pytest.raises(ConfideError, match="'doum' did not make"):
        papers.take(forged)
    assert len(verified) == agreement.MOST_WRONG
    with pytest.raises(ConfideError, match="one of 200 is there twice: must be there once"):
        papers.take(again)
    assert len(verified) == agreement.MOST_WRONG


def test_what_waits_at_home_and_may_not_be_any_more_keeps_no_node_from_starting(village, monkeypatch):
    """By rules that came with an upgrade; what is in force must still be."""
    waits, holds = change(village.federation, without=("elm",)), change(village.federation, epsilon=21.0)
    ash, birch = (Papers.of(village.folder / name, village.federation) for name in ("ash", "birch"))
    signed(ash, village.identities, waits, ["doum"])
    signed(birch, village.identities, holds, NAMES)

    def stricter(state, change):
        raise ConfideError("not any more")

    monkeypatch.setattr(agreement, "amended", stricter)
    assert Papers.of(village.folder / "ash", village.federation).pending == {}
    with pytest.raises(ConfideError, match="not any more"):
        Papers.of(village.folder / "birch", village.federation)
    with pytest.raises(ConfideError, match="not any more"):
        Papers(village.federation).take(ash.pack())
