"""A report from a node's folder: its own spend and rounds, from the journal, without reading a row."""

import json

import numpy as np
import pytest
from circle import Circle
from loading import loaded, modules
from test_member import SECURE, close, neighbours, trainer
from typer.testing import CliRunner
from village import NAMES, SIZES, Village

from confide import report
from confide.cli import app
from confide.network import frames
from confide.network.frames import Phase, Place
from confide.network.identity import Identity
from confide.node import daemon
from confide.privacy import totals
from confide.report.node import subject


def trained(folder, rounds):
    """Ash's home after so many rounds; its rows are gone."""
    village = Village(folder, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    member.open()
    member.begin()
    for t in range(1, rounds + 1):
        member.step(neighbours(village, member, t))
    paid = [event for entry in member.purse.prices[: member.sent] for event in entry]
    (cost,) = totals(paid, 1e-5).values()
    close(member)
    run = village.run_folder("ash")
    (run / daemon.FEDERATION).write_text(village.file.read_text())
    (folder / "ash.npz").unlink()
    return village, float(cost)


def test_the_page_shows_what_the_purse_paid(tmp_path):
    village, cost = trained(tmp_path, 4)
    page = tmp_path / "page.html"
    out = CliRunner().invoke(app, ["report", str(tmp_path / "ash"), "--output", str(page), "--json"])
    document = json.loads(out.stdout)
    assert document["guarantee"] == "proven" and not document["simulated"] and document["rounds"] == 4
    found = subject(tmp_path / "ash")
    assert found.first.total[NAMES.index("ash")] == pytest.approx(cost)
    assert found.run.setting.sizes == SIZES and found.run.id == village.federation.digest.hex()[:16]
    text = page.read_text()
    assert "<h1>village: ash</h1>" in text and "protects nobody" not in text and "chart-metric-distance" in text
    assert all(name in text for name in NAMES) and "ash (this party)" in text
    assert np.isfinite(found.run.history["distance"]).all()


def test_a_run_under_way_shows_the_rounds_sent_so_far(tmp_path):
    _, cost = trained(tmp_path, 2)
    found = subject(tmp_path / "ash")
    assert found.run.rounds == 2 and len(found.run.privacy.events) == 3  # the third is sent, and paid for
    assert found.first.total[0] == pytest.approx(cost)
    assert "2 of 4 complete, 3 sent and paid for" in report.page(found)


def test_a_model_and_a_report_need_neither_the_daemon_nor_the_compiler(tmp_path):
    trained(tmp_path, 2)
    words = ("node", "model", "--home", str(tmp_path / "ash"))
    assert "confide.node.daemon" not in modules(*words) and loaded(*words) <= {"scipy.special", "scipy.sparse"}
    page = ("--output", str(tmp_path / "report.html"))
    assert not loaded("report", str(tmp_path / "ash"), *page) & {"numba", "networkx", "scipy.spatial"}


def test_before_the_first_round_is_complete_there_is_no_picture_of_it(tmp_path):
    trained(tmp_path, 0)
    found = subject(tmp_path / "ash")
    assert found.run.history == {} and "No metric was recorded that may be shown" in report.page(found)


@pytest.mark.parametrize("first", ["gradient", "moments"])
def test_of_a_private_sum_the_page_shows_how_the_model_moved_and_what_is_left_to_see(tmp_path, first):
    """Both from what everybody has: the sums in the journal, and the model after each of them."""
    algorithm = {"name": "JointDescent", "rounds": 12, "noise": 0.5, "first": first, "collusion": 2}
    made = Circle(tmp_path, algorithm, budget=(20.0, 1e-5)).begin()
    member, models = made.members["ash"], [np.array(made.members["ash"].estimate)]
    while not all(one.done for one in made.members.values()):
        count = len(made.heard)
        made.carry(until=lambda count=count: len(made.heard) > count)
        if member.t == len(models):
            models.append(np.array(member.estimate))
    made.close()
    found = subject(tmp_path / "ash").run.history
    rounds = range(1 if first == "gradient" else 2, 13)  # moments move nothing
    assert found["round"].tolist() == [*rounds]
    assert found["moved"] == pytest.approx([np.linalg.norm(models[t] - models[t - 1]) for t in rounds], rel=1e-9)
    with made.journal("ash") as journal:
        above = made.identities[NAMES[max(member.tree.parent[0], 0)]].card.digest
        down = [journal.frame(above, Place(Phase.SUM_DOWN, t, 1).number) for t in rounds]
    # a party's noise has 2^26 steps in every round, so that of the sum has √5 times as many, in each of 4 numbers
    lengths = [np.linalg.norm(np.frombuffer(frames.payload_of(frame), "<i8").astype(float)) for frame in down]
    assert found["signal"] == pytest.approx(np.array(lengths) / (2**26 * np.sqrt(5 * 4)), rel=1e-9)
    text = report.page(subject(tmp_path / "ash"))
    assert "chart-metric-moved" in text and "chart-metric-signal" in text and "chart-metric-distance" not in text


def test_a_home_without_a_run_is_one_line(tmp_path):
    Identity.create(tmp_path / "elm", "elm", "127.0.0.1:1")
    out = CliRunner().invoke(app, ["report", str(tmp_path / "elm"), "-o", str(tmp_path / "page.html")])
    assert out.exit_code == 2 and out.stderr.count("\n") == 1 and "no run of a node" in out.stderr
