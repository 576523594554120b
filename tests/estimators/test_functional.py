"""Quantile regression on curves."""

import numpy as np
import pytest

import confide
from confide.problem.functional import Curves, trapezoid

GRID = np.linspace(0, 1, 41)


def curves(n=10_000, grid=GRID, seed=0):
    """Random curves, and targets that are their integral against sin(πt)."""
    rng = np.random.default_rng(seed)
    scores = 0.7 * rng.normal(size=(n, 4)) / np.arange(1, 5) ** 1.5
    X = scores @ np.array([np.sqrt(2) * np.cos((k + 0.5) * np.pi * grid) for k in range(4)])
    return X, X @ (trapezoid(grid) * np.sin(np.pi * grid)) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("basis", ["cosine", "fourier", "bspline", "fpca"])
def test_every_basis_finds_the_coefficient_function(basis):
    X, y = curves()
    model = confide.FunctionalQuantileRegressor(basis=basis, grid=GRID, row_norm=2.0, epsilon=3, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.85  # the true function: 0.88
    miss = (model.coefficient_function_ - np.sin(np.pi * GRID)) ** 2
    assert miss @ trapezoid(GRID) < 0.15  # of 0.5
    assert np.allclose(model.basis_.T @ (trapezoid(GRID)[:, None] * model.basis_), np.eye(6), atol=1e-12)
    short = X / 4  # curves within row_norm: the prediction is the integral
    integral = short @ (trapezoid(GRID) * model.coefficient_function_) + model.intercept_
    assert np.allclose(model.predict(short), integral, atol=1e-12)


def test_private_fpca_is_a_paid_phase():
    X, y = curves(300)
    model = confide.FunctionalQuantileRegressor(basis="fpca", n_basis=3, target_range=(-1, 1)).fit(X, y)
    assert model.privacy_.method == "JointDescent after JointMoment" and model.privacy_.guarantee.label == "proven"
    assert model.privacy_.spent == pytest.approx(1.0, rel=1e-6) and model.basis_.shape == (41, 3)
    bought = confide.FunctionalQuantileRegressor(basis="fpca", n_basis=3).fit(X, y)
    assert bought.privacy_.method == "JointDescent after JointMoment after 2 JointTally"
    assert bought.privacy_.spent == pytest.approx(1.0, rel=1e-5) and bought.privacy_.spent <= 1.0


def test_quantiles_cover():
    X, y = curves()
    model = confide.FunctionalQuantileRegressor(quantile=0.2, row_norm=2.0, epsilon=3, random_state=0).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", "mcp", "scad"])
def test_penalties_shrink(penalty):
    X, y = curves(2000)
    free = confide.FunctionalQuantileRegressor(penalty=penalty, penalty_strength=0.0, random_state=0).fit(X, y)
    held = confide.FunctionalQuantileRegressor(penalty=penalty, penalty_strength=0.3, random_state=0).fit(X, y)
    assert np.linalg.norm(held.coef_) < np.linalg.norm(free.coef_)


class Grid:
    """What is used of a skfda.FDataGrid."""

    def __init__(self, X, grid, variables=1):
        self.data_matrix, self.grid_points = np.repeat(X[:, :, None], variables, axis=2), (grid,)


def test_fdatagrid_brings_its_grid():
    uneven = np.sort(np.random.default_rng(1).uniform(size=30))
    X, y = curves(300, uneven)
    model = confide.FunctionalQuantileRegressor(random_state=0).fit(Grid(X, uneven), y)
    same = confide.FunctionalQuantileRegressor(random_state=0, grid=uneven).fit(X, y)
    assert np.array_equal(model.coefficient_function_, same.coefficient_function_)
    assert np.array_equal(model.predict(Grid(X, uneven)), same.predict(X))
    with pytest.raises(ValueError, match="another grid"):
        model.predict(Grid(X, uneven + 1))
    with pytest.raises(ValueError, match="one curve of one variable"):
        model.fit(Grid(X, uneven, variables=2), y)


def test_skfda_itself():
    skfda = pytest.importorskip("skfda")
    X, y = curves(100)
    model = confide.FunctionalQuantileRegressor(random_state=0).fit(skfda.FDataGrid(X, GRID), y)
    assert np.array_equal(model.grid_, GRID)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"basis": "wavelet"}, "basis='wavelet'"), ({"penalty": "l0"}, "penalty='l0'"), ({"n_basis": 0}, "n_basis=0"),
        ({"grid": GRID[:5]}, "grid of shape"), ({"grid": GRID[::-1]}, "rising"),
        ({"quantile": 1.0}, "quantile=1.0: must lie strictly between 0 and 1"),
    ],
)  # fmt: skip
def test_bad_parameters_get_one_line(change, said):
    X, y = curves(50)
    with pytest.raises(ValueError, match=said):
        confide.FunctionalQuantileRegressor(**change).fit(X, y)


@pytest.mark.parametrize("basis", ["cosine", "fourier", "bspline"])
def test_curves_of_one_point(basis):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 1))
    y = 0.5 * X[:, 0] + 0.01 * rng.normal(size=500)
    model = confide.FunctionalQuantileRegressor(basis=basis, epsilon=100, random_state=0).fit(X, y)
    assert model.coef_ == pytest.approx([0.5], abs=0.1)


@pytest.mark.parametrize("basis", ["cosine", "fpca"])
def test_predict_reads_curves_as_fit_did(basis, monkeypatch):
    """Most curves are longer than row_norm and have a part that the leading directions do not see."""
    X, y = curves(400)
    seen = []
    run = confide.FunctionalQuantileRegressor._run
    monkeypatch.setattr(
        confide.FunctionalQuantileRegressor, "_run",
        lambda self, problem, *rest: (seen.append(problem.shards), run(self, problem, *rest))[1],
    )  # fmt: skip
    model = confide.FunctionalQuantileRegressor(basis=basis, n_basis=2, row_norm=0.4, parties=2, random_state=0)
    model.fit(X, y, groups=np.repeat([0, 1], 200))
    assert np.allclose(seen[-1].X, model._rows(X) * model._scale, atol=1e-9)
    length = np.linalg.norm(X, axis=1) / np.sqrt(len(GRID) - 1)  # about that in L²
    assert np.mean(length > 0.4) > 0.5  # so that clipping matters


def test_known_eigenfunctions():
    X, y = curves()
    known = lambda t: np.sqrt(2) * np.cos((np.arange(4) + 0.5) * np.pi * np.asarray(t)[:, None])  # noqa: E731
    model = confide.FunctionalQuantileRegressor(basis=known, grid=GRID, row_norm=2.0, epsilon=3, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.85 and model.basis_.shape == (41, 4)
    with pytest.raises(ValueError, match="must be \\(points, functions\\)"):
        confide.FunctionalQuantileRegressor(basis=lambda t: t, grid=GRID).fit(X, y)


def uneven(X, grid, seed=0):
    """The same curves, each at some of its points."""
    rng = np.random.default_rng(seed)
    keep = [np.sort(rng.choice(len(grid), 25, replace=False)) for _ in X]
    return Curves.from_pairs([(grid[k], x[k]) for x, k in zip(X, keep, strict=True)])


def test_curves_each_at_points_of_its_own():
    X, y = curves(3000)
    irregular = uneven(X, GRID)
    model = confide.FunctionalQuantileRegressor(grid=GRID, row_norm=2.0, epsilon=3, random_state=0).fit(irregular, y)
    dense = confide.FunctionalQuantileRegressor(grid=GRID, row_norm=2.0, epsilon=3, random_state=0).fit(X, y)
    assert np.corrcoef(model.predict(irregular), dense.predict(X))[0, 1] > 0.98
    assert np.allclose(model.predict(irregular), model.predict(irregular.resample(GRID)))


def test_skfda_irregular():
    skfda = pytest.importorskip("skfda")
    X, y = curves(100)
    ours = uneven(X, GRID)
    theirs = skfda.FDataIrregular(ours.starts[:-1], ours.points, ours.values, domain_range=(0.0, 1.0))
    model = confide.FunctionalQuantileRegressor(random_state=0).fit(theirs, y)
    assert np.array_equal(model.grid_, np.linspace(0, 1, 101))
    same = confide.FunctionalQuantileRegressor(random_state=0).fit(ours, y)
    assert np.array_equal(model.predict(theirs), same.predict(ours))
