"""An estimator as a model file, which `confide predict` reads, and back.

    model.save("model.json")
    again = PrivateLogisticRegression.load("model.json")

Where features were scaled, the file holds a schema of their ranges, so that `confide predict` takes a table with a
header, in the columns' own units; columns without names are called x0, x1, …. Else rows are plain numbers.
Coefficients, classes, ranges and what it cost come back; settings that only a fit needs are those of a new estimator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.estimators import scaling
from confide.files.values import shown
from confide.runs.model import NOT_COVERED, Model, Spent, finite_or_none
from confide.schema.schema import Column, Schema, Target

LABEL = "label"  # of a schema that is made here
KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float"}  # of class labels; anything else is text
READ: dict[str, Any] = {"bool": lambda text: text == "True", "int": int, "float": float, "text": str}


def saved(estimator: Any) -> Model:
    """A fitted estimator as a model."""
    spent = estimator.privacy_
    classes = getattr(estimator, "classes_", None)
    names = getattr(estimator, "feature_names_in_", None)
    features = (
        tuple(str(n) for n in names) if names is not None else tuple(f"x{j}" for j in range(estimator.n_features_in_))
    )
    schema = _schema(estimator, features, classes)
    coefficients, intercept = np.atleast_2d(estimator.coef_), np.atleast_1d(np.asarray(estimator.intercept_, float))
    if classes is None and schema is not None:
        low, high = estimator.target_range_  # a schema decodes -1 to 1
        coefficients, intercept = 2 * coefficients / (high - low), (2 * intercept - low - high) / (high - low)
    loss = estimator._paid.phases[-1][1].loss if hasattr(estimator, "_paid") else estimator._loaded.loss
    origin = {
        "command": "save", "estimator": type(estimator).__name__, "parties": len(estimator.party_names_),
        "simulated": estimator.random_state is not None, "fit_intercept": bool(estimator.fit_intercept),
        "labels": "number" if classes is None else KINDS.get(np.asarray(classes).dtype.kind, "text"),
        "unnamed": names is None,
    }  # fmt: skip
    return Model(loss, features, coefficients, intercept, None if classes is None else _texts(classes),
                 estimator._norm, schema, _cost(spent), origin)  # fmt: skip


def _texts(classes: Any) -> tuple[str, ...]:
    return tuple(str(c) for c in np.asarray(classes).tolist())


def _cost(spent: Any) -> Spent:
    if isinstance(spent, Spent):
        return spent
    return Spent(
        finite_or_none(spent.spent), spent.delta, spent.guarantee.label, spent.guarantee.reason, spent.method,
        spent.rounds, finite_or_none(spent.exact), (*spent.not_covered, *NOT_COVERED),
    )  # fmt: skip


def _schema(estimator: Any, features: tuple[str, ...], classes: Any) -> Schema | None:
    """Of the ranges by which features were scaled."""
    ranges = estimator._ranges
    if ranges is None:
        return None
    columns = tuple(
        Column(name, "numeric", float(low), float(high))
        for name, low, high in zip(features, ranges.low, ranges.high, strict=True)
    )
    name = next(n for n in (LABEL, "the label") if n not in features)
    if classes is None:
        low, high = estimator.target_range_
        label = Target(name, "real", low=low, high=high)
    else:
        label = Target(name, "binary" if len(classes) == 2 else "classes", _texts(classes))
    return Schema(columns, label, row_norm=estimator._norm, intercept=bool(estimator.fit_intercept))


def _labels(model: Model, path: str | Path) -> Any:
    """Classes as the caller had them."""
    kind = str(model.origin.get("labels"))
    if kind not in READ:
        raise ConfideError(f"{path}: origin.labels={kind}: must be one of {', '.join(READ)}")
    try:
        return np.array([READ[kind](c) for c in model.classes or ()])
    except ValueError:
        raise ConfideError(f"{path}: classes={shown(model.classes)}: must be {kind}, as origin.labels says") from None


def loaded(kind: type[Any], path: str | Path) -> Any:
    """The estimator in a file; `kind` is the class that it must be one of."""
    from confide import estimators

    model = Model.load(path)
    name = model.origin.get("estimator")
    made: Any = getattr(estimators, str(name), None) if name in estimators.__all__ else None
    if model.origin.get("command") != "save" or made is None:
        raise ConfideError(f"{path}: not of an estimator: `confide predict` reads models of fits and nodes")
    if not issubclass(made, kind):
        raise ConfideError(f"{path}: a {name}: load it by {name}.load")
    out = made(row_norm=model.row_norm, fit_intercept=bool(model.origin.get("fit_intercept", True)))
    out.bought_, out._loaded, out.privacy_, out._held = {}, model, model.privacy, None
    out.n_features_in_, coefficients, intercept = len(model.features), model.coefficients, model.intercept
    if not model.origin.get("unnamed"):
        out.feature_names_in_ = np.array(model.features, object)
    if model.schema is not None:
        out.scale = list(scaling.of_schema(model.schema).values())
    if model.classes is not None:
        out.classes_ = _labels(model, path)
        out.classes = out.classes_.tolist()
        out.coef_, out.intercept_ = coefficients, intercept
    else:
        if model.schema is not None:
            low, high = model.schema.label.low, model.schema.label.high
            assert low is not None and high is not None
            coefficients, intercept = coefficients * (high - low) / 2, (intercept * (high - low) + low + high) / 2
            out.target_range = out.target_range_ = (low, high)
        out.coef_, out.intercept_ = coefficients[0], float(intercept[0])
    out.party_names_ = ("all",) * int(model.origin.get("parties", 1))
    return out
