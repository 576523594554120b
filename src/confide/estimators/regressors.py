"""Private regressions: the target is clipped to a public range and counted in units of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from confide.estimators.base import Array, PrivateEstimator
from confide.problem.checks import finite
from confide.problem.losses import Huber, Loss, Quantile, Squared
from confide.problem.penalties import L1, L2, ElasticNet, Penalty


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """`target_range`: public (low, high); targets outside it count as its nearer end."""

    target_range: tuple[float, float] = (-1.0, 1.0)

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn; `groups` (n,) names the party that holds each row."""
        X, y = self._table(X, y=y, y_numeric=True)
        return self._regress(X, np.asarray(y, float), groups)

    def _regress(self, X: Any, y: Array, groups: Any) -> Self:
        low, high = self._range()
        middle, unit = ((low + high) / 2, (high - low) / 2) if self.fit_intercept else (0.0, max(abs(low), abs(high)))
        shards, graph = self._shards(X, (np.clip(y, low, high) - middle) / unit, groups)
        models = self._learn([(shards, self._loss(unit))], graph, self._penalty(unit))[0]
        coef, intercept = self._split(models)
        self.party_coef_, self.party_intercept_ = coef[:, 0] * unit, intercept[:, 0] * unit + middle
        self.coef_, self.intercept_ = self.party_coef_.mean(axis=0), float(self.party_intercept_.mean())
        return self

    def _range(self) -> tuple[float, float]:
        try:
            low, high = self.target_range
        except (TypeError, ValueError):
            low = high = np.nan
        if not (finite(low) and finite(high) and low < high):
            raise ValueError(f"target_range={self.target_range}: must be (low, high), finite and low < high")
        return float(low), float(high)

    def _loss(self, unit: float) -> Loss:
        """The loss of a target counted in `unit`s."""
        return Squared()

    def _penalty(self, unit: float) -> Penalty:
        """The penalty on the engine's coefficients: those of `coef_` over scale·unit, the loss being over unit²."""
        return L2(self.penalty_strength * self._scale**2)

    def predict(self, X: Any) -> Array:
        """The prediction of each row."""
        return np.asarray(self._rows(X) @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the few rows of scikit-learn's checks, at ε=1
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(PrivateRegressor):
    """Mean of ½(y - ŷ)² + penalty_strength·½‖coef‖²; a residual counts at most a quarter of the target range."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLasso(PrivateRegressor):
    """Mean of ½(y - ŷ)² + penalty_strength·‖coef‖₁; residuals as in PrivateRidge."""

    penalty_strength: float = 1e-3

    def _penalty(self, unit: float) -> Penalty:
        return L1(self.penalty_strength * self._scale / unit)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateElasticNet(PrivateRegressor):
    """Mean of ½(y - ŷ)² + penalty_strength·(l1_ratio·‖coef‖₁ + (1 - l1_ratio)·½‖coef‖²)."""

    penalty_strength: float = 1e-3
    l1_ratio: float = 0.5

    def _penalty(self, unit: float) -> Penalty:
        return mixed(self.penalty_strength, self.l1_ratio, self._scale / unit, self._scale**2)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateHuberRegressor(PrivateRegressor):
    """½r² up to |r| = width, in the target's units, and linear beyond; + penalty_strength·½‖coef‖²."""

    width: float = 0.25

    def _loss(self, unit: float) -> Loss:
        if not (finite(self.width) and self.width > 0):
            raise ValueError(f"width={self.width}: must be a finite number above 0")
        return Huber(self.width / unit)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateQuantileRegressor(PrivateRegressor):
    """Mean check loss at `quantile` + penalty_strength·½‖coef‖²."""

    quantile: float = 0.5

    def _loss(self, unit: float) -> Loss:
        return Quantile(self.quantile)

    def _penalty(self, unit: float) -> Penalty:
        return L2(self.penalty_strength * self._scale**2 * unit)  # the loss is over unit, not unit²


def mixed(strength: float, ratio: float, first: float, second: float) -> Penalty:
    """strength·(ratio·first·|β| + (1 - ratio)·second·½β²) as an ElasticNet."""
    ElasticNet(strength, ratio)  # one line for a strength or a ratio out of range
    one, two = strength * ratio * first, strength * (1 - ratio) * second
    return ElasticNet(one + two, one / (one + two)) if one + two > 0 else ElasticNet(0.0, ratio)
