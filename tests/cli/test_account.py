"""`confide account` as an owner meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide.privacy import Gaussian, RandomizedResponse, calibrate, distinguish, mu_for
from confide.privacy.ledger import Ledger

LABEL = ("label", "replace", "network")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.sqlite"
    with Ledger(file) as book:
        book.open_population("ward [7]", 2.0, 1e-6)
        book.open_population("ward [7]", 3.0, 1e-6, kind=LABEL, calculus="pure")
        for t, scale in enumerate(calibrate(1.0, 1e-6, [1.0] * 20), start=1):
            book.charge("ward [7]", "fit-1", t, [Gaussian(1.0, float(scale))], method="CDPADMM",
                        guarantee="proven: row gradients are clipped")  # fmt: skip
        book.charge("ward [7]", "labels", 0, [RandomizedResponse(1.0, 2)], party="north", method="randomize",
                    guarantee="assumed: labels are drawn once")  # fmt: skip
        book.reserve("ward [7]", "fit-2", [[Gaussian(0.1, 1.0)]])
        book.open_population("ward 8", 1.0, 1e-6)
    return file


def test_account_shows_what_was_spent_on_what_and_what_is_left(path: Path) -> None:
    command = [sys.executable, "-c", "from confide.cli import main; main()", "account"]
    out = subprocess.run(command, capture_output=True, text=True, check=False,
                         env={**os.environ, "COLUMNS": "80", "CONFIDE_LEDGER": str(path)})  # fmt: skip
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert max(len(line) for line in lines if str(path) not in line) <= 80
    text = " ".join(out.stdout.split())
    for words in (
        "ward [7], each row", "budget ε=2 at δ=1e-06: spent ε=1, held by unfinished runs", "one more run of up to",
        "fit-1 CDPADMM proven 20", "Guarantee proven: row gradients are clipped.", "ward [7], each label",
        "labels / north randomize assumed 1", "budget ε=3 at δ=1e-06: spent ε=1", "not all are proven",
        "blind, with 0.5 (the prior)", "Protected: the content of any one row", "Not protected: how many rows",
        "ward 8, each row", "probability 0.500 at most",
    ):  # fmt: skip
        assert words in text, words
    assert f"probability {distinguish(mu_for(1.0, 1e-6)):.3f} at most" in text


def test_account_as_json(path: Path) -> None:
    out = CliRunner().invoke(app, ["account", "--ledger", str(path), "--population", "ward [7]", "--json"])
    document = json.loads(out.stdout)
    (population,) = document["populations"]
    row, label = population["budgets"]
    assert document["ledger"] == str(path) and population["name"] == "ward [7]"
    assert row["spent_epsilon"] == pytest.approx(1.0, rel=1e-9)
    assert (row["epsilon"], row["calculus"]) == (2, "gaussian")
    assert row["left_mu"] ** 2 + 0.01 + mu_for(1.0, 1e-6) ** 2 == pytest.approx(mu_for(2.0, 1e-6) ** 2, rel=1e-9)
    (run,) = row["runs"]
    assert (run["run"], run["method"], run["rounds"], run["party"]) == ("fit-1", "CDPADMM", 20, "")
    assert run["guarantee"].startswith("proven") and run["first"] <= run["last"]
    assert label["spent_epsilon"] == pytest.approx(1.0) and label["left_epsilon"] == pytest.approx(2.0)
    assert label["distinguish"] == {"prior": 0.5, "probability": pytest.approx(0.7310585786300049)}


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    env = {"CONFIDE_LEDGER": str(tmp_path / "none")}
    out = CliRunner().invoke(app, ["account"], env=env)
    assert out.exit_code == 0 and out.stdout.startswith("Nothing is charged yet")
    assert json.loads(CliRunner().invoke(app, ["account", "--json"], env=env).stdout)["populations"] == []
    assert not (tmp_path / "none").exists()


def test_mistakes_are_one_line(path: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello " * 500)
    for args, words in (
        (["--ledger", str(tmp_path / "none")], "no such ledger"),
        (["--ledger", str(tmp_path / "text")], "not a ledger"),
        (["--ledger", str(path), "--population", "x"], "there are ward [7], ward 8"),
    ):  # fmt: skip
        out = CliRunner().invoke(app, ["account", *args])
        assert out.exit_code == 2 and out.stdout == "" and out.stderr.count("\n") == 1 and words in out.stderr


def test_an_empty_ledger_says_so(tmp_path: Path) -> None:
    Ledger(tmp_path / "new").close()
    out = CliRunner().invoke(app, ["account", "--ledger", str(tmp_path / "new")])
    assert out.exit_code == 0 and "No population has a budget" in out.stdout


def test_help_has_a_runnable_example() -> None:
    out = CliRunner().invoke(app, ["account", "--help"])
    assert "Example: confide account" in out.stdout and "--population" in out.stdout and "--json" in out.stdout
