"""The tables of a ledger, and how a file of version 1 gets them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import lru_cache

APPLICATION = int.from_bytes(b"cfdl")  # tells a ledger from any other SQLite file
VERSION = 2  # 1 had no chain, attempts and slack

# Number of the row in the chain. A process of 0.1.0 that opened the file before it was brought along does not fill it
# in, so that it cannot write rows outside the chain.
_LINK = "link INTEGER NOT NULL"
_COST = "".join(f", {name} REAL NOT NULL CHECK (typeof({name}) = 'real' AND {name} >= 0)"
                for name in ("square", "pure", "slack"))  # fmt: skip
TABLES = {
    "secret": "key BLOB NOT NULL",
    "budgets": "population TEXT NOT NULL, kind TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "calculus TEXT CHECK (calculus IN ('gaussian', 'zcdp', 'pure')), slack REAL CHECK (slack >= 0)",
    "reservations": f"population TEXT NOT NULL, run TEXT NOT NULL, party TEXT NOT NULL, kind TEXT NOT NULL{_COST}",
    "releases": "population TEXT NOT NULL, run TEXT NOT NULL, party TEXT NOT NULL, round INTEGER NOT NULL, "
    "attempt INTEGER NOT NULL CHECK (attempt >= 1), method TEXT NOT NULL, guarantee TEXT NOT NULL, "
    "events TEXT NOT NULL, UNIQUE (population, run, party, round, attempt)",
    "costs": f"release INTEGER NOT NULL REFERENCES releases, kind TEXT NOT NULL{_COST}, UNIQUE (release, kind)",
    "fingerprints": "population TEXT NOT NULL, hash BLOB NOT NULL",
    "notes": "text TEXT NOT NULL",
}
CHAIN = "CREATE TABLE chain (id INTEGER PRIMARY KEY, place TEXT NOT NULL, row INTEGER NOT NULL, tag BLOB NOT NULL)"
# INSERT OR REPLACE deletes rows without asking delete triggers: an insert that meets its own key aborts as well.
_KEYS = {
    "releases": "(population, run, party, round, attempt) = "
    "(NEW.population, NEW.run, NEW.party, NEW.round, NEW.attempt)",
    "costs": "(release, kind) = (NEW.release, NEW.kind)",
}


def schema() -> Iterator[str]:
    """Statements that make an empty ledger."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    made = {table: f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, at TEXT NOT NULL, {_LINK}, {columns})"
            for table, columns in TABLES.items()}  # fmt: skip
    for table, statement in {**made, "chain": CHAIN}.items():
        yield statement
        for action in ("UPDATE", "DELETE"):
            yield f"CREATE TRIGGER {table}_{action} BEFORE {action} ON {table} {refuse}"
        same = f"id = NEW.id OR {_KEYS[table]}" if table in _KEYS else "id = NEW.id"
        yield f"CREATE TRIGGER {table}_REPLACE BEFORE INSERT ON {table} " \
              f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {refuse}"  # fmt: skip
    yield "CREATE INDEX reserved ON reservations (population, kind)"
    yield f"PRAGMA application_id = {APPLICATION}"
    yield f"PRAGMA user_version = {VERSION}"


def written(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Name and text of everything the file defines; SQLite's own left out."""
    return db.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name").fetchall()


@lru_cache
def expected() -> list[tuple[str, str]]:
    """What `written` says of a sound file."""
    with sqlite3.connect(":memory:") as db:
        for statement in schema():
            db.execute(statement)
        found = written(db)
    db.close()
    return found


def migrate(db: sqlite3.Connection) -> None:
    """A file of version 1 in the tables of this one, every row with its id and time; the caller holds it alone."""
    old = ("secret", "budgets", "reservations", "releases", "costs", "fingerprints")
    for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f'DROP TRIGGER "{trigger}"')
    db.execute("DROP INDEX reserved")
    for table in old:
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for statement in schema():
        db.execute(statement)
    new = {"budgets": ("slack", "NULL"), "reservations": ("slack", "0.0"), "costs": ("slack", "0.0"),
           "releases": ("attempt", "1")}  # fmt: skip
    links = 0
    for table in old:
        columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info(old_{table})")]
        more = {"link": f"{links} + row_number() OVER (ORDER BY id)", **dict([new[table]] if table in new else [])}
        into, values = ", ".join([*columns, *more]), ", ".join([*columns, *more.values()])
        links += db.execute(f"INSERT INTO {table} ({into}) SELECT {values} FROM old_{table} ORDER BY id").rowcount
    for table in reversed(old):
        db.execute(f"DROP TABLE old_{table}")
