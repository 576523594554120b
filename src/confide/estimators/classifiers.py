"""Private classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from confide.errors import ConfideError
from confide.estimators import buying, evaluating, weighing
from confide.estimators.base import Array, PrivateEstimator
from confide.problem import linear
from confide.problem.losses import Logistic, Loss, Multinomial, SmoothedHinge
from confide.problem.penalties import L2, Penalty
from confide.problem.shards import Shards


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """Linear classifiers.

    classes         the labels there can be, in order, as everyone may know them; None reads them from y, unprotected
    class_weight    None; a dict of public weights by class, 1 where it has none; "balanced": 1/(classes·rate)
    class_rates     of "balanced": public shares of the classes, a dict or in their order; None pays 5 % of μ² for them
    """

    classes: Any = None
    class_weight: Any = None
    class_rates: Any = None

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn; `groups` (n,) names the party that holds each row, `sample_weight` (n,) is what its loss counts."""
        X, y = self._table(X, y=y, ensure_all_finite=False)
        check_classification_targets(y)
        self.classes_, index = self._labels(y)
        X, index, groups, share = self._hold_out(X, index, groups, sample_weight)
        rows, graph = self._parties(X, index.astype(float), groups, share)
        models = np.hstack(self._learn(rows, graph))
        outputs = models.shape[1] // (X.shape[1] + self.fit_intercept)
        self.party_coef_, self.party_intercept_ = self._split(models, outputs)
        self.coef_, self.intercept_ = self.party_coef_.mean(axis=0), self.party_intercept_.mean(axis=0)
        self._evaluate()
        return self

    def _tally(self, blank: bool) -> evaluating.Tally:
        assert self._held is not None
        X, index, groups = self._held
        k = len(self.classes_)
        z = np.zeros((len(index), 1 if k == 2 else k)) if blank else self._margins(self._short(X))
        if k == 2:
            return evaluating.of_scores(z[:, 0], index == 1, groups)
        return evaluating.of_answers(linear.answers(z), index, k, groups)

    def _margins(self, rows: Any) -> Array:
        """Of clipped rows: (n, outputs)."""
        return linear.margins(rows, self.coef_, self.intercept_)

    def _parts(self, rows: Shards) -> tuple[Sequence[tuple[Shards, Loss]], Penalty]:
        by_class = self._class_weights()
        most = weighing.heaviest(rows, self.weight_bound, by_class)
        shards = weighing.weighed(self._bounded(rows), by_class)
        return self._losses(shards, len(self.classes_)), L2(self.penalty_strength * self._scale**2 / most)

    def _losses(self, shards: Shards, k: int) -> Sequence[tuple[Shards, Loss]]:
        """What is learned of rows whose targets are class numbers, one vector for two classes and k for more."""
        raise NotImplementedError

    def _class_weights(self) -> Array | None:
        """By class; None for 1 each, and where balanced ones are still to be bought."""
        known = self.bought_.get("class rates", weighing.rates(self.class_rates, self.classes_))
        return weighing.class_weights(self.class_weight, known, self.classes_)

    def _wishes(self, rows: Shards) -> list[buying.Wish]:
        wishes = super()._wishes(rows)
        if not (isinstance(self.class_weight, str) and self.class_weight == weighing.BALANCED):
            if self.class_rates is not None:
                raise ConfideError("class_rates without class_weight='balanced': nothing reads them")
            return wishes
        if self.class_rates is not None:
            return wishes
        buying.only_auto(self.algorithm, "class_weight='balanced' without class_rates: they", "give class_rates")
        return [*wishes, buying.class_rates(rows.y, len(self.classes_))]

    def _labels(self, y: Any) -> tuple[Any, Any]:
        """The classes and each row's index among them."""
        y = column_or_1d(y, warn=True)
        classes = np.unique(y) if self.classes is None else np.asarray(self.classes)
        if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) < len(classes):
            raise ConfideError(
                f"{len(np.unique(classes))} class: a classifier needs at least 2 different ones, each once"
            )
        order = np.argsort(classes)
        index = order[np.searchsorted(classes[order], y).clip(max=len(classes) - 1)]
        for i in np.flatnonzero(classes[index] != y)[:1]:  # the place alone: the label is private
            raise ConfideError(f"y[{i}]: the label is not one of the classes {classes.tolist()}")
        return classes, index

    def _not_covered(self) -> tuple[str, ...]:
        read = "the list of classes was read from y: give classes to keep it public"
        return (*super()._not_covered(), *([read] if self.classes is None else []))

    def decision_function(self, X: Any) -> Array:
        """Margins: (n,) for two classes, else (n, classes)."""
        z = self._margins(self._rows(X))
        return z.ravel() if len(self.classes_) == 2 else z

    def predict(self, X: Any) -> Any:
        """The likelier class of each row."""
        z = self.decision_function(X)
        return self.classes_[linear.answers(z[:, None] if z.ndim == 1 else z)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the few rows of scikit-learn's checks, at ε=1
        return tags


def signs(shards: Shards, positive: int) -> Shards:
    """The same rows with y = 1 for one class and -1 for all others."""
    return shards.with_targets(np.where(shards.y == positive, 1.0, -1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes: mean log loss + penalty_strength·½‖coef‖²."""

    def _losses(self, shards: Shards, k: int) -> Sequence[tuple[Shards, Loss]]:
        return [(signs(shards, 1), Logistic()) if k == 2 else (shards, Multinomial(k))]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class: (n, classes)."""
        z = self.decision_function(X)
        return np.column_stack([expit(-z), expit(z)]) if z.ndim == 1 else softmax(z, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""
        z = self.decision_function(X)
        if z.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([z, -z]))
        return np.asarray(z - np.logaddexp.reduce(z, axis=1, keepdims=True))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearSVC(PrivateClassifier):
    """Linear support vector machine: mean hinge, quadratic below its kink, + penalty_strength·½‖coef‖².

    More than two classes are learned one against the rest and share the budget.
    """

    def _losses(self, shards: Shards, k: int) -> Sequence[tuple[Shards, Loss]]:
        return [(signs(shards, c), SmoothedHinge(1.0)) for c in ([1] if k == 2 else range(k))]
