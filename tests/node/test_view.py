"""What a person at a terminal sees of a node: the live view, `node status` and `node model`, during a run and after."""

import fcntl
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from terminal import WIDTH, Screen, Terminal
from typer.testing import CliRunner
from village import NAMES, Village
from waiting import wait_for

from confide.cli import app
from confide.cli.node_view import status_lines, view
from confide.runs.model import Model

CDP = {"name": "CDPADMM", "rounds": 300, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 16.0}
STATUS = {
    "node": "ash", "federation": "a-rather-long-name-of-a-federation", "run": "0" * 16, "method": "CDPADMM",
    "guarantee": "proven: row gradients are clipped, Gaussian noise is accounted exactly", "rounds": 100, "round": 7,
    "state": "training", "reason": "no answer from birch for 3 s, " * 4, "spent_epsilon": 0.51234,
    "consensus_distance": 0.025, "pid": 1, "updated": 0.0,
    "neighbours": {"birch": {"up": False, "trouble": "refused: " + "another certificate " * 6},
                   "elm": {"up": True, "trouble": ""}},
}  # fmt: skip


def test_a_status_has_80_columns_whatever_it_says():
    text = status_lines(STATUS)
    assert max(map(len, text)) <= WIDTH and "  elm                  up" in text and "  spent ε=0.5123" in text
    assert " ".join(" ".join(text).split()).count("no answer from birch for 3 s,") == 4


@pytest.mark.parametrize(("unsigned", "said"), [
    (["elm"], "round 0: agreeing; waits for the signatures of elm\n"), ([], "round 0: agreeing\n"),
])  # fmt: skip
def test_nobody_is_waited_for_once_all_have_signed(capsys, unsigned, said):
    view(quiet=False).show(SimpleNamespace(state="agreeing", round=0, notice="", neighbours={}, unsigned=unsigned))
    assert capsys.readouterr().err == said


def test_an_infinite_spend_is_valid_json(tmp_path):
    folder = tmp_path / "runs" / STATUS["run"]
    folder.mkdir(parents=True)
    (folder / "journal").touch()
    (folder / "status.json").write_text(json.dumps({**STATUS, "spent_epsilon": float("inf")}))

    def refuse(constant):
        raise AssertionError(constant)

    said = json.loads(call("status", "--home", str(tmp_path), "--json"), parse_constant=refuse)
    assert said["runs"][0]["spent_epsilon"] is None
    assert "spent ε=inf" in call("status", "--home", str(tmp_path))


def test_a_node_that_was_killed_is_not_shown_as_if_it_ran(tmp_path):
    folder = tmp_path / "runs" / STATUS["run"]
    folder.mkdir(parents=True)
    (folder / "journal").touch()

    def said(state, ago):
        changed = {**STATUS, "state": state, "reason": "", "updated": time.time() - ago}
        (folder / "status.json").write_text(json.dumps(changed))
        return " ".join(call("status", "--home", str(tmp_path)).split())

    for ago, shown in ((3600, "36"), (1, "")):  # nobody holds the lock: it does not train, however lately it said so
        text = said("training", ago)
        assert "interrupted, round 7" in text and "training" not in text
        assert re.search(rf"no node is running: this is what it said {shown}\d+ s ago; run it again", text)
    assert "no node" not in said("finished", 3600)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert re.search(r"training, .* running, but no word for 36\d\d s: it may be busy", said("training", 3600))
        assert "no word" not in said("training", 1)


def test_the_screen_of_these_tests_understands_what_it_is_told():
    screen = Screen()
    for part in ("one\r\ntwo\r\nthr", "ee\r\x1b[", "2K\x1b[1A\x1b[2Kzwei\x1b[1;3", "1mx\x1b[0m\x1b[?25l"):
        screen.feed(part)
    assert str(screen) == "one\nzweix" and not screen.cursor and screen.widest == 5


def call(*args):
    out = CliRunner().invoke(app, ["node", *args])
    assert out.exit_code == 0, out.output
    return out.stdout


def see(terminal, *patterns):
    """One and the same screen holds all of these, in time."""

    def seen():
        return all(re.search(p, str(terminal.screen)) for p in patterns)

    assert wait_for(lambda: seen() or terminal.job.poll() is not None, 120) and seen(), str(terminal.screen)


def restored(terminal):
    return terminal.screen.cursor and terminal.after == terminal.before and terminal.screen.widest <= WIDTH


@pytest.mark.slow
def test_a_node_at_a_terminal(tmp_path):
    with Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5), timeout=200.0) as village:
        assert village.federation.guarantee.label == "proven"
        home = str(tmp_path / "ash")
        assert call("status", "--home", home) == f"{home}: no run yet\n"
        assert json.loads(call("status", "--home", home, "--json")) == {"runs": []}
        village.start(*(name for name in NAMES if name not in ("ash", "birch")))
        with Terminal(village.arguments("ash")) as terminal:
            see(terminal, r"ash in village \(\w{16}\): greeting, round 0 of 300", r"birch +down", r"elm +up")
            assert not terminal.screen.cursor
            village.start("birch")
            assert village.passes("ash", 10)
            village.kill("birch")
            see(terminal, r"training, round \d+ of 300", r"guarantee proven", r"spent ε=\d", r"birch +down",
                r"elm +up", r"distance to the neighbours [\d.e-]+ of")  # fmt: skip

            text, document = call("status", "--home", home), json.loads(call("status", "--home", home, "--json"))
            (one,) = document["runs"]
            assert one["state"] == "training" and 10 <= one["round"] < 300 and 0 < one["spent_epsilon"] < 20
            assert one["neighbours"]["elm"]["up"] and not one["neighbours"]["birch"]["up"]
            assert f"training, round {one['round']} of 300" in text and max(map(len, text.splitlines())) <= WIDTH
            assert f"spent ε={one['spent_epsilon']:.4g}" in text and "birch                down" in text
            early = json.loads(call("model", "--home", home))
            assert early["origin"]["round"] == one["round"] and early["origin"]["rounds"] == 300
            assert one["round"] <= early["privacy"]["rounds"] <= one["round"] + 1
            assert early == json.loads(call("model", "--home", home, "--json"))

            terminal.press(b"\x03")
            assert terminal.end() == 130 and restored(terminal)
            assert str(terminal.screen).splitlines()[-1] == "confide: interrupted"
            assert "round" not in str(terminal.screen)  # the view is gone

        with Terminal(village.arguments("ash")) as terminal:
            see(terminal, rf"greeting, round {one['round']} of 300", r"birch +down")
            village.start("birch")
            assert village.join() == {name: 0 for name in NAMES if name != "ash"}
            assert terminal.end() == 0 and restored(terminal)
            screen = str(terminal.screen)
            assert screen.count("ash in village") == 1 and "finished, round 300 of 300" in screen
            assert screen.count("spent ε=") == 1 and "distance to the neighbours" in screen

        said, document = call("status", "--home", home), json.loads(call("status", "--home", home, "--json"))
        assert said.strip() == screen and document["runs"][0]["state"] == "finished"
        saved = str(tmp_path / "model.json")
        assert call("model", "--home", home, "--output", saved) == f"The model is in {saved}\n"
        assert json.loads(call("model", "--home", home, "--output", saved, "--json")) == {"model": saved}
        model = Model.load(saved)
        assert np.array_equal(model.coefficients, village.model("ash").coefficients)
        assert model.origin["round"] == model.privacy.rounds == 300
        assert model.privacy.epsilon == pytest.approx(document["runs"][0]["spent_epsilon"])
