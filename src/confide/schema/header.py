"""Does a file have the columns that the schema declares? Every difference is one line that names the column.

The first line of a file without a header is a row of data, so that its fields are named only if the line is a header
beyond doubt: at least half of the columns that are needed are in it. Otherwise they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from confide.errors import ConfideError
from confide.schema.schema import Schema
from confide.schema.tables import header

UNDECLARED = "declare it there, as kind 'ignore' if it is not to be read, or leave it out of the file"


def header_flaws(found: Sequence[str], schema: Schema, needed: Sequence[str]) -> list[str]:
    """What is wrong with the header `found`; columns to be ignored need not be there."""
    declared = [*(c.name for c in schema.columns), schema.label.name, *([schema.group.name] if schema.group else [])]
    lacking = [name for name in needed if name not in found]
    named = 2 * len(lacking) <= len(needed)
    flaws = []
    for j, name in enumerate(found):
        if name not in declared:
            alike = probably_meant(name, [d for d in declared if d not in found]) if named else None
            advice = f"it has {alike!r}" if alike else UNDECLARED
            flaws.append(
                f"column {j + 1} of the header{f', {name!r},' if named else ''} is not in the schema: {advice}"
            )
    if flaws and not named:
        flaws[0] += " (is the first line a header?)"
    return flaws + [f"no column {name!r} in the header, the schema declares it" for name in lacking]


def probably_meant(name: str, names: Sequence[str]) -> str | None:
    """The one of `names` that was probably meant."""
    by_lower = {n.casefold(): n for n in names}
    found = get_close_matches(name.casefold(), by_lower, 1, 0.8)
    return by_lower[found[0]] if found else None


def check_header(path: Path, schema: Schema, needed: Sequence[str]) -> None:
    flaws = header_flaws(header(path), schema, needed)
    if flaws:
        more = f" (and {len(flaws) - 1} more: see `confide schema check`)" if len(flaws) > 1 else ""
        raise ConfideError(f"{path}: {flaws[0]}{more}")
