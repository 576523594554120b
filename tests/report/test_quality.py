"""Quality as people ask for it: with intervals, by party, beside what is easier; paid for where rows are private."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import confide
from confide import report
from confide.cli import app
from confide.report.subject import Subject
from confide.report.test_set import TestSet, own_loss, quality
from confide.report.trust import first_line

SCHEMA = """
[label]
name = "ill"
kind = "binary"
values = ["no", "yes"]
[group]
name = "site"
values = ["north", "south", "west"]
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.stay]
kind = "numeric"
low = 0
high = 10
"""
SITES = np.array(["north", "south", "west"])


def people(rows, seed):
    rng = np.random.default_rng(seed)
    age, stay, site = rng.integers(0, 101, rows), rng.integers(0, 11, rows), SITES[np.arange(rows) % 3]
    ill = np.where((age - 50) / 15 + (stay - 5) / 3 + rng.logistic(size=rows) > 0, "yes", "no")
    return age, stay, site, ill


def write(path, rows, seed):
    lines = [",".join(map(str, one)) for one in zip(*people(rows, seed), strict=True)]
    Path(path).write_text("\n".join(["age,stay,site,ill", *lines]) + "\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("quality")
    (home / "schema.toml").write_text(SCHEMA)
    write(home / "data.csv", 600, 1)
    write(home / "test.csv", 450, 2)
    done = confide_("fit", home / "data.csv", "--schema", home / "schema.toml", "--epsilon", 3, "--evaluate", 0.25,
                    "--out", home / "model.json", "--run", home / "run.npz", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    (home / "said.json").write_text(done.stdout)
    return home


def confide_(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def made(home, *more):
    done = confide_("report", home / "run.npz", "--output", home / "report.html", "--json", *more)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), (home / "report.html").read_text()


def test_the_first_line_says_who_may_collude(home):
    said, page = made(home)
    line = said["first_line"].replace("\u00a0", " ")
    assert line.startswith("ε = 3 at δ = 1e-5 holds if at most 1 of 3 parties collude; against all others together")
    fit = json.loads((home / "said.json").read_text())
    left = float(fit["trust"].split("ε = ")[2].split()[0])  # what `fit` says of the same run
    assert float(line.rstrip(".").split("ε = ")[-1]) == pytest.approx(left, rel=1e-3)
    assert page.index(said["first_line"]) < page.index('<nav role="tablist"')


def test_private_sums_have_no_hub(home):
    _, page = made(home)
    shown = page.split('id="overview"')[1].split('id="privacy"')[0]
    assert "hub" not in shown and '<td class="n">2</td>' in shown  # three on a ring: two links each


def test_nobody_is_trusted_where_noise_is_independent():
    X = np.random.default_rng(0).normal(size=(60, 2))
    shards = confide.Shards.split(X, np.where(X[:, 0] > 0, 1.0, -1.0), 3).clip_rows(1.0)
    problem = confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.1))
    graph = confide.Graph.ring(3)
    method = confide.algorithms.CDPADMM(rounds=3, clip=1.0).calibrated(problem.public(graph), 1.0, 1e-5)
    line = first_line(Subject.of(confide.simulate(problem, graph, method)))
    assert "would hold even if all other parties collude" in line
    quiet = confide.simulate(problem, graph, confide.algorithms.LinearizedADMM(rounds=3))
    assert first_line(Subject.of(quiet)).startswith("No bound")


def test_scores_are_scikit_learns_for_the_same_model(home):
    """Of the model file, which `confide predict` reads, by hand; and for each party its own rows."""
    said, _ = made(home, "--test", home / "test.csv", "--schema", home / "schema.toml")
    model = json.loads((home / "model.json").read_text())
    age, stay, site, ill = people(450, 2)
    X = np.column_stack([age / 50 - 1, stay / 5 - 1])
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    z = X @ np.array(model["coefficients"][0]) + model["intercept"][0]
    scores = said["scores"]
    assert scores["joint"]["accuracy"][0] == pytest.approx(np.mean((z > 0) == (ill == "yes")))
    assert scores["joint"]["AUC"][0] == pytest.approx(roc_auc_score(ill == "yes", z))
    common = max((ill == "yes").mean(), (ill == "no").mean())
    assert scores["same"]["accuracy"][0] == pytest.approx(common) and scores["same"]["AUC"][0] == 0.5
    assert scores["alone"] is None and scores["for_release"] is True
    assert [p["name"] for p in scores["parties"]] == ["north", "south", "west"]
    for party in scores["parties"]:
        own = site == party["name"]
        assert party["rows"] == own.sum()
        assert party["joint"]["AUC"][0] == pytest.approx(roc_auc_score(ill[own] == "yes", z[own]))


def test_alone_is_a_party_s_own_model_and_not_for_release(home):
    said, page = made(home, "--test", home / "test.csv", "--schema", home / "schema.toml", "--alone", home / "data.csv")
    assert "Not for release" in page and said["scores"]["for_release"] is False
    assert said["scores"]["alone_minimises"] == "Logistic(), L2(strength=1e-06)"
    assert "Alone means Logistic(), L2(strength=1e-06), without noise." in page

    def encoded(rows, seed):
        age, stay, site, ill = people(rows, seed)
        X = np.column_stack([age / 50 - 1, stay / 5 - 1])
        return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), site, ill

    (X, site, ill), (T, whose, truth) = encoded(600, 1), encoded(450, 2)
    for party in said["scores"]["parties"]:
        own, test = site == party["name"], whose == party["name"]
        theirs = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(X[own], ill[own])
        assert party["alone"]["accuracy"][0] == pytest.approx(theirs.score(T[test], truth[test]), abs=0.02)
    again, page = made(home, "--test", home / "test.csv", "--schema", home / "schema.toml")
    assert "Not for release" not in page and again["scores"]["alone"] is None


@pytest.mark.parametrize(
    ("loss", "labels", "outputs", "own"),
    [
        ("Huber(width=0.25)", "real", 1, confide.losses.Huber(0.25)),
        ("SmoothedHinge(width=1.0)", "sign", 1, confide.losses.SmoothedHinge(1.0)),
        (repr(confide.losses.NoisyLabels(confide.losses.Logistic(), 1.0)), "sign", 1, confide.losses.Logistic()),
        ("SmoothedHinge(width=1.0)", "class", 3, confide.losses.Multinomial(3)),  # one against the rest is several
        ("<their.Loss object at 0x7f>", "real", 1, confide.losses.Squared()),
        ("Theirs(width=inf)", "real", 1, confide.losses.Squared()),
    ],
)
def test_alone_is_of_the_runs_own_loss(home, loss, labels, outputs, own):
    setting = confide.load_run(home / "run.npz").setting
    assert own_loss(replace(setting, loss=loss, labels=labels, outputs=outputs)) == own


def test_what_was_paid_for_is_shown_as_paid_for(home):
    """The same numbers that `fit` printed, with their price; also beside a public test set."""
    fit = json.loads((home / "said.json").read_text())["evaluation"]
    said, page = made(home)
    assert said["paid_scores"]["accuracy"][0] == pytest.approx(fit["scores"]["accuracy"]["value"])
    assert fit["rows"] == 150 and "150 held-out rows of all parties" in page and "paid for" in page
    assert "-1.0" not in page.split('id="quality"')[1].split('id="model"')[0]  # classes by their names
    _, page = made(home, "--test", home / "test.csv", "--schema", home / "schema.toml")
    assert "150 held-out rows of all parties" in page and "450 rows, declared public" in page


def test_a_regression_has_its_own_scores():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(900, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=900)
    model = confide.PrivateRidge(epsilon=5.0, target_range=(-1, 1), random_state=0).fit(
        X[:600], y[:600], groups=np.arange(600) % 3
    )
    found = quality(model.run_, TestSet(X[600:], y[600:], "made up"))
    assert found.joint["R²"].value == pytest.approx(model.score(X[600:], y[600:]), abs=1e-9)
    assert found.same["R²"].value == pytest.approx(0, abs=1e-9) and found.bins is None
    assert "root mean squared error" in report.page(Subject.of(model.run_, quality=found))


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--group", "site"), "give --test"), (("--alone", "data.csv"), "give --test"),
        (("--test", "test.csv", "--schema", "schema.toml", "--group", "nosuch"), "the columns of"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(home, monkeypatch, more, named):
    monkeypatch.chdir(home)
    done = confide_("report", "run.npz", "--output", "other.html", *more)
    assert done.exit_code == 2 and named in done.stderr and done.stderr.count("\n") == 1
    assert not Path("other.html").exists()


def test_a_column_of_parties_that_the_schema_does_not_know(home, tmp_path):
    """As at a node, whose own file needs no column that says whose a row is."""
    plain = SCHEMA.replace('[group]\nname = "site"\nvalues = ["north", "south", "west"]\n', "")
    (tmp_path / "schema.toml").write_text(plain)
    said, _ = made(home, "--test", home / "test.csv", "--schema", tmp_path / "schema.toml", "--group", "site")
    assert [p["name"] for p in said["scores"]["parties"]] == ["north", "south", "west"]


@pytest.mark.parametrize("form", ["spaces", "parquet"])
def test_parties_of_a_test_set_are_read_as_those_of_the_training_rows(home, tmp_path, form):
    """Spaces around a field do not count, and a Parquet file has parties, too."""
    table = pd.read_csv(home / "test.csv")
    file = tmp_path / f"test.{form}"
    if form == "parquet":
        table.to_parquet(file)
    else:
        table["site"] = [f" {site} " if k % 2 else site for k, site in enumerate(table["site"])]
        table.rename(columns={"site": " site"}).to_csv(file, index=False)
    said, _ = made(home, "--test", file, "--schema", home / "schema.toml")
    plain, _ = made(home, "--test", home / "test.csv", "--schema", home / "schema.toml")
    assert said["scores"]["parties"] == plain["scores"]["parties"] and len(said["scores"]["parties"]) == 3
