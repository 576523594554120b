"""Files where they are: a CSV or Parquet file of any size becomes memory-mapped rows, encoded by the public schema.

    rows = ingest("patients.csv", Schema.load("schema.toml"), work="~/confide")
    rows.shards()

Strict, before training: rows that do not fit the schema are refused, by file, line and column, and nothing is written.
Training, once it has begun: such a row counts as the schema's fixed public row, silently, so that nobody learns from a
refusal, or from how many there were. What is written holds private rows and is readable by its owner only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.problem.shards import Shards
from confide.schema.encode import Encoded, Flaw, encode
from confide.schema.header import check_header
from confide.schema.schema import Schema
from confide.schema.tables import batches, places

Index = NDArray[np.int64]
NUMBERS, ROWS = 1 << 20, 1 << 14  # encoded at once, at most: 8 MB of doubles


class BadRows(ConfideError):
    """Rows that do not fit the schema; the message names the first, `flaws` has (place, column, what) of more."""

    def __init__(self, path: Path, flaws: list[tuple[str, str, str]]) -> None:
        self.flaws = flaws
        place, column, what = flaws[0]
        more = " (and more: see `confide schema check`)" if len(flaws) > 1 else ""
        super().__init__(f"{path}, {place}{f', column {column!r}' if column else ''}: {what}{more}")


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """Encoded rows by party: X (n, features) and y (n,), memory-mapped; `sizes` rows for each of `names`."""

    X: Any
    y: Any
    sizes: Index
    names: tuple[str, ...]
    row_norm: float

    def shards(self) -> Shards:
        """As `Problem` takes them; the rows stay on disk."""
        offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        return Shards.checked(self.X, np.asarray(self.y), offsets, self.names, row_norm=self.row_norm)


def ingest(
    path: str | Path, schema: Schema, work: str | Path, *, party: str | None = None, training: bool = False,
    dtype: str = "float64", limit: int = 20,
) -> EncodedTable:  # fmt: skip
    """Encode a file into the folder `work`, in batches. `party` says that all rows are that party's."""
    path, work = Path(path), Path(work).expanduser()
    if dtype not in ("float64", "float32"):
        raise ConfideError(f"dtype={dtype!r}: must be 'float64' or 'float32'")
    width = len(schema.features)
    names = (party,) if party is not None else schema.group.values if schema.group else ("all",)
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        X = stack.enter_context(Writer(work / f"{path.name}.X.npy", dtype, width))
        y = stack.enter_context(Writer(work / f"{path.name}.y.npy"))
        member = stack.enter_context(Writer(work / f"{path.name}.party.npy", "int64"))
        for part in encoded(path, schema, group=party is None, dtype=dtype):
            if part.flaws and not training:
                first = [f._replace(row=f.row + y.rows) for f in part.flaws[:limit]]
                raise BadRows(path, placed(path, first))
            for writer, values in ((X, part.X), (y, part.y), (member, part.group)):
                writer.append(values)
        if y.rows == 0:
            raise ConfideError(f"{path}: no rows below the header")
        sizes = _by_party(X, y, member, len(names))
        return EncodedTable(X.finish(), y.finish(), sizes, names, schema.row_norm)


def read(path: str | Path, schema: Schema, *, label: bool = True, group: bool = True) -> Encoded:
    """All rows of a file in memory; the first that does not fit is refused.

    Without `label` and `group` (to predict) those columns may be missing and are not read. Values outside their range
    count as the schema says.
    """
    path, parts, rows = Path(path), [], 0
    for part in encoded(path, schema, label=label, group=group):
        if part.flaws:
            first = sorted(part.flaws, key=lambda f: f.row)[:2]
            raise BadRows(path, placed(path, [f._replace(row=f.row + rows) for f in first]))
        rows += len(part.y)
        parts.append(part)
    if rows == 0:
        raise ConfideError(f"{path}: no rows below the header")
    X, y, member = (np.concatenate([p[k] for p in parts]) for k in range(3))
    return Encoded(X, y, member, [], [], {})


def needed_columns(schema: Schema, *, label: bool = True, group: bool = True) -> list[str]:
    """The columns that a file must have."""
    names = [c.name for c in schema.read]
    if label:
        names.append(schema.label.name)
    if group and schema.group is not None:
        names.append(schema.group.name)
    return names


def encoded(
    path: Path, schema: Schema, *, label: bool = True, group: bool = True, dtype: Any = np.float64,
    features: bool = True,
) -> Iterator[Encoded]:  # fmt: skip
    """The file's rows in batches, encoded, with their label and the party that each names, if the schema says so.

    Without `features` only what does not fit is found: X has no columns.
    """
    read = needed_columns(schema, label=label, group=group)
    check_header(path, schema, read)
    for batch in batches(path, read, _batch(len(schema.features) if features else 1)):
        yield encode(
            schema, batch.columns, batch.rows, label=label, group=group, broken=batch.broken, dtype=dtype,
            features=features,
        )  # fmt: skip


def _batch(width: int) -> int:
    return max(64, min(ROWS, NUMBERS // width))


def placed(path: Path, flaws: list[Flaw]) -> list[tuple[str, str, str]]:
    where = places(path, {f.row for f in flaws})
    return [(where[f.row], f.column, f.what) for f in flaws]


class Writer:
    """An .npy file that grows by batches and appears under its name only when finished; its owner alone may read it."""

    def __init__(self, path: Path, dtype: str = "float64", width: int | None = None) -> None:
        self.path, self.partial = path, path.with_name(path.name + ".partial")
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self.partial.unlink(missing_ok=True)
        self.file: IO[bytes] = os.fdopen(os.open(self.partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b")
        self._head()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.partial.unlink(missing_ok=True)  # whatever was not finished

    def _head(self) -> None:
        """NumPy leaves room in the header for the number of rows to grow."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        self.file.seek(0)
        npy.write_array_header_1_0(self.file, {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False,
                                               "shape": shape})  # fmt: skip
        self.start = self.file.tell()

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * (self.width or 1)

    def append(self, values: Any) -> None:
        self.file.write(np.ascontiguousarray(values, self.dtype).tobytes())
        self.rows += len(values)

    def put(self, row: int, values: Any) -> None:
        """Write rows from `row` on, also beyond the end."""
        self.file.seek(self.start + row * self.row_bytes)
        self.file.write(np.ascontiguousarray(values, self.dtype).tobytes())

    def get(self, row: int, count: int) -> Any:
        self.file.seek(self.start + row * self.row_bytes)
        values = np.frombuffer(self.file.read(count * self.row_bytes), self.dtype)
        return values if self.width is None else values.reshape(-1, self.width)

    def finish(self) -> Any:
        """The file under its name, memory-mapped."""
        self._head()
        self.file.close()
        self.partial.replace(self.path)
        return np.load(self.path, mmap_mode="r")


def _by_party(X: Writer, y: Writer, member: Writer, parties: int) -> Index:
    """Rows contiguous by party, in batches; how many each has."""
    batch = _batch(X.width or 1)
    sizes, last, sorted_already = np.zeros(parties, np.int64), 0, True
    for start in range(0, y.rows, batch):
        codes = member.get(start, batch)
        sizes += np.bincount(codes, minlength=parties)
        sorted_already &= bool(codes[0] >= last and np.all(codes[1:] >= codes[:-1]))
        last = codes[-1]
    if not sorted_already:
        for writer in (X, y):
            _reorder(writer, member, np.concatenate([[0], np.cumsum(sizes)[:-1]]), batch)
    return sizes


def _reorder(writer: Writer, member: Writer, next_row: Index, batch: int) -> None:
    with Writer(writer.path.with_suffix(".sorted"), writer.dtype.name, writer.width) as out:
        for start in range(0, writer.rows, batch):
            codes, values = member.get(start, batch), writer.get(start, batch)
            for k in np.unique(codes):
                mine = values[codes == k]
                out.put(int(next_row[k]), mine)
                next_row[k] += len(mine)
        writer.file, out.file = out.file, writer.file
        writer.partial, out.partial = out.partial, writer.partial
