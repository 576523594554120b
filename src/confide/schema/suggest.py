"""A first draft of a schema, read off one party's own file, with the reason for each line.

What it reads is private: the smallest and largest value of a column are two people's values, and a category may be one
person's. So ranges are rounded outward, to ends that people would choose, and every line is marked as to be agreed on.
The draft saves typing; it is public only once the parties have replaced what it says by what they know without data.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path

from confide.errors import ConfideError
from confide.schema.document import dumps
from confide.schema.schema import MISSING, Column, Group, Schema, Target
from confide.schema.tables import batches, header, is_unicode, places
from confide.schema.tally import MOST, RARE, ColumnTally

HEAD = """\
# Drafted from one file: a proposal, and PRIVATE until agreed. Do not send it.
# Lines marked AGREE were read off your rows, or are choices that all parties
# must share. Replace them by what is known without the data (a range from a
# textbook, categories from a code book), delete this heading, and only then
# hand the file on; `confide schema merge` shows where the parties differ.
# A range is someone's smallest and largest value, rounded outward; a category
# may be one person's.
"""
PRIVATE = "PRIVATE until agreed"  # a file that says so, or has lines to agree on, is a draft

COMMAS = "numbers with decimal commas; write points, as in 0.5"
LONE = "from your rows; -1 is the only one below 0: a mark for missing?"

Notes = dict[tuple[str, ...], str]


def suggest(path: str | Path, label: str | None = None, group: str | None = None) -> tuple[Schema, Notes]:
    """A schema that fits the file, and what to note at which field. The label is the last column if not named."""
    path = Path(path)
    names = header(path)
    named = label is not None
    label = names[-1] if label is None else label
    for role, name in (("label", label), ("group", group)):
        if name is not None and name not in names:
            raise ConfideError(f"{path}: no column {name!r} in the header: name the {role} as the file does")
    if label == group:
        raise ConfideError(f"column {label!r} can't be both label and group")
    tallies = counted(path, names)
    columns = {name: _column(t) for name, t in tallies.items() if name not in (label, group)}
    if all(column.kind == "ignore" for column, _ in columns.values()):
        said = "; ".join(f"{c.name!r} is {why['kind']}" for c, why in columns.values())
        raise ConfideError(f"{path}: no column to learn from: {said or 'it has the label alone'}")
    marks = set().union(*(t.marks for t in tallies.values())) - {""}
    schema = Schema(
        tuple(column for column, _ in columns.values()),
        _label(path, tallies[label]),
        _group(path, tallies[group]) if group is not None else None,
        missing_marks=tuple(sorted(marks)),
    )
    notes = _notes(schema, tallies[label], named)
    for c, why in columns.values():
        notes |= {("columns", c.name, field): f"AGREE: {reason}" for field, reason in why.items()}
    return schema, notes


def draft_file(draft: Schema, notes: Notes) -> str:
    """The file of a draft, which says that it is one."""
    return f"{HEAD}\n{dumps(draft, notes)}"


def to_agree(draft: Schema, notes: Notes) -> list[str]:
    """The fields of a draft that parties must agree on: those with a note that its file really has."""
    return [".".join(at) for at in notes if _has(draft.to_dict(), at)]


def _has(table: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return True


def is_draft(path: Path) -> bool:
    """Whether a schema's file still says that it is private."""
    text = path.read_text(encoding="utf-8-sig")
    return PRIVATE in text or "# AGREE" in text


def told_of_draft(path: Path, public: Path) -> list[str]:
    """What to say if a draft goes into a file that others will see."""
    return (
        [f"{path.name} is still a private draft: what it read off rows is in {public.name}"] if is_draft(path) else []
    )


def counted(path: Path, names: list[str]) -> dict[str, ColumnTally]:
    """One pass over the file."""
    tallies, seen = {name: ColumnTally(name) for name in names}, 0
    for batch in batches(path, names, 1 << 13):
        for row, what in batch.broken.items():
            raise ConfideError(f"{path}, {places(path, {seen + row})[seen + row]}: {what}")
        seen += batch.rows
        for name, tally in tallies.items():
            tally.add(batch.columns[name])
    if seen == 0:
        raise ConfideError(f"{path}: no rows below the header")
    for name, tally in tallies.items():  # what a draft would write
        if not all(map(is_unicode, (*tally.values, *tally.words))):
            raise ConfideError(f"{path}, column {name!r}: is not UTF-8: save the file as UTF-8")
    return tallies


def outward(low: float, high: float) -> tuple[float, float]:
    """A range around low..high with ends as people choose them: multiples of 1, 2 or 5 times a power of ten.

    The step is the least such number that is at least a fifth of the width, so that the range is at most twice as wide.
    """
    size = max(abs(low), abs(high))
    span = high - low if high - low > 1e-9 * size else size  # all but constant: a range around 0
    fifth = Decimal(span) / 5 if span > 1e-300 else Decimal(1)
    ten = Decimal(1).scaleb(fifth.adjusted())
    step = next(ten * k for k in (1, 2, 5, 10) if ten * k >= fifth)
    below = (Decimal(low) / step).to_integral_value(ROUND_FLOOR)
    above = (Decimal(high) / step).to_integral_value(ROUND_CEILING)
    return float(below * step), float((above + (below == above)) * step)


# --- one column -------------------------------------------------------------------------------------------------------


def _column(t: ColumnTally) -> tuple[Column, dict[str, str]]:
    """The column, and the reason for each of its fields."""
    if why := _ignored(t):
        return Column(t.name, "ignore"), {"kind": why}
    marks, gaps = t.sentinels, bool(t.marks or t.sentinels)
    reasons = {"missing_marks": "apart from the rest: marks for missing?"}
    if t.numeric:
        low, high = outward(*t.range)
        reasons |= {
            "kind": _numbers(t), "low": LONE if t.lone_negative else "from your rows, rounded down",
            "high": "from your rows, rounded up",
            "missing": f'a missing one counts as this; or "{MISSING}", a feature',
            "outside": 'one outside counts as the nearer end; or "invalid"',
        }  # fmt: skip
        middle = low + (high - low) / 2
        return Column(t.name, "numeric", low, high, missing=middle if gaps else None, missing_marks=marks), reasons
    assert t.few is not None
    reasons |= {
        "kind": _categories(t, len(t.few)),
        "categories": "from your rows" + (f"; some in fewer than {RARE}: one person's?" if t.rare else ""),
        "missing": "has a feature of its own; or name a category",
    }
    return Column(t.name, "category", categories=t.few, missing=MISSING if gaps else None, missing_marks=marks), reasons


def _categories(t: ColumnTally, count: int) -> str:
    if count == 1:
        return "one text in all your rows; not in others'?"
    return "codes, as some begin with 0" if t.codes else "few texts"


def _ignored(t: ColumnTally) -> str:
    """Why the column is not read; empty if it is."""
    if not t.present:
        return "not read: no value in any row"
    if t.dated:
        return "not read: dates; derive a number, such as age"
    if t.decimal_commas:
        return f"not read: {COMMAS}"
    if why := t.identifies:
        return f"not read: {why}"
    if t.numeric:
        return ""
    if t.codes and (t.own or t.few is None):
        return "not read: codes, as some begin with 0, too many for categories"
    if t.own:
        return "not read: nearly every row has its own text"
    return f"not read: more than {MOST} texts, too many for categories" if t.few is None else ""


def _numbers(t: ColumnTally) -> str:
    few = t.few
    if few is not None and len(few) == 1:
        return "one number in all your rows; not in others'?"
    if t.whole and few is not None and len(few) > 2:
        return "whole numbers, few: or category, if these are codes"
    if t.whole and len(t.seen) == t.looked >= 8:
        return 'whole numbers, none twice: or "ignore", if these are ids'
    return "numbers"


def _label(path: Path, t: ColumnTally) -> Target:
    if t.decimal_commas:
        raise ConfideError(f"{path}: column {t.name!r} can't be a label: {COMMAS}")
    if t.few is not None and len(t.few) == 2:
        return Target(t.name, "binary", t.few)
    if t.few is not None and len(t.few) > 2 and (not t.numeric or t.whole):
        return Target(t.name, "classes", t.few)
    if t.numeric:
        low, high = outward(*t.range)
        return Target(t.name, "real", low=low, high=high)
    raise ConfideError(f"{path}: column {t.name!r} can't be a label: it is neither numbers nor 2 to {MOST} classes")


def _group(path: Path, t: ColumnTally) -> Group:
    if t.few is None:
        raise ConfideError(f"{path}: column {t.name!r} can't name the parties: it has none, or more than {MOST} values")
    return Group(t.name, t.few)


def _notes(schema: Schema, label: ColumnTally, named: bool) -> Notes:
    """What to say at the fields that belong to no column."""
    learned = "what is learned" if named else "what is learned: the last column, as none was named"
    if label.marks or label.sentinels:
        learned = f"{'what is learned' if named else 'the last column'}; rows without it do not fit: take them out"
    values = {"binary": "these become -1 and 1", "classes": "these become 0, 1, …"}.get(schema.label.kind, "")
    whole = schema.label.kind == "classes" and label.numeric
    return {
        ("row_norm",): "AGREE: longer rows are clipped to this",
        ("intercept",): "AGREE: the model has a constant term",
        ("missing_marks",): "AGREE: fields that mean missing, besides empty ones",
        ("label", "name"): f"AGREE: {learned}",
        ("label", "kind"): "AGREE: binary, classes or real" + ("; real, if an amount" if whole else ""),
        ("label", "values"): f"AGREE: {values}",
        ("label", "low"): "AGREE: from your rows, rounded down",
        ("label", "high"): "AGREE: from your rows, rounded up",
        ("invalid_row", "label"): "AGREE: of a row that does not fit; its features are 0",
        ("group", "name"): "AGREE: whose a row is",
        ("group", "values"): "AGREE: the parties",
    }
