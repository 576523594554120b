"""The chain: one keyed checksum over every row of a ledger in the order of writing, so that damage is seen.

    tag_0 = 32 zeros;   tag_n = HMAC-SHA256(key, tag_(n-1) | text of (table, id, at, …))      key from the file's secret

A tag vouches for all rows up to its own, for their order, and for the secret, whose row is the first. Rows are read
as SQLite returns them, so a flipped bit anywhere in a record, its type included, changes what is hashed. Every row of
every table must be in the chain exactly once.

It is a checksum and no signature: the key lies in the same file, and who may write there can write another history.
Nor does it see that *all* of the file is an older copy, or that the last commits are gone with a damaged `-wal` log
(SQLite takes a frame whose checksum fails for the end of the log, as after a power failure). Both show only beside a
`Head` that was kept elsewhere: a node keeps one beside its journal.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from confide.errors import ConfideError
from confide.privacy.tables import TABLES

START = bytes(32)
KEY = 3  # where a row of the secret holds it: after id, at and link


class Damaged(ConfideError):
    """A file of ours that is not as it was written: restore it."""


class Head(NamedTuple):
    """How far a ledger has come: it continues this head if row number `rows` of its chain has this `tag`."""

    rows: int = 0
    tag: bytes = START


class Chain:
    """What is verified so far of the chain behind one connection."""

    def __init__(self) -> None:
        self.head, self.last = Head(), dict.fromkeys(TABLES, 0)  # `last`: of each table, the id of its last row
        self._keyed: tuple[Any, Any] | None = None

    def copy(self) -> Chain:
        other = Chain()
        other.head, other.last, other._keyed = self.head, dict(self.last), self._keyed
        return other

    def link(self, table: str, row: tuple[Any, ...]) -> Head:
        """The head with one row more."""
        if table == "secret":
            self._keyed = _keyed(hmac.digest(row[KEY], b"confide ledger chain", "sha256"))
        if self._keyed is None:
            raise ConfideError("damaged: its secret is missing")
        # ascii() of numbers, texts, bytes and None tells all of them apart and is the same in every version of Python
        inner, outer = (part.copy() for part in self._keyed)
        inner.update(self.head.tag + ascii((table, *row)).encode())
        outer.update(inner.digest())
        self.head, self.last[table] = Head(self.head.rows + 1, outer.digest()), row[0]
        return self.head

    def append(self, db: sqlite3.Connection, table: str, row: int) -> None:
        """Chain a row that was just written, in the same transaction."""
        (found,) = db.execute(f"SELECT * FROM {table} WHERE id = ?", (row,))
        head = self.link(table, found)
        db.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", (head.rows, table, row, head.tag))

    def advance(self, db: sqlite3.Connection) -> None:
        """Verify what is new; ValueError where a row is not what its tag says."""
        rows: dict[str, Iterator[tuple[Any, ...]]] = {}
        for number, table, row, tag in db.execute("SELECT * FROM chain WHERE id > ? ORDER BY id", (self.head.rows,)):
            if table not in rows:
                if table not in TABLES:
                    raise ConfideError("damaged: its chain names no table")
                rows[table] = db.execute(f"SELECT * FROM {table} WHERE id > ? ORDER BY id", (self.last[table],))
            found = next(rows[table], None)
            if number != self.head.rows + 1 or found is None or found[0] != row or self.link(table, found).tag != tag:
                raise ConfideError(f"damaged: row {number} of its chain is not what was written")

    def complete(self, db: sqlite3.Connection) -> None:
        """Verify, too, that no row stands outside the chain."""
        self.advance(db)
        for table, last in self.last.items():
            rows, least, most = db.execute(f"SELECT count(*), min(id), max(id) FROM {table}").fetchone()
            (chained,) = db.execute("SELECT count(*) FROM chain WHERE place = ?", (table,)).fetchone()
            if rows != chained or (most or 0) != last or (least or 1) < 1:
                raise ConfideError(f"damaged: {rows} rows of {table}, its chain has {chained}")
        if self._keyed is None:
            raise ConfideError("damaged: its secret is missing")


def _keyed(key: bytes) -> tuple[Any, Any]:
    """HMAC-SHA256 (RFC 2104) with its key taken in: twice as fast as taking it in for every row."""
    wide = key.ljust(64, b"\0")
    return hashlib.sha256(bytes(b ^ 0x36 for b in wide)), hashlib.sha256(bytes(b ^ 0x5C for b in wide))
