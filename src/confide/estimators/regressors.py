"""Private regressions: the target is clipped to a public range and counted in units of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from confide.errors import ConfideError
from confide.estimators import buying, evaluating, weighing
from confide.estimators.base import Array, PrivateEstimator
from confide.estimators.hints import hint
from confide.estimators.limits import check_quantile, check_width
from confide.problem.checks import finite
from confide.problem.losses import Huber, Loss, Quantile, Squared
from confide.problem.penalties import L1, L2, ElasticNet, Penalty
from confide.problem.shards import Shards

UNBOUNDED = "target_range=None pays 10 % of μ² for a range; target_range=(low, high), if it is public, costs nothing"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """`target_range`: public (low, high); targets outside it count as its nearer end. None pays 10 % of μ² for one.

    `target_range_` is the range that was used.
    """

    target_range: tuple[float, float] | None = None

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn; `groups` (n,) names the party that holds each row, `sample_weight` (n,) is what its loss counts."""
        X, y = self._table(X, y=y, y_numeric=True, ensure_all_finite=False)
        X, y, groups, share = self._hold_out(X, y, groups, sample_weight)
        return self._regress(X, y, groups, share)

    def _regress(self, X: Any, y: Array, groups: Any, share: Any) -> Self:
        rows, graph = self._parties(X, y, groups, share)
        models = self._learn(rows, graph)[0]
        self.target_range_ = self._range()
        middle, unit = self._unit()
        coef, intercept = self._split(models)
        self.party_coef_, self.party_intercept_ = coef[:, 0] * unit, intercept[:, 0] * unit + middle
        self.coef_, self.intercept_ = self.party_coef_.mean(axis=0), float(self.party_intercept_.mean())
        self._evaluate()
        return self

    def _unit(self) -> tuple[float, float]:
        """Middle and half of the target range, in which the engine counts targets."""
        low, high = self._range()
        return ((low + high) / 2, (high - low) / 2) if self.fit_intercept else (0.0, max(abs(low), abs(high)))

    def _parts(self, rows: Shards) -> tuple[Sequence[tuple[Shards, Loss]], Penalty]:
        (low, high), (middle, unit) = self._range(), self._unit()
        shards = self._bounded(rows).with_targets((np.clip(rows.y, low, high) - middle) / unit)
        strength = self.penalty_strength / weighing.heaviest(rows, self.weight_bound)
        return [(shards, self._loss(unit))], self._penalty(unit, strength)

    def _wishes(self, rows: Shards) -> list[buying.Wish]:
        wishes = super()._wishes(rows)
        if self.target_range is not None:
            return wishes
        buying.only_auto(self.algorithm, "target_range=None: a range", "give target_range=(low, high)")
        hint(UNBOUNDED)
        return [*wishes, buying.target_range(rows.y)]

    def _tally(self, blank: bool) -> evaluating.Tally:
        assert self._held is not None
        X, y, groups = self._held
        low, high = self._range()
        y = np.clip(np.asarray(y, float), low, high)
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a row
            answer = y if blank else np.clip(self._linear(self._short(self._held_features(X))), low, high)
        return evaluating.of_residuals(y - answer, (high - low) / 2, self._level(), groups)

    def _level(self) -> float | None:
        """Of a quantile."""
        return None

    def _held_features(self, X: Any) -> Any:
        """What the model is linear in, of held-out rows."""
        return X

    def _linear(self, rows: Any) -> Array:
        """The prediction of clipped rows."""
        return np.asarray(rows @ self.coef_ + self.intercept_)

    def _range(self) -> tuple[float, float]:
        """As declared or bought; (-1, 1) stands for one that is still to be bought."""
        known = self.bought_.get("target range", (-1.0, 1.0)) if self.target_range is None else self.target_range
        try:
            low, high = known
        except (TypeError, ValueError):
            low = high = np.nan
        if not (finite(low) and finite(high) and low < high and finite(float(high) - float(low))):
            raise ConfideError(
                f"target_range={self.target_range}: must be (low, high), finite as their distance is, or None"
            )
        return float(low), float(high)

    def _loss(self, unit: float) -> Loss:
        """The loss of a target counted in `unit`s."""
        return Squared()

    def _penalty(self, unit: float, strength: float) -> Penalty:
        """The penalty on the engine's coefficients: those of `coef_` over scale·unit, the loss being over unit²."""
        return L2(strength * self._scale**2)

    def predict(self, X: Any) -> Array:
        """The prediction of each row."""
        return self._linear(self._rows(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the few rows of scikit-learn's checks, at ε=1
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(PrivateRegressor):
    """Mean of ½(y - ŷ)² + penalty_strength·½‖coef‖²; a residual counts at most an eighth of the target range."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLasso(PrivateRegressor):
    """Mean of ½(y - ŷ)² + penalty_strength·‖coef‖₁; residuals as in PrivateRidge."""

    penalty_strength: float = 1e-3

    def _penalty(self, unit: float, strength: float) -> Penalty:
        return L1(strength * self._scale / unit)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateElasticNet(PrivateRegressor):
    """Mean of ½(y - ŷ)² + penalty_strength·(l1_ratio·‖coef‖₁ + (1 - l1_ratio)·½‖coef‖²)."""

    penalty_strength: float = 1e-3
    l1_ratio: float = 0.5

    def _penalty(self, unit: float, strength: float) -> Penalty:
        return mixed(strength, self.l1_ratio, self._scale / unit, self._scale**2)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateHuberRegressor(PrivateRegressor):
    """½r² up to |r| = width, in units of half the target range, and linear beyond; + penalty_strength·½‖coef‖²."""

    width: float = 0.25

    def _loss(self, unit: float) -> Loss:
        check_width(self.width)
        return Huber(self.width)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateQuantileRegressor(PrivateRegressor):
    """Mean check loss at `quantile` + penalty_strength·½‖coef‖²."""

    quantile: float = 0.5

    def _loss(self, unit: float) -> Loss:
        check_quantile(self.quantile)
        return Quantile(self.quantile)

    def _level(self) -> float | None:
        return float(self.quantile)

    def _penalty(self, unit: float, strength: float) -> Penalty:
        return L2(strength * self._scale**2 * unit)  # the loss is over unit, not unit²


def mixed(strength: float, ratio: float, first: float, second: float) -> Penalty:
    """strength·(ratio·first·|β| + (1 - ratio)·second·½β²) as an ElasticNet."""
    ElasticNet(strength, ratio)  # one line for a strength or a ratio out of range
    one, two = strength * ratio * first, strength * (1 - ratio) * second
    return ElasticNet(one + two, one / (one + two)) if one + two > 0 else ElasticNet(0.0, ratio)
