"""A schema with another of its columns as the label, or as the one that names the parties."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from confide.errors import ConfideError
from confide.schema.schema import Column, Group, Schema, Target


def agreed(source: Path, label: str | None, group: str | None) -> tuple[Schema, list[str]]:
    """The schema with the label and the group that were asked for, and what to say about it.

    The schema decides how a column is read. Naming another of its columns makes that one the label, with its declared
    range or categories, and the schema's own label is then not read; a column of categories may name the parties.
    """
    schema, notes = Schema.load(source), []
    if label is not None and label == group:
        raise ConfideError(f"--label and --group {label!r}: a column can't be both")
    if label is not None and label != schema.label.name:
        column = declared(schema, source, "--label", label)
        others = tuple(c for c in schema.columns if c.name != label)
        notes.append(f"label {label!r}; the schema's own, {schema.label.name!r}, is not read")
        schema = replace(schema, columns=(*others, ignored(schema.label.name)), label=as_label(source, column),
                         invalid_label=None)  # fmt: skip
    if group is not None and (schema.group is None or group != schema.group.name):
        column = declared(schema, source, "--group", group)
        if column.kind != "category":
            raise ConfideError(
                f'{source}: --group {group!r}: declare the parties, as [group] name = "{group}", values = […]'
            )
        own = [ignored(schema.group.name)] if schema.group is not None else []
        notes += [f"parties by {group!r}; the schema's own, {c.name!r}, is not read" for c in own]
        others = tuple(c for c in schema.columns if c.name != group)
        schema = replace(schema, columns=(*others, *own), group=Group(group, column.categories))
    return schema, notes


def declared(schema: Schema, source: Path, option: str, name: str) -> Column:
    for column in schema.columns:
        if column.name == name:
            return column
    names = [*(c.name for c in schema.columns), schema.label.name, *([schema.group.name] if schema.group else [])]
    raise ConfideError(f"{option} {name!r}: no such column in {source}, which declares {', '.join(names)}")


def ignored(name: str) -> Column:
    return Column(name, "ignore")


def as_label(source: Path, column: Column) -> Target:
    match column.kind:
        case "numeric":
            return Target(column.name, "real", low=column.low, high=column.high)
        case "category":
            kind = "binary" if len(column.categories) == 2 else "classes"
            return Target(column.name, kind, column.categories)
    raise ConfideError(
        f"{source}: --label {column.name!r}: the schema says 'ignore', so there is no range and no class"
    )
