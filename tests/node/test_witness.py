"""What everyone hears of everyone: a lie surfaces within a diameter's rounds, and only two signatures end a run."""

import json

import numpy as np
import pytest
from village import NAMES, Village

import confide
from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import Card
from confide.node.comparison import FEDERATION, compared
from confide.node.journal import Journal
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
