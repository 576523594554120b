"""An estimator's model file: read by `confide predict`, and back."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from typer.testing import CliRunner

import confide
from confide.cli import app

OPTIONS = {"random_state": 0, "rounds": 5}


def predictions(path, table, tmp_path, *more):
    out = tmp_path / "out.csv"
    done = CliRunner().invoke(app, ["predict", str(path), str(table), "--output", str(out), *more])
    assert done.exit_code == 0, done.output
    with out.open() as file:
        return list(csv.DictReader(file))


def written(tmp_path, frame, header=True):
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False, header=header)
    return path


def test_a_scaled_classifier_predicts_tables_in_their_own_units(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    ranges = {name: (0.0, 1.2 * float(X[name].max())) for name in X}
    model = confide.PrivateLogisticRegression(scale=ranges, **OPTIONS).fit(X, np.where(y > 0, "benign", "malign"))
    path = model.save(tmp_path / "model.json")
    found = predictions(path, written(tmp_path, X), tmp_path, "--probabilities")
    assert [row["prediction"] for row in found] == model.predict(X).tolist()
    np.testing.assert_allclose([float(row["probability of benign"]) for row in found], model.predict_proba(X)[:, 0])


@pytest.mark.parametrize("kind", ["PrivateRidge", "PrivateQuantileRegressor", "PrivateHuberRegressor"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_regression_predicts_in_its_own_unit(kind, intercept, tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    ranges = dict.fromkeys(X, (-0.2, 0.25))
    make = getattr(confide, kind)
    model = make(scale=ranges, target_range=(0, 400), fit_intercept=intercept, **OPTIONS).fit(X, y)
    path = model.save(tmp_path / "model.json")
    found = [float(row["prediction"]) for row in predictions(path, written(tmp_path, X), tmp_path)]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9)
    back = make.load(path)
    np.testing.assert_allclose(back.predict(X), model.predict(X), rtol=1e-12)
    assert back.target_range_ == (0, 400) and back.fit_intercept == intercept


def test_rows_without_a_scale_are_plain_numbers(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = confide.PrivateLogisticRegression(row_norm=5.0, **OPTIONS).fit(X, y)
    path = model.save(tmp_path / "model.json")
    found = predictions(path, written(tmp_path, pd.DataFrame(X), header=False), tmp_path)
    assert [int(row["prediction"]) for row in found] == model.predict(X).tolist()


@pytest.mark.parametrize("kind", ["PrivateLogisticRegression", "PrivateLinearSVC"])
@pytest.mark.parametrize("labels", [lambda y: y, lambda y: 1.0 * y, lambda y: np.array([*"abc"])[y], lambda y: y > 0],
                         ids=["int", "float", "text", "bool"])  # fmt: skip
@pytest.mark.parametrize("scale", [None, "buy"])
def test_it_comes_back_as_it_was(kind, labels, scale, tmp_path):
    X, y = load_iris(return_X_y=True)
    make = getattr(confide, kind)
    model = make(scale=scale, **OPTIONS).fit(X, labels(y))
    again = make.load(model.save(tmp_path / "model.json"))
    assert type(again) is make and again.classes_.dtype.kind == model.classes_.dtype.kind
    assert np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-12)
    assert again.privacy_.epsilon == pytest.approx(1.0) and again.privacy_.guarantee == "none"
    again.save(tmp_path / "again.json")
    one, two = (json.loads((tmp_path / name).read_text()) for name in ("model.json", "again.json"))
    one["origin"].pop("simulated"), two["origin"].pop("simulated")
    assert one == two
    assert make.load(tmp_path / "again.json").fit(X, labels(y)).coef_.shape == model.coef_.shape  # it can learn again


def test_a_header_above_plain_numbers_is_told_what_is_read(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    path = confide.PrivateLogisticRegression(row_norm=10, **OPTIONS).fit(X, y > 0).save(tmp_path / "model.json")
    done = CliRunner().invoke(app, ["predict", str(path), str(written(tmp_path, X))])
    assert done.exit_code == 2 and "line 1, column 1: not a finite number; rows of plain numbers, without a header" in (
        done.stderr
    )


def test_names_are_checked_as_by_the_one_that_was_saved(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = confide.PrivateLogisticRegression(scale="buy", **OPTIONS).fit(X, y)
    again = confide.PrivateLogisticRegression.load(model.save(tmp_path / "model.json"))
    assert np.array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X[X.columns[::-1]])


def test_what_is_no_saved_estimator_is_refused_in_one_line(tmp_path):
    X, y = load_iris(return_X_y=True)
    path = confide.PrivateLogisticRegression(**OPTIONS).fit(X, y).save(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"a PrivateLogisticRegression: load it by PrivateLogisticRegression.load"):
        confide.PrivateRidge.load(path)
    table = json.loads(path.read_text())
    for change, said in (({"command": "fit"}, "not of an estimator"), ({"estimator": "Graph"}, "not of an estimator"),
                         ({"labels": "pickle"}, "labels"), ({"labels": "int"}, None)):  # fmt: skip
        path.write_text(json.dumps(table | {"origin": table["origin"] | change}))
        if said is None:
            assert confide.PrivateLogisticRegression.load(path).classes_.tolist() == [0, 1, 2]
        else:
            with pytest.raises(ValueError, match=said) as caught:
                confide.PrivateLogisticRegression.load(path)
            assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    path.write_text(json.dumps(table | {"classes": ["x", "y", "z"]}))
    with pytest.raises(ValueError, match=r"classes=.*: must be int"):
        confide.PrivateLogisticRegression.load(path)
    with pytest.raises(ValueError, match="curves"):
        confide.FunctionalQuantileRegressor(random_state=0, rounds=3).fit(X, y).save(tmp_path / "curves.json")
