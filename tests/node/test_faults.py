"""What goes wrong on a real machine: replaced rows, full disks, removed files, certificates that end, strange files."""

import asyncio
import errno
import io
import json
import logging
import os
import sqlite3
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from test_member import SECURE, close, trainer
from typer.testing import CliRunner
from village import Village

import confide
from confide.cli import app
from confide.errors import ConfideError
from confide.network.identity import Identity
from confide.node import codes, daemon, holding
from confide.node import federation as federations
from confide.node import purse as purses
from confide.node import status as statuses
from confide.node.journal import Journal
from confide.node.purse import Purse
from confide.node.remembered import FILE
from confide.node.rows import read
from confide.privacy.chain import Damaged
from confide.privacy.ledger import BudgetExceeded


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))


# --- rows -------------------------------------------------------------------------------------------------------------


def test_other_rows_of_the_same_size_are_spoken_of(village):
    """Once, when they come; the same rows again are no news. What was spent on the people stays spent."""
    file = village.folder / "ash.npz"

    def resumed():
        member = trainer(village)
        member.open()
        member.begin()
        close(member)
        return member.notice, member.sent

    assert resumed() == ("", 1) and resumed() == ("", 1)
    with np.load(file) as data:
        X, y = data["X"], data["y"]
    np.savez(file, X=X[::-1], y=y[::-1])
    assert resumed() == ("the rows are not those that 'people' had last: its spend continues", 1)
    assert resumed() == ("", 1)
    np.savez(file, X=X, y=-y)
    assert "its spend continues" in resumed()[0]


def test_a_file_that_claims_more_than_there_is_is_one_line(tmp_path):
    """A header that asks for 7 TiB."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 1000)})
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as file:
        file.writestr("X.npy", head.getvalue() + bytes(80))
        file.writestr("y.npy", head.getvalue() + bytes(80))
    with pytest.raises(ConfideError, match="must hold the arrays X and y, of numbers, that fit in memory"):
        read(tmp_path / "rows.npz")


def test_a_run_that_would_unpack_to_gigabytes_is_one_line(tmp_path):
    """8 MB that ask for 7 GiB: zeros, packed; and a header that claims them."""
    packed = tmp_path / "run.npz"
    np.savez_compressed(packed, header=np.frombuffer(b"{}", np.uint8), estimates=np.zeros(50_000_000))
    assert packed.stat().st_size < 1 << 20
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 1000)})
    claimed = tmp_path / "claimed.npz"
    with zipfile.ZipFile(claimed, "w") as file:
        file.writestr("header.npy", head.getvalue() + bytes(80))
    for path in (packed, claimed):
        with pytest.raises(ConfideError, match="not a run that confide wrote, or damaged"):
            confide.load_run(path)


# --- disks ------------------------------------------------------------------------------------------------------------


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def locked():
    raise sqlite3.OperationalError("database is locked")


def refuse():
    raise ConfideError("an older copy")


def test_a_full_disk_names_the_journal_and_leaves_it_whole(village, monkeypatch):
    member = trainer(village)
    member.open()
    before = member.journal.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", full)
        with pytest.raises(OSError, match="No space left") as error:
            member.begin()
    assert error.value.filename == str(member.journal.path) and member.journal.path.read_bytes() == before
    assert codes.code_of(error.value) == codes.Code.SYSTEM
    close(member)


@pytest.mark.parametrize("write", [full, lambda file, data, offset: len(data) // 2], ids=["nothing", "half"])
def test_a_full_disk_names_the_memory_and_no_noise_is_drawn(village, monkeypatch, write):
    """Paid, and not remembered: the round ends there, and is paid for again when there is room."""
    member = trainer(village, spare=1)
    member.open()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write)
        with pytest.raises(OSError, match="No space left") as error:
            member.begin()
    assert error.value.filename == str(village.run_folder("ash") / FILE) and member.sent == 0
    assert codes.code_of(error.value) == codes.Code.SYSTEM
    close(member)
    again = trainer(village, spare=1)
    again.open()
    again.begin()
    assert again.sent == 1 and again.attempts == [2] and "paid for again" in again.notice
    close(again)


def test_the_status_heals_after_a_failed_write(village, monkeypatch, caplog):
    member = trainer(village)
    member.open()

    async def body():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
        node.status.state = "training"
        node._report(0.25)
        with monkeypatch.context() as patch:
            patch.setattr(statuses, "replace_file", full)
            node.status.state = "serving"
            for _ in range(3):
                node._report(0.5)
        assert daemon.read_status(node.folder)["state"] == "training"
        node._report(0.5)
        found = daemon.read_status(node.folder)
        assert (found["state"], found["spent_epsilon"]) == ("serving", 0.5)

    with caplog.at_level(logging.WARNING):
        asyncio.run(body())
    said = [r.getMessage() for r in caplog.records if "status.json" in r.getMessage()]
    assert len(said) == 1 and "No space left" in said[0]  # not every half second
    close(member)


def test_who_asks_what_was_spent_while_the_ledger_is_being_opened_hears_nothing_yet(village, monkeypatch):
    """The status does, from another thread: at a step of the opening the people have no budget yet."""
    member, asked, opening = trainer(village), [], purses.open_budgets

    def watched(*args):
        asked.append(member.spent())
        opening(*args)

    monkeypatch.setattr(purses, "open_budgets", watched)
    member.open()
    assert asked == [None] and member.spent() == 0.0
    close(member)


def test_a_spend_that_cannot_be_read_keeps_no_status_from_being_told(village, monkeypatch, caplog):
    """A ledger that somebody else keeps locked: what is known is shown, as of when it was."""
    monkeypatch.setattr(daemon, "WATCH_SECONDS", 0.0)
    member = trainer(village)
    member.open()

    async def body():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
        node._report(0.25)
        with monkeypatch.context() as patch:
            patch.setattr(member, "spent", locked)
            watch = asyncio.create_task(node._watch())
            for state in ("greeting", "training"):
                node.status.state = state
                while daemon.read_status(node.folder)["state"] != state:
                    assert not watch.done()
                    await asyncio.sleep(0)
            assert daemon.read_status(node.folder)["spent_epsilon"] == 0.25
        while daemon.read_status(node.folder)["spent_epsilon"] != 0.0:
            await asyncio.sleep(0)
        watch.cancel()

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(body(), 60))
    said = [r.getMessage() for r in caplog.records if "spent" in r.getMessage()]
    assert said == ["what was spent cannot be read: database is locked"]
    close(member)


def test_a_node_that_may_not_open_its_ledger_says_why(village, monkeypatch):
    """And nothing else, though what was spent cannot be told then."""
    member = trainer(village)
    monkeypatch.setattr(member, "open", refuse)
    monkeypatch.setattr(member, "spent", locked)

    async def body():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
        await node.run()

    with pytest.raises(ConfideError, match="an older copy"):
        asyncio.run(body())
    status = daemon.read_status(village.run_folder("ash"))
    assert (status["state"], status["reason"]) == ("failed", "an older copy")
    close(member)


def test_a_status_that_cannot_be_shown_ends_nothing(village):
    """The log is on the full disk, too."""
    member = trainer(village)
    member.open()

    async def body():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal,
                             show=full)  # fmt: skip
        node._report(0.25)
        assert daemon.read_status(node.folder)["spent_epsilon"] == 0.25

    asyncio.run(body())
    close(member)


@pytest.mark.parametrize("log", ["text", "json"])
def test_a_node_whose_log_is_on_the_full_disk_ends_with_the_code_for_it(village, log):
    """Not a byte more can be written, to any file; nobody can be told, and who restarts it goes by the code."""
    with (village.folder / "log").open("w") as file:
        done = subprocess.run(
            [sys.executable, "-c", "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (0, r.RLIM_INFINITY)); "
             "from confide.cli import main; main()", *village.arguments("ash"), "--log", log],
            stdout=file, stderr=file, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == codes.Code.SYSTEM and (village.folder / "log").read_text() == ""


def test_a_status_that_does_not_change_is_written_now_and_then(tmp_path):
    made = statuses.Status("ash", "village", "0" * 16, "CDPADMM", "proven", 40)
    file, seen = statuses.StatusFile(tmp_path / "status.json"), []
    for k in range(20):
        made.updated, made.round = 100.0 + 0.5 * k, k // 13
        file.write(made)
        seen.append(json.loads(file.path.read_text())["updated"])
    assert seen == [100.0] * 4 + [102.0] * 4 + [104.0] * 4 + [106.0] + [106.5] * 4 + [108.5] * 3
    made.updated = 50.0  # the clock was set back
    file.write(made)
    assert json.loads(file.path.read_text())["updated"] == 50.0


def test_a_connection_that_is_lost_while_signatures_are_waited_for_is_opened_again(village, monkeypatch):
    """A neighbour that is there must not be shown as down until training begins."""
    monkeypatch.setattr(holding, "SECONDS", 0.001)
    member = trainer(village)

    class Line:
        up, greetings = False, 0

        async def hello(self):
            self.greetings, self.up = self.greetings + 1, True
            return 0

    async def body():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
        node.links = {"birch": Line()}
        await node._greet("birch")
        for lost in (1, 2):
            node.links["birch"].up = False
            async with asyncio.timeout(30):
                while not node.links["birch"].up:
                    await asyncio.sleep(0.001)
            assert node.links["birch"].greetings == 1 + lost
        await node._holding.end()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(body())
    close(member)


def test_a_journal_removed_under_a_running_node_is_noticed_before_anything_is_sent(village):
    member = trainer(village)
    member.open()
    member.journal.path.unlink()
    with pytest.raises(Damaged, match="was removed while the node ran"):
        member.begin()
    assert codes.code_of(Damaged("x")) == codes.Code.DAMAGED
    close(member)


def test_homes_are_for_their_owner_and_a_ledger_that_others_may_write_is_refused(village, tmp_path):
    for folder in (village.folder / "ash", tmp_path / "new"):
        if not folder.exists():
            Identity.create(folder, "new", "127.0.0.1:1")
        assert folder.stat().st_mode & 0o077 == 0
    member = trainer(village)
    member.open()
    close(member)
    ledger = village.folder / "ash" / "ledger.sqlite"
    for mode, fine in ((0o666, False), (0o620, False), (0o600, True), (0o644, True)):
        ledger.chmod(mode)
        purse = Purse(village.federation, 0, "people", ledger)
        with Journal(village.run_folder("ash"), village.federation.digest) as journal:
            if fine:
                purse._check_mode()
            else:
                with pytest.raises(ConfideError, match=f"others can write the ledger .mode {mode:o}"):
                    purse.open("x/y", [], journal.path.parent)
        purse.close()


@pytest.mark.parametrize("damage", ["a byte", "junk", "empty"])
def test_a_damaged_ledger_has_the_code_of_damaged_files(village, damage):
    """At the start of a node, by the program's own exit code."""
    ledger = village.folder / "ash" / "ledger.sqlite"
    purse = Purse(village.federation, 0, "ash", ledger)
    with Journal(village.folder / "first", village.federation.digest) as journal:
        purse.open("x/y", [], journal.path.parent)
    purse.close()
    whole = ledger.read_bytes()
    at = whole.index(b"ash")
    ledger.write_bytes({"a byte": whole[:at] + b"b" + whole[at + 1 :], "junk": b"junk" * 1000, "empty": b""}[damage])
    done = CliRunner().invoke(app, [*village.arguments("ash"), "--proxy", "none"])
    assert done.exit_code == codes.Code.DAMAGED and "damaged" in done.stderr, done.output
    assert not list(village.folder.glob("ash/runs/*/rows"))


# --- federations ------------------------------------------------------------------------------------------------------


def test_strange_federations_are_one_line(village):
    def load(**changed):
        return federations.load(village.write("strange.toml", {**village.document, **changed}))

    with pytest.raises(ConfideError, match=r"algorithm\.rounds=1000000000: must be at most 1000000"):
        load(algorithm={**SECURE, "rounds": 10**9})
    for field in ("name", "run"):
        with pytest.raises(ConfideError, match="without control characters"):
            load(**{field: "\x1b[2Jvillage"})
    deep = village.folder / "deep.toml"
    deep.write_text("a = " + "[" * 100_000 + "]" * 100_000)
    with pytest.raises(ConfideError, match="nested too deeply"):
        federations.load(deep)


def test_every_end_of_a_run_has_a_code_of_its_own():
    assert len({*codes.Code}) == len(codes.Code.__members__) == 7
    for error, code in ((ConfideError("x"), 2), (BudgetExceeded("x"), 4), (codes.Untrusted("x"), 5), (Damaged("x"), 6),
                        (OSError(28, "full", "file"), 7), (FileNotFoundError(2, "no", "file"), 2)):  # fmt: skip
        assert codes.code_of(error) == code
    assert json.dumps(codes.Code.TIMEOUT) == "3"
