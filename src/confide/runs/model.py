"""Model files: one JSON format for `confide fit` and `confide node model`, read by `confide predict`.

    model = Model.load("model.json")
    model.predict(X)                    # X (n, features) as the schema encodes rows; labels as the schema declares them

A file holds coefficients, what they were learned on and what that cost. Nothing in it is executed or unpickled; every
field is checked, and an unknown one is an error, so that a file of a later version is not half understood.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from confide._version import __version__
from confide.errors import ConfideError
from confide.files import write_whole
from confide.files.keys import strict
from confide.files.library import special
from confide.files.parts import from_table, to_table
from confide.files.values import check_values, shown
from confide.privacy import Label
from confide.problem import linear, losses
from confide.problem.checks import finite, whole
from confide.problem.losses import Logistic, Loss, Multinomial
from confide.schema.schema import Schema

Array = NDArray[np.float64]
FORMAT = "confide model 1"
LARGEST = 1 << 28  # bytes of a model file
FIELDS = (
    "format", "confide", "loss", "features", "classes", "coefficients", "intercept", "row_norm", "schema", "privacy",
    "origin",
)  # fmt: skip
# What no guarantee of a fit speaks of; every output lists it.
NOT_COVERED = (
    "how many rows each party has",
    "whether a person is in the data at all",
    "several rows of one person together (g rows cost g times μ)",
    "timing",
)


def finite_or_none(epsilon: float | None) -> float | None:
    """None where nothing bounds ε: JSON has no infinity."""
    return epsilon if epsilon is not None and math.isfinite(epsilon) else None


@dataclass(frozen=True)
class Spent:
    """What a model cost each row of any party; `epsilon` is None where nothing was protected."""

    epsilon: float | None  # as the noise sampler proves it
    delta: float | None
    guarantee: Label
    reason: str
    method: str
    rounds: int
    exact_epsilon: float | None = None  # of the same noise in Gaussian-DP
    not_covered: tuple[str, ...] = NOT_COVERED

    def to_dict(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**plain, "guarantee": str(self.guarantee), "not_covered": [*self.not_covered]}


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model on encoded rows: coefficients (outputs, features) and intercept (outputs,).

    `classes` are the labels' values, None for a number. Two classes may have one output, whose sign decides. Without a
    `schema` (parties that agreed on plain numbers) rows are numbers and the classes are "-1" and "1", or "0", "1", ….

    loss        that it was learned with; it decides what a margin means
    features    names of the encoded columns, in order
    row_norm    longer rows are clipped to it, as in learning; None: none are
    privacy     what was spent on it, and how sure that is
    origin      where it comes from: texts and numbers
    version     of confide that wrote it
    """

    loss: Loss
    features: tuple[str, ...]
    coefficients: Array
    intercept: Array
    classes: tuple[str, ...] | None
    row_norm: float | None
    schema: Schema | None
    privacy: Spent
    origin: dict[str, Any]  # where it comes from: texts and numbers
    version: str = field(default=__version__)

    def margins(self, X: Any) -> Array:
        """Of rows X (n, features), clipped as those learned from were: (n, outputs)."""
        X = np.asarray(X, float)
        if X.ndim != 2 or X.shape[1] != len(self.features):
            raise ConfideError(f"rows of shape {X.shape}: the model takes {len(self.features)} features")
        return linear.margins(linear.clipped(X, self.row_norm), self.coefficients, self.intercept)

    def predict(self, X: Any) -> list[Any]:
        """The likelier class of each row, or its number in the label's own unit."""
        z = self.margins(X)
        if self.classes is None:
            return self.schema.label.decode(z[:, 0]) if self.schema is not None else [float(v) for v in z[:, 0]]
        return [self.classes[i] for i in linear.answers(z)]

    def probabilities(self, X: Any) -> Array:
        """Of each class: (n, classes)."""
        z = self.margins(X)
        if isinstance(self.loss.base, Multinomial):
            return np.asarray(special.softmax(z, axis=1))
        if isinstance(self.loss.base, Logistic) and z.shape[1] == 1:
            return np.column_stack([special.expit(-z[:, 0]), special.expit(z[:, 0])])
        raise ConfideError(f"a model of loss {type(self.loss.base).__name__} has no probabilities: logistic ones do")

    # --- in and out -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT, "confide": self.version, "loss": to_table(self.loss),
            "features": [*self.features], "classes": None if self.classes is None else [*self.classes],
            "coefficients": self.coefficients.tolist(), "intercept": self.intercept.tolist(),
            "row_norm": self.row_norm, "schema": None if self.schema is None else self.schema.to_dict(),
            "privacy": self.privacy.to_dict(), "origin": self.origin,
        }  # fmt: skip

    def save(self, path: str | Path) -> Path:
        """Whole or not at all."""
        return write_whole(path, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """The model in a file; every mistake is one line that names the file and the field."""
        path = Path(path)
        if (size := path.stat().st_size) > LARGEST:
            raise ConfideError(f"{path}: not a model: {size >> 20} MB, must be at most {LARGEST >> 20}")
        try:
            table = json.loads(path.read_bytes(), parse_constant=_no_constant, object_pairs_hook=_once)
        except _Twice as error:
            raise ConfideError(f"{path}: field {error} is there twice: must be there once") from None
        except (ValueError, RecursionError):
            raise ConfideError(f"{path}: not a model: must be JSON") from None
        try:
            check_values(table)
            return cls.from_dict(table)
        except ConfideError as error:
            raise ConfideError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, table: Any) -> Model:
        if not isinstance(table, dict) or not str(table.get("format", "")).startswith("confide model"):
            raise ConfideError(f"not a model: must have the field format = {FORMAT!r}")
        if table["format"] != FORMAT:
            raise ConfideError(f"format {table['format']!r}: this version reads {FORMAT!r}")
        strict(table, "", FIELDS)
        loss = from_table(table["loss"], "loss", losses.ALL)
        schema = None if table["schema"] is None else Schema.from_dict(table["schema"])
        features = different_texts(table["features"], "features", 1)
        classes = None if table["classes"] is None else different_texts(table["classes"], "classes", 2)
        _fits(schema, features, classes, loss)
        coefficients = numbers(table["coefficients"], "coefficients", 2)
        intercept = numbers(table["intercept"], "intercept", 1)
        _shapes(coefficients, intercept, features, classes, loss)
        norm = table["row_norm"]
        if norm is not None and not (finite(norm) and norm > 0):
            raise ConfideError(f"row_norm={shown(norm)}: must be null or a finite number above 0")
        if schema is not None and norm != schema.row_norm:
            raise ConfideError(f"row_norm={norm}: must be {schema.row_norm:g}, as the schema says")
        if not isinstance(table["confide"], str):
            raise ConfideError(f"confide={shown(table['confide'])}: must be a text, the version that wrote it")
        return cls(loss, features, coefficients, intercept, classes, None if norm is None else float(norm), schema,
                   _spent(table["privacy"]), _origin(table["origin"]), table["confide"])  # fmt: skip


# --- checking ---------------------------------------------------------------------------------------------------------


class _Twice(Exception):
    """A field that is there twice: two readers could take different ones."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(repr(next(n for i, n in enumerate(names) if n in names[:i])))
    return table


def _no_constant(_: str) -> NoReturn:
    raise ConfideError("NaN or infinity: must be JSON, which has neither")


def different_texts(values: Any, where: str, least: int) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        raise ConfideError(f"{where}={shown(values)}: must be a list of texts")
    if len(values) < least or len(set(values)) < len(values):
        raise ConfideError(f"{where}={shown(values)}: must be at least {least}, all different")
    return tuple(values)


def numbers(values: Any, where: str, dimensions: int) -> Array:
    """Finite numbers of a file: a list, or with two dimensions a list of rows of the same length."""
    rows = values if dimensions == 2 and isinstance(values, list) else [values]
    if not rows or not all(isinstance(row, list) and row and _finite(row) for row in rows):
        kind = "lists of finite numbers" if dimensions == 2 else "a list of finite numbers"
        raise ConfideError(f"{where}={shown(values)}: must be {kind}")
    if len({len(row) for row in rows}) > 1:
        raise ConfideError(
            f"{where}: rows of {', '.join(str(len(row)) for row in rows[:6])} numbers: must be of the same length"
        )
    return np.asarray(values, float)


def _finite(row: list[Any]) -> bool:
    try:
        return all(finite(v) for v in row)
    except OverflowError:  # whole numbers may have any length
        return False


def _fits(schema: Schema | None, features: tuple[str, ...], classes: tuple[str, ...] | None, loss: Loss) -> None:
    if classes is None and loss.labels != "real":
        raise ConfideError(f"classes=None with loss {type(loss.base).__name__}: must be the label's values")
    if schema is None:
        return
    if features != schema.features:
        raise ConfideError(f"features={shown([*features])}: must be those that the schema encodes, in its order")
    declared = None if schema.label.kind == "real" else schema.label.values
    if classes != declared:
        raise ConfideError(f"classes={shown(classes)}: must be {shown(declared)}, as the schema says")


def _shapes(coefficients: Array, intercept: Array, features: tuple[str, ...], classes: tuple[str, ...] | None,
            loss: Loss) -> None:  # fmt: skip
    outputs = 1 if classes is None or (len(classes) == 2 and loss.outputs == 1) else len(classes)
    if coefficients.shape != (outputs, len(features)):
        raise ConfideError(
            f"coefficients: {coefficients.shape[0]} × {coefficients.shape[1]} numbers: must be "
            f"{outputs} × {len(features)}"
        )
    if intercept.shape != (outputs,):
        raise ConfideError(f"intercept: {len(intercept)} numbers: must be {outputs}")


def _spent(table: Any) -> Spent:
    names = tuple(f.name for f in fields(Spent))
    t = strict(table, "privacy", names)
    for name in ("epsilon", "exact_epsilon", "delta"):
        if t[name] is not None and not (finite(t[name]) and t[name] >= 0):
            raise ConfideError(f"privacy.{name}={shown(t[name])}: must be null or a finite number of at least 0")
    for name in ("reason", "method", "guarantee"):
        if not isinstance(t[name], str):
            raise ConfideError(f"privacy.{name}={shown(t[name])}: must be a text")
    if t["guarantee"] not in [*Label]:
        raise ConfideError(f"privacy.guarantee={shown(t['guarantee'])}: must be one of {', '.join(Label)}")
    if not (whole(t["rounds"]) and t["rounds"] >= 0):
        raise ConfideError(f"privacy.rounds={shown(t['rounds'])}: must be a whole number of at least 0")
    covered = different_texts(t["not_covered"], "privacy.not_covered", 0)
    return Spent(**{**t, "guarantee": Label(t["guarantee"]), "not_covered": covered})


def _origin(table: Any) -> dict[str, Any]:
    if not isinstance(table, dict) or not all(
        v is None or isinstance(v, str | bool) or finite(v) for v in table.values()
    ):
        raise ConfideError(f"origin={shown(table)}: must be a table of texts and numbers")
    return table
