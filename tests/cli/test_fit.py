"""`confide fit` and `confide predict` as a user meets them: from a file to a model to predictions, and bad input."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fit_cases import PROGRAM, SCHEMA, encoded, fit, program, run, table, write
from sklearn.linear_model import LogisticRegression, Ridge
from waiting import is_at_work

import confide
from confide.privacy.ledger import Ledger


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "data.csv", table())
    return tmp_path


@pytest.mark.parametrize(("extra", "do"), [(["--algorithm", "CDPADMM", "--set", "step=0.0001", "--set", "clip=1"],
                                            "set step, coupling or rounds, or leave --algorithm out"),
                                           (["--rounds", "1"], "set more rounds, or leave them to it")])  # fmt: skip
def test_what_is_set_by_hand_is_tried_before_anything_is_paid(home: Path, extra: list[str], do: str) -> None:
    code, _, err = fit(home, *extra, "--seed", "1")
    assert code == 0, err
    said = " ".join(err.split())
    assert said.count("warning") == 1 and "of the way to the optimum left" in said and do in said
    assert err.index("warning") < err.index("training")


def test_more_than_can_be_spent_is_said(home: Path) -> None:
    code, out, err = fit(home, "--epsilon", "1e9", "--seed", "1", "--json")
    assert code == 0, err
    said = json.loads(out)
    (note,) = said["notes"]
    assert note.startswith("ε=1e+09 is more than secure noise can spend at δ=1e-05")
    assert 30 < said["privacy"]["epsilon"] < 50


def test_a_first_command_with_secure_noise(home: Path) -> None:
    out = program("fit", "data.csv", "--schema", "schema.toml", "--label", "income", "--group", "hospital", "--epsilon",
                  "1", "--rounds", "30", "--run", "run.npz", cwd=home)  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert max(map(len, out.stdout.splitlines())) <= 80
    for said in ("mercy 1,", "rows         3,000", "JointDescent", "30 rounds", "1 at δ=1e-05", "proven", "not covered",
                 "whether a person is in the data", "selection not covered", "model.json", "run.npz"):  # fmt: skip
        assert said in out.stdout
    assert sorted(p.name for p in home.iterdir()) == ["data.csv", "model.json", "run.npz", "schema.toml"]
    model = json.loads((home / "model.json").read_text())
    assert model["privacy"]["guarantee"] == "proven" and 0.9 < model["privacy"]["epsilon"] <= 1.0
    assert model["features"] == ["age", "hours", "job=cook", "job=clerk", "job=nurse"]
    saved = confide.load_run(home / "run.npz")
    assert saved.rounds == 30 and saved.estimates.shape == (1, 3, 6) and not saved.privacy.simulated
    assert saved.privacy.epsilon(1e-5) == pytest.approx(model["privacy"]["exact_epsilon"])
    paid = [event for now in saved.privacy.charged or [] for event in now]
    assert np.max(confide.privacy.epsilon(paid, 1e-5)) == pytest.approx(model["privacy"]["epsilon"])
    assert saved.setting is not None and saved.setting.agents == ("mercy", "north", "lake")
    assert saved.setting.features == (*model["features"],) and saved.setting.classes == ("low", "high")
    np.testing.assert_allclose(saved.model[0], [*model["coefficients"][0], *model["intercept"]], rtol=1e-12)
    assert saved.bytes_sent == 8 * 2 * 3 * (2 * 5 + 29 * 6)  # bytes, up and down, parties, moments and gradients
    assert out.stdout.startswith("trust        ε = 1 if at most 1 of 3 collude, ε = 1.4")


def test_a_report_reads_a_public_test_set_by_the_schema(home: Path) -> None:
    fit(home, "--seed", 0, "--rounds", 20, "--run", home / "run.npz")
    fresh = table(500, seed=1)
    write(home / "public.csv", fresh)
    write(home / "features.csv", [row[:3] for row in fresh], "age,hours,job")
    asked = ("report", home / "run.npz", "--test", home / "public.csv", "--output", home / "page.html", "--json")
    code, out, err = run(*asked, "--schema", home / "schema.toml")
    assert code == 0, err
    _, told, _ = run("predict", home / "model.json", home / "features.csv", "--json")
    right = [a == row[4] for a, row in zip(json.loads(told)["predictions"], fresh, strict=True)]
    assert json.loads(out)["quality"] == pytest.approx(np.mean(right), abs=1e-12)
    (home / "other.toml").write_text(SCHEMA.replace(', "nurse"]', "]"))
    (home / "page.html").unlink()
    for extra, said in [
        (("--schema", home / "other.toml"), "other features"),
        (("--schema", home / "none.toml"), "none.toml"),
        (("--schema", home / "schema.toml", "--label", "salary"), "no such column"),
        ((), "the model reads"),
    ]:
        code, _, err = run(*asked, *extra)
        assert code == 2 and err.count("\n") == 1 and said in err and not (home / "page.html").exists()
    code, _, err = run("report", home / "run.npz", "--schema", home / "schema.toml")
    assert code == 2 and "give --test" in err


def test_large_epsilon_approaches_scikit_learn(home: Path) -> None:
    code, out, err = fit(home, "--epsilon", 100, "--seed", 0, "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["simulated"] and said["privacy"]["guarantee"] == "none" and sum(said["parties"].values()) == 3000
    fresh = table(4000, seed=1)
    write(home / "fresh.csv", [row[:3] for row in fresh], "age,hours,job")  # neither label nor group
    code, out, err = run("predict", home / "model.json", home / "fresh.csv", "--json")
    assert code == 0, err
    X, y = encoded(table())
    oracle = LogisticRegression(C=1e3).fit(X, y)
    test_X, test_y = encoded(fresh)
    ours = np.mean(np.array(json.loads(out)["predictions"]) == test_y)
    best = oracle.score(test_X, test_y)
    assert best > 0.78 and ours > best - 0.01


def test_predictions_equal_scikit_learn_on_the_same_coefficients(home: Path) -> None:
    assert fit(home, "--seed", 1)[0] == 0
    code, out, _ = run("predict", home / "model.json", home / "data.csv", "--output", home / "out.csv",
                       "--probabilities")  # fmt: skip
    assert code == 0 and "3,000 predictions" in out
    model = json.loads((home / "model.json").read_text())
    oracle = LogisticRegression()
    oracle.classes_ = np.array(["low", "high"])
    oracle.coef_, oracle.intercept_ = np.array(model["coefficients"]), np.array(model["intercept"])
    X, _ = encoded(table())
    head, *lines = (home / "out.csv").read_text().splitlines()
    fields = [line.split(",") for line in lines]
    assert head == "row,prediction,probability of low,probability of high"
    assert [f[0] for f in fields] == [str(i) for i in range(1, 3001)]
    assert [f[1] for f in fields] == oracle.predict(X).tolist()
    np.testing.assert_allclose(np.array([f[2:] for f in fields], float), oracle.predict_proba(X), rtol=1e-9)
    assert (home / "out.csv").stat().st_mode & 0o777 == 0o600  # as private as the rows
    assert run("predict", home / "model.json", home / "data.csv")[1].splitlines()[1].startswith("1,")


def test_another_column_of_the_schema_may_be_the_label(home: Path) -> None:
    code, out, err = fit(home, "--label", "age", "--epsilon", 50, "--seed", 0, "--model", "ridge")
    assert code == 0 and "'income'" in out and "is not read" in out, err
    rows = table()
    _, out, _ = run("predict", home / "model.json", home / "data.csv", "--json")
    X = np.array([[float(r[1]) / 40 - 1, *(r[2] == c for c in ("cook", "clerk", "nurse"))] for r in rows])
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    age = np.array([float(r[0]) for r in rows])
    oracle = Ridge(alpha=1e-3).fit(X, age).predict(X)
    assert np.sqrt(np.mean((np.array(json.loads(out)["predictions"]) - oracle) ** 2)) < 2.5  # years, of a spread of 21


@pytest.mark.parametrize("model", ["svc", "huber", "quantile", "lasso", "elastic-net"])
def test_every_model_learns(home: Path, model: str) -> None:
    label = ("--label", "income") if model == "svc" else ("--label", "age")
    code, _, err = fit(home, "--model", model, "--seed", 0, *label)
    assert code == 0, err
    assert run("predict", home / "model.json", home / "data.csv")[0] == 0


def test_a_ledger_pays_first_and_refuses_the_second(home: Path) -> None:
    pay = ("--ledger", home / "ledger.sqlite", "--population", "patients", "--rounds", 20)
    code, _, err = fit(home, *pay)
    assert code == 2 and "--budget" in err and not (home / "ledger.sqlite").exists()
    assert fit(home, *pay, "--budget", 1.2)[0] == 0
    (home / "model.json").unlink()
    with Ledger(home / "ledger.sqlite") as ledger:
        assert 0.9 < ledger.spent("patients") <= 1.0
    code, _, err = fit(home, *pay)
    assert code == 2 and err.count("\n") == 1 and "left" in err and not (home / "model.json").exists()


def test_a_named_method_and_parties_without_a_column(home: Path) -> None:
    text = SCHEMA.replace('[group]\nname = "hospital"\nvalues = ["mercy", "north", "lake"]\n', "")
    (home / "plain.toml").write_text(text + '[columns.hospital]\nkind = "ignore"\n')
    method = ("--algorithm", "DPSGD", "--set", "step=2", "--set", "clip=1", "--rounds", 25)
    code, out, err = fit(home, "--parties", 4, *method, "--json", "--seed", 0, schema="plain.toml")
    said = json.loads(out)
    assert code == 0 and said["privacy"]["method"] == "DPSGD" and said["privacy"]["rounds"] == 25, err
    assert [*said["parties"].values()] == [750] * 4


def test_who_may_collude_is_asked_for_and_said(home: Path) -> None:
    code, out, err = fit(home, "--collusion", 2, "--seed", 0, "--json")
    assert code == 0 and json.loads(out)["trust"] is None and "no other party is trusted" in json.loads(out)["why"], err
    (home / "model.json").unlink()
    code, _, err = fit(home, "--collusion", 3, "--seed", 0)
    assert code == 2 and "collusion=3: must be a whole number from 1 to 2" in err and err.count("\n") == 1
    code, _, err = fit(home, "--collusion", 1, "--seed", 0, "--algorithm", "DPSGD", "--set", "clip=1")
    assert code == 2 and "leave collusion=None" in err
    code, out, err = fit(home, "--seed", 0, "--algorithm", "JointDescent", "--set", "collusion=1", "--json")
    assert code == 0 and json.loads(out)["trust"].startswith("ε = 1 if at most 1 of 3 collude, ε = 1.4"), err


def test_one_party_may_hold_all_rows(home: Path) -> None:
    text = SCHEMA.replace('[group]\nname = "hospital"\nvalues = ["mercy", "north", "lake"]\n', "")
    (home / "plain.toml").write_text(text + '[columns.hospital]\nkind = "ignore"\n')
    code, out, err = fit(home, "--parties", 1, "--run", home / "run.npz", schema="plain.toml")
    assert code == 0 and "1 party" in out and "one process holds all rows" in out and "trust" not in out, err
    assert confide.load_run(home / "run.npz").bytes_sent == 0
    assert run("report", home / "run.npz", "--output", home / "page.html")[0] == 0
    assert "No network" in (home / "page.html").read_text()


def test_without_a_bound_the_file_says_so(home: Path) -> None:
    code, out, err = fit(home, "--algorithm", "ADMM", "--rounds", 5, "--allow-unproven")
    assert code == 0 and "no bound: nothing is protected" in out, err
    assert json.loads((home / "model.json").read_text())["privacy"]["epsilon"] is None
    assert run("predict", home / "model.json", home / "data.csv")[0] == 0


def test_parquet_and_csv_give_the_same_model(home: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.read_csv(home / "data.csv").write_parquet(home / "data.parquet")
    models = []
    for name in ("data.csv", "data.parquet"):
        assert fit(home, "--seed", 4, data=name)[0] == 0
        models.append(json.loads((home / "model.json").read_text()))
        (home / "model.json").unlink()
    assert models[0] == models[1]


# --- a real terminal --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(home: Path) -> None:
    write(home / "data.csv", table(20_000))
    before = sorted(p.name for p in home.iterdir())
    job = subprocess.Popen(
        [*PROGRAM, "fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--rounds", "100000",
         "--run", "run.npz"],
        cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert is_at_work(job, 6)
    job.send_signal(signal.SIGINT)
    stdout, stderr = job.communicate(timeout=60)
    assert job.returncode == 130 and stdout == "" and stderr.splitlines()[-1] == "confide: interrupted"
    assert "Traceback" not in stderr and sorted(p.name for p in home.iterdir()) == before


@pytest.mark.parametrize(("words", "offered"), [("confide pl", "plan"), ("confide pre", "predict"),
                                                ("confide fit --eps", "--epsilon")])  # fmt: skip
def test_the_shell_completes_commands_and_options(words: str, offered: str) -> None:
    code = (
        "import sys\nfrom confide.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    asked = {"_CONFIDE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                         env={**os.environ, **asked})  # fmt: skip
    assert out.stdout.split() == [offered]
    assert out.stderr.strip() == "[]"  # instant: nothing heavy was loaded


def test_a_class_that_looks_like_a_formula_is_written_as_a_text():
    """A spreadsheet that opens the predictions must compute nothing; numbers, negative ones too, stay as they are."""
    from confide.cli.predict import inert

    for text in ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1"):
        assert inert(text) == f"'{text}"
    for value in ("-1", "+0.5", "yes", "a=b", "", -1.5, 3):
        assert inert(value) == value
