"""No double that a row, a target, a weight or a point may hold lets one row move an answer by more than is charged.

Every norm here is computed in exact fractions from the answer's own doubles.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from exact import ENTRIES, FORMS, LOSSES, POINTS, SIZES, apart, block, name, rows, shards, square, values, within
from hypothesis import given, settings
from hypothesis import strategies as st

from confide import Shards, losses
from confide.problem.kernels import rounding

forms = pytest.mark.parametrize("form", FORMS)
each = pytest.mark.parametrize("loss", LOSSES, ids=name)
many = settings(max_examples=300, deadline=None, derandomize=True)
doubles = st.one_of(st.sampled_from(ENTRIES), st.floats(allow_nan=False, allow_infinity=False))
SMALLEST, NORMAL, LARGEST = Fraction(5e-324), Fraction(2.0**-1022), Fraction(1.7976931348623157e308)
U = Fraction(1, 2**53)


# --- the two attacks that were found --------------------------------------------------------------------------------


@forms
def test_a_row_whose_squared_norm_underflows_is_clipped(form):
    got = block([[1e-170, 0.0]], [1e300], losses.Squared(), form=form).gradient(np.zeros((1, 1, 2)), 1.0)
    assert within(square(got), 1, rounding(1, 2))


@forms
@each
def test_a_point_near_overflow_gives_a_bounded_answer(loss, form):
    one = block([[3.0, -3.0, 4.0]], [1.0], loss, form=form, epsilon=[1.0])
    for value in (5e307, -5e307, 1.7e308, np.inf, np.nan, 2.0**52):
        beta = np.full((1, 1, one.width), value)
        beta[0, 0, 0] = -value
        assert within(square(one.gradient(beta, 1.0)), 1, rounding(1, 3, outputs=loss.outputs))
        assert within(square(one.difference(beta, -beta, 1e-3, 1.0)), 1, rounding(1, 3))


# --- norms and rows clipped to them -------------------------------------------------------------------------------


def check_norms(X, form, intercept):
    """Within 3 roundings; inf above the doubles; rounded up, by one step at most, among the subnormal numbers."""
    s = shards(X, np.ones(len(X)), form=form)
    for x, size in zip(values(s.X), s.norms(intercept), strict=True):
        true = square(x) + intercept
        if not np.isfinite(size):
            assert true * (1 + 3 * U) ** 2 >= LARGEST**2
            continue
        step = 0 if Fraction(size) > NORMAL else SMALLEST
        assert true <= (Fraction(size) * (1 + 3 * U)) ** 2
        assert max(Fraction(size) * (1 - 3 * U) - 2 * step, 0) ** 2 <= true


@forms
@pytest.mark.parametrize("intercept", [False, True])
def test_norms_of_rows_of_every_size(form, intercept):
    pairs = np.array([(a, b, 0.7 * a) for a, b in itertools.product(SIZES, repeat=2)])
    check_norms(np.concatenate([pairs, -pairs]), form, intercept)
    check_norms(np.full((2, 4000), 0.1), form, intercept)  # thousands of roundings in the same direction


@many
@given(st.lists(doubles, min_size=6, max_size=6), st.sampled_from(list(FORMS)), st.booleans())
def test_norms_of_any_row(entries, form, intercept):
    check_norms(np.reshape(entries, (2, 3)), form, intercept)


def check_clipped(X, form, norm):
    clipped = shards(X, np.ones(len(X)), form=form).clip_rows(norm)
    for old, new in zip(values(rows(X, form)), values(clipped.X), strict=True):
        assert square(new) <= Fraction(norm) ** 2  # not a rounding above it
        if square(old) <= max(Fraction(norm) * (1 - 16 * U) - 2 * SMALLEST, 0) ** 2:
            assert np.array_equal(old, new)
    assert np.array_equal(values(clipped.clip_rows(norm).X), values(clipped.X))


@forms
@pytest.mark.parametrize("norm", [1.0, 0.3, 1e-12, 1e-30, 1e-300, 1e-310, 5e-324, 1e25, 1e300, 1.7e308])
def test_clip_rows_leaves_no_row_above_the_norm(form, norm):
    pairs = [(a, b, 0.7 * a) for a, b in itertools.product([*SIZES, 1e-320, 1e-38, 3e38], repeat=2)]
    angles = np.random.default_rng(0).normal(size=(200, 3))
    unit = angles / np.linalg.norm(angles, axis=1)[:, None]  # as close to the norm as rounding leaves them
    check_clipped(np.concatenate([pairs, min(norm, 1e300) * unit, unit]), form, norm)


@many
@given(st.lists(doubles, min_size=6, max_size=6), st.sampled_from(list(FORMS)), doubles.map(abs).filter(bool))
def test_clip_rows_of_any_row(entries, form, norm):
    check_clipped(np.reshape(entries, (2, 3)), form, norm)


def test_sparse_entries_at_one_place_are_added_before_anything_is_bounded():
    """Each is finite, or cancels the other: alone they say nothing about the row."""
    entry = lambda *two: sp.csr_array((np.array([*two, 1.0]), [0, 0, 1], [0, 2, 3]), shape=(2, 2))  # noqa: E731
    with pytest.raises(ValueError, match=r"X\[0, 0\] is inf: every feature must be a finite number"):
        Shards.from_groups(entry(1.7e308, 1.7e308), [1, 1], [0, 1])
    s = Shards.from_groups(entry(1e16 + 2, -1e16), [1, 1], [0, 1])
    assert values(s.clip_rows(1.0).X)[0].tolist() == pytest.approx([1.0, 0.0], rel=1e-14)


# --- every double ---------------------------------------------------------------------------------------------------


@forms
@each
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_of_every_size_are_bounded_at_points_of_every_size(loss, form, intercept):
    """One-row agents side by side, so that an answer is one row's contribution; NumPy has nothing to warn of."""
    targets = {"real": [0.0, 1.0, -1e300, 1.7e308, 5e-324], "sign": [-1.0, 1.0], "class": [0.0, 2.0]}[loss.labels]
    cells = list(itertools.product([*SIZES, 1e280, 1e300], targets, [0.0, 5e-324, 1.0, 1e9, 1e20, 1e130, 1.7e308]))
    x, y, w = np.array(cells).T
    X = np.stack([x, -x / 3, np.zeros(len(x))], axis=1)
    made = block(X, y, loss, [1] * len(x), form, intercept, weight=w, epsilon=np.resize([1.0, 5e-324, 1e4], len(x)))
    kappa, zero = rounding(1, 3, intercept, loss.outputs), np.zeros((1, len(x), made.width))
    for first, other in [(0.0, 1.0), (5e307, -5e307), (np.inf, 1.0), (np.nan, 0.0), (2.0**52, 1e-300)]:
        beta = np.full((1, len(x), made.width), first)
        beta[..., 1::2] = other
        for clip in (1.0, 3e-14, 1e-200):  # 3e-14/1.7e308 is subnormal
            with np.errstate(all="raise"):
                gradient, moved = made.gradient(beta, clip)[0], made.difference(beta, zero, 1e-3, clip)[0]
            assert all(within(square(g), clip, kappa) for g in gradient)
            assert np.all(np.abs(moved) <= clip)
    with np.errstate(all="raise"):
        moments = made.second_moment(0.37)
    assert all(within(square(A), Fraction(0.37) ** 2, kappa) for A in moments)


@st.composite
def neighbours(draw):
    """A block's makings, those of a neighbour, two points, a clip and a gap: one agent of one row, one of several."""
    p, n = draw(st.sampled_from([1, 2, 3, 17])), draw(st.integers(1, 5))
    vector = lambda of, count: np.array(draw(st.lists(of, min_size=count, max_size=count)))  # noqa: E731
    loss = draw(st.sampled_from(LOSSES))
    target = {"real": doubles, "sign": st.sampled_from([-1.0, 1.0]), "class": st.sampled_from([0.0, 1.0, 2.0])}
    columns = {
        "X": vector(doubles, (n + 1) * p).reshape(n + 1, p), "y": vector(target[loss.labels], n + 1),
        "epsilon": np.maximum(vector(doubles.map(abs), n + 1), 5e-324),
    }  # fmt: skip
    if draw(st.booleans()):
        columns["weight"] = vector(doubles.map(abs), n + 1)
    swap = np.arange(n + 1)
    swap[1] = 0  # the first row of the second agent becomes that of the first
    intercept = draw(st.booleans())
    rest = {"loss": loss, "sizes": (1, n), "form": draw(st.sampled_from(list(FORMS))), "intercept": intercept}
    width = loss.outputs * (p + intercept)
    points = np.resize(vector(st.one_of(st.sampled_from(POINTS), st.floats()), 4 * width), (2, 5, 2, width))
    points = points[:, : draw(st.sampled_from([1, 5]))]  # from 4 seeds on they pass over the rows side by side
    clip, gap = draw(st.sampled_from([1.0, 0.37, 1e-310, 1e-280, 1e100, 1e308])), draw(st.sampled_from([1.0, 5e-324]))
    return {**columns, **rest}, {**{c: v[swap] for c, v in columns.items()}, **rest}, points, clip, gap


@many
@given(neighbours())
def test_one_row_moves_no_answer_further_than_its_bound(case):
    here, there, (plus, minus), clip, gap = case
    D, E, n = block(**here), block(**there), here["sizes"][1]
    public = here["X"].shape[1], here["intercept"], here["loss"].outputs
    scale, C = Fraction(1.0 / n), Fraction(clip)
    for ask in (lambda b: b.gradient(plus, clip), lambda b: b.difference(plus, minus, gap, clip)[..., None]):
        for a, b in zip(ask(D), ask(E), strict=True):
            assert within(square(a[0]), C, rounding(1, *public))
            assert within(apart(a[1], b[1]), 2 * C * scale, rounding(n, *public))
    a, b = D.second_moment(clip), E.second_moment(clip)
    assert within(square(a[0]), C**2, rounding(1, *public))
    assert within(apart(a[1], b[1]) / 2, C**2 * scale, rounding(n, *public))


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Multinomial(3)], ids=name)
@pytest.mark.parametrize("seeds", [1, 4])
def test_what_is_not_a_number_counts_as_0(loss, form, seeds):
    """A margin of inf - inf, and the difference of two infinite losses; the agent's other row still counts."""
    one, other = [1e200, 1e200], [0.0, 1e-300]
    beta = np.zeros((seeds, 1, 2 * loss.outputs))
    beta[..., 0::2], beta[..., 1::2] = 1e308, -1e308
    alone = block([other], [1.0], loss, form=form).gradient(beta, 1.0)
    assert np.any(alone)
    assert np.array_equal(block([one, other], [1.0, 1.0], loss, form=form).gradient(beta, 1.0), alone / 2)
    far, row = np.full((seeds, 1, 2), 1e200), block([[1.0, 0.0]], [1.0], losses.Squared(), form=form)
    assert not np.any(row.difference(far, 2 * far, 1.0, 1.0))
    assert np.all(row.difference(far, 0 * far, 1.0, 1.0) == 1.0)


@pytest.mark.parametrize("bound", [np.nan, -1.0, -np.inf])
def test_a_bound_that_is_none_is_refused(bound):
    one = block([[1.0, 2.0]], [1.0], losses.Squared())
    zero = np.zeros((1, 1, 2))
    for ask in (
        lambda: one.gradient(zero, bound), lambda: one.difference(zero, zero, 1.0, bound),
        lambda: one.second_moment(bound),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"bound {bound} on a row: must be a number of at least 0"):
            ask()


def test_clips_may_change_from_call_to_call():
    """The limits kept with a block are those of the clips that are asked for."""
    X, y = np.random.default_rng(0).normal(size=(6, 3)), np.full(6, 1e6)
    made, beta = block(X, y, losses.Squared(), (2, 4)), np.zeros((1, 2, 3))
    unit = -X / np.linalg.norm(X, axis=1)[:, None]
    for clip in (1.0, 0.5, np.array([0.5, 2.0]), np.array([[2.0], [0.5]]), 1.0):
        first, second = np.broadcast_to(np.ravel(clip), 2)
        expected = np.stack([first * unit[:2].mean(axis=0), second * unit[2:].mean(axis=0)])
        np.testing.assert_allclose(made.gradient(beta, clip)[0], expected, rtol=1e-12)
        np.testing.assert_allclose(made.gradient(beta)[0, 0], -1e6 * X[:2].mean(axis=0), rtol=1e-12)
