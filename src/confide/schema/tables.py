"""CSV and Parquet files in batches, so that a file may be larger than memory.

The standard library's reader says what a CSV file means; where pyarrow is installed it reads larger files, much faster,
as long as records are well formed, and gives way to the standard library at the first that is not. Errors name a file
and a place, never a value: not even a header's, which is a row of data in a file without one.
"""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from confide.errors import ConfideError, MissingExtra

SEPARATORS = ";\t|"  # of files that other programs call CSV
BLOCK = 1 << 20  # bytes of CSV that Arrow reads at once
SMALL = 1 << 20  # bytes of CSV that are read (in 0.15 s) before pyarrow, and pandas with it, would be loaded


class Batch(NamedTuple):
    """Some rows: each column a list of texts or an Arrow array, and what is wrong with rows that could not be cut."""

    rows: int
    columns: dict[str, Any]
    broken: dict[int, str]


def is_parquet(path: Path) -> bool:
    """By its first bytes."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def header(path: Path) -> list[str]:
    """The columns' names, in order, each once."""
    if is_parquet(path):
        with _parquet(path) as file:
            names = [str(n) for n in file.schema_arrow.names]
    else:
        names = [n.strip() for n in _raw_header(path)]
        if len(names) == 1 and any(mark in names[0] for mark in SEPARATORS):
            raise ConfideError(
                f"{path}: the header is one field, with semicolons or tabs in it: separate fields by commas"
            )
    if not all(map(is_unicode, names)):
        raise ConfideError(f"{path}: the header is not UTF-8: save the file as UTF-8")
    for j, name in enumerate(names):
        if not name:
            raise ConfideError(
                f"{path}: column {j + 1} of the header has no name: name it, or take it out (pandas: index=False), "
                "or put a header above the rows"
            )
        if name in names[:j]:
            raise ConfideError(f"{path}: columns {names.index(name) + 1} and {j + 1} of the header have the same name")
    return names


def is_unicode(text: str) -> bool:
    """Whether a field was UTF-8: bytes that are not are read as lone surrogates."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def batches(path: Path, names: Sequence[str], rows: int) -> Iterator[Batch]:
    """The named columns of all rows, at most `rows` of them at a time."""
    known = header(path)
    if lacking := [n for n in names if n not in known]:
        raise ConfideError(f"{path}: no column {lacking[0]!r} in the header, the schema declares it")
    return _parquet_batches(path, names, rows) if is_parquet(path) else _csv_batches(path, names, rows)


def places(path: Path, rows: Collection[int]) -> dict[int, str]:
    """Where rows, counted from 0, are in the file: the line on which each begins, or in Parquet the row from 1 on."""
    if is_parquet(path):
        return {i: f"row {i + 1}" for i in rows}
    if not rows:
        return {}
    found = ((i, line) for i, (line, _) in enumerate(islice(_records(path), 1, max(rows) + 2)))
    return {i: f"line {line}" for i, line in found if i in rows}


# --- CSV --------------------------------------------------------------------------------------------------------------


def _records(path: Path) -> Iterator[tuple[int, list[str] | None]]:
    """Every record, the header too, with the line it begins on; None for one that can't be read."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader, line = csv.reader(file), 1
        while True:
            try:
                record: list[str] | None = next(reader)
            except StopIteration:
                return
            except csv.Error:
                record = None
            if record != []:  # an empty line
                yield line, record
            line = reader.line_num + 1


def _raw_header(path: Path) -> list[str]:
    first = next(_records(path), None)
    if first is None:
        raise ConfideError(f"{path}: an empty file, without even a header")
    if first[1] is None:
        raise ConfideError(f"{path}, line 1: the header can't be read: it must be names, separated by commas")
    return first[1]


def _csv_batches(path: Path, names: Sequence[str], rows: int) -> Iterator[Batch]:
    done = 0
    if (pa := _arrow(path)) is not None:
        try:
            for batch in _arrow_csv(path, names, rows):
                yield batch
                done += batch.rows
            return
        except pa.ArrowException:  # a malformed record, or text that is not UTF-8; its message may hold values
            pass
    yield from _plain_csv(path, names, rows, done)


def _arrow(path: Path) -> Any:
    """pyarrow, if it is installed and the file is worth it."""
    if path.stat().st_size < SMALL:
        return None
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def _arrow_csv(path: Path, names: Sequence[str], rows: int) -> Iterator[Batch]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    raw = {n.strip(): n for n in _raw_header(path)}
    with arrow.open_csv(
        path,
        arrow.ReadOptions(use_threads=False, block_size=BLOCK),
        arrow.ParseOptions(newlines_in_values=True),
        arrow.ConvertOptions(column_types={n: pa.string() for n in raw.values()}, strings_can_be_null=False,
                             include_columns=[raw[n] for n in names]),
    ) as reader:  # fmt: skip
        for block in reader:
            yield from _slices(block, names, rows)


def _plain_csv(path: Path, names: Sequence[str], rows: int, skip: int = 0) -> Iterator[Batch]:
    known = header(path)
    where = [known.index(n) for n in names]
    blank = [""] * len(known)
    records = islice(_records(path), 1 + skip, None)
    while chunk := [record for _, record in islice(records, rows)]:
        broken: dict[int, str] = {}
        for i, record in enumerate(chunk):
            if record is None or len(record) != len(known):
                broken[i] = "unreadable" if record is None else f"{len(record)} fields, the header has {len(known)}"
                chunk[i] = blank
        yield Batch(len(chunk), {n: [r[j] for r in chunk if r] for n, j in zip(names, where, strict=True)}, broken)


# --- Parquet ----------------------------------------------------------------------------------------------------------


def _parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("reading Parquet needs pyarrow: pip install 'confide[parquet]'") from None
    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=BLOCK)
    except pa.ArrowException:
        raise _damaged(path) from None


def _damaged(path: Path) -> ConfideError:
    return ConfideError(f"{path}: not a Parquet file, or damaged")


def _parquet_batches(path: Path, names: Sequence[str], rows: int) -> Iterator[Batch]:
    import pyarrow as pa

    with _parquet(path) as file:
        try:
            for block in file.iter_batches(rows, columns=list(names), use_threads=False):
                yield from _slices(block.select(list(names)), names, rows)
        except (pa.ArrowException, OSError):
            raise _damaged(path) from None


def _slices(block: Any, names: Sequence[str], rows: int) -> Iterator[Batch]:
    for start in range(0, block.num_rows, rows):
        part = block.slice(start, rows)
        yield Batch(part.num_rows, dict(zip(names, part.columns, strict=True)), {})
