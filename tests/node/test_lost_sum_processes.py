"""Real nodes that learn by private sums and lose a member: the others sign, go on, and are killed meanwhile."""

import json
import re

import hasty
import numpy as np
import pytest
from plain_descent import expected
from typer.testing import CliRunner
from village import NAMES, Village
from waiting import wait_for

import confide
from confide.cli import app
from confide.network import wire
from confide.network.frames import Phase, Place
from confide.node import federation as federations
from confide.node.agreement import Papers
from confide.node.caps import promise
from confide.node.codes import Code
from confide.privacy.ledger import Ledger

DESCENT = {"name": "JointDescent", "rounds": 40, "noise": 0.5, "first": "gradient", "collusion": 2}
pytestmark = pytest.mark.slow


def command(*args, code=0):
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(a) for a in args])
    assert done.exit_code == code, done.output
    return done.output


def waiting(village, name):
    """Hashes of the amendments that wait for signatures at a member."""
    said = json.loads(command("federation", "review", village.file, "--home", village.folder / name, "--json"))
    return [one["hash"] for one in said["pending"]]


def village_of(folder, **options):
    made = Village(folder, DESCENT, patience=0.5, **options)
    made.document["budget"]["restarts"] = 8
    made.file = made.write("federation.toml", made.document)
    made.federation = federations.load(made.file)
    return made


def lost(village, name, at):
    """The member dies in the middle of a round, and the others have stood still for longer than their patience."""
    village.start()
    assert village.passes(name, Place(Phase.SUM_UP, at, 1).number), village.log(name)
    village.kill(name)
    journals = [village.run_folder(one) / "journal" for one in NAMES if one != name]

    def still():
        before = [path.stat().st_mtime for path in journals]
        wait_for(lambda: False, 1.0)
        return before == [path.stat().st_mtime for path in journals]

    assert wait_for(still, 60)


def missing(village, name):
    """Who has not signed the amendment that waits at a member."""
    return [
        who for one in Papers.of(village.folder / name, village.federation).pending.values() for who in one.unsigned
    ]


def in_force(village, name):
    return Papers.of(village.folder / name, village.federation).current


def stages(village, name):
    """The stage of every own frame, and that numbers rise."""
    mine = village.identities[name].card.digest
    with village.journal(name) as journal:
        numbers = [number for sender, number in journal.numbers() if sender == mine]
    assert numbers == sorted(set(numbers))
    return {wire.stage_in(number) for number in numbers}


@pytest.mark.parametrize("gone", ["cedar", "ash"], ids=["an inner member", "the root"])
def test_the_others_sign_go_on_and_learn_what_the_amendment_implies(tmp_path, gone):
    """Nodes that run find the amendment by themselves, on links that sums do not take, too."""
    stay = [name for name in NAMES if name != gone]
    with village_of(tmp_path, timeout=90.0) as village:
        lost(village, gone, 8)
        first, *others = stay
        command("federation", "amend", village.file, "--home", tmp_path / first, "--without", gone, "--yes")
        for name in others:
            assert wait_for(lambda name=name: waiting(village, name), 60), name
            one = waiting(village, name)[0]
            command("federation", "sign", village.file, "--home", tmp_path / name, "--amendment", one[:12], "--yes")
        assert village.join(*stay) == dict.fromkeys(stay, Code.FINISHED), village.log(first)
        now = in_force(village, first)
        told = {village.model(name).origin["contributed"] for name in stay}
        assert len(told) == 1
        last = int(told.pop().split(f"{gone}: rounds 1 to ")[1].split(",")[0])
        assert 7 <= last < 40
        truth = expected(now, [0] * last + [1] * (40 - last))
        for name in stay:
            model = village.model(name).coefficients.ravel()
            assert np.max(np.abs(model - truth)) <= 1e-6 * np.max(np.abs(truth))
            assert stages(village, name) == {0, 1} and village.status(name)["left"] == [gone]
        hasty.start(village, gone, seconds=15.0)  # comes back, with all its files
        assert village.join(gone, seconds=200) == {gone: Code.TIMEOUT}
        assert re.search(r"no answer from .+ for 15 s", village.status(gone)["reason"])
        assert stages(village, gone) == {0}


def test_killed_at_every_step_of_the_amendment_nothing_is_free_and_all_learn_the_same(tmp_path):
    """With secure noise and ledgers: after every signature, and after every round that follows, another one dies."""
    gone, stay = "doum", [name for name in NAMES if name != "doum"]
    with village_of(tmp_path, timeout=900.0, seed=None, budget=(60.0, 1e-5), graph=confide.Graph.path(5)) as village:
        lost(village, gone, 5)
        amendment = tmp_path / "amendment.toml"
        said = command("federation", "amend", village.file, "--home", tmp_path / "ash", "--without", gone, "--yes",
                       code=2)  # fmt: skip
        assert "falls apart into" in said and "--edge" in said
        command("federation", "amend", village.file, "--home", tmp_path / "ash", "--without", gone, "--edge",
                "cedar,elm", "--output", amendment, "--yes")  # fmt: skip
        for signer, victim in (("birch", "ash"), ("cedar", "birch"), ("elm", "cedar")):
            command("federation", "sign", village.file, "--home", tmp_path / signer, "--amendment", amendment, "--yes")
            village.kill(victim)
            village.start(victim)
        page = " ".join(command("federation", "review", village.file, "--home", tmp_path / "elm").split())
        assert "abandoned and stays charged" in page or "if at most 2 of 4 collude" in page
        assert wait_for(lambda: missing(village, "ash") == ["elm"], 300), missing(village, "ash")
        for name, other in (("ash", "elm"), ("elm", "ash")):  # elm was behind the lost one: signatures come on a file
            command("federation", "sign", village.file, "--home", tmp_path / name, "--amendment", amendment,
                    "--papers", Papers.of(tmp_path / other, village.federation).path, "--yes")  # fmt: skip
        for victim in ("elm", "cedar", "ash", "birch"):
            goal = max((1 << 32) + 1, village.rounds_sent(victim) + 1)
            assert village.passes(victim, goal, 300), village.log(victim)
            village.kill(victim)
            village.start(victim)
        assert village.join(*stay, seconds=600) == dict.fromkeys(stay, Code.FINISHED), village.log("ash")
        models = [village.model(name).coefficients for name in stay]
        assert all(model.tobytes() == models[0].tobytes() for model in models)
        now = in_force(village, "ash")
        assert promise(now).count("if at most 2 of 4 collude") == 1
        for name in stay:
            draws = 0
            with village.journal(name) as journal:
                mine = village.identities[name].card.digest
                draws = sum(journal.draws(mine))
                spoke = [n for s, n in journal.numbers() if s == mine and journal.attempt(mine, n)]
            with Ledger(tmp_path / name / "ledger.sqlite") as ledger:
                entries, balances = ledger.entries(name), ledger.balances(name)
            assert len(entries) >= draws >= len(spoke) and {e.round for e in entries} == set(range(1, 41))
            least = [0.0, 0.0]  # in closed form: every message that was made, against everyone and against two
            for number in spoke:
                terms = now.stages[wire.stage_in(number)]
                k = terms.parties.index(name)
                delta = 2 * 0.5 / terms.sizes[name]
                sigma = float(terms.algorithm.noise_scale(wire.round_in(number), terms.public.at(k))[0, 0])
                h = len(terms.parties) - 2
                least = [least[0] + (delta / sigma) ** 2, least[1] + (delta / sigma) ** 2 / h]
            assert [b.spent >= low for b, low in zip(balances, least, strict=True)] == [True, True]
        status = " ".join(command("node", "status", "--home", tmp_path / "ash").split())
        assert promise(now) in status
        command("report", tmp_path / "ash", "--output", tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text()
        assert promise(now) in text and "doum: rounds 1 to" in text
