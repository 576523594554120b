"""TOML: read, every mistake being one line; and written, which Python does not do, laid out for people."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, WrongType

WIDTH = 80
Place = tuple[str, ...]  # of a field: the names of its tables, and its own


def load(path: str | Path, what: str) -> dict[str, Any]:
    """The document in a file, which must be `what`, such as "a schema"."""
    try:
        return loads(Path(path).read_text(encoding="utf-8-sig"), str(path), what)
    except UnicodeDecodeError:
        raise ConfideError(f"{path}: not TOML, as {what} is: it is not text in UTF-8") from None


def loads(text: str, where: str, what: str) -> dict[str, Any]:
    """The document in a text; `where` names it in the one line of an error, `what` says what it must be."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # a number of thousands of digits is no TOMLDecodeError
        raise ConfideError(f"{where}: not TOML, as {what} is: {error}") from None
    except RecursionError:
        raise ConfideError(f"{where}: not {what}: lists or tables nested too deeply") from None


def dumps(document: Mapping[str, Any], notes: Mapping[Place, str] | None = None, prefix: Place = (),
          deep: bool = False) -> str:  # fmt: skip
    """Plain values first, then [tables], then [[lists of tables]].

    notes     a remark for a field, named by its path
    prefix    the table that holds all of this in a larger file
    deep      give tables within tables a heading of their own, too; else they stand on one line
    """
    lines = _section(document, prefix, (), notes or {}, deep)
    return "\n".join(lines).strip() + "\n"


def _section(table: Mapping[str, Any], prefix: Place, path: Place, notes: Mapping[Place, str], deep: bool) -> list[str]:
    headed = [k for k, v in table.items() if isinstance(v, Mapping) and (deep or not path)]
    listed = [] if path else [k for k, v in table.items() if _tables(v)]
    plain = [k for k in table if k not in headed and k not in listed]
    lines = ["", f"[{'.'.join(map(key, prefix + path))}]"] if prefix + path and (plain or not headed) else []
    for name in plain:
        lines += _line(name, table[name], notes.get((*path, name)))
    for name in headed:
        lines += _section(table[name], prefix, (*path, name), notes, deep)
    for name in listed:
        for row in table[name]:
            lines += ["", f"[[{'.'.join(map(key, (*prefix, name)))}]]"]
            lines += [line for k, v in row.items() for line in _line(k, v, None)]
    return lines


def _line(name: str, value: Any, note: str | None) -> list[str]:
    """`key = value  # note`; a list too long for one line has one item per line, a note too long its own line."""
    line = f"{key(name)} = {_value(value)}"
    if isinstance(value, list | tuple) and len(line) > WIDTH:
        return [f"{key(name)} = [" + (f"  # {note}" if note else ""), *(f"  {_value(v)}," for v in value), "]"]
    if note is None:
        return [line]
    return [f"{line}  # {note}"] if len(line) + len(note) + 4 <= WIDTH else [f"# {note}", line]


def key(name: str) -> str:
    """A key as TOML writes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else text(name)


def text(value: str) -> str:
    """A text as TOML writes it: JSON's form, but TOML also wants DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    raise WrongType(f"{value!r} has no form in TOML")
