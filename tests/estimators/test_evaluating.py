"""Private evaluation: scikit-learn's numbers, intervals that cover, rows that are in one place only, and its price."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import confusion_matrix, mean_absolute_error, mean_pinball_loss, roc_auc_score

import confide
from confide.algorithms import DPSGD, JointDescent, JointTally
from confide.errors import ConfideError
from confide.estimators import PrivateRidge, evaluating
from confide.privacy.ledger import Ledger


def labelled(n=4000, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    z = 6 * X @ rng.normal(size=(3, classes)) + rng.gumbel(size=(n, classes))
    return X, z.argmax(axis=1)


def cells(model, X):
    return np.searchsorted(evaluating.SCORES, model.decision_function(X))


def held(share, groups, n):
    return evaluating.held_out(share, groups, n)


# --- what is held out -------------------------------------------------------------------------------------------------


def test_places_alone_decide_and_every_party_gives_its_share():
    groups = np.repeat(["a", "b"], [100, 300])
    out = held(0.2, groups, 400)
    assert out[:100].sum() == 20 and out[100:].sum() == 60
    assert np.array_equal(out, held(0.2, groups, 400)) and not held(0.0, groups, 400).any()
    with pytest.raises(ValueError, match="of 1 row of party b: must leave at least 1"):
        held(0.2, ["a", "a", "b"], 3)
    for share in (-0.1, 1.0, float("nan"), "a fifth"):
        with pytest.raises(ValueError, match="must be the share of rows held out"):
            held(share, None, 10)


@pytest.mark.parametrize("kind", ["PrivateLogisticRegression", "PrivateRidge"])
def test_a_row_is_in_exactly_one_of_training_and_evaluation(kind):
    """Held-out rows can't move the model, nor can a row that was learned from move anything but the model."""
    X, y = labelled(600)
    model = getattr(confide, kind)(evaluate=0.25, random_state=0).fit(X, y)
    out = held(0.25, None, 600)
    other, labels = X.copy(), y.copy()
    other[out], labels[out] = other[out][::-1] * 0.3, 1 - labels[out]
    again = getattr(confide, kind)(evaluate=0.25, random_state=0).fit(other, labels)
    assert np.array_equal(model.coef_, again.coef_) and str(model.evaluation_) != str(again.evaluation_)
    assert model.evaluation_.rows == 150 and model._held is None


# --- what it says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, np.arange(4000) % 5], ids=["alone", "five"])
def test_with_little_noise_two_classes_are_scikit_learns(groups):
    X, y = labelled()
    model = confide.PrivateLogisticRegression(epsilon=30, evaluate=0.5, random_state=0).fit(X, y, groups=groups)
    out = held(0.5, groups, len(y))
    found = model.evaluation_
    assert found["accuracy"].value == pytest.approx(model.score(X[out], y[out]), abs=0.004)
    scores = model.decision_function(X[out])
    assert found["AUC"].value == pytest.approx(roc_auc_score(y[out], scores), abs=0.01)
    exact = roc_auc_score(y[out], np.searchsorted(evaluating.SCORES, scores))  # scores in one cell are ties
    assert found["AUC"].value == pytest.approx(exact, abs=0.003)
    assert np.allclose(found.confusion, confusion_matrix(y[out], model.predict(X[out])), atol=8)
    assert found["AUC"].low < exact < found["AUC"].high
    with pytest.raises(KeyError, match="this evaluation has accuracy, AUC"):
        found["F1"]


def test_several_classes_and_residuals_are_scikit_learns():
    X, y = labelled(classes=3)
    out = held(0.5, None, len(y))
    model = confide.PrivateLinearSVC(epsilon=30, evaluate=0.5, random_state=0).fit(X, y)
    assert np.allclose(model.evaluation_.confusion, confusion_matrix(y[out], model.predict(X[out])), atol=8)
    assert model.evaluation_["accuracy"].value == pytest.approx(model.score(X[out], y[out]), abs=0.005)
    t = 10 + 20 * X[:, 0] + np.random.default_rng(1).normal(size=len(X))
    options = {"epsilon": 30, "evaluate": 0.5, "target_range": (-10, 30), "random_state": 0}
    ridge = confide.PrivateRidge(**options).fit(X, t)
    exact = mean_absolute_error(t[out], ridge.predict(X[out]))
    assert ridge.evaluation_["mean absolute error"].value == pytest.approx(exact, abs=0.05)
    high = confide.PrivateQuantileRegressor(**options, quantile=0.8).fit(X, t)
    exact = mean_pinball_loss(t[out], high.predict(X[out]), alpha=0.8)
    assert high.evaluation_["pinball loss"].value == pytest.approx(exact, abs=0.05)


def test_curves_are_evaluated_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)) @ [np.ones(20), np.linspace(-1, 1, 20)] / 3
    y = X.mean(axis=1) + 0.1 * rng.normal(size=2000)
    model = confide.FunctionalQuantileRegressor(basis="fpca", n_basis=2, epsilon=30, evaluate=0.5, random_state=0)
    model.fit(X, y)
    out = held(0.5, None, 2000)
    exact = mean_pinball_loss(y[out], model.predict(X[out]), alpha=0.5)
    assert model.evaluation_["pinball loss"].value == pytest.approx(exact, abs=0.005)


def test_auc_of_counts_by_hand():
    """Negatives 3, 1 and positives 1, 3 in two cells: of 16 pairs 9 are ordered, 6 tie and 1 is not."""
    assert evaluating.auc(np.array([[3.0, 1.0], [1.0, 3.0]])) == (9 + 6 / 2) / 16


# --- its noise and its price ------------------------------------------------------------------------------------------


def test_intervals_cover_what_new_rows_say():
    """300 rows held out at ε=.5, where noise is as large as chance; the truth is the accuracy on 200,000 rows."""
    X, y = labelled(200_000, seed=1)
    inside, wide = {"accuracy": 0, "AUC": 0}, []
    for seed in range(120):
        rows = np.random.default_rng(seed).choice(len(y), 1500, replace=False)
        model = confide.PrivateLogisticRegression(epsilon=0.5, evaluate=0.2, rounds=3, random_state=seed)
        found = model.fit(X[rows], y[rows]).evaluation_
        truth = {"accuracy": model.score(X, y), "AUC": roc_auc_score(y, cells(model, X))}
        for name in inside:
            inside[name] += found[name].low <= truth[name] <= found[name].high
        wide.append(found["accuracy"].high - found["accuracy"].low)
    assert min(inside.values()) >= 105 and max(inside.values()) <= 120  # 114 expected; 105 is 3.8 deviations below
    # at most ¼/n by chance, and twelve cells of right answers whose noise has deviation √2/(nμ)
    mu = brentq(lambda m: norm.cdf(-0.5 / m + m / 2) - np.exp(0.5) * norm.cdf(-0.5 / m - m / 2) - 1e-5, 0.01, 1)
    assert 0.3 < np.mean(wide) <= 2 * 1.96 * math.sqrt(0.25 / 300 + 12 * 2 / (300 * mu) ** 2)


@pytest.mark.parametrize("rows, rare, noise", [(1000, 0.05, 30.0), (1000, 0.05, 10.0), (10_000, 0.02, 40.0)])
def test_the_area_of_a_rare_class_is_covered_under_loud_noise(rows, rare, noise):
    """Noise of the size of a class: of 400 intervals 380 should hold the truth, and 367 is three deviations below."""
    share = norm.cdf(np.append(evaluating.SCORES, np.inf) / 1.5 + np.array([[1.0], [-1.0]]))  # of scores up to each
    share = np.diff(share, axis=1, prepend=0.0) * [[1 - rare], [rare]]
    truth, rng, inside = evaluating.auc(share), np.random.default_rng(2), 0
    for _ in range(400):
        counts = rng.multinomial(rows, share.ravel()).reshape(share.shape) + noise * rng.normal(size=share.shape)
        _, low, high = evaluating.bootstrapped(counts, noise, rows)
        inside += low <= truth <= high
    assert inside >= 367


def test_the_noise_of_counts_is_that_of_the_curators():
    """√2/(nμ) a cell, which is what one row can move; for five parties of which two may collude √(5/3) times that."""
    for parties, factor in ((1, 1.0), (5, math.sqrt(5 / 3))):
        shards = confide.Shards.from_groups(np.zeros((50, 1)), np.arange(50) % 3.0, np.arange(50) % parties)
        task = confide.Problem(shards.clip_rows(1.0), confide.losses.Squared(), weighting="rows")
        graph = None if parties == 1 else confide.Graph.ring(5)
        method = JointTally(edges=(0.5, 1.5)).calibrated(task.public(graph), mu=0.7)
        run = confide.simulate(task, graph, method, seeds=range(3000), record=())
        noise = run.estimates[:, 0] - np.array([17, 17, 16]) / 50
        assert noise.std() == pytest.approx(factor * math.sqrt(2) / (50 * 0.7), rel=0.04)


def test_no_residual_moves_the_mean_loss_further_than_charged():
    """One of four residuals becomes any of these; losses are clipped at .8, so the mean moves by at most 2·.8/4."""
    means = []
    for r in (0.0, 1.0, -1.0, 2.0, -2.0, 1e-300, 0.3):
        tally = evaluating.of_residuals(np.array([0.1, r, -0.2, 0.5]), 1.0, 0.8, np.array([0, 0, 1, 1]))
        public = tally.problem.public(confide.Graph.path(2))
        plain = confide.simulate(tally.problem, public.graph, tally.method, record=()).estimates[0, 0, 0]
        own = [0.08, 0.04, 0.4, min(0.8, max(0.8 * r, -0.2 * r))]
        assert plain == pytest.approx(sum(own) / 4)
        means.append(plain)
    claim = float(np.max(tally.method.sensitivity(1, public)))
    assert np.ptp(means) <= claim == pytest.approx(2 * 0.8 / 4, rel=1e-6)


def test_it_costs_a_row_no_more_and_a_ledger_pays_once(tmp_path):
    X, y = labelled(600)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_population("ward-7", epsilon=1.0, delta=1e-5)
    options = {"classes": [0, 1], "ledger": ledger, "population": "ward-7"}
    model = confide.PrivateLogisticRegression(evaluate=0.2, **options).fit(X, y, groups=np.arange(600) % 3)
    assert ledger.spent("ward-7") <= 1.0 and len(ledger.entries("ward-7")) == 1
    assert model.privacy_.spent <= 1.0 and model.evaluation_.epsilon == pytest.approx(1.0, rel=1e-6)
    method, public = model._evaluation
    paid = [event for now in method.charged(public) for event in now]
    assert np.max(confide.privacy.epsilon(paid, 1e-5)) <= model.privacy_.spent
    assert float(np.max(confide.privacy.mu(paid))) <= float(model.privacy_.charged.mu)


@pytest.mark.parametrize(("given", "match"), [
    ({"rounds": 2}, "rounds must be 1"), ({"edges": (1.0, 0.0)}, "must rise"), ({}, "residuals are one feature"),
])  # fmt: skip
def test_what_a_tally_refuses(given, match):
    shards = confide.Shards.split(np.zeros((20, 2)), np.zeros(20), 2).clip_rows(1.0)
    task = confide.Problem(shards, confide.losses.Squared(), weighting="rows")
    with pytest.raises(ValueError, match=match):
        JointTally(**given).check(task.public(confide.Graph.path(2)))


@pytest.mark.parametrize("given, parties", [(JointDescent(rounds=3, collusion=8), 8), (JointDescent(rounds=3), 4),
                                            (DPSGD(rounds=3, clip=1.0), 9)])  # fmt: skip
def test_an_evaluation_holds_against_as_many_as_the_fit(given, parties):
    X, y = labelled(400)
    model = confide.PrivateLogisticRegression(epsilon=1.0, graph="ring", evaluate=0.2, algorithm=given)
    model.fit(X, y, groups=np.arange(400) % 10)
    method, public = model._evaluation
    against = [event for now in method.charged_against(parties, public) for event in now]
    everyone = [event for now in method.charged_against(9, public) for event in now]
    assert np.max(confide.privacy.epsilon(against, 1e-5)) <= 1.0
    promise = 1.0 if model.privacy_.trust is None else model.privacy_.trust.everyone
    assert np.max(confide.privacy.epsilon(everyone, 1e-5)) <= promise * (1 + 1e-12)


def test_what_an_evaluation_says_needs_no_memory_for_the_rows_that_members_claim():
    read = evaluating.scores_reader(10**15)
    share = np.full(2 * (len(evaluating.SCORES) + 1), 1 / (2 * (len(evaluating.SCORES) + 1)))
    found, _ = read(share, 0.0)
    assert found["accuracy"].value == pytest.approx(0.5) and found["AUC"].value == pytest.approx(0.5)


def test_no_held_out_row_shows_itself_by_an_error():
    """Coefficients beyond the doubles are public; that a row's answer is no number would tell of the row."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (40, 2)), np.random.default_rng(1).uniform(-8e307, 8e307, 40)
    first = np.flatnonzero(evaluating.held_out(0.3, None, 40))[0]
    for row in ([0.5, 0.5], [0.0, 0.0]):
        X[first] = row
        with np.errstate(over="ignore"):  # of coef_
            fit = PrivateRidge(target_range=(-8e307, 8e307), row_norm=1e-3, evaluate=0.3, rounds=3, random_state=1)
            found = fit.set_params(epsilon=10.0).fit(X, y).evaluation_["mean absolute error"]
        assert not np.all(np.isfinite(fit.coef_)) and 0 <= found.low <= found.value <= found.high <= 1.6e308


def test_a_target_range_has_a_width():
    with pytest.raises(ConfideError, match="finite as their distance is"):
        PrivateRidge(target_range=(-1.7e308, 1.7e308), row_norm=1.0).fit(np.eye(4), np.arange(4.0))
