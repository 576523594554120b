"""What members sign: the file and its amendments. Nobody can sign for another, twice, or bring back what is over."""

import errno
import json
from dataclasses import replace

import pytest
from village import NAMES, Village

import confide
from confide.errors import ConfideError
from confide.network.identity import AGREEMENT_LABEL, AMENDMENT_LABEL, LABEL, Identity
from confide.node import agreement
from confide.node import amendment as amendments
from confide.node import federation as federations
from confide.node.agreement import Papers
from confide.node.amendment import Amendment, amended
from confide.node.codes import Untrusted

CDP = {"name": "CDPADMM", "rounds": 12, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}
STAY = [name for name in NAMES if name != "cedar"]


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))


def change(state, number=None, **what):
    return Amendment(state.digest, state.head, number or len(state.history), **what)


def signed(papers, identities, change, names):
    for name in names:
        papers.sign_amendment(identities[name], change)
    return papers


def text(papers, **changes):
    """Papers as they travel, altered."""
    return json.dumps({**json.loads(papers.pack()), **changes}).encode()


# --- the file ---------------------------------------------------------------------------------------------------------


def test_everyone_signs_and_signatures_reach_those_who_are_no_neighbours(village):
    papers = {name: Papers(village.federation) for name in NAMES}
    for name in NAMES:
        papers[name].sign(village.identities[name])
        assert papers[name].signed(name) and len(papers[name].unsigned()) == 4
    for _ in range(2):  # the ring is two links wide
        now = {name: one.pack() for name, one in papers.items()}
        for name in NAMES:
            for near in village.federation.neighbours(name):
                papers[name].take(now[near])
    assert all(one.unsigned() == [] for one in papers.values())
    assert len({one.pack() for one in papers.values()}) == 1  # who holds the same says the same
    for name, one in papers["ash"].signatures.items():
        assert village.identities[name].card.verify(one, village.federation.digest, AGREEMENT_LABEL)


def test_a_signature_of_another_file_or_another_kind_is_not_taken(village, tmp_path):
    other = federations.from_document({**village.document, "name": "another"})
    ash, birch = village.identities["ash"], village.identities["birch"]
    digest = village.federation.digest
    for one, who in (
        (ash.sign(other.digest, AGREEMENT_LABEL), "ash"),  # of another file
        (ash.sign(digest, LABEL), "ash"),  # as a message
        (ash.sign(digest, AMENDMENT_LABEL), "ash"),  # as an amendment
        (birch.sign(digest, AGREEMENT_LABEL), "ash"),  # by another
        (birch.sign(digest, AGREEMENT_LABEL), "oak"),  # by nobody
    ):
        papers = Papers(village.federation)
        with pytest.raises(ConfideError, match=f"a signature under the file that '{who}' did not make"):
            papers.take(json.dumps({"signatures": {who: one.hex()}, "amendments": []}).encode())
        assert papers.signatures == {}
    stranger = Identity.create(tmp_path / "stranger", "ash", "127.0.0.1:1")
    with pytest.raises(ConfideError, match="ash with the key that is here is no member"):
        Papers(village.federation).sign(stranger)


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b'{"signatures": {}}', b'{"signatures": {"ash": 1}, "amendments": []}', b"[" * 100_000,
    b'{"signatures": {"ash": "00"}, "amendments": []}', b'{"signatures": {}, "amendments": {}}', b"\xff",
    b'{"signatures": {}, "amendments": [{"text": {}, "signatures": {}}]}', b'{"signatures": {}, "amendments": [1]}',
])  # fmt: skip
def test_papers_that_are_none_are_refused_in_one_line(village, data):
    papers = Papers(village.federation)
    with pytest.raises(ConfideError, match=r"papers|amendment") as error:
        papers.take(data)
    assert "\n" not in str(error.value) and papers.signatures == {}


@pytest.mark.parametrize("what, said", [
    ({"without": ["\ud800"]}, r"text.without: '\\ud800': must be a text in Unicode"),
    ({"\ud800": 1}, r"text: '\\ud800': must be a text in Unicode"),
    ({"epsilon": 10**400}, r"epsilon: a whole number beyond"),
    ({"number": 10**400}, r"number: a whole number beyond"),
    ({"number": 1.0}, "number=1.0: must be a whole number"),
    ({"rounds": 13.0}, "rounds=13.0: must be a whole number"),
    ({"members": [{"name": "elm", "address": "a:1", "fingerprint": "", "certificate": "é"}]}, "certificate is damaged"),
    ({"members": [{"name": "elm", "address": "a:" + "1" * 5000, "fingerprint": "", "certificate": ""}]}, "address"),
])  # fmt: skip
def test_values_that_nothing_could_hold_are_refused_in_one_line(village, what, said):
    """Whoever signed them, or nobody."""
    document = {**change(village.federation).document(), **what}
    papers = Papers(village.federation)
    before = papers.pack()
    with pytest.raises(ConfideError, match=said):
        papers.take(text(papers, amendments=[{"text": document, "signatures": {"birch": "00" * 64}}]))
    assert papers.pack() == before


def test_papers_are_kept_in_the_home_and_two_processes_lose_nothing(village):
    home = village.folder / "ash"
    first, second = (Papers.of(home, village.federation) for _ in range(2))
    first.sign(village.identities["ash"])
    second.take(text(Papers(village.federation), signatures={
        "elm": village.identities["elm"].sign(village.federation.digest, AGREEMENT_LABEL).hex()}))  # fmt: skip
    assert set(Papers.of(home, village.federation).signatures) == {"ash", "elm"}
    assert first.refresh() and not first.refresh() and first.signed("elm")
    first.path.write_bytes(first.path.read_bytes()[:-9])
    with pytest.raises(ConfideError, match=r"agreements/.*json: papers that are not JSON"):
        Papers.of(home, village.federation)


# --- amendments -------------------------------------------------------------------------------------------------------


def test_an_amendment_is_in_force_once_all_who_stay_have_signed(village):
    papers = Papers(village.federation)
    leave = change(village.federation, without=("cedar",))
    for name in STAY[:-1]:
        papers.sign_amendment(village.identities[name], leave)
        assert papers.current is village.federation
    assert papers.draft(leave).unsigned == ["elm"]
    papers.sign_amendment(village.identities["elm"], leave)
    now = papers.current
    assert now.parties == tuple(STAY) and now.digest == village.federation.digest and now.head == leave.hash
    assert "cedar" not in now.neighbours("birch") and now.before is village.federation
    assert papers.unsigned() == []  # who signed an amendment agreed to the file


def test_what_an_amendment_costs_is_found_once_and_for_nobody_s_never(village, monkeypatch):
    """It takes seconds where rounds and members are many, in which a node that is told of it would answer nobody."""
    told, work = Papers(village.federation), []
    signed(told, village.identities, change(village.federation, without=("cedar",)), ["ash"])
    monkeypatch.setattr(agreement, "amended", lambda *args: work.append(args) or amended(*args))
    papers = Papers.of(village.folder / "birch", village.federation)
    assert papers.take(told.pack()) and len(work) == 1  # and written to the home, which has papers of its own
    assert not papers.take(told.pack()) and not papers.refresh()
    papers.sign_amendment(village.identities["birch"], next(iter(papers.pending.values())).change)
    assert len(work) == 1
    other = change(village.federation, without=("doum",))
    assert not papers.take(text(papers, amendments=[{"text": other.document(), "signatures": {}}]))
    assert len(work) == 1
    oak = Identity.make("oak", "127.0.0.1:1")
    fresh = change(village.federation, cards=(oak.card,), epsilon=21.0)  # a member of its own making
    for what, who, one in (
        (other, "nobody", bytes(64)), (other, "elm", bytes(64)),
        (other, "elm", village.identities["birch"].sign(other.hash, AMENDMENT_LABEL)),
        (fresh, "oak", oak.sign(fresh.hash, AMENDMENT_LABEL)),
    ):  # fmt: skip
        bad = text(papers, amendments=[{"text": what.document(), "signatures": {who: one.hex()}}])
        papers.foresee(bad)
        with pytest.raises(ConfideError, match=f"a signature under amendment 1 that '{who}' did not make"):
            papers.take(bad)
    assert len(work) == 1


def test_who_signs_many_amendments_has_one_looked_at(village, monkeypatch):
    """A member can make as many as it likes; an honest one signs one of a state."""
    work = []
    monkeypatch.setattr(agreement, "amended", lambda *args: work.append(args) or amended(*args))
    many = [change(village.federation, epsilon=21.0 + k) for k in range(20)]
    birch = village.identities["birch"]
    told = json.dumps({"signatures": {}, "amendments": [
        {"text": one.document(), "signatures": {"birch": birch.sign(one.hash, AMENDMENT_LABEL).hex()}} for one in many
    ]}).encode()  # fmt: skip
    papers = Papers(village.federation)
    papers.foresee(told)
    assert len(work) == 1 and papers.pending == {}
    assert papers.take(told) and list(papers.pending) == [many[0].hash] and len(work) == 1
    others = [name for name in NAMES if name != "birch"]  # whose second signature might take the first one's place
    signed(papers, village.identities, many[0], others)  # in force: the others are too late
    assert not papers.take(told) and len(work) == 1


def test_no_more_is_foreseen_than_is_remembered(village, monkeypatch):
    """However long the chain of amendments that someone shows."""
    told = Papers(village.federation)
    for k in range(4):
        signed(told, village.identities, change(told.current, epsilon=21.0 + k), NAMES)
    work = []
    monkeypatch.setattr(agreement, "REMEMBERED", 2)
    monkeypatch.setattr(agreement, "amended", lambda *args: work.append(args) or amended(*args))
    papers = Papers(village.federation)
    papers.foresee(told.pack())
    assert len(work) == len(papers._found) == 2
    assert papers.take(told.pack()) and len(papers.chain) == 4


def test_what_is_genuine_counts_whatever_stands_beside_it(village):
    """Who is to leave hands on the amendment that says so, and a forged one after it."""
    leave = change(village.federation, without=("cedar",))
    told = json.loads(signed(Papers(village.federation), village.identities, leave, STAY).pack())
    forged = {"text": {**leave.document(), "changes": "11" * 32}, "signatures": {"elm": "00" * 64}}
    papers = Papers.of(village.folder / "ash", village.federation)
    with pytest.raises(ConfideError, match="of 1111111111111111, which is not known here"):
        papers.take(json.dumps({**told, "amendments": [*told["amendments"], forged]}).encode())
    assert papers.current.head == leave.hash
    assert Papers.of(village.folder / "ash", village.federation).current.head == leave.hash


def test_what_ends_the_run_does_so_whatever_stands_beside_it(village):
    one, other = (change(village.federation, epsilon=epsilon) for epsilon in (21.0, 22.0))
    first, second = (signed(Papers(village.federation), village.identities, c, NAMES) for c in (one, other))
    forged = {"text": {**one.document(), "changes": "11" * 32}, "signatures": {"elm": "00" * 64}}
    with pytest.raises(Untrusted, match="ash, birch, cedar, doum, elm signed both"):
        first.take(text(second, amendments=[*json.loads(second.pack())["amendments"], forged]))


def test_what_could_not_be_written_is_with_the_next_that_comes(village, monkeypatch):
    papers = Papers.of(village.folder / "ash", village.federation)
    leave = change(village.federation, without=("cedar",))
    told = signed(Papers(village.federation), village.identities, leave, STAY).pack()

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(agreement, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        papers.take(told)
    monkeypatch.undo()
    assert Papers.of(village.folder / "ash", village.federation).chain == []
    assert not papers.take(told)
    assert Papers.of(village.folder / "ash", village.federation).current.head == leave.hash


def test_an_amendment_that_one_of_them_has_not_signed_is_not_in_force(village):
    giver, taker = Papers(village.federation), Papers(village.federation)
    leave = change(village.federation, without=("cedar",))
    signed(giver, village.identities, leave, STAY[:-1])
    taker.take(giver.pack())
    taker.take(text(giver, amendments=[{"text": leave.document(), "signatures": {
        "cedar": village.identities["cedar"].sign(leave.hash, AMENDMENT_LABEL).hex()}}]))  # fmt: skip
    assert taker.current is village.federation and taker.draft(leave).unsigned == ["elm"]


def test_a_forged_amendment_is_refused(village):
    leave = change(village.federation, without=("cedar",))
    doum = village.identities["doum"]
    for label, what in ((AMENDMENT_LABEL, bytes(32)), (AGREEMENT_LABEL, leave.hash), (LABEL, leave.hash)):
        papers = Papers(village.federation)
        forged = {"text": leave.document(), "signatures": {"elm": doum.sign(leave.hash, AMENDMENT_LABEL).hex()}}
        other = {"text": leave.document(), "signatures": {"doum": doum.sign(what, label).hex()}}
        for one, who in ((forged, "elm"), (other, "doum")):
            with pytest.raises(ConfideError, match=f"a signature under amendment 1 that '{who}' did not make"):
                papers.take(text(papers, amendments=[one]))
        assert papers.pending == {} and papers.current is village.federation
    altered = {**leave.document(), "without": ["elm"]}  # signatures of another text
    papers = signed(Papers(village.federation), village.identities, leave, ["doum"])
    one = json.loads(papers.pack())["amendments"][0]
    with pytest.raises(ConfideError, match="'doum' did not make"):
        Papers(village.federation).take(text(papers, amendments=[{**one, "text": altered}]))


def test_an_older_amendment_brought_again_changes_nothing(village):
    papers = Papers(village.federation)
    signed(papers, village.identities, change(village.federation, epsilon=21.0), NAMES)
    old = papers.pack()
    signed(papers, village.identities, change(papers.current, epsilon=22.0), NAMES)
    head = papers.current.head
    assert not papers.take(old) and papers.current.head == head and papers.current.epsilon == 22.0
    unfinished = signed(Papers(village.federation), village.identities, change(village.federation, epsilon=30.0),
                        ["birch"])  # fmt: skip
    assert not papers.take(unfinished.pack()) and papers.current.head == head
    with pytest.raises(ConfideError, match="in force is"):  # and nobody can sign it any more
        papers.sign_amendment(village.identities["ash"], change(village.federation, epsilon=30.0))


def test_of_two_that_contradict_each_other_a_member_signs_one(village):
    papers = Papers(village.federation)
    one, other = (change(village.federation, without=(name,)) for name in ("cedar", "elm"))
    papers.sign_amendment(village.identities["ash"], one)
    with pytest.raises(ConfideError, match=r"ash has signed .* which changes the same"):
        papers.sign_amendment(village.identities["ash"], other)
    liar = signed(Papers(village.federation), village.identities, other, ["ash", "doum"])  # with its own program
    papers.take(liar.pack())
    assert set(papers.pending[other.hash].signatures) == {"doum"}  # what ash signed second does not count


def test_two_that_all_have_signed_end_the_run_with_both_as_evidence(village):
    one, other = (change(village.federation, epsilon=epsilon) for epsilon in (21.0, 22.0))
    first, second = (signed(Papers(village.federation), village.identities, c, NAMES) for c in (one, other))
    with pytest.raises(Untrusted, match="elm signed both: the members have parted ways"):
        first.take(second.pack())
    assert first.current.head == one.hash


def test_one_who_signs_two_cannot_keep_others_from_what_all_have_signed(village):
    one, other = (change(village.federation, epsilon=epsilon) for epsilon in (21.0, 22.0))
    papers = signed(Papers(village.federation), village.identities, one, ["doum"])
    papers.take(signed(Papers(village.federation), village.identities, other, NAMES).pack())
    assert papers.current.head == other.hash


@pytest.mark.parametrize("what, said", [
    ({}, "changes nothing"),
    ({"without": ("oak",)}, "without 'oak': must be one of the parties"),
    ({"without": ("ash", "ash")}, "a name is there twice"),
    ({"without": ("ash", "birch", "cedar", "doum")}, "needs at least 2 parties"),
    ({"without": ("ash", "birch", "cedar")}, "2 of 5 would go on: must be more than half"),
    ({"edges": (("ash", "birch"),)}, "link ash,birch: must join two of"),
    ({"without": ("ash",), "edges": (("ash", "cedar"),)}, "link ash,cedar: must join two of"),
    ({"rounds": 12}, "rounds=12: must be above 12"),
    ({"rounds": 121}, "rounds=121: must be at most 120: more are added by several amendments"),
    ({"rounds": 120, "epsilon": 2.0}, "more than the cap of ε=2: the amendment must raise the cap, by --epsilon"),
    ({"epsilon": 1e-3}, "more than the cap of ε=0.001"),
    ({"number": 7, "epsilon": 21.0}, "which amendment 1 would change"),
])  # fmt: skip
def test_what_an_amendment_may_not_say(village, what, said):
    with pytest.raises(ConfideError, match=said):
        Papers(village.federation).draft(change(village.federation, **what))


def test_an_amendment_of_another_federation_is_refused(village):
    other = federations.from_document({**village.document, "name": "another"})
    with pytest.raises(ConfideError, match="amendment of another federation"):
        amended(village.federation, change(other, epsilon=21.0))


def test_amendments_are_files_that_people_can_read(village, tmp_path):
    card = village.identities["elm"].card
    full = change(village.federation, without=("cedar",), edges=(("ash", "doum"),), rounds=13, epsilon=21.0,
                  cards=(replace(card, address="elm.example.org:7"),))  # fmt: skip
    (tmp_path / "amendment.toml").write_text(full.to_toml())
    again = amendments.load(tmp_path / "amendment.toml")
    assert again == full and again.hash == full.hash
    wrong = (("rounds", 0), ("rounds", "x"), ("epsilon", float("nan")), ("without", "ash"), ("edges", [["a"]]),
             ("changes", "00"), ("format", 2), ("number", 0), ("members", [{}]), ("oak", 1))  # fmt: skip
    for field, value in wrong:
        with pytest.raises(ConfideError, match=field if field != "members" else "amendment.members"):
            amendments.from_document({**full.document(), field: value})
    (tmp_path / "amendment.toml").write_text(full.to_toml().replace("epsilon = 21.0", "epsilon = 1" + "0" * 400))
    with pytest.raises(ConfideError, match=r"amendment.toml: amendment.epsilon: a whole number beyond"):
        amendments.load(tmp_path / "amendment.toml")


def test_a_network_that_falls_apart_is_named_with_links_that_would_mend_it(tmp_path):
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5), graph=confide.Graph.path(5))
    with pytest.raises(
        ConfideError, match=r"falls apart into ash, birch \| doum, elm: add links, such as --edge birch,doum"
    ):
        amended(village.federation, change(village.federation, without=("cedar",)))
    mended = amended(village.federation, change(village.federation, without=("cedar",), edges=(("birch", "doum"),)))
    assert set(mended.neighbours("birch")) == {"ash", "doum"}


def test_parameters_per_agent_lose_the_one_of_who_leaves(tmp_path):
    table = {**CDP, "noise": [3.0, 3.1, 3.2, 3.3, 3.4], "step_profile": [[1.0, 2.0, 3.0, 4.0, 5.0]] * 12}
    village = Village(tmp_path, table, seed=None, budget=(20.0, 1e-5))
    now = amended(village.federation, change(village.federation, without=("cedar",)))
    assert now.algorithm.noise == [3.0, 3.1, 3.3, 3.4] and now.algorithm.step_profile[0] == [1.0, 2.0, 4.0, 5.0]
