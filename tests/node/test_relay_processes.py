"""Members behind firewalls: three of five take no connections at all, and the relay is killed in the middle."""

import asyncio
import json
import os
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import nursery
import pytest
from amending import confide
from village import NAMES, Village
from waiting import wait_for

from confide.files import write_whole
from confide.network.dialling import Ways
from confide.network.identity import Identity
from confide.node import federation as federations
from confide.node.agreement import Papers

CDP = {"name": "CDPADMM", "rounds": 600, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}
BEHIND = ("cedar", "doum", "elm")
pytestmark = pytest.mark.slow


def listening(pid):
    """How many TCP sockets a process listens on."""
    held = set()
    for file in os.listdir(f"/proc/{pid}/fd"):
        try:
            held |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{file}")))
        except FileNotFoundError:  # closed meanwhile
            continue
    tables = {kind: Path(f"/proc/{pid}/net/{kind}").read_text() for kind in ("tcp", "tcp6")}
    lines = [line.split() for kind in tables for line in tables[kind].splitlines()[1:]]
    return sum(line[3] == "0A" and line[9] in held for line in lines)


def ways(village, name):
    """How a node reaches its neighbours."""
    return {other: one["way"] for other, one in village.status(name)["neighbours"].items()}


def test_five_members_three_without_a_port_and_the_relay_killed_twice(tmp_path):
    """Inbound is blocked for three: they listen nowhere. The run is, to the last bit, that of the simulator."""
    with Village(tmp_path, CDP, outbound=BEHIND) as village:
        village.start("relay", *NAMES)
        assert village.passes("doum", 5), village.log("doum")
        assert [listening(village.jobs[name].pid) for name in NAMES] == [1, 1, 0, 0, 0]
        assert wait_for(lambda: ways(village, "ash") == {"birch": "straight", "elm": "relay"}), village.status("ash")
        assert wait_for(lambda: ways(village, "cedar") == {"birch": "straight", "doum": "relay"})
        assert wait_for(lambda: ways(village, "elm") == {"ash": "straight", "doum": "relay"})
        for at in (20, 220):
            assert village.passes("doum", at), village.log("doum")
            village.kill("relay")
            before = village.rounds_sent("doum")
            village.start("relay")
            assert village.passes("doum", before), village.log("doum")
        assert village.join(*NAMES) == dict.fromkeys(NAMES, 0)
        assert np.array_equal(village.models(), village.simulated())
        assert village.check_messages() == 5 * 2 * 600
        village.kill("relay", how=15)
        assert village.jobs["relay"].exitcode == 0 and "calls" in village.log("relay")
        assert "Traceback" not in "".join(village.log(name) for name in ("relay", *NAMES))


def test_a_key_is_replaced_behind_the_relay_which_is_not_started_again(tmp_path):
    """Elm takes no connections. Birch is away meanwhile, so that nobody trains; signatures are handed on as a file."""

    def papers(name):
        return Papers.of(tmp_path / name, village.federation)

    async def knock(identity):
        said = []
        ways = Ways(identity, village.federation.digest, village.federation.relay)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                await ways.attend(lambda called: None, said.append)
        return said

    with Village(tmp_path, {**CDP, "rounds": 60}, outbound=BEHIND) as village:
        for name in NAMES:
            papers(name).sign(village.identities[name])
        handed, old, usual = tmp_path / "handed.json", village.identities["elm"], village.arguments
        write_whole(handed, papers("elm").path.read_bytes())
        village.arguments = lambda name, file=None: [
            *usual(name, file), *(["--papers", str(handed)] if name == "relay" else [])
        ]  # fmt: skip
        village.start("relay", "ash", "cedar", "doum", "elm")
        assert wait_for(lambda: (village.status("elm") or {}).get("relay") == "up"), village.log("elm")
        card = json.loads(confide("node", "rekey", "--home", tmp_path / "elm", "--json"))["card"]
        amendment = tmp_path / "amendment.toml"
        confide("federation", "amend", village.file, "--home", tmp_path / "elm", "--card", card, "--output", amendment,
                "--yes")  # fmt: skip
        before = "elm"
        for name in (
            "birch",
            "ash",
            "cedar",
            "doum",
            "elm",
            "birch",
            "ash",
            "cedar",
        ):  # the file goes around: all have all
            confide("federation", "sign", village.file, "--home", tmp_path / name, "--amendment", amendment, "--papers",
                    papers(before).path, "--yes")  # fmt: skip
            before = name
        assert all(papers(name).chain for name in NAMES)
        assert wait_for(lambda: village.status("elm")["relay"] not in ("", "up")), village.status("elm")
        write_whole(handed, papers("elm").path.read_bytes())
        assert wait_for(lambda: village.status("elm")["relay"] == "up"), village.log("relay")
        assert "village: amendment 1 is in force" in village.log("relay")
        said = asyncio.run(knock(old))
        assert said and "up" not in said
        village.start("birch")
        assert village.join(*NAMES) == dict.fromkeys(NAMES, 0), village.log("elm")
        assert np.array_equal(village.models(), village.simulated())


def test_a_relay_serves_federations_that_name_it(tmp_path):
    with Village(tmp_path, CDP, outbound=BEHIND) as village:
        Identity.create(tmp_path / "other", "relay", "127.0.0.1:7999")
        for home, words in (("other", "names another relay"), ("none", "holds no node")):
            arguments = ["relay", "--federation", str(village.file), "--home", str(tmp_path / home)]
            job = nursery.start(arguments, tmp_path / f"{home}.log")
            job.join(30)
            assert job.exitcode == 2 and words in (tmp_path / f"{home}.log").read_text()


def test_who_takes_no_connections_needs_a_relay_and_old_files_keep_their_hash(tmp_path):
    village = Village(tmp_path, CDP, outbound=BEHIND)
    document = {**village.document}
    assert federations.from_document(document).relay.name == "relay"
    card = document.pop("relay")
    with pytest.raises(ValueError, match="'cedar' takes no connections, so the federation must name a relay"):
        federations.from_document(document)
    with pytest.raises(ValueError, match="relay: address 'relay': must be host:port"):
        federations.from_document({**document, "relay": {**card, "address": "relay"}})
    with pytest.raises(ValueError, match=r"unknown field relay\.rows"):
        federations.from_document({**document, "relay": {**card, "rows": 4}})
