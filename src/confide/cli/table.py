"""A file's rows for `fit`, `plan` and `predict`: read by the schema, refused by file, line and column, no value shown.

Refusing tells whoever sees it that some row does not fit. So it happens before any training, on the owner's own
terminal; what nodes do once training has begun is in `confide.problem.ingest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.learning import Rows
    from confide.problem.encode import Encoded, Flaw
    from confide.problem.schema import Label, Schema

BATCH = 1 << 13


def agreed(source: Path, label: str | None, group: str | None) -> tuple[Schema, list[str]]:
    """The schema with the label and the group that were asked for, and what to say about it.

    The schema decides how a column is read. Naming another of its columns makes that one the label, with its declared
    range or categories, and the schema's own label is then not read; a column of categories may name the parties.
    """
    from confide.problem.schema import Group, Schema

    schema, notes = Schema.load(source), []
    if label is not None and label == group:
        raise ValueError(f"--label and --group {label!r}: a column can't be both")
    if label is not None and label != schema.label.name:
        column = declared(schema, source, "--label", label)
        others = tuple(c for c in schema.columns if c.name != label)
        notes.append(f"label {label!r}; the schema's own, {schema.label.name!r}, is not read")
        schema = replace(schema, columns=(*others, ignored(schema.label.name)), label=as_label(source, column),
                         invalid_label=None)  # fmt: skip
    if group is not None and (schema.group is None or group != schema.group.name):
        column = declared(schema, source, "--group", group)
        if column.kind != "category":
            raise ValueError(f'{source}: --group {group!r}: declare the parties, as [group] name = "{group}", '
                             "values = […]")  # fmt: skip
        own = [ignored(schema.group.name)] if schema.group is not None else []
        notes += [f"parties by {group!r}; the schema's own, {c.name!r}, is not read" for c in own]
        others = tuple(c for c in schema.columns if c.name != group)
        schema = replace(schema, columns=(*others, *own), group=Group(group, column.categories))
    return schema, notes


def declared(schema: Schema, source: Path, option: str, name: str) -> Any:
    for column in schema.columns:
        if column.name == name:
            return column
    names = [*(c.name for c in schema.columns), schema.label.name, *([schema.group.name] if schema.group else [])]
    raise ValueError(f"{option} {name!r}: no such column in {source}, which declares {', '.join(names)}")


def ignored(name: str) -> Any:
    from confide.problem.schema import Column

    return Column(name, "ignore")


def as_label(source: Path, column: Any) -> Label:
    from confide.problem.schema import Label

    match column.kind:
        case "numeric":
            return Label(column.name, "real", low=column.low, high=column.high)
        case "category":
            kind = "binary" if len(column.categories) == 2 else "classes"
            return Label(column.name, kind, column.categories)
    raise ValueError(f"{source}: --label {column.name!r}: the schema says 'ignore', so there is no range and no class")


def read_rows(path: Path, schema: Schema, clip: bool, parties: int | None = None) -> Rows:
    """All rows, encoded; the first that does not fit is refused."""
    import numpy as np

    from confide.learning import Rows

    parts, rows = [], 0
    for part in encoded(path, schema, True):
        refuse(path, part, rows, clip)
        rows += len(part.y)
        parts.append(part)
    if rows == 0:
        raise ValueError(f"{path}: no rows below the header")
    party = np.concatenate([p.group for p in parts])
    names = schema.group.values if schema.group else tuple(f"party {k + 1}" for k in range(parties or 1))
    if schema.group is None:
        party = np.arange(rows) % len(names)  # no column says whose a row is: evenly, by row order
    found = Rows(np.concatenate([p.X for p in parts]), np.concatenate([p.y for p in parts]), party, names,
                 schema.label.kind, max(2, len(schema.label.values)), schema.row_norm, schema.intercept)  # fmt: skip
    check_parties(path, schema, found)
    return found


def read_features(path: Path, schema: Schema) -> Any:
    """Rows to predict for: label and group may be missing; what is outside its range counts as the schema says."""
    import numpy as np

    parts, rows = [], 0
    for part in encoded(path, schema, False):
        refuse(path, part, rows, True)
        rows += len(part.y)
        parts.append(part.X)
    if rows == 0:
        raise ValueError(f"{path}: no rows below the header")
    return np.concatenate(parts)


def encoded(path: Path, schema: Schema, labelled: bool) -> Iterator[Encoded]:
    from confide.problem.encode import encode
    from confide.problem.tables import batches, header

    read, group = [c.name for c in schema.read], schema.group
    if labelled:
        read += [schema.label.name, *([group.name] if group else [])]
    known = {*(c.name for c in schema.columns), schema.label.name, *([group.name] if group else [])}
    for j, name in enumerate(header(path)):
        if name not in known:
            raise ValueError(f"{path}, line 1: column {j + 1} is not in the schema: declare it there, or as 'ignore'")
    for batch in batches(path, read, BATCH):
        yield encode(schema, batch.columns, batch.rows, label=labelled, group=labelled, broken=batch.broken)


def refuse(path: Path, part: Encoded, before: int, clip: bool) -> None:
    """One line for the first row that does not fit; `before` rows came earlier."""
    from confide.problem.ingest import BadRows
    from confide.problem.tables import places

    found: list[Flaw] = [*part.flaws]
    if not clip:
        found += [f._replace(what=f"{f.what}; --clip takes the nearer end") for f in part.clipped]
    if found:
        first = sorted(found, key=lambda f: f.row)[:2]
        where = places(path, {f.row + before for f in first})
        raise BadRows(path, [(where[f.row + before], f.column, f.what) for f in first])


def check_parties(path: Path, schema: Schema, rows: Rows) -> None:
    """Every declared party has rows, and in a classification rows of two classes."""
    import numpy as np

    from confide.problem.tables import places

    column = f"column {schema.group.name!r}: " if schema.group else ""
    if len(rows.names) < 2:
        raise ValueError(f"{path}, {column}1 party, {rows.names[0]!r}: learning over a network needs at least 2")
    for k, name in enumerate(rows.names):
        mine = np.flatnonzero(rows.party == k)
        if len(mine) == 0:
            raise ValueError(f"{path}, {column}no row of {name!r}, which the schema declares")
        if schema.label.kind != "real" and np.ptp(rows.y[mine]) == 0:
            first = int(mine[0])
            raise ValueError(f"{path}, {places(path, {first})[first]} on, column {schema.label.name!r}: "
                             f"all rows of {name!r} have one class, at least 2 are needed")  # fmt: skip
