"""`Problem`: what the parties minimise together, and `Public`: the part of it that everyone may know.

    minimise over β   Σ_k [ (q_k/M_k) Σ_j ℓ(x_kj, y_kj; β) + (1/K) R(β) ]

with q_k = 1 (weighting="parties", the papers) or q_k = M_k/n (weighting="rows", the pooled mean of scikit-learn).
The intercept, if any, is the last coefficient of each class and is not penalised.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.problem.block import Block, SolverError
from confide.problem.losses import Logistic, Loss, Multinomial, NoisyLabels
from confide.problem.penalties import Penalty, Zero
from confide.problem.shards import Shards

if TYPE_CHECKING:  # a problem knows of a network only what it is handed
    from confide.network.graph import Graph

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@lru_cache(maxsize=256)
def _column(value: float, agents: int) -> Array:
    """A common parameter for so many agents, read-only: a round asks for the same few again and again."""
    out = np.full((agents, 1), value)
    out.flags.writeable = False
    return out


@dataclass(frozen=True, eq=False)
class Public:
    """Everything an algorithm may know beside a block's rows: network, sizes, loss, penalty and bounds.

    `agents` says which agents the arrays at hand stand for: all of them in a simulation, one on a node. Values per
    agent come as (A, 1), ready to meet (seeds, A, width).
    """

    graph: Graph | None
    sizes: Index
    loss: Loss
    penalty: Penalty
    features: int
    intercept: bool = False
    weighting: str = "parties"
    row_norm: float | None = None  # enforced bound on ‖x‖; None: rows may be of any length, or of any weight
    agents: Index = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def count(self) -> int:
        """K: agents in the network."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Coefficients of the model."""
        return self.loss.outputs * (self.features + self.intercept)

    @cached_property
    def degree(self) -> Array:
        """|N_k|: (A, 1)."""
        if self.graph is None:
            raise ValueError("no graph: a method with topology 'central' has no neighbours")
        return self.graph.degrees[self.agents].astype(float)[:, None]

    @cached_property
    def scale(self) -> Array:
        """What one row's loss counts in f_k, q_k/M_k: (A, 1)."""
        return row_scale(self.sizes, self.weighting)[self.agents][:, None]

    @cached_property
    def mask(self) -> Array:
        """1 at penalised coefficients, 0 at intercepts: (W,)."""
        one = np.ones(self.features + self.intercept)
        if self.intercept:
            one[-1] = 0.0
        return np.tile(one, self.loss.outputs)

    def each(self, value: Any) -> Array:
        """A parameter, common or one an agent of the whole network, for the agents at hand: (A, 1)."""
        if isinstance(value, (int, float)):
            return _column(float(value), len(self.agents))
        v = np.asarray(value, float)
        if v.ndim == 0:
            return _column(float(v), len(self.agents))
        if v.shape != (self.count,):
            raise ValueError(f"parameter of shape {v.shape}: must be one number, or one an agent ({self.count},)")
        return np.asarray(v[self.agents][:, None])

    def penalty_gradient(self, beta: Array) -> Array:
        """Agent's share of the penalty's subgradient, ∂R(β)/K."""
        return self.penalty.gradient(beta) * self.mask / self.count

    def penalty_prox(self, v: Array, step: Any) -> Array:
        """argmin of step·R(β)/K + ½‖β - v‖²; intercepts stay."""
        return np.where(self.mask > 0, self.penalty.prox(v, np.asarray(step) / self.count), v)

    def at(self, k: int) -> Public:
        """The same network seen by agent k alone."""
        return replace(self, agents=np.array([k], np.int64))

    def as_one(self) -> Public:
        """All rows with one agent: what a central method knows."""
        n = np.array([self.sizes.sum()], np.int64)
        return replace(self, graph=None, sizes=n, weighting="parties", agents=np.zeros(1, np.int64))


def row_scale(sizes: Index, weighting: str) -> Array:
    """q_k/M_k of every agent: (K,)."""
    return 1.0 / sizes if weighting == "parties" else np.full(len(sizes), 1.0 / sizes.sum())


class Problem:
    """Rows of at least two parties, a loss, a penalty and how the parties are weighed."""

    def __init__(
        self, shards: Shards, loss: Loss, penalty: Penalty | None = None,
        weighting: str = "parties", intercept: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(shards, Shards):
            raise TypeError(f"shards={type(shards).__name__}: must be confide.Shards, such as Shards.split(X, y, 5)")
        if shards.parties < 2:
            raise ValueError(f"{shards.parties} party: learning over a network needs at least 2 parties")
        if weighting not in ("parties", "rows"):
            raise ValueError(f"weighting={weighting!r}: must be 'parties' (each party 1/M_k) or 'rows' (pooled mean)")
        if not isinstance(loss, Loss):
            raise TypeError(f"loss={loss!r}: must be one of confide.losses, such as Logistic()")
        check_labels(shards, loss)
        self.shards, self.loss, self.penalty = shards, loss, penalty if penalty is not None else Zero()
        if not isinstance(self.penalty, Penalty):
            raise TypeError(f"penalty={penalty!r}: must be one of confide.penalties, such as L2(0.01)")
        self.weighting, self.intercept = weighting, bool(intercept)

    def __repr__(self) -> str:
        return f"Problem({self.shards!r}, {self.loss!r}, {self.penalty!r}, weighting={self.weighting!r})"

    @property
    def width(self) -> int:
        """Coefficients of the model."""
        return self.loss.outputs * (self.shards.features + self.intercept)

    def public(self, graph: Graph | None) -> Public:
        """What everyone may know, for all agents."""
        if graph is not None and graph.size != self.shards.parties:
            raise ValueError(f"graph of {graph.size} agents for {self.shards.parties} parties: they must agree")
        row_norm = None if "weight" in self.shards.columns else self.shards.row_norm  # a weight lengthens a row
        return Public(
            graph, self.shards.sizes, self.loss, self.penalty, self.shards.features, self.intercept,
            self.weighting, row_norm, np.arange(self.shards.parties),
        )  # fmt: skip

    @cached_property
    def block(self) -> Block:
        """Every party's rows."""
        return Block(self.shards, self.loss, row_scale(self.shards.sizes, self.weighting), self.intercept)

    def only(self, k: int) -> Block:
        """Party k's rows, as its own node holds them."""
        scale = row_scale(self.shards.sizes, self.weighting)[k : k + 1]
        return Block(self.shards.only(k), self.loss, scale, self.intercept)

    @cached_property
    def pooled(self) -> Block:
        """All rows as one agent, with the same objective."""
        scale = row_scale(self.shards.sizes, self.weighting)
        weight = np.repeat(scale, self.shards.sizes)
        return Block(self.shards.pooled(weight), self.loss, np.ones(1), self.intercept)

    @cached_property
    def _optimum(self) -> Array:
        zero = np.zeros((1, 1, self.width))
        public = self.public(None)
        tolerance = 1e-11 * max(1e-3, float(np.linalg.norm(self.pooled.gradient(zero))))
        largest = max(1.0, float(np.sqrt(np.diagonal(self.pooled.gram[0])).max()))
        floor = 1e-13 if self.loss.smooth else 5e-11 * largest  # of float64, with a margin
        try:
            beta = self.pooled.argmin(zero, 0.0, self.penalty, public.mask, 1.0, zero, max(tolerance, floor))
        except SolverError as error:
            raise SolverError(f"no optimum found ({error}); a problem without penalty may have none") from None
        if self._separated(beta[0, 0]):
            raise SolverError(
                f"no optimum: {type(self.loss).__name__} loss without penalty on rows that one model separates falls "
                "for ever as coefficients grow: add a penalty, such as L2(1e-3)"
            )
        return np.asarray(beta[0, 0])

    def _separated(self, beta: Array) -> bool:
        """Whether an unpenalised loss would fall as these coefficients are doubled, and doubled again, for ever."""
        free = self.penalty.convex and not (self.penalty.l1 or self.penalty.l2)
        if not (free and isinstance(self.loss, Logistic | Multinomial)):
            return False
        z, y = self._margins(self.shards.X, beta), self.shards.y
        if isinstance(self.loss, Logistic):
            return bool(np.all(y * z[:, 0] > 0))
        own = np.take_along_axis(z, y.astype(int)[:, None], axis=1)
        return bool(np.all(np.sum(z >= own, axis=1) == 1))  # its own class alone is that high

    def solve(self) -> Array:
        """The centralised optimum (width,); for a concave penalty, the stationary point reached from 0."""
        return self._optimum.copy()

    def objective(self, beta: Array) -> float:
        """Σ_k f_k(β) at one coefficient vector (width,)."""
        public = self.public(None)
        loss = float(self.pooled.value(np.asarray(beta, float)[None, None])[0, 0])
        return loss + float(np.sum(self.penalty.terms(np.asarray(beta)) * public.mask))

    def test_rows(self, test: Any) -> tuple[Any, Array]:
        """A public test set (X, y), checked as the parties' rows are."""
        if not (isinstance(test, tuple | list) and len(test) == 2):
            raise TypeError(f"test={type(test).__name__}: must be a pair (X, y)")
        try:
            rows = Shards.from_parts([(test[0], test[1])])
            if rows.features != self.shards.features:
                raise ValueError(f"{rows.features} features: must be {self.shards.features}, as the parties' rows have")
            check_labels(rows, self.loss.base)
        except ValueError as error:
            raise ValueError(f"test set: {error}") from None
        return rows.X, rows.y

    def predict(self, X: Any, beta: Array) -> Array:
        """Margin, sign or class of each row of X under coefficients (width,)."""
        z = self._margins(X, beta)
        if self.loss.labels == "class":
            return np.asarray(np.argmax(z, axis=1), float)
        return np.where(z[:, 0] >= 0, 1.0, -1.0) if self.loss.labels == "sign" else np.asarray(z[:, 0])

    def _margins(self, X: Any, beta: Array) -> Array:
        """(rows, outputs)."""
        coefficients = np.asarray(beta).reshape(self.loss.outputs, -1)
        z = X @ coefficients[:, : self.shards.features].T
        return np.asarray(z + coefficients[:, -1] if self.intercept else z)


def check_labels(shards: Shards, loss: Loss) -> None:
    """The targets must be what the loss is defined for."""
    y, name = shards.y, type(loss.base).__name__
    if loss.labels == "sign" and not np.all((y == 1) | (y == -1)):
        bad = y[(y != 1) & (y != -1)][0]
        raise ValueError(f"label {bad:g}: {name} takes the labels -1 and 1")
    if loss.labels == "class":
        wrong = (y != np.floor(y)) | (y < 0) | (y >= loss.outputs)
        if np.any(wrong):
            raise ValueError(f"label {y[wrong][0]:g}: {name} takes the classes 0 to {loss.outputs - 1}")
    if isinstance(loss, NoisyLabels) and loss.epsilon is None:
        eps = shards.columns.get("epsilon")
        if eps is None:
            raise ValueError("NoisyLabels without epsilon: the shards need a column 'epsilon', one value a row")
        if np.any(eps < loss.smallest_epsilon):
            raise ValueError(f"a row's epsilon {eps.min():g} is below epsilon_min={loss.smallest_epsilon:g}")
    if "weight" in shards.columns and np.any(shards.columns["weight"] < 0):
        raise ValueError(f"a row's weight {shards.columns['weight'].min():g}: weights must be at least 0")
