"""Rows as the schema encodes them: features in [-1, 1] and within the row norm, targets, parties, and what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide import compiled
from confide.problem import rows as kernels
from confide.problem.linear import clipped
from confide.schema.columns import Array, Index, codes, numbers
from confide.schema.schema import MISSING, Column, Schema

NO_RULE = "missing, and the schema has no rule for that"
NO_NUMBER = "not a number"
OUTSIDE = "outside the declared range"
FEW = 1 << 16  # entries whose norms Python computes (in 0.05 s) before the compiler would be loaded


class Flaw(NamedTuple):
    """What is wrong in a row, counted from 0. It holds no value of the row."""

    row: int
    column: str  # empty: the whole row
    what: str


class Encoded(NamedTuple):
    """X (n, features), y (n,), each row's place among the declared parties, and the flaws, by row.

    A flawed row has become the schema's fixed public row. `clipped` are values outside their range, which are no flaw
    where the column says so; `filled` counts, by column, missing fields that the column has a rule for.
    """

    X: Any
    y: Array
    group: Index
    flaws: list[Flaw]
    clipped: list[Flaw]
    filled: dict[str, int]


class _Encoder:
    """One batch: columns are written into X, and what does not fit is written down."""

    def __init__(self, schema: Schema, columns: Mapping[str, Any], rows: int, features: bool) -> None:
        self.schema, self.columns, self.rows = schema, columns, rows
        self.X = np.zeros((rows, len(schema.features) if features else 0))
        self.flaws: list[Flaw] = []
        self.clipped: list[Flaw] = []
        self.filled: dict[str, NDArray[np.bool_]] = {}

    def blame(self, where: NDArray[np.bool_], column: str, what: str) -> None:
        self.flaws += [Flaw(int(i), column, what) for i in np.flatnonzero(where)]

    def numeric(self, c: Column, out: Array | None) -> None:
        values, missing = numbers(self.columns[c.name], self.schema.marks(c))
        self.missing(missing, c)
        if c.missing == MISSING:
            if out is not None:
                out[:, 1] = missing
        elif c.missing is not None:
            values[missing] = c.missing
            missing = np.zeros_like(missing)
        self.blame(np.isnan(values) & ~missing, c.name, NO_NUMBER)
        self.outside(values, c)
        if out is not None:
            out[:, 0] = np.where(missing, 0.0, scaled(values, c))

    def missing(self, missing: NDArray[np.bool_], c: Column) -> None:
        """A flaw without a rule; with one it is to be counted."""
        if c.missing is None:
            self.blame(missing, c.name, NO_RULE)
        else:
            self.filled[c.name] = missing

    def outside(self, values: Array, c: Column) -> None:
        assert c.low is not None and c.high is not None
        out = (values < c.low) | (values > c.high)
        if c.outside == "invalid":
            self.blame(out, c.name, OUTSIDE)
        else:
            self.clipped += [Flaw(int(i), c.name, OUTSIDE) for i in np.flatnonzero(out)]

    def category(self, c: Column, out: Array | None) -> None:
        code, missing = codes(self.columns[c.name], c.choices, self.schema.marks(c))
        self.missing(missing, c)
        if c.missing is not None:
            code[missing] = c.choices.index(str(c.missing))
            missing = np.zeros_like(missing)
        self.blame((code < 0) & ~missing, c.name, "not one of the declared categories")
        known = np.flatnonzero(code >= 0)
        if out is not None:
            out[known, code[known]] = 1.0

    def label(self) -> Array:
        label, marks = self.schema.label, self.schema.marks()
        if label.kind == "real":
            values, missing = numbers(self.columns[label.name], marks)
            self.blame(np.isnan(values) & ~missing, label.name, NO_NUMBER)
            assert label.low is not None and label.high is not None
            out = (values < label.low) | (values > label.high)
            self.clipped += [Flaw(int(i), label.name, OUTSIDE) for i in np.flatnonzero(out)]
            y = scaled(values, label)
        else:
            code, missing = codes(self.columns[label.name], label.values, marks)
            self.blame((code < 0) & ~missing, label.name, "not one of the label's declared values")
            y = label.number(code)
        self.blame(missing, label.name, "missing: a label never may be")
        return y

    def group(self) -> Index:
        group = self.schema.group
        assert group is not None
        code, _ = codes(self.columns[group.name], group.values, frozenset())
        self.blame(code < 0, group.name, "not one of the declared parties")
        return np.maximum(code, 0)  # a row of nobody is the first party's


def scaled(values: Array, c: Any) -> Array:
    """low..high to -1..1; what is outside counts as the nearer end."""
    inside = np.clip(values, c.low, c.high)
    return np.asarray(np.clip(2 * ((inside - c.low) / (c.high - c.low)) - 1, -1.0, 1.0))


def encode(
    schema: Schema, columns: Mapping[str, Any], rows: int, *, label: bool = True, group: bool = False,
    broken: Mapping[int, str] | None = None, dtype: Any = np.float64, features: bool = True,
) -> Encoded:  # fmt: skip
    """Encode `rows` rows, given as columns; without `label` (to predict) y is the fixed row's.

    Without `features` (to see what fits) X has no columns: of many categories it would be large.
    """
    work, at = _Encoder(schema, columns, rows, features), 0
    for c in schema.read:
        width = len(c.features)
        (work.numeric if c.kind == "numeric" else work.category)(c, work.X[:, at : at + width] if features else None)
        at += width
    fixed = fixed_label(schema)
    y = work.label() if label else np.full(rows, fixed)
    member = work.group() if group and schema.group else np.zeros(rows, np.int64)
    broken = broken or {}
    flaws = [f for f in work.flaws if f.row not in broken] + [Flaw(i, "", what) for i, what in broken.items()]
    bad = sorted({f.row for f in flaws})
    work.X[bad], y[bad] = 0.0, fixed
    filled = {name: int(np.delete(missing, [*broken]).sum()) for name, missing in work.filled.items()}
    order = {name: j for j, name in enumerate(columns)}
    by_place = sorted(flaws, key=lambda f: (f.row, order.get(f.column, -1)))
    X = work.X.astype(dtype, copy=False)
    X = clipped(X, schema.row_norm, sizes(X)) if features else X
    return Encoded(X, y, member, by_place, work.clipped, filled)


def sizes(X: Array) -> Array | None:
    """‖x_i‖ of a few rows with entries in [-1, 1]; None where the compiled `row_norms` is faster, to the same bits."""
    if X.size > FEW or "numba" in sys.modules:
        return None
    norm = _uncompiled(kernels.norm)
    return np.array([norm(x, 0.0) for x in X])


@cache
def _uncompiled(kernel: compiled.Later) -> Callable[..., float]:
    """The function as it is written, and those that it calls. Its arithmetic is strict, so that bits are the same."""
    function: Any = kernel.__wrapped__
    used = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    called = {name: _uncompiled(one) for name, one in used.items() if isinstance(one, compiled.Later)}
    return FunctionType(function.__code__, {**function.__globals__, **called})


def fixed_label(schema: Schema) -> float:
    """The target of the fixed public row."""
    if schema.label.kind == "real":
        return float(scaled(np.array(schema.invalid_label, float), schema.label))
    return float(schema.label.number(schema.label.values.index(str(schema.invalid_label))))
