"""What `fit` says when it refuses holds no label; without scikit-learn the extra that is needed is named."""

import subprocess
import sys

import numpy as np
import pytest

import confide
import confide.errors

X = np.random.default_rng(0).normal(size=(60, 2))
SECRET = "positive-48213"
LABELS = np.where(X[:, 0] > 0, SECRET, "well").astype(object)
LOGISTIC, SVC = confide.PrivateLogisticRegression, confide.PrivateLinearSVC


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (LOGISTIC(classes=["well", "ill"]), LABELS, r"y\[\d+\]: the label is not one of the classes \['well', 'ill'\]"),
        (SVC(classes=[0, 1]), np.where(X[:, 0] > 0, 48213, 1), r"the label is not one of the classes \[0, 1\]"),
        (LOGISTIC(), np.full(60, SECRET), "1 class: a classifier needs at least 2"),
        (confide.PrivateRidge(), LABELS, "text where a number is needed"),
        (confide.PrivateHuberRegressor(), np.full(60, "48213x"), "text where a number is needed"),
        (confide.PrivateLasso(), X[:, 0] * np.nan, "contains NaN: put a public value there"),
        (LOGISTIC(), np.full(60, np.inf), "infinity"),
    ],
)  # fmt: skip
def test_no_label_is_printed(model, y, said):
    with pytest.raises(ValueError, match=said) as caught:
        model.fit(X, y)
    assert "48213" not in str(caught.value) and "\n" not in str(caught.value).strip()
    assert caught.value.__cause__ is None and (caught.value.__context__ is None or caught.value.__suppress_context__)


@pytest.mark.parametrize(("hole", "said"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_gaps_are_not_to_be_filled_from_the_rows(hole, said):
    """scikit-learn's own text advises an imputer, which would be a release that nobody pays for."""
    with pytest.raises(confide.errors.ConfideError, match=f"contains {said}.* put a public value there") as caught:
        LOGISTIC(classes=[0, 1]).fit(np.where(X > 2, hole, X), np.arange(60) % 2)
    assert "mputer" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_gap_in_a_row_that_is_held_out_is_refused_too():
    holes = np.tile(X[:1], (60, 1))
    for i in range(60):
        holes[i] = np.nan
        with pytest.raises(confide.errors.ConfideError, match="contains NaN: put a public value there"):
            LOGISTIC(classes=[0, 1], evaluate=0.5, random_state=0).fit(holes, np.arange(60) % 2)
        holes[i] = X[0]


@pytest.mark.parametrize("loss", [confide.losses.Logistic(), confide.losses.Multinomial(3)])
def test_a_problem_names_what_it_takes_not_what_it_got(loss):
    y = np.where(X[:, 0] > 0, 1.0, 48213.0)
    with pytest.raises(ValueError, match=r"a label .*: .* takes (the labels -1 and 1|the classes 0 to 2)") as caught:
        confide.Problem(confide.Shards.split(X, y, 3), loss)
    assert "48213" not in str(caught.value)


def test_without_scikit_learn_an_estimator_names_its_extra():
    code = "import sys; sys.modules['sklearn'] = None\nimport confide\nconfide.Problem\nconfide.PrivateRidge"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    assert out.stderr.splitlines()[-1].endswith("estimators need scikit-learn: pip install 'confide[sklearn]'")
