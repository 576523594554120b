"""`ResponseBook`: a user's randomised labels, drawn once and remembered.

Answering the same question twice with fresh randomness costs ε twice, so that a response is drawn once for each person
and task and then read back. A person's ε is written down, durably, before the label is looked at: an ε chosen with the
label in view would itself tell the label.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from confide.errors import ConfideError
from confide.privacy.mechanisms import randomize_labels

_SCHEMA = """
CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS choice (who BLOB, task TEXT, epsilon REAL NOT NULL, classes INTEGER NOT NULL,
                                   PRIMARY KEY (who, task)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS response (who BLOB, task TEXT, label REAL NOT NULL,
                                     PRIMARY KEY (who, task)) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS keep_choice BEFORE UPDATE ON choice BEGIN SELECT RAISE(ABORT, 'kept'); END;
CREATE TRIGGER IF NOT EXISTS keep_response BEFORE UPDATE ON response BEGIN SELECT RAISE(ABORT, 'kept'); END;
"""


class ResponseBook:
    """One file on the user's side; people are stored under a keyed hash, true labels never."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with self._open() as db:
                db.executescript(_SCHEMA)
        except sqlite3.DatabaseError:
            raise ConfideError(f"{self.path}: not a book of responses, or damaged") from None
        with self._open() as db:
            db.execute("INSERT OR IGNORE INTO secret VALUES (1, ?)", (secrets.token_bytes(32),))
            self._key = bytes(db.execute("SELECT key FROM secret").fetchone()[0])

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
        with self._open() as db:
            row = (self._who(person), task, float(epsilon), int(classes))
            db.execute("INSERT OR IGNORE INTO choice VALUES (?, ?, ?, ?)", row)
            fixed = db.execute("SELECT epsilon, classes FROM choice WHERE who = ? AND task = ?", row[:2]).fetchone()
        if fixed != row[2:]:
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
            db.execute("INSERT INTO response VALUES (?, ?, ?)", (who, task, drawn))
        return drawn  # only after it is on disk: a crash must not lead to a second draw that somebody saw the first of
