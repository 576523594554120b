"""Members that lie with their own key: they keep others waiting and accuse themselves, and make nobody fail."""

import json

import liar
import numpy as np
import pytest
from typer.testing import CliRunner
from village import NAMES, Village

from confide.cli import app
from confide.network import wire
from confide.node.codes import Code

CDP = {"name": "CDPADMM", "rounds": 30, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}
HONEST = [name for name in NAMES if name != "cedar"]
pytestmark = pytest.mark.slow


def evidence(village, name):
    return sorted((village.run_folder(name) / "evidence").glob("*"))


@pytest.mark.parametrize("noise", [0.1, 0.0], ids=["a public ball", "a method without one"])
def test_a_signed_frame_of_1e308_is_refused_and_kept_as_evidence(tmp_path, noise):
    """Thrice, and then the truth: the run goes on as if nothing had happened."""
    with Village(tmp_path, {**CDP, "noise": noise}) as village:
        village.start(*HONEST)
        liar.start(village, "cedar", ("birch", "doum"), at=5, value=1e308, times=3)
        assert village.join() == dict.fromkeys(NAMES, Code.FINISHED), village.log("birch")
        assert np.array_equal(village.models(), village.simulated())
        for name in ("birch", "doum"):
            frame, why = evidence(village, name)
            assert "public ball" in why.read_text() or "norm" in why.read_text()
            wire.authentic(frame.read_bytes(), village.identities["cedar"].card, village.federation.digest)
            assert "public ball" in village.status(name)["neighbours"]["cedar"]["misbehaved"]
            assert "cedar misbehaves" in village.log(name)
        assert evidence(village, "ash") == []


def test_who_goes_on_lying_keeps_its_neighbours_waiting_and_no_more(tmp_path):
    with Village(tmp_path, CDP, timeout=20.0) as village:
        village.start(*HONEST)
        liar.start(village, "cedar", ("birch", "doum"), at=5, value=np.nan)
        codes = village.join(*HONEST)
        assert codes == dict.fromkeys(HONEST, Code.TIMEOUT)
        status = village.status("birch")
        assert status["state"] == "stopped" and "cedar frame holds a value that is not finite" in status["reason"]
        assert status["round"] == 4 and "diverged" not in village.log("birch")


def test_equivocation_stops_everyone_with_evidence(tmp_path):
    """Two neighbours told different things: all four others stop, each with two valid signatures, and stay stopped."""
    with Village(tmp_path, CDP) as village:
        village.start(*HONEST)
        liar.start(village, "cedar", ("doum",), at=5, value=-0.01)
        assert village.join(*HONEST) == dict.fromkeys(HONEST, Code.MISBEHAVIOUR), village.log("ash")
        for name in HONEST:
            (file,) = evidence(village, name)
            found = json.loads(file.read_text())
            assert (found["name"], found["round"]) == ("cedar", 5)
            card, run = village.identities["cedar"].card, village.federation.digest
            statements = [bytes.fromhex(one) for one in found["statements"]]
            assert statements[0][:32] != statements[1][:32]
            assert all(wire.stated(one, card, run, 5, found["numbers"]) for one in statements)
            assert village.status(name)["round"] <= 5 + village.graph.diameter
            assert "cedar signed two different messages for round 5" in village.status(name)["reason"]
        village.start("ash")
        assert village.join("ash") == {"ash": Code.MISBEHAVIOUR}
        done = CliRunner().invoke(app, ["node", "compare", str(tmp_path / "birch"), str(tmp_path / "doum")])
        assert done.exit_code == Code.MISBEHAVIOUR
        assert "cedar signed two different messages for round 5" in done.output
        done = CliRunner().invoke(app, ["node", "compare", str(tmp_path / "ash"), str(tmp_path / "birch"), "--json"])
        assert done.exit_code == 0 and json.loads(done.output)["lies"] == []
