"""Members of a private sum that lie with their own key: they are noticed, or spoil the sum for all alike."""

import hashlib
import json
import struct
from dataclasses import replace

import numpy as np
import nursery
import pytest
from circle import Circle
from village import NAMES, Village

import confide
from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import Phase, Place
from confide.network.identity import KEY_LABEL, Identity
from confide.network.pairing import OFFER, RunKey
from confide.node import alarms
from confide.node.codes import Code
from confide.node.summer import Disagreement

DESCENT = {"name": "JointDescent", "rounds": 4, "noise": 0.5, "first": "moments"}
ROOT, LEAF, OTHER = "ash", "birch", "elm"  # of a star
LOW_ORDER = [bytes(32), (1).to_bytes(32, "little"),
             bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")]  # fmt: skip


@pytest.fixture
def circle(tmp_path):
    made = Circle(tmp_path, DESCENT, graph=confide.Graph.star(5))
    yield made
    made.close()


def resigned(circle, name, frame, payload):
    """The same frame with other content, signed by its sender."""
    _, place = frames.source(frame)
    return frames.pack(circle.identities[name], circle.federation.digest, place, payload)


def claims(circle):
    return [one._claims.last for one in circle.members.values()]


@pytest.mark.parametrize("key", LOW_ORDER, ids=["zero", "one", "order 8"])
def test_a_key_of_low_order_is_refused_and_nothing_is_masked(circle, key):
    def lie(name, number, frame, to):
        if (name, frames.place_of(number)[0]) != (LEAF, Phase.KEYS_UP):
            return frame
        me, nonce = circle.identities[name], b"n" * 32
        said = circle.federation.digest + me.card.digest + key + nonce
        return resigned(circle, name, frame, key + nonce + me.sign(said, KEY_LABEL))

    circle.lie = lie
    circle.begin()
    with pytest.raises(Disagreement, match="is of low order: everyone would know its secrets"):
        circle.carry()
    assert set(claims(circle)) == {(0, 0)}


@pytest.mark.parametrize("phase, size", [(Phase.KEYS_UP, OFFER), (Phase.AGREED_UP, 64)], ids=["key", "signature"])
@pytest.mark.parametrize("graph", [confide.Graph.star(5), confide.Graph.path(5)], ids=["star", "path"])
def test_who_hands_up_what_is_none_is_accused_and_nobody_else(tmp_path, graph, phase, size):
    """Not who was heard last, nor an honest member that it would have passed through; and everyone can see it."""
    made, liar = Circle(tmp_path, DESCENT, graph=graph), "birch" if graph.size == graph.degrees.max() + 1 else "ash"

    def lie(name, number, frame, to):
        bad = (name, frames.place_of(number)[0]) == (liar, phase)
        return resigned(made, name, frame, bytes(size)) if bad else frame

    made.lie = lie
    made.begin()
    with pytest.raises(Disagreement, match=f"{liar} handed on what can't be") as error:
        made.carry()
    assert error.value.party == json.loads(error.value.evidence())["from"] == liar
    for name in NAMES:
        assert made.members[name].believe(error.value.alarm).party == liar
    assert set(claims(made)) == {(0, 0)}
    made.close()


BRANCHED = confide.Graph.from_edges([(2, 0), (2, 3), (2, 1), (1, 4)])  # birch above cedar, elm; cedar above ash, doum


@pytest.mark.parametrize("copier, owner, named", [
    ("doum", "ash", "ash-and-doum"), ("ash", "doum", "ash-and-doum"), ("elm", "ash", "ash-and-elm"),
    ("ash", "elm", "ash-and-elm"), ("ash", "cedar", "ash-and-cedar"), ("elm", "birch", "birch-and-elm"),
    ("cedar", "elm", "cedar-and-elm"), ("cedar", "doum", "cedar"),
])  # fmt: skip
def test_a_copied_key_is_refused_and_nothing_is_masked(tmp_path, copier, owner, named):
    """It would give its owner no secret; but two members whose masks are one are one member less.

    Both who show it are named, as nobody can tell which of them copied it; who hands on both, and nobody else that they
    pass through: cedar was accused of what doum had done.
    """
    made = Circle(tmp_path, DESCENT, graph=BRANCHED)

    def lie(name, number, frame, to):
        if (name, frames.place_of(number)[0]) != (copier, Phase.KEYS_UP):
            return frame
        me, key, nonce = made.identities[name], made.members[owner].sum.key.offer.key, b"n" * 32
        offer = key + nonce + me.sign(made.federation.digest + me.card.digest + key + nonce, KEY_LABEL)
        whole, tree = frames.payload_of(frame), made.members[name].tree
        at = OFFER * tree.below[NAMES.index(name)].index(NAMES.index(name))
        return resigned(made, name, frame, whole[:at] + offer + whole[at + OFFER :])

    made.lie = lie
    made.begin()
    with pytest.raises(Disagreement, match="offer the same key for this run: one of them copied it") as error:
        made.carry()
    assert error.value.party == json.loads(error.value.evidence())["from"] == named
    for name in NAMES:
        assert made.members[name].believe(error.value.alarm).party == named
    assert set(claims(made)) == {(0, 0)}
    made.close()


def test_who_shows_two_keys_is_found_out_before_round_1(circle):
    other = RunKey.create(circle.federation.digest)

    def lie(name, number, frame, to):
        if (frames.place_of(number)[0], to) != (Phase.KEYS_DOWN, OTHER):
            return frame
        whole, k = frames.payload_of(frame), NAMES.index(ROOT)
        mine = other.signed(circle.identities[ROOT])
        return resigned(circle, name, frame, whole[: OFFER * k] + mine + whole[OFFER * (k + 1) :])

    circle.lie = lie
    circle.begin()
    with pytest.raises(Disagreement, match="has heard something else") as error:
        circle.carry()
    assert set(claims(circle)) == {(0, 0)} and error.value.round == 0
    assert json.loads(error.value.evidence())["from"] == error.value.party


@pytest.mark.parametrize("lies_in", [1, 4])
def test_two_totals_are_noticed_with_the_next_frame(circle, lies_in):
    def lie(name, number, frame, to):
        if (frames.place_of(number), to) != ((Phase.SUM_DOWN, lies_in, 1), OTHER):
            return frame
        bad = (np.frombuffer(frames.payload_of(frame), "<u8") + np.uint64(1)).astype("<u8").tobytes()
        return resigned(circle, name, frame, bad)

    circle.lie = lie
    circle.begin()
    with pytest.raises(Disagreement, match="has heard something else") as error:
        circle.carry()
    assert error.value.round == lies_in + 1
    broken = next(one for one in circle.members.values() if one._broken)
    broken.end()
    assert not (broken.folder / "run-key").exists()


def test_what_is_not_signed_is_asked_for_again_and_changes_nothing(circle):
    """A bit of the frame flips on its way, or another member's frame comes: one line, and the same place is wanted."""
    circle.begin()
    circle.carry(until=lambda: circle.members[LEAF].sent == 2)
    one, name = circle.members[ROOT], LEAF
    number = one.wanted[name]
    good, before = circle.members[name].frame(number), dict(one.wanted)
    with circle.journal(ROOT) as journal:
        size = len(list(journal.frames()))
    for at in (0, 5, 7, 50, 73, 77, 90, 130, len(good) - 1):
        bad = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        with pytest.raises(ValueError, match="frame"):
            one.check(name, number, bad)
    for bad in (b"", good[:-1], good + b"\0", bytes(len(good))):
        with pytest.raises(ValueError, match="frame"):
            one.check(name, number, bad)
    assert one.wanted == before
    with circle.journal(ROOT) as journal:
        assert len(list(journal.frames())) == size
    assert circle.carry()


def test_a_wrong_contribution_spoils_the_sum_for_all_alike(circle):
    """Private sums can't tell a lie from a strange row: all have the same model, and it is another one."""

    def lie(name, number, frame, to):
        if (name, frames.place_of(number)[0]) != (LEAF, Phase.SUM_UP):
            return frame
        bad = (np.frombuffer(frames.payload_of(frame), "<u8") + np.uint64(2**40)).astype("<u8").tobytes()
        return resigned(circle, name, frame, bad)

    circle.lie = lie
    assert circle.begin().carry()
    models = circle.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    assert np.max(np.abs(models - circle.simulated())) > 1e-3


def test_an_asked_for_place_that_never_was_gets_nothing(circle):
    circle.begin().carry()
    for name in NAMES:
        for bad in (Place(Phase.SUM_UP, 2, 7).number, Place(Phase.AGAIN, 2, 1).number, 5, 2**32 - 1):
            assert circle.members[name].frame(bad) == b""
    assert circle.members[ROOT].frame(Place(Phase.SUM_UP, 2, 1).number) == b""  # the root has no parent


# --- who noticed nothing hears of it ----------------------------------------------------------------------------------


def disagreement(circle, lie):
    circle.lie = lie
    circle.begin()
    with pytest.raises(Disagreement) as found:
        circle.carry()
    return found.value


def another_total(circle, at):
    def lie(name, number, frame, to):
        if (frames.place_of(number), to) != ((Phase.SUM_DOWN, at, 1), OTHER):
            return frame
        bad = (np.frombuffer(frames.payload_of(frame), "<u8") + np.uint64(1)).astype("<u8").tobytes()
        return resigned(circle, name, frame, bad)

    return lie


@pytest.mark.parametrize("lies_in", [1, 4])
def test_two_frames_that_differ_convince_everyone_else(circle, lies_in):
    error = disagreement(circle, another_total(circle, lies_in))
    for name, one in circle.members.items():
        if not one._broken:
            heard = one.believe(error.alarm)
            assert f"signed that they heard different things before round {lies_in + 1}" in str(heard)
            assert heard.alarm == error.alarm and heard.round == lies_in + 1
            assert heard.party == error.party == f"{ROOT}-and-{OTHER}"  # one of them lies, and which is not known
            shown = [bytes.fromhex(frame) for frame in json.loads(heard.evidence())["frames"]]
            assert len({frames.source(frame)[0] for frame in shown}) == 2
            one.end()
            assert not (circle.run_folder(name) / "run-key").exists()


def test_keys_that_are_none_convince_everyone_else(circle):
    def lie(name, number, frame, to):
        if (frames.place_of(number)[0], to) != (Phase.KEYS_DOWN, OTHER):
            return frame
        return resigned(circle, name, frame, frames.payload_of(frame)[:OFFER] * 5)

    error = disagreement(circle, lie)
    heard = circle.members[LEAF].believe(error.alarm)
    assert "handed on what can't be: the key of this run is not signed by" in str(heard) and heard.party == ROOT


def test_what_proves_nothing_is_not_believed(circle):
    """Frames of one member, of two rounds, of a stranger, of another run or stage, changed, cut, or not at odds."""
    error = disagreement(circle, another_total(circle, 2))
    first, second = alarms.unpack(error.alarm)
    one = next(one for one in circle.members.values() if not one._broken)
    mine, place = circle.identities[LEAF], frames.source(first)[1]
    run, stranger = circle.federation.digest, Identity.make("stranger", "127.0.0.1:1")
    heard = {"one": replace(place, heard=b"1" * 32), "two": replace(place, heard=b"2" * 32)}

    def said(who, where, of=run):
        return frames.pack(who, of, where, b"")

    third = circle.identities["cedar"]
    good = [said(mine, heard["one"]), said(third, heard["two"])]
    assert "heard different things" in str(one.believe(alarms.pack(good)))  # they sign it: it is theirs to answer for
    for proof in (
        [first], [second], [first, first], [first, first[:-1] + bytes([first[-1] ^ 1])], [first, second, second],
        [said(mine, heard["one"]), said(mine, heard["two"])], [good[0], said(stranger, heard["two"])],
        [good[0], said(third, heard["one"])], [good[0], said(third, replace(heard["two"], round=place.round + 1))],
        [good[0], said(third, replace(heard["two"], stage=1))], [good[0], said(third, heard["two"], bytes(32))], [],
        [b""], [b"", b""], [first[:50]],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"alarm|frame"):
            one.believe(alarms.pack(proof))
    for bad in (b"\0", b"\xff" * 8, error.alarm[:-1], error.alarm + b"\0"):
        with pytest.raises(ValueError, match=r"alarm|frame"):
            one.believe(bad)


def test_two_offers_prove_a_copy_if_both_members_signed_one_key(circle):
    circle.begin()
    ash, birch = (circle.identities[name] for name in ("ash", "birch"))
    run, stranger = circle.federation.digest, Identity.make("stranger", "127.0.0.1:1")
    key = circle.members["ash"].sum.key
    copy, other = replace(key, nonce=bytes(32)), RunKey.create(run)

    def shown(who, key, signer=None):
        return who.card.digest + key.signed(signer or who)

    true = [shown(ash, key), shown(birch, copy)]
    assert str(circle.members["elm"].believe(alarms.pack(true))).startswith("ash and birch offer the same key")
    for proof in (
        true[:1], [true[0], true[0]], [true[0], shown(birch, other)], [true[0], shown(ash, copy)],
        [true[0], shown(birch, copy, ash)], [true[0], shown(stranger, copy)],
        [true[0], shown(birch, replace(copy, federation=bytes(32)))], [true[0], true[1], true[1]],
        [true[0], true[1] + bytes(100)],
    ):  # fmt: skip
        with pytest.raises(ConfideError):
            circle.members["elm"].believe(alarms.pack(proof))


# --- processes --------------------------------------------------------------------------------------------------------


def run_liar(arguments, log, victim, at, until=10**6):
    """A root: tells `victim` another total in round `at`, and keeps the story up until the end, or this round."""
    from confide.network import peer, private_sum, standing, tree, wire
    from confide.node.daemon import Daemon

    def deaf(frame, sender, run, place, size):
        wire.unpack(frame, sender, run, place.round, (32 + size) // 8, kind=wire.Numbers.WHOLE, phase=place.phase,
                    attempt=place.attempt)  # fmt: skip
        return frames.payload_of(frame)

    frames.unpack = private_sum.unpack = tree.frames.unpack = deaf
    private_sum.KeyList.check_agreed = lambda *_: None
    made, story = Daemon.__init__, {}  # round -> what the victim has heard before it

    def tampered(self, home, federation, identity, member, *rest):
        made(self, home, federation, identity, member, *rest)
        honest = self.server._answer

        def answer(name, channel):
            number = channel.waits
            told = name == victim and Place(Phase.SUM_DOWN, at, 1).number <= number < until << 12
            if not told or self.server.latest < number:
                return honest(name, channel)
            truth = member.frame(number)
            _, place = frames.source(truth)
            heard, whole = story.get(place.round, place.heard), frames.payload_of(truth)
            if place.round == at:
                whole = (np.frombuffer(whole, "<u8") + np.uint64(1)).astype("<u8").tobytes()
            words = struct.pack("<II", place.round, place.attempt)
            story[place.round + 1] = hashlib.sha256(standing.TOTAL_LABEL + heard + words + whole).digest()
            channel.waits = 0
            lie = frames.pack(identity, federation.digest, replace(place, heard=heard), whole)
            return channel.send(peer.Word.ANSWER, lie)

        self.server._answer = answer

    Daemon.__init__ = tampered
    nursery.run_node(arguments, log)


@pytest.mark.slow
def test_two_totals_of_a_root_that_goes_on_lying_are_found_out_by_what_all_sign(tmp_path):
    """Nobody but the root stands between the others: the last signatures tell, the run ends, and stays ended."""
    with Village(tmp_path, DESCENT, graph=confide.Graph.star(5), timeout=20.0) as village:
        others = [name for name in NAMES if name != ROOT]
        village.start(*others)
        arguments = (village.arguments(ROOT), str(tmp_path / f"{ROOT}.log"), OTHER, 2)
        village.jobs[ROOT] = nursery.CONTEXT.Process(target=run_liar, args=arguments, daemon=True)
        village.jobs[ROOT].start()
        assert village.join(*others) == dict.fromkeys(others, Code.MISBEHAVIOUR), village.log(OTHER)
        for name in others:
            status = village.status(name)
            assert "did not sign our keys and totals" in status["reason"]
            assert list((village.run_folder(name) / "evidence").glob("*.json"))
            assert not (village.run_folder(name) / "run-key").exists()
        village.start(OTHER)
        assert village.join(OTHER) == {OTHER: Code.MISBEHAVIOUR}
        assert "begin another run" in village.log(OTHER)


@pytest.mark.slow
@pytest.mark.parametrize("graph", [confide.Graph.ring(5), confide.Graph.complete(5)], ids=["ring", "complete"])
def test_who_noticed_nothing_ends_with_the_evidence_of_those_who_did(tmp_path, graph):
    """The root tells one child another total, once: that child notices. On links that sums do not take, word goes
    around the liar, and nobody waits for a total that never comes."""
    with Village(tmp_path, {**DESCENT, "rounds": 40}, graph=graph, timeout=120.0) as village:
        others = [name for name in NAMES if name != ROOT]
        village.start(*others)
        arguments = (village.arguments(ROOT), str(tmp_path / f"{ROOT}.log"), OTHER, 2, 3)
        village.jobs[ROOT] = nursery.CONTEXT.Process(target=run_liar, args=arguments, daemon=True)
        village.jobs[ROOT].start()
        assert village.join(*others, seconds=110) == dict.fromkeys(others, Code.MISBEHAVIOUR), village.log("cedar")
        for name in others:
            (kept,) = (village.run_folder(name) / "evidence").glob("*.json")
            found = json.loads(kept.read_text())
            shown = [bytes.fromhex(frame) for frame in found["frames"]]
            assert len({frames.heard_of(frame) for frame in shown}) == 2 and found["round"] == 3
            for frame in shown:
                who = next(one for one in village.identities.values() if one.card.digest == frames.source(frame)[0])
                wire.authentic(frame, who.card, village.federation.digest)
            assert not (village.run_folder(name) / "run-key").exists()
            status = village.status(name)
            assert ("heard something else" in status["reason"]) == (name == OTHER)
        village.start("cedar")
        assert village.join("cedar") == {"cedar": Code.MISBEHAVIOUR}
