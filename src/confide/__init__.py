"""confide: differentially private learning over a network without a server.

    import confide
    problem = confide.Problem(confide.Shards.from_groups(X, y, hospital), confide.losses.Logistic())
    run = confide.simulate(problem, confide.Graph.ring(5), confide.algorithms.CDPADMM(rounds=100, clip=1.0, noise=0.1))
    print(run.privacy)

Names are loaded when first used, so that `import confide` and the command line start at once.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
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


class _ByPublicName(MetaPathFinder, Loader):
    """`from confide.losses import Logistic`: what `confide.losses` names is imported under that name, too."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        known = package == __name__ and _MODULES.get(last, name) != name
        return ModuleSpec(name, self) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(_MODULES[spec.name.rpartition(".")[2]])
        spec.loader_state = module.__spec__  # the import system is about to write over it
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_ByPublicName())
