"""`ResponseBook`: a user's randomised labels, drawn once and remembered.

Answering the same question twice with fresh randomness costs ε twice, so that a response is drawn once for each person
and task and then read back. A person's ε is written down, durably, before the label is looked at: an ε chosen with the
label in view would itself tell the label.

A row that damage hides would be drawn again, so the file holds a seal: how many rows there are, and the sum mod 2²⁵⁶ of
their HMACs. It is verified on opening, whatever the order of rows, and costs one addition per row written. As with the
ledger's chain the key lies in the file: it shows damage, not somebody who may write there.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from confide.errors import ConfideError
from confide.privacy.chain import Damaged
from confide.privacy.mechanisms import randomize_labels

_SCHEMA = """
CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS choice (who BLOB, task TEXT, epsilon REAL NOT NULL, classes INTEGER NOT NULL,
                                   PRIMARY KEY (who, task)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS response (who BLOB, task TEXT, label REAL NOT NULL,
                                     PRIMARY KEY (who, task)) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS keep_choice BEFORE UPDATE ON choice BEGIN SELECT RAISE(ABORT, 'kept'); END;
CREATE TRIGGER IF NOT EXISTS keep_response BEFORE UPDATE ON response BEGIN SELECT RAISE(ABORT, 'kept'); END;
CREATE TRIGGER IF NOT EXISTS hold_choice BEFORE DELETE ON choice BEGIN SELECT RAISE(ABORT, 'kept'); END;
CREATE TRIGGER IF NOT EXISTS hold_response BEFORE DELETE ON response BEGIN SELECT RAISE(ABORT, 'kept'); END;
CREATE TABLE IF NOT EXISTS seal (one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, total BLOB NOT NULL);
"""
_SEALED = 2  # PRAGMA user_version; 0 is a book of version 0.1.0, which has no seal yet
_TABLES = ("choice", "response")
_MODULUS = 1 << 256


class ResponseBook:
    """One file on the user's side; people are stored under a keyed hash, true labels never."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with self._open() as db:
                self._key = self._verified(db)
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # a text that is none any more
            raise ConfideError(f"{self.path}: not a book of responses, or damaged") from None

    def _verified(self, db: sqlite3.Connection) -> bytes:
        """The key of a book whose seal is sound; a new or an old book is sealed as it is."""
        db.execute("BEGIN IMMEDIATE")  # nobody writes between what is counted and its seal
        version = db.execute("PRAGMA user_version").fetchone()[0]
        seals = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'seal'").fetchone()[0]
        if (version, seals) not in ((0, 0), (_SEALED, 1)):
            raise Damaged(f"{self.path}: damaged: its seal is missing")
        if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise Damaged(f"{self.path}: damaged: restore it")
        if version == 0:
            for statement in _SCHEMA.split(";\n"):
                db.execute(statement)
            db.execute("INSERT OR IGNORE INTO secret VALUES (1, ?)", (secrets.token_bytes(32),))
        key = bytes(db.execute("SELECT key FROM secret").fetchone()[0])
        found = [(table, *row) for table in _TABLES for row in db.execute(f"SELECT * FROM {table}")]
        now = len(found), sum(_tag(key, row) for row in found) % _MODULUS
        if version == 0:
            db.execute("INSERT INTO seal VALUES (1, ?, ?)", (now[0], now[1].to_bytes(32)))
            db.execute(f"PRAGMA user_version = {_SEALED}")
        rows, total = db.execute("SELECT rows, total FROM seal").fetchone() or (None, b"")
        if (rows, total) != (now[0], now[1].to_bytes(32)):
            raise Damaged(f"{self.path}: damaged: {now[0]} rows are not the {rows} that were written: restore it")
        return key

    def _write(self, db: sqlite3.Connection, table: str, row: tuple[object, ...]) -> None:
        """One row more, under the seal, in the caller's transaction."""
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        (found,) = db.execute(f"SELECT * FROM {table} WHERE who = ? AND task = ?", row[:2])  # as SQLite returns it
        rows, total = db.execute("SELECT rows, total FROM seal").fetchone()
        sealed = (int.from_bytes(total) + _tag(self._key, (table, *found))) % _MODULUS
        db.execute("UPDATE seal SET rows = ?, total = ?", (rows + 1, sealed.to_bytes(32)))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=30)
        try:
            db.execute("PRAGMA synchronous = EXTRA")
            with db:
                yield db
        finally:
            db.close()

    def _who(self, person: str) -> bytes:
        return hmac.new(self._key, person.encode(), hashlib.sha256).digest()

    def name(self, person: str, task: str) -> str:
        """What a record is called: the same for the same person and task, and only this book can tell whose it is."""
        message = b"record\0" + hashlib.sha256(task.encode()).digest() + person.encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    def choose(self, person: str, task: str, epsilon: float, classes: int = 2) -> float:
        """Fix this person's ε for this task, before the label is read. The same ε again is fine, another is refused."""
        randomize_labels([1.0], epsilon, classes, seed=0)  # the checks of the mechanism, on a label nobody has
        row = (self._who(person), task, float(epsilon), int(classes))
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")  # two processes must not both choose
            fixed = db.execute("SELECT epsilon, classes FROM choice WHERE who = ? AND task = ?", row[:2]).fetchone()
            if fixed is None:
                _one_name(person=person, task=task)
                self._write(db, "choice", row)
        if fixed not in (None, row[2:]):
            raise ConfideError(
                f"epsilon={epsilon:g} with {classes} classes: task {task!r} was fixed at {fixed[0]:g} with {fixed[1]}"
            )
        return float(epsilon)

    def respond(self, person: str, task: str, label: float) -> float:
        """The randomised label: drawn at the first call, the same ever after, whatever label is given."""
        who = self._who(person)
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")  # two processes must not both draw
            kept = db.execute("SELECT label FROM response WHERE who = ? AND task = ?", (who, task)).fetchone()
            if kept is not None:
                return float(kept[0])
            query = "SELECT epsilon, classes FROM choice WHERE who = ? AND task = ?"
            chosen = db.execute(query, (who, task)).fetchone()
            if chosen is None:
                raise ConfideError(f"task {task!r}: choose an epsilon before the label is read")
            drawn = float(randomize_labels(np.array([label]), *chosen)[0])
            self._write(db, "response", (who, task, drawn))
        return drawn  # only after it is on disk: a crash must not lead to a second draw that somebody saw the first of


def _one_name(**names: str) -> None:
    """A new name may have no other that looks the same: under both one label would be drawn twice, for ε each."""
    for what, name in names.items():
        if name != unicodedata.normalize("NFC", name).strip():
            raise ConfideError(f"{what}: must be in Unicode's form NFC and without blanks around it")


def _tag(key: bytes, row: tuple[object, ...]) -> int:
    """What a row adds to the seal: ascii() of numbers, texts and bytes tells all of them apart."""
    return int.from_bytes(hmac.digest(key, b"seal\0" + ascii(row).encode(), "sha256"))
