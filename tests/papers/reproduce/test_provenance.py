"""The commit of a run and of its criteria."""

import json
import subprocess

import pytest

from confide.papers.reproduce import provenance


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "experiments" / "one"
    folder.mkdir(parents=True)
    (folder / "fig1.py").write_text('"""Words."""\n\n\ndef findings(results):\n    return results > 0.5\n')
    monkeypatch.setenv("CONFIDE_EXPERIMENTS", str(tmp_path / "experiments"))
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path, folder / "fig1.py"


def git(folder, *words):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True).stdout


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def test_criteria_committed_before_the_run(repository):
    root, _ = repository
    tasks = root / "out" / "tasks"
    provenance.begin(tasks, "one", afresh=True)
    found = provenance.judged(tasks, "one")
    assert found["criteria_before_the_run"] and found["measured"]["commit"] == git(root, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("committed", [True, False])
def test_a_criterion_that_changes_after_the_run_shows(repository, committed):
    root, file = repository
    tasks = root / "out" / "tasks"
    provenance.begin(tasks, "one", afresh=True)
    file.write_text(file.read_text().replace("0.5", "0.4"))
    if committed:
        commit(root)
    assert not provenance.judged(tasks, "one")["criteria_before_the_run"]
    provenance.begin(tasks, "one", afresh=False)  # taken up: the note of the beginning stays
    assert not provenance.judged(tasks, "one")["criteria_before_the_run"]
    provenance.begin(tasks, "one", afresh=True)  # measured anew
    assert provenance.judged(tasks, "one")["criteria_before_the_run"] == committed


def test_words_judge_nothing_and_no_repository_is_no_commit(repository, tmp_path):
    root, file = repository
    tasks = root / "out" / "tasks"
    provenance.begin(tasks, "one", afresh=True)
    file.write_text(file.read_text().replace("Words", "Other words"))
    assert provenance.judged(tasks, "one")["criteria_before_the_run"]
    note = json.loads((tasks / provenance.NAME).read_text())
    (tasks / provenance.NAME).write_text(json.dumps({**note, "commit": None}))
    assert not provenance.judged(tasks, "one")["criteria_before_the_run"]
    (tasks / provenance.NAME).unlink()
    assert not provenance.judged(tasks, "one")["criteria_before_the_run"]
