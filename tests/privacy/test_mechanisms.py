"""Randomised response: its law, its privacy, and that training on it is unbiased."""

import numpy as np
import pytest
from scipy import stats

import confide
from confide.privacy import randomize_labels


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_each_label_is_kept_with_odds_e_to_the_epsilon(classes, epsilon):
    n, truth = 60_000, 1.0
    out = randomize_labels(np.full(n, truth), epsilon, classes, seed=1)
    values = [-1.0, 1.0] if classes == 2 else list(range(classes))
    keep = np.exp(epsilon) / (np.exp(epsilon) + classes - 1)
    expected = [n * keep if v == truth else n * (1 - keep) / (classes - 1) for v in values]
    counts = [np.sum(out == v) for v in values]
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    # the definition: no outcome is more than e^ε times as likely under one label as under another
    assert keep / ((1 - keep) / (classes - 1)) == pytest.approx(np.exp(epsilon))


def test_secure_draws_follow_the_same_law():
    out = randomize_labels(np.full(20_000, -1.0), 1.0)
    keep = np.exp(1) / (1 + np.exp(1))
    assert stats.binomtest(int(np.sum(out == -1)), 20_000, keep).pvalue > 1e-6
    assert not np.array_equal(out, randomize_labels(np.full(20_000, -1.0), 1.0))


def test_per_user_epsilon_and_seed():
    eps = np.array([1e-3] * 5000 + [20.0] * 5000)
    out = randomize_labels(np.ones(10_000), eps, seed=3)
    assert abs(out[:5000].mean()) < 0.06 and np.all(out[5000:] == 1)
    assert np.array_equal(out, randomize_labels(np.ones(10_000), eps, seed=3))


def test_the_corrected_loss_recovers_the_model_of_the_true_labels():
    """Statistics, not algebra: with many users the noisy optimum approaches the clean one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    eps = rng.choice([0.8, 1.5], size=len(X))
    groups = np.arange(len(X)) % 4
    losses, L2 = confide.losses, confide.penalties.L2(0.01)
    clean = confide.Problem(confide.Shards.from_groups(X, y, groups), losses.Logistic(), L2).solve()
    noisy = confide.Shards.from_groups(X, randomize_labels(y, eps, seed=5), groups, {"epsilon": eps})
    fixed = confide.Problem(noisy, losses.NoisyLabels(losses.Logistic(), epsilon_min=0.5), L2).solve()
    naive = confide.Problem(noisy, losses.Logistic(), L2).solve()
    assert np.linalg.norm(fixed - clean) < 0.1 * np.linalg.norm(clean)
    assert np.linalg.norm(naive - clean) > 0.3 * np.linalg.norm(clean)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"epsilon": np.inf}, {"classes": 1}, {"labels": [0.0]}])
def test_bad_input_is_one_line(bad):
    options = {"labels": [1.0, -1.0], "epsilon": 1.0, "classes": 2} | bad
    with pytest.raises(ValueError, match="must be") as error:
        randomize_labels(**options)
    assert "\n" not in str(error.value)
