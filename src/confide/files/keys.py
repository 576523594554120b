"""Strict keys: a table from a file has the fields that it must, may have some, and no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from confide.errors import ConfideError


def strict(table: Any, where: str, needed: Collection[str], optional: Collection[str] = ()) -> Any:
    """`table` with all of `needed` and nothing beyond `optional`; `where` names it in the one line of an error."""
    dot = f"{where}." if where else ""
    if not isinstance(table, Mapping):
        raise ConfideError(f"{where or 'the file'}: {type(table).__name__}: must be a table")
    for name in table:
        if name not in needed and name not in optional:
            raise ConfideError(f"unknown field {dot}{name}: allowed are {', '.join([*needed, *optional])}")
    for name in needed:
        if name not in table:
            raise ConfideError(f"no field {dot}{name}: needed are {', '.join(needed)}")
    return table
