"""A fit as a `Run`: what `confide report` makes a page of. Public values only, as everything the estimators keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.estimators import one_fit as engine
from confide.privacy import Event, Gaussian
from confide.problem.problem import Public
from confide.runs.driver import describe
from confide.runs.paid import paid_evaluation
from confide.runs.run import Privacy, Run
from confide.runs.setting import Setting


@dataclass(frozen=True, eq=False)
class Paid:
    """What a fit was priced at, before its first release."""

    id: str
    phases: Sequence[tuple[Any, Public]]
    spent: engine.FitPrivacy  # with the guarantee of secure noise, also in a simulation
    seed: int | None


def record(model: Any) -> Run:
    """The last fit of an estimator; the coefficients are those of `party_coef_`, on the caller's scale."""
    paid: Paid = model._paid
    events: list[list[Event]] = []
    charged: list[list[Event]] = []
    sent = 0
    for method, public in paid.phases:
        events += method.events(public)
        charged += method.charged(public)
        sent += method.bytes_sent(public)
    method, public = paid.phases[-1]
    gaussian = any(isinstance(e, Gaussian) for one in events for e in one)
    single = len(paid.phases) == 1
    spent = Privacy(
        events, paid.spent.guarantee, public.count, paid.seed is not None,
        claims=tuple(method.claims(public, model.delta)) if single else (), claim_delta=model.delta,
        charged=charged if gaussian else None,
    )  # fmt: skip
    earlier = len(events) - method.rounds  # a second moment, or another class of one against the rest
    history = {**model.history_, "round": np.asarray(model.history_["round"], np.int64) + earlier}
    run = Run(
        estimates(model), history, spent, paid.spent.method, describe(method), len(events), sent, 0.0,
        np.array([] if paid.seed is None else [paid.seed], np.int64), id=paid.id,
        setting=setting(model, method.topology, public), public=("consensus", "moved"), delta=model.delta,
        not_covered=paid.spent.not_covered,
    )  # fmt: skip
    if (found := getattr(model, "evaluation_", None)) is not None:
        assert run.setting is not None
        classes = run.setting.classes if found.confusion is not None else ()
        run = replace(run, evaluation=paid_evaluation(found.found, found.rows, found.epsilon, found.delta,
                                                      found.confusion, classes))  # fmt: skip
    return run if getattr(model, "basis_", None) is None else run.with_function(model.grid_, model.basis_)


def estimates(model: Any) -> Any:
    """Every party's coefficients, each output's intercept after them: (1, parties, width)."""
    parties = len(model.party_coef_)
    coef = model.party_coef_.reshape(parties, -1, model.party_coef_.shape[-1])
    if not model.fit_intercept:
        return coef.reshape(1, parties, -1)
    intercept = model.party_intercept_.reshape(parties, -1, 1)
    return np.concatenate([coef, intercept], axis=2).reshape(1, parties, -1)


def setting(model: Any, topology: str, public: Public) -> Setting:
    """As the caller names things: features, classes, and rows within row_norm."""
    known = Setting.of(public, topology, model.party_names_)
    count = model.party_coef_.shape[-1]
    if hasattr(model, "basis_"):
        features = [f"basis {k}" for k in range(1, count + 1)]
    else:
        features = [str(name) for name in getattr(model, "feature_names_in_", known.features)]
    known = replace(known, features=tuple(features), row_norm=model._norm, agents=tuple(model.party_names_))
    if not hasattr(model, "classes_"):
        return known
    outputs = int(model.party_coef_.shape[1])
    names = tuple(str(c) for c in model.classes_.tolist())
    return replace(known, outputs=outputs, labels="sign" if outputs == 1 else "class", classes=names)
