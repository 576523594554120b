"""Rows of plain numbers, of parties without a schema: a CSV without a header. No error shows a value of a row."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.schema.columns import number


def read_numbers(path: Path, fields: Collection[int] = ()) -> NDArray[np.float64]:
    """(rows, fields), all finite; every row has as many fields as the first, and as many as `fields` allow."""
    rows: list[list[float]] = []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file)
        try:
            for record in reader:
                if not "".join(record).strip():
                    continue
                where = f"{path}, line {reader.line_num}"
                if fields and len(record) not in fields:
                    allowed = " or ".join(map(str, fields))
                    raise ConfideError(f"{where}: {len(record)} fields: must be {allowed}")
                if rows and len(record) != len(rows[0]):
                    raise ConfideError(f"{where}: {len(record)} fields: must be {len(rows[0])}, as in the first row")
                rows.append([number(field.strip()) for field in record])
                for j, value in enumerate(rows[-1]):
                    if not np.isfinite(value):
                        form = "" if rows[:-1] else "; rows of plain numbers, without a header, are read here"
                        raise ConfideError(f"{where}, column {j + 1}: not a finite number{form}")
        except csv.Error:
            raise ConfideError(f"{path}, line {reader.line_num}: unreadable") from None
    if not rows:
        raise ConfideError(f"{path}: an empty file")
    return np.array(rows)
