"""How a neighbour stands, told alike by status, live page, metrics and log: who finished and left is not down."""

import asyncio
import json
from datetime import datetime
from types import SimpleNamespace

import pytest
from test_member import SECURE, close, trainer
from village import Village

from confide.cli.node_log import json_log
from confide.cli.node_view import since, status_lines, view
from confide.node import daemon
from confide.node import status as statuses
from confide.node.agreement import Papers
from confide.node.outlook import Outlook


def told(village, *, finished, left, state="finished"):
    """The status that ash writes, read back: birch has said or not that it has it all, and its connection is gone."""
    member = trainer(village)
    member.open()

    async def body():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
        for link in node.links.values():
            link.way, link._channel = "relay", SimpleNamespace(closed=False)
        node.links["birch"]._channel.closed = left
        if finished:
            node.server.finished.add("birch")
        node.status.state = state
        node._report(0.5)
        return node.status

    status = asyncio.run(body())
    close(member)
    read = daemon.read_status(village.run_folder("ash"))
    assert read["neighbours"] == status.neighbours
    return status, read


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))


@pytest.mark.parametrize("left", [False, True], ids=["still there", "gone before the last status"])
@pytest.mark.parametrize("state", ["serving", "finished"])
def test_who_has_it_all_is_finished_whether_it_left_first_or_not(village, left, state, capsys):
    exposition = pytest.importorskip("confide.node.metrics").exposition
    status, read = told(village, finished=True, left=left, state=state)
    assert "  birch                finished, was reached through the relay" in status_lines(read)
    assert "  elm                  up through the relay" in status_lines(read)

    outlook = Outlook(village.federation, "ash")
    outlook.show(status)
    shown = {name: (one["standing"], one["shown"]) for name, one in outlook.state()["neighbours"].items()}
    assert shown == {
        "birch": ("finished", "finished, was reached through the relay"), "elm": ("up", "up through the relay")
    }  # fmt: skip
    metrics = exposition(outlook.state()).decode()
    assert 'confide_neighbour_finished{neighbour="birch"} 1.0' in metrics
    assert 'confide_neighbour_finished{neighbour="elm"} 0.0' in metrics
    assert f'confide_neighbour_up{{neighbour="birch"}} {float(not left)}' in metrics  # whether it answers

    with json_log() as log:
        log.show(status)
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (birch,) = [one for one in said if one.get("neighbour") == "birch"]
    assert birch["level"] == "info" and birch["finished"] is True and birch["way"] == "relay"
    with view(quiet=False) as shown:
        shown.show(status)
    assert "birch" not in capsys.readouterr().err  # nobody is missed


def test_who_left_without_a_word_is_down(village):
    status, read = told(village, finished=False, left=True, state="serving")
    (said,) = [line for line in status_lines(read) if line.startswith("  birch")]
    came = datetime.strptime(said, "  birch                down since %Y-%m-%d %H:%M:%S").timestamp()
    assert came == int(read["neighbours"]["birch"]["since"]) and read["updated"] - 60 < came <= read["updated"]
    outlook = Outlook(village.federation, "ash")
    outlook.show(status)
    assert outlook.state()["neighbours"]["birch"]["shown"] == "down"


def test_since_when_is_the_time_of_the_last_change(monkeypatch):
    """Whether it came or went; why it is down may change meanwhile."""
    now, link = [100.0], SimpleNamespace(up=False, trouble="", misbehaved="", way="")
    monkeypatch.setattr(statuses.time, "time", lambda: now[0])
    one, found = None, []
    for at, up, trouble in (
        (100, False, ""),
        (110, False, "hung up"),
        (120, True, ""),
        (130, True, ""),
        (140, False, ""),
    ):
        now[0], link.up, link.trouble = float(at), up, trouble
        one = statuses.seen(link, False, one)
        found.append(one["since"])
    assert found == [100, 100, 120, 120, 140]


def test_a_status_of_an_older_version_is_read():
    from confide.node.status import standing_and_way

    assert standing_and_way({"up": True, "trouble": ""}) == "up"
    assert standing_and_way({"up": False, "trouble": "", "way": "relay"}) == "down"
    assert since({"up": False, "trouble": ""}) == ""


def test_papers_that_are_not_taken_are_shown_with_the_reason_until_better_ones_come(village):
    """Whatever a neighbour showed: in the status, on the page and as a metric, not in the log alone."""
    pytest.importorskip("prometheus_client")
    from confide.node.metrics import exposition

    member = trainer(village)
    member.open()
    outlook = Outlook(village.federation, "ash")
    hostile = json.dumps({"signatures": {"elm": "00" * 64}, "amendments": []}).encode()

    async def body():
        papers = Papers.of(village.folder / "ash", village.federation)
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal,
                             show=outlook.show, papers=papers)  # fmt: skip
        for answer, refused in ((hostile, True), (papers.pack(), False)):
            await node.courier._take("birch", answer)
            node._report(0.5)
            said = "papers of birch are not taken: a signature under the file that 'elm' did not make"
            text = " ".join(" ".join(status_lines(daemon.read_status(village.run_folder("ash")))).split())
            assert (said in text) == refused
            assert outlook.state()["papers"] == ({"birch": said.partition(": ")[2]} if refused else {})
            shown = exposition(outlook.state()).decode()
            assert f'confide_neighbour_papers_refused{{neighbour="birch"}} {refused:.1f}' in shown
            assert 'confide_neighbour_papers_refused{neighbour="elm"} 0.0' in shown

    asyncio.run(body())
    close(member)
