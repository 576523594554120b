"""What the estimators promise beyond scikit-learn's checks: privacy, groups, bounds, and the company they keep."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimator_cases import labelled, measured
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import confide
from confide.errors import ConfideError
from confide.estimators import one_fit as engine
from confide.estimators.one_fit import EveryonesNoise, SummedNoise
from confide.privacy import ZCDP, epsilon
from confide.privacy.budget import BudgetExceeded
from confide.privacy.discrete_gaussian import GRID, Reservoir, gaussian, quantise
from confide.privacy.ledger import Ledger
from confide.privacy.secure import SecureNoise
from confide.runs.driver import Driver
from confide.runs.party import Party, add

# --- privacy ----------------------------------------------------------------------------------------------------------


def test_without_a_random_state_noise_is_secure_and_paid_for():
    X, y = labelled()
    first = confide.PrivateLogisticRegression(rounds=5).fit(X, y)
    again = clone(first).fit(X, y)
    assert not np.allclose(first.coef_, again.coef_)
    assert first.privacy_.guarantee.label == "proven"
    assert first.privacy_.spent == pytest.approx(1.0, rel=1e-6) and first.privacy_.spent <= 1.0
    assert first.privacy_.exact < first.privacy_.spent < first.privacy_.exact * (1 + 1e-6)
    charged = first.privacy_.charged
    assert first.privacy_.zcdp == epsilon([ZCDP(charged.mu**2 / 2)], 1e-5) > 1.05 * first.privacy_.spent
    assert 0 < charged.slack < 1e-32 and f"(through zCDP {first.privacy_.zcdp:.4g})" in str(first.privacy_)
    assert "this fit only; selection not covered" in str(first.privacy_)


def test_a_seed_makes_a_simulation_of_the_same_cost_that_protects_nobody():
    X, y = labelled()
    real = confide.PrivateLogisticRegression(rounds=5).fit(X, y)
    model = confide.PrivateLogisticRegression(rounds=5, random_state=3).fit(X, y)
    assert np.array_equal(model.coef_, clone(model).fit(X, y).coef_)
    assert model.privacy_.guarantee.label == "none" and "seeded noise protects nobody" in str(model.privacy_)
    assert model.privacy_.spent == pytest.approx(real.privacy_.spent, rel=1e-8)


def test_secure_noise_has_the_scale_of_the_simulated_one():
    X, y = labelled(100)
    options = {"rounds": 1, "classes": ["ill", "well"]}
    real = [confide.PrivateLogisticRegression(**options).fit(X, y).party_coef_ for _ in range(200)]
    seeded = [confide.PrivateLogisticRegression(random_state=s, **options).fit(X, y).party_coef_ for s in range(200)]
    assert np.std(real) == pytest.approx(np.std(seeded), rel=0.15)  # 600 draws each


def test_what_is_chosen_and_spent_does_not_depend_on_the_data():
    X, y = labelled()
    other = X[::-1] * 100, np.roll(y, 7)
    fits = [confide.PrivateLogisticRegression(random_state=0).fit(*data) for data in ((X, y), other)]
    assert str(fits[0].privacy_) == str(fits[1].privacy_)
    assert len(fits[0].history_["round"]) == len(fits[1].history_["round"])


def test_a_row_counts_no_more_for_being_long():
    X, y = labelled()
    X[0] = [3.0, 4.0, 0.0]
    longer = X.copy()
    longer[0] *= 1000
    model = confide.PrivateLogisticRegression(random_state=0)
    assert np.allclose(model.fit(X, y).coef_, clone(model).fit(longer, y).coef_, rtol=0, atol=1e-9)
    assert np.allclose(model.decision_function(X), model.decision_function(longer))


def test_classes_may_be_public_and_else_the_text_says_where_they_came_from():
    X, y = labelled()
    read = confide.PrivateLogisticRegression(random_state=0).fit(X, y)
    assert "the list of classes was read from y" in str(read.privacy_)
    model = confide.PrivateLogisticRegression(random_state=0, classes=["well", "ill", "dead"]).fit(X, y)
    assert "read from y" not in str(model.privacy_)
    assert model.classes_.tolist() == ["well", "ill", "dead"] and model.coef_.shape == (3, 3)
    with pytest.raises(ValueError, match="the label is not one of the classes"):
        confide.PrivateLogisticRegression(classes=["well", "dead"]).fit(X, y)


def test_only_proven_methods_run_unless_asked():
    X, y = measured(200)
    assumed = confide.algorithms.CDPADMM(rounds=5, assumed_bound=1.0)
    with pytest.raises(ValueError, match=r"CDPADMM: assumed: .* allow_unproven=True"):
        confide.PrivateRidge(algorithm=assumed, target_range=(-1, 1), parties=5).fit(X, y)
    model = confide.PrivateRidge(algorithm=assumed, target_range=(-1, 1), parties=5, allow_unproven=True).fit(X, y)
    assert model.privacy_.guarantee.label == "assumed"
    given = confide.algorithms.DPSGD(rounds=5, clip=0.5)
    proven = confide.PrivateRidge(algorithm=given, target_range=(-1, 1), parties=5).fit(X, y)
    assert proven.privacy_.guarantee.label == "proven" and proven.privacy_.spent <= 1.0
    with pytest.raises(ValueError, match="pools all rows"):
        confide.PrivateRidge(algorithm=confide.algorithms.ORZO(), target_range=(-1, 1), allow_unproven=True).fit(X, y)


def test_objective_perturbation_runs_in_a_simulation_and_has_no_secure_sampler():
    X, y = labelled(200)
    method = confide.algorithms.RADMM(rounds=4, release_noise=0.05)
    model = confide.PrivateLogisticRegression(algorithm=method, epsilon=4.0, parties=5, random_state=0).fit(X, y)
    assert 0 < model.privacy_.spent <= 4.0
    with pytest.raises(ValueError, match="no secure sampler"):
        confide.PrivateLogisticRegression(algorithm=method, epsilon=4.0, parties=5).fit(X, y)


@pytest.mark.parametrize("calculus", ["gaussian", "zcdp"])
def test_a_fit_of_the_whole_budget_is_paid_in_either_calculus(tmp_path, calculus):
    """The same release: a Gaussian budget counts its exact cost, one opened in zCDP goes on at ρ = μ²/2."""
    X, y = labelled()
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_population("ward-7", epsilon=1.0, delta=1e-5, calculus=calculus)
    asked = 1.0 if calculus == "gaussian" else 0.9  # of a Gaussian; through zCDP that is 0.985
    model = confide.PrivateLogisticRegression(rounds=3, epsilon=asked, ledger=ledger, population="ward-7").fit(X, y)
    (entry,) = ledger.entries("ward-7")
    assert list(entry.events) == [model.privacy_.charged] and model.privacy_.charged.slack > 0
    paid = model.privacy_.spent if calculus == "gaussian" else model.privacy_.zcdp
    assert ledger.spent("ward-7") == pytest.approx(paid, rel=1e-9) and paid <= 1.0


def test_a_ledger_pays_for_a_search_and_stops_it(tmp_path):
    X, y = labelled(120)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_population("ward-7", epsilon=3.0, delta=1e-5)
    model = confide.PrivateLogisticRegression(rounds=3, epsilon=1.0, ledger=ledger, population="ward-7")
    search = GridSearchCV(model, {"penalty_strength": [0.0, 0.1]}, cv=2, error_score="raise").fit(X, y)
    assert len(ledger.entries("ward-7")) == 5  # two settings, two folds, and the last fit
    assert 1.0 < ledger.spent("ward-7") <= 3.0
    assert "selection not covered" not in str(search.best_estimator_.privacy_)
    with pytest.raises(BudgetExceeded, match="ward-7"):
        for _ in range(10):
            clone(model).fit(X, y)
    with pytest.raises(ValueError, match="a ledger pays for secure noise"):
        clone(model).set_params(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="population=None: a ledger needs it"):
        clone(model).set_params(population=None).fit(X, y)


# --- the model --------------------------------------------------------------------------------------------------------


def test_with_little_noise_it_is_logistic_regression():
    X, y = labelled(4000)
    model = confide.PrivateLogisticRegression(epsilon=100, random_state=0).fit(X, y)
    usual = LogisticRegression(C=1e3).fit(X, y)
    assert np.mean(model.predict(X) == usual.predict(X)) > 0.97
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.party_coef_.shape == (1, 1, 3) and np.array_equal(model.party_coef_[0], model.coef_)


@pytest.mark.parametrize("kind", ["PrivateLogisticRegression", "PrivateLinearSVC"])
def test_several_classes(kind):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 3
    X = 0.8 * np.column_stack([np.cos(2.1 * y), np.sin(2.1 * y)]) + 0.1 * rng.normal(size=(3000, 2))
    model = getattr(confide, kind)(epsilon=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95 and model.coef_.shape == (3, 2)
    assert model.privacy_.spent == pytest.approx(2.0, rel=1e-6)  # one against the rest shares it, too


@pytest.mark.parametrize(
    "model",
    [
        confide.PrivateRidge(), confide.PrivateLasso(), confide.PrivateElasticNet(), confide.PrivateHuberRegressor(),
        confide.PrivateQuantileRegressor(),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_regressions_find_the_line(model):
    X, y = measured(10_000)
    model = clone(model).set_params(epsilon=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7  # R² of the true line: 0.81
    assert model.coef_ == pytest.approx([0.6, -0.4, 0.0], abs=0.12) and model.intercept_ == pytest.approx(0.2, abs=0.05)


def test_quantiles_cover():
    X, y = measured(10_000)
    model = confide.PrivateQuantileRegressor(quantile=0.9, epsilon=3, random_state=0).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.9, abs=0.03)


def test_lasso_leaves_out_what_it_should():
    X, y = measured(10_000)
    model = confide.PrivateLasso(penalty_strength=0.2, epsilon=3, random_state=0).fit(X, y)
    assert np.abs(model.coef_).max() < 0.05


@pytest.mark.parametrize("kind", ["PrivateRidge", "PrivateLasso", "PrivateElasticNet"])
def test_units_of_rows_and_targets_do_not_matter(kind):
    """The same numbers in other units, bounds and penalties converted with them, give the same model."""
    X, y = measured(500)
    make, strength = getattr(confide, kind), 0.01
    model = make(random_state=0, penalty_strength=strength, target_range=(-1, 1), row_norm=1)
    model = model.set_params(**({"l1_ratio": 1.0} if "Net" in kind else {})).fit(X, y)
    other = clone(model).set_params(
        row_norm=10.0, target_range=(-3.0, 7.0), penalty_strength=strength * (100 if kind == "PrivateRidge" else 50)
    ).fit(10 * X, 5 * y + 2)  # fmt: skip
    assert np.allclose(other.predict(10 * X), 5 * model.predict(X) + 2)


def test_without_intercept():
    X, y = measured(500)
    model = confide.PrivateRidge(fit_intercept=False, target_range=(0, 2), random_state=0).fit(X, y)
    assert model.intercept_ == 0 and model.predict(np.zeros((1, 3))) == 0


# --- parties and networks ---------------------------------------------------------------------------------------------


def test_groups_are_the_parties():
    X, y = labelled()
    hospital = np.repeat(["mercy", "lake", "north"], [100, 200, 300])
    model = confide.PrivateLogisticRegression(random_state=0).fit(X, y, groups=hospital)
    assert model.party_names_ == ("lake", "mercy", "north") and model.graph_.size == 3
    graph = confide.Graph.from_edges([(0, 1), (1, 2)], names=["north", "mercy", "lake"])
    named = confide.PrivateLogisticRegression(random_state=0, graph=graph).fit(X, y, groups=hospital)
    assert named.party_names_ == ("north", "mercy", "lake") and named.graph_ is graph
    with pytest.raises(ValueError, match="groups name 1 party, 'mercy'"):
        confide.PrivateLogisticRegression().fit(X, y, groups=np.full(600, "mercy"))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        confide.PrivateLogisticRegression().fit(X, y, groups=hospital[1:])


@pytest.mark.parametrize("graph", ["ring", "complete", "star", "path", confide.Graph.random(12, 20, seed=1)], ids=str)
def test_any_connected_network_learns_from_unlike_parties(graph):
    X, y = labelled(6000)
    groups = np.argsort(np.argsort(X[:, 0])) // 500  # every party sees a slice of the first feature
    model = confide.PrivateLogisticRegression(epsilon=3, graph=graph, random_state=0).fit(X, y, groups=groups)
    assert model.score(X, y) > 0.75 and model.history_["consensus"][-1] < 30


def test_two_parties_and_fewer_rows_than_parties():
    X, _ = labelled(3)
    assert confide.PrivateLogisticRegression(random_state=0, parties=2).fit(*labelled(50)).graph_.size == 2
    assert confide.PrivateRidge(random_state=0, parties=5).fit(X, X[:, 0]).graph_.size == 3


# --- company ----------------------------------------------------------------------------------------------------------


def test_pipelines_searches_and_scores():
    X, y = labelled()
    pipe = make_pipeline(FunctionTransformer(np.tanh), confide.PrivateLogisticRegression(random_state=0))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.6
    search = GridSearchCV(pipe, {"privatelogisticregression__epsilon": [0.01, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"privatelogisticregression__epsilon": 10.0}
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert pipe.set_output(transform="pandas").fit(frame, y)[-1].feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([0.0, 1.0, np.nan], "groups[2] is missing: name the party of every row"),
        (pd.Series(["a", None, "b"]), "groups[1] is missing"), (pd.Series(["a", "b", pd.NA]), "groups[2] is missing"),
        (np.array(["a", 1, "b"], object), "groups: names are of types int, str"),
    ],
)  # fmt: skip
def test_a_row_without_a_party_is_refused_in_one_line(groups, said):
    X, y = labelled()
    groups = np.resize(np.asarray(groups), len(y))
    with pytest.raises(ValueError) as error:
        confide.PrivateLogisticRegression(rounds=2, random_state=0).fit(X, y, groups=groups)
    assert isinstance(error.value, ConfideError) and said in str(error.value) and "\n" not in str(error.value)


def test_groups_are_routed():
    X, y = labelled()
    groups = np.arange(600) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        model = confide.PrivateLogisticRegression(random_state=0).set_fit_request(groups=True)
        search = GridSearchCV(model, {"penalty_strength": [0.0, 0.01]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
        assert search.best_estimator_.party_names_ == tuple("012345")
        pipe = make_pipeline(FunctionTransformer(), model).fit(X, y, groups=groups)
        assert pipe[-1].graph_.size == 6


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_names(library):
    frames = pytest.importorskip(library)
    X, y = labelled(100)
    frame = frames.DataFrame({"age": X[:, 0], "bmi": X[:, 1], "stay": X[:, 2]})
    model = confide.PrivateLogisticRegression(random_state=0).fit(frame, frames.Series(y))
    assert model.feature_names_in_.tolist() == ["age", "bmi", "stay"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["stay", "bmi", "age"]])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": -1.0}, "epsilon=.*must be"), ({"delta": 2.0}, "delta=.*must be"), ({"row_norm": 0}, "row_norm=0"),
        ({"graph": "web"}, "graph='web': must be one of ring"), ({"parties": 0}, "parties=0"),
        ({"collusion": 1}, "one party has no others"),
        ({"rounds": 0}, "rounds=0"), ({"algorithm": "best"}, "algorithm='best'"),
        ({"penalty_strength": -1.0}, "penalty_strength=-1.0"), ({"target_range": (1, 1)}, "target_range="),
        ({"random_state": -1}, "random_state=-1"),
        ({"algorithm": confide.algorithms.CDPADMM(clip=1.0), "rounds": 3}, "leave rounds=None"),
        ({"algorithm": confide.algorithms.JointDescent(), "collusion": 1}, "leave collusion=None"),
        ({"algorithm": confide.algorithms.CDPADMM(clip=1.0)}, "CDPADMM learns over a network: give groups, or parties"),
        ({"collusion": 5, "parties": 5}, "collusion=5: must be a whole number from 1 to 4"),
    ],
)  # fmt: skip
def test_bad_parameters_get_one_line(change, said):
    X, y = measured(50)
    with pytest.raises(ValueError, match=said) as caught:
        confide.PrivateRidge(**{"target_range": (-1, 1), **change}).fit(X, y)
    assert "\n" not in str(caught.value)


# --- one process that plays all parties -------------------------------------------------------------------------------


def test_every_party_has_noise_of_its_own_deviation():
    noise = EveryonesNoise(3)
    value, scale = np.zeros((1, 3, 4000)), np.array([[1.0], [2.0], [8.0]])
    drawn = noise.at(1).gaussian("answer", value, scale)[0] / scale
    assert drawn.std(axis=1) == pytest.approx([1, 1, 1], abs=0.05)  # 4.5 standard errors
    assert np.abs(np.corrcoef(drawn) - np.eye(3)).max() < 0.08
    noise.prepare(4000)
    same = noise.at(2).gaussian("answer", value, np.full((3, 1), 5.0))[0] / 5
    assert same.std(axis=1) == pytest.approx([1, 1, 1], abs=0.05)
    assert np.abs(np.corrcoef(np.vstack([drawn, same])) - np.eye(6)).max() < 0.08
    with pytest.raises(RuntimeError, match="drawn already"):
        noise.at(2).gaussian("answer", value, scale)
    with pytest.raises(ValueError, match="no secure sampler"):
        noise.gamma_norm("answer", 3)


def test_of_a_private_sum_nothing_but_the_sum_is_released(monkeypatch):
    """Parts whose whole numbers of steps have the same sum give the same bytes; doubles of the parts would not."""
    monkeypatch.setattr(Reservoir, "take", lambda self, count: np.zeros(count, np.int64))
    step, many = 3.0 / 2**GRID, 2**52 + 1
    parts = [many * step, (5 - many) * step], [2 * step, 3 * step]
    assert [quantise(part, 3.0).tolist() for part in parts] == [[many, 5 - many], [2, 3]]
    assert sum(gaussian(np.array(parts[0]), 3.0, Reservoir())) != sum(gaussian(np.array(parts[1]), 3.0, Reservoir()))
    heard = [SummedNoise(2).at(1).gaussian("answer", np.array(part)[None, :, None], np.full((2, 1), 3.0))
             for part in parts]  # fmt: skip
    assert heard[0].tobytes() == heard[1].tobytes() and heard[0].sum() == pytest.approx(5 * step, rel=1e-15)


def test_noise_of_a_private_sum_is_everyones():
    noise = SummedNoise(9).at(1).gaussian("answer", np.ones((1, 9, 4000)), np.full((9, 1), 2.0))
    assert noise.sum(axis=1).std() == pytest.approx(6.0, rel=0.05) and (noise == noise[:, :1]).all()
    assert noise.sum(axis=1).mean() == pytest.approx(9.0, abs=0.45)  # 4.7 standard errors
    with pytest.raises(RuntimeError, match="share theirs"):
        SummedNoise(2).at(1).gaussian("answer", np.ones((1, 2, 1)), np.array([[1.0], [2.0]]))


def test_a_secure_fit_by_private_sums_hands_on_totals_only(monkeypatch):
    """Of its evaluation, too: every party's message is its share of one total."""
    sent, step = [], Driver.step
    monkeypatch.setattr(Driver, "step", lambda self, *args: sent.append((self, step(self, *args))) or sent[-1][1])
    X, y = labelled(400)
    confide.PrivateLogisticRegression(epsilon=2.0, evaluate=0.2, row_norm=1.0).fit(X, y, groups=np.arange(400) % 4)
    kinds = {type(driver.algorithm).__name__ for driver, _ in sent}
    assert kinds == {"JointDescent", "JointTally"}
    assert all((message == message[:, :1]).all() and message.shape[1] == 4 for _, message in sent)


@pytest.mark.parametrize("kind", [confide.algorithms.DPSGD, confide.algorithms.JointDescent])
def test_what_it_computes_is_what_parties_by_themselves_do(kind, monkeypatch):
    """With the noise taken out, every party's model after every round, beside one `Party` each."""
    X, y = labelled(90)
    shards = confide.Shards.split(X, np.where(y == "ill", 1.0, -1.0), 3).clip_rows(1.0)
    problem = confide.Problem(shards, confide.losses.Logistic(), weighting="rows", intercept=True)
    graph = confide.Graph.ring(3)
    public = problem.public(graph)
    method = kind(rounds=4, clip=0.5).calibrated(public, 1.0, 1e-5)
    monkeypatch.setattr(EveryonesNoise, "gaussian", lambda self, name, value, scale: value)
    monkeypatch.setattr(SecureNoise, "gaussian", lambda self, name, value, scale: value)
    parties = [Party(k, method, public, problem.only(k), SecureNoise()) for k in range(3)]
    for models in engine.rounds(problem, graph, method, None):
        sent = {k: party.send() for k, party in enumerate(parties)}
        for party in parties:
            if method.topology == "all":
                party.receive_sum(add(sent.values(), len(sent[0]) // 8))
            else:
                party.receive(sent)
        np.testing.assert_allclose(models, [party.estimate for party in parties], rtol=1e-9, atol=1e-12)
