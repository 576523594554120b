"""Losses, penalties and methods in a file: a table with the name of a class and its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from confide.errors import ConfideError
from confide.files.values import shown

DEEP = 1  # tables within a table: a loss of randomised labels holds another loss


def to_table(part: Any) -> dict[str, Any]:
    """A part by its name and parameters."""
    own = {f.name: getattr(part, f.name) for f in fields(part)}
    return {"name": type(part).__name__, **{k: to_table(v) if is_dataclass(v) else v for k, v in own.items()}}


def from_table(table: Any, where: str, kinds: Sequence[Any], depth: int = 0) -> Any:
    """The part again, one of `kinds`; every mistake is one line that begins with `where`."""
    known = {kind.__name__: kind for kind in kinds}
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise ConfideError(
            f'{where}={shown(table)}: must be a table with a name, as {{ name = "{next(iter(known))}" }}'
        )
    name = table["name"]
    if name not in known or depth > DEEP:
        raise ConfideError(f"{where}: unknown name {name!r}: known are {', '.join(known)}")
    given = {field: value for field, value in table.items() if field != "name"}
    allowed = [f.name for f in fields(known[name])]
    for field in given:
        if field not in allowed:
            takes = ", ".join(allowed) or "no parameter"
            raise ConfideError(f"unknown field {where}.{field}: {name} takes {takes}")
    inner = {f: from_table(v, f"{where}.{f}", kinds, depth + 1) if isinstance(v, dict) else v for f, v in given.items()}
    try:
        return known[name](**inner)
    except ConfideError as error:
        raise ConfideError(f"{where}: {error}") from None
    except TypeError:  # a text where a number is needed, or none
        raise ConfideError(f"{where}={shown(table)}: {name} takes {', '.join(allowed)}, each of its type") from None
