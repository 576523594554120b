"""Writing TOML, which Python only reads: what a federation file needs, laid out for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confide.problem.schema_io import toml_key, toml_text


def dumps(document: Mapping[str, Any]) -> str:
    """Plain values first, then [tables], then [[lists of tables]]."""
    plain = {k: v for k, v in document.items() if not isinstance(v, Mapping) and not _tables(v)}
    lines = [f"{key} = {_value(v)}" for key, v in plain.items()]
    for key, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{key}]", *(f"{toml_key(k)} = {_value(v)}" for k, v in table.items())]
    for key, rows in document.items():
        for row in rows if _tables(rows) else ():
            lines += ["", f"[[{key}]]", *(f"{toml_key(k)} = {_value(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    raise TypeError(f"{value!r} has no form in TOML")
