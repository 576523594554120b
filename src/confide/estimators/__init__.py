"""scikit-learn estimators: a private joint model in three lines, on the engine that also runs the papers' methods."""

from confide.errors import MissingExtra

try:
    import sklearn as _  # noqa: F401
except ImportError:
    raise MissingExtra("estimators need scikit-learn: pip install 'confide[sklearn]'") from None

from confide.estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from confide.estimators.functional import FunctionalQuantileRegressor
from confide.estimators.regressors import (
    PrivateElasticNet,
    PrivateHuberRegressor,
    PrivateLasso,
    PrivateQuantileRegressor,
    PrivateRidge,
)

__all__ = [
    "FunctionalQuantileRegressor", "PrivateElasticNet", "PrivateHuberRegressor", "PrivateLasso", "PrivateLinearSVC",
    "PrivateLogisticRegression", "PrivateQuantileRegressor", "PrivateRidge",
]  # fmt: skip
