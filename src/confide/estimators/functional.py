"""Quantile regression on curves: the target's quantile is an integral of the curve against a coefficient function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.interpolate import BSpline

from confide.algorithms.second_moment import SecondMoment, unpack
from confide.estimators import engine
from confide.estimators.base import Array
from confide.estimators.regressors import PrivateQuantileRegressor, mixed
from confide.network.graph import Graph
from confide.problem.checks import whole
from confide.problem.losses import Loss
from confide.problem.penalties import L1, L2, MCP, SCAD, Penalty
from confide.problem.shards import Shards

BASES = ("cosine", "fourier", "bspline", "fpca")
MOMENT_SHARE = 0.2  # of μ², for the second moment
SPLINES = 12  # at least so many express the curves whose second moment is released
PENALTIES = ("l2", "l1", "elasticnet", "mcp", "scad")


@dataclass(kw_only=True, eq=False, repr=False)
class FunctionalQuantileRegressor(PrivateQuantileRegressor):
    """Functional linear quantile regression: y's quantile is intercept + ∫ curve(t)·coefficient(t) dt.

    Curves are the rows of a matrix, observed at `grid` (0 to 1 in equal steps if None), or a skfda.FDataGrid. They
    enter by their scores in `n_basis` functions, orthonormal over the grid: "cosine", "fourier" and "bspline" are fixed
    and public; "fpca" are the leading eigenfunctions of the curves' second moment, which the parties release first with
    a fifth of the budget. `row_norm` bounds the length of a curve's scores, that is of the curve in L².

    penalty    on the scores' coefficients: "l2", "l1", "elasticnet" (with l1_ratio); "mcp" and "scad", which are
               experimental: they stop at a point that depends on the start

    `coefficient_function_` is the coefficient function at `grid_`, `coef_` its coordinates in `basis_` (points, basis).
    """

    basis: str = "cosine"
    n_basis: int = 6
    grid: Any = None
    penalty: str = "l2"
    l1_ratio: float = 0.5

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from curves X (n, points); `groups` (n,) names the party that holds each curve."""
        X, grid = unpacked(X, self.grid)
        X, y = self._table(X, y=y, y_numeric=True)
        self.grid_ = checked_grid(grid, X.shape[1])
        if not (whole(self.n_basis) and self.n_basis >= 1):
            raise ValueError(f"n_basis={self.n_basis}: must be a whole number of at least 1")
        weights = trapezoid(self.grid_)
        count = max(SPLINES, 2 * int(self.n_basis)) if self.basis == "fpca" else int(self.n_basis)
        functions = evaluate("bspline" if self.basis == "fpca" else self.basis, self.grid_, min(count, X.shape[1]))
        self.basis_ = np.linalg.qr(np.sqrt(weights)[:, None] * functions)[0] / np.sqrt(weights)[:, None]
        self._to_scores = weights[:, None] * self.basis_
        self._regress(X @ self._to_scores, np.asarray(y, float), groups)
        self.coefficient_function_ = self.basis_ @ self.coef_
        return self

    def _learn(self, parts: Sequence[tuple[Shards, Loss]], graph: Graph, penalty: Penalty) -> list[Array]:
        if self.basis != "fpca":
            return super()._learn(parts, graph, penalty)
        ((shards, loss),) = parts
        assert shards.row_norm is not None
        count = min(int(self.n_basis), shards.features)
        mu = engine.budget(self.epsilon, self.delta)
        first = self._problem(shards, loss, penalty).public(graph)
        later = replace(first, features=count)
        moment = SecondMoment(norm=shards.row_norm)
        moment = engine.calibrated(moment, first, mu * MOMENT_SHARE**0.5, self.epsilon, self.delta)
        method = self._method(later, mu * (1 - MOMENT_SHARE) ** 0.5)
        seed = self._pay([(moment, first), (method, later)])
        (sent,) = engine.rounds(self._problem(shards, loss, penalty), graph, moment, seed)
        leading = np.linalg.eigh(unpack(sent[0], shards.features))[1][:, ::-1][:, :count]
        self.basis_, self._to_scores = self.basis_ @ leading, self._to_scores @ leading
        rows = shards.transform(leading).clip_rows(shards.row_norm)
        return [self._run(self._problem(rows, loss, penalty), graph, method, seed)]

    def _table(self, X: Any, **options: Any) -> Any:
        return super()._table(X, **options, accept_sparse=False)

    def _features(self, X: Any) -> Array:
        X, grid = unpacked(X, None)
        X = self._table(X, reset=False)
        if grid is not None and not np.allclose(grid, self.grid_):
            raise ValueError("curves on another grid than those learned from: resample them")
        return np.asarray(X @ self._to_scores)

    def _penalty(self, unit: float) -> Penalty:
        first, second, strength = self._scale, self._scale**2 * unit, self.penalty_strength
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
        raise ValueError(f"penalty={self.penalty!r}: must be one of {', '.join(PENALTIES)}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def unpacked(X: Any, grid: Any) -> tuple[Any, Any]:
    """Matrix and grid of a skfda.FDataGrid; anything else as it is."""
    if not (hasattr(X, "data_matrix") and hasattr(X, "grid_points")):
        return X, grid
    if len(X.grid_points) != 1 or X.data_matrix.shape[-1] != 1:
        raise ValueError("FDataGrid of surfaces or of several curves a row: one curve of one variable is allowed")
    return X.data_matrix[..., 0], X.grid_points[0] if grid is None else grid


def checked_grid(grid: Any, points: int) -> Array:
    """Where the curves are observed, rising."""
    if grid is None:
        return np.linspace(0.0, 1.0, points)
    grid = np.asarray(grid, float)
    if grid.shape != (points,) or not np.all(np.isfinite(grid)) or np.any(np.diff(grid) <= 0):
        raise ValueError(f"grid of shape {grid.shape} for curves of {points} points: must be as many, rising")
    return grid


def trapezoid(grid: Array) -> Array:
    """Weights of the trapezoid rule."""
    if len(grid) == 1:
        return np.ones(1)
    step = np.diff(grid)
    return np.concatenate([step[:1], step[:-1] + step[1:], step[-1:]]) / 2


def evaluate(basis: str, grid: Array, count: int) -> Array:
    """The first `count` functions of a basis at the grid: (points, count)."""
    u = (grid - grid[0]) / max(float(grid[-1] - grid[0]), 1e-300)
    k = np.arange(count)
    match basis:
        case "cosine":
            return np.cos(np.pi * k * u[:, None])
        case "fourier":
            turns = 2 * np.pi * ((k + 1) // 2) * u[:, None]
            return np.where(k % 2 == 1, np.sin(turns), np.cos(turns))
        case "bspline":
            degree = min(3, count - 1)
            inner = np.linspace(0.0, 1.0, count - degree + 1)
            knots = np.concatenate([np.zeros(degree), inner, np.ones(degree)])
            return np.asarray(BSpline.design_matrix(u, knots, degree).toarray())
    raise ValueError(f"basis={basis!r}: must be one of {', '.join(BASES)}")
