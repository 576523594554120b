"""Model files: the same answers as scikit-learn on the same coefficients, and one line for every bad file."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import confide
from confide.cli import app
from confide.files import write_whole
from confide.privacy import Label
from confide.runs.model import Model, Spent
from confide.runs.predicting import predictions
from confide.schema.schema import Schema

COLUMNS = """
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.job]
kind = "category"
categories = ["cook", "clerk"]
"""
BINARY = '[label]\nname = "ill"\nkind = "binary"\nvalues = ["no", "yes"]\n' + COLUMNS
CLASSES = '[label]\nname = "flu"\nkind = "classes"\nvalues = ["none", "mild", "severe"]\n' + COLUMNS
REAL = '[label]\nname = "cost"\nkind = "real"\nlow = 100\nhigh = 500\n' + COLUMNS
PAID = Spent(1.0, 1e-5, Label.PROVEN, "rows are clipped", "CDPADMM", 20, 0.9)


def made(text: str = BINARY, loss: Any = None, coef: Any = None, intercept: Any = None, row_norm: float = 1.0) -> Model:
    schema = Schema.from_toml(f"row_norm = {row_norm}\n" + text)
    loss = loss or confide.losses.Logistic()
    coef = np.array([[1.5, -0.5, 0.25]]) if coef is None else np.asarray(coef, float)
    intercept = np.array([0.1]) if intercept is None else np.asarray(intercept, float)
    values = None if schema.label.kind == "real" else schema.label.values
    return Model(loss, schema.features, coef, intercept, values, row_norm, schema, PAID, {"command": "fit", "rows": 9})


def sample(rows: int = 200) -> np.ndarray:
    X = np.random.default_rng(0).uniform(-1, 1, size=(rows, 3))
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))


def test_two_classes_equal_scikit_learn_on_the_same_coefficients() -> None:
    model, X = made(), sample()
    oracle = LogisticRegression()
    oracle.classes_, oracle.coef_, oracle.intercept_ = np.array(["no", "yes"]), model.coefficients, model.intercept
    assert model.predict(X) == oracle.predict(X).tolist() and len({*model.predict(X)}) == 2
    np.testing.assert_allclose(model.probabilities(X), oracle.predict_proba(X), rtol=1e-12)


def test_several_classes_equal_scikit_learn() -> None:
    rng, X = np.random.default_rng(1), sample()
    coef, intercept, names = rng.normal(size=(3, 3)), rng.normal(size=3) / 4, np.array(["none", "mild", "severe"])
    for oracle, loss in ((LogisticRegression(), confide.losses.Multinomial(3)),
                         (LinearSVC(), confide.losses.SmoothedHinge(1.0))):  # fmt: skip
        model = made(CLASSES, loss, coef, intercept)
        oracle.classes_, oracle.coef_, oracle.intercept_ = names, coef, intercept
        assert model.predict(X) == oracle.predict(X).tolist() and len({*model.predict(X)}) == 3
        if isinstance(oracle, LogisticRegression):
            np.testing.assert_allclose(model.probabilities(X), oracle.predict_proba(X), rtol=1e-12)
        else:
            with pytest.raises(ValueError, match="SmoothedHinge has no probabilities"):
                model.probabilities(X)


def test_numbers_come_back_in_the_labels_unit() -> None:
    model, X = made(REAL, confide.losses.Squared()), sample()
    oracle = LinearRegression()
    oracle.coef_, oracle.intercept_ = model.coefficients[0], model.intercept[0]
    np.testing.assert_allclose(model.predict(X), 300 + 200 * oracle.predict(X), rtol=1e-12)  # -1..1 is 100..500
    with pytest.raises(ValueError, match="no probabilities"):
        model.probabilities(X)


def test_long_rows_are_clipped_as_those_learned_from() -> None:
    model, X = made(row_norm=0.5), sample()
    short = X * np.minimum(1, 0.5 / np.linalg.norm(X, axis=1))[:, None]
    np.testing.assert_allclose(model.margins(X), short @ [[1.5], [-0.5], [0.25]] + 0.1, rtol=1e-12)


@pytest.mark.parametrize("loss", [confide.losses.Logistic(), confide.losses.SmoothedHinge(0.7),
                                  confide.losses.NoisyLabels(confide.losses.Logistic(), epsilon=2.0)])  # fmt: skip
def test_a_file_reads_back_the_same(tmp_path: Path, loss: Any) -> None:
    model, path = made(loss=loss), tmp_path / "model.json"
    model.save(path)
    again = Model.load(path)
    assert again.to_dict() == model.to_dict() == json.loads(path.read_text())
    assert again.loss == loss and again.privacy == PAID
    assert np.array_equal(again.margins(sample()), model.margins(sample()))
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def change(*path: Any, to: Any) -> Any:
    def edit(table: dict[str, Any]) -> None:
        for name in path[:-1]:
            table = table[name]
        if to is KeyError:
            del table[path[-1]]
        else:
            table[path[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (change("format", to=KeyError), "not a model"), (change("format", to="confide model 2"), "this version reads"),
        (change("format", to=1), "not a model"), (change("extra", to=1), "unknown field extra"),
        (change("loss", to=KeyError), "no field loss"),
        (change("loss", to="Logistic"), "loss='Logistic': must be a table"),
        (change("loss", "name", to="Nosuch"), "loss: unknown name"), (change("loss", "depth", to=1), "loss.depth"),
        (change("loss", to={"name": "Multinomial", "classes": "x"}), "classes"),
        (change("loss", to={"name": "Huber", "width": []}), "Huber"),
        (change("coefficients", to=[[1.0, 2.0]]), "1 × 2 numbers: must be 1 × 3"),
        (change("coefficients", to=[1.0, 2.0, 3.0]), "coefficients"), (change("coefficients", to="x"), "coefficients"),
        (change("coefficients", to=[[1.0, 2.0], [3.0]]), "rows of 2, 1 numbers: must"),
        (change("coefficients", to=[[1.0, "2", 3.0]]), "coefficients"),
        (change("coefficients", to=[[1.0, True, 3.0]]), "coefficients"),
        (change("coefficients", to=[[1.0, 1e999, 3.0]]), "not a model: must be JSON"),
        (change("coefficients", to=[[1.0, 10**400, 3.0]]), "coefficients: a whole number beyond"),
        (change("intercept", to=[0.0, 0.0]), "intercept: 2 numbers: must be 1"),
        (change("intercept", to=0.0), "intercept=0.0: must be a list of finite numbers"),
        (change("features", to=["age", "job=clerk", "job=cook"]), "features"), (change("features", to=[1]), "features"),
        (change("classes", to=["yes", "no"]), "classes"), (change("classes", to=None), "classes"),
        (change("row_norm", to=2.0), "row_norm=2.0: must be 1,"), (change("row_norm", to="1"), "row_norm='1': must"),
        (change("schema", "columns", "age", "high", to=-1), "column 'age'"), (change("schema", to=[]), "schema"),
        (change("privacy", "epsilon", to=-1), "privacy.epsilon"),
        (change("privacy", "guarantee", to="sure"), "privacy.guarantee='sure': must be one of"),
        (change("privacy", "sure", to=1), "unknown field privacy.sure"), (change("privacy", to=None), "privacy"),
        (change("privacy", "rounds", to=1.5), "privacy.rounds"), (change("origin", to={"a": []}), "origin"),
        (change("confide", to=1), "confide"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line_that_names_file_and_field(tmp_path: Path, edit: Any, named: str) -> None:
    table, path, data = made().to_dict(), tmp_path / "model.json", tmp_path / "data.csv"
    edit(table)
    path.write_text(json.dumps(table))
    data.write_text("age,job\n3,cook\n")
    out = CliRunner().invoke(app, ["predict", str(path), str(data), "-o", str(tmp_path / "out.csv")])
    assert out.exit_code == 2 and out.stdout == "" and out.stderr.count("\n") == 1
    assert out.stderr.startswith(f"confide: {path}: ") and (named in out.stderr)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("text", ["", "no json", "[1, 2]", '{"format": "confide model 1", "format": "x"}', "\x80"])
def test_what_is_no_model_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"model\.json: (not a model|field 'format' is there twice)") as error:
        Model.load(path)
    assert "\n" not in str(error.value)


def test_nothing_is_left_when_writing_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "model.json"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"half")
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


# --- models of nodes --------------------------------------------------------------------------------------------------


def confide_program(*args: object) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from confide.cli import main; main()"]
    return subprocess.run([*program, *map(str, args)], capture_output=True, text=True, check=False,
                          env={**os.environ, "COLUMNS": "80"})  # fmt: skip


@pytest.mark.parametrize("schema", [True, False])
def test_predict_takes_what_a_node_exports(tmp_path: Path, schema: bool) -> None:
    """Two parties train in this process, by their journals; the file of one equals what the simulator computes."""
    from confide.network.identity import Identity
    from confide.node import daemon
    from confide.node import federation as federations
    from confide.node.journal import Journal
    from confide.node.member import Trainer

    rng = np.random.default_rng(2)
    (tmp_path / "schema.toml").write_text(BINARY)
    people = [(int(rng.integers(0, 101)), str(rng.choice(["cook", "clerk"]))) for _ in range(80)]
    ill = ["yes" if age > 50 else "no" for age, _ in people]
    X = np.array([[age / 50 - 1, job == "cook", job == "clerk"] for age, job in people], float)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(np.array(ill) == "yes", 1.0, -1.0)
    names, parties = ("ash", "elm"), []
    for k, name in enumerate(names):
        Identity.create(tmp_path / name, name, f"127.0.0.1:{7001 + k}")
        lines = [f"{age},{job},{label}" for (age, job), label in zip(people, ill, strict=True)][k::2]
        plain = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), y.tolist(), strict=True)][k::2]
        text = "\n".join(["age,job,ill", *lines] if schema else plain)
        (tmp_path / f"{name}.csv").write_text(text + "\n")
    made = confide_program(
        "federation", "new", *(f"--party={tmp_path / n / 'card.toml'}=40" for n in names), "--graph=path",
        *(["--schema", tmp_path / "schema.toml"] if schema else ["--features=3"]), "--epsilon=5", "--test-noise-seed=3",
        "--algorithm=CDPADMM", "--set=rounds=30", "--set=clip=1", "--set=noise=0.1",
        "--output", tmp_path / "federation.toml",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    federation = federations.load(tmp_path / "federation.toml")
    for name in names:
        folder = daemon.run_folder(tmp_path / name, federation)
        folder.mkdir(parents=True)
        (folder / daemon.FEDERATION).write_bytes((tmp_path / "federation.toml").read_bytes())
        identity, journal = Identity.load(tmp_path / name), Journal(folder, federation.digest)
        parties.append(Trainer(federation, identity, journal, None, tmp_path / f"{name}.csv"))
    for party in parties:
        party.begin()
    for t in range(1, 31):
        frames = {p.identity.card.name: p.journal.frame(p.identity.card.digest, t) for p in parties}
        for party in parties:
            party.step({name: frames[name] for name in party.neighbours})
    for party in parties:
        party.journal.close()

    out = confide_program("node", "model", "--home", tmp_path / "ash", "--output", tmp_path / "model.json")
    assert out.returncode == 0, out.stderr
    problem = confide.Problem(confide.Shards.from_groups(X, y, np.arange(80) % 2).clip_rows(1.0), federation.loss,
                              federation.penalty, weighting=federation.weighting, intercept=True)  # fmt: skip
    beta = confide.simulate(problem, federation.graph, federation.algorithm, seeds=[3]).estimates[0, 0]
    model = Model.load(tmp_path / "model.json")
    np.testing.assert_allclose([*model.coefficients[0], *model.intercept], beta, rtol=1e-9)
    assert model.privacy.guarantee == "none" and model.privacy.epsilon is None and model.origin["round"] == 30
    out = confide_program("predict", tmp_path / "model.json", tmp_path / "elm.csv", "--json", "--probabilities")
    answers = json.loads(out.stdout)
    expected = problem.predict(X[1::2], beta)
    values = {"yes": 1.0, "no": -1.0, "1": 1.0, "-1": -1.0}
    assert [values[a] for a in answers["predictions"]] == expected.tolist() and len({*expected}) == 2
    margins = X[1::2] @ beta[:3] + beta[3]
    np.testing.assert_allclose(np.array(answers["probabilities"])[:, 1], 1 / (1 + np.exp(-margins)), rtol=1e-9)


@pytest.mark.parametrize("shorter", [1.0, 0.3])
def test_rows_of_a_file_are_clipped_by_schema_and_model(tmp_path: Path, shorter: float) -> None:
    """Once, where the schema's bound is the model's; by both, where the model's is less."""
    model = replace(made(), row_norm=shorter)
    rows = [(age, job) for age in range(0, 101, 5) for job in ("cook", "clerk")]
    (tmp_path / "d.csv").write_text("age,job\n" + "".join(f"{age},{job}\n" for age, job in rows))
    X = np.array([[age / 50 - 1, job == "cook", job == "clerk"] for age, job in rows], float)
    assert np.all(np.linalg.norm(X, axis=1) >= 1.0)
    answers, chances = predictions(model, tmp_path / "d.csv", True)
    assert answers == model.predict(X) and chances is not None
    np.testing.assert_allclose(chances, model.probabilities(X), rtol=1e-14)
    assert predictions(model, tmp_path / "d.csv", False) == (answers, None)
