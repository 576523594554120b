"""`confide reproduce` as a user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide.errors import ConfideError
from confide.papers.reproduce import experiments, find
from confide.papers.reproduce import listed as listing
from confide.papers.reproduce.experiment import names


def run(*args):
    return CliRunner().invoke(app, ["reproduce", *args])


def edit(folder, old, new, to="fig1.py"):
    text = (folder / "one_paper" / "fig1.py").read_text()
    assert old in text
    (folder / "one_paper" / to).write_text(text.replace(old, new))


def test_without_arguments_it_lists(folder):
    out = run()
    assert out.exit_code == 0 and "Means of normal draws" in out.stdout and "2/6/50" in out.stdout
    (row,) = json.loads(run("--json").stdout)["experiments"]
    assert row == {"paper": "one-paper", "name": "fig1", "title": "Means of normal draws", "quick": 2, "full": 6,
                   "published": 50, "data": []}  # fmt: skip


def test_the_list_is_read_off_the_files(folder, monkeypatch):
    """To the same words as by importing them, which is left for those that compute what is shown."""
    edit(folder, "title = ", 'KIND = "l2"\ntitle = f"{KIND}: " + ', to="fig2.py")
    (folder / "one_paper" / "fig3.py").write_text(
        "from .fig1 import data, draw, findings, measure, table, tasks, trials\ntitle = 'of fig1'\n"
    )
    edit(folder, "trials = Trials(", "trials = max([1, 2]) and Trials(", to="fig4.py")
    imported = []
    monkeypatch.setattr(listing, "find", lambda *names: imported.append(names) or find(*names))
    found = listing.listed()
    assert imported == [("one-paper", "fig4")]
    assert found == [(e.paper, e.name, e.title, e.trials, e.data) for e in experiments()]
    assert [e.title for e in found][1:3] == ["l2: Means of normal draws", "of fig1"]


@pytest.mark.parametrize("old, new", [("quick=2", "quick=9"), ("title = ", "name = "), ("data = ()", "data = ((")])
def test_a_list_says_what_is_wrong_with_a_file(folder, old, new):
    edit(folder, old, new)
    with pytest.raises(ConfideError, match=r"experiments/one_paper/fig1\.py"):
        listing.listed()


def test_no_experiment_is_imported_for_the_list(monkeypatch):
    monkeypatch.setattr(listing, "find", None)
    assert len(listing.listed()) == len(names())


@pytest.mark.parametrize("args", [["one-paper", "fig1"], ["one_paper"], ["--all"]])
def test_one_a_paper_or_all(folder, args):
    out = run(*args, "--trials", "1", "--jobs", "1", "--json")
    document = json.loads(out.stdout)
    assert out.exit_code == 0 and document["page"] == "reproductions/index.md" and document["skipped"] == {}
    (one,) = document["experiments"]
    assert one["trials"] == 1 and [f["verdict"] for f in one["findings"]] == ["matches", "matches in shape"]
    assert Path(one["folder"], "data.csv").is_file() and one["error"] is None


def test_processes_give_what_one_gives(folder):
    assert run("one-paper", "--quick", "--jobs", "1", "--out", "one").exit_code == 0
    assert run("one-paper", "--quick", "--jobs", "2", "--out", "two").exit_code == 0
    one, two = (Path(out, "one-paper/fig1/data.csv").read_bytes() for out in ("one", "two"))
    assert one == two


def test_text_says_what_was_published_and_measured(folder):
    edit(folder, '"yes", "yes", (results.stack("draws", kind="b") >= 0).all()', '"yes", "[no]", False, why="erratum 7"')
    out = run("one-paper", "fig1", "--quick", "--jobs", "1")
    said = " ".join(out.stdout.split())
    assert out.exit_code == 0 and "published 4, measured 4" in said
    assert "published yes, measured [no], does not hold because erratum 7" in said


def test_a_difference_without_a_cause_ends_with_1(folder):
    edit(folder, 'number("draws of a trial", 4', 'number("draws of a trial", 5')
    out = run("one-paper", "fig1", "--quick", "--jobs", "1")
    assert out.exit_code == 1 and "no cause given" in out.stdout
    assert "**1 of them without a known cause**" in Path("reproductions/index.md").read_text()


def test_missing_data_is_skipped_among_all_and_an_error_alone(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    edit(folder, "data = ()", 'data = ("tecator",)', "fig2.py")
    out = run("--all", "--quick", "--jobs", "1")
    *_, took, told, skipped = out.stdout.splitlines()  # the last lines: nobody looks for them farther up
    assert out.exit_code == 0 and "one-paper fig2: skipped, tecator (tecator.csv) is neither" in skipped
    assert took.startswith("Took ") and " on 1 core; measured in " in took and told.startswith("Not measured, 1 of 2: ")
    assert not Path("reproductions/one-paper/fig2").exists() and Path("reproductions/one-paper/fig1/data.csv").exists()
    out = run("one-paper", "fig2", "--quick")
    assert out.exit_code == 2 and out.stderr.count("\n") == 1 and "one-paper fig2 needs data: tecator" in out.stderr
    data = tmp_path / "data"
    data.mkdir()
    (data / "tecator.csv").write_text("")  # it is only looked for; the loader checks what is in it
    assert run("one-paper", "fig2", "--quick", "--jobs", "1", "--data", str(data)).exit_code == 0


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["nosuch"], "unknown paper 'nosuch': known are one-paper"), (["one-paper", "fig9"], "one-paper has fig1"),
        (["one-paper", "--all"], "takes no paper"), (["--all", "--quick", "--trials", "3"], "give one of them"),
        (["--all", "--trials", "0"], "--trials"), (["--all", "--jobs", "0"], "--jobs"),
        (["--all", "--data", "nowhere"], "--data nowhere: no such folder"),
        (["--all", "--out", __file__], "not a folder"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(folder, args, named):
    out = run(*args)
    assert out.exit_code == 2 and out.stdout == "" and out.stderr.startswith("confide: ")
    assert out.stderr.count("\n") == 1 and named in out.stderr and not Path("reproductions").exists()


def test_an_error_in_the_work_is_one_line_and_the_rest_is_done(folder):
    edit(
        folder, "time.sleep(PAUSE)", 'raise __import__("confide.errors").errors.Diverged("agent 3 diverged")', "fig2.py"
    )
    out = run("--all", "--quick", "--jobs", "1")
    assert out.exit_code == 2 and "one-paper fig2: failed" in out.stdout
    assert out.stderr.rstrip().splitlines()[-1].endswith("agent 3 diverged")
    assert Path("reproductions/one-paper/fig1/data.csv").exists()


def test_a_mistake_of_ours_keeps_its_traceback(folder):
    edit(folder, "time.sleep(PAUSE)", "{}['missing']")
    out = run("one-paper", "fig1", "--quick", "--jobs", "1")
    assert out.exit_code == 1 and "Traceback" in out.stderr and "KeyError: 'missing'" in out.stderr
