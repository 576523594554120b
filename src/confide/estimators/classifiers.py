"""Private classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from confide.estimators.base import Array, PrivateEstimator
from confide.problem.losses import Logistic, Loss, Multinomial, SmoothedHinge
from confide.problem.penalties import L2
from confide.problem.shards import Shards


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """`classes`: the labels there can be, in order, as everyone may know them; None reads them from y, unprotected."""

    classes: Any = None

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn; `groups` (n,) names the party that holds each row."""
        X, y = self._table(X, y=y)
        check_classification_targets(y)
        self.classes_, index = self._labels(y)
        shards, graph = self._shards(X, index.astype(float), groups)
        scale, k = self._scale, len(self.classes_)
        models = self._models(shards, graph, L2(self.penalty_strength * scale**2), k)
        outputs = models.shape[1] // (X.shape[1] + self.fit_intercept)
        self.party_coef_, self.party_intercept_ = self._split(models, outputs)
        self.coef_, self.intercept_ = self.party_coef_.mean(axis=0), self.party_intercept_.mean(axis=0)
        return self

    def _models(self, shards: Shards, graph: Any, penalty: L2, k: int) -> Array:
        """Each party's model, one vector for two classes and k for more: (parties, width)."""
        raise NotImplementedError

    def _labels(self, y: Any) -> tuple[Any, Any]:
        """The classes and each row's index among them."""
        y = column_or_1d(y, warn=True)
        classes = np.unique(y) if self.classes is None else np.asarray(self.classes)
        if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) < len(classes):
            raise ValueError(f"{len(classes)} class, {classes.tolist()}: a classifier needs at least 2 different ones")
        order = np.argsort(classes)
        index = order[np.searchsorted(classes[order], y).clip(max=len(classes) - 1)]
        if np.any(classes[index] != y):
            raise ValueError(f"label {y[classes[index] != y].tolist()[0]!r}: not one of the classes {classes.tolist()}")
        return classes, index

    def _not_covered(self) -> tuple[str, ...]:
        read = "the list of classes was read from y: give classes to keep it public"
        return (*super()._not_covered(), *([read] if self.classes is None else []))

    def decision_function(self, X: Any) -> Array:
        """Margins: (n,) for two classes, else (n, classes)."""
        z = np.asarray(self._rows(X) @ self.coef_.T + self.intercept_)
        return z.ravel() if len(self.classes_) == 2 else z

    def predict(self, X: Any) -> Any:
        """The likelier class of each row."""
        z = self.decision_function(X)
        return self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the few rows of scikit-learn's checks, at ε=1
        return tags


def signs(shards: Shards, positive: int) -> Shards:
    """The same rows with y = 1 for one class and -1 for all others."""
    y = np.where(shards.y == positive, 1.0, -1.0)
    return Shards(shards.X, y, shards.offsets, shards.names, shards.columns, shards.row_norm)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes: mean log loss + penalty_strength·½‖coef‖²."""

    def _models(self, shards: Shards, graph: Any, penalty: L2, k: int) -> Array:
        loss: Loss = Logistic() if k == 2 else Multinomial(k)
        return self._learn([(signs(shards, 1) if k == 2 else shards, loss)], graph, penalty)[0]

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

    def _models(self, shards: Shards, graph: Any, penalty: L2, k: int) -> Array:
        against = [1] if k == 2 else range(k)
        parts = [(signs(shards, c), SmoothedHinge(1.0)) for c in against]
        return np.hstack(self._learn(parts, graph, penalty))
