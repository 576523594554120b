"""SIGTERM and Ctrl-C at any moment of a node's life: the same code, and whatever was begun is brought to an end."""

import asyncio
import os
import signal
import time
from types import SimpleNamespace

import nursery
import pytest
from test_member import SECURE, close, trainer
from village import Village
from waiting import wait_for

from confide.node import daemon
from confide.node.codes import Code
from confide.node.status import running
from confide.node.witness import Contradiction

TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.fixture
def village(tmp_path):
    with Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5), timeout=60.0) as made:
        yield made


def waits(folder):
    """Forever, once it is seen in the folder."""
    (folder / "here").touch()
    time.sleep(600)


def run_waiting(arguments, log, spot, folder):
    """A node that takes long: to read its journal, or to hang up at its end."""
    from confide.network.peer import Server
    from confide.node.journal import Journal

    real = Server.stop

    async def stop(self, grace=1.0):
        (folder / "here").touch()
        await asyncio.sleep(2)
        await real(self, grace)

    if spot == "reading":
        Journal._load = lambda self: waits(folder)
    else:
        Server.stop = stop
    nursery.run_node(arguments, log)


def started(village, spot):
    arguments = village.arguments("ash"), str(village.folder / "ash.log"), spot, village.folder
    job = village.jobs["ash"] = nursery.CONTEXT.Process(target=run_waiting, args=arguments, daemon=True)
    job.start()
    return job


@pytest.mark.parametrize("which", [TERM, INT])
def test_a_node_that_reads_its_journal_ends_at_once(village, which):
    """As one does that starts, or takes up an amendment: nothing listens to the network yet."""
    job = started(village, "reading")
    assert wait_for(lambda: (village.folder / "here").exists())
    os.kill(job.pid, which)
    job.join(30)
    assert job.exitcode == 128 + which and "Traceback" not in village.log("ash")
    assert not running(village.run_folder("ash"))


def test_a_second_sigterm_does_not_disturb_the_end(village):
    job = started(village, "ending")
    assert wait_for(lambda: (village.status("ash") or {}).get("state") == "greeting")
    os.kill(job.pid, TERM)
    assert wait_for(lambda: (village.folder / "here").exists())
    os.kill(job.pid, TERM)
    job.join(30)
    assert job.exitcode == 128 + TERM and "Traceback" not in village.log("ash")
    status = village.status("ash")
    assert (status["state"], status["reason"]) == ("stopped", "SIGTERM; run again to resume")


def test_a_second_ctrl_c_ends_it_at_once(village):
    job = started(village, "ending")
    assert wait_for(lambda: (village.status("ash") or {}).get("state") == "greeting")
    os.kill(job.pid, INT)
    assert wait_for(lambda: (village.folder / "here").exists())
    began = time.monotonic()
    os.kill(job.pid, INT)
    job.join(30)
    assert job.exitcode == 128 + INT and time.monotonic() - began < 1.9


# --- in one process ---------------------------------------------------------------------------------------------------


@pytest.fixture
def node(village):
    """Makes a daemon whose work is `work()`, and runs it."""
    member = trainer(village)

    def run(work, ending=lambda: None):
        async def body():
            made = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
            made._until_amended = lambda: work(made)
            stop = made.server.stop

            async def stopping():
                ending()
                await asyncio.sleep(0)
                await stop()

            made.server.stop = stopping
            return await made.run()

        before = signal.getsignal(TERM), signal.getsignal(INT)
        status = asyncio.run(body())
        assert (signal.getsignal(TERM), signal.getsignal(INT)) == before
        return status

    yield run
    close(member)


def say(which=TERM):
    os.kill(os.getpid(), which)


@pytest.mark.parametrize("which", [TERM, INT])
def test_the_code_is_that_of_the_signal(node, which):
    async def work(made):
        say(which)
        await asyncio.sleep(600)

    status = node(work)
    assert (status.state, status.code) == ("stopped", 128 + which)
    assert status.reason == f"{which.name}; run again to resume"


def test_a_run_that_is_over_stays_so(node, village):
    """Told to stop while it hangs up: it has finished."""

    async def work(made):
        return "finished"

    status = node(work, say)
    assert (status.state, status.code) == ("finished", Code.FINISHED) == (village.status("ash")["state"], 0)


def test_who_is_told_to_stop_before_an_amendment_is_taken_up_does(node, village):
    async def work(made):
        return daemon.AMENDED

    status = node(work, say)
    assert (status.state, status.code) == ("stopped", 128 + TERM)
    assert village.status("ash")["state"] == "stopped" and "SIGTERM" in village.status("ash")["reason"]


def test_who_is_told_to_stop_while_it_warns_others_ends_with_the_code_of_what_it_found(node, village):
    """And soon, though nobody has asked for the warning."""
    signed = SimpleNamespace(evidence=lambda: "{}")

    async def work(made):
        asyncio.get_running_loop().call_later(0.2, say)
        error = Contradiction.__new__(Contradiction)
        error.party, error.round, error.alarm, error.evidence = "birch", 3, b"alarm", signed.evidence
        raise error

    began = time.monotonic()
    status = node(work)
    assert (status.state, status.code) == ("stopped", Code.MISBEHAVIOUR) and time.monotonic() - began < 20
    assert list((village.run_folder("ash") / "evidence").glob("*.json"))
