"""Calibration: the noise meets its target, is never short of it, and has the shape that was asked for."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.privacy import SHAPES, Gaussian, calibrate, delta, epsilon, mu_for, noise_shape

PARAMS = {"geometric": {"decay": 0.97}}


def spent(sensitivities, scales, d):
    return epsilon([Gaussian(s, n) for s, n in zip(sensitivities, scales, strict=True)], d)


@pytest.mark.parametrize(("e", "d"), [(0.1, 1e-6), (1.0, 1e-5), (10.0, 1e-3), (3.0, 0.2)])
def test_mu_for_agrees_with_dp_accounting(e, d):
    assert mu_for(e, d) == pytest.approx(1 / gaussian_mechanism.get_sigma_gaussian(e, d), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(e=st.floats(1e-3, 5e3), log_d=st.floats(-690, -0.01))
def test_mu_for_inverts_the_closed_form(e, log_d):
    m, d = mu_for(e, math.exp(log_d)), math.exp(log_d)
    with mpmath.workdps(60):
        m, e = mpmath.mpf(m), mpmath.mpf(e)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert exact <= d
        assert abs(exact / d - 1) < 1e-7


def test_mu_for_takes_one_budget_per_agent():
    assert mu_for(np.array([0.5, 2.0]), 1e-5).tolist() == [mu_for(0.5, 1e-5), mu_for(2.0, 1e-5)]


def test_shapes():
    t = np.arange(1, 6)
    assert noise_shape("constant", 5) == pytest.approx(np.ones(5))
    assert noise_shape("geometric", 5, decay=0.8) ** 2 == pytest.approx(0.8 ** (t - 1))
    assert noise_shape("inverse-sqrt", 5) ** 2 == pytest.approx(1 / np.sqrt(t))
    assert 1 / noise_shape("growing-budget", 5) ** 2 == pytest.approx(t)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40, deadline=None)
@given(
    e=st.floats(0.01, 50),
    d=st.floats(1e-12, 0.05),
    agents=st.integers(0, 3),
    rounds=st.integers(1, 60),
    seed=st.integers(0, 1000),
)
def test_calibrated_noise_meets_the_target_and_never_exceeds_it(shape, e, d, agents, rounds, seed):
    size = (rounds, agents) if agents else rounds
    sensitivities = np.random.default_rng(seed).uniform(0.01, 3.0, size)
    scales = calibrate(e, d, sensitivities, shape, **PARAMS.get(shape, {}))
    assert scales.shape == sensitivities.shape
    events = [Gaussian(*pair) for pair in zip(sensitivities, scales, strict=True)]
    total = epsilon(events, d)
    assert np.all(total <= e)
    assert np.all(total >= e * (1 - 1e-6))
    assert np.all(delta(events, e) <= d)


def test_noise_shapes_fix_the_noise_and_growing_budget_the_cost():
    sensitivities = np.array([3.0, 1.0, 0.5, 2.0])
    for shape in ("constant", "geometric", "inverse-sqrt"):
        params = PARAMS.get(shape, {})
        scales = calibrate(1.0, 1e-5, sensitivities, shape, **params)
        assert scales / scales[0] == pytest.approx(noise_shape(shape, 4, **params))
    costs = (sensitivities / calibrate(1.0, 1e-5, sensitivities, "growing-budget")) ** 2
    assert costs / costs[0] == pytest.approx([1, 2, 3, 4])


def test_one_sensitivity_with_rounds_and_budgets_per_agent():
    assert calibrate(1.0, 1e-5, 0.3, rounds=7) == pytest.approx(calibrate(1.0, 1e-5, np.full(7, 0.3)))
    scales = calibrate(np.array([0.5, 5.0]), 1e-5, np.full((7, 2), 0.3))
    assert spent(np.full((7, 2), 0.3), scales, 1e-5) == pytest.approx([0.5, 5.0])


@pytest.mark.parametrize("shape", SHAPES)
def test_rounds_and_agents_without_data_cost_nothing(shape):
    sensitivities = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    scales = calibrate(1.0, 1e-5, sensitivities, shape, **PARAMS.get(shape, {}))
    assert spent(sensitivities, scales, 1e-5) == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        *[
            ({"epsilon": e}, "epsilon=.*: must be finite and above 0")
            for e in (0.0, -1.0, math.nan, math.inf, "1", None, True)
        ],
        *[({"delta": d}, r"delta=.*: must be in \(0, 1\)") for d in (0.0, 1.0, -1e-9, math.nan, "small", None)],
        ({"shape": "linear"}, "shape='linear': must be one of constant, .*, growing-budget"),
        ({"shape": "geometric"}, "shape 'geometric' with no parameter: takes decay"),
        ({"decay": 0.5}, "shape 'constant' with decay: takes no parameter"),
        ({"shape": "geometric", "decay": 1.5}, r"decay=1.5: must be in \(0, 1\]"),
        ({"shape": "geometric", "decay": 1e-300}, "leaves no noise after 3 rounds"),
        ({"sensitivities": 1.0}, "or be one number with rounds="),
        ({"sensitivities": 1.0, "rounds": 0}, "rounds=0: must be a whole number from 1"),
        ({"sensitivities": 1.0, "rounds": 2.5}, "rounds=2.5: must be a whole number from 1"),
        ({"rounds": 4}, "rounds=4 does not match 3 rounds"),
        ({"sensitivities": []}, r"sensitivities of shape \(0,\)"),
        ({"sensitivities": np.ones((2, 2, 2))}, r"sensitivities of shape \(2, 2, 2\)"),
        ({"sensitivities": [1.0, -1.0]}, "=-1.0: must be finite and at least 0"),
        ({"sensitivities": [1.0, math.inf]}, "=inf: must be finite and at least 0"),
        ({"sensitivities": "many"}, "='many': must be an array of numbers"),
        ({"epsilon": np.array([1.0, 2.0])}, r"shape \(3,\): must have shape \(rounds, 2\), one column per budget"),
    ],
)
def test_bad_input_is_one_clear_line(change, line):
    with pytest.raises(ValueError, match=line) as caught:
        calibrate(**({"epsilon": 1.0, "delta": 1e-5, "sensitivities": [1.0, 1.0, 1.0]} | change))
    assert "\n" not in str(caught.value)
