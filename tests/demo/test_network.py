"""`make demo-network`: what it writes is what the other demo simulates, and the whole story ends well."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from confide.cli import app
from confide.demo import cohort as data
from confide.demo import network as demo_network
from confide.demo.simulated import COHORT
from confide.runs.model import Model
from confide.schema.check import check
from confide.schema.reader import ingest
from confide.schema.schema import Schema


def test_the_files_hold_the_demos_cohort(tmp_path):
    sizes = demo_network.write_hospitals(tmp_path, 400)
    cohort, schema = data.cohort(COHORT, 400), Schema.load(tmp_path / "schema.toml")
    assert schema == demo_network.schema() and schema.features == cohort.features
    assert [sizes[name] for name in demo_network.NAMES] == [188, 116, 62, 24, 10]  # the shares, of 400
    found = [ingest(tmp_path / f"{name}.csv", schema, tmp_path / "work", party=name) for name in demo_network.NAMES]
    X, y = (np.concatenate([getattr(one, part) for one in found]) for part in ("X", "y"))
    short = cohort.X / np.maximum(1, np.linalg.norm(cohort.X, axis=1, keepdims=True))
    assert np.allclose(X, short, atol=1e-5) and np.array_equal(y, cohort.y)
    found = check(tmp_path / "test.csv", schema)
    assert found.fits and found.rows == data.TEST_PATIENTS


def test_only_its_own_folder_is_removed(tmp_path):
    demo_network.prepare(tmp_path / "new")
    (tmp_path / "new" / "mercy.csv").write_text("old")
    demo_network.prepare(tmp_path / "new")
    assert [p.name for p in (tmp_path / "new").iterdir()] == [demo_network.MARK]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("ten years")
    out = CliRunner().invoke(app, ["demo", "--network", "--output", str(tmp_path / "mine")])
    assert out.exit_code == 2 and "holds other files" in out.stderr and out.stderr.count("\n") == 1
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_command_is_shown_as_it_is_typed():
    args = ("federation", "new", "--name", "a b", *(x for i in range(9) for x in ("--party", f"card-{i}.toml=100")))
    text = demo_network.shown(args, " &")
    assert max(map(len, text.splitlines())) <= 80 and text.endswith(" &") and "'a b'" in text
    assert all(line.lstrip().startswith(("--", "$ confide federation new")) for line in text.splitlines())


def test_a_node_that_fails_ends_the_demo_with_its_last_line(tmp_path):
    office = demo_network.Office(tmp_path, lambda text: None)
    (tmp_path / "mercy.log").write_text("round 1\nconfide: no permission\n")
    office.jobs["mercy"] = subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"])
    with pytest.raises(ChildProcessError, match="mercy failed: confide: no permission"):
        office.until(lambda: False, "nothing")
    with pytest.raises(ChildProcessError, match="`confide schema` failed"):
        office.confide("schema", "check", "missing.csv")
    office.close()


def test_an_accuracy_comes_with_its_error_bar(tmp_path):
    """Answers "no" for everyone: right as often as the test set says, ± √(p(1 - p)/(n - 1))."""
    demo_network.write_hospitals(tmp_path, 500)
    truth = [row["readmitted"] for row in csv.DictReader((tmp_path / "test.csv").read_text().splitlines())]
    lines = [f"{k},no" for k in range(len(truth))]
    (tmp_path / "predictions.csv").write_text("\n".join(["row,prediction", *lines]) + "\n")
    right, error, joint, majority = demo_network.scores(tmp_path)
    p, n = truth.count("no") / len(truth), len(truth)
    assert right == pytest.approx(p) and error == pytest.approx((p * (1 - p) / (n - 1)) ** 0.5)
    assert max(p, 1 - p) == pytest.approx(majority) and joint > majority


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_nodes_one_killed_and_restarted(tmp_path):
    program = [sys.executable, "-c", "from confide.cli import main; main()", "demo", "--network"]
    out = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert out.returncode == 0 and out.stderr == "", out.stderr
    said, folder = out.stdout, tmp_path / "demo-network"
    assert max(map(len, said.splitlines())) <= 80
    for step in ("node init", "federation new", "node run", "node status", "node model", "predict", "report", "relay"):
        assert f"$ confide {step}" in said
    assert "up through the relay" in said and " calls, " in said
    assert "$ kill -9 " in said and "down" in said and "guarantee proven" in said and "Not protected" in said
    status = json.loads((next((folder / "st-agnes").glob("runs/*")) / "status.json").read_text())
    assert status["state"] == "finished" and status["round"] == 200
    log = (folder / "st-agnes.log").read_text()
    assert log.count("finished, round 200 of 200") == 1 and "Traceback" not in log
    model = Model.load(folder / "model.json")
    assert model.privacy.guarantee == "proven"
    assert 0.9 < model.privacy.epsilon <= 1  # what was held for rounds drawn again was not needed
    page = (folder / "report.html").read_text()
    assert "readmission" in page and "proven" in page

    def read(name):
        return list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))

    rows = {name: read(name) for name in (*demo_network.NAMES, "test")}
    truth = [row["readmitted"] for row in rows["test"]]
    predictions = [row["prediction"] for row in read("predictions")]
    accuracy = float(np.mean(np.array(truth) == predictions))

    page = CliRunner().invoke(app, ["report", str(folder / "mercy"), "--test", str(folder / "test.csv"), "--json",
                                    "--output", str(tmp_path / "page.html")])  # fmt: skip
    assert json.loads(page.stdout)["quality"] == pytest.approx(accuracy, abs=1e-9)

    def encoded(rows):
        X = data.encode([[float(row[f.name]) for f in data.SCHEMA] for row in rows])
        return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))

    private = [row for name in demo_network.NAMES for row in rows[name]]
    plain = LogisticRegression(C=1 / (1e-3 * len(private)), tol=1e-8, max_iter=1000)
    plain.fit(encoded(private), [row["readmitted"] for row in private])
    joint = float(np.mean(plain.predict(encoded(rows["test"])) == truth))
    assert f"{100 * accuracy:.1f} % by this model" in said
    assert float(said.split("by this model, ")[1].split(" %")[0]) == pytest.approx(100 * joint, abs=0.11)
    assert joint - 0.02 < accuracy < joint + 0.01
