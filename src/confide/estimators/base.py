"""What the estimators share: parameters, the way from a table to parties, and learning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from confide.errors import ConfideError, NotFinite
from confide.estimators import auto, buying, evaluating, saving, scaling, weighing
from confide.estimators import one_fit as engine
from confide.estimators.hints import hint
from confide.estimators.limits import check_strength
from confide.estimators.listener import Listener
from confide.estimators.parties import party_names
from confide.estimators.paying import Paying
from confide.estimators.record import record
from confide.network.graph import Graph
from confide.network.named import check_graph
from confide.problem import linear
from confide.problem.checks import finite, whole
from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards
from confide.runs.priced import Priced
from confide.runs.run import Run
from confide.runs.setting import POOLED

Array = NDArray[np.float64]
# With an intercept, rows are lengthened to this while the intercept's feature stays 1: a longest row of (2, 1) costs
# 1.12 times the noise of the row alone, and one of (1, 1) would cost 1.41 times.
STRETCH = 2.0
UNSCALED = (
    "nothing bounds the scale of the features: rows are clipped to length 1. scale= takes public ranges, scale='buy' "
    "pays for them; row_norm=1 says that features are scaled"
)
GAP = (
    "X or y contains {}: put a public value there, as a schema's `missing` does; one computed from the rows, such as "
    "their mean, would be a release that nobody pays for"
)
UNBOUNDED_CURVES = "nothing bounds the curves: they are clipped to length 1 in L². row_norm= takes a public bound"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(Paying, BaseEstimator):
    """A linear model, learned from all rows with a curator's noise, or together by the parties that `groups` names.

    epsilon, delta      what one row may lose over the whole fit, whichever party holds it
    algorithm           "auto", or a method of confide.algorithms, whose noise is then calibrated to (epsilon, delta)
    collusion           of algorithm="auto": how many parties may pool all they know and ε still holds; None: an honest
                        majority, max(1, ⌊(K-1)/2⌋) of K; K - 1 trusts nobody. `privacy_` begins with what it means
    graph               "ring", "complete", "star", "path", or a confide.Graph, between parties
    parties             without groups: None for one that holds all rows; else so many share them evenly, by row order
    rounds              of algorithm="auto"; None lets it choose
    penalty_strength    weight of the penalty beside the mean loss, on `coef_`
    fit_intercept       whether the model has a constant of its own, which no penalty shrinks
    scale               public ranges that become -1 to 1: a dict of (low, high) by column, a list in their order, or a
                        Schema of numbers; "buy" pays a fifth of μ² for them; None takes features as they are
    row_norm            public: longer rows, once scaled, are clipped to it, in `fit` and in `predict`; None is 1, and
                        of p features that are scaled max(1, ½√p)
    weight_bound        public: what `sample_weight` may be at most, larger ones are clipped to it; None is 1
    evaluate            share of each party's rows held out from learning; `evaluation_` is measured on them, privately
    random_state        None draws secure noise; a number makes a simulation, which protects nobody
    ledger, population  a confide.privacy.ledger.Ledger (or its path) and the name of the people in it: then every fit,
                        those of a search too, is charged to their budget before it starts, or refused
    allow_unproven      run methods whose guarantee is not proven

    Nothing is inferred from the rows but what is paid for, and then it is in `bought_`. How many rows each party has is
    public. `choice_` says why the method is what it is, from public quantities. `coef_` is on scaled features.
    """

    _listener: ClassVar[Listener] = Listener()

    epsilon: float = 1.0
    delta: float = 1e-5
    algorithm: Any = "auto"
    collusion: int | None = None
    graph: Any = "ring"
    parties: int | None = None
    rounds: int | None = None
    penalty_strength: float = 1e-6
    scale: Any = None
    row_norm: float | None = None
    weight_bound: float | None = None
    fit_intercept: bool = True
    evaluate: float = 0.0
    random_state: Any = None
    ledger: Any = None
    population: str | None = None
    allow_unproven: bool = False

    _one_unit: ClassVar[bool] = False  # of all features

    # --- from a table to parties ------------------------------------------------------------------------------------

    def _table(self, X: Any, **options: Any) -> Any:
        """X (and y) as scikit-learn checks them.

        Its message about a text would show a value, and the one about gaps advises to fill them with what is computed
        from the rows: a release that nobody pays for.
        """
        try:
            found = validate_data(self, X, **{"accept_sparse": "csr", "dtype": np.float64, **options})
            return (found[0], np.asarray(found[1], float)) if options.get("y_numeric") else found
        except ValueError as error:
            said = str(error)
            if not any(words in said for words in ("could not convert", "contains NaN", "contains infinity")):
                raise
        if "could not convert" in said:
            raise ConfideError("X or y holds text where a number is needed: encode it, for example by a schema")
        raise ConfideError(GAP.format("NaN" if "contains NaN" in said else "infinity or a value too large"))

    @property
    def _norm(self) -> float:
        """What rows are clipped to."""
        if self.row_norm is None:
            # half of what p features within -1 and 1 can be, but no less than one of them: it loses little where noise
            # is loud and clips little where it is not (docs/auto.md)
            return 1.0 if self.scale is None else max(1.0, math.sqrt(self.n_features_in_) / 2)
        if not (finite(self.row_norm) and self.row_norm > 0):
            raise ConfideError(f"row_norm={self.row_norm}: must be a finite number above 0, or None for 1")
        return float(self.row_norm)

    @property
    def _scale(self) -> float:
        """What turns a row within row_norm into one the engine takes."""
        return (STRETCH if self.fit_intercept else 1.0) / self._norm

    @property
    def _ranges(self) -> scaling.Ranges | None:
        """Of the features, where they are scaled; None too before they are bought."""
        if (most := self.bought_.get("feature ranges")) is not None:
            return scaling.Ranges(-most, most)
        return scaling.declared(self.scale, getattr(self, "feature_names_in_", None), self.n_features_in_)

    def _parties(self, X: Any, y: Array, groups: Any, share: Any = None) -> tuple[Shards, Graph | None]:
        """Rows by party as they are, and the network between the parties, if there are several."""
        self.bought_: dict[str, Any] = {}
        if self.scale is None and self.row_norm is None:
            hint(UNBOUNDED_CURVES if self._one_unit else UNSCALED)
        check_strength(self.penalty_strength)
        if len(y) < 2:
            raise ConfideError(f"n_samples={len(y)}: learning needs at least 2 rows")
        given = isinstance(self.graph, Graph)
        if not given:
            check_graph(self.graph, f"graph={self.graph!r}", ", or a confide.Graph")
        alone = groups is None
        if groups is None:
            groups = self._invented(len(y))
        else:
            groups = party_names(groups, y)
        shards = by_party(X, y, groups, {} if share is None else {"share": share})
        if shards.parties == 1:
            if not alone:
                raise ConfideError(f"groups name 1 party, {shards.names[0]!r}: name at least 2, or leave groups out")
            return shards, None
        if not given:
            kind = "path" if shards.parties == 2 else self.graph
            return shards, getattr(Graph, kind)(shards.parties)
        names = self.graph.names
        if names is not None and set(names) == set(shards.names):
            shards = shards.relabel([shards.names.index(name) for name in names])
        return shards, self.graph

    def _bounded(self, rows: Shards) -> Shards:
        """Scaled, clipped rows, as the engine takes them."""
        X = rows.X if (ranges := self._ranges) is None else ranges.apply(rows.X)
        lengthened = Shards.checked(scaled(X, self._scale), rows.y, rows.offsets, rows.names, rows.columns)
        return lengthened.clip_rows(self._scale * self._norm)

    def _hold_out(self, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> tuple[Any, Any, Any, Any]:
        """Rows, targets, groups and shares of weights to learn from; the others wait in `_held`."""
        share = weighing.shares(sample_weight, len(y), weighing.bound(self.weight_bound, sample_weight is not None))
        if groups is not None:
            groups = party_names(groups, y)
        elif self.evaluate and len(np.unique(invented := self._invented(len(y)))) > 1:
            groups = invented
        out = evaluating.held_out(self.evaluate, groups, len(y))
        self._held = None
        if not out.any():
            return X, y, groups, share
        whose = np.full(int(out.sum()), POOLED) if groups is None else groups[out]
        self._held = (X[out], y[out], whose)
        by_party(X[out], y[out], np.zeros(len(whose)))
        return X[~out], y[~out], *(None if part is None else part[~out] for part in (groups, share))

    def _evaluate(self) -> None:
        """Measure on the held-out rows, at the price that `_pay` has paid."""
        if self._held is None:
            return
        tally, (method, public) = self._tally(blank=False), self._evaluation
        seed = None if self._paid.seed is None else self._paid.seed + 2**32  # other noise than the fit's
        graph: Any = public.graph  # that of `_parties`
        (sums,) = engine.rounds(tally.problem, graph, method, seed)
        noise = float(method.sum_scale(1, public)[0, 0])
        found, confusion = tally.read(sums[0], noise)
        self.evaluation_ = evaluating.PrivateEvaluation(
            found, len(self._held[1]), self._paid.spent.spent, self.delta, confusion
        )
        self._held = None  # private rows stay in no fitted model

    def _invented(self, rows: int) -> Any:
        """Each row's party where nobody names it: one for all, unless `parties` or a graph says how many."""
        given = isinstance(self.graph, Graph)
        count = self.graph.size if given else 1 if self.parties is None else self.parties
        if not (whole(count) and count >= 1):
            raise ConfideError(f"parties={count}: must be a whole number of at least 1, or None")
        return np.full(rows, POOLED) if count == 1 else np.arange(rows) % (count if given else min(int(count), rows))

    # --- learning ---------------------------------------------------------------------------------------------------

    def _parts(self, rows: Shards) -> tuple[Sequence[tuple[Shards, Loss]], Penalty]:
        """What is learned, one part or several that share the budget: (scaled rows, loss) of each, and the penalty.

        It is asked before anything is bought, with the same public part, and again after.
        """
        raise NotImplementedError

    def _wishes(self, rows: Shards) -> list[buying.Wish]:
        """What is to be bought before learning."""
        if not (isinstance(self.scale, str) and self.scale == scaling.BUY):
            return []
        buying.only_auto(self.algorithm, "scale='buy'", "give ranges")
        return [buying.feature_ranges(rows.X)]

    def _basket(self, rows: Shards, graph: Graph | None, mu: float) -> buying.Basket:
        """What is to be bought, calibrated to its shares of μ²."""
        basket = buying.Basket(self._wishes(rows), rows, graph)
        basket.calibrate(mu, self.epsilon, self.delta, self.collusion)
        return basket

    def _buy(self, basket: buying.Basket, seed: int | None) -> None:
        """Take what `_pay` has paid for."""
        self.bought_ = basket.buy(seed, self._listener.round)
        if self.bought_:
            self.choice_ += "; " + buying.told(self.bought_, basket.wishes)

    def _learn(self, rows: Shards, graph: Graph | None) -> list[Array]:
        """Minimise each part's loss, dividing the budget between them; each party's models (parties, width)."""
        whole_mu = engine.budget(self.epsilon, self.delta)
        basket = self._basket(rows, graph, whole_mu)
        problems = self._problems(rows)
        mu = whole_mu * ((1 - basket.price) / len(problems)) ** 0.5
        plans = [(self._method(problem.public(graph), mu), problem.public(graph)) for problem in problems]
        priced = [Priced(*plan) for plan in plans]
        seed = self._pay([*basket.phases, *plans])
        if basket.wishes:
            self._buy(basket, seed)
            problems = self._problems(rows)
        return [
            self._run(problem, graph, plan[0], seed, terms)
            for problem, plan, terms in zip(problems, plans, priced, strict=True)
        ]

    def _problems(self, rows: Shards) -> list[Problem]:
        parts, penalty = self._parts(rows)
        self._listener.learning(parts, penalty)
        return [self._problem(shards, loss, penalty) for shards, loss in parts]

    def _problem(self, shards: Shards, loss: Loss, penalty: Penalty) -> Problem:
        return Problem(shards, loss, penalty, weighting="rows", intercept=self.fit_intercept)

    def _method(self, public: Public, mu: float) -> Any:
        """The method, with the noise that spends μ."""
        if isinstance(self.algorithm, str):
            if self.algorithm != "auto":
                known = "'auto' or a method, such as confide.algorithms.CDPADMM(rounds=100, clip=1)"
                raise ConfideError(f"algorithm={self.algorithm!r}: must be {known}")
            if self.rounds is not None and not (whole(self.rounds) and self.rounds >= 1):
                raise ConfideError(f"rounds={self.rounds}: must be a whole number of at least 1, or None")
            method: Any = auto.choose(self.rounds, self.collusion, self._one_unit)
        else:
            for name in ("rounds", "collusion"):
                if (value := getattr(self, name)) is not None:
                    raise ConfideError(f"{name}={value}: the algorithm given has its own, leave {name}=None")
            method = self.algorithm
        if method.topology == "central":
            raise ConfideError(f"{method.name} pools all rows in one place: give a method that works over a network")
        if method.topology == "peer" and public.count == 1:
            raise ConfideError(f"{method.name} learns over a network: give groups, or parties to split the rows evenly")
        method = self._listener.calibrated(method, public, mu, self.epsilon, self.delta)
        chosen = isinstance(self.algorithm, str)
        self.choice_ = auto.why(method, public, mu, self._one_unit) if chosen else f"{method.name}, as given"
        return method

    def _run(
        self, problem: Problem, graph: Graph | None, method: Any, seed: int | None, priced: Priced | None = None
    ) -> Array:
        outcome = engine.follow(self._heard(engine.rounds(problem, graph, method, seed, priced)))
        self.graph_, self.party_names_, self.history_ = graph, problem.shards.names, outcome.history
        return outcome.estimates

    def _heard(self, models: Iterator[Array]) -> Iterator[Array]:
        """Every round's models as they come, with word of each."""
        for now in models:
            self._listener.round()
            yield now

    @property
    def run_(self) -> Run:
        """This fit as a run, of scaled features: `run_.save(path)`, and `confide report` makes a page of it."""
        check_is_fitted(self)
        return record(self)

    def save(self, path: str | Path) -> Path:
        """Write a model file, which `confide predict` and `load` read: coefficients, public ranges and what it cost."""
        check_is_fitted(self)
        return saving.saved(self).save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator in a file of `save`, to predict with."""
        return saving.loaded(cls, path)

    # --- predicting -------------------------------------------------------------------------------------------------

    def _features(self, X: Any) -> Any:
        """What the model is linear in."""
        return self._table(X, reset=False)

    def _rows(self, X: Any) -> Any:
        """Rows to predict for, clipped as those learned from were."""
        check_is_fitted(self)
        return self._short(self._features(X))

    def _short(self, X: Any) -> Any:
        """Rows scaled and clipped."""
        return linear.clipped(X if (ranges := self._ranges) is None else ranges.apply(X), self._norm)

    def _split(self, estimates: Array, outputs: int = 1) -> tuple[Array, Array]:
        """(…, width) as coefficients (…, outputs, features) on rows within row_norm, and intercepts (…, outputs)."""
        coefficients, constant = linear.split(estimates, outputs, self.fit_intercept)
        return coefficients * self._scale, constant

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def by_party(X: Any, y: Array, groups: Any, columns: Mapping[str, Any] | None = None) -> Shards:
    """Rows of a fit by party; whether all are finite is looked at here, once."""
    try:
        return Shards.from_groups(X, y, groups, columns)
    except NotFinite as error:
        raise ConfideError(GAP.format("NaN" if " is nan:" in str(error) else "infinity")) from None


def scaled(X: Any, factor: float) -> Any:
    """X times a public number, in silence about rows that this takes beyond the doubles: they are clipped anyhow."""
    with np.errstate(over="ignore"):
        out = X * factor
    data = out.data if sp.issparse(out) else out
    largest = np.finfo(data.dtype).max if data.dtype.kind == "f" else None
    if largest is not None:
        np.clip(data, -largest, largest, out=data)
    return out
