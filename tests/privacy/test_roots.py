"""Roots: SciPy's `brentq` to the last bit."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from confide.errors import ConfideError
from confide.privacy.roots import root

FUNCTIONS = [
    lambda x, a: x**3 - a,
    lambda x, a: math.exp(x) - 2 - a,
    lambda x, a: math.tanh(50 * (x - a)),
    lambda x, a: (x - a) ** 9,
    lambda x, a: 1e-200 * (x - a) ** 3,  # products of values underflow
    lambda x, a: -1.0 if x < a else 1.0,  # nothing to interpolate
    lambda x, a: math.inf if x > a + 1 else x - a,
]


def tried(solver, function, a, *ends, **steps):
    """What a solver finds, and each point on its way."""
    points = []
    return solver(lambda x: points.append(x) or function(x, a), *ends, **steps), points


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_bit_is_that_of_scipy(function):
    rng = np.random.default_rng(0)
    for _ in range(100):
        a, low, high = rng.uniform(-0.9, 0.9), -rng.uniform(1, 50), rng.uniform(1, 50)
        xtol, rtol = 10.0 ** rng.uniform(-300, -3), max(10.0 ** rng.uniform(-18, -3), 4 * np.finfo(float).eps)
        steps = {"xtol": xtol, "rtol": rtol}
        found, seen = tried(root, function, a, low, high, **steps)
        given, wanted = tried(brentq, function, a, low, high, **steps, maxiter=2000)
        assert found == given and seen == wanted


def test_an_end_may_be_the_root():
    assert root(lambda x: x, 0.0, 1.0, xtol=1e-9, rtol=1e-9) == 0.0
    assert root(lambda x: x - 1, 0.0, 1.0, xtol=1e-9, rtol=1e-9) == 1.0


@pytest.mark.parametrize("function, said", [
    (lambda x: 1.0, "must have different signs"),
    (lambda x: x if abs(x) == 1 else math.nan, "is not a number at"),
])  # fmt: skip
def test_what_has_no_root_is_said(function, said):
    with pytest.raises(ConfideError, match=said):
        root(function, -1.0, 1.0, xtol=1e-9, rtol=1e-9)


def test_too_few_steps_are_said():
    with pytest.raises(ConfideError, match="after 3 steps"):
        root(lambda x: x**3 - 0.2, -1.0, 2.0, xtol=1e-12, rtol=1e-12, most=3)
