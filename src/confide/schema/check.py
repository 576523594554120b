"""What in a file does not fit a schema: counted by column, listed by place, no value shown.

The counts are of private rows. They are for the owner of the file, who mends it or asks for another schema, and for
nobody else.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from confide.errors import ConfideError
from confide.schema.encode import Flaw
from confide.schema.header import header_flaws
from confide.schema.reader import encoded, needed_columns, placed
from confide.schema.schema import MISSING, Schema
from confide.schema.tables import header

Place = tuple[str, str, str]


class Findings(NamedTuple):
    """What `check` found. A place is (where, column, what).

    header     what is wrong with the header; the rows are then not read
    rows       read; of these, `unfit` do not fit
    flaws      the first places that do not fit; `clipped` the first values that count as the nearer end of their range
    counts     how many fields of which column: (column, what) -> number, as flaws and as values that are clipped
    filled     fields that are missing and count as the column's rule says, by column
    """

    header: list[str]
    rows: int
    unfit: int
    flaws: list[Place]
    clipped: list[Place]
    counts: Counter[tuple[str, str]]
    clip_counts: Counter[tuple[str, str]]
    filled: Counter[str]

    @property
    def fits(self) -> bool:
        return not self.header and not self.unfit

    def by_column(self, schema: Schema) -> list[dict[str, Any]]:
        """How many fields of which column, what about them, and what becomes of it; in the order of the schema."""
        counts = [(column, what, n, "does not fit") for (column, what), n in self.counts.items()]
        counts += [(column, what, n, "counts as the nearer end") for (column, what), n in self.clip_counts.items()]
        rules = {c.name: c.missing for c in schema.columns}
        for column, n in self.filled.items():
            rule = rules[column]
            text = f"{rule:g}" if isinstance(rule, int | float) else repr(rule)
            becomes = "has a feature of its own" if rule == MISSING else f"counts as {text}"
            counts.append((column, "missing", n, becomes))
        order = ["", *rules, schema.label.name, *([schema.group.name] if schema.group else [])]
        counts.sort(key=lambda one: (order.index(one[0]), one[1], one[3]))
        return [
            {"column": column or None, "what": what, "count": n, "becomes": becomes}
            for column, what, n, becomes in counts
        ]


def check(path: str | Path, schema: Schema, limit: int = 20, party: str | None = None) -> Findings:
    """Read all rows; list the first `limit` places of either kind. `party` says that all rows are that party's."""
    path, rows, unfit = Path(path), 0, 0
    group = party is None
    wrong = header_flaws(header(path), schema, needed_columns(schema, group=group))
    flaws: list[Flaw] = []
    clipped: list[Flaw] = []
    counts, clip_counts, filled = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[str]()
    for part in () if wrong else encoded(path, schema, group=group, features=False):
        for found, kept, tally in ((part.flaws, flaws, counts), (part.clipped, clipped, clip_counts)):
            kept += [f._replace(row=f.row + rows) for f in found[: limit - len(kept)]]
            tally.update((f.column, f.what) for f in found)
        filled.update({name: n for name, n in part.filled.items() if n})
        rows, unfit = rows + len(part.y), unfit + len({f.row for f in part.flaws})
    if rows == 0 and not wrong:
        raise ConfideError(f"{path}: no rows below the header")
    return Findings(wrong, rows, unfit, placed(path, flaws), placed(path, clipped), counts, clip_counts, filled)
