"""Scores and their intervals beside scikit-learn, SciPy and the definitions."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import (
    accuracy_score,
    d2_pinball_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from confide.report import scores

RNG = np.random.default_rng(5)
Z = np.round(RNG.normal(size=300), 1)  # with ties
Y = (Z + RNG.logistic(size=300) > 0.4).astype(int)


@pytest.mark.parametrize(("right", "rows"), [(0, 7), (7, 7), (3, 11), (920, 1000)])
def test_an_accuracy_has_wilsons_interval(right, rows):
    found, known = scores.proportion(right, rows), binomtest(right, rows).proportion_ci(0.95, "wilson")
    assert found == pytest.approx((right / rows, known.low, known.high), abs=1e-12)


def test_auc_is_scikit_learns_and_its_interval_delongs():
    found = scores.auc(Z, Y == 1)
    assert found.value == pytest.approx(roc_auc_score(Y, Z), abs=1e-12)
    x, y = Z[Y == 1], Z[Y == 0]
    wins = (x[:, None] > y[None]) + 0.5 * (x[:, None] == y[None])  # by definition, pair by pair
    spread = wins.mean(axis=1).var(ddof=1) / len(x) + wins.mean(axis=0).var(ddof=1) / len(y)
    assert found.high - found.value == pytest.approx(1.959963984540054 * np.sqrt(spread), rel=1e-10)
    assert scores.auc(Z, np.ones(300, bool)) is None


def test_the_interval_of_an_auc_covers_it():
    """A hundred test sets of a known area: Φ(1/√2) = .7602 for two normals one standard deviation apart."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(400):
        y = rng.random(200) < 0.5
        one = scores.auc(rng.normal(size=200) + y, y)
        hits += one.low <= 0.7602499389 <= one.high
    assert 0.92 < hits / 400 < 0.98


def test_several_classes_are_averaged_one_against_the_rest():
    z = RNG.normal(size=(200, 3))
    y = np.argmax(z + RNG.gumbel(size=z.shape), axis=1)
    found = scores.of_classes(z, y)
    each = [roc_auc_score(y == c, z[:, c]) for c in range(3)]
    assert found["AUC"].value == pytest.approx(np.mean(each))
    assert found["accuracy"].value == accuracy_score(y, z.argmax(axis=1))


def test_numbers_are_scored_as_scikit_learn_scores_them():
    y = RNG.normal(size=500)
    said = y + RNG.normal(size=500)
    found = scores.of_numbers(said, y, None)
    assert found["R²"].value == pytest.approx(r2_score(y, said))
    assert found["root mean squared error"].value == pytest.approx(root_mean_squared_error(y, said))
    assert found["mean absolute error"].value == pytest.approx(mean_absolute_error(y, said))
    assert all(one.low < one.value < one.high for one in found.values())
    found = scores.of_numbers(said, y, 0.7)
    assert found["D²"].value == pytest.approx(d2_pinball_score(y, said, alpha=0.7), abs=1e-3)
    assert found["coverage"].value == np.mean(y <= said)


def test_probabilities_that_are_true_are_calibrated():
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(20_000, 1))
    y = (z[:, 0] + rng.logistic(size=20_000) > 0).astype(int)
    bins = scores.calibration(z, y)
    assert bins[:, 2].sum() == 20_000 and np.abs(bins[:, 0] - bins[:, 1]).max() < 4 * np.sqrt(0.25 / 2000)
    off = scores.calibration(3 * z, y)
    assert np.abs(off[:, 0] - off[:, 1]).max() > 0.1


def test_seeds_widen_an_interval():
    one = {"accuracy": scores.Score(0.8, 0.78, 0.82)}
    other = {"accuracy": scores.Score(0.9, 0.88, 0.92)}
    both = scores.averaged([one, other])["accuracy"]
    assert both.value == pytest.approx(0.85)
    assert both.high - both.value == pytest.approx(np.hypot(0.02, 1.959963984540054 * np.std([0.8, 0.9], ddof=1)))
