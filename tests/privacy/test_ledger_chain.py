"""Damage to a ledger is seen: it opens with what was written, or not at all."""

import hashlib
import hmac
import os
import random
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from confide.privacy import Gaussian
from confide.privacy.ledger import Balance, BudgetExceeded, Entry, Head, Ledger

EVENT = Gaussian(0.1, 1.0)
OLD = Path(__file__).parents[1] / "fixtures" / "formats" / "0.1.0" / "ledger.sqlite"
TABLES = ("secret", "budgets", "reservations", "releases", "costs", "fingerprints", "notes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a row in every table, closed."""
    with Ledger(tmp_path / "ledger") as book:
        book.open_population("p", 8.0, 1e-6)
        book.reserve("p", "r", [[EVENT]] * 5)
        for t in (1, 2):
            book.charge("p", "r", t, [EVENT])
        book.settle("p", "r", [(3, 1, [EVENT])])
        book.note_data("p", [b"rows"])
    return tmp_path / "ledger"


def read(path: Path) -> tuple[Balance, list[Entry], Head]:
    with Ledger(path, create=False, timeout=0.2) as book:
        return book.balance("p"), book.entries("p"), book.head()


def forged(path: Path, *statements: str) -> None:
    """Write past the triggers, and leave the tables as they were."""
    db = sqlite3.connect(path, isolation_level=None)
    triggers = db.execute("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        db.execute(statement)
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, sql in triggers:
        if table in tables:
            db.execute(sql)
    db.close()


def refused(path: Path, word: str = "damaged") -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError) as error:
        read(path)
    said = str(error.value)
    assert said.startswith(f"{path}: ") and word in said and "\n" not in said
    assert path.read_bytes() == before


def test_the_tags_are_those_of_rfc_2104(path: Path) -> None:
    db = sqlite3.connect(path)
    (secret,) = db.execute("SELECT key FROM secret").fetchone()
    key, tag = hmac.new(secret, b"confide ledger chain", "sha256").digest(), bytes(32)
    chained: Counter[str] = Counter()
    for number, (id, place, row, found) in enumerate(db.execute("SELECT * FROM chain ORDER BY id").fetchall(), start=1):
        (values,) = db.execute(f"SELECT * FROM {place} WHERE id = ?", (row,)).fetchall()
        tag = hmac.new(key, tag + ascii((place, *values)).encode(), hashlib.sha256).digest()
        assert (id, tag) == (number, found)
        chained[place] += 1
    assert chained == {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    assert read(path)[2] == (number, tag)


def flips(data: bytes, count: int) -> list[tuple[int, int]]:
    """Bits to flip: most of them where something is written."""
    rng = random.Random(1)
    written = [(at, bit) for at, byte in enumerate(data) if byte or at < 100 for bit in range(8)]
    empty = [(at, bit) for at, byte in enumerate(data) if not byte for bit in range(8)]
    return rng.sample(written, count) + rng.sample(empty, count // 5)


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_any_flipped_bit_leaves_the_same_spend_or_is_refused_in_one_line(path: Path, count: int) -> None:
    expected, data, copy = read(path), path.read_bytes(), path.with_name("copy")
    seen = Counter[bool]()
    for at, bit in flips(data, count):
        bad = bytearray(data)
        bad[at] ^= 1 << bit
        for suffix in ("-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
        copy.write_bytes(bad)
        try:
            assert read(copy) == expected, (at, bit)
            seen[True] += 1
        except ValueError as error:
            assert str(error).startswith(f"{copy}: ") and "\n" not in str(error), (at, bit, error)
            seen[False] += 1
    assert seen[False] > count / 2 and seen[True] > 0


def test_a_bit_flipped_in_the_log_is_refused_or_told_by_the_head(path: Path) -> None:
    """SQLite takes a damaged frame for the end of a torn write: what follows is gone, and only a kept head knows."""
    with Ledger(path) as book:
        before, head = book.balance("p").spent, book.head()
        for t in (4, 5):
            book.charge("p", "r", t, [EVENT])
        after, now = book.balance("p").spent, book.head()
        main, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    copy, rng = path.with_name("copy"), random.Random(2)
    seen = Counter[str]()
    for at in rng.sample(range(len(log)), 250):
        bad = bytearray(log)
        bad[at] ^= 1 << rng.randrange(8)
        Path(f"{copy}-shm").unlink(missing_ok=True)
        copy.write_bytes(main)
        Path(f"{copy}-wal").write_bytes(bad)
        with Ledger(copy) as book:
            spent, whole = book.balance("p").spent, book.continues(now)
            assert book.continues(head) and before <= spent <= after and whole == (spent == after)
            seen["whole" if whole else "behind"] += 1
    assert seen["behind"] > 100


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE costs SET square = square / 2 WHERE id = 1"], ["UPDATE secret SET key = zeroblob(32)"],
        ["DELETE FROM releases WHERE id = 3", "DELETE FROM costs WHERE id = 3"], ["DELETE FROM chain WHERE id > 8"],
        ["UPDATE releases SET round = 9 WHERE id = 1"], ["UPDATE budgets SET epsilon = 80.0"],
        ["INSERT INTO budgets SELECT 99, at, 99, population, kind, 80.0, delta, calculus, slack FROM budgets LIMIT 1"],
        ["INSERT INTO reservations SELECT -1, at, -1, population, run, party, kind, 0, 0, 0 FROM reservations"],
        ["UPDATE chain SET row = 3 - row WHERE place = 'costs' AND row < 3"], ["DROP TABLE fingerprints"],
        ["UPDATE notes SET at = CAST(at AS BLOB)"], ["UPDATE releases SET round = '1x' WHERE id = 1"],
        ["CREATE TABLE more (x)"], ["DROP TRIGGER IF EXISTS costs_UPDATE", "CREATE TRIGGER t BEFORE DELETE ON costs "
                                    "BEGIN SELECT 1; END"],
    ],
)  # fmt: skip
def test_no_row_is_changed_added_or_taken_away(path: Path, statements: list[str]) -> None:
    forged(path, *statements)
    refused(path)


def test_an_older_copy_does_not_continue_the_head(path: Path, tmp_path: Path) -> None:
    older = Path(shutil.copy(path, tmp_path / "older"))
    with Ledger(path) as book:
        before = book.head()
        book.charge("p", "s", 1, [EVENT])
        now = book.head()
        assert book.continues(before) and book.continues(now) and now.rows == before.rows + 2
    with Ledger(older) as book:
        assert book.continues(before) and not book.continues(now) and book.continues(Head())
        book.charge("p", "t", 1, [EVENT])
        assert book.head().rows == now.rows and not book.continues(now)  # as long, and another history


def test_what_was_refused_leaves_no_link(path: Path) -> None:
    with Ledger(path) as book, Ledger(path) as other:
        head = book.head()
        with pytest.raises(BudgetExceeded):
            book.charge("p", "r", 9, [Gaussian(99.0, 1.0)])
        assert book.head() == head
        other.charge("p", "o", 1, [EVENT])
        book.charge("p", "r", 4, [EVENT])
        assert other.head() == book.head() and book.head().rows == head.rows + 4
    read(path)


def test_a_full_disk_is_one_line_and_loses_nothing(path: Path) -> None:
    with Ledger(path) as book:
        db = book._store._db
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
        t, paid = 3, len(book.entries("p"))
        with pytest.raises(OSError, match="full") as error:
            while True:
                book.charge("p", "r", (t := t + 1), [Gaussian(1e-3, 1.0)])
        assert "\n" not in str(error.value) and t > 4
        assert len(book.entries("p")) == paid + t - 4 and book.continues(book.head())
        db.execute("PRAGMA max_page_count = 1000000")
        assert book.charge("p", "r", t, [Gaussian(1e-3, 1.0)]) == "charged"
    assert len(read(path)[1]) == paid + t - 3


def test_damage_by_another_process_is_seen_by_one_that_has_it_open(path: Path) -> None:
    with Ledger(path) as book:
        db = sqlite3.connect(path)
        db.execute("INSERT INTO chain SELECT id + 1, place, row + 1, tag FROM chain ORDER BY id DESC LIMIT 1")
        db.commit()
        with pytest.raises(ValueError, match="damaged: row 1"):
            book.charge("p", "r", 4, [EVENT])
        db.close()


def test_a_ledger_of_version_1_is_brought_here_once_and_says_so(tmp_path: Path) -> None:
    path = Path(shutil.copy(OLD, tmp_path / "old"))
    with Ledger(path) as book:
        ((_, text),) = book.notes()
        head = book.head()
        assert "version 1" in text and f"{head.rows - 1} older rows" in text
    with Ledger(path) as book:
        assert book.head() == head and len(book.notes()) == 1


@pytest.mark.parametrize(
    "statement",
    ["UPDATE costs SET square = 'much' WHERE id = 1", "UPDATE secret SET key = 5", "DROP TABLE fingerprints",
     "UPDATE costs SET pure = NULL"],
)  # fmt: skip
def test_a_damaged_ledger_of_version_1_is_left_as_it_is(tmp_path: Path, statement: str) -> None:
    path = Path(shutil.copy(OLD, tmp_path / "old"))
    db = sqlite3.connect(path, isolation_level=None)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_master SET sql = replace(sql, 'REAL NOT NULL CHECK', 'REAL CHECK') WHERE name = 'costs'")
    db.close()
    forged(path, statement)
    with pytest.raises(ValueError, match="damaged") as error:
        Ledger(path)
    assert "\n" not in str(error.value)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'chain' OR name LIKE 'old_%'").fetchone() == (0,)
    db.close()


def test_an_empty_file_is_no_ledger_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="it is empty"):
        Ledger(tmp_path / "empty", create=False)
    assert (tmp_path / "empty").stat().st_size == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(path: Path) -> None:
    path.parent.chmod(0o500)
    try:
        with pytest.raises(OSError) as error:
            Ledger(path)
        assert "\n" not in str(error.value)
    finally:
        path.parent.chmod(0o700)
