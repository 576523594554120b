"""Learning from encoded rows as `confide fit` and `confide plan` do: one estimator, what it cost and what it sent.

    learned = learn(rows, FitOptions(epsilon=1.0))
    learned.model(schema).save("model.json")
    learned.run(schema).save("run.npz")

Rows are as a schema encodes them: binary labels are -1 and 1, classes 0, 1, …, numbers -1 to 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.estimators.listener import Listener
from confide.problem.problem import Public
from confide.runs.model import NOT_COVERED, Model, Spent, finite_or_none
from confide.runs.run import Run
from confide.schema.schema import Schema

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Watch = Callable[[int, int], None]  # (rounds done, of how many)
Calibrate = Callable[[Any, Public, float, float, float], Any]  # (method, public, μ, ε, δ) -> the method with its noise

MODELS = {
    "logistic": "PrivateLogisticRegression", "svc": "PrivateLinearSVC", "ridge": "PrivateRidge",
    "lasso": "PrivateLasso", "elastic-net": "PrivateElasticNet", "huber": "PrivateHuberRegressor",
    "quantile": "PrivateQuantileRegressor",
}  # fmt: skip
CLASSIFIERS = ("logistic", "svc")


@dataclass(frozen=True, eq=False)
class PooledRows:
    """Encoded rows X (n, features), targets y (n,), each row's party as its place in `names`."""

    X: Array
    y: Array
    party: Index
    names: tuple[str, ...]
    kind: str = "binary"  # of the label: binary, classes or real
    classes: int = 2
    row_norm: float = 1.0
    intercept: bool = True

    def take(self, index: Any) -> PooledRows:
        """Some of the rows."""
        return PooledRows(self.X[index], self.y[index], self.party[index], self.names, self.kind, self.classes,
                    self.row_norm, self.intercept)  # fmt: skip

    @property
    def sizes(self) -> Index:
        return np.bincount(self.party, minlength=len(self.names))


@dataclass(frozen=True)
class FitOptions:
    """What is learned, for how much. `seed=None` draws secure noise; None elsewhere is the estimator's default."""

    model: str = "logistic"
    epsilon: float = 1.0
    delta: float = 1e-5
    graph: str = "ring"
    rounds: int | None = None
    algorithm: Any = "auto"
    collusion: int | None = None  # of algorithm "auto"
    penalty: float | None = None
    quantile: float | None = None  # of model "quantile"
    width: float | None = None  # of model "huber", in units of half the label's range
    seed: int | None = None
    ledger: Path | None = None
    population: str | None = None
    allow_unproven: bool = False
    evaluate: float | None = None  # share of rows held out, which pay for `evaluation_`


def usual(kind: str) -> str:
    """The model for a kind of label, where none is named."""
    return "ridge" if kind == "real" else "logistic"


def check_model(model: str, kind: str, label: str) -> None:
    """One line where a model does not learn that kind of label."""
    if model not in MODELS:
        raise ConfideError(f"--model {model}: must be one of {', '.join(MODELS)}")
    if (model in CLASSIFIERS) == (kind == "real"):
        fitting = [m for m in MODELS if (m in CLASSIFIERS) != (kind == "real")]
        what = "a number" if kind == "real" else "not a number but one of its declared values"
        raise ConfideError(f"--model {model}: label {label!r} is {what}: use {' or '.join(fitting)}")


def check_held_out(rows: PooledRows, share: float, given: str) -> None:
    """One line, in the words of who gave the share, where a party would have no rows left to learn from."""
    from confide.estimators.evaluating import held_count

    for name, size in zip(rows.names, rows.sizes.tolist(), strict=True):
        held_count(share, size, name, given)


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted estimator, and the phases (method, public problem) that it went through."""

    estimator: Any
    phases: Sequence[tuple[Any, Public]]
    parts: Sequence[tuple[Any, Any]]  # (scaled rows by party, loss) of every phase: private, for `plan` only
    penalty: Any
    rows: int
    seconds: float

    @property
    def spent(self) -> Any:
        return self.estimator.privacy_

    @property
    def bytes_sent(self) -> int:
        """Payload of all messages."""
        return sum(method.bytes_sent(public) for method, public in self.phases)

    @property
    def not_covered(self) -> tuple[str, ...]:
        return (*self.spent.not_covered, *NOT_COVERED)

    def model(self, schema: Schema) -> Model:
        """The average of the parties' models: a function of what they sent."""
        e, spent = self.estimator, self.spent
        label = schema.label
        return Model(
            self.phases[-1][1].loss, schema.features, np.atleast_2d(e.coef_), np.atleast_1d(e.intercept_),
            None if label.kind == "real" else label.values, schema.row_norm, schema,
            Spent(finite_or_none(spent.spent), spent.delta, spent.guarantee.label, spent.guarantee.reason, spent.method,
                  spent.rounds, finite_or_none(spent.exact), self.not_covered),
            {"command": "fit", "estimator": type(e).__name__, "parties": len(e.party_names_), "rows": self.rows,
             "simulated": e.random_state is not None},
        )  # fmt: skip

    def run(self, schema: Schema) -> Run:
        """As `confide report` reads it: each party's model, public values by round, and the events."""
        run = replace(self.estimator.run_, seconds=self.seconds, not_covered=self.not_covered)
        return run.with_names(schema.features, None if schema.label.kind == "real" else schema.label.values)


def learn(rows: PooledRows, settings: FitOptions, watch: Watch = lambda done, total: None,
          calibrate: Calibrate | None = None) -> Learned:  # fmt: skip
    """Learn from `rows`; `watch` hears of every round; `calibrate` may find the noise in another way, as nodes do."""
    estimator = prepared(rows, settings)
    estimator._listener = heard = Progress(watch, calibrate)
    began = time.perf_counter()
    several = len(rows.names) > 1
    estimator.fit(rows.X, rows.y, groups=rows.party if several else None)
    seconds = time.perf_counter() - began
    # the estimator knows parties by number, so that they keep their order
    estimator.party_names_ = tuple(rows.names[int(k)] for k in estimator.party_names_) if several else rows.names
    return Learned(estimator, heard.phases, heard.parts, heard.penalty, len(rows.y), seconds)


@dataclass(eq=False)
class Progress(Listener):
    """Notes what a fit goes through, and tells how far it is."""

    watch: Watch
    calibrate: Calibrate | None = None
    parts: Sequence[tuple[Any, Any]] = ()
    penalty: Any = None
    phases: Sequence[tuple[Any, Public]] = ()
    done: int = 0

    def calibrated(self, method: Any, public: Public, mu: float, epsilon: float, delta: float) -> Any:
        return (self.calibrate or super().calibrated)(method, public, mu, epsilon, delta)

    def learning(self, parts: Sequence[tuple[Any, Any]], penalty: Any) -> None:
        self.parts, self.penalty = parts, penalty

    def paid(self, phases: Sequence[tuple[Any, Public]]) -> None:
        self.phases = phases
        self.watch(0, self.rounds)

    def round(self) -> None:
        self.done += 1
        self.watch(self.done, self.rounds)

    @property
    def rounds(self) -> int:
        return sum(method.rounds for method, _ in self.phases)


def prepared(rows: PooledRows, settings: FitOptions) -> Any:
    """The estimator that was asked for."""
    from confide import estimators

    kind: Any = getattr(estimators, MODELS[settings.model])
    s = settings
    given = {"rounds": s.rounds, "collusion": s.collusion, "penalty_strength": s.penalty, "quantile": s.quantile,
             "width": s.width, "ledger": s.ledger, "population": s.population, "random_state": s.seed,
             "evaluate": s.evaluate}  # fmt: skip
    target: dict[str, Any] = {"target_range": (-1.0, 1.0)}
    if rows.kind != "real":
        target = {"classes": [-1.0, 1.0] if rows.kind == "binary" else [float(k) for k in range(rows.classes)]}
    return kind(
        epsilon=s.epsilon, delta=s.delta, algorithm=s.algorithm, graph=s.graph, row_norm=rows.row_norm,
        fit_intercept=rows.intercept, allow_unproven=s.allow_unproven, **target,
        **{name: value for name, value in given.items() if value is not None},
    )  # fmt: skip
