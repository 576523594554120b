"""Private sums of real processes on loopback with mutual TLS: one model for all, whatever happens to them meanwhile."""

import os
import re
import time

import numpy as np
import nursery
import pytest
from typer.testing import CliRunner
from village import NAMES, Village

import confide
from confide.cli import app
from confide.network.frames import Phase, Place
from confide.network.wire import SEAL_SIZE, round_in, seal
from confide.node.caps import promise
from confide.node.codes import Code
from confide.privacy.ledger import Ledger

DESCENT = {"name": "JointDescent", "rounds": 30, "noise": 0.5, "first": "moments"}
FINISHED = dict.fromkeys(NAMES, Code.FINISHED)
pytestmark = pytest.mark.slow


def frames_of(village):
    """Every frame that anyone received is its sender's, byte for byte, or by its seal if it is shortened; how many."""
    own, heard = {}, 0
    for name, identity in village.identities.items():
        with village.journal(name) as journal:
            own |= {(s, n): f for s, n, f in journal.frames() if s == identity.card.digest}
    for name, identity in village.identities.items():
        with village.journal(name) as journal:
            for sender, number, frame in journal.frames():
                both = own[sender, number], frame
                assert both[0] == frame or (min(map(len, both)) == SEAL_SIZE and seal(both[0]) == seal(frame))
                heard += sender != identity.card.digest
    return heard


@pytest.mark.parametrize("graph", [confide.Graph.ring(5), confide.Graph.star(5)], ids=["ring", "star"])
def test_five_processes_learn_the_simulators_model(tmp_path, graph):
    with Village(tmp_path, DESCENT, graph=graph) as village:
        village.start()
        assert village.join() == FINISHED, village.log("ash")
        models = village.models()
        assert all(model.tobytes() == models[0].tobytes() for model in models)
        assert np.max(np.abs(models - village.simulated())) <= 1e-6 * np.max(np.abs(models))
        assert frames_of(village) == 8 * (30 + 3)  # four links, two frames each, a round and three times besides
        assert not list(tmp_path.glob("*/runs/*/run-key"))


def run_compacting(arguments, log):
    """A node that leaves out what it can after every total."""
    from confide.node import compaction

    compaction.LEAST, compaction.SHARE = -(1 << 20), -np.inf
    nursery.run_node(arguments, log)


@pytest.mark.parametrize("compacting", [False, True], ids=["", "compacting"])
def test_killed_members_resume_and_the_model_is_the_same_for_all(tmp_path, compacting):
    """With secure noise and a ledger; every kill at another moment."""
    rng = np.random.default_rng(1)
    with Village(tmp_path, {**DESCENT, "rounds": 120}, seed=None, budget=(30.0, 1e-5),
                 graph=confide.Graph.path(5)) as village:  # fmt: skip
        village.document["budget"]["restarts"] = 6
        village.file = village.write("federation.toml", village.document)
        village.federation = confide.node.federation.load(village.file)

        def start(*names):
            if not compacting:
                return village.start(*names)
            for name in names:
                arguments = (village.arguments(name), str(tmp_path / f"{name}.log"))
                village.jobs[name] = nursery.CONTEXT.Process(target=run_compacting, args=arguments, daemon=True)
                village.jobs[name].start()

        start(*NAMES)
        for victim in ("cedar", "ash", "doum", "elm", "birch", "cedar"):
            before = village.rounds_sent(victim)
            assert village.passes(victim, before + 4096, 60), village.log(victim)
            village.kill(victim)
            time.sleep(rng.uniform(0, 0.1))
            start(victim)
        assert village.join() == FINISHED, village.log("cedar")
        models = village.models()
        assert all(model.tobytes() == models[0].tobytes() for model in models)
        assert frames_of(village) >= 8 * (120 + 3)
        for name in NAMES:
            with Ledger(tmp_path / name / "ledger.sqlite") as ledger:
                entries = ledger.entries(name)
                assert {e.round for e in entries} == set(range(1, 121)) and len(entries) <= 126
            with village.journal(name) as journal:
                assert journal.horizon == (119 if compacting else 0)


def run_until(arguments, log, t):
    """A node that dies between the claim of round t's streams and the journal."""
    from confide.network.masking import ClaimFile

    claim = ClaimFile.claim

    def last(self, round, attempt):
        claim(self, round, attempt)
        if round == t:
            os._exit(9)

    ClaimFile.claim = last
    nursery.run_node(arguments, log)


@pytest.mark.parametrize("victim", ["ash", "cedar"], ids=["leaf", "root"])
def test_a_message_lost_before_the_journal_begins_the_round_again_over_the_network(tmp_path, victim):
    with Village(tmp_path, DESCENT, graph=confide.Graph.path(5)) as village:
        village.start(*(name for name in NAMES if name != victim))
        arguments = (village.arguments(victim), str(tmp_path / f"{victim}.log"), 12)
        village.jobs[victim] = nursery.CONTEXT.Process(target=run_until, args=arguments, daemon=True)
        village.jobs[victim].start()
        assert village.join(victim) == {victim: 9}
        village.start(victim)
        assert village.join() == FINISHED, village.log("birch")
        models = village.models()
        assert all(model.tobytes() == models[0].tobytes() for model in models)
        assert np.max(np.abs(models - village.simulated())) <= 1e-6 * np.max(np.abs(models))
        for name in NAMES:
            with village.journal(name) as journal:
                assert journal.get(village.identities[name].card.digest, Place(Phase.AGAIN, 12, 2).number)
        frames_of(village)


def test_without_one_member_the_run_ends_with_the_model_so_far_and_goes_on_when_it_is_back(tmp_path):
    with Village(tmp_path, {**DESCENT, "rounds": 60}, timeout=20.0) as village:
        village.start()
        assert village.passes("elm", Place(Phase.SUM_UP, 10, 1).number)
        village.kill("elm")
        others = [name for name in NAMES if name != "elm"]
        assert village.join(*others) == dict.fromkeys(others, Code.TIMEOUT)
        for name in others:
            reason = village.status(name)["reason"]
            assert "no answer from" in reason and "can't be finished without everyone and stays charged" in reason
            assert 9 <= village.model(name).origin["round"] < 60
        village.start()
        assert village.join() == FINISHED, village.log("ash")
        assert np.max(np.abs(village.models() - village.simulated())) <= 1e-6 * np.max(np.abs(village.models()))


def test_an_older_copy_of_a_home_is_refused_by_its_neighbours_word(tmp_path):
    """Journal, claims and key of an earlier moment: nothing in the home tells; the parent has what was sent since."""
    with Village(tmp_path, {**DESCENT, "rounds": 200}, graph=confide.Graph.star(5)) as village:
        village.start()
        assert village.passes("elm", Place(Phase.SUM_UP, 5, 1).number)
        village.kill("elm")
        folder = village.run_folder("elm")
        old = {name: (folder / name).read_bytes() for name in ("journal", "claims")}
        village.start("elm")
        assert village.passes("elm", Place(Phase.SUM_UP, round_in(village.rounds_sent("elm")) + 5, 1).number)
        village.kill("elm")
        for name, data in old.items():
            (folder / name).write_bytes(data)
        village.start("elm")
        assert village.join("elm") == {"elm": Code.REFUSED}
        assert "an old copy would release other noise for the same rounds" in village.log("elm")


def test_status_model_account_and_report_say_whom_one_trusts(tmp_path):
    with Village(tmp_path, {**DESCENT, "rounds": 5}, seed=None, budget=(10.0, 1e-5)) as village:
        village.start()
        assert village.join() == FINISHED, village.log("ash")
        line = promise(village.federation)
        assert line.startswith("ε = ") and "if at most 2 of 5 collude" in line
        home, ledger = ["--home", str(tmp_path / "ash")], ["--ledger", str(tmp_path / "ash" / "ledger.sqlite")]
        say = CliRunner(env={"COLUMNS": "80"}).invoke
        status = say(app, ["node", "status", *home]).stdout
        few, alone = (f"{float(e):.4g}" for e in re.findall(r"ε = ([0-9.]+)", line))
        assert line in " ".join(status.split()) and f"spent ε={few}, against all others together ε={alone}" in status
        assert line in village.model("ash").privacy.reason
        account = say(app, ["account", *ledger]).stdout
        assert "outsiders and any 2 of 5 parties together" in " ".join(account.split())
        page = tmp_path / "report.html"
        done = say(app, ["report", str(tmp_path / "ash"), "--output", str(page)])
        assert done.exit_code == 0, done.output
        assert line in page.read_text()
