"""`confide account` as an owner meets it."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide.privacy import Gaussian, RandomizedResponse, calibrate, distinguish, epsilon, mu_for
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
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT count(*) FROM chain").fetchone()[0]
    for words in (
        f"verified: all {rows} rows are as they were written", "held: fit-2, ε=0.3", "UTC", "ward [7], each row",
        "budget ε=2 at δ=1e-06: spent ε=1, held by unfinished runs", "one more run of up to",
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
    with Ledger(path) as book:
        rows, tag = book.head()
    assert document["chain"] == {"verified": True, "rows": rows, "tag": tag.hex(), "notes": []}
    (held,) = row["held"]
    assert (held["run"], held["party"], label["held"]) == ("fit-2", "", [])
    assert held["epsilon"] == pytest.approx(float(epsilon([Gaussian(0.1, 1.0)], 1e-6)), rel=1e-9)
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
    out = CliRunner().invoke(app, ["account", "--end", "fit", "--released", "1"], env=env)
    assert out.exit_code == 2 and out.stderr == f"confide: {tmp_path / 'none'}: no such ledger\n"
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


# --- ending a run -------------------------------------------------------------------------------------------------


def account(*args: object) -> Any:
    return CliRunner().invoke(app, ["account", *map(str, args)])


def test_a_given_up_run_is_ended_by_the_owners_word(path: Path) -> None:
    with Ledger(path) as book:
        before = book.balance("ward [7]")
    out = account("--ledger", path, "--end", "fit-2", "--released", 0)
    assert out.exit_code == 0, out.stderr
    text = " ".join(out.stdout.split())
    assert text == (f"fit-2 has ended in ward [7]: 0 rounds are charged; given back: "
                    f"ε={epsilon([Gaussian(0.1, 1.0)], 1e-6):.4g} for each row")  # fmt: skip
    assert max(map(len, out.stdout.splitlines())) <= 80
    with Ledger(path) as book:
        after = book.balance("ward [7]")
        assert (after.spent, after.held) == (before.spent, 0.0) and before.held > 0
        head = book.head()
    again = json.loads(account("--ledger", path, "--end", "fit-2", "--released", 0, "--json").stdout)
    assert again["ended"] == [{"population": "ward [7]", "run": "fit-2", "party": "", "rounds": 0, "charged_now": [],
                               "given_back": []}]  # fmt: skip
    assert again["chain"]["rows"] == head.rows  # nothing happened


def test_rounds_that_were_not_charged_take_all_that_the_run_held(path: Path) -> None:
    """Their price is not in the ledger, and what is held covers the whole schedule."""
    with Ledger(path) as book:
        book.reserve("ward [7]", "long", [[Gaussian(0.02 * t, 1.0)] for t in range(1, 6)], party="north")
        book.charge("ward [7]", "long", 1, [Gaussian(0.02, 1.0)], party="north")
        before = book.balance("ward [7]")
    out = account("--ledger", path, "--end", "long", "--released", 3, "--json")
    (done,) = json.loads(out.stdout)["ended"]
    assert done["charged_now"] == [{"round": 2, "attempt": 1}, {"round": 3, "attempt": 1}] and done["rounds"] == 3
    assert done["given_back"] == [] and done["party"] == "north"
    with Ledger(path) as book:
        after = book.balance("ward [7]")
        assert after.spent == pytest.approx(before.spent + 0.02**2 * (4 + 9 + 16 + 25), rel=1e-9)
        assert after.held == pytest.approx(0.01, rel=1e-9)  # fit-2 still holds
    assert json.loads(account("--ledger", path, "--end", "long", "--released", 3, "--json").stdout)["ended"][0][
        "charged_now"] == []  # fmt: skip
    more = account("--ledger", path, "--end", "long", "--released", 4)
    assert more.exit_code == 2 and "give --journal" in more.stderr and more.stderr.count("\n") == 1


def test_mistakes_in_ending_are_one_line_and_change_nothing(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    for args, words in (
        (["--end", "fit-2"], "with neither of --journal and --released: give one"),
        (["--released", 3], "give --end RUN too"),
        (["--end", "fit-2", "--released", 1, "--journal", tmp_path], "with both --journal and --released: give one"),
        (["--end", "nosuch", "--released", 1], "no run 'nosuch'"), (["--end", "fit-2", "--released", -1], "0 or more"),
        (["--end", "fit-2", "--population", "ward 8", "--released", 1], "no run 'fit-2' of 'ward 8'"),
        (["--end", "fit-2", "--journal", tmp_path], "has no journal"),
    ):  # fmt: skip
        out = account("--ledger", path, *args)
        assert (out.exit_code, out.stdout, out.stderr.count("\n")) == (2, "", 1) and words in out.stderr, out.stderr
    assert path.read_bytes() == before


def test_help_has_a_runnable_example() -> None:
    out = CliRunner().invoke(app, ["account", "--help"])
    assert "Example: confide account" in out.stdout and "--population" in out.stdout and "--json" in out.stdout


def test_account_shows_a_coalition_beside_everyone(tmp_path: Path) -> None:
    """Two lines for one run, ε against two colluders and against all others together; ended, both are given back."""
    few = ("row", "replace", "outsiders and any 2 of 5 parties together")
    shared = Gaussian(0.1, 1.0, adversary=few[2], alone=3**-0.5)
    with Ledger(tmp_path / "ledger") as book:
        book.open_population("ward", 2.0, 1e-6)
        book.open_population("ward", 1.0, 1e-6, kind=few)
        book.reserve("ward", "fit", [[shared]] * 3)
        book.charge("ward", "fit", 1, [shared], method="JointDescent", guarantee="proven: computational")
    command = ["account", "--ledger", str(tmp_path / "ledger")]
    text = " ".join(CliRunner().invoke(app, command, env={"COLUMNS": "80"}).stdout.split())
    against = [float(epsilon([Gaussian(mu, 1.0)], 1e-6)) for mu in (0.1, 0.1 * 3**0.5)]
    for words in (
        "ward, each row (replace; seen by: everyone who reads every message)",
        "ward, each row (replace; seen by: outsiders and any 2 of 5 parties together)",
        f"budget ε=1 at δ=1e-06: spent ε={against[0]:.4g}", f"budget ε=2 at δ=1e-06: spent ε={against[1]:.4g}",
        "against everyone who reads every message.",
        "against outsiders and any 2 of 5 parties together, as far as masks",
    ):  # fmt: skip
        assert words in text, (words, text)
    assert text.count("Not protected:") == 1  # of both the same
    ended = CliRunner().invoke(app, [*command, "--end", "fit", "--released", "2", "--json"])
    (done,) = json.loads(ended.stdout)["ended"]
    assert [one["round"] for one in done["charged_now"]] == [2]
    with Ledger(tmp_path / "ledger") as book:
        everyone, coalition = book.balances("ward")
        assert everyone.held == coalition.held == 0
        assert everyone.spent == pytest.approx(0.09) and 0.03 <= coalition.spent <= everyone.spent
