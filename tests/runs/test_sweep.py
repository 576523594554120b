"""Sweeps: every combination once, kept under what it depends on, resumed, sharded, and as frames."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

import confide
from confide.algorithms import CDPADMM, DPSGD, LinearizedADMM
from confide.cli import app
from confide.runs import sweep as room

rng = np.random.default_rng(3)
X = rng.normal(size=(120, 3))
y = X @ [1.0, -1.0, 0.5]
METHODS = {"CDP": CDPADMM(rounds=6, clip=1.0), "SGD": DPSGD(rounds=6, clip=1.0)}
GRAPHS = {"ring": confide.Graph.ring(4), "complete": confide.Graph.complete(4)}


def problem(scale=1.0):
    shards = confide.Shards.split(X, scale * y, 4).clip_rows(1.0)
    return confide.Problem(shards, confide.losses.Squared(), confide.penalties.L2(0.1))


def asked(**more):
    return {"methods": METHODS, "problems": problem(), "graphs": GRAPHS, "epsilons": (1.0, 4.0), "seeds": range(3),
            "jobs": 1, **more}  # fmt: skip


def test_every_combination_is_the_run_that_simulate_gives(tmp_path):
    found = confide.sweep(**asked(keep=tmp_path))
    assert len(found) == 8 and not found.missing
    said = [(s["method"], s["graph"], s["epsilon"]) for s, _ in found.found]
    assert said == [(m, g, e) for m in METHODS for g in GRAPHS for e in (1.0, 4.0)]
    method = METHODS["SGD"].calibrated(problem().public(GRAPHS["ring"]), 4.0, 1e-5)
    direct = confide.simulate(problem(), GRAPHS["ring"], method, range(3), record=("error",))
    one = found.run(method="SGD", graph="ring", epsilon=4.0)
    np.testing.assert_array_equal(one.estimates, direct.estimates)
    np.testing.assert_array_equal(one.history["error"], direct.history["error"][-1:])
    rows = found.rows()
    assert len(rows) == 24 and all(row["spent"] == pytest.approx(row["epsilon"], rel=1e-6) for row in rows)
    assert {row["guarantee"] for row in rows} == {"proven"}


def test_what_is_kept_is_found_again_and_whatever_changes_is_measured(tmp_path, monkeypatch):
    measured = []
    real = room._measure
    monkeypatch.setattr(room, "_measure", lambda **given: (measured.append(given), real(**given))[1])
    confide.sweep(**asked(keep=tmp_path))
    assert len(measured) == 8
    confide.sweep(**asked(keep=tmp_path))
    assert len(measured) == 8  # all found
    confide.sweep(**asked(keep=tmp_path, epsilons=(1.0, 4.0, 9.0)))
    assert len(measured) == 12  # the new ε alone
    for change in ({"problems": problem(1.01)}, {"seeds": range(4)}, {"record": ("consensus",)}, {"every": 2}):
        before = len(measured)
        confide.sweep(**asked(keep=tmp_path, **change))
        assert len(measured) == before + 8
    before = len(measured)
    monkeypatch.setattr(room, "_sources", lambda: "other code")
    confide.sweep(**asked(keep=tmp_path))
    assert len(measured) == before + 8
    confide.sweep(**asked(keep=tmp_path, fresh=True))
    assert len(measured) == before + 16


def test_shards_share_a_folder_and_make_the_whole(tmp_path):
    first = confide.sweep(**asked(keep=tmp_path, shard=(1, 3)))
    assert len(first) == 3 and len(first.missing) == 5
    confide.sweep(**asked(keep=tmp_path, shard=(3, 3)))
    last = confide.sweep(**asked(keep=tmp_path, shard=(2, 3)))
    whole = confide.sweep(**asked())
    assert not last.missing and last.rows() == whole.rows()


def test_frames_have_a_row_per_combination_and_seed():
    found = confide.sweep(**asked(epsilons=(2.0,), graphs=GRAPHS["ring"]))
    pandas, polars = found.to_pandas(), found.to_polars()
    assert len(pandas) == 6 and pandas.groupby("method").size().to_dict() == {"CDP": 3, "SGD": 3}
    assert polars.columns == list(pandas.columns) and polars["error"].to_list() == pandas["error"].tolist()
    run = confide.simulate(problem(), GRAPHS["ring"], LinearizedADMM(rounds=4), range(2))
    frame = run.to_pandas()
    assert frame.columns.tolist() == ["round", "seed", "error", "consensus"] and len(frame) == 8
    assert frame.error.tolist() == run.history["error"].ravel().tolist()


def test_a_plot_shows_means_by_budget_or_by_round():
    found = confide.sweep(**asked())
    ax = found.plot()
    assert ax.get_xlabel() == "ε" and ax.get_ylabel() == "error"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["CDP ring", "CDP complete", "SGD ring", "SGD complete"]
    drawn = ax.get_lines()[0].get_ydata()
    means = [found.run(method="CDP", graph="ring", epsilon=e).history["error"][-1].mean() for e in (1.0, 4.0)]
    np.testing.assert_allclose(drawn, means)
    rounds = confide.sweep(**asked(epsilons=(2.0,), every=1)).plot("error")
    assert rounds.get_xlabel() == "round" and len(rounds.get_lines()[0].get_xdata()) == 6
    with pytest.raises(ValueError, match="must be one of those recorded, error"):
        found.plot("speed")


@dataclass(frozen=True, eq=False)
class Elsewhere(LinearizedADMM):
    """A method of this file."""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"methods": "Nothing"}, "method 'Nothing': must be one of ADMM"),
        ({"methods": [CDPADMM(), CDPADMM(rounds=3)]}, "same name: give them as a mapping"),
        ({"problems": "adult"}, "must be a confide.Problem"), ({"graphs": "ring"}, "must be a confide.Graph"),
        ({"epsilons": (0.0,)}, "epsilon=0.0: must be a finite number above 0"),
        ({"epsilons": ()}, "nothing to sweep over"),
        ({"record": ("speed",)}, "unknown metric 'speed'"), ({"shard": (4, 3)}, "i from 1 to n"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_keeps_nothing(tmp_path, change, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")) as error:
        confide.sweep(**asked(keep=tmp_path / "kept", **change))
    assert "\n" not in str(error.value) and not (tmp_path / "kept").exists()


def test_a_method_from_elsewhere_is_kept_under_its_source(tmp_path, monkeypatch):
    graph = GRAPHS["ring"]
    confide.sweep(Elsewhere(rounds=3), problem(), graph, seeds=(0,), jobs=1, keep=tmp_path)
    (first,) = tmp_path.iterdir()
    monkeypatch.setattr(room, "_own_source", lambda kind: "edited")
    confide.sweep(Elsewhere(rounds=3), problem(), graph, seeds=(0,), jobs=1, keep=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 and first.exists()


STUDY = """
import numpy as np
import confide
from confide.algorithms import CDPADMM
X = np.random.default_rng(0).normal(size=(60, 2))
shards = confide.Shards.split(X, X @ [1.0, 2.0], 3)
problems = confide.Problem(shards, confide.losses.Squared(), confide.penalties.L2(1.0))
methods, graphs = CDPADMM(rounds=4, clip=1.0), {"ring": confide.Graph.ring(3), "path": confide.Graph.path(3)}
epsilons, seeds = (1, 2), range(2)
"""


def test_the_command_runs_a_study_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.py").write_text(STUDY)

    def command(*words):
        return CliRunner().invoke(app, ["sweep", "study.py", "--jobs", "1", *words], env={"COLUMNS": "80"})

    part = json.loads(command("--shard", "1/2", "--json").stdout)
    assert len(part["rows"]) == 4 and len(part["missing"]) == 2
    out = command("--csv", "rows.csv", "--plot", "picture.png")
    assert out.exit_code == 0 and "CDPADMM" in out.stdout and "protects nobody" in out.stdout
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 9
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert max(map(len, out.stdout.splitlines())) <= 80
    assert out.stdout.count(" ± ") == 5 and "mean ± standard error over 2 seeds" in out.stdout
    (tmp_path / "study.py").write_text(STUDY.replace("range(2)", "range(1)"))
    lone = command().stdout
    assert "±" not in lone and "one seed: no error bars" in lone  # rather than ± 0
    (tmp_path / "study.py").write_text("methods = 1")
    refused = command()
    assert refused.exit_code == 2 and "sets no problems: it must set methods and problems" in refused.stderr


def test_processes_give_what_one_gives(tmp_path):
    one, many = confide.sweep(**asked()), confide.sweep(**asked(jobs=2))
    assert one.rows() == many.rows()


@pytest.mark.parametrize(("text", "said"), [
    ("methods = [\n", "line 1: '[' was never closed"),
    ("import confide\nmethods = nothing\n", "line 2: NameError: name 'nothing' is not defined"),
    ("import confide\n\nconfide.Graph.ring(-1)\n", "line 3: "),
    ("import json\njson.loads('{')\n", "line 2: JSONDecodeError: "),
])  # fmt: skip
def test_a_mistake_in_a_study_is_said_with_its_line(tmp_path, text, said):
    """And not taken for one of ours."""
    study = tmp_path / "study.py"
    study.write_text(text)
    out = CliRunner().invoke(app, ["sweep", str(study), "--out", str(tmp_path / "kept")])
    assert out.exit_code == 2 and f"confide: {study}, {said}" in out.stderr and out.stderr.count("\n") == 1


def test_a_folder_that_can_not_be_is_said_before_the_study_is_run(tmp_path):
    (tmp_path / "file").write_text("")
    out = CliRunner().invoke(app, ["sweep", str(tmp_path / "study.py"), "--output", str(tmp_path / "file")])
    assert (
        out.exit_code == 2
        and out.stderr == f"confide: --output {tmp_path / 'file'}: {tmp_path / 'file'} is not a folder\n"
    )


def test_a_bug_of_ours_under_a_study_stays_one(tmp_path, monkeypatch):
    study = tmp_path / "study.py"
    study.write_text("from confide.runs import sweep\nsweep._sources()\n")
    monkeypatch.setattr(room.hashlib, "sha256", None)
    room._sources.cache_clear()
    out = CliRunner().invoke(app, ["sweep", str(study), "--out", str(tmp_path / "kept")])
    assert isinstance(out.exception, TypeError) and "bug of ours" in out.exception.__notes__[0]


def test_the_method_of_auto_is_swept_by_either_name():
    problem = confide.Problem(confide.Shards.split(X, y, 4).clip_rows(1.0), confide.losses.Squared())
    (auto,), (named,) = (
        confide.sweep([name], problem, GRAPHS["ring"], epsilons=(4.0,), seeds=(0,), jobs=1).found
        for name in ("auto", "JointDescent")
    )
    assert auto[0] == named[0] and auto[0]["method"] == "JointDescent"
    np.testing.assert_array_equal(auto[1].estimates, named[1].estimates)
