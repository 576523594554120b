"""A first draft of a schema, read off one party's own file.

What it reads is private: the smallest and largest value of a column are two people's values, and a category may be one
person's. So ranges are rounded outward and every line that came from the rows is marked as to be agreed on. The draft
saves typing; it is public only once the parties have replaced what it says by what they know without the data.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from confide.problem.columns import number, text
from confide.problem.schema import MISSING, Column, Group, Label, Schema
from confide.problem.tables import batches, header, places

MOST = 20  # categories; a text column with more is ignored in the draft
MARKS = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # as files usually write "missing"
HEAD = """\
# Drafted from one file: a proposal, and PRIVATE until agreed.
# Lines marked AGREE were read off your rows, or are choices that all parties
# must share. Replace them by what is known without the data (a range from a
# textbook, categories from a code book), agree with the other parties, and
# only then hand this file on. A range is someone's smallest and largest value,
# rounded outward; a category may be one person's.
"""


class Tally:
    """What the draft needs to know of a column, in a fixed amount of memory."""

    def __init__(self, name: str) -> None:
        self.name, self.low, self.high = name, math.inf, -math.inf
        self.numeric, self.whole, self.marks = True, True, set[str]()
        self.values: set[str] = set()  # up to one more than MOST

    def add(self, fields: Any) -> None:
        for value in fields if isinstance(fields, list) else fields.to_pylist():
            t = text(value)
            if t == "" or t in MARKS:
                self.marks.add(t)
                continue
            if len(self.values) <= MOST:
                self.values.add(t)
            x = number(t) if self.numeric else math.nan
            if math.isfinite(x):
                self.low, self.high = min(self.low, x), max(self.high, x)
                self.whole &= x == int(x)
            else:
                self.numeric = False

    @property
    def few(self) -> tuple[str, ...] | None:
        """The distinct values, sorted, if they are few."""
        if not 1 <= len(self.values) <= MOST:
            return None
        return tuple(sorted(self.values, key=lambda v: (number(v), v) if self.numeric else (0.0, v)))


def suggest(path: str | Path, label: str | None = None, group: str | None = None) -> tuple[Schema, dict[Any, str]]:
    """A schema that fits the file, and what to note at which field. The label is the last column if not named."""
    path = Path(path)
    names = header(path)
    label = names[-1] if label is None else label
    for role, name in (("label", label), ("group", group)):
        if name is not None and name not in names:
            raise ValueError(f"{path}: no column {name!r} in the header: name the {role} as the file does")
    if label == group:
        raise ValueError(f"column {label!r} can't be both label and group")
    tallies = {name: Tally(name) for name in names}
    seen = 0
    for batch in batches(path, names, 1 << 13):
        for row, what in batch.broken.items():
            raise ValueError(f"{path}, {places(path, {seen + row})[seen + row]}: {what}")
        seen += batch.rows
        for name, tally in tallies.items():
            tally.add(batch.columns[name])
    if seen == 0:
        raise ValueError(f"{path}: no rows below the header")
    marks = tuple(sorted(set().union(*(t.marks for t in tallies.values())) - {""}))
    schema = Schema(
        tuple(_column(t) for name, t in tallies.items() if name not in (label, group)),
        _label(path, tallies[label]),
        _group(path, tallies[group]) if group is not None else None,
        missing_marks=marks,
    )
    return schema, _notes(schema, tallies)


def outward(low: float, high: float) -> tuple[float, float]:
    """A range around low..high, rounded to one or two digits of its width."""
    size = max(abs(low), abs(high))
    span = high - low if high - low > 1e-9 * size else size  # all but constant: a range around 0
    step = Decimal(1).scaleb(math.floor(math.log10(span / 2)) if span > 1e-300 else 0)
    below = (Decimal(low) / step).to_integral_value(ROUND_FLOOR)
    above = (Decimal(high) / step).to_integral_value(ROUND_CEILING)
    return float(below * step), float((above + (below == above)) * step)


def _column(t: Tally) -> Column:
    blanks = bool(t.marks)
    if t.numeric and t.values:
        low, high = outward(t.low, t.high)
        return Column(t.name, "numeric", low, high, missing=low + (high - low) / 2 if blanks else None)
    if t.few is not None:
        return Column(t.name, "category", categories=t.few, missing=MISSING if blanks else None)
    return Column(t.name, "ignore")


def _label(path: Path, t: Tally) -> Label:
    if t.few is not None and len(t.few) == 2:
        return Label(t.name, "binary", t.few)
    if t.few is not None and len(t.few) > 2 and (not t.numeric or t.whole):
        return Label(t.name, "classes", t.few)
    if t.numeric and t.values:
        low, high = outward(t.low, t.high)
        return Label(t.name, "real", low=low, high=high)
    raise ValueError(f"{path}: column {t.name!r} can't be a label: it is neither numbers nor 2 to {MOST} classes")


def _group(path: Path, t: Tally) -> Group:
    if t.few is None:
        raise ValueError(f"{path}: column {t.name!r} can't name the parties: it has none, or more than {MOST} values")
    return Group(t.name, t.few)


def _notes(schema: Schema, tallies: dict[str, Tally]) -> dict[Any, str]:
    """What to say at which field of the file."""
    label = schema.label
    notes: dict[Any, str] = {
        ("row_norm",): "AGREE: longer rows are shortened to this",
        ("intercept",): "AGREE",
        ("missing_marks",): "AGREE: fields that mean missing, besides empty ones",
        ("label", "name"): "AGREE", ("label", "kind"): "AGREE: binary, classes or real",
        ("label", "values"): "AGREE: become -1 and 1" if label.kind == "binary" else "AGREE: become 0, 1, …",
        ("label", "low"): "AGREE: from your rows, rounded down",
        ("label", "high"): "AGREE: from your rows, rounded up",
        ("invalid_row", "label"): "AGREE: of a row that doesn't fit, its features 0",
        ("group", "name"): "AGREE", ("group", "values"): "AGREE: the parties",
    }  # fmt: skip
    for c in schema.columns:
        few, at = tallies[c.name].few, ("columns", c.name)
        coded = c.kind == "numeric" and tallies[c.name].whole and few is not None and len(few) > 2
        notes |= {
            (*at, "kind"): {"ignore": "AGREE: not read; too many texts for categories",
                            "numeric": "AGREE: or category, if these are codes" if coded else "AGREE"}.get(
                                c.kind, "AGREE"),
            (*at, "low"): "AGREE: from your rows, rounded down", (*at, "high"): "AGREE: from your rows, rounded up",
            (*at, "categories"): "AGREE: read off your rows", (*at, "missing"): "AGREE: what a missing one counts as",
            (*at, "outside"): "AGREE: clip or invalid",
        }  # fmt: skip
    return notes
