"""`Schema`: what the parties agree on about their columns before anyone looks at a row.

    schema = Schema.load("schema.toml")
    schema.features          # names of the encoded features
    schema.hash()            # equal for all who agreed on the same

Nothing in it is learned from data: a range or a list of categories read off the rows would be a release nobody pays
for. A row that does not fit the schema counts, once training has begun, as one fixed public row, every feature 0 and
the label `invalid_label`, so that a refusal reveals nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.problem.checks import finite
from confide.schema.columns import plain

Array = NDArray[np.float64]

MISSING = "missing"  # the rule that gives missing values a feature of their own
COLUMN_KINDS = ("numeric", "category", "ignore")
LABEL_KINDS = ("binary", "classes", "real")
OUTSIDE = ("clip", "invalid")


@dataclass(frozen=True)
class Column:
    """A column and how it is encoded.

    numeric: low..high becomes -1..1; a value outside is clipped, or makes the row invalid (`outside`). category: one
    0/1 feature for each of `categories`. ignore: not read. `missing` is what a missing value counts as: a number, a
    category, or "missing", a feature of its own; without it a missing value makes the row invalid. `missing_marks` are
    fields that mean "missing" in this column alone, such as -9.
    """

    name: str
    kind: str
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()
    missing: float | str | None = None
    outside: str = "clip"
    missing_marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        _check_text(where, "name", self.name)
        _check_choice(where, "kind", self.kind, COLUMN_KINDS)
        _check_choice(where, "outside", self.outside, OUTSIDE)
        if self.kind == "numeric":
            _check_range(where, self.low, self.high)
            if self.missing not in (None, MISSING) and not _within(self.missing, self.low, self.high):
                raise ConfideError(f"{where}: missing={self.missing!r}: must be a number in the range, or {MISSING!r}")
        elif (self.low, self.high, self.outside) != (None, None, "clip"):
            raise ConfideError(f"{where}: kind={self.kind!r} with low, high or outside: they are for kind 'numeric'")
        if self.kind == "category":
            _check_list(where, "categories", self.categories, 1)
            if self.missing not in (None, MISSING, *self.categories):
                raise ConfideError(f"{where}: missing={self.missing!r}: must be one of the categories, or {MISSING!r}")
        elif self.categories:
            raise ConfideError(f"{where}: kind={self.kind!r} with categories: they are for kind 'category'")
        _check_list(where, "missing_marks", self.missing_marks, 0)
        if self.kind == "ignore" and (self.missing is not None or self.missing_marks):
            raise ConfideError(
                f"{where}: kind='ignore' with missing or missing_marks: they are for columns that are read"
            )

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """Categories, and "missing" where that is one."""
        extra = (MISSING,) if self.missing == MISSING and MISSING not in self.categories else ()
        return self.categories + extra

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        if self.kind == "category":
            return tuple(f"{self.name}={choice}" for choice in self.choices)
        if self.kind == "numeric":
            return (self.name, f"{self.name}={MISSING}") if self.missing == MISSING else (self.name,)
        return ()


@dataclass(frozen=True)
class Target:
    """What is learned. binary: two values become -1 and 1; classes: 0, 1, …; real: low..high becomes -1..1, clipped."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        _check_text("label", "name", self.name)
        _check_choice("label", "kind", self.kind, LABEL_KINDS)
        if self.kind == "real":
            _check_range("label", self.low, self.high)
            if self.values:
                raise ConfideError("label: kind='real' with values: they are for kind 'binary' and 'classes'")
            return
        _check_list("label", "values", self.values, 2)
        if self.kind == "binary" and len(self.values) != 2:
            raise ConfideError(
                f"label: kind='binary' with {len(self.values)} values: must be 2; more are kind 'classes'"
            )
        if (self.low, self.high) != (None, None):
            raise ConfideError(f"label: kind={self.kind!r} with low or high: they are for kind 'real'")

    def number(self, index: Any) -> Array:
        """The target of the value at `index`: -1 and 1, or the index itself."""
        i = np.asarray(index, float)
        return 2 * i - 1 if self.kind == "binary" else i

    @property
    def half_range(self) -> float:
        """Of a real label: what 1 is in its own unit, since encoded ones are -1 to 1."""
        assert self.low is not None and self.high is not None
        return (self.high - self.low) / 2

    def decode(self, target: Any) -> list[Any]:
        """Targets as a file holds them: declared values, or numbers in their own unit."""
        y = np.asarray(target, float).ravel()
        if self.kind == "real":
            assert self.low is not None and self.high is not None
            return [float(v) for v in self.low + (y + 1) / 2 * (self.high - self.low)]
        return [self.values[int(i)] for i in ((y + 1) / 2 if self.kind == "binary" else y)]


@dataclass(frozen=True)
class Group:
    """The column that names each row's party, and the parties."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_text("group", "name", self.name)
        _check_list("group", "values", self.values, 1)


@dataclass(frozen=True)
class Schema:
    """Columns in the order of their features, the label, the bound on a row's norm, and what an invalid row counts as.

    `missing_marks` are the fields, besides an empty one, that mean "missing" in every column; `invalid_label` is by
    default the first value, or the middle of a real label's range.
    """

    columns: tuple[Column, ...]
    label: Target
    group: Group | None = None
    row_norm: float = 1.0
    intercept: bool = True
    missing_marks: tuple[str, ...] = ()
    invalid_label: float | str | None = None

    def __post_init__(self) -> None:
        names = [*(c.name for c in self.columns), self.label.name, *([self.group.name] if self.group else [])]
        if twice := _twice(names):
            raise ConfideError(f"column {twice[0]!r} is declared twice: columns, label and group need different names")
        if not self.features:
            raise ConfideError("no column of kind 'numeric' or 'category': at least 1 is needed")
        if not (finite(self.row_norm) and self.row_norm > 0):
            raise ConfideError(f"row_norm={self.row_norm!r}: must be a finite number above 0")
        if not isinstance(self.intercept, bool):
            raise ConfideError(f"intercept={self.intercept!r}: must be true or false")
        _check_list("schema", "missing_marks", self.missing_marks, 0)
        declared = [*((c.categories, c.missing_marks) for c in self.columns), (self.label.values, ())]
        for values, own in declared:
            marks = {plain(m) for m in (*self.missing_marks, *own)}
            if marks and (both := next((v for v in values if plain(v) in marks), None)):
                raise ConfideError(f"{both!r} is a declared value and a missing mark: it can be only one of them")
        if self.invalid_label is None:
            object.__setattr__(self, "invalid_label", self._plain_label())
        self._check_invalid()

    def _plain_label(self) -> float | str:
        if self.label.kind != "real":
            return self.label.values[0]
        assert self.label.low is not None and self.label.high is not None
        return self.label.low + (self.label.high - self.label.low) / 2

    def _check_invalid(self) -> None:
        fixed, label = self.invalid_label, self.label
        if label.kind == "real":
            if not _within(fixed, label.low, label.high):
                raise ConfideError(f"invalid_row: label={fixed!r}: must be a number from the label's low to its high")
        elif fixed not in label.values:
            raise ConfideError(f"invalid_row: label={fixed!r}: must be one of the label's values")

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded features, in order."""
        return tuple(f for c in self.columns for f in c.features)

    @property
    def read(self) -> tuple[Column, ...]:
        """The columns that are read."""
        return tuple(c for c in self.columns if c.kind != "ignore")

    def marks(self, column: Column | None = None) -> frozenset[str]:
        """Every field that means "missing" in this column."""
        return frozenset(("", *self.missing_marks, *(column.missing_marks if column is not None else ())))

    def hash(self) -> str:
        """SHA-256 of the canonical form: equal exactly for schemas that encode alike."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    # --- in and out: see document.py ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        from confide.schema.document import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, table: Any, source: str = "schema") -> Schema:
        from confide.schema.document import from_dict

        return from_dict(table, source)

    def to_toml(self) -> str:
        from confide.schema.document import dumps

        return dumps(self)

    @classmethod
    def from_toml(cls, text: str, source: str = "schema") -> Schema:
        from confide.schema.document import loads

        return loads(text, source)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file."""
        from confide.files import toml

        return cls.from_dict(toml.load(path, "a schema"), str(path))


def _check_choice(where: str, field: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfideError(f"{where}: {field}={value!r}: must be {' or '.join(map(repr, allowed))}")


def _check_text(where: str, field: str, value: Any) -> None:
    """Fields of a file are compared without the blanks around them, so that a declared text must have none."""
    if not isinstance(value, str) or not value or value != value.strip():
        raise ConfideError(f"{where}: {field}={value!r}: must be text, not empty, without blanks at its ends")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfideError(f"{where}: {field}={value!r}: must be text that UTF-8 can hold") from None


def _twice(values: Iterable[str]) -> list[str]:
    """Those that came before, in order."""
    seen: set[str] = set()
    return [v for v in values if v in seen or seen.add(v)]  # type: ignore[func-returns-value]


def _check_list(where: str, field: str, values: Iterable[Any], least: int) -> None:
    if not isinstance(values, tuple) or len(values) < least:
        raise ConfideError(f"{where}: {field}={values!r}: must be a list of at least {least}")
    seen: dict[str, str] = {}
    for value in values:
        _check_text(where, field, value)
        earlier = seen.setdefault(plain(value), value)
        if earlier != value:
            raise ConfideError(f"{where}: {field} has {earlier!r} and {value!r}, which are one value: keep one")
    if len(seen) < len(values):
        raise ConfideError(f"{where}: {field} has {_twice(values)[0]!r} twice: must be all different")


def _check_range(where: str, low: Any, high: Any) -> None:
    if not (finite(low) and finite(high) and low < high and finite(high - low)):
        raise ConfideError(f"{where}: low={low!r}, high={high!r}: must be finite numbers, low below high")


def _within(value: Any, low: Any, high: Any) -> bool:
    return bool(finite(value) and low <= value <= high)
