"""Ranges of targets and features: declared or paid for, and nothing is clipped without a word."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes

import confide
from confide.estimators import buying
from confide.estimators.hints import Hint, hint
from confide.schema.schema import Column, Schema, Target


def diabetes():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return X, y, {"scale": [(15, 95), (1, 2), (15, 50), (50, 150), (80, 320), (30, 260), (10, 110), (1, 10), (3, 7),
                            (50, 130)]}  # fmt: skip  # round numbers around what such patients have


# --- targets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PrivateRidge", "PrivateLasso", "PrivateElasticNet", "PrivateHuberRegressor",
                                  "PrivateQuantileRegressor"])  # fmt: skip
def test_diabetes_by_default(kind):
    """Nothing is known of the target, which lies in 25 to 346; R² was -4.6 with a range of (-1, 1)."""
    X, y, known = diabetes()
    scores = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:353], order[353:]
        model = getattr(confide, kind)(epsilon=8, random_state=seed, **known).fit(X[train], y[train])
        scores.append(model.score(X[test], y[test]))
    assert np.mean(scores) > 0.3
    low, high = model.target_range_
    assert -30 < low < 100 and 250 < high < 600


def test_a_bought_range_is_paid_for_and_told():
    X, y, known = diabetes()
    model = confide.PrivateRidge(**known).fit(X, y)
    assert model.privacy_.spent == pytest.approx(1.0, rel=1e-5) and model.privacy_.spent <= 1.0
    assert model.privacy_.method == "JointDescent after 2 JointTally" and model.privacy_.rounds == 63
    assert "10% of μ² bought target range" in model.choice_
    assert model.bought_["target range"] == model.target_range_
    given = confide.PrivateRidge(target_range=(25, 350), **known).fit(X, y)
    assert given.bought_ == {} and given.target_range_ == (25, 350)
    assert len(model.run_.privacy.events) == 63


def test_ranges_are_bought_of_the_rows_learned_from_alone():
    """Held-out targets pay for the evaluation; so a range that saw them would be paid for by nobody."""
    X, y, known = diabetes()
    model = confide.PrivateRidge(epsilon=8, evaluate=0.3, random_state=0, **known)
    held = confide.estimators.evaluating.held_out(0.3, None, len(y))
    other = np.where(held, 1e6, y)
    assert model.fit(X, y).target_range_ == clone(model).fit(X, other).target_range_


@pytest.mark.parametrize("middle", [0.0, 3.0, -1e6])
@pytest.mark.parametrize("width", [1e-3, 1.0, 5000.0])
def test_a_range_holds_most_targets_and_not_much_more(middle, width):
    """A cell is 1/16 of the largest |y|, rounded up to a power of 2: a range is wider than needed by cells alone."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(5000, 3))
    y = middle + width * rng.uniform(-1, 1, size=5000)
    low, high = confide.PrivateRidge(random_state=0).fit(X, y).target_range_
    assert np.mean((y >= low) & (y <= high)) > 0.9
    assert high - low <= 2 * width + 4 * (2 * np.abs(y).max()) / 16


def test_the_best_run_of_cells_by_trying_all():
    rng = np.random.default_rng(1)
    for _ in range(200):
        shares, noise = rng.normal(0.05, 0.1, size=9), 0.05
        sums = {(a, b): np.sum(shares[a:b] - noise / 2) for a, b in itertools.combinations(range(10), 2)}
        best = max(sums, key=sums.get)
        expected = best if sums[best] > 3 * noise else (0, 9)
        assert buying.run(shares, noise) == expected


def test_empty_octaves_below_do_not_hide_the_top():
    """As in 350 rows at ε=1: the octaves below hold nothing, and there are many of them."""
    shares, noise = np.zeros(len(buying.OCTAVES)), 0.067
    shares[[23, 24, 25]] = 0.3, 0.45, 0.2
    assert buying.top(shares, noise) == buying.OCTAVES[25] == 9


def test_diabetes_by_default_at_epsilon_1():
    X, y, known = diabetes()
    scores = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:353], order[353:]
        scores.append(confide.PrivateRidge(random_state=seed, **known).fit(X[train], y[train]).score(X[test], y[test]))
    assert np.median(scores) > 0.1  # 0.38 with a range that is known


def test_zeros_fit_any_range():
    """Nine in ten are 0, as with rare costs: the range is that of the others."""
    rng = np.random.default_rng(0)
    costs = np.where(rng.uniform(size=5000) < 0.9, 0.0, rng.uniform(1000, 4000, size=5000))
    X = np.column_stack([costs, rng.uniform(size=5000), np.zeros(5000)])
    model = confide.PrivateLogisticRegression(scale="buy", epsilon=3, classes=[0, 1], random_state=0)
    bought = model.fit(X, (X[:, 1] > 0.5).astype(int)).bought_["feature ranges"]
    assert bought.tolist() == [4096, 1, 1]


def test_counts_that_are_noise_find_nothing():
    noise = np.random.default_rng(2).normal(size=len(buying.OCTAVES))
    assert buying.top(0.1 * np.clip(noise, -2.9, 2.9), 0.1) == 0


def test_warnings_depend_on_parameters_alone():
    X, y, known = diabetes()
    hint.cache_clear()
    with pytest.warns(Hint, match="target_range=None pays 10 % of μ²"):
        confide.PrivateRidge(random_state=0, rounds=2, **known).fit(X, 0 * y)
    said = []
    for target in (y, 1e9 * y):  # beyond the range or not
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            confide.PrivateRidge(random_state=0, rounds=2, target_range=(0, 1), **known).fit(X, target)
        said.append([str(one.message) for one in heard])
    assert said == [[], []]


def test_a_huber_width_is_relative_to_the_range():
    """The same rows in other units: the same model."""
    X, y, known = diabetes()
    a = confide.PrivateHuberRegressor(random_state=0, target_range=(0, 400), **known).fit(X, y)
    b = confide.PrivateHuberRegressor(random_state=0, target_range=(0, 4), **known).fit(X, y / 100)
    np.testing.assert_allclose(100 * b.predict(X), a.predict(X), rtol=1e-9)


# --- features ---------------------------------------------------------------------------------------------------------


def test_ranges_as_a_list_a_table_or_a_schema_are_one():
    X, y, known = diabetes()
    names = load_diabetes().feature_names
    frame = pd.DataFrame(X, columns=names)
    by_name = dict(zip(names, known["scale"], strict=True))
    schema = Schema(tuple(Column(n, "numeric", *by_name[n]) for n in names), Target("y", "real", low=0, high=400))
    shuffled = {n: by_name[n] for n in reversed(names)}
    fits = [confide.PrivateRidge(random_state=0, target_range=(0, 400), scale=s).fit(frame, y)
            for s in (known["scale"], shuffled, schema, np.array(known["scale"]))]  # fmt: skip
    assert all(np.array_equal(fits[0].coef_, m.coef_) for m in fits)
    by_hand = np.array([[2 * (v - low) / (high - low) - 1 for v, (low, high) in zip(x, known["scale"], strict=True)]
                        for x in X])  # fmt: skip
    half = 10**0.5 / 2
    same = confide.PrivateRidge(random_state=0, target_range=(0, 400), row_norm=half).fit(np.clip(by_hand, -1, 1), y)
    np.testing.assert_allclose(same.coef_, fits[0].coef_, rtol=1e-9)
    np.testing.assert_allclose(same.predict(np.clip(by_hand, -1, 1)), fits[0].predict(frame), rtol=1e-9)


def test_raw_breast_cancer_by_bought_ranges():
    """As they are, rows of so unlike units are one number each, and 63 to 72 % right at ε=1."""
    X, y = load_breast_cancer(return_X_y=True)
    right = {}
    for epsilon in (1, 8):
        scores = []
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:455], order[455:]
            model = confide.PrivateLogisticRegression(epsilon=epsilon, scale="buy", classes=[0, 1], random_state=seed)
            scores.append(model.fit(X[train], y[train]).score(X[test], y[test]))
        right[epsilon] = np.mean(scores)
    assert right[1] > 0.83 and right[8] > 0.92
    assert "20% of μ² bought feature ranges" in model.choice_
    largest, bought = np.abs(X).max(axis=0), model.bought_["feature ranges"]
    assert np.mean((bought >= 0.4 * largest) & (bought <= 4 * largest)) > 0.8


def test_what_is_bought_for_features_is_within_the_budget():
    X, y = load_breast_cancer(return_X_y=True)
    model = confide.PrivateLogisticRegression(scale="buy", classes=[0, 1]).fit(X, y)
    assert model.privacy_.spent == pytest.approx(1.0, rel=1e-5) and model.privacy_.spent <= 1.0
    assert model.privacy_.method == "JointDescent after 30 JointTally" and model.privacy_.guarantee.label == "proven"


def test_sparse_rows_stay_sparse():
    X, y = load_breast_cancer(return_X_y=True)
    ranges = [(-m, m) for m in 1.5 * np.abs(X).max(axis=0)]
    dense, sparse = (confide.PrivateLogisticRegression(random_state=0, scale=ranges).fit(form(X), y)
                     for form in (np.asarray, sp.csr_array))  # fmt: skip
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-7)
    assert np.array_equal(dense.predict(X), sparse.predict(sp.csr_array(X)))
    with pytest.raises(ValueError, match="sparse rows need ranges"):
        confide.PrivateLogisticRegression(scale=[(0, m) for _, m in ranges]).fit(sp.csr_array(X), y)


def test_the_hint_about_scale_is_said_once_and_not_to_those_who_scaled():
    X, y = load_breast_cancer(return_X_y=True)
    hint.cache_clear()
    for options in ({"row_norm": 1.0}, {"scale": [(0, 1)] * 30}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            confide.PrivateLogisticRegression(random_state=0, rounds=2, **options).fit(X, y)
    with pytest.warns(Hint, match="nothing bounds the scale of the features") as heard:
        confide.PrivateLogisticRegression(random_state=0, rounds=2).fit(X, y)
    assert [one.filename for one in heard] == [__file__]  # at the caller's line
    (one,) = heard
    printed = warnings.formatwarning(one.message, one.category, one.filename, one.lineno, "")
    assert printed.lower().count("hint: ") == 1 and ": Hint: nothing bounds" in printed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        confide.PrivateLogisticRegression(random_state=0, rounds=2).fit(1000 * X, y)


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ("all", "scale='all': must be None, 'buy'"), ([(0, 1)], "3 columns"),
        ([(0, 1), (1, 1), (0, 1)], "column 1.*low below high"),
        ([(0, 1), (0, np.inf), (0, 1)], "column 1.*finite"), ([(0, 1), (0, 5e-324), (0, 1)], "column 1.*low below"),
        ({"a": (0, 1)}, "X has no names"), (3.0, "must be None"),
        (Schema((Column("a", "category", categories=("x", "y")),), Target("y", "real", low=0, high=1)), "a number"),
    ],
)  # fmt: skip
def test_bad_ranges_get_one_line(scale, said):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match=said) as caught:
        confide.PrivateLogisticRegression(scale=scale, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    assert "\n" not in str(caught.value)


def test_other_methods_need_what_they_would_not_buy():
    X = np.random.default_rng(0).normal(size=(60, 3))
    given = {"algorithm": confide.algorithms.CDPADMM(clip=1.0), "parties": 3}
    with pytest.raises(ValueError, match=r"target_range=None: a range is bought.*give target_range"):
        confide.PrivateRidge(**given).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"scale='buy' is bought.*give ranges"):
        confide.PrivateRidge(**given, scale="buy", target_range=(-1, 1)).fit(X, X[:, 0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_extreme_rows_are_clipped_in_silence(form):
    """Doubles that overflow in any unit; `warnings` are errors here."""
    X = np.random.default_rng(0).normal(size=(80, 2))
    X[0], X[1], X[2] = [1.7e308, -1.7e308], [5e-324, 0.0], [-1e300, 1e-300]
    y = (X[:, 0] > 0).astype(int)
    for scale in ([(-1e-300, 1e-300), (-1.7e308, 1.7e308)], "buy"):
        model = confide.PrivateLogisticRegression(scale=scale, classes=[0, 1], rounds=3, random_state=0).fit(form(X), y)
        assert np.all(np.isfinite(model.coef_)) and np.all(np.isfinite(model.decision_function(form(X))))
    wild = np.where(np.arange(80) < 2, 1.7e308, X[:, 1])
    regression = confide.PrivateRidge(scale="buy", rounds=3, random_state=0).fit(form(X), wild)
    assert np.all(np.isfinite(regression.predict(form(X)))) and np.all(np.isfinite(regression.target_range_))
