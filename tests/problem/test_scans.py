"""Rows are scanned once for what is not a finite number, where they come in; nothing made from them is again."""

import numpy as np
import pytest
import scipy.sparse as sp

import confide
from confide.problem import shards as home


@pytest.fixture
def scans(monkeypatch):
    """How many rows each scan read."""
    seen, check = [], home._check_rows

    def counted(X, y, columns):
        seen.append(X.shape[0])
        check(X, y, columns)

    monkeypatch.setattr(home, "_check_rows", counted)
    return seen


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] > 0, 1.0, -1.0), rng.integers(0, 3, n)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_problem_and_its_runs_scan_once(scans, form):
    X, y, hospital = rows()
    shards = confide.Shards.from_groups(form(X), y, hospital).clip_rows(1.0).relabel([2, 0, 1])
    problem = confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.1))
    problem.solve()
    problem.only(1)
    confide.simulate(problem, confide.Graph.ring(3), confide.algorithms.CDPADMM(rounds=2, clip=1.0))
    confide.simulate(problem, None, confide.algorithms.ORZO(rounds=2))
    assert scans == [60]


@pytest.mark.parametrize("seed", [0, None])
def test_a_fit_scans_once(scans, seed):
    X, y, hospital = rows()
    model = confide.PrivateLinearSVC(random_state=seed, rounds=2, classes=[-1.0, 1.0])
    model.fit(X, y, groups=hospital)
    assert scans == [60]


def test_new_targets_are_checked_and_rows_are_not(scans):
    X, y, hospital = rows()
    shards = confide.Shards.from_groups(X, y, hospital).clip_rows(1.0)
    other = shards.with_targets(-shards.y)
    assert scans == [60] and other.row_norm == 1.0 and np.array_equal(other.y, -shards.y)
    for bad, said in ((np.full(60, np.nan), r"y\[0\] is nan"), (np.zeros(3), "y has 3 entries")):
        with pytest.raises(ValueError, match=said):
            shards.with_targets(bad)


def test_one_party_as_two(scans):
    X, y, hospital = rows()
    shards = confide.Shards.from_groups(X, y, hospital).clip_rows(1.0)
    two = shards.halves(1)
    assert scans == [60] and two.parties == 2 and len(two) == shards.sizes[1]
    assert two.row_norm == 1.0 and not two.X.flags.writeable
    mine = shards.part(1)
    assert sorted(map(tuple, two.X)) == sorted(map(tuple, mine[0])) and sorted(two.y) == sorted(mine[1])
    with pytest.raises(ValueError, match="1 row: must be at least 2"):
        confide.Shards.from_parts([(X[:1], y[:1]), (X[1:], y[1:])]).halves(0)


def test_the_place_of_a_bad_value_is_the_callers(scans):
    X, y, hospital = rows()
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match=r"X\[7, 2\] is inf"):
        confide.Shards.from_groups(X, y, hospital)
