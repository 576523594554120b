"""Attempts to make a ledger show less than was released, or nothing at all."""

import json
import math
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide.node.ending import end_run
from confide.privacy import Gaussian, PureDP
from confide.privacy.ledger import ROW, BudgetExceeded, Ledger
from confide.privacy.storage import append

SMALL = Gaussian(0.01, 1.0)
OLD = Path(__file__).parents[1] / "fixtures" / "formats" / "0.1.0"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_population("ward", 1.0, 1e-6)
    return ledger


@pytest.mark.parametrize("number", [np.float32(2), np.int64(2), np.float16(2)])
def test_a_budget_in_numpys_numbers_is_the_number(ledger: Ledger, number: float) -> None:
    """sqlite3 writes them as bytes, and such a budget could neither be read nor changed again."""
    ledger.open_population("numpy", number, 1e-6)
    assert ledger.open_population("numpy", 2.0, 1e-6) == "already"
    ledger.change_budget("ward", number, np.float64(1e-6))
    assert ledger.balance("numpy").epsilon == ledger.balance("ward").epsilon == 2.0


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.rename(path.with_name("moved"))])
def test_nothing_is_charged_to_a_file_that_is_not_there_any_more(ledger: Ledger, lose: Callable[[Path], None]) -> None:
    """Who restores a folder while a process runs would have it pay into a file that nobody can open."""
    ledger.charge("ward", "run", 1, [SMALL])
    lose(ledger.path)
    with pytest.raises((OSError, ValueError)):
        ledger.charge("ward", "run", 2, [SMALL])


def test_a_ledger_that_was_put_back_goes_on_and_another_in_its_place_does_not(ledger: Ledger) -> None:
    home, aside = ledger.path.parent / "home", ledger.path.parent / "aside"
    ledger = Ledger(home / "ledger")
    ledger.open_population("ward", 1.0, 1e-6)
    home.rename(aside)
    Ledger(ledger.path).close()  # another file, of the same name
    for ask in (lambda: ledger.spent("ward"), lambda: ledger.charge("ward", "run", 1, [SMALL])):
        with pytest.raises(ValueError, match="moved, removed or replaced") as error:
            ask()
        assert "\n" not in str(error.value)
    shutil.rmtree(home)
    aside.rename(home)
    assert ledger.charge("ward", "run", 1, [SMALL]) == "charged"


def test_a_new_ledger_leaves_nothing_beside_and_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there" / "ledger")
    with Ledger(tmp_path / "link") as ledger:
        ledger.open_population("ward", 1.0, 1e-6)
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["ledger"]
    assert Ledger(tmp_path / "there" / "ledger", create=False).populations() == ["ward"]


@pytest.mark.parametrize("table", ["secret", "budgets", "reservations", "releases", "costs", "fingerprints"])
def test_no_row_of_0_1_0_enters_once_its_file_was_brought_along(tmp_path: Path, table: str) -> None:
    path = Path(shutil.copy(OLD / "ledger.sqlite", tmp_path))
    old = sqlite3.connect(path)
    columns = [name for _, name, *_ in old.execute(f"PRAGMA table_info({table})") if name != "id"]
    values = old.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchone()
    values = [{"run": "another", "release": 99}.get(name, v) for name, v in zip(columns, values, strict=True)]
    with Ledger(path) as ledger:
        rows = ledger.head().rows
        assert old.execute("SELECT link FROM notes").fetchall() == [(rows,)]  # the last
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        old.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", values)
    old.close()
    with Ledger(path) as ledger:
        assert ledger.head().rows == rows


def test_no_new_ledger_is_made_beside_the_log_of_a_lost_one(ledger: Ledger) -> None:
    """SQLite would take the log for its own: the log holds payments, and the new file other pages."""
    ledger.charge("ward", "run", 1, [SMALL])
    aside = ledger.path.rename(ledger.path.with_name("aside"))
    with pytest.raises(ValueError, match="its log is there") as error:
        Ledger(ledger.path)
    assert "\n" not in str(error.value) and not ledger.path.exists()
    aside.rename(ledger.path)
    assert len(ledger.entries("ward")) == 1


def test_an_emptied_file_is_damage_and_no_new_ledger(ledger: Ledger) -> None:
    ledger.charge("ward", "run", 1, [SMALL])
    ledger.close()
    ledger.path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"empty|damaged"):
        Ledger(ledger.path)


@pytest.mark.parametrize("statement", [
    "INSERT INTO budgets (at, population, kind, epsilon, delta, calculus) "
    "VALUES ('', 'north', '[\"row\", \"replace\", \"network\"]', 1.0, 1e-6, NULL)",
    "INSERT INTO fingerprints (at, population, hash) VALUES ('', 'ward', x'00')",
])  # fmt: skip
def test_a_process_of_0_1_0_that_is_still_running_cannot_break_the_chain(ledger: Ledger, statement: str) -> None:
    """It looked at the version when it opened the file; these are its statements, which know of no chain."""
    with sqlite3.connect(ledger.path) as old:
        try:
            old.execute(statement)
        except sqlite3.DatabaseError:
            old.rollback()
    old.close()
    assert Ledger(ledger.path).spent("ward") == 0.0


def test_ending_by_word_is_all_or_nothing(ledger: Ledger) -> None:
    ledger.open_population("yard", 1.0, 1e-6)
    ledger.reserve("ward", "run", [[SMALL]] * 4)
    for population in ("ward", "yard"):
        ledger.charge(population, "run", 1, [SMALL])
    rows = ledger.head().rows
    with pytest.raises(ValueError, match="holds nothing"):  # in yard
        end_run(ledger, "run", None, None, 3)
    assert ledger.head().rows == rows and len(ledger.holds("ward")) == 1
    assert [e.round for e in ledger.entries("ward")] == [1] and ledger.spent("ward") == ledger.spent("yard")
    assert len(end_run(ledger, "run", "ward", None, 3)) == 1 and ledger.holds("ward") == []


@pytest.mark.parametrize("other", [" Zürich", "Zürich ", "Zu\u0308rich"])
def test_a_name_that_looks_the_same_has_no_second_budget(ledger: Ledger, other: str) -> None:
    ledger.open_population("Zürich", 1.0, 1e-6)
    try:
        assert ledger.open_population(other, 1.0, 1e-6) == "already"
    except ValueError as error:
        assert "\n" not in str(error)
    assert ledger.populations() == ["ward", "Zürich"]


@pytest.mark.parametrize("charge", [
    {"round": 2**63}, {"attempt": 2**63}, {"party": "a\nb"}, {"party": b"x"}, {"party": "\ud800"}, {"method": None},
])  # fmt: skip
def test_bad_keys_are_one_line(ledger: Ledger, charge: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ledger.charge("ward", "run", **{"round": 1, "events": [SMALL], **charge})  # type: ignore[arg-type]
    assert ledger.entries("ward") == []


@pytest.mark.parametrize("events", [[[Gaussian(1e154, 1.0)]] * 10, [[PureDP(1e308)]]])
def test_a_cost_beyond_all_numbers_is_beyond_the_budget(ledger: Ledger, events: list[list[Gaussian]]) -> None:
    with pytest.raises(BudgetExceeded) as error:
        ledger.reserve("ward", "run", events)
    assert "\n" not in str(error.value) and ledger.holds("ward") == []


def test_more_spare_attempts_than_any_budget_covers(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.reserve("ward", "run", [[SMALL]], spare=2**63 - 1)
    with pytest.raises(ValueError, match="must be a whole number"):
        ledger.reserve("ward", "run", [[SMALL]], spare=2**63)


def test_what_was_released_counts_even_beyond_all_numbers(ledger: Ledger) -> None:
    ledger.settle("ward", "run", [(t, 1, [Gaussian(1e154, 1.0)]) for t in (1, 2)])
    balance = ledger.balance("ward")
    assert (balance.spent, balance.spent_epsilon, balance.left, balance.distinguish()) == (math.inf, math.inf, 0.0, 1.0)
    with pytest.raises(BudgetExceeded):
        ledger.charge("ward", "run", 3, [SMALL])
    out = CliRunner().invoke(app, ["account", "--ledger", str(ledger.path), "--json"])
    said = json.loads(out.stdout, parse_constant=pytest.fail)
    assert said["populations"][0]["budgets"][0]["spent_epsilon"] is None
    assert CliRunner().invoke(app, ["account", "--ledger", str(ledger.path)]).exit_code == 0


def test_a_budget_of_true_is_none(ledger: Ledger) -> None:
    """1.0 was opened, and equals True: what is remembered of it must not answer."""
    for call in (ledger.open_population, ledger.change_budget):
        with pytest.raises(ValueError, match="epsilon=True: must be"):
            call("ward", True, 1e-6)
    with pytest.raises(ValueError, match=r"slack=.*: must be"):
        ledger.change_budget("ward", 1.0, 1e-6, slack=False)


@pytest.mark.parametrize("calculus", ["gaussian", "zcdp", "pure"])
@pytest.mark.parametrize(("epsilon", "delta"), [(5e-324, 1e-6), (5e-324, 1e-320), (1e-307, 1e-6), (1e-150, 0.5)])
def test_the_smallest_budgets_end_and_admit_nothing_large(ledger: Ledger, calculus: str, epsilon: float, delta: float
                                                          ) -> None:  # fmt: skip
    ledger.open_population("tiny", epsilon, delta, calculus=calculus)
    event = PureDP(1.0) if calculus == "pure" else Gaussian(5.0, 1.0)
    with pytest.raises(BudgetExceeded) as error:
        ledger.charge("tiny", "run", 1, [event])
    assert "\n" not in str(error.value) and ledger.balance("tiny").limit >= 0


def test_a_population_that_0_1_0_named_with_blanks_goes_on(ledger: Ledger) -> None:
    with ledger._store.writing() as db:  # as it could be opened then
        append(db, "budgets", population=" old ", kind=ROW, epsilon=1.0, delta=1e-6, calculus=None)
    assert ledger.charge(" old ", "run", 1, [SMALL]) == "charged"
    with pytest.raises(ValueError, match=r"run=.*: must be in"):
        ledger.charge("ward", "run ", 1, [SMALL])
