"""scikit-learn estimators: a private joint model in three lines, on the engine that also runs the papers' methods.

They are loaded when first used: a command that refuses what it was given needs no scikit-learn to say so.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from confide.errors import MissingExtra

if TYPE_CHECKING:
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
_HOMES = {"FunctionalQuantileRegressor": "functional", "PrivateLinearSVC": "classifiers",
          "PrivateLogisticRegression": "classifiers"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import sklearn as _  # noqa: F401
    except ImportError:
        raise MissingExtra("estimators need scikit-learn: pip install 'confide[sklearn]'") from None
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'regressors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
