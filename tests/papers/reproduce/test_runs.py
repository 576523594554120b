"""Running experiments: what is written, resuming, failures, and clusters."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from confide.papers.reproduce import find, measure, reproduce

PROGRAM = [sys.executable, "-c", "from confide.cli import main; main()"]
FILES = ("data.csv", "data.json", "fig1.png")


def toy(out, **extra):
    (outcome,) = reproduce([find("one-paper", "fig1")], out, jobs=1, **extra)
    return outcome


def content(out):
    return {name: (Path(out) / "one-paper" / "fig1" / name).read_bytes() for name in FILES}


def kept(out):
    return sorted(p.name for p in (Path(out) / "one-paper" / "fig1" / "tasks").glob("*.npz"))


def log(monkeypatch, tmp_path):
    path = tmp_path / "log"
    path.write_text("")
    monkeypatch.setenv("TOY_LOG", str(path))
    return lambda: path.read_text().split()


def test_what_a_run_gives_and_writes(folder):
    outcome = toy("out", quick=True)
    assert not outcome.error and outcome.trials == 2
    assert [f.verdict for f in outcome.findings] == ["matches", "matches in shape"]
    expected = np.concatenate([np.random.default_rng(s).normal(scale=2.0, size=(1, 4)) for s in range(2)])
    assert np.array_equal(outcome.results.stack("draws", kind="a"), expected)
    assert outcome.table[0] == {"kind": "a", "mean": expected.mean()}
    files = content("out")
    assert files["data.csv"].decode().splitlines()[0] == "kind,mean" and len(files["data.csv"].splitlines()) == 3
    document = json.loads(files["data.json"])
    assert document["trials"] == {"measured": 2, "full": 6, "published": 50} and len(document["tasks"]) == 4
    assert document["settings"]["KINDS"] == ["a", "b"] and document["findings"][0]["verdict"] == "matches"
    assert document["code"] == outcome.experiment.digest
    assert files["fig1.png"].startswith(b"\x89PNG") and not list(Path("out").rglob("*.svg"))
    page = Path("out/index.md").read_text()
    for text in ("Means of normal draws", "2 measured, 50 published", "**matches in shape**", "Second paragraph | with",
                 "(one-paper/fig1/fig1.png)", "1 match within", "1 match in shape, 0 differ"):  # fmt: skip
        assert text in " ".join(page.split()) or text in page
    assert str(Path.cwd()) not in page + files["data.json"].decode()  # no machine paths


def test_figures_are_svg_on_demand(folder):
    toy("out", quick=True, svg=True)
    drawn = Path("out/one-paper/fig1/fig1.svg").read_text()
    assert drawn.startswith("<?xml") and str(Path.cwd()) not in drawn and "svg" not in Path("out/index.md").read_text()
    toy("again", quick=True, svg=True)
    assert Path("again/one-paper/fig1/fig1.svg").read_text() == drawn


def test_a_result_of_earlier_code_does_not_pass_for_a_fresh_one(folder):
    toy("out", quick=True)
    assert "earlier code" not in Path("out/index.md").read_text()
    path = folder / "one_paper" / "fig1.py"
    path.with_name("fig2.py").write_text(path.read_text())
    path.write_text(path.read_text().replace("draws**2", "draws**4"))
    reproduce([find("one-paper", "fig2")], "out", quick=True, jobs=1)
    page = " ".join(Path("out/index.md").read_text().split())
    assert page.count("Measured with earlier code than the present.") == 1 and "1 of the experiments were" in page
    toy("out", quick=True)
    assert "earlier code" not in Path("out/index.md").read_text()


def test_two_runs_give_the_same_bytes(folder):
    toy("one"), toy("two")
    assert content("one") == content("two")


def test_only_what_is_missing_is_measured(folder, monkeypatch, tmp_path):
    said = log(monkeypatch, tmp_path)
    toy("out", quick=True)
    assert said() == ["a0", "b0", "a1", "b1"]
    toy("out", trials=3)
    assert said()[4:] == ["a2", "b2"]
    first = content("out")
    (tmp_path / "out/one-paper/fig1/tasks" / kept("out")[0]).write_bytes(b"damaged")
    toy("out", trials=3)
    assert len(said()) == 7 and content("out") == first
    toy("out", trials=3, fresh=True)
    assert len(said()) == 13 and len(kept("out")) == 6


def test_a_task_of_two_experiments_is_measured_once(folder, monkeypatch, tmp_path):
    """The same `measure` from a file that both import: other tasks, words and criteria do not matter."""
    said = log(monkeypatch, tmp_path)
    one = folder / "one_paper" / "fig1.py"
    text = one.read_text()
    head, tail = text.index("def measure"), text.index("def table")
    imports = "import os, time\nimport numpy as np\nfrom ._setting import PAUSE, SCALE\n\n\n"
    one.with_name("_shared.py").write_text(imports + text[head:tail])
    text = text[:head] + text[tail:]
    one.write_text(text.replace("import os, time\n", "from ._shared import measure\n"))
    one.with_name("fig2.py").write_text(
        one.read_text().replace("Means", "Other means").replace("0.01", "0.02").replace("range(trials)", "range(1, 3)")
    )
    both = [find("one-paper", name) for name in ("fig1", "fig2")]
    first, second = reproduce(both, "out", quick=True, jobs=1)
    assert sorted(said()) == ["a0", "a1", "a2", "b0", "b1", "b2"] and not first.error + second.error
    draws = {o: o.results.stack("draws", kind="a") for o in (first, second)}
    assert np.array_equal(draws[first][1], draws[second][0]) and len(draws[second]) == 2
    seconds = [json.loads(Path(f"out/one-paper/{n}/timing.json").read_text())["core_seconds"] for n in ("fig1", "fig2")]
    assert sum(seconds) == pytest.approx(first.seconds + second.seconds, abs=2e-3)
    one.with_name("fig2.py").write_text(one.read_text() + "\n\nprint(KINDS)\n")  # code of its own: no longer the same
    assert find("one-paper", "fig2").digest != find("one-paper", "fig1").digest


def test_the_page_says_how_long_one_run_of_everything_took(folder):
    toy("out", quick=True)
    assert " in one run" not in Path("out/index.md").read_text()  # fewer trials than the full number
    toy("out")
    assert " in one run" not in Path("out/index.md").read_text()  # some were there before
    toy("out", fresh=True)
    assert " on 1 core in one run.\n" in Path("out/index.md").read_text()
    toy("out")
    assert " on 1 core in one run.\n" in Path("out/index.md").read_text()  # nothing was measured since
    path = folder / "one_paper" / "fig1.py"
    path.with_name("fig2.py").write_text(path.read_text())
    reproduce([find("one-paper", "fig2")], "out", jobs=1)
    assert " in one run" not in Path("out/index.md").read_text()  # fig2 came later


def test_the_page_says_what_the_last_run_left_out(folder):
    path = folder / "one_paper" / "fig1.py"
    path.with_name("fig2.py").write_text(path.read_text().replace("draws**2", "draws**4"))
    both = [find("one-paper", name) for name in ("fig1", "fig2")]
    reproduce(both, "out", quick=True, jobs=1)
    assert "Not measured" not in Path("out/index.md").read_text()
    reproduce(both[:1], "out", quick=True, jobs=1, skipped={"one-paper fig2": "no data"})
    page = Path("out/index.md").read_text()
    assert "what is shown of them is older: one-paper fig2.\n" in page
    assert page.count("Not measured in the last run: its data was missing.") == 1
    reproduce(both[:1], "out", quick=True, jobs=1)
    assert "older: one-paper fig2" in Path("out/index.md").read_text()  # still not
    reproduce(both[1:], "out", quick=True, jobs=1)
    assert "Not measured" not in Path("out/index.md").read_text()


def test_a_figure_is_redrawn_without_measuring(folder, monkeypatch, tmp_path):
    said = log(monkeypatch, tmp_path)
    toy("out", quick=True)
    before = content("out")
    path = folder / "one_paper" / "fig1.py"
    path.write_text(path.read_text().replace("figsize=(4, 3)", "figsize=(5, 3)"))
    toy("out", quick=True)
    after = content("out")
    assert len(said()) == 4 and after["fig1.png"] != before["fig1.png"] and after["data.csv"] == before["data.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code", "jobs"), [(signal.SIGINT, 130, 1), (signal.SIGINT, 130, 2), (signal.SIGKILL, -9, 1)]
)
def test_a_run_that_was_stopped_goes_on_and_ends_the_same(folder, monkeypatch, tmp_path, how, code, jobs):
    toy("whole")
    setting = folder / "one_paper" / "_setting.py"
    setting.write_text(setting.read_text().replace("PAUSE = 0.0", "PAUSE = 0.5"))
    job = subprocess.Popen(
        [*PROGRAM, "reproduce", "one-paper", "fig1", "--out", "out", "--jobs", str(jobs)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    limit = time.monotonic() + 60
    while len(kept("out")) < 3 and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(job.pid, how)  # as a terminal does: workers, too
    _, stderr = job.communicate(timeout=60)
    before = kept("out")
    assert job.returncode == code and 3 <= len(before) < 12 and not list(Path("out").rglob("data.json"))
    if how == signal.SIGINT:
        assert stderr.rstrip().splitlines()[-1] == "confide: interrupted" and "Traceback" not in stderr
    said = log(monkeypatch, tmp_path)
    outcome = toy("out")
    assert len(said()) == 12 - len(before) and not outcome.error
    assert set(before) < set(kept("out"))
    assert {k: v for k, v in content("out").items() if k != "data.json"} == {
        k: v
        for k, v in content("whole").items()
        if k != "data.json"  # PAUSE is among the settings
    }


def test_a_failure_names_its_task_and_leaves_the_others(folder):
    path = folder / "one_paper" / "fig1.py"
    text = path.read_text()
    path.with_name("fig2.py").write_text(
        text.replace(
            "time.sleep(PAUSE)", "if seed: raise __import__('confide.errors').errors.ConfideError('too\\n  far')"
        )
    )
    path.with_name("fig3.py").write_text(text.replace("time.sleep(PAUSE)", "return {}['missing']"))
    path.with_name("fig4.py").write_text(text.replace('{"draws": draws', '{"draws": object(), "x": draws'))
    path.with_name("fig5.py").write_text(text.replace("return {", "return 3 or {"))
    path.with_name("fig6.py").write_text(text.replace("figure.subplots()", "nosuch()"))
    every = [find("one-paper", f"fig{k}") for k in range(1, 7)]
    good, far, missing, odd, number, picture = reproduce(every, "out", quick=True, jobs=1)
    assert not good.error and good.findings
    assert far.error == "one-paper fig2, task {'kind': 'a', 'seed': 1}: too far"
    assert "KeyError: 'missing'" in missing.error and "measure returned a object" in odd.error
    assert "measure returned a int: must be a dict" in number.error and "NameError" in picture.error
    assert "one-paper fig1" in Path("out/index.md").read_text() and "fig2" not in Path("out/index.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("range(trials)", "range(0)", "at least one, and all different"),
     ('"seed": s}', '"seed": 0}', "at least one, and all different"),
     ('"seed": s}', '"seed": {s}}', "JSON-able")],
)  # fmt: skip
def test_bad_tasks_are_one_line(folder, old, new, said):
    path = folder / "one_paper" / "fig1.py"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=said):
        toy("out")
    assert not Path("out").exists()


def test_a_worker_with_another_version_of_the_file_refuses(folder):
    task = {"kind": "a", "seed": 0}
    assert measure("one-paper", "fig1", task, digest=find("one-paper", "fig1").digest).value is not None
    assert "not the one the run began with" in measure("one-paper", "fig1", task, digest="0" * 64).error


def test_a_measurement_has_one_thread_and_the_runs_data(folder, monkeypatch, tmp_path):
    from confide.threads import threads

    monkeypatch.setenv("CONFIDE_THREADS", "7")
    threads.cache_clear()
    path = folder / "one_paper" / "fig1.py"
    new = "from confide.threads import threads\n    return {'n': threads(), 'data': os.environ['CONFIDE_DATA']}"
    path.write_text(path.read_text().replace("time.sleep(PAUSE)", new))
    value = measure("one-paper", "fig1", {"kind": "a", "seed": 0}, environment={"CONFIDE_DATA": "/elsewhere"}).value
    assert value == {"n": 1, "data": "/elsewhere"} and threads() == 7
    threads.cache_clear()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_a_dask_cluster_gives_the_same_numbers(tmp_path, monkeypatch):
    """A sweep of CDP-ADMM's Figure 1 on two worker processes, through joblib and through the command line."""
    import joblib
    from distributed import Client, LocalCluster
    from typer.testing import CliRunner

    from confide.cli import app

    monkeypatch.delenv("CONFIDE_EXPERIMENTS", raising=False)
    experiment = find("cdp-admm", "fig1")
    (alone,) = reproduce([experiment], tmp_path / "alone", trials=2, jobs=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client, joblib.parallel_config(backend="dask"):
            (spread,) = reproduce([experiment], tmp_path / "dask", trials=2)
            used = client.run(lambda: "confide_experiments.cdp_admm.fig1" in sys.modules)
        arguments = ["reproduce", "cdp-admm", "fig1", "--trials", "2", "--out", str(tmp_path / "command")]
        out = CliRunner().invoke(app, [*arguments, "--dask", cluster.scheduler_address])
    assert list(used.values()) == [True, True]  # both workers took part
    assert out.exit_code in (0, 1) and not spread.error  # 1: two trials may miss a claim
    for (task, one), (other, two) in zip(alone.results, spread.results, strict=True):
        assert task == other and all(np.array_equal(one[name], two[name]) for name in ("error", "exact"))
    written = [(tmp_path / where / "cdp-admm/fig1/data.csv").read_bytes() for where in ("alone", "dask", "command")]
    assert written[0] == written[1] == written[2]
