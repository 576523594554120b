"""The file of the ledger: append-only, durable, and nothing else taken for it."""

import os
import pickle
import random
import shutil
import sqlite3
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from confide.privacy import Gaussian
from confide.privacy.ledger import Ledger, default_path


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as book:
        book.open_population("p", 1.0, 1e-6)
        yield book


def one_line(error: pytest.ExceptionInfo[BaseException], *words: str) -> None:
    assert "\n" not in str(error.value) and all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    "table", ["secret", "budgets", "reservations", "releases", "costs", "fingerprints", "notes", "chain"]
)
def test_rows_can_only_be_appended(ledger: Ledger, table: str) -> None:
    ledger.reserve("p", "r", [[Gaussian(0.1, 1.0)]])
    ledger.charge("p", "r", 1, [Gaussian(0.1, 1.0)])
    ledger.settle("p", "r", [(2, 1, [Gaussian(0.1, 1.0)])])
    ledger.note_data("p", [b"rows"])
    db = sqlite3.connect(ledger.path)
    before = db.execute(f"SELECT * FROM {table}").fetchall()
    assert before
    columns = ", ".join(c[1] for c in db.execute(f"PRAGMA table_info({table})") if c[1] != "id")
    for statement in (
        f"DELETE FROM {table}", f"UPDATE {table} SET id = id + 1",
        f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        *([f"INSERT OR REPLACE INTO {table} ({columns}) SELECT {columns} FROM {table}"]
          if table in ("releases", "costs") else []),
    ):  # fmt: skip
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(statement)
    db.rollback()
    assert db.execute(f"SELECT * FROM {table}").fetchall() == before


def test_durability_settings(ledger: Ledger) -> None:
    db = ledger._store._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone()[0] >= 2
    assert ledger.path.stat().st_mode & 0o077 == 0  # it names people's populations and holds a key


def test_a_charge_left_by_another_process_is_synced_before_it_counts(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process killed between write and sync leaves a row that a power loss would still take away."""
    event, synced = Gaussian(0.1, 1.0), []
    ledger.charge("p", "r", 1, [event])
    monkeypatch.setattr("confide.privacy.storage.os.fsync", lambda f: synced.append(os.readlink(f"/proc/self/fd/{f}")))
    assert ledger.charge("p", "r", 1, [event]) == "already"
    assert synced == [f"{ledger.path}-wal"]


def foreign(tmp_path: Path) -> dict[str, Path]:
    with Ledger(tmp_path / "ledger") as book:
        book.open_population("p", 1.0, 1e-6)
        for t in range(200):
            book.charge("p", "r", t, [Gaussian(1e-3, 1.0)])
    files = {name: tmp_path / name for name in ("text", "other", "newer", "broken", "cut")}
    files["text"].write_text("not a database, " * 100)
    with sqlite3.connect(files["other"]) as db:
        db.execute("CREATE TABLE mine (x)")
    for name in ("newer", "broken", "cut"):
        shutil.copy(tmp_path / "ledger", files[name])
    with sqlite3.connect(files["newer"]) as db:
        db.execute("PRAGMA user_version = 3")
    data = bytearray(files["broken"].read_bytes())
    data[4096:] = random.Random(0).randbytes(len(data) - 4096)
    files["broken"].write_bytes(data)
    files["cut"].write_bytes(files["cut"].read_bytes()[:9000])
    return files


def test_a_file_that_is_no_ledger_is_one_line_and_left_alone(tmp_path: Path) -> None:
    words = {"newer": "version 3", "broken": "damaged", "cut": "damaged"}
    for name, path in foreign(tmp_path).items():
        before = path.read_bytes()
        with pytest.raises(ValueError) as error:
            Ledger(path)
        one_line(error, str(path), words.get(name, "not a ledger"))
        assert path.read_bytes() == before
    with pytest.raises(OSError) as missing:
        Ledger(tmp_path / "nosuch", create=False)
    one_line(missing, "nosuch")
    with pytest.raises(OSError) as folder:
        Ledger(tmp_path)
    one_line(folder)
    assert not (tmp_path / "nosuch").exists()


def test_a_ledger_in_use_is_one_line(ledger: Ledger) -> None:
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Ledger(ledger.path, timeout=0.05) as hasty, pytest.raises(TimeoutError) as error:
        hasty.charge("p", "r", 1, [Gaussian(0.1, 1.0)])
    one_line(error, "another process")
    other.execute("ROLLBACK")
    assert ledger.entries("p") == []


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CONFIDE_LEDGER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path() == tmp_path / "data" / "confide" / "ledger.sqlite"
    with Ledger() as book:
        assert book.path == default_path() and book.path.exists()
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_path() == Path.home() / ".local" / "share" / "confide" / "ledger.sqlite"
    monkeypatch.setenv("CONFIDE_LEDGER", str(tmp_path / "mine"))
    assert default_path() == tmp_path / "mine"


def test_threads_copies_and_forks_share_one_account(ledger: Ledger) -> None:
    def work(k: int, book: Ledger) -> None:
        for t in range(5):
            book.charge("p", f"r{k}", t, [Gaussian(1e-3, 1.0)])

    copy = pickle.loads(pickle.dumps(ledger))
    threads = [threading.Thread(target=work, args=(k, ledger if k % 2 else copy)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    copy.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numerical libraries start threads of their own
        child = os.fork()
    if child == 0:
        try:
            work(4, ledger)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len(ledger.entries("p")) == 25
