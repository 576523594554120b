"""`Problem`: what the parties minimise together, and `Public`: the part of it that everyone may know.

    minimise over β   Σ_k [ (q_k/M_k) Σ_j ℓ(x_kj, y_kj; β) + (1/K) R(β) ]

with q_k = 1 (weighting="parties", the papers) or q_k = M_k/n (weighting="rows", the pooled mean of scikit-learn).
The intercept, if any, is the last coefficient of each class and is not penalised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, WrongType
from confide.problem import linear
from confide.problem.black_box import VALUES_ONLY, BlackBoxBlock, as_loss
from confide.problem.block import Block, SolverError
from confide.problem.losses import BlackBox, Logistic, Loss, Multinomial, NoisyLabels
from confide.problem.penalties import Penalty, Zero
from confide.problem.shards import Shards

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class HasValue(Protocol):
    """A loss of which only values are known."""

    def value(self, z: Any, y: Any) -> Any: ...


class Network(Protocol):
    """What a problem knows of the graph it is handed (a `confide.Graph`): who is linked to whom."""

    @property
    def size(self) -> int: ...

    @property
    def edges(self) -> Index:
        """(E, 2)."""

    @property
    def degrees(self) -> Index:
        """(size,)."""

    @property
    def adjacency(self) -> Any:
        """(size, size), sparse."""

    @property
    def names(self) -> tuple[str, ...] | None: ...


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

    graph            the network; None for central methods
    sizes            (agents,) rows of each
    loss, penalty    of the problem
    features         numbers in a row; intercept: whether the model has one more, unpenalised
    weighting        "parties" (each counts the same) or "rows" (each row counts the same)
    row_norm         enforced bound on ‖x‖, above 0; None: rows may be of any length, or of any weight
    row_weight       the most that a row counts in f, where that is not q_k/M_k: all rows as one agent
    """

    graph: Network | None
    sizes: Index
    loss: Loss
    penalty: Penalty
    features: int
    intercept: bool = False
    weighting: str = "parties"
    row_norm: float | None = None  # enforced bound on ‖x‖; None: rows may be of any length, or of any weight
    agents: Index = field(default_factory=lambda: np.zeros(0, np.int64))
    row_weight: float | None = None  # the most that a row counts in f, where that is not q_k/M_k: all rows as one agent

    @property
    def count(self) -> int:
        """K: agents in the network."""
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Coefficients of the model."""
        return self.loss.coefficients or self.loss.outputs * (self.features + self.intercept)

    @cached_property
    def degree(self) -> Array:
        """|N_k|: (A, 1)."""
        if self.graph is None:
            raise ConfideError("no graph: a method with topology 'central' has no neighbours")
        return self.graph.degrees[self.agents].astype(float)[:, None]

    @cached_property
    def scale(self) -> Array:
        """The most that one row's loss counts in f_k, q_k/M_k: (A, 1)."""
        if self.row_weight is not None:
            return np.full((len(self.agents), 1), self.row_weight)
        return row_scale(self.sizes, self.weighting)[self.agents][:, None]

    @cached_property
    def mask(self) -> Array:
        """1 at penalised coefficients, 0 at intercepts: (W,)."""
        if self.loss.coefficients:
            return np.ones(self.loss.coefficients)
        one = np.ones(self.features + self.intercept)
        if self.intercept:
            one[-1] = 0.0
        return np.tile(one, self.loss.outputs)

    def each(self, value: Any) -> Array:
        """A parameter, common or one per agent of the whole network, for the agents at hand: (A, 1)."""
        if isinstance(value, (int, float)):
            return _column(float(value), len(self.agents))
        try:
            v = np.asarray(value, float)
        except (TypeError, ValueError):  # texts, or lists of unlike length
            v = np.empty((0, 0))
        if v.ndim == 0:
            return _column(float(v), len(self.agents))
        if v.shape != (self.count,):
            raise ConfideError(f"parameter of shape {v.shape}: must be one number, or one per agent ({self.count},)")
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

    @cached_property
    def whole(self) -> Public:
        """The same network with all its agents."""
        return self if len(self.agents) == self.count else replace(self, agents=np.arange(self.count))

    def as_one(self) -> Public:
        """All rows with one agent: what a central method knows."""
        n = np.array([self.sizes.sum()], np.int64)
        most = float(row_scale(self.sizes, self.weighting).max())
        return replace(self, graph=None, sizes=n, agents=np.zeros(1, np.int64), row_weight=most)


def row_scale(sizes: Index, weighting: str) -> Array:
    """q_k/M_k of every agent: (K,)."""
    return 1.0 / sizes if weighting == "parties" else np.full(len(sizes), 1.0 / sizes.sum())


class Problem:
    """What the parties minimise together.

    shards      rows of one party or several
    loss        one of confide.losses; its kind of targets must be that of the rows. Or anything with values: a
                function (β, X, y) -> values, or an object with value(z, y), z = Xβ; for methods that ask for no more
    penalty     one of confide.penalties, on all coefficients but intercepts; None for no penalty
    weighting   "parties": each party counts the same, its rows 1/M_k; "rows": each row counts the same, 1/n
    intercept   whether each output has a constant, its last coefficient
    """

    def __init__(
        self, shards: Shards, loss: Loss | HasValue | Callable[..., Any], penalty: Penalty | None = None,
        weighting: str = "parties", intercept: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(shards, Shards):
            raise WrongType(f"shards={type(shards).__name__}: must be confide.Shards, such as Shards.split(X, y, 5)")
        if weighting not in ("parties", "rows"):
            raise ConfideError(f"weighting={weighting!r}: must be 'parties' (each party 1/M_k) or 'rows' (pooled mean)")
        loss = as_loss(loss, shards.features)
        if isinstance(loss, BlackBox) and {"weight", "share"} & set(shards.columns):
            raise ConfideError("a column of weights: a BlackBox weighs rows itself, give it none")
        check_labels(shards, loss)
        self.shards, self.loss, self.penalty = shards, loss, penalty if penalty is not None else Zero()
        if not isinstance(self.penalty, Penalty):
            raise WrongType(f"penalty={penalty!r}: must be one of confide.penalties, such as L2(0.01)")
        self.weighting, self.intercept = weighting, bool(intercept)

    def __repr__(self) -> str:
        return f"Problem({self.shards!r}, {self.loss!r}, {self.penalty!r}, weighting={self.weighting!r})"

    @property
    def width(self) -> int:
        """Coefficients of the model."""
        return self.loss.coefficients or self.loss.outputs * (self.shards.features + self.intercept)

    def public(self, graph: Network | None) -> Public:
        """What everyone may know, for all agents."""
        if graph is not None and graph.size != self.shards.parties:
            raise ConfideError(f"graph of {graph.size} agents for {self.shards.parties} parties: they must agree")
        row_norm = None if "weight" in self.shards.columns else self.shards.row_norm  # a weight lengthens a row
        return Public(
            graph, self.shards.sizes, self.loss, self.penalty, self.shards.features, self.intercept,
            self.weighting, row_norm, np.arange(self.shards.parties),
        )  # fmt: skip

    @cached_property
    def block(self) -> Block:
        """Every party's rows."""
        return self._over(self.shards, row_scale(self.shards.sizes, self.weighting))

    def _over(self, shards: Shards, scale: Array) -> Block:
        if isinstance(self.loss, BlackBox):
            return BlackBoxBlock(shards, self.loss, scale, self.intercept)
        return Block(shards, self.loss, scale, self.intercept)

    def only(self, k: int) -> Block:
        """Party k's rows, as its own node holds them."""
        scale = row_scale(self.shards.sizes, self.weighting)[k : k + 1]
        return self._over(self.shards.only(k), scale)

    @cached_property
    def pooled(self) -> Block:
        """All rows as one agent, with the same objective; a row that counts most has weight 1, as clips suppose."""
        scale = row_scale(self.shards.sizes, self.weighting)
        weight = np.repeat(scale / scale.max(), self.shards.sizes)
        return self._over(self.shards.pooled(weight), scale.max(keepdims=True))

    @cached_property
    def _optimum(self) -> Array:
        if isinstance(self.loss, BlackBox):
            raise WrongType(f"no optimum is known, give record=() or metrics of your own: {VALUES_ONLY}")
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
            raise WrongType(f"test={type(test).__name__}: must be a pair (X, y)")
        try:
            rows = Shards.from_parts([(test[0], test[1])])
            if rows.features != self.shards.features:
                raise ConfideError(
                    f"{rows.features} features: must be {self.shards.features}, as the parties' rows have"
                )
            check_labels(rows, self.loss.base)
        except ConfideError as error:
            raise ConfideError(f"test set: {error}") from None
        return rows.X, rows.y

    def predict(self, X: Any, beta: Array) -> Array:
        """Margin, sign or class of each row of X under coefficients (width,)."""
        return linear.predicted(self._margins(X, beta), self.loss.labels)

    def _margins(self, X: Any, beta: Array) -> Array:
        """(rows, outputs)."""
        return linear.margins(X, *linear.split(beta, self.loss.outputs, self.intercept))


def check_labels(shards: Shards, loss: Loss) -> None:
    """The targets must be what the loss is defined for."""
    y, name = shards.y, type(loss.base).__name__
    if loss.labels == "sign" and not np.all((y == 1) | (y == -1)):
        raise ConfideError(f"a label is not one of those allowed: {name} takes the labels -1 and 1")
    if loss.labels == "class" and np.any((y != np.floor(y)) | (y < 0) | (y >= loss.outputs)):
        raise ConfideError(f"a label is not one of those allowed: {name} takes the classes 0 to {loss.outputs - 1}")
    if isinstance(loss, NoisyLabels) and loss.epsilon is None:
        eps = shards.columns.get("epsilon")
        if eps is None:
            raise ConfideError("NoisyLabels without epsilon: the shards need a column 'epsilon', one value per row")
        if np.any(eps < loss.smallest_epsilon):
            raise ConfideError(f"a row's epsilon {eps.min():g} is below epsilon_min={loss.smallest_epsilon:g}")
    if "weight" in shards.columns and np.any(shards.columns["weight"] < 0):
        raise ConfideError(f"a row's weight {shards.columns['weight'].min():g}: weights must be at least 0")
    share = shards.columns.get("share", np.zeros(1))
    if share.min() < 0 or share.max() > 1:
        raise ConfideError("a row's share is not within 0 and 1: divide by a public bound, and clip")
