"""What an owner can do to journal, ledger, memory and options of a run, and must not get rounds for nothing by it."""

import asyncio
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from test_member import SECURE, close, neighbours, trainer
from test_settling import charges, cut_last_record, ledger_of, restore, run_to
from village import Village

from confide.node import daemon
from confide.node import federation as federations
from confide.node.journal import Journal, run_name
from confide.node.purse import Purse
from confide.node.remembered import FILE
from confide.privacy import epsilon
from confide.privacy.budget import Bill
from confide.privacy.ledger import Ledger

OLD = Path(__file__).parents[1] / "fixtures" / "formats" / "0.1.0"
ROW = ("row", "replace", "network")


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))


def opened(village, **options):
    """Whether the run may go on; it is closed again either way."""
    member = trainer(village, **options)
    try:
        member.open()
    except ValueError as error:
        assert "\n" not in str(error)
        return None
    finally:
        close(member)
    return member


# --- the same journal, another population ---------------------------------------------------------------------------


def test_a_run_resumed_under_another_population_still_costs_the_first(village):
    """`--population` left out of the second command: the people of the first are in the rows all the same."""
    run_to(village, 2)
    member = trainer(village, population="ash")
    try:
        member.open()
        member.begin()
        member.step(neighbours(village, member, 2))
    except ValueError as error:
        assert "people" in str(error) and "\n" not in str(error)
    finally:
        close(member)
    assert len(charges(village)[0]) == member.sent  # every round that was released


# --- what no single run's journal shows -----------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [2, None])
def test_a_finished_run_charges_what_an_older_ledger_lacks(village, kept):
    run_to(village, 4, keep=kept, heard=True)
    status = daemon.Status("ash", "village", "", "CDPADMM", "", 4, state="finished", round=4)
    (village.run_folder("ash") / daemon.STATUS).write_text(json.dumps(asdict(status)))
    restore(village, "kept" if kept else None)
    daemon.run(village.folder / "ash", village.file, village.folder / "ash.npz", population="people", agree=True,
               ledger=ledger_of(village))  # fmt: skip
    assert ledger_of(village).exists() and len(charges(village)[0]) == 4


@pytest.mark.parametrize("kept", [1, None])
def test_a_new_run_sees_that_the_ledger_lost_what_earlier_runs_of_this_home_released(village, kept):
    run_to(village, 4, keep=kept)
    restore(village, "kept" if kept else None)
    village.file = village.write("federation.toml", {**village.document, "run": "1"})
    village.federation = federations.load(village.file)
    if opened(village) is not None:
        assert len(charges(village)[0]) == 4


# --- the memory knows more than ledger and journal together ---------------------------------------------------------


def test_a_round_that_only_the_memory_has_seen_is_not_drawn_for_one_price(village):
    """The end of the journal and of the ledger are lost together, as by a disk that lied about syncing."""
    run_to(village, 3, keep=2)
    own = village.identities["ash"].card.digest
    with village.journal("ash") as journal:
        shown = journal.frame(own, 3)
    cut_last_record(village)
    restore(village)
    assert (village.run_folder("ash") / FILE).exists()
    member = trainer(village)
    try:
        member.open()
        member.begin()
        if member.sent < 3:
            member.step(neighbours(village, member, 2))
    except ValueError:
        return  # refused: nothing was drawn
    finally:
        close(member)
    with village.journal("ash") as journal:
        draws = 1 if journal.frame(own, 3) == shown else 2
    assert len([t for t, _ in charges(village)[0] if t == 3]) == draws


def test_journal_and_ledger_lost_while_the_memory_is_there_is_refused(village):
    run_to(village, 3)
    restore(village, None)
    (village.run_folder("ash") / "journal").unlink()
    assert opened(village) is None


# --- a run that needs all of its budget -----------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
def test_a_run_calibrated_to_its_budget_goes_on_without_its_ledger(village, tmp_path, kept):
    """As `federation new` calibrates it. `kept`: a copy from before the run, with the owner's budget alone."""
    prices = Purse(village.federation, 0, "people").prices
    cap = float(epsilon([event for now in prices for event in now], 1e-5)) * (1 + 1e-11)
    (tmp_path / "tight").mkdir()
    tight = Village(tmp_path / "tight", SECURE, seed=None, budget=(cap, 1e-5))
    run_to(tight, 3)
    restore(tight, None)
    if kept:
        with Ledger(ledger_of(tight)) as ledger:
            ledger.open_population("people", cap, 1e-5)
    member = trainer(tight)
    member.open()
    assert "the ledger lacked 3 of 3 releases" in member.notice
    close(member)


# --- what a neighbour shows -----------------------------------------------------------------------------------------


def test_rounds_that_a_neighbour_shows_are_charged_before_the_run_is_refused(village):
    """Home and ledger of an older copy: the own signature proves the rounds, and `--end` gives back by the ledger."""
    run_to(village, 2, keep=2)
    kept = (village.run_folder("ash") / "journal").read_bytes()
    run_to(village, 4)
    restore(village)
    (village.run_folder("ash") / "journal").write_bytes(kept)
    (village.run_folder("ash") / FILE).unlink()

    class Neighbour:
        async def hello(self):
            return 4

    member = trainer(village)
    member.open()

    async def greeted():
        node = daemon.Daemon(village.folder / "ash", village.federation, member.identity, member, member.journal)
        node.links = {"birch": Neighbour()}
        await node._greet("birch")

    with pytest.raises(ValueError, match="has round 4 of this node with its signature"):
        asyncio.run(greeted())
    close(member)
    assert {t for t, _ in charges(village)[0]} == {1, 2, 3, 4}


# --- a run that 0.1.0 began -----------------------------------------------------------------------------------------


@pytest.fixture
def old_run(tmp_path):
    """A run of 0.1.0, charged in zCDP for two of four rounds, whose noise stood on the primal: h = 0.9 times less."""
    shutil.copy(OLD / "ledger.sqlite", tmp_path)
    shutil.copytree(OLD / "run", tmp_path / "run")
    federation = federations.load(OLD / "federation.toml")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        before = ledger.balance("people").spent
    with Journal(tmp_path / "run", federation.digest) as journal:
        yield federation, tmp_path, run_name(journal), before


def test_rounds_drawn_by_0_1_0_are_never_settled_for_less_than_it_charged(old_run):
    federation, folder, run, before = old_run
    purse = Purse(federation, 0, "people", folder / "new.sqlite")
    try:
        purse.open(run, [1, 1], folder / "run")
        assert purse.ledger.balance("people").spent >= before
    except ValueError as error:
        assert "\n" not in str(error)
    finally:
        purse.close()


def test_a_run_of_0_1_0_still_holds_what_its_last_rounds_cost(old_run):
    federation, folder, run, _ = old_run
    purse = Purse(federation, 0, "people", folder / "ledger.sqlite")
    try:
        purse.open(run, [1, 1], folder / "run")
        (hold,) = purse.ledger.holds("people")
        assert hold.amount >= sum(Bill.of(now).costs[ROW].square for now in purse.prices[2:]) * (1 - 1e-12)
    except ValueError as error:
        assert "\n" not in str(error)
    finally:
        purse.close()


# --- other files of a home ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['"finished"', "[1]", "3", '{"stbte": "finished"}', '{"state": "finished"}',
                                  '{"state": "finished", "reason": "", "nodf": "ash"}'])  # fmt: skip
def test_a_damaged_status_is_no_traceback(village, text):
    run_to(village, 4)
    (village.run_folder("ash") / daemon.STATUS).write_text(text)
    assert daemon.read_status(village.run_folder("ash")) is None
