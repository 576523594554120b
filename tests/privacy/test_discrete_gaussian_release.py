"""Discrete Gaussian noise on real numbers: the grid, what is released, and noise drawn ahead."""

import copy
import itertools
import math
import multiprocessing
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.privacy import discrete_gaussian as dg


def rounded(value, scale, m):
    """Python's round of a fraction is exact and half to even."""
    steps = round(Fraction(value) * 2**m / Fraction(scale))
    return max(-(2**62), min(2**62, steps))


def test_quantisation_is_exact():
    rng = np.random.default_rng(0)
    tiny, huge = 2.0**-960, 2.0**960
    beside = [np.nextafter(1.0, 2), np.nextafter(1.0, 0)]
    scales = [1.0, 0.1, 3.0, 1 / 3, tiny, huge, *beside, *np.exp(rng.normal(0, 9, 20))]
    for scale, m in itertools.product(map(float, scales), (0, 3, 26)):
        step = scale / 2**m
        halves = (rng.integers(-999, 999, 50) + 0.5) * step  # at a tie, or beside it after rounding
        values = np.concatenate([
            [0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 2.0**-1022],
            [step, step / 2, step / 4, -step / 2, 1.5 * step, -1.5 * step],
            halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf), rng.normal(size=50) * scale,
            [s * step * 2.0**k for k in range(45, 64) for s in (1, -1, 1.3, 1.999)], np.ldexp(rng.normal(size=50), 900),
        ])  # fmt: skip
        with np.errstate(all="ignore"):
            values = values[np.isfinite(values)]
        assert dg.quantise(values, scale, m).tolist() == [rounded(float(v), scale, m) for v in values]


def test_values_saturate_and_no_sum_leaves_64_bits():
    steps = dg.quantise([np.inf, -np.inf, 1.7e308, 2.0**62, 2.0**62 - 512, -(2.0**62)], 1.0, 0)
    assert steps.tolist() == [2**62, -(2**62), 2**62, 2**62, 2**62 - 512, -(2**62)]
    assert 2**62 + 23 * 2**dg.LARGEST < 2**63
    for scale in (2.0**-960, 1.0, 2.0**960):
        out = dg.gaussian([np.inf, -np.inf], scale)
        assert np.allclose(out / scale, [2.0**36, -(2.0**36)], rtol=1e-9)


def test_rounding_adds_at_most_a_step_a_number_to_the_sensitivity():
    rng = np.random.default_rng(4)
    for scale in (1.0, 0.3, 1e-5):
        x = rng.normal(size=1000) * scale
        for distance in (0.0, scale / 2**26 / 3, scale, 1e20 * scale):
            z = x + distance * rng.choice([-1, 1], x.size)
            apart = (dg.quantise(x, scale) - dg.quantise(z, scale)).tolist()
            for a, b, steps in zip(x.tolist(), z.tolist(), apart, strict=True):
                assert abs(steps) <= abs(Fraction(a) - Fraction(b)) * 2**26 / Fraction(scale) + 1


def test_noisy_values_are_the_values_plus_noise_on_the_grid(seeded):
    values = np.array([[0.3, -2.0, 1e9], [0.0, 5.5, -1e-9]])
    for scale in (0.25, 0.3):
        seeded(2)
        noise = dg.sample(6)
        seeded(2)
        out = dg.gaussian(values, scale)
        assert out.shape == values.shape
        for v, y, released in zip(values.ravel(), noise, out.ravel(), strict=True):
            steps = rounded(float(v), scale, 26) + int(y)
            assert released == float(steps * Fraction(scale) / 2**26)  # correctly rounded
    seeded(3)
    z = (dg.gaussian(np.full(100_000, 0.3), 0.25) - 0.3) / 0.25
    assert stats.kstest(z, "norm").pvalue > 1e-3


def test_what_is_released_depends_on_the_number_of_steps_alone(seeded):
    """Values that round to the same step give the same bytes: nothing is left of their low bits."""
    released = []
    for value in (0.3, 0.3 + 1e-12, np.nextafter(0.3, 1)):
        seeded(2)
        released.append(dg.gaussian(np.full(50, value), 1.0).tobytes())
    assert dg.quantise(0.3, 1.0) == dg.quantise(0.3 + 1e-12, 1.0)
    assert len(set(released)) == 1


# --- noise drawn ahead --------------------------------------------------------------------------------------------


def test_a_reservoir_gives_each_number_once(seeded):
    seeded(1)
    expected = dg.sample(100)
    seeded(1)
    ahead = dg.Reservoir()
    assert len(ahead) == 0
    ahead.fill(60)
    ahead.fill(60)
    assert len(ahead) == 60
    first, rest = ahead.take(40), ahead.take(30)
    assert len(ahead) == 0
    assert np.array_equal(np.concatenate([first, rest[:20]]), expected[:60])
    assert rest.size == 30 and not np.isin(rest[20:], expected[:60]).any()
    assert ahead.take(0).size == 0


def test_noise_ahead_is_the_noise_of_a_release(seeded):
    seeded(1)
    expected = dg.gaussian(np.zeros(20), 2.0)
    seeded(1)
    ahead = dg.Reservoir()
    ahead.fill(20)
    seeded(2)  # no word is drawn any more
    assert np.array_equal(dg.gaussian(np.zeros(20), 2.0, ahead), expected)
    with pytest.raises(ValueError, match="2\\^3 steps"):
        dg.gaussian([0.0], 1.0, dg.Reservoir(3))


def test_a_reservoir_is_not_shared_or_copied():
    ahead = dg.Reservoir()
    ahead.fill(20_000)
    taken = []
    threads = [threading.Thread(target=lambda: taken.extend(ahead.take(7) for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    ahead.fill(20_000)
    for thread in threads:
        thread.join()
    numbers = np.concatenate(taken)
    assert numbers.size == 14_000 and len(np.unique(numbers)) > 13_990  # 2^26 steps: a few pairs are equal by chance
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="used once"):
            duplicate(ahead)


def _left(ahead, answer):
    answer.put(len(ahead))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_none_of_the_noise_drawn_ahead():
    ahead = dg.Reservoir()
    ahead.fill(10)
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    child = context.Process(target=_left, args=(ahead, answer))
    child.start()
    assert answer.get() == 0
    child.join()
    assert len(ahead) == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dg.sample(-1), "-1 numbers: ask for 0 or more"),
        (lambda: dg.sample(1, 28), r"2\^28 grid steps: the power is 0 to 27"),
        (lambda: dg.sample(1, -1), "the power is 0 to 27"),
        (lambda: dg.Reservoir(30), "the power is 0 to 27"),
        (lambda: dg.Reservoir().take(-1), "-1 numbers"),
        (lambda: dg.gaussian([0.0], 0.0), "noise scale 0.0"),
        (lambda: dg.gaussian([0.0], math.nan), "noise scale nan"),
        (lambda: dg.gaussian([0.0], -1.0), "noise scale -1.0"),
        (lambda: dg.gaussian([0.0], math.inf), "noise scale inf"),
        (lambda: dg.gaussian([0.0], 1e-300), "noise scale 1e-300"),
        (lambda: dg.quantise([0.0, math.nan], 1.0), "a value is not a number"),
        (lambda: dg.quantise([0.0], 1.0, 99), "the power is 0 to 27"),
    ],
)
def test_bad_input_gets_one_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_release_takes_no_noise():
    ahead = dg.Reservoir()
    ahead.fill(5)
    with pytest.raises(ValueError):
        dg.gaussian([math.nan], 1.0, ahead)
    assert len(ahead) == 5
