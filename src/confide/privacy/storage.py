"""Where the ledger is kept: one SQLite file, synced at every commit, to which rows are only ever appended."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import sqlite3
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from confide.privacy.budget import Cost
from confide.privacy.events import Event, Kind
from confide.privacy.serialize import event_from_json

Key = tuple[str, str]  # run, party

APPLICATION = int.from_bytes(b"cfdl")  # tells a ledger from any other SQLite file
VERSION = 1

_TABLES = {
    "secret": "key BLOB NOT NULL",
    "budgets": "population TEXT NOT NULL, kind TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "calculus TEXT CHECK (calculus IN ('gaussian', 'zcdp', 'pure'))",
    "reservations": "population TEXT NOT NULL, run TEXT NOT NULL, party TEXT NOT NULL, kind TEXT NOT NULL, "
    "square REAL NOT NULL CHECK (square >= 0), pure REAL NOT NULL CHECK (pure >= 0)",
    "releases": "population TEXT NOT NULL, run TEXT NOT NULL, party TEXT NOT NULL, round INTEGER NOT NULL, "
    "method TEXT NOT NULL, guarantee TEXT NOT NULL, events TEXT NOT NULL, UNIQUE (population, run, party, round)",
    "costs": "release INTEGER NOT NULL REFERENCES releases, kind TEXT NOT NULL, "
    "square REAL NOT NULL CHECK (square >= 0), pure REAL NOT NULL CHECK (pure >= 0), UNIQUE (release, kind)",
    "fingerprints": "population TEXT NOT NULL, hash BLOB NOT NULL",
}
# INSERT OR REPLACE deletes rows without asking delete triggers: an insert that meets its own key aborts as well.
_KEYS = {
    "releases": "(population, run, party, round) = (NEW.population, NEW.run, NEW.party, NEW.round)",
    "costs": "(release, kind) = (NEW.release, NEW.kind)",
}


def _schema() -> Iterator[str]:
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for table, columns in _TABLES.items():
        yield f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, at TEXT NOT NULL, {columns})"
        for action in ("UPDATE", "DELETE"):
            yield f"CREATE TRIGGER {table}_{action} BEFORE {action} ON {table} {refuse}"
        same = f"id = NEW.id OR {_KEYS[table]}" if table in _KEYS else "id = NEW.id"
        yield f"CREATE TRIGGER {table}_REPLACE BEFORE INSERT ON {table} " \
              f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {refuse}"  # fmt: skip
    yield "CREATE INDEX reserved ON reservations (population, kind)"
    yield f"PRAGMA application_id = {APPLICATION}"
    yield f"PRAGMA user_version = {VERSION}"


class Connection(sqlite3.Connection):
    """A connection that remembers the costs it has read: rows never change, so only later ones need reading again."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.forget()

    def forget(self) -> None:
        self.last = 0
        self.costs: dict[tuple[str, str, str], dict[Key, array[float]]] = defaultdict(
            lambda: defaultdict(lambda: array("d"))
        )

    def catch_up(self) -> None:
        """Read the costs of releases that this process or another has charged since."""
        for row, population, kind, run, party, square, pure in self.execute(
            "SELECT costs.id, population, kind, run, party, square, pure FROM costs "
            "JOIN releases ON release = releases.id WHERE costs.id > ? ORDER BY costs.id", (self.last,),
        ):  # fmt: skip
            self.last = row
            self.costs[population, kind, "square"][run, party].append(square)
            self.costs[population, kind, "pure"][run, party].append(pure)


@dataclass(frozen=True)
class Entry:
    """One charged release."""

    population: str
    run: str
    party: str
    round: int
    at: str  # UTC
    method: str
    guarantee: str
    text: str = field(repr=False)  # the events as JSON
    costs: dict[Kind, Cost] = field(kw_only=True)

    @property
    def events(self) -> tuple[Event, ...]:
        return events_of(self.text)


def append(db: Connection, table: str, **values: object) -> int:
    """Add one row, stamped with the time; its id."""
    row = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **values}
    if isinstance(kind := row.get("kind"), tuple):
        row["kind"] = kind_text(kind)
    marks = ", ".join("?" * len(row))
    done = db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    assert done.lastrowid is not None
    return done.lastrowid


# --- questions, inside a transaction ----------------------------------------------------------------------------------


def kind_text(kind: Kind) -> str:
    """A kind as a column holds it."""
    return json.dumps(list(kind), ensure_ascii=False)


@lru_cache
def kind_of(text: str) -> Kind:
    unit, adjacency, adversary = json.loads(text)
    return unit, adjacency, adversary


def budget_of(db: Connection, population: str, kind: Kind) -> tuple[float, float, str | None] | None:
    """ε, δ and calculus in force: the last row; no calculus before the first release."""
    found: tuple[float, float, str | None] | None = db.execute(
        "SELECT epsilon, delta, calculus FROM budgets WHERE (population, kind) = (?, ?) ORDER BY id DESC LIMIT 1",
        (population, kind_text(kind)),
    ).fetchone()
    return found


def kinds_of(db: Connection, population: str) -> list[Kind]:
    """Every kind that has a budget."""
    rows = db.execute("SELECT kind FROM budgets WHERE population = ? GROUP BY 1 ORDER BY min(id)", (population,))
    return [kind_of(text) for (text,) in rows]


def spent_by(db: Connection, population: str, kind: Kind, calculus: str) -> dict[Key, float]:
    """Charged by each run, summed afresh and correctly rounded each time."""
    db.catch_up()
    return {key: math.fsum(values) for key, values in db.costs[population, kind_text(kind), _sum(calculus)].items()}


def reserved_by(db: Connection, population: str, kind: Kind, calculus: str) -> dict[Key, float]:
    """Reserved by each run: its last row counts."""
    rows = db.execute(f"SELECT run, party, {_sum(calculus)} FROM reservations WHERE (population, kind) = (?, ?) "
                      "ORDER BY id", (population, kind_text(kind)))  # fmt: skip
    return {(run, party): amount for run, party, amount in rows}


def entries_of(db: Connection, population: str) -> list[Entry]:
    """Every charged release, in order."""
    costs: dict[int, dict[Kind, Cost]] = defaultdict(dict)
    for release, kind, *sums in db.execute(
        "SELECT release, kind, square, pure FROM costs JOIN releases ON release = releases.id WHERE population = ?",
        (population,),
    ):
        costs[release][kind_of(kind)] = Cost(*sums)
    rows = db.execute("SELECT id, population, run, party, round, at, method, guarantee, events FROM releases "
                      "WHERE population = ? ORDER BY id", (population,))  # fmt: skip
    return [Entry(*row, costs=costs[release]) for release, *row in rows]


def events_of(text: str) -> tuple[Event, ...]:
    return tuple(event_from_json(e) for e in json.loads(text))


def _sum(calculus: str) -> str:
    return "pure" if calculus == "pure" else "square"


class Store:
    """A connection to the file at `path` with transactions that are durable when they end."""

    def __init__(self, path: Path, *, create: bool, timeout: float) -> None:
        self.path, self.timeout = path, timeout
        if create:
            self._make()
        elif not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such ledger", str(path))
        self._open()

    def close(self) -> None:
        self._db.close()

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that alone may write; what it appends is on disk when it ends, or not there at all."""
        return self._transaction("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[Connection]:
        """One consistent view."""
        return self._transaction("BEGIN")

    def sync(self) -> None:
        """Bring to disk what was read: its writer may have died between its write and its sync."""
        with open(f"{os.path.realpath(self.path)}-wal", "r+b") as log:  # SQLite holds no lock on this file to lose
            os.fsync(log.fileno())

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        if self._pid != os.getpid():  # a connection must not cross a fork; the parent's stays open there
            self._inherited = self._db
            self._open()
        with self._lock, self._one_line():
            self._db.execute(begin)
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                self._db.forget()  # it may have read rows that now never were
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    # --- opening ----------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        """An empty file that only its owner may read, whose name survives a power loss."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            if hasattr(os, "O_DIRECTORY"):  # Windows has none, and needs none
                folder = os.open(self.path.parent, os.O_DIRECTORY)
                os.fsync(folder)
                os.close(folder)

    def _open(self) -> None:
        self._pid, self._lock = os.getpid(), threading.RLock()
        with self._one_line():
            self._db = sqlite3.connect(self.path, self.timeout, isolation_level=None, check_same_thread=False,
                                       factory=Connection)  # fmt: skip
            try:
                for pragma in ("synchronous = EXTRA", "fullfsync = ON", "checkpoint_fullfsync = ON"):
                    self._db.execute(f"PRAGMA {pragma}")
                if self._is_new():
                    self._create()
                self._check()
                self._use_wal()
            except BaseException:
                self._db.close()
                raise

    def _value(self, sql: str) -> object:
        return self._db.execute(sql).fetchone()[0]

    def _is_new(self) -> bool:
        return self._value("SELECT count(*) FROM sqlite_master") == 0 == self._value("PRAGMA application_id")

    def _create(self) -> None:
        self._db.execute("BEGIN EXCLUSIVE")
        if self._is_new():  # still, now that nobody else can write
            for statement in _schema():
                self._db.execute(statement)
            append(self._db, "secret", key=secrets.token_bytes(32))
        self._db.execute("COMMIT")

    def _check(self) -> None:
        if self._value("PRAGMA application_id") != APPLICATION:
            raise ValueError(f"{self.path}: not a ledger")
        if (version := self._value("PRAGMA user_version")) != VERSION:
            raise ValueError(f"{self.path}: a ledger of version {version}, this program reads version {VERSION}")
        if self._value("PRAGMA quick_check(1)") != "ok":
            raise ValueError(f"{self.path}: not a ledger, or damaged")

    def _use_wal(self) -> None:
        """Switching a new file to WAL needs it alone, and SQLite does not wait for that: so we do."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                mode = self._value("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise OSError(f"{self.path}: write-ahead logging does not work here: keep the ledger on a local disk")

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise TimeoutError(f"{self.path}: another process is using it, for {self.timeout:g} s now") from None
            raise OSError(f"{self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise  # a mistake of ours
            raise ValueError(f"{self.path}: not a ledger, or damaged") from None
