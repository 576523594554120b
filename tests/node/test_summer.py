"""Private sums on disk: five members learn one model, whatever the graph, and crash as they like."""

import json

import numpy as np
import pytest
from circle import Circle
from typer.testing import CliRunner
from village import FEATURES, NAMES

import confide
from confide.cli import app
from confide.network import frames, wire
from confide.network.frames import Phase
from confide.network.private_sum import PrivateSum
from confide.node.codes import Code, code_of
from confide.node.journal import run_name
from confide.privacy.chain import Damaged
from confide.privacy.ledger import Ledger

DESCENT = {"name": "JointDescent", "rounds": 6, "noise": 0.5, "first": "moments"}
GRAPHS = {"ring": confide.Graph.ring(5), "star": confide.Graph.star(5), "path": confide.Graph.path(5),
          "random": confide.Graph.random(5, 6, seed=4)}  # fmt: skip


class Crash(BaseException):
    """The power goes."""


@pytest.fixture
def circle(tmp_path):
    """Makes circles, and closes them."""
    made = []

    def make(algorithm=DESCENT, folder="home", **options):
        made.append(Circle(tmp_path / folder, algorithm, **{"budget": (10.0, 1e-5), **options}))
        return made[-1]

    yield make
    for one in made:
        one.close()


# --- one model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_all_learn_the_same_model_and_it_is_the_simulators_to_the_grid(circle, graph):
    """The simulation's own noise, rounded to the grid: σ/2^26 a number and party."""
    made = circle(graph=graph).begin()
    assert made.carry()
    models = made.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    assert np.max(np.abs(models - made.simulated())) <= 1e-6 * np.max(np.abs(models))
    assert np.max(np.abs(models[0])) > 1e-3


@pytest.mark.slow
def test_with_secure_noise_all_learn_the_same_model_and_every_round_is_paid_twice_over(circle):
    """Against two of five, and against everyone with a third of the noise's variance."""
    made = circle(seed=None, graph=GRAPHS["random"]).begin()
    assert made.carry()
    models = made.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    for name in NAMES:
        one = made.members[name]
        everyone, few = one.purse.ledger.balances("people")
        assert few.kind[2] == "outsiders and any 2 of 5 parties together" and (few.epsilon, few.delta) == (10.0, 1e-5)
        assert everyone.spent == pytest.approx(3 * few.spent, rel=1e-6)
        prices = made.federation.prices(NAMES.index(name))
        assert few.spent == pytest.approx(sum(float(now[0].mu) ** 2 for now in prices), rel=1e-9)
        one.end()
        assert all(balance.held == 0 for balance in one.purse.ledger.balances("people"))


def test_bytes_are_at_most_three_vectors_a_party_and_round(circle):
    made = circle(graph=confide.Graph.complete(5)).begin()
    assert made.carry()
    vector = 8 * FEATURES
    for name in NAMES:
        said = [frame for number, frame in made.own_frames(name).items() if number & 7 >= Phase.SUM_UP]
        numbers = sum(len(frames.payload_of(frame)) for frame in said)
        assert numbers <= 2 * (5 * vector + 2 * vector)  # five gradients, one round of moments


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("graph", [GRAPHS["path"], GRAPHS["star"]], ids=["path", "star"])
def test_who_is_killed_anywhere_sends_the_same_bytes_and_pays_once(circle, graph):
    """After every frame that anyone hears, another member is killed and starts again."""
    made = circle(seed=None, graph=graph).begin()
    made.kill_everywhere()
    models = made.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    for name in NAMES:
        entries = made.members[name].purse.ledger.entries("people")
        assert [(e.round, e.attempt) for e in entries] == [(t, 1) for t in range(1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("t", [1, 3], ids=["the dearest round", "another"])
def test_a_crash_between_payment_and_claim_is_paid_again_by_its_victim_alone(circle, monkeypatch, t):
    """Nobody has seen anything and no stream was used: the same attempt goes on, within what was held for one."""
    made = circle(seed=None, spare=1).begin(*NAMES[1:])

    def crash():
        raise Crash

    made.begin("ash").carry(until=lambda: made.members["ash"].sent == t - 1 or all(
        one.done for one in made.members.values()))  # fmt: skip
    monkeypatch.setattr(made.members["ash"].party, "send", crash)
    with pytest.raises(Crash):
        made.carry()
    monkeypatch.undo()
    assert made.members["ash"]._claims.last == ((t - 1, 1) if t > 1 else (0, 0))
    made.again("ash")
    assert f"round {t} was paid for and is not in the journal: it is paid for again" in made.members["ash"].notice
    assert made.carry()
    models = made.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    for name in NAMES:
        paid = [(e.round, e.attempt) for e in made.members[name].purse.ledger.entries("people")]
        assert paid == sorted([(r, 1) for r in range(1, 7)] + ([(t, 2)] if name == "ash" else []))


@pytest.mark.slow
@pytest.mark.parametrize("victim", NAMES)
def test_a_message_lost_between_claim_and_journal_costs_everyone_another_attempt(circle, monkeypatch, caplog, victim):
    """The streams of the attempt are used up: other noise, other masks, paid for again, and the same total for all."""
    made = circle(seed=None, graph=GRAPHS["path"], spare=2).begin()
    made.carry(until=lambda: made.members[victim].sent == 2)
    one, commit = made.members[victim], made.members[victim].journal.commit

    def crash(frame, draws=0):
        if draws and wire.place(frame)[0] == 3:
            raise Crash
        commit(frame, draws)

    monkeypatch.setattr(one.journal, "commit", crash)
    with pytest.raises(Crash):
        made.carry()
    monkeypatch.undo()
    assert one._claims.last == (3, 1) and one.sent == 2
    before = {name: made.own_frames(name) for name in NAMES}
    made.again(victim)
    assert made.carry()
    models = made.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    for name in NAMES:
        own = made.own_frames(name)
        assert before[name].items() <= own.items()
        attempts = {frames.place_of(number) for number in own}
        assert (Phase.AGAIN, 3, 2) in attempts
        assert name == victim or any(record.args == (near, 3) for near in made.members[name].neighbours
                                     for record in caplog.records if "begins again" in record.msg)  # fmt: skip
        paid = [(e.round, e.attempt) for e in made.members[name].purse.ledger.entries("people")]
        spoke = any(key[0] >= Phase.SUM_UP and key[1:] == (3, 1) for key in attempts) or name == victim
        assert paid.count((3, 2)) == spoke and paid.count((3, 1)) == 1
        assert made.members[name].attempts == [1, 1, 1 + spoke, 1, 1, 1]


@pytest.mark.slow
def test_the_secrets_are_the_owners_alone_and_gone_at_the_end(circle):
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    key = made.run_folder("ash") / "run-key"
    secret = key.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600 and (made.run_folder("ash") / "claims").stat().st_mode & 0o777 == 0o600
    assert made.carry()
    for one in made.members.values():
        one.end()
        assert not (one.folder / "run-key").exists()
    made.crash("ash")
    assert not any(secret in file.read_bytes() for file in made.run_folder("ash").rglob("*") if file.is_file())
    again = made.begin("ash").members["ash"]  # whoever has not heard the end can still ask
    assert again.done and again.latest == again.last and again.t == 6


def test_memory_does_not_grow_with_the_rounds(circle, monkeypatch):
    """Frames and totals of a round that all have are in the journal alone; who starts again reads no earlier ones."""
    replay, read = PrivateSum.replay, []

    def reading(self, journal, *known):
        taken = list(journal)
        read.extend(wire.place(frame)[0] for frame in taken)
        return replay(self, taken, *known)

    monkeypatch.setattr(PrivateSum, "replay", reading)
    made = circle({**DESCENT, "rounds": 12}, graph=GRAPHS["path"]).begin()
    for t in (3, 8, 11):
        made.carry(until=lambda t=t: all(one.t >= t for one in made.members.values()))
        for name in NAMES:
            one = made.members[name]
            assert all(round >= one.t for round in one.sum.totals)
            assert {round for _, round, _ in one.sum.frames} <= {0, one.t, one.t + 1}
            at, place, said = one.t, one.sum._pass.place, made.own_frames(name)
            read.clear()
            again = made.again(name).members[name]
            assert set(read) <= {0, *range(at, 14)} and at in read
            assert again.sum._pass.place == place and made.own_frames(name) == said  # nothing is said anew
    assert made.carry()
    assert len({model.tobytes() for model in made.models()}) == 1
    assert np.allclose(made.models()[0], made.simulated()[0], atol=1e-6)


def test_a_key_that_others_could_read_or_that_is_gone_ends_the_run(circle):
    made = circle().begin()
    made.carry(until=lambda: made.members["ash"].t == 2)
    made.crash("ash")
    key = made.run_folder("ash") / "run-key"
    key.chmod(0o640)
    with pytest.raises(ValueError, match="others can read the key of this run"):
        made.begin("ash")
    key.unlink()
    made.crash("ash")
    with pytest.raises(Damaged, match="the key of this run is gone") as gone:
        made.begin("ash")
    assert code_of(gone.value) == Code.DAMAGED


@pytest.mark.slow
def test_a_home_rolled_back_is_refused(circle):
    """The ledger's own word is not needed: the streams that were used are known."""
    made = circle().begin()
    made.carry(until=lambda: made.members["ash"].sent == 2)
    journal = made.members["ash"].journal.path
    old = journal.read_bytes()
    made.carry(until=lambda: made.members["ash"].sent == 4)
    made.crash("ash")
    journal.write_bytes(old)
    with pytest.raises(ValueError, match=r"round 4 was masked and the journal ends at round [23]: an old copy"):
        made.begin("ash")


@pytest.mark.slow
def test_a_neighbour_tells_a_node_whose_home_is_older_than_all_its_files_say(circle):
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].sent == 4)
    one = made.members["ash"]
    shown = one.latest
    assert wire.round_in(shown) == 4 and shown > frames.Place(Phase.SUM_UP, 3, 1).number
    one.admit(frames.Place(Phase.SUM_UP, 6, 1).number)
    assert [e.round for e in one.purse.ledger.entries("people")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_a_lost_member_leaves_the_others_with_the_model_so_far(circle):
    made = circle(seed=None).begin()
    made.carry(until=lambda: all(one.t >= 3 for one in made.members.values()))
    made.crash("elm")
    assert not made.carry()
    models = [made.model(name).coefficients.tobytes() for name in NAMES if name != "elm"]
    rounds = {one.t for one in made.members.values()}
    assert rounds <= {3, 4} and len(set(models)) == len(rounds)
    assert "can't be finished without everyone and stays charged" in made.members["ash"].silenced
    with Ledger(made.folder / "ash" / "ledger.sqlite") as ledger:
        assert len(ledger.entries("people")) == made.members["ash"].sent


@pytest.mark.slow
def test_who_ends_a_run_that_was_given_up_erases_its_key_and_pays_for_what_was_said(circle):
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].sent == 3)
    run, ledger = run_name(made.members["ash"].journal), made.folder / "ash" / "ledger.sqlite"
    made.crash("ash")
    folder = made.run_folder("ash")
    done = CliRunner().invoke(
        app, ["account", "--ledger", str(ledger), "--end", run, "--journal", str(folder), "--json"]
    )
    assert done.exit_code == 0, done.output
    (ended,) = json.loads(done.stdout)["ended"]
    assert ended["rounds"] == 3 and ended["charged_now"] == [] and not (folder / "run-key").exists()
    with pytest.raises(Damaged, match="the key of this run is gone") as gone:
        made.begin("ash")
    assert code_of(gone.value) == Code.DAMAGED


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_an_owners_budget_against_everyone_refuses_what_is_cheap_against_a_few(circle):
    made = circle(seed=None)
    with Ledger(made.folder / "ash" / "ledger.sqlite") as ledger:
        ledger.open_population("people", 3.0, 1e-5)
    with pytest.raises(ValueError, match=r"costs ε=.*of ε=3 at δ=1e-05 for each row ε=3 is left"):
        made.begin("ash")
    assert (made.members["ash"].sent, made.members["ash"].purse.ledger.spent("people")) == (0, 0)


@pytest.mark.slow
def test_who_trusts_nobody_has_one_budget(circle):
    """c = K - 1: every party's own noise is enough, and the masks hide what nobody needs hidden."""
    made = circle({**DESCENT, "collusion": 4, "noise": 1.0}, seed=None).begin()
    assert made.carry()
    (everyone,) = made.members["ash"].purse.ledger.balances("people")
    assert everyone.kind[2] == "network" and everyone.epsilon == 10.0
    models = made.models()
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    assert "collude" not in made.model("ash").privacy.reason


def test_noise_too_small_for_the_grid_that_is_charged_is_refused(circle):
    made = circle({**DESCENT, "noise": 1e-13}, seed=None, budget=(1e13, 1e-5))
    with pytest.raises(ValueError, match="does not fit 64 bits on the grid"):
        made.begin("ash")
