"""κ: what rounding adds to the sensitivity of an answer, against sums in exact fractions; and counts."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from exact import FORMS, apart, block, square, values, within

from confide import losses
from confide.problem.kernels import rounding

forms = pytest.mark.parametrize("form", FORMS)


def test_kappa_is_tiny_and_grows_with_the_rows():
    assert rounding(1, 10) < 1e-14
    assert rounding(1_000, 10) < 1e-9 and rounding(1_000_000, 10_000, True, 10) < 1e-6
    sizes = np.array([1, 2, 50, 1023, 1024, 1025, 10**6, 10**9])
    each = rounding(sizes, 10)
    assert np.all(np.diff(each) > 0) and each.tolist() == [rounding(int(n), 10) for n in sizes]
    assert rounding(100, 10, True) >= rounding(100, 10) and rounding(100, 10, outputs=5) > rounding(100, 10)


def hard_rows(kind, n):
    """Rows whose sums round: all alike and not on the grid, of very different sizes, or cancelling."""
    rng = np.random.default_rng(0)
    X = {
        "alike": np.full((n, 3), 0.1) + 0.01 * rng.random((n, 3)),
        "sizes": rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-12, 13, size=(n, 1)),
        "cancel": np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * (1 / 3 + 1e-9 * rng.random((n, 3))),
    }[kind]
    X[:, 1] *= np.arange(n) % 3 > 0  # something for a sparse matrix to leave out
    return X


@forms
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Multinomial(3)], ids=["one margin", "several"])
@pytest.mark.parametrize("kind", ["alike", "sizes", "cancel"])
def test_a_sum_is_as_close_to_exact_as_kappa_says(kind, loss, form):
    """‖e‖ ≤ κ·clip·scale is what the proof takes from each of two neighbours.

    A row alone shows its clipped slopes: the intercepts' coordinates of its gradient.
    """
    n, clip, seeds, m = 2_500, 0.3, 4, loss.outputs
    X, y = hard_rows(kind, n), (np.arange(n) % 3).astype(float) if m > 1 else np.where(np.arange(n) % 7, 1e9, -1e9)
    together = block(X, y, loss, form=form, intercept=True)
    alone = block(X, y, loss, [1] * n, form, intercept=True)
    beta = np.random.default_rng(1).normal(size=(seeds, 1, together.width))
    got = together.gradient(beta, clip).reshape(seeds, m, 4)[0]
    slopes = alone.gradient(np.repeat(beta, n, axis=1), clip).reshape(seeds, n, m, 4)[0, :, :, 3]
    rows = [[*map(Fraction, x), Fraction(1)] for x in values(together.shards.X).tolist()]
    kappa, total = rounding(n, 3, True, m), [[Fraction(0)] * 4 for _ in range(m)]
    for x, s in zip(rows, slopes.tolist(), strict=True):
        one = [[Fraction(v) * e for e in x] for v in s]
        assert within(square(one), clip, rounding(1, 3, True, m))
        total = [[a + b for a, b in zip(t, g, strict=True)] for t, g in zip(total, one, strict=True)]
    scale = Fraction(1.0 / n)
    error = apart(got, [[scale * t for t in line] for line in total])
    assert error <= (Fraction(kappa) * Fraction(clip) * scale) ** 2


@forms
def test_a_million_rows_that_round_alike(form):
    """Every addition of 0.1 to a growing sum rounds; the exact sum of such numbers needs no oracle."""
    n, clip = 1_000_000, 0.1
    made = block(np.ones((n, 1)), np.r_[-1e9, np.full(n - 1, 1e9)], losses.Squared(), form=form)
    zero = np.zeros((1, 1, 1))
    got = made.gradient(zero, clip), made.difference(zero + 1e9, zero, 1.0, clip)
    unit = Fraction(clip) * Fraction(1.0 / n)
    for answer in got:  # all rows but one pull it down
        assert 0 < abs(Fraction(answer.item()) - (2 - n) * unit) <= Fraction(rounding(n, 1)) * unit


def test_chunks_of_sparse_rows_that_move_with_a_row():
    """One more entry changes where every chunk ends, so that all sums are rounded anew."""
    n, p, clip = 20_000, 20, 1.0
    X = (np.arange(p) < 16) * (0.1 + np.random.default_rng(0).random((n, p)))
    y, beta = np.full(n, 1e9), np.zeros((1, 1, p))
    lengths, moves = set(), []
    for entries in range(p + 1):
        X[0] = (np.arange(p) < entries) * 0.3
        made = block(X, y, losses.Squared(), form="sparse")
        lengths.add(int(made._table[0, 2]))
        moves.append(made.gradient(beta, clip))
    assert len(lengths) > 1
    bound = 2 * Fraction(clip) * Fraction(1.0 / n)
    assert all(within(apart(a, b), bound, rounding(n, p)) for a in moves for b in moves)


@forms
@pytest.mark.parametrize("kind", ["alike", "sizes", "cancel"])
def test_a_second_moment_is_as_close_to_exact_as_kappa_says(kind, form):
    """Rows that are short already: the exact moment is that of their own doubles."""
    n, C = 2_500, 1.0
    X = hard_rows(kind, n)
    X /= 2 * max(1.0, np.linalg.norm(X, axis=1).max())
    made = block(X, np.ones(n), losses.Squared(), form=form)
    total = [[Fraction(0)] * 3 for _ in range(3)]
    for x in values(made.shards.X).tolist():
        x = [Fraction(v) for v in x]
        total = [[total[i][j] + x[i] * x[j] for j in range(3)] for i in range(3)]
    error = apart(made.second_moment(C)[0], [[v / n for v in line] for line in total])
    assert error <= (Fraction(rounding(n, 3)) * Fraction(C) ** 2 / n) ** 2


# --- counts ---------------------------------------------------------------------------------------------------------

EDGES = [-1.5, 0.0, 2.0]


def test_counts_are_those_of_a_loop_over_targets():
    rng = np.random.default_rng(0)
    y = np.r_[rng.normal(size=70) * 2, EDGES, 0.0, 1e308, -1e308, 5e-324]
    made = block(np.ones((len(y), 2)), y, losses.Squared(), (30, 47))
    made.scale[:] = 0.25, 0.5
    for k, (mine, scale) in enumerate(((y[:30], 0.25), (y[30:], 0.5))):
        cells = [-math.inf, *EDGES, math.inf]
        expected = [sum(low < v <= high for v in mine) for low, high in pairwise(cells)]
        assert made.counts(EDGES)[k].tolist() == [scale * c for c in expected]
    assert made.counts([]).tolist() == [[30 * 0.25], [47 * 0.5]]


def test_a_row_moves_counts_by_no_more_than_two_cells():
    n = 1_000_003  # 1/n rounds
    scale, worst = Fraction(1.0 / n), 0
    for low, other in ((0.5, 3.0), (n * 1.0, -2.0)):
        y = np.full(n, low)
        before = block(np.ones((n, 1)), y, losses.Squared()).counts(EDGES)
        y[7] = other
        after = block(np.ones((n, 1)), y, losses.Squared()).counts(EDGES)
        worst = max(worst, apart(before, after))
    assert worst > scale**2 and within(worst / 2, scale, rounding(n, 1))


@pytest.mark.parametrize("edges", [[1.0, 1.0], [2.0, 1.0], [0.0, np.nan], [np.inf], [[0.0, 1.0]], 3.0], ids=str)
def test_edges_that_are_none_are_refused(edges):
    with pytest.raises(ValueError, match=r"edges .*: must be finite numbers, each above the one before") as caught:
        block([[1.0]], [1.0], losses.Squared()).counts(edges)
    assert "\n" not in str(caught.value)
