"""What the estimators share: parameters, the way from a table to parties, and payment before the first release."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from confide.estimators import auto, engine
from confide.estimators.record import Paid, record
from confide.network.graph import Graph
from confide.privacy import ZCDP, Label
from confide.privacy.ledger import Ledger
from confide.problem.checks import finite, whole
from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards
from confide.run import Run

Array = NDArray[np.float64]
GRAPHS = ("ring", "complete", "star", "path")
# With an intercept, rows are lengthened to this while the intercept's feature stays 1: a longest row of (2, 1) costs
# 1.12 times the noise of the row alone, and one of (1, 1) would cost 1.41 times.
STRETCH = 2.0


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """A linear model that parties learn together; each keeps its rows and sends noisy messages to its neighbours.

    epsilon, delta      what one row may lose over the whole fit, whichever party holds it
    algorithm           "auto", or a method of confide.algorithms, whose noise is then calibrated to (epsilon, delta)
    graph               "ring", "complete", "star", "path", or a confide.Graph
    parties             how many share the rows, evenly and by row order, when `fit` gets no groups
    rounds              of algorithm="auto"; None lets it choose
    penalty_strength    weight of the penalty beside the mean loss, on `coef_`
    row_norm            public: longer rows are shortened to it, in `fit` and in `predict`
    random_state        None draws secure noise; a number makes a simulation, which protects nobody
    ledger, population  a confide.privacy.ledger.Ledger (or its path) and the name of the people in it: then every fit,
                        those of a search too, is charged to their budget before it starts, or refused
    allow_unproven      run methods whose guarantee is not proven

    Nothing is inferred from the rows: scale features with ranges that everyone may know. How many rows each party has
    is public.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    algorithm: Any = "auto"
    graph: Any = "ring"
    parties: int = 5
    rounds: int | None = None
    penalty_strength: float = 1e-5
    row_norm: float = 1.0
    fit_intercept: bool = True
    random_state: Any = None
    ledger: Any = None
    population: str | None = None
    allow_unproven: bool = False

    # --- from a table to parties ------------------------------------------------------------------------------------

    def _table(self, X: Any, **options: Any) -> Any:
        """X (and y) as scikit-learn checks them."""
        return validate_data(self, X, **{"accept_sparse": "csr", "dtype": np.float64, **options})

    @property
    def _scale(self) -> float:
        """What turns a row within row_norm into one the engine takes."""
        return (STRETCH if self.fit_intercept else 1.0) / self.row_norm

    def _shards(self, X: Any, y: Array, groups: Any) -> tuple[Shards, Graph]:
        """Scaled, shortened rows by party, and the network between the parties."""
        if not (finite(self.row_norm) and self.row_norm > 0):
            raise ValueError(f"row_norm={self.row_norm}: must be a finite number above 0")
        if not (finite(self.penalty_strength) and self.penalty_strength >= 0):
            raise ValueError(f"penalty_strength={self.penalty_strength}: must be a finite number of at least 0")
        if len(y) < 2:
            raise ValueError(f"n_samples={len(y)}: learning over a network needs at least 2 rows, one a party")
        given = isinstance(self.graph, Graph)
        if groups is None:
            count = self.graph.size if given else self.parties
            if not (whole(count) and count >= 2):
                raise ValueError(f"parties={count}: must be a whole number of at least 2")
            groups = np.arange(len(y)) % (count if given else min(int(count), len(y)))
        else:
            groups = column_or_1d(groups)
            check_consistent_length(y, groups)
        shards = Shards.from_groups(X * self._scale, y, groups).clip_rows(self._scale * self.row_norm)
        if shards.parties < 2:
            raise ValueError(f"groups name 1 party, {shards.names[0]!r}: learning over a network needs at least 2")
        if not given:
            if self.graph not in GRAPHS:
                raise ValueError(f"graph={self.graph!r}: must be one of {', '.join(GRAPHS)}, or a confide.Graph")
            kind = "path" if shards.parties == 2 else self.graph
            return shards, getattr(Graph, kind)(shards.parties)
        names = self.graph.names
        if names is not None and set(names) == set(shards.names):
            shards = shards.relabel([shards.names.index(name) for name in names])
        return shards, self.graph

    # --- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, parts: Sequence[tuple[Shards, Loss]], graph: Graph, penalty: Penalty) -> list[Array]:
        """Minimise each part's loss, dividing the budget between them; each party's models (parties, width)."""
        problems = [self._problem(shards, loss, penalty) for shards, loss in parts]
        mu = engine.budget(self.epsilon, self.delta) / len(parts) ** 0.5
        plans = [(self._method(problem.public(graph), mu), problem.public(graph)) for problem in problems]
        seed = self._pay(plans)
        return [self._run(problem, graph, plan[0], seed) for problem, plan in zip(problems, plans, strict=True)]

    def _problem(self, shards: Shards, loss: Loss, penalty: Penalty) -> Problem:
        return Problem(shards, loss, penalty, weighting="rows", intercept=self.fit_intercept)

    def _method(self, public: Public, mu: float) -> Any:
        """The method, with the noise that spends μ."""
        if isinstance(self.algorithm, str):
            if self.algorithm != "auto":
                known = "'auto' or a method, such as confide.algorithms.CDPADMM(rounds=100, clip=1)"
                raise ValueError(f"algorithm={self.algorithm!r}: must be {known}")
            if self.rounds is not None and not (whole(self.rounds) and self.rounds >= 1):
                raise ValueError(f"rounds={self.rounds}: must be a whole number of at least 1, or None")
            method: Any = auto.choose(public, mu, self.rounds)
        elif self.rounds is not None:
            raise ValueError(f"rounds={self.rounds}: the algorithm given has its own, leave rounds=None")
        else:
            method = self.algorithm
        if method.topology == "central":
            raise ValueError(f"{method.name} pools all rows in one place: give a method that works over a network")
        return engine.calibrated(method, public, mu, self.epsilon, self.delta)

    def _run(self, problem: Problem, graph: Graph, method: Any, seed: int | None) -> Array:
        average_from = auto.taste(problem.loss).average_from if isinstance(self.algorithm, str) else 1.0
        models = self._watch(engine.rounds(problem, graph, method, seed))
        outcome = engine.follow(models, method.rounds, average_from)
        self.graph_, self.party_names_, self.history_ = graph, problem.shards.names, outcome.history
        return outcome.estimates

    def _watch(self, models: Iterator[Array]) -> Iterator[Array]:
        """Every round's models as they come, for a subclass that shows progress."""
        return models

    def _seed(self) -> int | None:
        """None for secure noise."""
        if self.random_state is None:
            return None
        if whole(self.random_state):
            if self.random_state < 0:
                raise ValueError(f"random_state={self.random_state}: must be at least 0, or None for secure noise")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _pay(self, phases: Sequence[tuple[Any, Public]]) -> int | None:
        """Set `privacy_`, refuse what is not proven and charge the ledger, all before the first release; the seed."""
        seed = self._seed()
        spent = engine.price(phases, self.delta, seed is None, self._not_covered())
        if spent.guarantee.label != Label.PROVEN and not self.allow_unproven:
            raise ValueError(f"{spent.method}: {spent.guarantee}; allow_unproven=True runs it all the same")
        self._paid = Paid(uuid.uuid4().hex, phases, spent, seed)
        if self.ledger is not None:
            self._charge(spent, seed)
        self.privacy_ = spent if seed is None else replace(spent, guarantee=engine.simulated(spent.guarantee))
        return seed

    def _not_covered(self) -> tuple[str, ...]:
        return () if self.ledger is not None else (engine.SELECTION,)

    def _charge(self, spent: engine.FitPrivacy, seed: int | None) -> None:
        if seed is not None:
            raise ValueError(f"random_state={self.random_state}: a ledger pays for secure noise, random_state=None")
        if self.population is None:
            raise ValueError("a ledger needs population: the name its owner gave to the people in the data")
        if spent.rho is None:
            raise ValueError(f"{spent.method}: a ledger is charged in zCDP, give a method of Gaussian noise")
        ledger = Ledger(self.ledger) if isinstance(self.ledger, str | Path) else self.ledger
        # A row is with one party, so what it pays is the largest of the parties' totals, not their sum.
        ledger.charge(
            self.population, f"fit-{self._paid.id}", 1, [ZCDP(spent.rho)],
            method=f"{type(self).__name__} by {spent.method}", guarantee=spent.guarantee,
        )  # fmt: skip

    @property
    def run_(self) -> Run:
        """This fit as a run: `run_.save(path)`, and `confide report` makes a page of it."""
        check_is_fitted(self)
        return record(self)

    # --- predicting -------------------------------------------------------------------------------------------------

    def _features(self, X: Any) -> Any:
        """What the model is linear in."""
        return self._table(X, reset=False)

    def _rows(self, X: Any) -> Any:
        """Rows to predict for, shortened as those learned from were."""
        check_is_fitted(self)
        X = self._features(X)
        norms = np.sqrt(X.multiply(X).sum(axis=1)) if sp.issparse(X) else np.linalg.norm(X, axis=1)
        factor = np.minimum(1.0, self.row_norm / np.maximum(np.asarray(norms).ravel(), 1e-300))
        return sp.diags_array(factor) @ X if sp.issparse(X) else X * factor[:, None]

    def _split(self, estimates: Array, outputs: int = 1) -> tuple[Array, Array]:
        """(…, width) as coefficients (…, outputs, features) on rows within row_norm, and intercepts (…, outputs)."""
        model = estimates.reshape(*estimates.shape[:-1], outputs, -1)
        if not self.fit_intercept:
            return model * self._scale, np.zeros(model.shape[:-1])
        return model[..., :-1] * self._scale, model[..., -1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
