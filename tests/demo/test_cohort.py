"""The generated cohort: unequal, plausible, encoded by public ranges, and worth learning from together."""

import numpy as np
import pytest

from confide import Problem
from confide.demo import cohort as data
from confide.problem.losses import Logistic
from confide.problem.penalties import L2


@pytest.fixture(scope="module")
def cohort() -> data.Cohort:
    return data.cohort(seed=0)


def test_five_very_unequal_hospitals(cohort: data.Cohort) -> None:
    sizes = dict(zip(*np.unique(cohort.hospital, return_counts=True), strict=True))
    assert sorted(sizes) == sorted(h.name for h in data.HOSPITALS)
    assert sum(sizes.values()) == len(cohort.y) == 20_000
    assert max(sizes.values()) > 15 * min(sizes.values())
    assert cohort.features == tuple(f.name for f in data.SCHEMA) and len(cohort.features) == 12
    assert cohort.X.shape == (20_000, 12) and cohort.test_X.shape == (4_000, 12)
    assert set(np.unique(cohort.y)) == set(np.unique(cohort.test_y)) == {-1.0, 1.0}


def test_the_same_seed_gives_the_same_cohort_and_another_seed_another() -> None:
    one, two, other = data.cohort(3, 500), data.cohort(3, 500), data.cohort(4, 500)
    for name in ("X", "y", "hospital", "test_X", "test_y"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.X, other.X)


def test_case_mix_differs_by_hospital(cohort: data.Cohort) -> None:
    shards = cohort.shards
    ill = np.array([np.mean(shards.part(k)[1] > 0) for k in range(shards.parties)])
    age = np.array([np.mean(cohort.X[cohort.hospital == name, 0]) for name in shards.names])
    assert np.ptp(ill) > 0.3 and np.ptp(age) > 0.8


def test_encoding_uses_declared_ranges_and_nothing_else() -> None:
    low, high = np.array([(f.low, f.high) for f in data.SCHEMA], float).T
    assert np.all(low < high)
    X = data.encode(np.vstack([low, high, (low + high) / 2, low - 5, high + 5]))
    assert np.allclose(X, np.array([-1, 1, 0, -1, 1])[:, None])
    row = data.encode(high[None])
    assert np.array_equal(row[0], X[1])  # a row's code does not depend on the rows beside it


def test_rows_are_bounded_and_clipped_alike_in_training_and_test(cohort: data.Cohort) -> None:
    assert np.abs(cohort.X).max() <= 1 and np.abs(cohort.test_X).max() <= 1
    assert cohort.shards.row_norm == data.ROW_NORM
    X, y = cohort.test
    assert np.linalg.norm(cohort.shards.X, axis=1).max() <= data.ROW_NORM * (1 + 1e-12)
    assert np.linalg.norm(X, axis=1).max() <= data.ROW_NORM * (1 + 1e-12)
    assert len(X) == len(y) == 4_000


@pytest.mark.parametrize("seed", [0, 1])
def test_together_is_better_than_alone(seed: int) -> None:
    cohort = data.cohort(seed)
    X, y = cohort.test
    problem = Problem(cohort.shards, Logistic(), L2(1e-3), weighting="rows", intercept=True)

    def accuracy(problem: Problem) -> float:
        return float(np.mean(problem.predict(X, problem.solve()) == y))

    together = accuracy(problem)
    alone = []
    for k in range(cohort.shards.parties):
        own = cohort.shards.only(k)
        twice = np.arange(len(own)) % 2
        halves = data.Shards.from_groups(own.X, own.y, twice)
        alone.append(accuracy(Problem(halves, Logistic(), L2(1e-3), weighting="rows", intercept=True)))
    majority = max(np.mean(y > 0), np.mean(y < 0))
    assert 0.60 < majority < 0.66 and 0.79 < together < 0.84
    assert together > max(alone) and together > np.mean(alone) + 0.04 and together > min(alone) + 0.08


@pytest.mark.parametrize("patients", [0, -5, 199, 300.5, True])
def test_too_few_patients_are_refused_in_one_line(patients: float) -> None:
    with pytest.raises(ValueError, match=r"^patients=.*at least 200[^\n]*$"):
        data.cohort(0, patients)  # type: ignore[arg-type]
