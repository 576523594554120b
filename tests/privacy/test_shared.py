"""Sums of discrete Gaussians: the bounds against the exact laws, by mpmath and by convolution."""

import math

import mpmath
import numpy as np
import pytest

from confide.privacy import Gaussian
from confide.privacy.discrete import total_variation
from confide.privacy.secure import STEP, charge
from confide.privacy.shared import parties_of, sum_slack, sum_variation

mpmath.mp.dps = 40


def law(deviation, reach):
    """P(n) of one discrete Gaussian for |n| ≤ reach, exactly normalised."""
    weights = [mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * mpmath.mpf(deviation) ** 2)) for n in range(-reach, reach + 1)]
    return [w / sum(weights) for w in weights]


def distance(deviation, count):
    """TV of the sum of `count` from one of deviation √count times theirs, by convolution."""
    one = law(deviation, reach=int(12 * deviation) + 3)
    total = one
    for _ in range(count - 1):
        out = [mpmath.mpf(0)] * (len(total) + len(one) - 1)
        for i, a in enumerate(total):
            for j, b in enumerate(one):
                out[i + j] += a * b
        total = out
    wanted = law(deviation * mpmath.sqrt(count), (len(total) - 1) // 2)
    return sum(abs(a - b) for a, b in zip(total, wanted, strict=True)) / 2


@pytest.mark.parametrize(("deviation", "count"), [(0.5, 2), (0.7, 2), (0.7, 4), (1.0, 3), (1.5, 2), (2.0, 2)])
def test_the_sum_of_discrete_gaussians_is_as_near_to_one_as_is_said(deviation, count):
    exact = distance(deviation, count)
    bound = sum_variation(deviation, count)
    assert 0 < exact <= bound
    assert exact > bound / 40  # and the bound is no idle one
    papers = 10 * sum(math.exp(-2 * math.pi**2 * deviation**2 * k / (k + 1)) for k in range(1, count))
    assert bound <= papers  # Kairouz, Liu and Steinke's, on the ratio


def test_on_the_grid_that_is_used_it_is_nothing_and_still_counted():
    assert sum_variation(1 / STEP, 20) == 5e-324 and sum_variation(1 / STEP, 1) == 0.0
    assert mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(2) ** 52 / 2) < mpmath.mpf("1e-1000000")
    assert sum_slack(1 / STEP, 2) == pytest.approx(float(total_variation(math.sqrt(2) / STEP)) + 2 * 2.0**-187)
    assert sum_slack(1 / STEP, 2) < 6.2e-36


@pytest.mark.parametrize(("deviation", "count"), [(0.4, 2), (math.nan, 2), (1.0, 0)])
def test_what_is_outside_the_proof_is_refused(deviation, count):
    with pytest.raises(ValueError, match=r"must be at least|by at least 1"):
        sum_variation(deviation, count)


def test_parties_are_counted_by_their_noise():
    assert [parties_of(math.sqrt(n) * 0.37, 0.37) for n in (1, 2, 3, 11, 999)] == [1, 2, 3, 11, 999]
    with pytest.raises(ValueError, match="not that of a whole number of parties"):
        parties_of(1.3, 1.0)


@pytest.mark.parametrize("honest", [2, 3, 11])
def test_shared_noise_is_charged_with_the_rounding_of_one_party_and_the_slack_of_all(honest):
    own, width = np.array([0.5, 0.25]), 9
    event = Gaussian(0.1, math.sqrt(honest) * own, adversary="some", alone=own)
    ((charged,),) = charge([[event]], width)
    assert np.allclose(charged.sensitivity - 0.1, 3 * STEP * own, rtol=1e-6)
    each = float(total_variation(1 / STEP)) + 2.0**-187
    assert np.allclose(charged.slack, width * (each + sum_slack(1 / STEP, honest)), rtol=1e-12)
    assert np.array_equal(charged.everyone.scale, own) and np.array_equal(charged.everyone.slack, charged.slack)
    ((alone,),) = charge([[event.everyone]], width)
    assert np.all(charged.everyone.sensitivity >= alone.sensitivity) and np.all(charged.slack >= alone.slack)
