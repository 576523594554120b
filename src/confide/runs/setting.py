"""`Setting`: what everyone may know of a run: network, problem, model. Never rows, nor what is computed from them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._version import __version__
from confide.errors import ConfideError
from confide.problem import linear
from confide.problem.losses import Quantile
from confide.problem.problem import Public

Array = NDArray[np.float64]
POOLED = "all rows in one place"


@dataclass(frozen=True)
class Setting:
    """The parties and their links, what they minimised, and how a model turns a row into an answer."""

    agents: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]  # between agents; empty for a central method
    topology: str  # "peer"; "all": with a hub; "central": no network
    sizes: tuple[int, ...]  # M_k, public in this project
    loss: str
    penalty: str
    weighting: str
    labels: str  # "sign", "class" or "real": what the loss takes
    outputs: int
    features: tuple[str, ...]
    intercept: bool
    level: float | None = None  # of a quantile
    classes: tuple[str, ...] = ()
    row_norm: float | None = None  # rows are clipped to this before a prediction

    @classmethod
    def of(cls, public: Public, topology: str, names: Sequence[str]) -> Setting:
        """The setting of a run, from public values."""
        base, graph = public.loss.base, public.graph
        topology = "central" if public.count == 1 else topology
        alone = topology == "central"
        agents = (POOLED,) if alone else tuple((graph.names if graph is not None else None) or names)
        edges = () if graph is None or alone else tuple((int(a), int(b)) for a, b in graph.edges)
        return cls(
            agents, edges, topology, tuple(int(m) for m in public.sizes), repr(public.loss), repr(public.penalty),
            public.weighting, public.loss.labels, public.loss.outputs,
            tuple(f"x{i}" for i in range(1, public.features + 1)), public.intercept,
            base.level if isinstance(base, Quantile) else None, classes(public.loss.labels, public.loss.outputs),
        )  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Setting:
        """The setting again."""
        tuples = {name: tuple(data[name]) for name in ("agents", "sizes", "features", "classes")}
        return cls(**{**data, **tuples, "edges": tuple((int(a), int(b)) for a, b in data["edges"])})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def width(self) -> int:
        """Coefficients of the model."""
        return self.outputs * (len(self.features) + self.intercept)

    def margins(self, X: Any, models: Array) -> Array:
        """Of rows X, clipped as those learned from were, under models (…, width): (…, rows, outputs)."""
        X = np.asarray(X, float)
        if X.ndim != 2 or X.shape[1] != len(self.features):
            raise ConfideError(f"test rows of shape {X.shape}: must be (rows, {len(self.features)}), as many features")
        if not np.all(np.isfinite(X)):
            raise ConfideError("test rows hold a value that is not a finite number")
        if models.shape[-1] != self.width:
            raise ConfideError(f"a model of {models.shape[-1]} coefficients: this problem has {self.width}")
        return linear.margins(linear.clipped(X, self.row_norm), *linear.split(models, self.outputs, self.intercept))

    def predict(self, X: Any, models: Array) -> Array:
        """Margin, sign or class of each row of X under each model (models, width): (models, rows)."""
        return linear.predicted(self.margins(X, models), self.labels)


def classes(labels: str, outputs: int) -> tuple[str, ...]:
    """What the labels are called unless someone names them."""
    if labels == "sign":
        return ("-1", "1")
    return tuple(str(c) for c in range(outputs)) if labels == "class" else ()


@cache
def _installed() -> dict[str, str]:
    from importlib import metadata

    parts = {name: metadata.version(name) for name in ("numpy", "numba", "scipy")}  # without loading them
    return {"confide": __version__, "python": platform.python_version(), **parts}


def versions() -> dict[str, str]:
    """Of everything that had a part in the numbers."""
    return dict(_installed())
