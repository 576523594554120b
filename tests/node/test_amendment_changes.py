"""What amendments may change: rounds and their cost, members after patience, keys and addresses."""

import json
import ssl
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import brentq
from test_agreement import CDP, STAY, change, signed, text
from test_agreement import village as village
from village import NAMES

from confide.errors import ConfideError
from confide.files import toml
from confide.network.channel import context
from confide.network.identity import AMENDMENT_LABEL, Card, Identity, load_card
from confide.node import agreement, office
from confide.node import amendment as amendments
from confide.node import federation as federations
from confide.node.agreement import Papers
from confide.node.amendment import Amendment, amended
from confide.node.codes import Untrusted
from confide.node.keys import Keys, new_key

# --- added rounds, and what they cost ---------------------------------------------------------------------------------


def gaussian_epsilon(mu, delta):
    """Of a Gaussian release of this μ, by the curve that defines it (Dong, Roth and Su 2022, corollary 2.13)."""
    phi = scipy.stats.norm.cdf
    return brentq(lambda e: phi(-e / mu + mu / 2) - np.exp(e) * phi(-e / mu - mu / 2) - delta, 0, 500)


def test_added_rounds_come_with_their_cost(village):
    """T rounds of equal noise are one of √T times the μ; secure noise charges a little more, never less."""
    flat = federations.from_document({**village.document, "algorithm": {**CDP, "noise_decay": 1.0, "noise": 0.2}})
    one = 2 * 0.5 / min(flat.sizes.values()) / 0.2  # two clipped gradients of 0.5, each 1/M of the mean; noise 0.2
    assert office.compose(flat, [], [], {}, [], 13, None).epsilon is None  # within the cap: it stays
    dear = office.compose(flat, [], [], {}, [], 120, None)
    exact = gaussian_epsilon(one * 120**0.5, 1e-5)
    assert exact > 20.0 and exact <= dear.epsilon <= exact * 1.01
    now = amended(flat, dear)
    assert (now.algorithm.rounds, now.epsilon) == (120, dear.epsilon)
    with pytest.raises(ConfideError, match="more than the cap"):
        amended(flat, replace(dear, epsilon=0.99 * exact))


# --- patience ---------------------------------------------------------------------------------------------------------


def test_a_member_is_left_out_after_patience_or_by_its_own_word(village):
    home = village.folder / "ash"
    papers, keys = office.papers_and_keys(village.file, home)
    office.sign(papers, keys, village.file)
    leave = change(village.federation, without=("cedar",))
    draft = papers.draft(leave)
    moved = papers.path.stat().st_mtime
    with pytest.raises(ConfideError, match="the federation's patience is 86400 s, unless cedar signs that it leaves"):
        office.check_patience(home, draft, now=moved + 86399)
    office.check_patience(home, draft, now=moved + 86401)
    folder = village.run_folder("ash")
    folder.mkdir(parents=True)
    (folder / "journal").touch()  # a round came
    with pytest.raises(ConfideError, match="patience"):
        office.check_patience(home, draft)
    cedar, its_keys = office.papers_and_keys(village.file, village.folder / "cedar")
    office.check_patience(village.folder / "cedar", cedar.draft(leave))  # its own matter
    office.sign_amendment(cedar, its_keys, cedar.draft(leave))
    papers.take(cedar.pack())
    office.check_patience(home, papers.draft(leave))
    assert set(papers.draft(leave).unsigned) == set(STAY)  # its word is not needed, and is not enough


# --- keys and addresses -----------------------------------------------------------------------------------------------


def test_a_new_key_signs_and_the_old_one_has_no_part_in_it(village):
    home = village.folder / "elm"
    path = new_key(home)
    keys, fresh = Keys(home), load_card(path)
    assert fresh.digest != village.identities["elm"].card.digest and fresh.digest in keys and len(keys) == 2
    replaced = change(village.federation, cards=(fresh,))
    papers = signed(Papers(village.federation), village.identities, replaced, [n for n in NAMES if n != "elm"])
    with pytest.raises(ConfideError, match="the key of elm that is here has no part in it"):
        papers.sign_amendment(village.identities["elm"], replaced)
    papers.sign_amendment(keys[fresh.digest], replaced)
    now = papers.current
    assert now.cards["elm"] == fresh and now.aliases[fresh.digest] == village.identities["elm"].card.digest
    assert keys.of(now, village.file).card == fresh
    with pytest.raises(ConfideError, match="its key was in use before"):  # what was revoked stays so
        amended(now, change(now, cards=(village.identities["elm"].card,)))
    with pytest.raises(ConfideError, match="'elm' did not make"):  # the thief signs the next amendment
        stolen = change(now, epsilon=21.0)
        papers.take(text(papers, amendments=[{"text": stolen.document(), "signatures": {
            "elm": village.identities["elm"].sign(stolen.hash, AMENDMENT_LABEL).hex()}}]))  # fmt: skip


def unreadable(identity):
    """The same key in a certificate whose parts are well formed, and which OpenSSL does not read all the same."""
    der = identity.card.certificate
    bad = der.replace(bytes.fromhex("06035504030c"), bytes.fromhex("060355040300"), 1)  # the issuer's name is no text
    assert bad != der
    return replace(identity, card=replace(identity.card, certificate=bad))


def test_a_card_with_which_no_node_would_start_is_refused(village, tmp_path):
    """Once in force it would have ended the nodes of all neighbours, for good."""
    bad = unreadable(Identity.make("elm", village.identities["elm"].card.address))
    with pytest.raises(ssl.SSLError):
        context(village.identities["ash"], [bad.card], server=False)
    one = change(village.federation, cards=(bad.card,))
    for papers in (Papers(village.federation), Papers.of(tmp_path / "ash", village.federation)):
        with pytest.raises(ConfideError, match="card of 'elm': its certificate is damaged"):
            papers.draft(one)
        with pytest.raises(ConfideError, match="card of 'elm': its certificate is damaged"):
            papers.take(text(papers, amendments=[{"text": one.document(), "signatures": {
                "elm": bad.sign(one.hash, AMENDMENT_LABEL).hex()}}]))  # fmt: skip
    (tmp_path / "card.toml").write_text(toml.dumps(bad.card.to_json()))
    with pytest.raises(ConfideError, match=r"card.toml: card of 'elm': its certificate is damaged"):
        load_card(tmp_path / "card.toml")


def test_a_new_key_is_all_that_changes_among_the_members(village):
    """Or one member could make keys for all others, or for the last of those whom it leaves, and sign for them."""
    made = {name: Identity.make(name, card.address) for name, card in village.federation.cards.items()}
    for what in (
        {"cards": tuple(made[name].card for name in NAMES if name != "elm")},
        {"cards": (made["ash"].card,), "without": ("birch", "cedar", "doum")},
    ):
        alone = change(village.federation, **what)
        with pytest.raises(ConfideError, match="a new key must be all that changes among the members"):
            amended(village.federation, alone)
        signers = {**made, "elm": village.identities["elm"]}
        told = text(Papers(village.federation), amendments=[{"text": alone.document(), "signatures": {
            name: signers[name].sign(alone.hash, AMENDMENT_LABEL).hex() for name in NAMES}}])  # fmt: skip
        papers = Papers(village.federation)
        with pytest.raises(ConfideError):
            papers.take(told)
        assert papers.current is village.federation and not papers.pending


def test_a_key_that_someone_made_for_a_member_does_not_keep_it_from_signing(village):
    """Who is to leave proposes one for ash, of its own making: ash still signs that it leaves, and that counts."""
    made = Identity.make("ash", village.federation.cards["ash"].address)
    bogus, leave = change(village.federation, cards=(made.card,)), change(village.federation, without=("elm",))
    papers = Papers(village.federation)
    papers.take(text(papers, amendments=[{"text": bogus.document(), "signatures": {
        "ash": made.sign(bogus.hash, AMENDMENT_LABEL).hex()}}]))  # fmt: skip
    assert [draft.change.hash for draft in papers.pending.values()] == [bogus.hash]
    signed(papers, village.identities, leave, [name for name in NAMES if name != "elm"])
    assert papers.current.head == leave.hash
    with pytest.raises(ConfideError, match="ash has signed"):  # of its own key it is held to its word
        other = Papers(village.federation)
        signed(other, village.identities, leave, ["ash"])
        signed(other, village.identities, change(village.federation, without=("doum",)), ["ash"])


def test_that_members_parted_ways_is_kept(village, tmp_path):
    """A node that starts again does not go on before someone shows it both amendments again."""
    two = [change(village.federation, epsilon=epsilon) for epsilon in (21.0, 22.0)]
    told = [signed(Papers(village.federation), village.identities, one, NAMES).pack() for one in two]
    papers = Papers.of(tmp_path, village.federation)
    assert papers.take(told[0])
    with pytest.raises(Untrusted, match="have parted ways") as error:
        papers.take(told[1])
    with pytest.raises(Untrusted, match="have parted ways") as again:
        Papers.of(tmp_path, village.federation)
    assert str(again.value) == str(error.value)
    (kept,) = (tmp_path / "agreements").glob("*.divided")  # with what proves it to anyone who has the file
    for one in json.loads(kept.read_text().splitlines()[1])["amendments"]:
        assert len(one["signatures"]) == 5
        assert Papers(village.federation).take(text(papers, amendments=[one]))


def test_a_few_members_do_not_shut_out_all_others(village):
    """Nor do they end a run that was amended, as if all had signed something else in the place of that amendment."""
    few = change(village.federation, without=("ash", "birch", "cedar"))
    both = {name: village.identities[name].sign(few.hash, AMENDMENT_LABEL).hex() for name in ("doum", "elm")}
    told = text(Papers(village.federation), amendments=[{"text": few.document(), "signatures": both}])
    papers = Papers(village.federation)
    for _ in range(2):
        with pytest.raises(ConfideError, match="2 of 5 would go on: must be more than half") as error:
            papers.take(told)
        assert not isinstance(error.value, Untrusted) and len(papers.current.parties) == 5
        signed(papers, village.identities, change(papers.current, epsilon=21.0 + len(papers.chain)), NAMES)


def test_only_those_who_signed_both_are_said_to_have_done_so(village):
    """Three leave out the two others, after all have signed something else."""
    papers = signed(Papers(village.federation), village.identities, change(village.federation, epsilon=21.0), NAMES)
    three = change(village.federation, without=("ash", "birch"))
    told = signed(Papers(village.federation), village.identities, three, ["cedar", "doum", "elm"]).pack()
    with pytest.raises(Untrusted, match="the same, and cedar, doum, elm signed both: the members have parted ways"):
        papers.take(told)


def test_an_address_changes_with_everyones_word(village):
    moved = office.compose(village.federation, [], [], {"elm": "elm.example.org:7000"}, [], None, None)
    now = amended(village.federation, moved)
    assert now.cards["elm"].address == "elm.example.org:7000"
    assert now.cards["elm"].digest == village.federation.cards["elm"].digest
    assert Keys(village.folder / "elm").of(now, village.file).card.address == "elm.example.org:7000"
    with pytest.raises(ConfideError, match="must differ from the one in force"):
        amended(now, change(now, cards=(now.cards["elm"],)))


def test_each_signature_is_verified_once_and_a_file_that_did_not_change_is_not_read(village, tmp_path, monkeypatch):
    """In a federation of hundreds they come one by one, and each used to cost a look at all the others."""
    verified, real = [], Card.verify
    monkeypatch.setattr(Card, "verify", lambda card, *args: verified.append(card.name) or real(card, *args))
    elsewhere, mine = Papers(village.federation), Papers.of(tmp_path / "home", village.federation)
    other = Papers.of(tmp_path / "home", village.federation)  # another process of the same home
    for name in NAMES:
        elsewhere.sign(village.identities[name])
        assert mine.take(elsewhere.pack()) and not mine.take(elsewhere.pack())
    assert verified == [*NAMES] and not mine.unsigned()
    verified.clear()
    assert other.refresh() and not other.unsigned() and sorted(verified) == sorted(NAMES)
    monkeypatch.setattr(Papers, "take", lambda *_: pytest.fail("read again"))
    assert not mine.refresh() and not other.refresh()
    monkeypatch.undo()
    now = mine.draft(Amendment(village.federation.digest, village.federation.head, 1, without=("cedar",)))
    other.sign_amendment(village.identities["ash"], now.change)
    assert mine.refresh() and mine.pending[now.change.hash].signatures.keys() == {"ash"} and mine.pack() == other.pack()


def test_a_member_that_invents_keys_of_another_fills_nobodys_papers(village):
    """An amendment that a new key alone has signed needs no member at all: of each member's few are passed on."""

    def invented(name):
        fresh = Identity.make(name, village.identities[name].card.address)
        one = change(village.federation, cards=(fresh.card,))
        return fresh, one, {"text": one.document(), "signatures": {name: fresh.sign(one.hash, AMENDMENT_LABEL).hex()}}

    papers = Papers(village.federation)
    for _ in range(20):
        papers.take(text(papers, amendments=[invented("elm")[2]]))
    assert len(papers.pending) == agreement.UNVOUCHED
    papers.take(text(papers, amendments=[invented("doum")[2]]))  # the others' are not crowded out by elm's
    assert len(papers.pending) == agreement.UNVOUCHED + 1
    fresh, one, alone = invented("elm")  # the true one, which came too late
    papers.take(text(papers, amendments=[alone]))
    assert one.hash not in papers.pending
    both = {name: who.sign(one.hash, AMENDMENT_LABEL).hex() for name, who in
            (("elm", fresh), ("ash", village.identities["ash"]))}  # fmt: skip
    papers.take(text(papers, amendments=[{**alone, "signatures": both}]))  # a member vouches for it
    assert papers.pending[one.hash].signatures.keys() == {"ash", "elm"}
    signed(papers, {**village.identities, "elm": fresh}, one, ["birch", "cedar", "doum"])
    assert papers.current.cards["elm"] == fresh.card and papers.pending == {}


def test_an_owner_signs_one_amendment_of_a_state_with_whichever_of_its_keys(village, tmp_path):
    """Of two members who both change their keys, and sign each other's with the old one, both would be in force."""
    papers, keys = office.papers_and_keys(village.file, tmp_path / "elm")
    card = load_card(new_key(tmp_path / "elm"))
    office.sign_amendment(papers, keys, papers.draft(change(village.federation, cards=(card,))))
    other = papers.draft(change(village.federation, cards=(Identity.make("ash", "127.0.0.1:1").card,)))
    with pytest.raises(ConfideError, match=r"elm has signed .*, which changes the same"):
        office.sign_amendment(papers, keys, other)
    assert other.signatures == {} and len(papers.pending) == 1


def long_ones(village, names):
    """Of each of these an amendment of a new key with an address as long as can be, signed by that key."""
    for name in names:
        fresh = Identity.make(name, "a" * 30_000 + ":1")
        one = change(village.federation, cards=(fresh.card,))
        yield {"text": one.document(), "signatures": {name: fresh.sign(one.hash, AMENDMENT_LABEL).hex()}}


def test_no_member_makes_papers_too_long_to_be_read_again(village, monkeypatch):
    """Of two that were taken one by one, both no longer than papers may be, a node could start no more."""
    monkeypatch.setattr(agreement, "LONGEST_PAPERS", 100_000 + agreement.OWN)
    ash = Papers.of(village.folder / "ash", village.federation)
    ash.sign(village.identities["ash"])
    told = [text(Papers(village.federation), amendments=[one]) for one in long_ones(village, NAMES[1:])]
    for data in told[:3]:
        assert ash.take(data) and len(data) < 100_000
    for _ in range(2):
        with pytest.raises(ConfideError, match="amendment 1: no room for it beside 3 that wait"):
            ash.take(told[3])
        assert len(ash.pack()) <= 100_000
        ash = Papers.of(village.folder / "ash", village.federation)
    leave = change(village.federation, without=("elm",))  # which all others sign, has room
    monkeypatch.setattr(agreement, "WAITING", 0)
    ash.take(signed(Papers(village.federation), village.identities, leave, [n for n in NAMES if n != "elm"]).pack())
    assert ash.current.head == leave.hash and Papers.of(village.folder / "ash", village.federation).chain


def test_an_amendment_has_a_length_that_papers_have_room_for(village):
    longest = long_ones(village, ["elm"])
    assert Papers(village.federation).take(text(Papers(village.federation), amendments=[*longest]))
    card = replace(village.federation.cards["elm"], address="a" * amendments.LONGEST_AMENDMENT + ":1")
    with pytest.raises(ConfideError, match=r"amendment of 33\d\d\d bytes: must be at most 32768"):
        Papers(village.federation).draft(change(village.federation, cards=(card,)))
    most = agreement.MOST_UNVOUCHED * amendments.LONGEST_AMENDMENT
    assert most <= agreement.WAITING / 2  # the rest is for what members sign


def test_new_keys_of_many_members_do_not_fill_papers(village, monkeypatch):
    monkeypatch.setattr(agreement, "MOST_UNVOUCHED", 2)
    papers = Papers(village.federation)
    for one in long_ones(village, ["elm", "doum", "cedar"]):
        papers.take(text(papers, amendments=[one]))
    assert len(papers.pending) == 2


def test_nobody_signs_what_would_leave_no_room_for_others(village, monkeypatch):
    """The length that papers are said to get is the one that they have in the end, to a few bytes."""
    papers = Papers(village.federation)
    for name in NAMES:
        papers.sign(village.identities[name])
    size = len(signed(papers, village.identities, change(village.federation, epsilon=21.0), NAMES).pack())
    second = change(papers.current, epsilon=22.0)
    monkeypatch.setattr(agreement, "LONGEST_PAPERS", agreement.WAITING + size + 100)
    with pytest.raises(ConfideError, match=r"papers of .* bytes, once all have signed it.*begin another run") as error:
        papers.sign_amendment(village.identities["ash"], second)
    assert papers.pending == {}
    monkeypatch.undo()
    said, size = int(str(error.value).split()[4]), len(signed(papers, village.identities, second, NAMES).pack())
    assert abs(said - size) < 50
