"""A file's rows for `confide fit` and `confide plan`: read by the schema, and enough of each party to learn from.

Refusing a row tells whoever sees it that some row does not fit. So it happens before any training, on the owner's own
terminal; what nodes do once training has begun is in `confide.schema.reader`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from confide.errors import ConfideError
from confide.estimators.fitting import PooledRows
from confide.schema.reader import read
from confide.schema.schema import Schema
from confide.schema.tables import places


def read_rows(path: Path, schema: Schema, parties: int | None = None, alone: bool = False) -> PooledRows:
    """All rows, encoded; the first that does not fit is refused. `alone`: each party is to learn from its own, too."""
    part = read(path, schema)
    names = schema.group.values if schema.group else tuple(f"party {k + 1}" for k in range(parties or 1))
    # where no column says whose a row is: evenly, by row order
    party = part.group if schema.group else np.arange(len(part.y)) % len(names)
    found = PooledRows(part.X, part.y, party, names, schema.label.kind, max(2, len(schema.label.values)),
                       schema.row_norm, schema.intercept)  # fmt: skip
    check_parties(path, schema, found, alone)
    return found


def check_parties(path: Path, schema: Schema, rows: PooledRows, alone: bool) -> None:
    """Every declared party has rows; to learn alone what classes are, rows of two. Together one class is no harm."""
    column = f"column {schema.group.name!r}: " if schema.group else ""
    if len(rows.names) < 2 and schema.group:
        raise ConfideError(f"{path}, {column}1 party, {rows.names[0]!r}: learning over a network needs at least 2")
    for k, name in enumerate(rows.names):
        mine = np.flatnonzero(rows.party == k)
        if len(mine) == 0:
            raise ConfideError(f"{path}, {column}no row of {name!r}, which the schema declares")
        if alone and schema.label.kind != "real" and np.ptp(rows.y[mine]) == 0:
            first = int(mine[0])
            raise ConfideError(
                f"{path}, {places(path, {first})[first]} on, column {schema.label.name!r}: "
                f"all rows of {name!r} have one class, alone it would learn nothing: at least 2 are needed"
            )
