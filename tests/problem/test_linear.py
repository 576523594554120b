"""A prediction has one definition, and one rule where margins tie: the first class, as in scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import confide
from confide.privacy import Label
from confide.problem import linear
from confide.runs.model import Model, Spent
from confide.runs.setting import Setting

X = np.array([[0.3, -0.4], [0.1, 0.2], [0.0, 0.0]])
PAID = Spent(None, None, Label.NONE, "", "none", 0)


def oracle(classes, outputs):
    """scikit-learn's answers of a model whose margins are all 0."""
    model = LogisticRegression()
    model.classes_, model.coef_, model.intercept_ = np.array(classes), np.zeros((outputs, 2)), np.zeros(outputs)
    return model.predict(X).tolist()


@pytest.mark.parametrize("loss, classes, outputs", [
    (confide.losses.Logistic(), ["-1", "1"], 1), (confide.losses.Multinomial(3), ["0", "1", "2"], 3),
])  # fmt: skip
def test_every_room_answers_a_tie_alike(loss, classes, outputs):
    said = oracle(classes, outputs)
    y = np.array([float(c) for c in said])
    y[0] = 1.0  # two classes
    problem = confide.Problem(confide.Shards.split(X, y, 2), loss)
    zero = np.zeros(problem.width)
    assert [str(int(v)) for v in problem.predict(X, zero)] == said
    model = Model(loss, ("a", "b"), np.zeros((outputs, 2)), np.zeros(outputs), tuple(classes), None, None, PAID, {})
    assert model.predict(X) == said
    setting = Setting.of(problem.public(None), "central", ("all",))
    assert [str(int(v)) for v in setting.predict(X, zero[None])[0]] == said


def test_the_page_of_a_run_counts_what_predict_answers():
    """A confusion matrix of a model whose margins are all 0."""
    y = np.array([1.0, -1.0, 1.0])
    problem = confide.Problem(confide.Shards.split(X, y, 2), confide.losses.Logistic())
    run = confide.simulate(problem, confide.Graph.complete(2), confide.algorithms.ADMM(rounds=1), record=())
    flat = type(run)(**{**run.__dict__, "estimates": np.zeros_like(run.estimates)})
    found = flat.with_evaluation(X, y, source="public").evaluation
    assert found.matrix.tolist() == [[1.0, 0.0], [2.0, 0.0]]


def test_estimators_answer_a_tie_alike():
    y = np.array(["no", "yes"] * 10)
    rows = np.random.default_rng(0).normal(size=(20, 2))
    model = confide.PrivateLogisticRegression(random_state=0, parties=2, rounds=1, classes=["no", "yes"]).fit(rows, y)
    model.coef_, model.intercept_ = np.zeros((1, 2)), np.zeros(1)
    assert model.predict(X).tolist() == oracle(["no", "yes"], 1)


def test_margins_and_answers_by_hand():
    models = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 0.0]])  # two models: two coefficients and an intercept
    parts = linear.split(models, 1, True)
    z = linear.margins(X, *parts)
    assert np.allclose(z[..., 0], [[0.3 - 0.8 + 0.5, 0.1 + 0.4 + 0.5, 0.5], [0.4, -0.2, 0.0]])
    assert np.allclose(linear.margins(sp.csr_array(X), *parts), z)
    assert linear.answers(np.array([[0.2], [0.0], [-0.1]])).tolist() == [1, 0, 0]
    assert linear.answers(np.array([[0.2, 0.1, 0.2], [0.0, 3.0, 1.0]])).tolist() == [0, 1]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_are_clipped_as_those_learned_from_were(form):
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    out = linear.clipped(form(rows), 1.0)
    dense = out.toarray() if sp.issparse(out) else out
    assert np.allclose(dense, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
    by_shards = confide.Shards.split(form(rows), np.zeros(3), 2).clip_rows(1.0).X
    by_shards = by_shards.toarray() if sp.issparse(by_shards) else by_shards
    assert {tuple(row) for row in by_shards} == {tuple(row) for row in dense}  # to the bit
    assert linear.clipped(rows, None) is rows
