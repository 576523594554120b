"""Objectives known by their values: the built-in losses are the oracle, and nothing a function does shows."""

from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.algorithms import CDPADMM, DZOA, ORZO, ZOOADMM, PrivateZeroth
from confide.errors import ConfideError
from confide.problem.losses import BlackBox


def half_square(beta, X, y):
    return 0.5 * (X @ beta - y) ** 2


def pose(loss, rows=12):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * rows, 2))
    y = X @ [1.0, -0.5] + 0.1 * rng.normal(size=len(X))
    return confide.Problem(confide.Shards.split(X, y, 3, seed=0), loss, confide.penalties.L1(0.1))


BOXES = {
    "together": BlackBox(function=half_square, coefficients=2),
    "by row": BlackBox(function=lambda b, x, y: 0.5 * (x @ b - y) ** 2, coefficients=2, by_row=True),
}


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize(
    "method",
    [DZOA(rounds=3, inner_steps=5, directions=(2, 3, 4)), DZOA(rounds=3, inner_steps=5, directions=2, average=True),
     PrivateZeroth(rounds=3, directions=4, clip=0.7, noise=0.1), ORZO(rounds=4), ZOOADMM(rounds=4)],
    ids=lambda m: m.name,
)  # fmt: skip
def test_a_black_box_is_the_loss_it_computes(box, method):
    graph = None if method.topology == "central" else confide.Graph.path(3)
    mine, known = (
        confide.simulate(pose(loss), graph, method, [0, 1], record=()) for loss in (box, confide.losses.Squared())
    )
    assert np.allclose(mine.estimates, known.estimates, atol=1e-8)
    beta = np.array([0.3, -0.2])
    assert pose(box).objective(beta) == pytest.approx(pose(confide.losses.Squared()).objective(beta))


def test_the_averaged_iterate_is_the_mean_of_the_inner_ones():
    """(26)'s β̂^(T): the mean over t of what t inner steps alone would send."""
    task, graph = pose(confide.losses.Absolute()), confide.Graph.path(3)
    method = DZOA(rounds=1, inner_steps=6, directions=3)
    each = [confide.simulate(task, graph, replace(method, inner_steps=t), record=()).estimates for t in range(1, 7)]
    mean = confide.simulate(task, graph, replace(method, average=True), record=()).estimates
    assert np.allclose(mean, np.mean(each, axis=0), atol=1e-12)


def broken(beta, x, y):
    """Overflows, is no number, fails or writes, by row."""
    if y == 0:
        return np.nan
    if y == 1:
        return np.inf
    if y == 2:
        raise RuntimeError("not this row")
    if y == 3:
        x[0] = 7.0  # rows are read-only
    return -1e300


def test_what_is_not_a_number_counts_as_the_bound_and_no_error_shows():
    X, y = np.ones((6, 1)), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    loss = BlackBox(function=broken, coefficients=3, bound=5.0, by_row=True)
    assert loss.values(np.zeros(3), X, y).tolist() == [5.0, 5.0, 5.0, 5.0, -5.0, -5.0]
    assert np.all(X == 1)
    together = BlackBox(function=lambda b, X, y: 1 / 0, coefficients=3, bound=5.0)
    assert together.values(np.zeros(3), X, y).tolist() == [5.0] * 6
    task = confide.Problem(confide.Shards.split(X, y, 2, seed=0), loss)
    assert task.width == 3 and np.all(np.isfinite(task.block.value(np.zeros((1, 2, 3)))))


def test_a_replaced_row_moves_a_difference_by_the_sensitivity_at_most():
    def steep(beta, x, y):
        return 1e9 * y * beta[0]

    loss = BlackBox(function=steep, coefficients=1, bound=1e300, by_row=True)
    plus, minus = np.full((1, 2, 1), 0.5), np.full((1, 2, 1), -0.5)
    answers = []
    for first in (1.0, -1.0):
        y = np.ones(8)
        y[0] = first
        task = confide.Problem(confide.Shards.from_groups(np.ones((8, 1)), y, [0, 0, 0, 0, 1, 1, 1, 1]), loss)
        answers.append(task.block.difference(plus, minus, 1.0, 0.25)[0])
    assert answers[0] - answers[1] == pytest.approx([2 * 0.25 / 4, 0.0])


def test_labels_and_refusals():
    graph, method = confide.Graph.path(3), PrivateZeroth(rounds=2, clip=1.0, noise=1.0)
    labels = {name: method.guarantee(pose(box).public(graph)).label for name, box in BOXES.items()}
    assert labels == {"together": "assumed", "by row": "assumed"}
    with pytest.raises(ConfideError, match="values only"):
        confide.simulate(pose(BOXES["together"]), graph, CDPADMM(rounds=2, clip=1.0), record=())
    with pytest.raises(ConfideError, match="values only"):
        pose(BOXES["together"]).solve()
    for wrong in ({"function": 3}, {"coefficients": 0}, {"bound": np.inf}):
        with pytest.raises(ConfideError, match=next(iter(wrong))):
            BlackBox(**{"function": half_square, "coefficients": 2, **wrong})


class Middle:
    """A loss from elsewhere: values of margins, and not smooth."""

    def value(self, z, y):
        return abs(z - y)


class Bent(confide.losses.Squared):
    """One of ours with values of its own, of which no compiled kernel knows."""

    def value(self, z, y):
        return abs(z - y)


@pytest.mark.parametrize(
    "loss", [Middle(), Bent(), lambda beta, X, y: abs(X @ beta - y)], ids=["object", "subclass", "function"]
)
@pytest.mark.parametrize(
    "method",
    [DZOA(rounds=3, inner_steps=5, directions=2), PrivateZeroth(rounds=3, directions=4, clip=0.7, noise=0.1)],
    ids=lambda m: m.name,
)
def test_anything_with_values_is_a_loss(loss, method):
    graph = confide.Graph.path(3)
    mine, known = (
        confide.simulate(pose(one), graph, method, [0, 1], record=()) for one in (loss, confide.losses.Absolute())
    )
    assert np.allclose(mine.estimates, known.estimates, atol=1e-8)
    assert mine.privacy.guarantee.label != "proven"


def test_a_loss_that_kernels_would_not_heed_is_refused():
    class Steep(confide.losses.Squared):
        def slope(self, z, y):
            return 2 * (z - y)

    with pytest.raises(ConfideError, match="no `value`"):
        pose(Steep())
    with pytest.raises(ConfideError, match="not a class"):
        pose(confide.losses.Squared)
    with pytest.raises(ConfideError, match=r"value\(z, y\)"):
        pose("squared")
    with pytest.raises(ConfideError, match="values only"):
        confide.simulate(pose(Middle()), confide.Graph.path(3), CDPADMM(rounds=2))
