"""A schema as a TOML file: unknown fields are errors, and there is one way to write each schema."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from confide.problem.checks import finite
from confide.problem.schema import Column, Group, Label, Schema

WIDTH = 80
_TOP = ("row_norm", "intercept", "missing_marks", "label", "invalid_row", "group", "columns")
_COLUMN = ("kind", "low", "high", "categories", "missing", "outside")
_LABEL = ("name", "kind", "values", "low", "high")

Notes = Mapping[tuple[str, ...], str]


def loads(text: str, source: str = "schema") -> Schema:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source}: not TOML: {error}") from None
    return from_dict(table, source)


def from_dict(table: Any, source: str = "schema") -> Schema:
    """The schema a TOML table describes; every mistake is one line that names the field."""
    try:
        return _schema(table)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _schema(table: Any) -> Schema:
    top = _fields(table, "", _TOP, ("label", "columns"))
    label = _fields(top["label"], "label", _LABEL, ("name", "kind"))
    group = _fields(top["group"], "group", ("name", "values"), ("name", "values")) if "group" in top else None
    fixed = _fields(top.get("invalid_row", {}), "invalid_row", ("label",)).get("label")
    if not isinstance(top["columns"], dict):
        raise ValueError("columns: must be tables, such as [columns.age]")
    columns = [(name, _fields(c, f"columns.{name}", _COLUMN, ("kind",))) for name, c in top["columns"].items()]
    return Schema(
        columns=tuple(
            Column(name, **_known(c, f"columns.{name}", categories=_texts, missing=_rule(c))) for name, c in columns
        ),
        label=Label(**_known(label, "label", values=_texts)),
        group=Group(**_known(group, "group", values=_texts)) if group is not None else None,
        invalid_label=fixed if label["kind"] == "real" or fixed is None else _text(fixed),
        **_known({k: top[k] for k in _TOP[:3] if k in top}, "schema", missing_marks=_texts),
    )


def _fields(table: Any, where: str, allowed: Collection[str], needed: Collection[str] = ()) -> dict[str, Any]:
    dot = f"{where}." if where else ""
    if not isinstance(table, dict):
        raise ValueError(f"{where or 'schema'}: must be a table")
    for name in table:
        if name not in allowed:
            raise ValueError(f"unknown field {dot}{name}: allowed are {', '.join(allowed)}")
    for name in needed:
        if name not in table:
            raise ValueError(f"no field {dot}{name}: {', '.join(needed)} {'is' if len(needed) == 1 else 'are'} needed")
    return table


def _known(table: dict[str, Any], where: str, **convert: Any) -> dict[str, Any]:
    """The table with some of its fields converted."""
    out = dict(table)
    for name, function in convert.items():
        if name in out:
            try:
                out[name] = function(out[name])
            except TypeError:
                raise ValueError(f"{where}.{name}: must be texts or whole numbers") from None
    return out


def _text(value: Any) -> str:
    """Values are compared as text; whole numbers may be written as such."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise TypeError
    return tuple(_text(v) for v in values)


def _rule(column: Mapping[str, Any]) -> Any:
    return _text if column["kind"] == "category" else lambda value: value


# --- writing ----------------------------------------------------------------------------------------------------------


def to_dict(schema: Schema) -> dict[str, Any]:
    """The canonical table: every field that means something, in a fixed order; numbers are floats."""
    label, invalid = schema.label, schema.invalid_label
    out: dict[str, Any] = {
        "row_norm": _float(schema.row_norm), "intercept": schema.intercept, "missing_marks": [*schema.missing_marks],
        "label": {"name": label.name, "kind": label.kind, **_range(label)}, "invalid_row": {"label": invalid},
    }  # fmt: skip
    if label.kind == "real":
        out["invalid_row"] = {"label": _float(invalid)}
    else:
        out["label"]["values"] = [*label.values]
    if schema.group is not None:
        out["group"] = {"name": schema.group.name, "values": [*schema.group.values]}
    out["columns"] = {c.name: _column(c) for c in schema.columns}
    return out


def _column(c: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": c.kind, **_range(c)}
    if c.kind == "category":
        out["categories"] = [*c.categories]
    if c.missing is not None:
        out["missing"] = _float(c.missing) if finite(c.missing) else c.missing
    if c.kind == "numeric":
        out["outside"] = c.outside
    return out


def _range(c: Column | Label) -> dict[str, float]:
    return {} if c.low is None else {"low": _float(c.low), "high": _float(c.high)}


def _float(x: Any) -> float:
    return float(x) + 0.0  # -0.0 becomes 0.0


def dumps(schema: Schema, notes: Notes | None = None, prefix: tuple[str, ...] = ()) -> str:
    """TOML. `notes` puts a comment to a field, named by its path; `prefix` nests the schema into a larger file."""
    lines: list[str] = []
    _write(to_dict(schema), (), prefix, notes or {}, lines)
    return "\n".join(lines).strip() + "\n"


def _write(table: dict[str, Any], path: tuple[str, ...], prefix: tuple[str, ...], notes: Notes, lines: list[str]
           ) -> None:  # fmt: skip
    plain = {k: v for k, v in table.items() if not isinstance(v, dict)}
    if plain and (prefix + path):
        lines += ["", f"[{'.'.join(toml_key(k) for k in prefix + path)}]"]
    for name, value in plain.items():
        lines += _line(toml_key(name), value, notes.get((*path, name)))
    for name, value in table.items():
        if isinstance(value, dict):
            _write(value, (*path, name), prefix, notes, lines)


def _line(key: str, value: Any, note: str | None) -> list[str]:
    """`key = value  # note`; a list too long for one line has one item a line, a note too long its own line."""
    line = f"{key} = {_value(value)}"
    if isinstance(value, list) and len(line) > WIDTH:
        return [f"{key} = [" + (f"  # {note}" if note else ""), *(f"  {_value(v)}," for v in value), "]"]
    if note is None:
        return [line]
    return [f"{line}  # {note}"] if len(line) + len(note) + 4 <= WIDTH else [f"# {note}", line]


def toml_key(name: str) -> str:
    """A key as TOML writes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(value: str) -> str:
    """A text as TOML writes it: JSON's form, but TOML also wants DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_value(v) for v in value)}]"
    if isinstance(value, str):
        return toml_text(value)
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else repr(float(value))
