"""`scale=`: from columns in units of their own to features within -1 and 1, by ranges that are public or paid for.

low..high becomes -1..1, and what is outside counts as the nearer end, as a schema encodes numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.schema.schema import Schema

Array = NDArray[np.float64]
BUY = "buy"
ALLOWED = "must be None, 'buy', a Schema, a dict of (low, high) by column, or a list of them in the columns' order"


@dataclass(frozen=True, eq=False)
class Ranges:
    """Public (low, high) of every feature: (p,) each."""

    low: Array
    high: Array

    def apply(self, X: Any) -> Any:
        """Rows (n, p) within -1 and 1; sparse rows stay sparse, where 0 stays 0."""
        middle, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        if not sp.issparse(X):
            inside = np.clip(np.asarray(X, float), self.low, self.high)
            return np.clip((inside - middle) / half, -1.0, 1.0)
        if np.any(middle != 0):
            raise ConfideError("scale: sparse rows need ranges (-a, a), which leave 0 where it is; or give dense rows")
        out = sp.csr_array(X, dtype=float, copy=True)
        with np.errstate(over="ignore"):  # a warning would tell of a row
            out.data = np.clip(out.data / half[out.indices], -1.0, 1.0)
        return out


def declared(scale: Any, names: Any, count: int) -> Ranges | None:
    """Ranges of `count` features, called `names` if they have names; None where none are given, or they are bought."""
    if scale is None or (isinstance(scale, str) and scale == BUY):
        return None
    if isinstance(scale, Schema):
        scale = of_schema(scale)
        if names is None:
            scale = list(scale.values())
    if isinstance(scale, Mapping):
        if names is None:
            raise ConfideError("scale names columns, and X has no names: give a data frame, or ranges in order")
        missing = [str(n) for n in names if n not in scale]
        if missing:
            raise ConfideError(f"scale: no range for column {missing[0]!r}; every column needs (low, high)")
        scale = [scale[n] for n in names]
    if isinstance(scale, str):
        raise ConfideError(f"scale={scale!r}: {ALLOWED}")
    try:
        table = np.asarray(scale, float)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape != (count, 2):
        raise ConfideError(f"scale of {type(scale).__name__} with shape {table.shape}, {count} columns: {ALLOWED}")
    wide = np.isfinite(table).all(axis=1) & (table[:, 1] / 2 - table[:, 0] / 2 > np.finfo(float).tiny)
    for j in np.flatnonzero(~wide)[:1]:
        raise ConfideError(f"scale of column {j}: {tuple(table[j].tolist())}: must be finite, low below high")
    return Ranges(table[:, 0], table[:, 1])


def of_schema(schema: Schema) -> dict[str, tuple[float, float]]:
    """Ranges by column of a schema of numbers."""
    out = {}
    for column in schema.read:
        if column.kind != "numeric" or column.low is None or column.high is None or len(column.features) != 1:
            raise ConfideError(
                f"scale: column {column.name!r} of the schema is more than a number: encode it by `confide fit`"
            )
        out[column.name] = (column.low, column.high)
    return out
