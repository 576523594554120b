"""Evaluations that do not fit are one line; and the commands from a model to the page that one signs."""

import json
import tomllib

import numpy as np
import pytest
from circle import Circle
from test_evaluation import BETA, CAP, DESCENT, HELD, PLAIN, SCHEMA, evaluated, held_out, model_of, with_schema
from test_evaluation import learned as learned
from test_evaluation import members as members
from typer.testing import CliRunner
from village import NAMES

import confide
from confide.cli import app
from confide.cli.node_view import status_lines, with_evaluation
from confide.errors import MissingExtra
from confide.estimators import evaluating
from confide.files.toml import dumps
from confide.node import federation as federations
from confide.node.amendment import Amendment
from confide.node.founding import new_evaluation, new_federation
from confide.node.status import Status
from confide.problem.losses import Squared
from confide.report.evaluation import result
from confide.schema.schema import Column, Schema

# --- misuse -----------------------------------------------------------------------------------------------------------

GOOD = model_of(BETA, 0.0, ("-1", "1"))
ROWS = dict(zip(NAMES, HELD, strict=True))


@pytest.mark.parametrize("model, rows, budget, said", [
    (model_of(BETA[:3], 0.0, ("-1", "1")), ROWS, CAP, "the model has 3 features: must be 4"),
    (model_of(BETA, 0.0, ("no", "yes")), ROWS, CAP, "the model answers one of no, yes: must be one of -1, 1"),
    (model_of(BETA, 0.0, None, Squared()), ROWS, CAP, "the model answers a number: must be one of -1, 1"),
    (model_of(BETA * [1, 1, np.nan, 1], 0.0, ("-1", "1")), ROWS, CAP, "nan, 1.0]]: must be lists of finite"),
    (model_of(BETA, np.inf, ("-1", "1")), ROWS, CAP, "evaluation.intercept=[inf]: must be a list of finite"),
    (model_of([0.4, 0.2, 0.1], 0.0, None, Squared(), SCHEMA), ROWS, CAP, "a schema, the federation none"),
    (model_of(BETA, 0.0, ("-1", "1"), norm=2.0), ROWS, CAP, "clips rows to norm 2.0: must be 1.0"),
    (GOOD, dict.fromkeys(NAMES[1:], 10), CAP, "no rows of ash: every party must say"),
    (GOOD, ROWS | {"oak": 10}, CAP, "rows of 'oak': must be one of the parties"),
    (GOOD, ROWS | {"ash": 0}, CAP, "rows=0: must be a whole number from 1"),
    (GOOD, ROWS, CAP | {"epsilon": 0.0}, "budget.epsilon=0.0: must be finite and above 0"),
    (GOOD, ROWS, CAP | {"delta": 1.0}, "budget.delta=1.0: must be above 0, below 1"),
])  # fmt: skip
def test_what_does_not_fit_is_one_line(learned, model, rows, budget, said):
    with pytest.raises(confide.errors.ConfideError) as error:
        evaluated(learned, model, budget, rows)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_model_of_another_schema_is_refused(members):
    other = Schema((Column("age", "numeric", 0, 90), *SCHEMA.columns[1:]), SCHEMA.label)
    learned = with_schema(members, SCHEMA, {"name": "Squared"})
    for schema in (other, None):
        model = model_of([0.4, 0.2, 0.1], 0.0, None, Squared(), schema)
        with pytest.raises(ValueError, match="another schema, or none: must be the federation's"):
            evaluated(learned, model)


def test_a_hub_would_see_what_masks_hide(members):
    hub, rest = members[0][0], members[1:]
    given = {"name": "DPADMM", "rounds": 20, "clip": 0.5}
    star, _ = new_federation(rest, {**PLAIN, "weighting": "parties"}, given, dict(CAP), hub=hub)
    with pytest.raises(ValueError, match="has a hub, ash: a private sum needs links"):
        evaluated(star, GOOD, rows=dict.fromkeys(NAMES[1:], 10))


@pytest.mark.parametrize("change, said", [
    ({"evaluation": None}, "JointTally: measures a model, which"),
    ({"evaluation": {"more": 1}}, "unknown field evaluation.more"),
    ({"evaluation": {"coefficients": [[1.0, 2.0, 3.0]]}}, r"must be \(1, 4\) and \(1,\)"),
    ({"evaluation": {"coefficients": [[1.0], [2.0, 3.0]]}}, "rows of 1, 2 numbers: must be of the same length"),
    ({"evaluation": {"coefficients": [[1.0, 2.0, 3.0, 10**400]]}}, r"coefficients=\[\[.*: must be lists of finite"),
    ({"evaluation": {"coefficients": "1"}}, "coefficients='1': must be lists of finite"),
    ({"evaluation": {"classes": ["1", "-1"]}}, r"classes=\['1', '-1'\]: must be \['-1', '1'\], as the label's"),
    ({"evaluation": {"scores": [-1.0, 1.0]}}, "must be rising numbers, 0 among them"),
    ({"evaluation": {"scores": [0.0, -1.0]}}, "must be rising numbers, 0 among them"),
    ({"evaluation": {"scores": np.arange(-9000.0, 9000.0).tolist()}}, "cells: must be at most 10000"),
    ({"evaluation": {"scores": [-1.0, 0.0]}}, "must be JointTally with edges 0.5, 1.5, … of 6 cells"),
    ({"algorithm": {"edges": [1.0, 2.0]}}, "must be JointTally with edges 0.5, 1.5, … of 24 cells"),
    ({"algorithm": {"edges": 3.0}}, "must be JointTally with edges 0.5, 1.5, … of 24 cells"),
    ({"model": {"weighting": "parties"}}, "must be 'rows' in an evaluation"),
    ({"model": {"loss": {"name": "NoisyLabels", "epsilon": 1.0}}}, "answers are compared with labels as they are"),
])  # fmt: skip
def test_a_file_that_was_changed_is_one_line(learned, change, said):
    document = tomllib.loads(evaluated(learned, GOOD)[1])
    for name, fields in change.items():
        if fields is None:
            del document[name]
        else:
            document[name] = {**document[name], **fields}
    with pytest.raises(confide.errors.ConfideError, match=said) as error:
        federations.from_document(document)
    assert "\n" not in str(error.value)


def test_a_method_that_learns_measures_nothing(learned):
    document = tomllib.loads(evaluated(learned, GOOD)[1])
    document["algorithm"] = {"name": "JointDescent", "rounds": 3, "noise": 0.5}
    with pytest.raises(ValueError, match="must be JointTally with edges"):
        federations.from_document(document)


def test_other_model_other_hash(learned):
    """What is signed stands for the model."""
    document = tomllib.loads(evaluated(learned, GOOD)[1])
    first = federations.from_document(document).digest
    document["evaluation"]["intercept"] = [1e-300]
    assert federations.from_document(document).digest != first


# --- commands ---------------------------------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def place(tmp_path, learned, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "federation.toml").write_text(dumps(learned.document))
    GOOD.save(tmp_path / "model.json")
    return [part for name, n in ROWS.items() for part in ("--rows", f"{name}={n}")]


def test_from_a_model_to_the_page_that_one_signs(place):
    done = run("federation", "evaluate", "federation.toml", "--model", "model.json", *place, "--epsilon", "1")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    said = " ".join(done.stdout.split())
    assert "evaluation.toml: 5 parties, 1,000 held-out rows, 1 round of JointTally, at most ε=1 at δ=1e-05 each" in said
    assert "the noise moves each count by about" in said and "ε = 1 if at most 2 of 5 collude" in said
    found = federations.load("evaluation.toml")
    assert found.digest.hex() in said and np.array_equal(found.evaluation.coefficients, GOOD.coefficients)
    page = run("federation", "review", "evaluation.toml")
    words = " ".join(page.stdout.split())
    assert page.exit_code == 0 and max(map(len, page.stdout.splitlines())) <= 80
    assert "on rows set aside before training" in words and "No software can check that" in words
    assert "In one round of JointTally one message of 24 numbers" in words and "300 rows" in words
    assert "cost ε=1." in words
    again = run("federation", "evaluate", "federation.toml", "--model", "model.json", *place, "--epsilon", "1")
    assert again.exit_code == 2 and "evaluation.toml" in again.stderr and again.stderr.count("\n") == 1
    other = ("--epsilon", "2", "--output", "second.toml", "--json")
    said = json.loads(run("federation", "evaluate", "federation.toml", "--model", "model.json", *place, *other).stdout)
    assert said["rows"] == 1000 and said["guarantee"].startswith("proven") and "of 5 collude" in said["promise"]


@pytest.mark.parametrize("change, said", [
    (lambda words: words[2:], "no rows of ash"),
    (lambda words: [*words, "--rows", "ash=3"], "--rows ash=3: ash is there twice"),
    (lambda words: [*words, "--rows", "oak"], "--rows oak: must be NAME=N"),
    (lambda words: [*words, "--epsilon", "0"], "budget.epsilon=0.0: must be finite and above 0"),
    (lambda words: [*words, "--epsilon", "-1"], "--epsilon"),
    (lambda words: [*words, "--model", "federation.toml"], "federation.toml: not a model"),
    (lambda words: [*words, "--collusion", "5"], "collusion=5: must be a whole number from 1 to 4"),
])  # fmt: skip
def test_a_wrong_option_is_one_line(place, change, said):
    words = ["federation", "evaluate", "federation.toml", "--model", "model.json", "--epsilon", "1"]
    done = run(*words, *change(place))
    assert done.exit_code == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_who_left_while_it_was_learned_does_not_evaluate(tmp_path):
    """A node's folder knows the amendments."""
    made = Circle(tmp_path, DESCENT, budget=(60.0, 1e-5), restarts=2)
    made.sign(Amendment(made.federation.digest, made.federation.head, 1, ("elm",)), NAMES[:4])
    GOOD.save(tmp_path / "model.json")
    rows = [part for name in NAMES[:4] for part in ("--rows", f"{name}=50")]
    words = (
        "federation",
        "evaluate",
        made.file,
        "--model",
        tmp_path / "model.json",
        *rows,
        "--epsilon",
        "1",
        "--output",
    )
    assert "no rows of elm" in run(*words, tmp_path / "first.toml", "--home", tmp_path / "nobody").stderr
    done = run(*words, tmp_path / "second.toml", "--home", tmp_path / "ash")
    assert done.exit_code == 0, done.output
    found = federations.load(tmp_path / "second.toml")
    assert found.parties == NAMES[:4] and found.algorithm.colluders(found.public) == 2
    made.close()


def test_a_node_that_cannot_read_the_result_says_so_and_has_finished(monkeypatch, tmp_path):
    def missing(*_):
        raise MissingExtra("estimators need scikit-learn: pip install 'confide[sklearn]'")

    monkeypatch.setattr("confide.report.evaluation.result", missing)
    status = vars(Status("ash", "village", "0" * 16, "JointTally", "proven", 1, "finished", 1))
    said = with_evaluation(status, tmp_path)
    assert said["notice"].endswith("not read: estimators need scikit-learn: pip install 'confide[sklearn]'")
    assert "evaluation" not in said and max(map(len, status_lines(said))) <= 80
    assert with_evaluation({**status, "round": 0}, tmp_path)["notice"] == ""  # nothing is there yet


def test_status_model_and_report_of_a_home_with_both(tmp_path):
    """The status tells what was found, `node model` still exports the model, and its report shows it as paid for."""
    X, rng = held_out()
    made = Circle(tmp_path, {**DESCENT, "rounds": 3}, budget=(10.0, 1e-5)).begin()
    assert made.carry()
    learned, model = made.federation, made.model("ash")
    made.close()
    y = np.where(X @ BETA + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    cap = {"epsilon": 5.0, "delta": 1e-5}
    _, text = new_evaluation(learned, model, ROWS, cap, evaluating.SCORES)
    made.document = tomllib.loads(text)
    made.rewrite()
    for name, Xk, yk in zip(NAMES, np.split(X, np.cumsum(HELD)[:-1]), np.split(y, np.cumsum(HELD)[:-1]), strict=True):
        np.savez(made.folder / f"{name}.npz", X=Xk, y=yk)
    page = tmp_path / "page.html"
    before = json.loads(run("report", tmp_path / "ash", "--output", page, "--json").stdout)
    assert before["paid_scores"] is None
    made.begin()
    assert made.carry()
    made.close()
    assert json.loads(run("node", "model", "--home", tmp_path / "ash").stdout)["origin"]["run"] == learned.digest.hex()
    after = json.loads(run("report", tmp_path / "ash", "--output", page, "--json").stdout)
    _, found = result(tmp_path / "ash", made.run_folder("ash"))
    assert after["run"] == before["run"] and after["paid_scores"] == {k: [*v] for k, v in found.found.items()}
    told = with_evaluation(vars(Status("ash", "", made.federation.digest.hex()[:16], "JointTally", "", 1, "", 1)),
                           tmp_path / "ash")  # fmt: skip
    words = "\n".join(status_lines(told))
    assert "evaluated on 1,000 held-out rows, ε=5 at δ=1e-05 for each of them" in words and "true -1, answered" in words
    assert f"accuracy {found['accuracy'].value:.4g} (" in words and told["evaluation"]["classes"] == ["-1", "1"]
    assert json.loads(json.dumps(told["evaluation"]))["confusion"] == found.confusion.tolist()
    shown = page.read_text()
    assert "How good it is, paid for" in shown
    assert "1,000 held-out rows of all parties, by the parties&#x27; word" in shown
