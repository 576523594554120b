"""Where the ledger is kept: one SQLite file, synced at every commit, to which rows are only ever appended."""

from __future__ import annotations

import errno
import json
import os
import secrets
import sqlite3
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.files import sync_folder
from confide.privacy.budget import Cost, added
from confide.privacy.chain import Chain, Damaged, Head
from confide.privacy.events import Event, Kind
from confide.privacy.serialize import event_from_json
from confide.privacy.tables import APPLICATION, VERSION, expected, migrate, schema, written

Key = tuple[str, str]  # run, party


class Connection(sqlite3.Connection):
    """A connection that remembers the costs it has read: rows never change, so only later ones need reading again."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.chain = Chain()
        self.forget()

    def forget(self) -> None:
        self.last = 0
        self.costs: dict[tuple[str, str, str], dict[Key, array[float]]] = defaultdict(
            lambda: defaultdict(lambda: array("d"))
        )

    def catch_up(self) -> None:
        """Read the costs of releases that this process or another has charged since."""
        for row, population, kind, run, party, *cost in self.execute(
            "SELECT costs.id, population, kind, run, party, square, pure, slack FROM costs "
            "JOIN releases ON release = releases.id WHERE costs.id > ? ORDER BY costs.id", (self.last,),
        ):  # fmt: skip
            self.last = row
            for name, value in zip(Cost._fields, cost, strict=True):
                self.costs[population, kind, name][run, party].append(value)


@dataclass(frozen=True)
class Entry:
    """One charged release."""

    population: str
    run: str
    party: str
    round: int
    attempt: int  # 1, unless the round's noise had to be drawn again
    at: str  # UTC
    method: str
    guarantee: str
    text: str = field(repr=False)  # the events as JSON
    costs: dict[Kind, Cost] = field(kw_only=True)

    @property
    def events(self) -> tuple[Event, ...]:
        return events_of(self.text)


@dataclass(frozen=True)
class Budget:
    """What the owner allows, as it is in force."""

    epsilon: float
    delta: float
    calculus: str | None  # None before the first release
    slack: float | None  # total variation held for secure noise; None before the first release that has any


@dataclass(frozen=True)
class Hold:
    """What one run has reserved and not spent, in the sums of its budget."""

    population: str
    kind: Kind
    run: str
    party: str
    at: str  # UTC: since when
    amount: float
    slack: float


def append(db: Connection, table: str, **values: object) -> int:
    """Add one row, stamped with the time and chained; its id."""
    row = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "link": db.chain.head.rows + 1, **values}
    if isinstance(kind := row.get("kind"), tuple):
        row["kind"] = kind_text(kind)
    marks = ", ".join("?" * len(row))
    done = db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    assert done.lastrowid is not None
    db.chain.append(db, table, done.lastrowid)
    return done.lastrowid


# --- questions, inside a transaction ----------------------------------------------------------------------------------


def kind_text(kind: Kind) -> str:
    """A kind as a column holds it."""
    return json.dumps(list(kind), ensure_ascii=False)


@lru_cache
def kind_of(text: str) -> Kind:
    unit, adjacency, adversary = json.loads(text)
    return unit, adjacency, adversary


def budget_of(db: Connection, population: str, kind: Kind) -> Budget | None:
    """The budget in force: the last row."""
    found = db.execute(
        "SELECT epsilon, delta, calculus, slack FROM budgets WHERE (population, kind) = (?, ?) ORDER BY id DESC "
        "LIMIT 1", (population, kind_text(kind)),
    ).fetchone()  # fmt: skip
    return None if found is None else Budget(*found)


def kinds_of(db: Connection, population: str, table: str = "budgets") -> list[Kind]:
    """Every kind that has a budget, or a row in another table."""
    rows = db.execute(f"SELECT kind FROM {table} WHERE population = ? GROUP BY 1 ORDER BY min(id)", (population,))
    return [kind_of(text) for (text,) in rows]


def spent_by(db: Connection, population: str, kind: Kind, column: str) -> dict[Key, float]:
    """Charged by each run, summed afresh and correctly rounded each time."""
    db.catch_up()
    return {key: added(values) for key, values in db.costs[population, kind_text(kind), column].items()}


def reserved_by(db: Connection, population: str, kind: Kind) -> dict[Key, tuple[str, Cost]]:
    """Reserved by each run, and when: its last row counts."""
    rows = db.execute("SELECT run, party, at, square, pure, slack FROM reservations WHERE (population, kind) = (?, ?) "
                      "ORDER BY id", (population, kind_text(kind)))  # fmt: skip
    return {(run, party): (at, Cost(*sums)) for run, party, at, *sums in rows}


def entries_of(db: Connection, population: str) -> list[Entry]:
    """Every charged release, in order."""
    costs: dict[int, dict[Kind, Cost]] = defaultdict(dict)
    for release, kind, *sums in db.execute(
        "SELECT release, kind, square, pure, slack FROM costs JOIN releases ON release = releases.id "
        "WHERE population = ?", (population,),
    ):  # fmt: skip
        costs[release][kind_of(kind)] = Cost(*sums)
    rows = db.execute("SELECT id, population, run, party, round, attempt, at, method, guarantee, events FROM releases "
                      "WHERE population = ? ORDER BY id", (population,))  # fmt: skip
    return [Entry(*row, costs=costs[release]) for release, *row in rows]


def last_of_others(db: Connection, run: str, party: str, after: int) -> tuple[Head | None, bool]:
    """The last row beyond number `after` that is neither this run's nor a note, and whether any of them is a release.

    Budgets count as others' rows: the owner wrote them.
    """
    found, released = None, False
    for number, tag, place in db.execute(
        "SELECT chain.id, chain.tag, place FROM chain "
        "LEFT JOIN costs ON place = 'costs' AND costs.id = row "
        "LEFT JOIN releases ON releases.id = CASE place WHEN 'releases' THEN row WHEN 'costs' THEN costs.release END "
        "LEFT JOIN reservations ON place = 'reservations' AND reservations.id = row "
        "WHERE chain.id > ? AND place <> 'notes' AND (coalesce(releases.run, reservations.run), "
        "coalesce(releases.party, reservations.party)) IS NOT (?, ?) ORDER BY chain.id", (after, run, party),
    ):  # fmt: skip
        found, released = Head(number, tag), released or place == "releases"
    return found, released


def events_of(text: str) -> tuple[Event, ...]:
    return tuple(event_from_json(e) for e in json.loads(text))


# What a disk or a permission does, not the content of the file.
_TROUBLE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL)  # fmt: skip


class Store:
    """A connection to the file at `path` with transactions that are durable when they end."""

    def __init__(self, path: Path, *, create: bool, timeout: float) -> None:
        self.path, self.timeout = path, timeout
        self._file: tuple[int, int] | None = None
        if not path.exists():
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such ledger", str(path))
            self._make()
        self._open()

    def close(self) -> None:
        self._db.close()

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that alone may write; what it appends is on disk when it ends, or not there at all.

        One inside another, of the same thread, is part of it.
        """
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
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute(begin)
            verified = self._db.chain.copy()
            try:
                self._check_place()
                self._verify(self._db.chain.advance)  # what others have written since
                yield self._db
                self._check_place()
                self._db.execute("COMMIT")
            except BaseException:
                self._db.forget()  # it may have read rows that now never were
                self._db.chain = verified
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _verify(self, check: Callable[[Connection], None]) -> None:
        """Damage as one line, whatever it is that damaged rows make of us."""
        try:
            check(self._db)
        except (ValueError, TypeError, ArithmeticError, LookupError) as error:
            words = error if str(error).startswith("damaged") else "damaged"
            raise Damaged(f"{self.path}: {words}; restore the newest copy") from None

    def _check_place(self) -> None:
        """The open file must be the one at the path: what is written to another is lost to all who look there."""
        try:
            there = self._identity()
        except FileNotFoundError:
            there = None
        if there != self._file:
            raise ConfideError(
                f"{self.path}: the ledger was moved, removed or replaced while it was open: put it back "
                "and open it again"
            )

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    # --- opening ----------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        """An empty ledger that only its owner may read, there whole or not at all, even after a power loss.

        So a file without content is never a new ledger, but one that was emptied.
        """
        target = Path(os.path.realpath(self.path))
        if target.with_name(f"{target.name}-wal").exists() and not target.exists():
            raise ConfideError(
                f"{self.path}: the ledger is missing and its log is there, {target.name}-wal: put the "
                "ledger back, or, if it is lost, remove the log"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with self._one_line():
                db = self._connected(part)
                try:
                    db.execute("BEGIN EXCLUSIVE")
                    for statement in schema():
                        db.execute(statement)
                    append(db, "secret", key=secrets.token_bytes(32))
                    db.execute("COMMIT")
                finally:
                    db.close()
            with suppress(FileExistsError):  # another process was first: its ledger it is
                os.link(part, target)
        finally:
            part.unlink()
        sync_folder(target.parent)

    def _connected(self, path: Path) -> Connection:
        """A connection to a file that is there; what it writes is on disk when a transaction ends."""
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", timeout=self.timeout, isolation_level=None,
                             check_same_thread=False, factory=Connection, uri=True)  # fmt: skip
        for pragma in ("synchronous = EXTRA", "fullfsync = ON", "checkpoint_fullfsync = ON"):
            db.execute(f"PRAGMA {pragma}")
        return db

    def _open(self) -> None:
        self._pid, self._lock = os.getpid(), threading.RLock()
        if self.path.is_file() and self.path.stat().st_size == 0:
            raise Damaged(f"{self.path}: damaged, or not a ledger: it is empty; restore the newest copy")
        with self._one_line():
            self._file = self._file or self._identity()  # after a fork, the same file as before
            self._db = self._connected(self.path)
            try:
                self._check()
                self._use_wal()
                self._check_place()
            except BaseException:
                self._db.close()
                raise

    def _value(self, sql: str) -> object:
        return self._db.execute(sql).fetchone()[0]

    def _check(self) -> None:
        """Refuse what is no ledger or is damaged: its pages, its tables, and every row by the chain."""
        if self._value("PRAGMA application_id") != APPLICATION:
            raise ConfideError(f"{self.path}: not a ledger")
        version = self._value("PRAGMA user_version")
        if version not in (1, VERSION):
            raise ConfideError(f"{self.path}: a ledger of version {version}, this program reads version {VERSION}")
        if self._value("PRAGMA integrity_check(1)") != "ok":
            raise Damaged(f"{self.path}: not a ledger, or damaged")
        if version == 1:
            self._migrate()
        self._db.execute("BEGIN")
        if written(self._db) != expected():
            raise Damaged(f"{self.path}: damaged: its tables are not a ledger's; restore the newest copy")
        self._verify(self._db.chain.complete)
        self._db.execute("COMMIT")

    def _migrate(self) -> None:
        """A file of version 1 gets attempts, slack and a chain, all in one transaction.

        The chain begins here: it vouches for the older rows as they were found, not as they were written.
        """
        self._db.execute("BEGIN EXCLUSIVE")
        if self._value("PRAGMA user_version") == 1:  # still
            try:
                migrate(self._db)
                for table in self._db.chain.last:
                    for (row,) in self._db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall():
                        self._db.chain.append(self._db, table, row)
            except (sqlite3.IntegrityError, TypeError):
                raise Damaged(f"{self.path}: damaged: a row of it is not what a ledger holds") from None
            rows = self._db.chain.head.rows
            append(self._db, "notes", text=f"brought from version 1: the chain begins here, with {rows} older rows")
        self._db.execute("COMMIT")
        self._db.chain = Chain()

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
        except UnicodeDecodeError:
            raise Damaged(f"{self.path}: damaged: a text in it is none; restore the newest copy") from None
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise TimeoutError(f"{self.path}: another process is using it, for {self.timeout:g} s now") from None
            if code in _TROUBLE:
                raise OSError(f"{self.path}: {error}") from None
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise  # a mistake of ours
            raise Damaged(f"{self.path}: not a ledger, or damaged") from None
