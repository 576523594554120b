"""Finding and loading experiment files, and what a kept task is known by."""

import shutil
import sys
from pathlib import Path

import pytest

from confide.files import sources
from confide.papers.reproduce import experiments, find
from confide.papers.reproduce.experiment import PACKAGE, _measuring, home, names

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
        ('KINDS = ("a", "b")', 'KINDS = ("a", "b", "c")', True),  # `measure` is told of it by its task alone
        ("draws**2", "draws**4", False),
        ("size=(1, 4)", "size=(1, len(title))", False),  # from here on the title matters
    ],
)  # fmt: skip
def test_a_kept_task_stays_valid_until_what_measures_it_changes(folder, old, new, same):
    before = find("one-paper", "fig1").key(TASK)
    assert (edit(folder, old, new).key(TASK) == before) is same


@pytest.mark.parametrize(
    ("begins", "old", "new"),
    [
        ("N = 4\n\n\ndef size():\n    return (1, N)\n", "N = 4", "N = 5"),  # a constant of a function of `measure`
        ("M, N = 1, 4\n\n\ndef size():\n    return (M, N)\n", "M, N = 1, 4", "M, N = 1, 5"),
        ("def size():\n    return (1, 4)\nprint(size())\n", "(1, 4)", "(1, 5)"),  # a call when the file is read
        ("def size():\n    return (1, 4)\nDONE = size()\n", "(1, 4)", "(1, 5)"),
        ("def size():\n    return (1, globals()['N'])\nN = 4\n", "N = 4", "N = 5"),  # looked up by its name
        ("N = [4]\nN += [2]\ndef size():\n    return (1, N[0])\n", "[2]", "[3]"),
    ],
)
def test_whatever_measure_reaches_counts(folder, begins, old, new):
    edit(folder, 'KINDS = ("a", "b")\n', f'KINDS = ("a", "b")\n{begins}')
    before = edit(folder, "size=(1, 4)", "size=size()").key(TASK)
    assert edit(folder, old, new).key(TASK) != before


def test_a_title_that_is_measured_with_counts(folder):
    before = edit(folder, "size=(1, 4)", "size=(1, len(title))").key(TASK)
    assert edit(folder, '"Means of normal draws"', '"Means"').key(TASK) != before


@pytest.mark.parametrize("read", [False, True])
def test_words_of_an_error_count_if_measure_may_read_them(folder, read):
    check = "def check(x):\n    if x < 0:\n        raise ValueError('too small')\n"
    (folder / "one_paper" / "_check.py").write_text(check)
    edit(folder, "import os, time\n", "import os, time\nfrom ._check import check\n")
    caught = "    try:\n        check(seed)\n    except ValueError as error:\n        return {'draws': str(error)}\n"
    before = edit(folder, "    time.sleep", f"{caught if read else '    check(seed)'}\n    time.sleep").key(TASK)
    assert (edit(folder, "too small", "below 0", "_check.py").key(TASK) != before) is read
    assert edit(folder, "x < 0", "x < 1", "_check.py").key(TASK) != before


def test_shared_files_count_but_not_the_drawing(folder):
    before = find("one-paper", "fig1").key(TASK)
    (folder / "one_paper" / "_draw.py").write_text("COLOUR = 'red'\n")
    assert find("one-paper", "fig1").key(TASK) == before
    assert edit(folder, "SCALE = 2.0", "SCALE = 5.0", "_setting.py").key(TASK) != before
    assert find("one-paper", "fig1").key({"kind": "a", "seed": 1}) != find("one-paper", "fig1").key(TASK)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of confide's files that a test may edit; the code in use stays as it is."""
    monkeypatch.delenv("CONFIDE_EXPERIMENTS", raising=False)
    copy = tmp_path / "confide"
    shutil.copytree(sources.HERE["confide"], copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setitem(sources.HERE, "confide", copy)
    return copy


def test_a_change_in_confide_measures_again_what_uses_it(package):
    tasks = {pair: {"seed": 0} for pair in (("cdp-admm", "fig1"), ("d-zoa", "fig4"), ("pdml", "table1"))}

    def changed(file, new):
        """The papers whose tasks are no longer known after more code in a file of confide."""
        before = {pair: find(*pair).key(task) for pair, task in tasks.items()}
        with open(package / file, "a") as text:
            text.write(new)
        return {pair[0] for pair, task in tasks.items() if find(*pair).key(task) != before[pair]}

    more = "\n\ndef more():\n    return 1\n"
    assert changed("algorithms/cdp_admm.py", more) == {"cdp-admm"}
    assert changed("algorithms/dzoa.py", more) == {"d-zoa"}
    assert changed("algorithms/pdml.py", more) == {"pdml"}
    assert changed("problem/rows.py", more) == {"cdp-admm", "d-zoa", "pdml"}  # below all of them
    assert changed("cli/fit.py", more) == set()
    assert changed("algorithms/cdp_admm.py", "# a remark\n") == set()


def test_every_experiment_of_the_repository_loads(monkeypatch):
    monkeypatch.delenv("CONFIDE_EXPERIMENTS", raising=False)
    found = [find(paper, name) for paper, name in names()]
    assert len(found) > 50 and all(experiment.module.tasks(1) for experiment in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("cdp-admm", "fig1"),
        ("recycled-admm", "fig1"),
        ("d-zoa", "fig1"),
        ("fdp-admm", "irregular"),
        ("pdml", "theorems"),
    ],
)
def test_no_code_that_runs_is_left_out(paper, name, monkeypatch):
    """All Python functions of ours that a measurement calls are in the files that its key is made of."""
    monkeypatch.delenv("CONFIDE_EXPERIMENTS", raising=False)
    experiment = find(paper, name)
    file = Path(experiment.module.__file__)
    packages = {**sources.HERE, PACKAGE: home()}
    counted = sources.sources(_measuring(file), f"{PACKAGE}.{file.parent.name}.{file.stem}", packages)
    task = experiment.module.tasks(1)[0]
    experiment.module.measure(**task)  # compiles, and loads what is loaded when first used
    called = set()
    sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_filename))
    try:
        experiment.module.measure(**task)
    finally:
        sys.setprofile(None)
    ours = {Path(f) for f in called if any(Path(f).is_relative_to(folder) for folder in packages.values())}
    assert len(ours) >= 3 and ours <= {*counted, file}


def test_mistakes_are_one_line(folder, monkeypatch):
    file, text = folder / "one_paper" / "fig1.py", (folder / "one_paper" / "fig1.py").read_text()
    for call, said in (
        (lambda: find("nosuch", "fig1"), "papers are one-paper"),
        (lambda: find("one-paper", "fig9"), "one-paper has fig1"),
        (lambda: experiments("nosuch"), "unknown paper 'nosuch': known are one-paper"),
        (lambda: find("one-paper", "_setting"), "no experiment"),
        (lambda: edit(folder, "def draw(results)", "def paint(results)"), "experiments/one_paper/fig1.py: lacks draw"),
        (lambda: edit(folder, "Trials(published=50, full=6, quick=2)", "6"), "trials=6: must be Trials"),
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


def test_installed_without_a_checkout_the_current_folder_has_them(folder, monkeypatch):
    monkeypatch.delenv("CONFIDE_EXPERIMENTS")
    elsewhere = folder.parent / "a" / "b" / "c" / "d" / "e" / "f.py"
    monkeypatch.setattr("confide.papers.reproduce.experiment.__file__", str(elsewhere))
    assert home() == folder and names() == [("one-paper", "fig1")]


def test_installed_without_a_checkout_is_one_line(monkeypatch, tmp_path):
    monkeypatch.delenv("CONFIDE_EXPERIMENTS", raising=False)
    monkeypatch.setattr("confide.papers.reproduce.experiment.__file__", str(tmp_path / "a" / "b" / "c" / "d" / "e.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="folder `experiments` of a checkout"):
        names()
