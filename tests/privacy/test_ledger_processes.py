"""The ledger between processes: races for the last of a budget, kills at any moment, power loss inside a write."""

import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from confide.privacy import Gaussian, mu_for
from confide.privacy.budget import Bill
from confide.privacy.ledger import Ledger


class Workers:
    """`ledger_workers.py` in a process of its own, which forks a worker in a millisecond."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("ledger_workers.py")
        self.process = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)  # fmt: skip

    def ask(self, *words: object) -> int:
        assert self.process.stdin and self.process.stdout
        print(*words, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    started = Workers()
    yield started
    started.process.communicate(timeout=10)


@pytest.mark.parametrize("what", ["charge", "reserve"])
def test_of_processes_racing_for_the_last_of_a_budget_exactly_one_wins(
    tmp_path: Path, workers: Workers, what: str
) -> None:
    winners = []
    for attempt in range(20):
        path = tmp_path / f"{attempt}"
        with Ledger(path) as book:
            book.open_population("p", 1.0, 1e-6)
            used = math.sqrt(mu_for(1.0, 1e-6) ** 2 - 1.5e-6)  # room for one and a half of the workers' events
            book.charge("p", "before", 1, [Gaussian(used, 1.0)])
            when = time.time() + 0.03
            pids = [workers.ask("race", path, f"r{k}", when, what) for k in range(3)]
            codes = [workers.ask("wait", pid) for pid in pids]
            assert sorted(codes) == [0, 3, 3]
            winners.append(codes.index(0))
            assert len(book.entries("p")) == (2 if what == "charge" else 1)
            assert book.balance("p").spent + book.balance("p").held <= book.balance("p").limit
    assert len(set(winners)) > 1  # it was a race


def test_processes_that_open_a_new_ledger_together(tmp_path: Path, workers: Workers) -> None:
    for attempt in range(10):
        when = time.time() + 0.02
        pids = [workers.ask("open", tmp_path / f"{attempt}", when) for _ in range(6)]
        assert [workers.ask("wait", pid) for pid in pids] == [0] * 6


def test_processes_that_open_a_ledger_of_version_1_together(tmp_path: Path, workers: Workers) -> None:
    old = Path(__file__).parents[1] / "fixtures" / "formats" / "0.1.0" / "ledger.sqlite"
    for attempt in range(5):
        path, when = Path(shutil.copy(old, tmp_path / f"{attempt}")), time.time() + 0.02
        pids = [workers.ask("open", path, when) for _ in range(6)]
        assert [workers.ask("wait", pid) for pid in pids] == [0] * 6
        with Ledger(path) as book:
            assert len(book.notes()) == 1 and len(book.entries("people")) == 2


@pytest.mark.slow
def test_killed_at_any_moment_no_release_is_ever_missing(tmp_path: Path, workers: Workers) -> None:
    """320 kills of workers that charge, then release: what was released is always in the ledger, and once."""
    rng, path, runs = random.Random(7), tmp_path / "ledger", ("a", "b")
    with Ledger(path) as book:
        book.open_population("p", 8.0, 1e-6)
    kills, gaps = 0, 0
    for _ in range(160):
        pids = [workers.ask("charge", path, run, tmp_path / run) for run in runs]
        for pid in pids:
            time.sleep(rng.uniform(0, 0.04))
            os.kill(pid, signal.SIGKILL)
            kills += workers.ask("wait", pid) == -signal.SIGKILL
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        charged = db.execute("SELECT run, round, square FROM releases JOIN costs ON release = releases.id").fetchall()
        db.close()
        for run in runs:
            mine = [t for r, t, _ in charged if r == run]
            lines = (tmp_path / run).read_text().split() if (tmp_path / run).exists() else []
            released = [int(line[:5]) for line in lines]
            assert released == list(range(1, len(released) + 1))
            assert sorted(mine) == list(range(1, len(mine) + 1))  # each once
            assert 0 <= len(mine) - len(released) <= 1  # never fewer; at most the one paid and not yet released
            gaps += len(mine) > len(released)
    assert kills == 320 and gaps > 0 and all((tmp_path / run).stat().st_size for run in runs)
    with Ledger(path) as book:
        amount = Bill.of([Gaussian(1.0, 1000.0)]).costs["row", "replace", "network"].square
        assert book.balance("p").spent == math.fsum([math.fsum([amount] * sum(r == run for r, _, _ in charged))
                                                      for run in runs])  # fmt: skip
        answers = [book.charge("p", r, t, [Gaussian(1.0, 1000.0)]) for r, t, _ in charged[::7]]
        assert set(answers) == {"already"}
    resumed = sum(line.endswith("a") for run in runs for line in (tmp_path / run).read_text().split())
    assert resumed > 0  # charged by a killed worker, released by the next, paid once


def test_power_loss_inside_a_write_keeps_every_finished_charge(tmp_path: Path) -> None:
    """The log cut anywhere after the last finished charge, or followed by rubbish: that charge is still there."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    with Ledger(path) as book:
        book.open_population("p", 8.0, 1e-6)
        for t in range(1, 4):
            book.charge("p", "r", t, [Gaussian(1e-3, 1.0)])
        log = Path(f"{path}-wal")
        main, finished = path.read_bytes(), len(log.read_bytes())
        book.charge("p", "r", 4, [Gaussian(1e-3, 1.0)])
        whole = log.read_bytes()
        assert path.read_bytes() == main and len(whole) > finished  # all in the log, nothing folded back yet
        for cut in [*range(finished, len(whole), 509), len(whole)]:
            for tail in (b"", b"\0" * 600, random.Random(cut).randbytes(600)):
                for suffix in ("-wal", "-shm"):
                    Path(f"{copy}{suffix}").unlink(missing_ok=True)
                copy.write_bytes(main)
                Path(f"{copy}-wal").write_bytes(whole[:cut] + tail)
                with Ledger(copy) as after:
                    rounds = [e.round for e in after.entries("p")]
                    assert rounds == ([1, 2, 3, 4] if cut == len(whole) else [1, 2, 3])
