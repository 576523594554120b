"""A schema as a TOML file: unknown fields are errors, and there is one way to write each schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confide.errors import ConfideError
from confide.files import toml
from confide.files.keys import strict
from confide.files.values import shown
from confide.problem.checks import finite
from confide.schema.schema import Column, Group, Schema, Target

_TOP = ("row_norm", "intercept", "missing_marks", "invalid_row", "group")
_COLUMN = ("low", "high", "categories", "missing", "outside", "missing_marks")
_LABEL = ("values", "low", "high")

Notes = Mapping[tuple[str, ...], str]


def loads(text: str, source: str = "schema") -> Schema:
    return from_dict(toml.loads(text, source, "a schema"), source)


def from_dict(table: Any, source: str = "schema") -> Schema:
    """The schema a TOML table describes; every mistake is one line that names the field."""
    try:
        return _schema(table)
    except ConfideError as error:
        raise ConfideError(f"{source}: {error}") from None


def _schema(table: Any) -> Schema:
    top = strict(table, "", ("label", "columns"), _TOP)
    label = strict(top["label"], "label", ("name", "kind"), _LABEL)
    group = strict(top["group"], "group", ("name", "values")) if "group" in top else None
    fixed = strict(top.get("invalid_row", {}), "invalid_row", (), ("label",)).get("label")
    if not isinstance(top["columns"], dict):
        raise ConfideError(f"columns={shown(top['columns'])}: must be tables, such as [columns.age]")
    columns = [(name, strict(c, f"columns.{name}", ("kind",), _COLUMN)) for name, c in top["columns"].items()]
    return Schema(
        columns=tuple(
            Column(name, **_converted(c, f"columns.{name}", categories=_texts, missing=_rule(c), missing_marks=_texts))
            for name, c in columns
        ),
        label=Target(**_converted(label, "label", values=_texts)),
        group=Group(**_converted(group, "group", values=_texts)) if group is not None else None,
        invalid_label=fixed if label["kind"] == "real" or fixed is None else _text(fixed),
        **_converted({k: top[k] for k in _TOP[:3] if k in top}, "schema", missing_marks=_texts),
    )


def _converted(table: dict[str, Any], where: str, **convert: Any) -> dict[str, Any]:
    """The table with some of its fields converted."""
    out = dict(table)
    for name, function in convert.items():
        if name in out:
            try:
                out[name] = function(out[name])
            except TypeError:
                what = "a list of texts or whole numbers" if function is _texts else "a text or a whole number"
                raise ConfideError(f"{where}.{name}={shown(out[name])}: must be {what}") from None
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
    if c.missing_marks:
        out["missing_marks"] = [*c.missing_marks]
    if c.kind == "numeric":
        out["outside"] = c.outside
    return out


def _range(c: Column | Target) -> dict[str, float]:
    return {} if c.low is None else {"low": _float(c.low), "high": _float(c.high)}


def _float(x: Any) -> float:
    return float(x) + 0.0  # -0.0 becomes 0.0


def dumps(schema: Schema, notes: Notes | None = None, prefix: tuple[str, ...] = ()) -> str:
    """TOML. `notes` puts a remark to a field, named by its path; `prefix` nests the schema into a larger file."""
    return toml.dumps(_readable(to_dict(schema)), notes, prefix, deep=True)


def _readable(value: Any) -> Any:
    """Whole numbers as people write them: 1, not 1.0."""
    if isinstance(value, dict):
        return {k: _readable(v) for k, v in value.items()}
    return int(value) if isinstance(value, float) and value == int(value) and abs(value) < 1e15 else value
