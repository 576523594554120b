"""Forecasts: rows as hard as stated, and scores that scikit-learn computes alike."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import d2_pinball_score, r2_score

from confide import privacy
from confide.estimators.fitting import FitOptions, PooledRows, learn
from confide.planning.plan import PRIVATE_ROWS, Generated, Own, plan, private_alone, scorer

ONE = Generated((600, 300, 100), features=6)


@pytest.fixture(scope="module")
def forecast():
    return plan(ONE, [3.0, 0.5], FitOptions(), seeds=3)


# --- generated rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("best", "features"), [(0.7, 3), (0.85, 20), (0.95, 8)])
def test_generated_rows_are_as_hard_as_stated(best, features):
    train, test = Generated((20_000, 20_000), features, best=best).draw(0)
    score = LogisticRegression(C=1e4, max_iter=1000).fit(train.X, train.y).score(test.X, test.y)
    assert score == pytest.approx(best, abs=0.02)  # 4,000 test rows: a standard error of 0.006
    assert np.linalg.norm(train.X, axis=1).max() <= 1 + 1e-12 and np.abs(train.X).max() <= 1


def test_generated_numbers_are_as_hard_as_stated():
    train, test = Generated((20_000, 20_000), 10, best=0.6, kind="real").draw(1)
    assert r2_score(test.y, LinearRegression().fit(train.X, train.y).predict(test.X)) == pytest.approx(0.6, abs=0.03)
    assert np.abs(train.y).max() <= 1


def test_skew_moves_the_parties_apart():
    alike, apart = (Generated((2000,) * 3, 4, skew=skew).draw(0)[0] for skew in (0.0, 1.0))
    means = [[rows.X[rows.party == k].mean(axis=0) for k in range(3)] for rows in (alike, apart)]
    spread = [np.std(one, axis=0).mean() for one in means]
    assert spread[0] < 0.02 and spread[1] > 0.1


def test_seeds_draw_other_rows_and_repeat_themselves():
    first, again, other = (ONE.draw(seed)[0] for seed in (0, 0, 1))
    assert np.array_equal(first.X, again.X) and np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X) and first.sizes.tolist() == [600, 300, 100]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sizes": (100,)}, "at least 2"), ({"sizes": (100, 5)}, "at least 20"), ({"features": 0}, "features 0"),
        ({"best": 0.5}, "best 0.5"), ({"best": float("nan")}, "best"), ({"skew": -1.0}, "skew -1"),
    ],
)  # fmt: skip
def test_what_can_not_be_generated_is_one_line(change, named):
    with pytest.raises(ValueError, match=named):
        replace(ONE, **change)


# --- scores -----------------------------------------------------------------------------------------------------------


def test_without_noise_it_is_what_scikit_learn_reaches(forecast):
    for seed in range(3):
        train, test = ONE.draw(seed)
        oracle = LogisticRegression(C=1e4, max_iter=1000).fit(train.X, train.y)
        for k in range(3):
            mine, own = test.party == k, train.party == k
            assert forecast.free[seed, k] == pytest.approx(oracle.score(test.X[mine], test.y[mine]), abs=0.005)
            alone = LogisticRegression(C=1e6 / own.sum(), max_iter=10_000).fit(train.X[own], train.y[own])
            assert forecast.alone[seed, k] == pytest.approx(alone.score(test.X[mine], test.y[mine]), abs=0.005)


def test_privacy_costs_and_joining_helps_the_small(forecast):
    assert forecast.epsilons == (0.5, 3.0)  # sorted
    low, high = (forecast.average(scores).mean() for scores in forecast.joint)
    assert low < high < forecast.average(forecast.free).mean() + 0.01
    assert np.all(forecast.average(forecast.alone_private).mean(axis=1) < [low, high])
    gain = forecast.gain[1].mean(axis=0)
    assert gain[2] > 0 and gain[2] > gain[0]  # 100 rows against 600
    np.testing.assert_allclose(forecast.gain, forecast.joint - forecast.alone[None])


def test_large_epsilon_is_as_good_as_no_noise():
    found = plan(Generated((2000,) * 3, 5), [50.0], seeds=2)
    assert found.average(found.joint[0]).mean() == pytest.approx(found.average(found.free).mean(), abs=0.01)
    assert found.average(found.alone_private[0]).mean() == pytest.approx(found.average(found.alone).mean(), abs=0.01)


def test_bytes_are_counted_by_hand(forecast):
    numbers = 60 * (6 + 1) + 2 * 6  # gradients, and the moments of six features
    assert forecast.bytes_sent.tolist() == [2 * 3 * numbers * 8] * 2  # up and down, three parties
    assert forecast.rounds.tolist() == [61, 61] and np.all(forecast.seconds > 0)


def test_scores_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, guess, party = rng.normal(size=90), rng.normal(size=90), np.repeat([0, 1, 2], [10, 30, 50])
    test = PooledRows(np.zeros((90, 1)), y, party, ("a", "b", "c"), "real")
    weights = test.sizes / 90
    assert scorer(FitOptions("ridge"), test)(guess) @ weights == pytest.approx(r2_score(y, guess))
    ours = scorer(FitOptions("quantile", quantile=0.3), test)(guess) @ weights
    assert ours == pytest.approx(d2_pinball_score(y, guess, alpha=0.3))


@pytest.mark.parametrize("model", ["svc", "lasso", "quantile"])
def test_other_models_are_forecast_too(model):
    kind = "binary" if model == "svc" else "real"
    found = plan(Generated((400, 400), 3, best=0.8, kind=kind), [5.0], FitOptions(model), seeds=2)
    assert found.average(found.joint[0]).mean() > found.average(found.constant).mean() + 0.1
    assert found.metric == {"svc": "accuracy", "lasso": "R²", "quantile": "D²"}[model]


def test_a_party_alone_spends_no_more_than_epsilon():
    settings = FitOptions(epsilon=0.7, seed=0)
    fit = learn(ONE.draw(0)[0], settings)
    ((shards, loss),) = fit.parts
    problem = fit.estimator._problem(shards.only(2), loss, fit.penalty)
    method = private_alone(problem, settings)
    public = problem.public(None)
    assert method.guarantee(public).label == "proven" and public.sizes.tolist() == [100]
    events = [e for now in method.events(public) for e in now]
    assert 0.6 < float(np.max(privacy.epsilon(events, 1e-5))) <= 0.7


# --- own rows ---------------------------------------------------------------------------------------------------------


def test_own_rows_are_held_out_by_party_and_marked():
    rng = np.random.default_rng(3)
    rows = PooledRows(rng.uniform(-0.5, 0.5, (400, 3)), np.where(rng.random(400) < 0.5, 1.0, -1.0),
                np.repeat([0, 1], [100, 300]), ("mercy", "north"))  # fmt: skip
    source = Own(rows)
    train, test = source.draw(0)
    assert train.sizes.tolist() == [80, 240] and test.sizes.tolist() == [20, 60]
    both = {tuple(x) for x in train.X} | {tuple(x) for x in test.X}
    assert len(both) == 400 and not {tuple(x) for x in train.X} & {tuple(x) for x in test.X}
    assert not np.array_equal(source.draw(1)[1].X, test.X)
    found = plan(source, [1.0], seeds=1)
    document = found.to_json()
    assert document["for_release"] is False and document["why"] == PRIVATE_ROWS and document["simulated"] is True
    assert document["not_private"]["sd"] is None  # one seed has no error bar
    with pytest.raises(ValueError, match="'mercy' has fewer than 20 rows"):
        Own(rows.take(np.r_[0:10, 100:400]))


def test_generated_forecasts_may_be_released(forecast):
    document = forecast.to_json()
    assert document["for_release"] is True and len(document["parties"]) == 3
    assert "proven" in document["guarantee_with_secure_noise"]
    first, second = document["trust"]
    # with what nodes hold for restarts, which is a part of ε
    assert first.startswith("ε = 0.4665 if at most 1 of 3 collude, ε = ") and "if at most 1 of 3" in second


def test_whom_to_trust_is_a_setting():
    found = plan(Generated((60,) * 4, 2), [1.0], FitOptions(collusion=2), seeds=1)
    assert found.trust[0].startswith("ε = 0.9326 if at most 2 of 4 collude")
    assert plan(Generated((60,) * 4, 2), [1.0], FitOptions(collusion=3), seeds=1).trust == ()


def test_progress_counts_every_fit():
    heard = []
    plan(Generated((50, 50), 2), [1.0, 2.0], seeds=2, watch=lambda done, total: heard.append((done, total)))
    assert heard[0] == (0, 18) and heard[-1] == (18, 18) and [d for d, _ in heard] == list(range(19))


@pytest.mark.parametrize("epsilons", [[], [0.0], [1.0, 1.0], [float("inf")]])
def test_bad_epsilons_are_one_line(epsilons):
    with pytest.raises(ValueError, match="must be different finite numbers above 0"):
        plan(ONE, epsilons)


def test_secure_noise_and_seeded_noise_agree_on_the_cost():
    rows = Generated((60, 60), 2).draw(0)[0]
    seeded, secure = (learn(rows, FitOptions(rounds=20, seed=seed)) for seed in (0, None))
    assert seeded.spent.guarantee.label == "none" and secure.spent.guarantee.label == "proven"
    assert seeded.spent.spent == pytest.approx(secure.spent.spent, rel=1e-6)
