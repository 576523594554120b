"""confide: differentially private learning over a network without a server.

    import confide
    problem = confide.Problem(confide.Shards.from_groups(X, y, hospital), confide.losses.Logistic())
    run = confide.simulate(problem, confide.Graph.ring(5), confide.algorithms.CDPADMM(rounds=100, clip=1.0, noise=0.1))
    print(run.privacy)

Names are loaded when first used, so that `import confide` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from confide._version import __version__

if TYPE_CHECKING:
    from confide import algorithms, audit, privacy
    from confide.estimators import (
        FunctionalQuantileRegressor,
        PrivateElasticNet,
        PrivateHuberRegressor,
        PrivateLasso,
        PrivateLinearSVC,
        PrivateLogisticRegression,
        PrivateQuantileRegressor,
        PrivateRidge,
    )
    from confide.network.graph import Graph
    from confide.papers import datasets
    from confide.problem import losses, penalties
    from confide.problem.problem import Problem, Public
    from confide.problem.shards import Shards
    from confide.runs import metrics
    from confide.runs.driver import simulate
    from confide.runs.model import Model
    from confide.runs.run import Run, load_run
    from confide.runs.sweep import Sweep, sweep

_HOMES = {
    "Graph": "confide.network.graph", "Model": "confide.runs.model",
    "Problem": "confide.problem.problem", "Public": "confide.problem.problem",
    "Run": "confide.runs.run", "Shards": "confide.problem.shards", "load_run": "confide.runs.run",
    "simulate": "confide.runs.driver", "Sweep": "confide.runs.sweep", "sweep": "confide.runs.sweep",
    **dict.fromkeys((
        "FunctionalQuantileRegressor", "PrivateElasticNet", "PrivateHuberRegressor", "PrivateLasso",
        "PrivateLinearSVC", "PrivateLogisticRegression", "PrivateQuantileRegressor", "PrivateRidge",
    ), "confide.estimators"),
}  # fmt: skip
_MODULES = {
    "algorithms": "confide.algorithms", "audit": "confide.audit", "datasets": "confide.papers.datasets",
    "losses": "confide.problem.losses",
    "metrics": "confide.runs.metrics", "penalties": "confide.problem.penalties", "privacy": "confide.privacy",
}  # fmt: skip

__all__ = [
    "FunctionalQuantileRegressor", "Graph", "Model", "PrivateElasticNet", "PrivateHuberRegressor", "PrivateLasso",
    "PrivateLinearSVC", "PrivateLogisticRegression", "PrivateQuantileRegressor", "PrivateRidge", "Problem",
    "Public", "Run", "Shards", "Sweep", "__version__", "algorithms", "audit", "datasets", "load_run", "losses",
    "metrics", "penalties", "privacy", "simulate", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'confide' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
