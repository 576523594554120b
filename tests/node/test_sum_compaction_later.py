"""What comes after journals of a private sum were compacted: lost members, disputes, models and costs."""

import numpy as np
import pytest
from losing import PATH, RING, STAR, stay_without
from plain_descent import expected
from test_sum_compaction import DESCENT, MOMENTS, ROUNDS, SEAL, WHOLE, eager, entries, forms, same
from test_sum_compaction import always as always
from test_sum_compaction import circle as circle
from village import FEATURES, NAMES

import confide
from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import Phase, Place
from confide.network.standing import heard_after
from confide.node.closing import Closing
from confide.node.comparison import compared
from confide.node.export import export
from confide.node.journal import run_name
from confide.node.status import FEDERATION
from confide.node.summer import Disagreement
from confide.privacy.ledger import Ledger

pytestmark = pytest.mark.usefixtures("used")

# --- members change ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [False, True], ids=["", "started again"])
@pytest.mark.parametrize(("graph", "lost", "edges"), [
    (RING, "cedar", ()), (RING, "ash", ()), (PATH, "cedar", (("birch", "doum"),)),
    (STAR, "ash", (("birch", "cedar"), ("birch", "doum"), ("birch", "elm"))),
], ids=["ring", "ring's root", "path's middle", "star's centre"])  # fmt: skip
def test_a_member_is_lost_after_journals_were_compacted(circle, always, graph, lost, edges, stopped):
    """At every moment of a round: those who stay learn what the amendment implies, and compact and start again."""
    for after in range(0, 12, 2):
        made = circle(folder=f"after {after}", graph=graph).begin()
        made.carry(until=lambda made=made: any(one.t == 4 for name, one in made.members.items() if name != lost))
        count = len(made.heard) + after
        made.carry(until=lambda made=made, count=count: len(made.heard) >= count)
        T = max(one.t for name, one in made.members.items() if name != lost)
        assert all(one.journal.horizon >= 2 for one in made.members.values())
        made.lose(lost, edges=edges)
        stay = stay_without(lost)
        while stopped and not all(one.done for one in made.members.values()):
            count = len(made.heard)
            made.carry(until=lambda made=made, count=count: len(made.heard) > count)
            made.again(stay[count % 4])
        assert made.carry()
        models = [made.model(name).coefficients.ravel() for name in stay]
        truth = expected(made.current, [0] * T + [1] * (ROUNDS - T))
        assert np.max(np.abs(same(models) - truth)) <= 1e-6 * np.max(np.abs(truth))
        for name in stay:
            one = made.members[name]
            assert one.made == [0] * T + [1] * (ROUNDS - T)
            found = forms(one.journal)
            assert found[1, ROUNDS] == {WHOLE} and found[1, ROUNDS - 1] == {SEAL}
            assert all(form == {WHOLE} for (_, t), form in found.items() if t in one._turns)
            assert made.model(name).origin["contributed"].endswith(f"{lost}: rounds 1 to {T}, left by amendment 1")
        made.close()


@pytest.mark.slow
def test_two_are_lost_one_after_the_other_and_each_time_journals_are_compacted(circle, always):
    made = circle({**DESCENT, "collusion": 1}, graph=confide.Graph.complete(5)).begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    made.lose("elm")
    made.carry(until=lambda: made.members["ash"].t == 6)
    made.again("ash", "birch")
    made.lose("doum")
    made.carry(until=lambda: made.members["ash"].t == 8)
    made.again("ash", "birch", "cedar")
    assert made.carry()
    same([made.model(name).coefficients.ravel() for name in NAMES[:3]])
    one = made.members["ash"]
    turns = one.made.index(1), one.made.index(2)
    assert {tuple(other.made) for other in made.members.values()} == {tuple(one.made)}
    for other in made.members.values():
        whole = {t for (_, t), form in forms(other.journal).items() if WHOLE in form}
        assert ROUNDS in whole and whole <= {ROUNDS, *(turn + k for turn in turns for k in (-1, 0, 1))}
    said = made.model("ash").origin["contributed"]
    assert said == (f"ash, birch, cedar: rounds 1 to {ROUNDS}; doum: rounds 1 to {turns[1]}, left by amendment 2; "
                    f"elm: rounds 1 to {turns[0]}, left by amendment 1")  # fmt: skip


@pytest.mark.slow
def test_a_lost_ledger_is_charged_for_both_stages(circle, always):
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].t == 4)
    made.lose("elm")
    assert made.carry()
    one = made.members["ash"]
    paid, spent = entries(made, "ash"), [b.spent for b in one.purse.ledger.balances("people")]
    heads, attempts = one.heads, one.attempts
    one.end()
    made.crash("ash")
    for file in (made.folder / "ash" / "ledger.sqlite", made.run_folder("ash") / "ledger-head"):
        file.unlink()
    again = made.begin("ash").members["ash"]
    assert (again.heads, again.attempts) == (heads, attempts) and len(set(heads)) == 2
    assert entries(made, "ash") == paid
    assert all(now >= then * (1 - 1e-12) for now, then in
               zip((b.spent for b in again.purse.ledger.balances("people")), spent, strict=True))  # fmt: skip


# --- a dispute --------------------------------------------------------------------------------------------------------


def test_a_liar_is_convicted_by_its_last_frames_and_by_seals(circle, always):
    """Birch tells ash, its child, other totals from round 3 on, and nobody else. All ends at the last signatures."""
    made = circle(graph=PATH)
    liar, told = made.identities["birch"], {}

    def lie(name, number, frame, to):
        """What ash hears follows from the first lie."""
        phase, round, attempt = frames.place_of(number)
        if (name, to, phase) != ("birch", "ash", Phase.SUM_DOWN) or round < 3:
            return frame
        total = bytes(8 * FEATURES)
        heard = told.get(round, frames.heard_of(frame))
        told[round + 1] = heard_after(heard, round, attempt, total)
        return frames.pack(liar, made.federation.digest, Place(phase, round, attempt, heard), total)

    made.lie = lie
    made.begin()
    birch = made.members["birch"]
    birch.sum.check = lambda neighbour, frame: None  # it knows what it told ash
    with pytest.raises(Disagreement):
        made.carry()
    ash, cedar = (made.members[name].journal for name in ("ash", "cedar"))
    assert ash.horizon >= ROUNDS - 2 and cedar.horizon >= ROUNDS - 2
    down = ash.frame(liar.card.digest, Place(Phase.SUM_DOWN, ROUNDS, 1).number)
    up = cedar.frame(liar.card.digest, Place(Phase.SUM_UP, ROUNDS, 1).number)
    for frame in (down, up):
        wire.authentic(frame, liar.card, made.federation.digest)
    assert frames.heard_of(down) != frames.heard_of(up)  # before the same round, both signed by birch
    for name in ("ash", "birch"):
        (made.run_folder(name) / FEDERATION).write_text(made.file.read_text())
    lies = compared(made.folder / "ash", made.folder / "birch").lies
    assert lies == tuple(("birch", t) for t in range(3, ROUNDS + 1))  # where it began


def test_a_run_that_ended_in_a_disagreement_is_kept_as_it_was(circle, monkeypatch):
    made = circle(graph=STAR).begin()
    made.carry(until=lambda: made.members["ash"].t == 6)
    one = made.members["ash"]
    eager(monkeypatch)
    one._broken = True
    one.end()
    assert one.journal.horizon == 0 and one.journal.path.exists()


# --- what is read from it ---------------------------------------------------------------------------------------------


def test_a_model_is_made_of_a_compacted_journal_and_of_nothing_less(circle, always):
    made = circle(MOMENTS).begin()
    made.carry(until=lambda: made.members["ash"].t == 6)
    one = made.members["ash"]
    model = export(made.folder / "ash", one.folder)
    assert np.array_equal(model.coefficients.ravel(), one.estimate) and model.origin["round"] == one.t
    one.journal.rewrite(lambda sender, number, frame: frame)  # without the state
    with pytest.raises(ConfideError, match="round 1 has no numbers, and no state stands for them"):
        export(made.folder / "ash", one.folder)


def test_papers_that_are_older_than_a_compacted_journal_are_missed(circle, always):
    made = circle().begin()
    made.carry(until=lambda: made.members["ash"].t == 3)
    made.lose("elm")
    made.carry(until=lambda: made.members["ash"].t == 6)
    for file in (made.folder / "ash" / "agreements").glob("*.json"):
        file.unlink()
    with pytest.raises(ConfideError, match="compacted after an amendment whose papers are not here: restore them"):
        export(made.folder / "ash", made.members["ash"].folder)


def test_what_was_spent_is_known_to_who_ends_the_run(circle, always):
    """`confide account --end` reads the journal, too."""
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].t == 6)
    name, sent = run_name(made.members["ash"].journal), made.members["ash"].sent
    made.crash("ash")
    word = Closing.read(made.run_folder("ash"), name)
    assert word.attempts == (1,) * sent
    with Ledger(made.folder / "ash" / "ledger.sqlite") as ledger:
        assert len(ledger.entries("people")) == sent
