"""Randomised records, as users hand them over: checked against the public schema, stored, read for training.

    with RecordStore("records.db", schema, task="flu", epsilon=(0.5, 8.0)) as store:
        receipt = ingest(open("records.jsonl"), store)
        shards = store.shards("mercy")                # with each user's ε in the column "epsilon"

A record is a line of JSON: {"id": …, "task": …, "epsilon": …, "features": {column: value}, "label": …}. The store only
ever grows, so that its first records are the same rows for ever. A refusal names the line and the field, never a value.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from confide.errors import ConfideError
from confide.problem.checks import finite
from confide.problem.shards import Shards
from confide.schema.encode import encode
from confide.schema.reader import Writer
from confide.schema.schema import Schema

APPLICATION = int.from_bytes(b"cfdr")  # tells a store of records from any other SQLite file
FIELDS = ("id", "task", "epsilon", "features", "label")
LONGEST = 1 << 20  # characters of a record
BATCH = 1024

_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END"
_TABLES = f"""
CREATE TABLE terms (one INTEGER PRIMARY KEY CHECK (one = 1), task TEXT, schema TEXT, lowest REAL, highest REAL);
CREATE TABLE records (at INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, x BLOB NOT NULL, y REAL NOT NULL,
                      epsilon REAL NOT NULL);
CREATE TRIGGER terms_kept BEFORE UPDATE ON terms {_REFUSE};
CREATE TRIGGER terms_left BEFORE DELETE ON terms {_REFUSE};
CREATE TRIGGER kept BEFORE UPDATE ON records {_REFUSE};
CREATE TRIGGER left BEFORE DELETE ON records {_REFUSE};
CREATE TRIGGER not_replaced BEFORE INSERT ON records
    WHEN EXISTS (SELECT 1 FROM records WHERE id = NEW.id OR at = NEW.at) {_REFUSE};
PRAGMA application_id = {APPLICATION};
"""


class Receipt(NamedTuple):
    """Records stored, records that were there already, and (line, what) of those refused."""

    stored: int
    repeated: int
    refused: list[tuple[int, str]]


class Record(NamedTuple):
    """A record whose every field but the features and the label has been checked."""

    line: int
    id: str
    epsilon: float
    features: dict[str, Any]
    label: Any


class RecordStore:
    """One task's records in one file. Task, schema and the ε that users may choose are fixed when it is made."""

    def __init__(self, path: str | Path, schema: Schema, task: str, epsilon: tuple[float, float]) -> None:
        if schema.label.kind == "real":
            raise ConfideError("a real label can't be randomised: the schema's label must be binary or classes")
        low, high = epsilon
        if not (finite(low) and finite(high) and 0 < low <= high <= 100):
            raise ConfideError(f"epsilon={epsilon}: must be (smallest, largest), above 0 and at most 100")
        self.path, self.schema, self.task = Path(path), schema, task
        self.lowest, self.highest = float(low), float(high)
        if not self.path.exists():
            self.path.touch(mode=0o600)
        self._db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._db.close()
            if isinstance(error, sqlite3.OperationalError):
                raise OSError(f"{self.path}: {error}") from None
            raise ConfideError(f"{self.path}: not a store of records, or damaged") from None
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def load(cls, path: str | Path, schema: Schema) -> RecordStore:
        """The store in a file, of whatever task and range it was made for; its records must be of this schema."""
        if not is_store(path):
            raise ConfideError(f"{path}: not a store of records")
        db = sqlite3.connect(path, timeout=30)
        try:
            task, low, high = db.execute("SELECT task, lowest, highest FROM terms").fetchone()
        except (sqlite3.DatabaseError, TypeError):
            raise ConfideError(f"{path}: not a store of records, or damaged") from None
        finally:
            db.close()
        return cls(path, schema, task, (low, high))

    def _open(self) -> None:
        self._db.execute("PRAGMA synchronous = EXTRA")
        terms = (self.task, self.schema.hash(), self.lowest, self.highest)
        with self.writing() as db:
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for statement in re.split(r";\n", _TABLES.strip().rstrip(";")):
                    db.execute(statement)
                db.execute("INSERT INTO terms VALUES (1, ?, ?, ?, ?)", terms)
            if db.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
                raise ConfideError(f"{self.path}: not a store of records")
            kept = db.execute("SELECT task, schema, lowest, highest FROM terms").fetchone()
        for name, mine, theirs in zip(("task", "schema", "smallest epsilon", "largest epsilon"), terms, kept,
                                      strict=True):  # fmt: skip
            if mine != theirs:
                raise ConfideError(f"{self.path}: holds records of another {name}")

    def __enter__(self) -> RecordStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM records").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on disk when it ends, or not at all."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def shards(self, party: str, work: str | Path | None = None, rows: int | None = None) -> Shards:
        """All records, or the first `rows`, as one party's rows, in the order they came.

        With `work` they are memory-mapped in that folder.
        """
        found, width = len(self), len(self.schema.features)
        if found == 0:
            raise ConfideError(f"{self.path}: no records yet")
        rows = found if rows is None else rows
        if rows > found:
            raise ConfideError(f"{self.path}: {found} records, not yet the {rows} that {party} promised")
        X, y, epsilon = np.empty((0 if work else rows, width)), np.empty(rows), np.empty(rows)
        with ExitStack() as stack:
            writer = stack.enter_context(self._writer(Path(work), width)) if work else None
            kept = self._db.execute("SELECT x, y, epsilon FROM records ORDER BY at LIMIT ?", (rows,))
            for start in range(0, rows, BATCH):
                xs, ys, eps = zip(*kept.fetchmany(BATCH), strict=True)
                part = np.frombuffer(b"".join(xs), "<f8").reshape(-1, width)
                y[start : start + BATCH], epsilon[start : start + BATCH] = ys, eps
                if writer is None:
                    X[start : start + BATCH] = part
                else:
                    writer.append(part)
            X = X if writer is None else writer.finish()
        ends = np.array([0, rows], np.int64)
        return Shards.checked(X, y, ends, (party,), {"epsilon": epsilon}, self.schema.row_norm)

    def _writer(self, folder: Path, width: int) -> Writer:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Writer(folder / f"{self.path.name}.X.npy", "float64", width)


def is_store(path: str | Path) -> bool:
    """Whether a file is a store of records, by the application id in SQLite's header."""
    with Path(path).open("rb") as file:
        head = file.read(72)
    return head[:16] == b"SQLite format 3\0" and head[68:] == APPLICATION.to_bytes(4)


def lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; of one that is too long for a record only its beginning, however long it is."""
    while line := file.readline(LONGEST + 2):
        rest = line
        while len(rest) == LONGEST + 2 and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST + 2)
        yield line


def ingest(records: Iterable[str | bytes], store: RecordStore) -> Receipt:
    """Check records, one JSON line each, and store those that fit; the others are refused by line and field."""
    numbered, total = enumerate(records, 1), Receipt(0, 0, [])
    while chunk := list(islice(numbered, BATCH)):
        stored, repeated, refused = _batch(chunk, store)
        total = Receipt(total.stored + stored, total.repeated + repeated, total.refused + refused)
    return total


def _batch(chunk: list[tuple[int, str | bytes]], store: RecordStore) -> Receipt:
    good: list[Record] = []
    refused: list[tuple[int, str]] = []
    for line, text in chunk:
        if text.strip():
            try:
                good.append(_parsed(line, text, store))
            except ConfideError as error:
                refused.append((line, str(error)))
    names = [c.name for c in store.schema.read]
    columns = {name: [r.features[name] for r in good] for name in names}
    columns[store.schema.label.name] = [r.label for r in good]
    rows = encode(store.schema, columns, len(good))
    flaws = {f.row: f for f in reversed(rows.flaws)}
    stored = repeated = 0
    with store.writing() as db:
        for i, r in enumerate(good):
            if i in flaws:
                refused.append((r.line, f"field {flaws[i].column!r}: {flaws[i].what}"))
                continue
            row = (rows.X[i].astype("<f8").tobytes(), float(rows.y[i]), r.epsilon)
            kept = db.execute("SELECT x, y, epsilon FROM records WHERE id = ?", (r.id,)).fetchone()
            if kept is None:
                db.execute("INSERT INTO records (id, x, y, epsilon) VALUES (?, ?, ?, ?)", (r.id, *row))
                stored += 1
            elif kept == row:
                repeated += 1
            else:
                refused.append((r.line, "field 'id': another record has it; a person answers a task once"))
    return Receipt(stored, repeated, sorted(refused))


def _parsed(line: int, text: str | bytes, store: RecordStore) -> Record:
    """Every field checked that the schema's encoder does not check."""
    if len(text) > LONGEST:
        raise ConfideError(f"longer than {LONGEST} characters")
    try:
        found = json.loads(text, parse_constant=_no, object_pairs_hook=_once)
    except (ValueError, RecursionError):  # its message may quote the record
        raise ConfideError("not a JSON object with each field once") from None
    _exactly(found, FIELDS, "field")
    _exactly(found["features"], tuple(c.name for c in store.schema.read), "column of 'features'")
    if not isinstance(found["id"], str) or not re.fullmatch(r"[0-9a-f]{64}", found["id"]):
        raise ConfideError("field 'id': must be 64 hexadecimal digits")
    if found["task"] != store.task:
        raise ConfideError("field 'task': another task than the store's")
    epsilon = found["epsilon"]
    if not (finite(epsilon) and store.lowest <= epsilon <= store.highest):
        raise ConfideError(f"field 'epsilon': must be a number from {store.lowest:g} to {store.highest:g}")
    for name, value in (*found["features"].items(), ("label", found["label"])):
        if isinstance(value, dict | list):
            raise ConfideError(f"field {name!r}: must be one value")
    return Record(line, found["id"], float(epsilon), found["features"], found["label"])


def _exactly(table: Any, names: tuple[str, ...], what: str) -> None:
    if not isinstance(table, dict):
        raise ConfideError(f"no {what}: must be an object with {', '.join(names)}")
    for name in names:
        if name not in table:
            raise ConfideError(f"no {what} {name!r}: there must be {', '.join(names)}")
    if len(table) > len(names):  # the stranger's name for it may itself tell something
        raise ConfideError(f"an unknown {what}: there must be only {', '.join(names)}")


def _no(_: str) -> NoReturn:
    raise ValueError


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)
