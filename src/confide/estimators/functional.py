"""Quantile regression on curves: the target's quantile is an integral of the curve against a coefficient function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from confide.algorithms import JointMoment, SecondMoment, SummedMethod
from confide.errors import ConfideError, WrongType
from confide.estimators import one_fit as engine
from confide.estimators.base import Array
from confide.estimators.regressors import PrivateQuantileRegressor, mixed
from confide.network.graph import Graph
from confide.problem.checks import whole
from confide.problem.functional import Basis, Curves, orthonormal, rising, trapezoid
from confide.problem.linear import clipped
from confide.problem.penalties import L1, L2, MCP, SCAD, Penalty
from confide.problem.questions import unpack
from confide.problem.shards import Shards

BASES = ("cosine", "fourier", "bspline", "fpca")
MOMENT_SHARE = 0.2  # of μ², for the second moment
SPLINES = 12  # at least so many express the curves whose second moment is released
POINTS = 101  # of the common grid, where curves have none and none is given
PENALTIES = ("l2", "l1", "elasticnet", "mcp", "scad")
SURFACES = "surfaces, or several curves per row: one curve of one variable is allowed"


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionalQuantileRegressor(PrivateQuantileRegressor):
    """Functional linear quantile regression: y's quantile is intercept + ∫ curve(t)·coefficient(t) dt.

    Curves are the rows of a matrix, observed at `grid` (0 to 1 in equal steps if None), or a skfda.FDataGrid; curves
    observed each at points of its own are a skfda.FDataIrregular or confide.problem.functional.Curves, drawn straight
    between them at `grid`. They enter by their scores in `n_basis` functions, orthonormal over the grid: "cosine",
    "fourier" and "bspline" are fixed and public, as is a function of points such as known eigenfunctions; "fpca" are
    the leading eigenfunctions of the curves' second moment, which the parties release first with a fifth of the budget.
    `row_norm` bounds the length of a curve's scores, that is of the curve in L², in `fit` and in `predict`.

    penalty    on the scores' coefficients: "l2", "l1", "elasticnet" (with l1_ratio); "mcp" and "scad", which are
               experimental: they stop at a point that depends on the start

    `coefficient_function_` is the coefficient function at `grid_`, `coef_` its coordinates in `basis_` (points, basis).
    """

    basis: Any = "cosine"
    n_basis: int = 6
    grid: Any = None
    penalty: str = "l2"
    l1_ratio: float = 0.5

    _one_unit: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn from curves X; `groups` (n,) names the party that holds each curve, `sample_weight` (n,) weighs it."""
        if self.scale is not None:
            raise ConfideError(f"scale={self.scale!r}: curves have one unit, bound their length by row_norm")
        X, grid = unpacked(X, self.grid)
        X, y = self._table(X, y=y, y_numeric=True)
        self.grid_ = rising(grid, X.shape[1])
        if not (whole(self.n_basis) and self.n_basis >= 1):
            raise ConfideError(f"n_basis={self.n_basis}: must be a whole number of at least 1")
        self.basis_ = orthonormal(self._functions(X.shape[1]), self.grid_)
        self._curve_scores = trapezoid(self.grid_)[:, None] * self.basis_
        self._turn = np.eye(self.basis_.shape[1])
        X, y, groups, share = self._hold_out(X, y, groups, sample_weight)
        self._regress(self._scores(X), np.asarray(y, float), groups, share)
        self.coefficient_function_ = self.basis_ @ self.coef_
        return self

    def _functions(self, points: int) -> Array:
        """The public functions that express the curves, at the grid."""
        if callable(self.basis):
            return public_functions(self.basis, self.grid_)
        if self.basis not in BASES:
            raise ConfideError(f"basis={self.basis!r}: must be one of {', '.join(BASES)}, or a function of points")
        paid = self.basis == "fpca"
        count = min(max(SPLINES, 2 * int(self.n_basis)) if paid else int(self.n_basis), points)
        ends = (float(self.grid_[0]), float(self.grid_[-1]))
        if points == 1:
            return np.ones((1, 1))
        return Basis("bspline" if paid else self.basis, count, ends)(self.grid_)

    def _scores(self, X: Array) -> Array:
        """What the model is linear in, in `fit` and in `predict`: scores clipped to row_norm *before* they are turned
        to the leading directions, since the second moment was released of rows so clipped."""
        return clipped(X @ self._curve_scores, self._norm) @ self._turn

    def _learn(self, rows: Shards, graph: Graph | None) -> list[Array]:
        if callable(self.basis) or self.basis != "fpca":
            return super()._learn(rows, graph)
        whole_mu = engine.budget(self.epsilon, self.delta)
        basket = self._basket(rows, graph, whole_mu)
        mu = whole_mu * (1 - basket.price) ** 0.5
        (problem,) = self._problems(rows)
        norm, features = problem.shards.row_norm, problem.shards.features
        assert norm is not None
        count = min(int(self.n_basis), features)
        first = problem.public(graph)
        later = replace(first, features=count)
        method = self._method(later, mu * (1 - MOMENT_SHARE) ** 0.5)
        shared = isinstance(method, SummedMethod)
        moment: Any = JointMoment(norm=norm, collusion=method.collusion) if shared else SecondMoment(norm=norm)
        moment = engine.calibrated(moment, first, mu * MOMENT_SHARE**0.5, self.epsilon, self.delta)
        seed = self._pay([*basket.phases, (moment, first), (method, later)])
        if basket.wishes:
            self._buy(basket, seed)
            (problem,) = self._problems(rows)
        (sent,) = engine.rounds(problem, graph, moment, seed)
        leading = np.linalg.eigh(unpack(sent[0], features))[1][:, ::-1][:, :count]
        self.basis_, self._turn = self.basis_ @ leading, leading
        turned = problem.shards.transform(leading).clip_rows(norm)  # a turn lengthens nothing: this states the bound
        return [self._run(self._problem(turned, problem.loss, problem.penalty), graph, method, seed)]

    def _table(self, X: Any, **options: Any) -> Any:
        return super()._table(X, **options, accept_sparse=False)

    def _held_features(self, X: Any) -> Array:
        return self._scores(X)

    def _features(self, X: Any) -> Array:
        X, grid = unpacked(X, None, self.grid_)
        X = self._table(X, reset=False)
        if grid is not None and not np.allclose(grid, self.grid_):
            raise ConfideError("curves on another grid than those learned from: resample them")
        return self._scores(X)

    def _penalty(self, unit: float, strength: float) -> Penalty:
        first, second = self._scale, self._scale**2 * unit
        match self.penalty:
            case "l2":
                return L2(strength * second)
            case "l1":
                return L1(strength * first)
            case "elasticnet":
                return mixed(strength, self.l1_ratio, first, second)
            case "mcp":
                return MCP(strength * first)
            case "scad":
                return SCAD(strength * first)
        raise ConfideError(f"penalty={self.penalty!r}: must be one of {', '.join(PENALTIES)}")

    def save(self, path: str | Path) -> Path:
        raise WrongType("curves: a model file holds a linear model of columns, save `run_` instead")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def unpacked(X: Any, grid: Any, learned: Array | None = None) -> tuple[Any, Any]:
    """Matrix and grid of curves in an object: skfda's, or `Curves`; anything else as it is.

    Curves observed each at points of its own are drawn straight between them, at `learned`, `grid`, or 101 equal steps.
    """
    if hasattr(X, "start_indices") and hasattr(X, "points"):
        if X.points.shape[-1] != 1 or X.values.shape[-1] != 1:
            raise ConfideError(SURFACES)
        if grid is None and learned is None:
            low, high = X.domain_range[0]
            grid = np.linspace(low, high, POINTS)
        X = Curves(X.points[:, 0], X.values[:, 0], np.append(X.start_indices, len(X.points)))
    if isinstance(X, Curves):
        common = next((g for g in (learned, grid) if g is not None), np.linspace(0, 1, POINTS))
        return X.resample(common), common
    if not (hasattr(X, "data_matrix") and hasattr(X, "grid_points")):
        return X, grid
    if len(X.grid_points) != 1 or X.data_matrix.shape[-1] != 1:
        raise ConfideError(SURFACES)
    return X.data_matrix[..., 0], X.grid_points[0] if grid is None else grid


def public_functions(basis: Any, grid: Array) -> Array:
    """A user's functions at the grid."""
    values = np.asarray(basis(grid), float)
    if values.ndim != 2 or len(values) != len(grid) or not 1 <= values.shape[1] <= len(grid):
        raise ConfideError(
            f"basis gives values of shape {values.shape}: must be (points, functions), {len(grid)} points"
        )
    return values
