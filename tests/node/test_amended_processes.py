"""Real nodes that sign, wait for signatures, lose a member and change a key while they run."""

import asyncio
import json
from contextlib import suppress

import numpy as np
import pytest
from amending import confide, leave_out, waiting
from village import NAMES, Village
from waiting import wait_for

from confide import Graph
from confide.network.link import Link
from confide.node.agreement import Papers
from confide.node.codes import Code

CDP = {"name": "CDPADMM", "rounds": 60, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}
STAY = [name for name in NAMES if name != "cedar"]
pytestmark = pytest.mark.slow


def alone(village, name):
    """Whether a node is at work and none of its neighbours answers."""
    status = village.status(name)
    return status["state"] == "greeting" and all(one["trouble"] for one in status["neighbours"].values())


def papers(village, name):
    return Papers.of(village.folder / name, village.federation)


def test_a_node_waits_until_every_member_has_signed_and_says_who_has_not(tmp_path):
    with Village(tmp_path, CDP) as village:
        village.start(*(name for name in NAMES if name != "elm"))
        assert wait_for(lambda: (village.status("birch") or {}).get("state") == "agreeing"), village.log("birch")
        assert wait_for(lambda: village.status("birch")["unsigned"] == ["elm"])
        assert village.rounds_sent("birch") == 0
        assert "waits for the signatures of" in village.log("birch") and "elm" in village.log("birch")
        refused = confide(*(a for a in village.arguments("elm") if a != "--agree"), code=2)
        assert "elm has not signed it: read it by `confide federation review`" in refused
        confide("federation", "sign", village.file, "--home", village.folder / "elm", "--yes")
        village.start("elm")
        assert village.join() == dict.fromkeys(NAMES, Code.FINISHED), village.log("birch")
        assert np.array_equal(village.models(), village.simulated())
        assert all(papers(village, name).unsigned() == [] for name in NAMES)


def test_a_lost_site_is_left_out_and_the_others_finish(tmp_path):
    """Cedar dies; ash writes the amendment, the others find it on their own nodes and sign."""
    with Village(tmp_path, {**CDP, "rounds": 400}, patience=0.5) as village:
        village.start()
        assert village.passes("cedar", 5)
        village.kill("cedar")
        last = village.rounds_sent("cedar")
        leave_out(village, "cedar", STAY)
        assert village.join(*STAY) == dict.fromkeys(STAY, Code.FINISHED), village.log("ash")
        for name in STAY:
            assert village.status(name)["left"] == ["cedar"] and village.rounds_sent(name) == 400
            told = village.model(name).origin["contributed"]
            assert told.startswith("ash, birch, doum, elm: rounds 1 to 400; cedar: rounds 1 to ")
            assert abs(int(told.split("1 to ")[2].split(",")[0]) - last) <= 1
            (journal,) = (tmp_path / name).glob("runs/*/journal")
            assert journal.exists()
        village.start("cedar")  # comes back, with all its files
        assert wait_for(lambda: alone(village, "cedar")), village.log("cedar")
        village.kill("cedar")
        assert village.rounds_sent("cedar") <= last + 1
        report = confide("report", tmp_path / "ash", "--output", tmp_path / "report.html")
        assert report and "cedar: rounds 1 to" in (tmp_path / "report.html").read_text()


def test_a_key_is_replaced_in_the_middle_of_a_run_and_the_old_one_refused_at_once(tmp_path):
    """Cedar is away meanwhile, so that the others stand still; it brings its signature on a file."""
    with Village(tmp_path, {**CDP, "rounds": 150}) as village:
        village.start()
        assert village.passes("cedar", 5)
        village.kill("cedar")
        thief = village.identities["elm"]
        card = json.loads(confide("node", "rekey", "--home", tmp_path / "elm", "--json"))["card"]
        amendment = tmp_path / "amendment.toml"
        confide("federation", "amend", village.file, "--home", tmp_path / "elm", "--card", card, "--output", amendment,
                "--yes")  # fmt: skip
        for name in ("ash", "birch", "cedar", "doum"):
            confide("federation", "sign", village.file, "--home", tmp_path / name, "--amendment", amendment, "--yes")
        confide("federation", "sign", village.file, "--home", tmp_path / "doum", "--amendment", amendment, "--papers",
                papers(village, "cedar").path, "--yes")  # fmt: skip
        assert wait_for(lambda: papers(village, "ash").chain and papers(village, "elm").chain), village.log("ash")

        async def steal(name):
            link = Link(thief, village.identities[name].card, village.federation.digest, 1 << 20)
            with suppress(TimeoutError):
                async with asyncio.timeout(3):
                    await link.hello()
            said = link.trouble
            await link.close()
            return said

        def refused(name):
            return asyncio.run(steal(name)) not in ("", "cannot be reached")  # hung up on, in the handshake

        assert wait_for(lambda: refused("doum")) and wait_for(lambda: refused("ash"))
        village.start("cedar")
        assert village.join() == dict.fromkeys(NAMES, Code.FINISHED), village.log("elm")
        now = papers(village, "ash").current
        fresh = now.cards["elm"].digest
        with village.journal("doum") as journal:  # without aliases: frames under both keys
            senders = {sender for sender, _, _ in journal.frames()}
            assert {fresh, thief.card.digest} <= senders
        assert village.model("elm").origin["round"] == 150
        assert np.array_equal(village.models(), village.simulated())  # a key changes nothing in what is learned


def test_signatures_pass_a_member_with_a_new_key_by_nodes_alone(tmp_path):
    """On a path all must go through cedar, whose key changes. Ash signed while it was away, and comes back."""
    with Village(tmp_path, {**CDP, "rounds": 100}, graph=Graph.path(5)) as village:
        village.start()
        assert village.passes("ash", 5)
        village.kill("ash")
        card = json.loads(confide("node", "rekey", "--home", tmp_path / "cedar", "--json"))["card"]
        amendment = tmp_path / "amendment.toml"
        confide("federation", "amend", village.file, "--home", tmp_path / "cedar", "--card", card, "--output",
                amendment, "--yes")  # fmt: skip
        for name in ("birch", "doum", "elm"):
            assert wait_for(lambda name=name: waiting(village, name)), village.log(name)
            change = waiting(village, name)[0][:12]
            confide("federation", "sign", village.file, "--home", tmp_path / name, "--amendment", change, "--yes")
        confide("federation", "sign", village.file, "--home", tmp_path / "ash", "--amendment", amendment, "--yes")
        village.start("ash")
        assert village.join() == dict.fromkeys(NAMES, Code.FINISHED), village.log("elm")
        assert all(papers(village, name).chain for name in NAMES)
        assert np.array_equal(village.models(), village.simulated())
