"""Randomised response: its law, its privacy, and that training on it is unbiased."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy import stats

import confide
from confide.privacy import mechanisms, randomize_labels


def digits(epsilon, classes, count):
    """The first words of the chance to move, (k-1)/(e^ε + k-1), in base 2^64, by mpmath."""
    with mpmath.workprec(64 * count + 1300):  # 5e-324 has its digit at 1,074
        chance = (classes - 1) / (mpmath.exp(mpmath.mpf(epsilon)) + classes - 1)
        whole = int(mpmath.floor(mpmath.ldexp(chance, 64 * count)))
    return [(whole >> 64 * (count - 1 - i)) % 2**64 for i in range(count)]


def scripted(stream):
    return lambda n: np.array([next(stream) for _ in range(n)], np.uint64)


def moves(epsilon, classes, words, then=()):
    """Whether a label moves when the generator gives these words, and then one word for ever."""
    stream = itertools.chain(words, itertools.repeat(then)) if then != () else iter(words)
    return bool(mechanisms._moves(np.array([epsilon]), classes, scripted(stream))[0])


@pytest.mark.parametrize("classes", [2, 3, 1000])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 0.3, 1.0, 7.5, 36.0, 40.0, 44.0, 100.0, 708.0, 710.0, 800.0])
def test_the_decision_is_that_of_the_exact_chance(epsilon, classes):
    """U < q where U has the words drawn as its digits: just below q the label moves, just above it stays."""
    for length in range(1, 22):
        q = digits(epsilon, classes, length)
        prefix, last = q[:-1], q[-1]
        if last > 0:
            assert moves(epsilon, classes, [*prefix, last - 1], then=2**64 - 1)
        if last < 2**64 - 1:
            assert not moves(epsilon, classes, [*prefix, last + 1], then=0)


@pytest.mark.parametrize("epsilon", [45.0, 800.0, 1e5, 1e308])
def test_a_label_moves_with_a_chance_that_is_small_and_never_zero(epsilon):
    assert not moves(epsilon, 2, [1]) or digits(epsilon, 2, 1)[0] > 1
    assert not moves(epsilon, 2, [0, 0, 0, 2**40] if epsilon > 200 else [0, 2**64 - 1])
    assert np.array_equal(randomize_labels(np.ones(1000), epsilon), np.ones(1000))  # e^-45 · 1000 = 3e-17
    assert np.array_equal(randomize_labels(np.ones(1000), epsilon, seed=0), np.ones(1000))


def test_seeded_and_secure_draws_share_the_decision(monkeypatch):
    """Every draw goes through the exact decision: no second, rounded one beside it."""
    asked = []
    inner = mechanisms._moves

    def spy(eps, classes, words):
        asked.append(words(3).dtype)
        return inner(eps, classes, words)

    monkeypatch.setattr(mechanisms, "_moves", spy)
    randomize_labels(np.ones(4), 1.0), randomize_labels(np.ones(4), 1.0, seed=1)
    assert asked == [np.dtype(np.uint64)] * 2


@pytest.mark.parametrize("count", [2, 3, 7, 2**40 + 1])
def test_the_other_class_is_uniform_by_rejection(count):
    """The largest 2^64 mod count words, which would favour the small numbers, are drawn again."""
    whole = 2**64 - 2**64 % count
    stream = iter([whole - 1, 0, *range(whole, min(whole + 3, 2**64)), count + 1])
    again = 2 if whole < 2**64 else 1
    assert mechanisms._below(count, again + 1, scripted(stream)).tolist()[:2] == [count - 1, 0]
    refused = iter([2**64 - 1] * 3 + [count + 1])
    if whole < 2**64:
        assert mechanisms._below(count, 1, scripted(refused)).tolist() == [1]
    assert mechanisms._below(1, 3, scripted(iter([]))).tolist() == [0, 0, 0]


def test_a_seed_keeps_the_labels_it_gave():
    """By the plain formula in doubles, which is the same decision but for the last of 53 bits."""
    rng = np.random.default_rng(7)
    u, other = rng.random(5000), rng.integers(0, 4, 5000)
    y, keep = np.arange(5000) % 5, np.e**1.5 / (np.e**1.5 + 4)
    assert np.array_equal(randomize_labels(y, 1.5, 5, seed=7), np.where(u < keep, y, (y + 1 + other) % 5))


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
