"""Several runs of one home, and what their memories show that ledger and journals do not."""

import json
import os
import shutil

import pytest
from test_closing import end
from test_member import close, neighbours, trainer
from test_settling import charges, cut_last_record, ledger_of, other_run, restore, run_to
from test_settling import village as village

from confide.node import daemon
from confide.node import federation as federations
from confide.node.remembered import FILE, LONGEST, recall
from confide.privacy.ledger import BudgetExceeded, Ledger


def another(village, run="1"):
    """Another run of the same home; the earlier ones are left as the daemon leaves them."""
    shutil.copy(village.file, village.run_folder("ash") / daemon.FEDERATION)
    village.file = village.write("federation.toml", {**village.document, "run": run})
    village.federation = federations.load(village.file)


def refused(village, words, **options):
    member = trainer(village, **options)
    with pytest.raises(ValueError, match=words) as error:
        member.open()
    assert "\n" not in str(error.value)
    close(member)
    return str(error.value)


@pytest.mark.parametrize("kept", [1, None])
def test_a_new_run_charges_what_earlier_runs_of_its_home_released(village, kept):
    first = run_to(village, 4, keep=kept)
    before = charges(village)
    restore(village, "kept" if kept else None)
    another(village)
    for lacked in (True, False):
        member = trainer(village)
        member.open()
        words = f"the ledger lacked {4 - (kept or 0)} of 4 releases of run {first.purse.run}: charged now"
        assert member.notice == (words if lacked else "")
        close(member)
        rounds, balance = charges(village)
        assert rounds == before[0] and balance.spent == before[1].spent


def test_two_runs_without_their_ledger_are_both_settled(village):
    """The second saw the first in the ledger, so that it is refused until the owner decides; then nothing is lost."""
    first = village.run_folder("ash")
    run_to(village, 4)
    another(village)
    run_to(village, 2)
    restore(village, None)
    words = refused(village, "releases of other runs")
    assert str(village.run_folder("ash") / FILE) in words and str(first / FILE) not in words
    assert charges(village)[0] == [(1, 1), (2, 1), (3, 1), (4, 1)]  # the first's, by its journal
    (village.run_folder("ash") / FILE).unlink()
    member = trainer(village)
    member.open()
    assert member.notice == "the ledger lacked 2 of 2 releases in the journal: charged now"
    close(member)
    assert len(charges(village)[0]) == 6


def test_a_new_run_is_refused_while_an_earlier_one_remembers_releases_that_are_lost(village):
    other_run(village, "fit")
    run_to(village, 2)
    restore(village, None)
    memory = village.run_folder("ash") / FILE
    another(village)
    assert str(memory) in refused(village, "releases of other runs")
    assert charges(village)[0] == [(1, 1), (2, 1)]  # what the earlier journal shows is there all the same
    memory.unlink()  # the owner's decision
    member = trainer(village)
    member.open()
    close(member)


def test_a_new_run_is_refused_where_an_earlier_journal_is_lost_with_the_ledger(village):
    run_to(village, 2)
    restore(village, None)
    folder = village.run_folder("ash")
    another(village)
    (folder / "journal").unlink()
    assert str(folder / FILE) in refused(village, "has no journal")


def test_a_round_that_only_the_memory_has_seen_is_charged_and_paid_again(village):
    run_to(village, 3, keep=2)
    cut_last_record(village)
    restore(village)
    member = trainer(village)
    member.open()
    assert "round 3 was paid for and is not in the journal" in member.notice
    member.begin()
    if member.sent < 3:
        member.step(neighbours(village, member, 2))
    assert member.journal.attempt(member.identity.card.digest, 3) == 2
    close(member)
    assert charges(village)[0] == [(1, 1), (2, 1), (3, 1), (3, 2)]
    memory = recall(village.run_folder("ash"))
    assert (memory.run, memory.population, memory.round, memory.attempt) == (member.purse.run, "people", 3, 2)


def test_several_rounds_that_only_the_memory_has_seen_are_charged_and_the_run_refused(village):
    run_to(village, 4, keep=1)
    cut_last_record(village, 3)
    restore(village)
    for _ in range(2):
        refused(village, "other noise for the same rounds")
    assert charges(village)[0] == [(1, 1), (2, 1), (3, 1), (4, 1)]


def test_a_run_is_ended_with_what_its_memory_shows(village):
    run = run_to(village, 3, keep=2).purse.run
    cut_last_record(village)
    restore(village)
    (done,) = json.loads(end(village, "--end", run, "--journal", village.run_folder("ash")).stdout)["ended"]
    assert done["rounds"] == 3 and done["charged_now"] == [{"round": 3, "attempt": 1}]


def test_without_its_ledger_a_run_still_stays_with_its_population(village):
    run_to(village, 2)
    restore(village, None)
    refused(village, "charged to 'people', not to 'others'", population="others")
    with pytest.raises(ValueError, match=f"at most {LONGEST} bytes"):
        trainer(village, population="é" * LONGEST)


def test_a_refusal_after_settling_says_what_was_charged(village):
    run_to(village, 3)
    restore(village, None)
    with Ledger(ledger_of(village)) as ledger:
        ledger.open_population("people", 0.1, 1e-5)
    for words in ("nothing more was charged; the ledger lacked 3 of 3 releases", "nothing was charged"):
        member = trainer(village)
        with pytest.raises(BudgetExceeded, match=words):
            member.open()
        close(member)


def test_a_damaged_memory_of_an_earlier_run_is_one_line(village):
    run_to(village, 1)
    path = village.run_folder("ash") / FILE
    path.write_bytes(os.urandom(path.stat().st_size + 2000))
    another(village)
    assert str(path) in refused(village, "damaged; remove it")
