"""What everyone hears of everyone: a lie surfaces within a diameter's rounds, and only two signatures end a run."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import pytest
from village import NAMES, Village

import confide
from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import Card, Identity
from confide.node import witness as witnesses
from confide.node.amendment import Amendment, amended
from confide.node.comparison import FEDERATION, compared
from confide.node.journal import Journal
from confide.node.member import Trainer
from confide.node.witness import ALARM_SIZE, Contradiction, Witness, valid

CDP = {"name": "CDPADMM", "rounds": 12, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}
GRAPHS = {
    "ring": confide.Graph.ring(5), "complete": confide.Graph.complete(5),
    "lollipop": confide.Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 2)]),
}  # fmt: skip


class Telling:
    """All five as witnesses without rows; `lies` gives (liar, round, to whom) another message."""

    def __init__(self, village, lies=()):
        self.village, self.lies = village, set(lies)
        self.witnesses = {name: Witness(village.federation, name) for name in NAMES}

    def frame(self, name, t, value):
        village = self.village
        return wire.pack(village.identities[name], village.federation.digest, t, np.full(4, value).tobytes(),
                         self.witnesses[name].statements(t))  # fmt: skip

    def round(self, t):
        """Everyone sends and checks; who finds what."""
        sent = {name: self.frame(name, t, 5.0) for name in NAMES}
        others = {name: self.frame(name, t, -5.0) for name, at, _ in self.lies if at == t}
        for name, frame in sent.items():
            self.witnesses[name].recall(name, t, frame)
        found = {}
        for name in NAMES:
            for near in self.village.federation.neighbours(name):
                frame = others[near] if (near, t, name) in self.lies else sent[near]
                try:
                    self.witnesses[name].check(near, t, frame)
                except Contradiction as error:
                    found[name] = error
            self.witnesses[name].forget(t)
        return found


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_honest_parties_contradict_nobody_and_know_all(tmp_path, graph):
    village = Village(tmp_path, CDP, graph=graph)
    telling = Telling(village)
    for t in range(1, 9):
        assert telling.round(t) == {}
        for name, witness in telling.witnesses.items():
            told = witness.told(name, t + 1)
            assert all(key in witness._known for key in told)
            assert len(told) == 4 if t >= graph.diameter else len(told) < 5
    kept = max(len(witness._known) for witness in telling.witnesses.values())
    assert kept <= 5 * (2 * graph.diameter + 2)  # however long the run


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_two_neighbours_told_different_things_find_out_within_a_diameter(tmp_path, graph):
    village = Village(tmp_path, CDP, graph=graph)
    liar = "cedar"
    victim = next(iter(village.federation.neighbours(liar)))
    telling = Telling(village, [(liar, 3, victim)])
    for t in range(1, 3 + graph.diameter + 1):
        found = telling.round(t)
        if found:
            break
    assert found and t <= 3 + graph.diameter
    error = next(iter(found.values()))
    assert (error.party, error.round) == (liar, 3)
    evidence = json.loads(error.evidence())  # by which anyone can check it
    card = Card.from_text(**{k: evidence[k] for k in ("name", "address", "fingerprint", "certificate")})
    first, second = (bytes.fromhex(one) for one in evidence["statements"])
    assert first[:32] != second[:32]
    run = bytes.fromhex(evidence["federation"])
    assert all(wire.stated(one, card, run, evidence["round"], evidence["numbers"]) for one in (first, second))


def test_a_statement_that_nobody_signed_accuses_the_one_who_passes_it_on(tmp_path):
    """It is refused with the frame that carries it, which its sender signed; no run ends."""
    village = Village(tmp_path, CDP)
    telling = Telling(village)
    for t in (1, 2):
        telling.round(t)
    told = telling.witnesses["birch"].statements(3)
    made_up = bytes([told[0] ^ 1]) + told[1:]
    frame = wire.pack(village.identities["birch"], village.federation.digest, 3, bytes(32), made_up)
    with pytest.raises(wire.Outside, match="frame states what ash did not sign in round 2"):
        telling.witnesses["ash"].check("birch", 3, frame)


def altered(told, which, at):
    """The statements with one bit of statement `which` turned, at this byte of it."""
    at += which * wire.STATEMENT
    return told[:at] + bytes([told[at] ^ 1]) + told[at + 1 :]


@pytest.mark.parametrize("at", [0, wire.COMMITMENT, wire.STATEMENT - 1], ids=["commitment", "r", "s"])
def test_no_neighbour_makes_an_honest_one_pass_on_what_nobody_signed(tmp_path, at):
    """Not by a commitment that is known already under another signature, either: who took it would be accused."""
    village = Village(tmp_path, CDP)
    for which in range(4):
        telling = Telling(village)
        for t in (1, 2, 3):
            telling.round(t)
        ash, told = telling.witnesses["ash"], telling.witnesses["birch"].statements(4)
        lie = altered(told, which, at)
        frame = wire.pack(village.identities["birch"], village.federation.digest, 4, bytes(32), lie)
        _, round = ash.told("birch", 4)[which]
        with pytest.raises(wire.Outside, match=f"did not sign in round {round}"):
            ash.check("birch", 4, frame)
        ash.check("birch", 4, frame[: -len(lie) - 64] + told + frame[-64:])  # as if it had been told the truth
        ash.recall("birch", 4, frame)  # nor does what is in a journal take the place of what was verified
        for near in village.federation.neighbours("ash"):
            if near != "birch":
                ash.check(near, 4, telling.frame(near, 4, 5.0))
        assert all(key in ash._known for key in ash.told("ash", 5))
        for (party, t), one in ash._known.items():
            assert t == 4 or valid(village.federation, party, t, one)


def test_two_signatures_of_one_message_are_no_lie(tmp_path):
    """Anyone can make a second valid one of a signature, and its signer as many as it likes."""
    village = Village(tmp_path, CDP)
    telling = Telling(village)
    for t in (1, 2):
        telling.round(t)
    ash, told = telling.witnesses["ash"], telling.witnesses["birch"].statements(3)
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    where = [NAMES[party] for party, _ in ash.told("birch", 3)].index("cedar") * wire.STATEMENT
    s = int.from_bytes(told[where + 64 : where + 96])
    other = told[: where + 64] + (order - s).to_bytes(32) + told[where + 96 :]
    assert other != told
    ash.check("birch", 3, wire.pack(village.identities["birch"], village.federation.digest, 3, bytes(32), other))


def test_each_message_is_verified_once_however_many_tell_of_it(tmp_path, monkeypatch):
    village = Village(tmp_path, {**CDP, "rounds": 40}, graph=GRAPHS["complete"])
    telling, asked = Telling(village), []
    monkeypatch.setattr(witnesses, "valid", lambda *a, **k: asked.append(a[1:]) or valid(*a, **k))
    for t in range(1, 31):
        telling.round(t)
    assert asked == []  # everyone is everyone's neighbour: each heard all frames themselves
    village = Village(tmp_path / "ring", {**CDP, "rounds": 40})
    telling = Telling(village)
    for t in range(1, 31):
        telling.round(t)
    assert len(asked) <= 5 * 2 * 30  # two of four are no neighbours


def test_a_message_under_the_last_amendment_is_verified_once_however_many_there_were(tmp_path, monkeypatch):
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))
    now = village.federation
    for k in range(4):
        card = replace(now.cards["elm"], address=f"127.0.0.1:{k + 1}")
        now = amended(now, Amendment(now.digest, now.head, k + 1, cards=(card,)))
    frame = wire.pack(village.identities["cedar"], now.head, 2, bytes(32))
    asked, real = [], wire.stated
    monkeypatch.setattr(wire, "stated", lambda *a: asked.append(a) or real(*a))
    assert valid(now, NAMES.index("cedar"), 2, wire.statement(frame)) and len(asked) == 1


def test_nobody_may_say_that_it_does_not_know_unless_links_changed(tmp_path):
    """An amendment of a key or an address is no excuse to keep to oneself what others signed."""
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))
    before = village.federation
    card = replace(before.cards["elm"], address="127.0.0.1:1")
    moved = amended(before, Amendment(before.digest, before.head, 1, cards=(card,)))
    fewer = amended(before, Amendment(before.digest, before.head, 1, without=("elm",)))
    for now, refused in ((moved, True), (fewer, False)):
        ash = Witness(now, "ash")
        count = len(ash.told("birch", 3))
        frame = wire.pack(village.identities["birch"], now.head, 3, bytes(32), bytes(count * wire.STATEMENT))
        with pytest.raises(wire.Outside, match="did not sign") if refused else nullcontext():
            ash.check("birch", 3, frame)


def test_who_has_a_revoked_key_hides_no_lie(tmp_path):
    """What it signed comes first, and contradicts nothing; two messages of the key in force still do."""
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5), graph=GRAPHS["complete"])
    before, old, elm = village.federation, village.identities["elm"], NAMES.index("elm")
    fresh = Identity.make("elm", old.card.address)
    now = amended(before, Amendment(before.digest, before.head, 1, cards=(fresh.card,)))
    ash, said = Witness(now, "ash"), {}
    for name in NAMES[1:4]:
        said[name] = wire.statement(wire.pack(village.identities[name], now.head, 1, bytes(32)))
    said["ash"] = wire.statement(wire.pack(village.identities["ash"], now.head, 1, bytes(32)))

    def tell(name, one):
        told = [one if party == elm else said[NAMES[party]] for party, _ in ash.told(name, 2)]
        ash.check(name, 2, wire.pack(village.identities[name], now.head, 2, bytes(32), b"".join(told)))

    stolen = wire.statement(wire.pack(old, before.head, 1, np.full(4, 1.0).tobytes()))
    first, second = (
        wire.statement(wire.pack(fresh, now.head, 1, np.full(4, value).tobytes())) for value in (5.0, -5.0)
    )
    tell("birch", stolen)
    tell("cedar", first)
    assert ash._known[elm, 1] == first
    with pytest.raises(Contradiction, match="elm signed two different messages for round 1"):
        tell("doum", second)


@contextmanager
def ash_of(village, federation, *before):
    """Ash, which sent its first rounds under each of `before`, and holds to this federation."""
    for t, held in enumerate(before, start=1):
        with Journal(village.run_folder("ash"), federation.digest, aliases=federation.aliases) as journal:
            Trainer(held, village.identities["ash"], journal)._commit(t, bytes(32))
    with Journal(village.run_folder("ash"), federation.digest, aliases=federation.aliases) as journal:
        yield Trainer(federation, village.identities["ash"], journal)


@pytest.mark.parametrize("first", ["birch", "cedar"], ids=["the revoked key's first", "the other first"])
def test_who_has_a_revoked_key_hides_no_lie_after_a_restart(tmp_path, first):
    """What the journal holds is known again as it was: two messages of the key in force still contradict each other."""
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5), graph=GRAPHS["complete"])
    before, old, elm = village.federation, village.identities["elm"], NAMES.index("elm")
    fresh = Identity.make("elm", old.card.address)
    now = amended(before, Amendment(before.digest, before.head, 1, cards=(fresh.card,)))
    people = {**village.identities, "elm": fresh}
    said = {name: wire.pack(people[name], now.head, 1, np.full(4, 5.0).tobytes()) for name in NAMES}
    told = {"birch": wire.pack(old, before.head, 1, bytes(32)), "cedar": said["elm"],
            "doum": wire.pack(fresh, now.head, 1, np.full(4, -5.0).tobytes())}  # fmt: skip

    def tells(name, ash):
        """Its frame of round 2, by which elm said in round 1 what it was told."""
        heard = [wire.statement(told[name] if party == elm else said[NAMES[party]])
                 for party, _ in ash.told(name, 2)]  # fmt: skip
        return wire.pack(people[name], now.head, 2, bytes(32), b"".join(heard))

    ash, kept = Witness(now, "ash"), [first, "cedar" if first == "birch" else "birch"]
    for name in kept:
        ash.check(name, 2, tells(name, ash))
    again = Witness(now, "ash")  # which finds these two in its journal
    for name in kept:
        again.recall(name, 2, tells(name, ash))
    assert again._known[elm, 1] == ash._known[elm, 1] == wire.statement(said["elm"])
    for one in (ash, again):
        with pytest.raises(Contradiction, match="elm signed two different messages for round 1"):
            one.check("doum", 2, tells("doum", ash))


def second(village, elm, head, ash):
    """Elm's frame of round 2, with what its neighbours ash and doum said in round 1."""
    doum = wire.pack(village.identities["doum"], head, 1, bytes(32))
    told = [ash.journal.frame(ash.identity.card.digest, 1), doum]
    return wire.pack(elm, head, 2, bytes(32), b"".join(map(wire.statement, told)))


def test_a_message_beyond_the_rounds_of_its_terms_is_refused(tmp_path):
    """Nobody else takes it for signed: an honest member that passed it on was accused, and nobody took its frame."""
    village = Village(tmp_path, {**CDP, "rounds": 1}, seed=None, budget=(20.0, 1e-5))
    before = village.federation
    longer = amended(before, Amendment(before.digest, before.head, 1, rounds=2))
    with ash_of(village, longer, before) as ash:
        for head, refused in ((before.head, True), (longer.head, False)):
            frame = second(village, village.identities["elm"], head, ash)
            assert valid(longer, NAMES.index("elm"), 2, wire.statement(frame)) is not refused
            with pytest.raises(ConfideError, match="by which elm signs to round 1") if refused else nullcontext():
                ash.check("elm", 2, frame)


def test_who_has_a_new_key_does_not_go_on_with_the_old_one(tmp_path):
    """Its messages do not count as evidence: it could tell every neighbour another thing, and nobody would stop."""
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))
    before, old = village.federation, village.identities["elm"]
    fresh = Identity.make("elm", old.card.address)
    now = amended(before, Amendment(before.digest, before.head, 1, cards=(fresh.card,)))
    with ash_of(village, now, before) as ash:  # elm may have had its first round before it had the key
        ash.check("elm", 2, second(village, old, before.head, ash))
    village = Village(tmp_path / "later", CDP, seed=None, budget=(20.0, 1e-5))
    before, old = village.federation, village.identities["elm"]
    fresh = Identity.make("elm", old.card.address)
    now = amended(before, Amendment(before.digest, before.head, 1, cards=(fresh.card,)))
    with ash_of(village, now, now) as ash:
        ash.check("elm", 1, wire.pack(old, before.head, 1, bytes(32)))
        with pytest.raises(ConfideError, match="by which elm signs to round 1"):
            ash.check("elm", 2, second(village, old, before.head, ash))
        ash.check("elm", 2, second(village, fresh, now.head, ash))


def test_an_alarm_is_believed_for_two_valid_signatures_alone(tmp_path):
    village = Village(tmp_path, CDP)
    telling = Telling(village)
    first, second = (wire.statement(telling.frame("cedar", 2, value)) for value in (5.0, -5.0))
    assert valid(village.federation, 2, 2, first)
    true = Contradiction(village.federation, 2, 2, first, second)
    ash = telling.witnesses["ash"]
    assert str(ash.believe(true.alarm)) == str(true) and len(true.alarm) == ALARM_SIZE
    for party, t, one, other in ((2, 2, first, first), (2, 3, first, second), (1, 2, first, second),
                                 (2, 2, first, bytes(96))):  # fmt: skip
        with pytest.raises(ConfideError, match="without two valid signatures"):
            ash.believe(Contradiction(village.federation, party, t, one, other).alarm)
    for alarm in (b"", bytes(ALARM_SIZE + 1), b"\xff" * ALARM_SIZE):
        with pytest.raises(ConfideError, match="alarm"):
            ash.believe(alarm)


def test_a_hub_that_tells_two_sums_is_found_by_two_parties_who_compare(tmp_path):
    """Not by anyone alone: each has one sum, well signed."""
    village, told = Village(tmp_path, {"name": "DPADMM", "rounds": 3}, hub=True), {}
    for name, last in (("ash", 5.0), ("birch", 5.0), ("cedar", -5.0)):
        with Journal(village.run_folder(name), village.federation.digest) as journal:
            for t, value in ((1, 1.0), (2, last)):
                payload = np.full(village.federation.public.width, value).tobytes()
                frame = wire.pack(village.identities["hub"], journal.run, t, payload)
                journal.keep([told.setdefault((t, value), frame)])  # its salt is another each time
        (village.run_folder(name) / FEDERATION).write_text(village.file.read_text())
    assert compared(tmp_path / "ash", tmp_path / "birch").lies == ()
    found = compared(tmp_path / "ash", tmp_path / "cedar")
    assert (found.both, found.lies, found.altered) == (2, (("hub", 2),), ())
