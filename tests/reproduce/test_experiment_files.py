"""Finding and loading experiment files, and what a kept task is known by."""

import sys

import pytest

from confide.reproduce import experiments, find
from confide.reproduce.experiment import names

TASK = {"kind": "a", "seed": 0}


def edit(folder, old, new, file="fig1.py"):
    path = folder / "one_paper" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return find("one-paper", "fig1")


def test_a_file_is_found_by_both_spellings(folder):
    one = find("one_paper", "fig1")
    assert (one.paper, one.name, one.title) == ("one-paper", "fig1", "Means of normal draws")
    assert one.text.startswith("A toy") and one.trials.full == 6 and one.settings["KINDS"] == ("a", "b")
    assert str(find("one-paper", "fig1")) == "one-paper fig1" and find("one-paper", "fig1").module is one.module


def test_files_with_an_underscore_are_not_experiments(folder):
    (folder / "two").mkdir()
    text = (folder / "one_paper" / "fig1.py").read_text()
    (folder / "two" / "table_2.py").write_text(text.replace("._setting", "._s"))
    (folder / "two" / "_s.py").write_text("PAUSE, SCALE = 0.0, 3.0\n")
    (folder / "_not" / "x").mkdir(parents=True)
    assert names() == [("one-paper", "fig1"), ("two", "table-2")]
    (folder / "__init__.py").write_text('PAPERS = {"two": "The second", "one_paper": "The first"}\n')
    sys.modules.pop("confide_experiments", None)
    assert [p for p, _ in names()] == ["two", "one-paper"]  # in the order of PAPERS
    assert find("two", "table-2").module.SCALE == 3.0 and find("one-paper", "fig1").module.SCALE == 2.0


def test_a_changed_file_is_read_again(folder):
    assert find("one-paper", "fig1").module.SCALE == 2.0
    assert edit(folder, "SCALE = 2.0", "SCALE = 5.0", "_setting.py").module.SCALE == 5.0


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("figsize=(4, 3)", "figsize=(5, 3)", True), ("Second paragraph", "Another", True), ("0.01", "0.02", True),
        ('"Means of normal draws"', '"Means"', True), ("full=6", "full=7", True),
        ("time.sleep", "# why\n    time.sleep", True),
        ("draws**2", "draws**4", False), ('KINDS = ("a", "b")', 'KINDS = ("a", "b", "c")', False),
        ("size=(1, 4)", "size=(1, len(title))", False),  # from here on the title matters
    ],
)  # fmt: skip
def test_a_kept_task_stays_valid_until_what_measures_it_changes(folder, old, new, same):
    before = find("one-paper", "fig1").key(TASK)
    assert (edit(folder, old, new).key(TASK) == before) is same


def test_a_title_that_is_measured_with_counts(folder):
    before = edit(folder, "size=(1, 4)", "size=(1, len(title))").key(TASK)
    assert edit(folder, '"Means of normal draws"', '"Means"').key(TASK) != before


def test_shared_files_count_but_not_the_drawing(folder):
    before = find("one-paper", "fig1").key(TASK)
    (folder / "one_paper" / "_draw.py").write_text("COLOUR = 'red'\n")
    assert find("one-paper", "fig1").key(TASK) == before
    assert edit(folder, "SCALE = 2.0", "SCALE = 5.0", "_setting.py").key(TASK) != before
    assert find("one-paper", "fig1").key({"kind": "a", "seed": 1}) != find("one-paper", "fig1").key(TASK)


def test_mistakes_are_one_line(folder, monkeypatch):
    file, text = folder / "one_paper" / "fig1.py", (folder / "one_paper" / "fig1.py").read_text()
    for call, said in (
        (lambda: find("nosuch", "fig1"), "papers are one-paper"),
        (lambda: find("one-paper", "fig9"), "one-paper has fig1"),
        (lambda: experiments("nosuch"), "unknown paper 'nosuch': known are one-paper"),
        (lambda: find("one-paper", "_setting"), "no experiment"),
        (lambda: edit(folder, "def draw(results)", "def paint(results)"), "experiments/one_paper/fig1.py: lacks draw"),
        (lambda: edit(folder, "Trials(published=50, full=6, quick=2)", "6"), "trials must be Trials"),
        (lambda: edit(folder, "import os, time", "import nosuchmodule"), "ModuleNotFoundError"),
        (lambda: edit(folder, "def tasks(trials):", "def tasks(trials:"), "fig1.py, line"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said) as caught:
            call()
        assert "\n" not in str(caught.value)
        file.write_text(text)
    monkeypatch.setenv("CONFIDE_EXPERIMENTS", str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError, match="no such folder"):
        names()


def test_installed_without_a_checkout_is_one_line(monkeypatch, tmp_path):
    monkeypatch.delenv("CONFIDE_EXPERIMENTS", raising=False)
    monkeypatch.setattr("confide.reproduce.experiment.__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    with pytest.raises(FileNotFoundError, match="folder `experiments` of a checkout"):
        names()
