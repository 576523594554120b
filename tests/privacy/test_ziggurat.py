"""Fast normals are normal, also in the tails, and any prefix, seed or agent of a draw can be had by itself."""

import numpy as np
import pytest
from scipy import stats

from confide.privacy.noise import SimulatedNoise, key
from confide.privacy.ziggurat import AREA, EDGE, LAYERS, normals


@pytest.fixture(scope="module")
def draw():
    return SimulatedNoise(np.arange(4), np.arange(5)).at(3).public_normal("inner", 100_000).ravel()


def test_they_are_normal(draw):
    assert stats.kstest(draw, "norm").pvalue > 1e-3
    for c in (1.0, 2.0, 3.0, EDGE, 4.0):
        assert stats.binomtest(int(np.sum(np.abs(draw) > c)), draw.size, 2 * stats.norm.sf(c)).pvalue > 1e-3
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):  # moments of N(0, 1)
        assert abs(np.mean(draw**power) - mean) < 4 * np.sqrt(variance / draw.size)


def test_neighbours_seeds_and_agents_are_independent(draw):
    cube = draw.reshape(4, 5, -1)
    for a, b in ((draw[:-1], draw[1:]), (draw[:-4], draw[4:]), (cube[0], cube[1]), (cube[:, 0], cube[:, 1])):
        for f in (np.asarray, np.square, np.abs):
            r = np.corrcoef(f(a).ravel(), f(b).ravel())[0, 1]
            assert abs(r) < 4 / np.sqrt(a.size)


def test_layers_have_equal_areas():
    """The published constants: the base strip and its tail have the area of every layer."""
    tail = np.sqrt(2 * np.pi) * stats.norm.sf(EDGE)
    assert EDGE * np.exp(-(EDGE**2) / 2) + tail == pytest.approx(AREA, rel=1e-9)
    half = np.sqrt(np.pi / 2)
    assert half < LAYERS * AREA < 1.01 * half  # the layers cover the half curve, and little more


def test_any_part_of_a_draw_repeats():
    whole = SimulatedNoise(np.array([7, 1 << 40]), np.array([2, 9])).at(5).public_normal("x", 1001)
    alone = SimulatedNoise(np.array([1 << 40]), np.array([9])).at(5).public_normal("x", 400)
    assert np.array_equal(alone[0, 0], whole[1, 1, :400])
    part = np.empty(100)
    normals(7, 2, 5, key("x"), 600, 100, part)
    assert np.array_equal(part, whole[0, 0, 600:700])
    other = SimulatedNoise(np.array([7]), np.array([2])).at(5)
    assert not np.any(np.isin(other.normal("x", 1001), whole)), "a secret draw by the same name shares nothing"
