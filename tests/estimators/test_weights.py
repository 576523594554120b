"""Weights of rows and classes: what they change, what they can't, and what they cost."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import recall_score

import confide
from confide.estimators.hints import Hint, hint
from confide.estimators.listener import Listener
from confide.problem.problem import Problem

KINDS = [confide.PrivateLogisticRegression, confide.PrivateLinearSVC]


def rare(n=4000, seed=0):
    """A tenth is ill."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(size=n) < 0.1
    X = 0.25 * rng.normal(size=(n, 3)) + np.where(y, 0.2, -0.02)[:, None]
    return X, np.where(y, "ill", "well")


class Kept(Listener):
    def learning(self, parts, penalty):
        self.parts, self.penalty = parts, penalty


def fitted(model, *rows, **options):
    """The model and what the engine was given."""
    model._listener = kept = Kept()
    return model.fit(*rows, **options), kept


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_0_teach_nothing_but_their_features(kind):
    X, y = rare(500)
    w = (np.arange(500) % 2).astype(float)
    other = np.where(w == 0, np.roll(y, 1), y)
    models = [kind(random_state=0, weight_bound=1).fit(X, labels, sample_weight=w) for labels in (y, other)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert not np.array_equal(models[0].coef_, kind(random_state=0).fit(X, y).coef_)


def test_weights_of_1_are_none_at_all():
    X, y = rare(500)
    plain = confide.PrivateLogisticRegression(random_state=0).fit(X, y)
    ones = confide.PrivateLogisticRegression(random_state=0, weight_bound=1).fit(X, y, sample_weight=np.ones(500))
    table = confide.PrivateLogisticRegression(random_state=0, class_weight={"ill": 1.0}).fit(X, y)
    for model in (ones, table):
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("make", [confide.PrivateLogisticRegression, confide.PrivateRidge, confide.PrivateLasso,
                                  confide.PrivateQuantileRegressor])  # fmt: skip
def test_only_ratios_of_weights_matter(make):
    """All weights, their bound and the penalty times three: the same model."""
    X, y = rare(500)
    if make is not confide.PrivateLogisticRegression:
        y = X @ [1.0, 0.5, -1.0]
    options = {"random_state": 0} | ({} if make is confide.PrivateLogisticRegression else {"target_range": (-1, 1)})
    w = np.random.default_rng(1).uniform(size=500)
    one = make(weight_bound=1, penalty_strength=0.01, **options).fit(X, y, sample_weight=w)
    three = make(weight_bound=3, penalty_strength=0.03, **options).fit(X, y, sample_weight=3 * w)
    np.testing.assert_allclose(three.coef_, one.coef_, rtol=1e-9)


def test_what_is_minimised_is_scikit_learns_weighted_loss():
    """The engine's problem, solved without noise, beside scikit-learn's optimum."""
    X, y = rare(800)
    w = np.random.default_rng(2).uniform(0, 4, size=800)
    options = {"weight_bound": 4.0, "penalty_strength": 0.01, "row_norm": 5.0, "class_weight": {"ill": 3.0}}
    model, kept = fitted(confide.PrivateLogisticRegression(random_state=0, **options), X, y, sample_weight=w)
    ((shards, loss),) = kept.parts
    beta = Problem(shards, loss, kept.penalty, weighting="rows", intercept=True).solve()
    oracle = LogisticRegression(C=1 / (800 * 0.01), class_weight={"ill": 3.0}, tol=1e-12, max_iter=10_000)
    oracle.fit(X, y, sample_weight=w)
    coef, intercept = model._split(beta)
    np.testing.assert_allclose(coef, oracle.coef_, rtol=1e-4)
    np.testing.assert_allclose(intercept, oracle.intercept_, rtol=1e-4)


def test_regressions_too():
    X, _ = rare(400)
    rng = np.random.default_rng(3)
    y, w = X @ [0.5, -0.2, 0.1] + 0.1 * rng.normal(size=400), rng.uniform(0, 2, size=400)
    ridge = confide.PrivateRidge(random_state=0, weight_bound=2, penalty_strength=0.1, row_norm=5, target_range=(-2, 4))
    model, kept = fitted(ridge, X, y, sample_weight=w)
    ((shards, loss),) = kept.parts
    coef, intercept = model._split(Problem(shards, loss, kept.penalty, weighting="rows", intercept=True).solve())
    oracle = Ridge(alpha=400 * 0.1).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(3 * coef[0], oracle.coef_, rtol=1e-6)
    np.testing.assert_allclose(3 * intercept + 1, oracle.intercept_, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_balanced_weights_find_what_is_rare(kind):
    X, y = rare()
    options = {"epsilon": 3.0, "classes": ["ill", "well"], "random_state": 0}
    plain, declared, bought = (
        kind(**options, **more).fit(X, y)
        for more in ({}, {"class_weight": "balanced", "class_rates": [0.1, 0.9]}, {"class_weight": "balanced"})
    )
    found = [recall_score(y, m.predict(X), pos_label="ill") for m in (plain, declared, bought)]
    assert found[0] < 0.4 and min(found[1:]) > 0.6
    assert bought.bought_["class rates"] == pytest.approx([0.1, 0.9], abs=0.02)
    assert "5% of μ² bought class rates" in bought.choice_ and declared.bought_ == {}


def test_what_is_bought_is_within_the_budget():
    X, y = rare(300)
    model = confide.PrivateLogisticRegression(class_weight="balanced", classes=["ill", "well"]).fit(X, y)
    assert model.privacy_.spent == pytest.approx(1.0, rel=1e-5) and model.privacy_.spent <= 1.0
    assert model.privacy_.method == "JointDescent after JointTally" and model.privacy_.guarantee.label == "proven"


def test_privacy_does_not_depend_on_weights():
    X, y = rare(300)
    w = np.random.default_rng(4).uniform(0, 9, size=300)
    fits = [confide.PrivateLogisticRegression(random_state=0, weight_bound=5).fit(X, y, sample_weight=v)
            for v in (w, w[::-1], 1e9 * w, None)]  # fmt: skip
    assert len({str(m.privacy_) for m in fits}) == 1


def test_a_weight_beyond_the_bound_counts_as_the_bound():
    X, y = rare(300)
    w = np.ones(300)
    heavy, capped = w.copy(), w.copy()
    heavy[7], capped[7] = 1e300, 5.0
    a, b = (
        confide.PrivateLogisticRegression(random_state=0, weight_bound=5).fit(X, y, sample_weight=v)
        for v in (heavy, capped)
    )
    assert np.array_equal(a.coef_, b.coef_)


def test_held_out_rows_take_their_weights_along():
    X, y = rare(600)
    w = np.random.default_rng(5).uniform(size=600)
    group = np.repeat(["a", "b", "c"], 200)
    model, kept = fitted(confide.PrivateLogisticRegression(random_state=0, evaluate=0.25, weight_bound=1), X, y, group,
                         sample_weight=w)  # fmt: skip
    shards = kept.parts[0][0]
    assert len(shards) == 450 == len(shards.columns["share"])
    weight_of = {tuple(x): v for x, v in zip(X.tolist(), w, strict=True)}
    raw = shards.X[:5] / model._scale
    assert [
        min(weight_of.items(), key=lambda one: np.abs(np.array(one[0]) - x).max())[1] for x in raw
    ] == pytest.approx(shards.columns["share"][:5])


def test_the_hint_follows_from_parameters_and_is_said_once():
    X, y = rare(100)
    hint.cache_clear()
    with pytest.warns(Hint, match="sample_weight without weight_bound: weights above 1 count as 1"):
        confide.PrivateLogisticRegression(random_state=0, row_norm=1).fit(X, y, sample_weight=np.zeros(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        confide.PrivateLogisticRegression(random_state=0, row_norm=1).fit(X, y, sample_weight=np.full(100, 9.0))


@pytest.mark.parametrize(
    ("change", "weights", "said"),
    [
        ({"weight_bound": 0}, None, "weight_bound=0: must be"), ({"weight_bound": "1"}, None, "weight_bound=1: must"),
        ({}, np.ones(99), r"sample_weight has shape \(99,\)"), ({}, np.full(100, -1.0), "must be at least 0"),
        ({}, np.full(100, np.nan), "must be at least 0"), ({}, ["x"] * 100, "not a number"),
        ({"class_weight": "even"}, None, "class_weight='even': must be"),
        ({"class_weight": {"dead": 2.0}}, None, "class_weight of 'dead': the classes are"),
        ({"class_weight": {"ill": -1.0}}, None, "at least 0"),
        ({"class_weight": {"ill": 0, "well": 0}}, None, "not all 0"),
        ({"class_rates": [0.5, 0.5]}, None, "nothing reads them"),
        ({"class_weight": "balanced", "class_rates": [0.5, 0.2]}, None, "1 together"),
        ({"class_weight": "balanced", "class_rates": {"ill": 0.5}}, None, "1 together"),
        ({"class_weight": "balanced", "algorithm": confide.algorithms.CDPADMM(clip=1.0), "parties": 3}, None,
         "give class_rates"),
    ],
)  # fmt: skip
def test_bad_weights_get_one_line(change, weights, said):
    X, y = rare(100)
    with pytest.raises(ValueError, match=said) as caught:
        confide.PrivateLogisticRegression(classes=["ill", "well"], **change).fit(X, y, sample_weight=weights)
    assert "\n" not in str(caught.value)
