"""Those who go on without a lost member of a private sum are killed anywhere: the same bytes, and nothing is free."""

import json
from itertools import pairwise

import pytest
from losing import PATH, RING, ROUNDS, STAR, stay_without
from typer.testing import CliRunner

from confide.cli import app
from confide.network.frames import Phase
from confide.privacy.ledger import Ledger

pytestmark = pytest.mark.usefixtures("used")


class Crash(BaseException):
    """The power goes."""


@pytest.mark.slow
@pytest.mark.parametrize("graph", [RING, STAR], ids=["ring", "star"])
def test_killed_after_every_step_they_send_the_same_bytes_and_pay_once(circle, graph):
    made = circle(seed=None, graph=graph).begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    made.lose("elm")
    stay, victim = stay_without("elm"), 0
    while not all(one.done for one in made.members.values()):
        count = len(made.heard)
        made.carry(until=lambda count=count: len(made.heard) > count)
        victim = (victim + 1) % 4
        before = made.own_frames(stay[victim])
        made.again(stay[victim])
        after = made.own_frames(stay[victim])
        assert before.items() <= after.items()
        numbers = list(after)
        assert all(a < b for a, b in pairwise(numbers))
    models = [made.model(name).coefficients.tobytes() for name in stay]
    assert len(set(models)) == 1
    for name in stay:
        entries = [(e.round, e.attempt) for e in made.members[name].purse.ledger.entries("people")]
        assert len(entries) <= ROUNDS + 1 and entries == sorted(set(entries))
    for sender, _, number, frame in made.heard:
        if sender != "elm":
            assert made.own_frames(sender)[number] == frame


@pytest.mark.slow
@pytest.mark.parametrize("where", ["journal", "claim", "payment"])
@pytest.mark.parametrize("victim", ["ash", "birch", "cedar", "doum"])
def test_a_message_lost_in_the_first_round_of_a_stage_is_paid_for(circle, monkeypatch, victim, where):
    """Before the journal, before the claim or before noise is drawn: the model is the same for all, nothing is free."""
    made = circle(seed=None, graph=RING).begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    made.lose("elm")
    one = made.members[victim]

    def crash(*_):
        raise Crash

    commit = one.journal.commit
    at = {"journal": (one.journal, "commit", lambda frame, draws=0: crash() if draws else commit(frame, draws)),
          "claim": (one._claims, "claim", crash), "payment": (one.purse, "pay", crash)}[where]  # fmt: skip
    monkeypatch.setattr(*at)
    with pytest.raises(Crash):
        made.carry()
    setattr(at[0], at[1], {"journal": commit}.get(where, getattr(type(at[0]), at[1]).__get__(at[0])))
    made.again(victim)
    assert made.carry()
    assert len({made.model(name).coefficients.tobytes() for name in stay_without("elm")}) == 1
    for name in stay_without("elm"):
        other = made.members[name]
        paid = [(e.round, e.attempt) for e in other.purse.ledger.entries("people")]
        assert len(paid) >= sum(other.attempts)
        said = [n for n in made.own_frames(name) if n & 7 >= Phase.SUM_UP and made.drew(name, n)]
        assert len(paid) >= len(said) + (name == victim and where != "payment")


def test_a_home_rolled_back_across_the_amendment_is_refused(circle):
    made = circle(graph=RING).begin()
    made.carry(until=lambda: made.members["ash"].sent == 2)
    journal = made.members["ash"].journal.path
    old = journal.read_bytes()
    made.carry(until=lambda: made.members["ash"].sent == 5)
    made.crash("ash")
    journal.write_bytes(old)
    with pytest.raises(ValueError, match=r"round 5 was masked and the journal ends at round [23]: an old copy"):
        made.lose("elm")


def test_who_had_finished_signs_with_those_who_had_not(circle):
    """The last signatures did not reach everyone: no round is left, and all end with the same model."""
    made = circle(graph=PATH).begin()
    made.carry(until=lambda: made.members["ash"].done or made.members["elm"].done)
    over = [name for name, one in made.members.items() if one.done]
    for name in over:
        made.members[name].end()  # its secrets are gone
    assert len(over) < 4
    lost = next(name for name in ("birch", "doum") if name not in over or len(over) > 3)
    made.lose(lost, edges=(("ash", "cedar"),) if lost == "birch" else (("cedar", "elm"),))
    assert made.carry()
    assert {tuple(one.made) for one in made.members.values()} == {(0,) * ROUNDS}
    assert len({made.model(name).coefficients.tobytes() for name in stay_without(lost)}) == 1


def test_who_ends_the_run_pays_for_what_was_said_in_both_stages(circle):
    made = circle(seed=None, graph=RING).begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    made.lose("elm")
    made.carry(until=lambda: made.members["ash"].t == 4)
    spent = made.members["ash"].purse.ledger.balances("people")
    run, ledger = made.members["ash"].purse.run, made.folder / "ash" / "ledger.sqlite"
    made.crash("ash")
    done = CliRunner().invoke(app, ["account", "--ledger", str(ledger), "--end", run, "--journal",
                                    str(made.run_folder("ash")), "--json"])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ended"][0]["charged_now"] == []
    with Ledger(ledger) as after:
        assert [b.spent for b in after.balances("people")] == [b.spent for b in spent]
