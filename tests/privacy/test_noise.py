"""Simulated noise: published vectors of the generator, keys that repeat, and distributions."""

import numpy as np
import pytest
from scipy import stats

from confide import threads
from confide.privacy.noise import SimulatedNoise, philox

DRAWS = ["normal", "uniform", "gamma_norm", "ball", "direction"]
draws = pytest.mark.parametrize("draw", DRAWS)


def noise(seeds=(0, 1, 7), agents=(0, 1, 2, 3), t=1):
    return SimulatedNoise(np.array(seeds, np.int64), np.array(agents, np.int64), t)


# kat_vectors of Random123 1.14 (Salmon, Moraes, Dror and Shaw), lines "philox4x32 10"
@pytest.mark.parametrize(("counter", "key", "expected"), [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
])  # fmt: skip
def test_philox_gives_the_published_words(counter, key, expected):
    words = [np.uint64(int(word, 16)) for word in f"{counter} {key}".split()]
    assert " ".join(f"{int(w):08x}" for w in philox(*words)) == expected


def test_normals_are_box_and_muller_of_the_published_words():
    """Counter (block 0, agent 0, round 0, name) under key 0, from the words themselves."""
    name = "plumless"  # its CRC-32 is 4ddb0c25, the textbook collision with "buckeroo"
    words = philox(*(np.uint64(x) for x in (0, 0, 0, 0x4DDB0C25, 0, 0)))
    u, v = ((int(a) * 2**20 + int(b) // 2**12 + 0.5) / 2**52 for a, b in (words[:2], words[2:]))
    expected = np.sqrt(-2 * np.log(u)) * np.array([np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)])
    np.testing.assert_allclose(noise([0], [0], 0).normal(name, 2)[0, 0], expected, rtol=1e-13)
    np.testing.assert_array_equal(noise([0], [0], 0).uniform(name, 2)[0, 0], [u, v])


@draws
@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_subset_repeats_its_part(draw, width):
    whole = getattr(noise(), draw)("x", width)
    assert whole.shape == (3, 4, width)
    part = getattr(noise([7, 0], [3, 1]), draw)("x", width)
    assert np.array_equal(part, whole[[2, 0]][:, [3, 1]])
    assert np.array_equal(getattr(noise(), draw)("x", width), whole)
    assert np.array_equal(getattr(noise(t=5).at(1), draw)("x", width), whole)


@draws
def test_every_key_gives_its_own_draw(draw):
    seeds, agents = [0, 1, 2**31, 2**32, 2**32 + 1, 2**40], range(5)
    rounds = [noise(seeds, agents, t) for t in (1, 2, 3, 70_000)] + [noise(seeds, agents).once()]
    values = np.concatenate([getattr(n, draw)(name, 3).reshape(-1, 3) for n in rounds for name in ("primal", "dual")])
    assert len(np.unique(values, axis=0)) == len(values) == 5 * 2 * 6 * 5
    assert len(np.unique(values)) == values.size  # no number is drawn twice either


@draws
def test_once_is_the_same_in_every_round(draw):
    first, later = (getattr(noise(t=t).once(), draw)("eta", 3) for t in (1, 99))
    assert np.array_equal(first, later)
    assert not np.any(first == getattr(noise(t=1), draw)("eta", 3))


@draws
def test_the_number_of_threads_does_not_matter(draw, monkeypatch):
    alone = getattr(noise(range(9)), draw)("x", 3)
    monkeypatch.setattr(threads, "SMALL", 0)
    for count in (2, 3, 7):
        monkeypatch.setattr(threads, "threads", lambda count=count: count)
        assert np.array_equal(getattr(noise(range(9)), draw)("x", 3), alone)


# --- distributions: seeds are fixed, so a p-value below 1e-3 is a defect and not bad luck ---------------------------


def many(draw, width, name="d"):
    return getattr(noise(range(200), range(100), 3), draw)(name, width).reshape(-1, width)


def fits(sample, law):
    assert stats.kstest(sample, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("width", [1, 2, 3])
def test_normal_entries(width):
    x = many("normal", width)
    for column in x.T:
        fits(column, stats.norm)
    fits((x**2).sum(axis=1), stats.chi2(width))  # independent within a row
    lag = np.corrcoef(x[:-1, 0], x[1:, 0])[0, 1]  # and between agents
    assert abs(lag) < 4 / np.sqrt(len(x))


def test_normal_tails():
    """Box and Muller on 52 bits reaches beyond 8 standard deviations; 4e6 draws reach 5."""
    x = noise(range(40), range(100), 1).normal("tail", 1000).ravel()
    for z in (3.0, 4.0):
        expected = 2 * stats.norm.sf(z) * x.size
        assert abs(np.sum(np.abs(x) > z) - expected) < 4 * np.sqrt(expected)
    assert 4.9 < np.abs(x).max() < 6.5


def test_uniform_entries_are_inside_the_unit_interval():
    x = many("uniform", 3)
    assert x.min() > 0 and x.max() < 1
    fits(x.ravel(), stats.uniform)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_gamma_norm(width):
    x = many("gamma_norm", width)
    norm = np.linalg.norm(x, axis=1)
    fits(norm, stats.gamma(width))
    uniform_direction(x / norm[:, None])
    independent(norm, x[:, 0] / norm)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_ball(width):
    x = many("ball", width)
    norm = np.linalg.norm(x, axis=1)
    assert norm.max() < 1
    fits(norm**width, stats.uniform)  # volume grows with the radius to this power
    uniform_direction(x / norm[:, None])
    independent(norm, x[:, 0] / norm)


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_direction(width):
    uniform_direction(many("direction", width))


def uniform_direction(x):
    """(x_j + 1)/2 of a uniform direction is Beta((w - 1)/2, (w - 1)/2); in one dimension a fair sign."""
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-12)
    width = x.shape[1]
    if width == 1:
        assert stats.binomtest(int((x > 0).sum()), len(x)).pvalue > 1e-3
        return
    for column in x.T:
        fits(np.clip((column + 1) / 2, 0, 1), stats.beta((width - 1) / 2, (width - 1) / 2))


def independent(a, b):
    assert stats.spearmanr(a, np.abs(b) if np.ptp(np.abs(b)) > 1e-9 else b).pvalue > 1e-3
