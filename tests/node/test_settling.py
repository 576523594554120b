"""Ledger and journal that disagree: what was released is charged, what is drawn again is paid again, or one line."""

import os
import shutil
import sqlite3

import mpmath
import numpy as np
import pytest
from test_member import SECURE, close, neighbours, trainer
from village import Village

from confide.node.remembered import FILE, Memory, Remembered
from confide.privacy import ZCDP, Gaussian, PureDP, epsilon
from confide.privacy.ledger import BudgetExceeded, Head, Ledger
from confide.privacy.secure import rho


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))


def ledger_of(village):
    return village.folder / "ash" / "ledger.sqlite"


def run_to(village, sent, keep=None, spare=0, heard=False):
    """A party that has sent so many rounds, and maybe heard the last, and is closed; `keep` copies the ledger after
    that round."""
    member = trainer(village, spare=spare)
    member.open()
    member.begin()
    for t in range(member.sent, sent):
        if t == keep:
            copy_ledger(village, "kept")
        member.step(neighbours(village, member, t))
    if sent == keep:
        copy_ledger(village, "kept")
    if heard:
        member.step(neighbours(village, member, sent))
    close(member)
    return member


def copy_ledger(village, name):
    with sqlite3.connect(ledger_of(village)) as db, sqlite3.connect(village.folder / name) as copy:
        db.backup(copy)
    copy.close()
    db.close()


def restore(village, name="kept"):
    for suffix in ("", "-wal", "-shm"):
        (village.folder / "ash" / f"ledger.sqlite{suffix}").unlink(missing_ok=True)
    if name is not None:
        shutil.copy(village.folder / name, ledger_of(village))


def cut_last_record(village, count=1):
    """The journal without its last own records and whatever follows."""
    path, own = village.run_folder("ash") / "journal", village.identities["ash"].card.digest
    with village.journal("ash") as journal:
        first = journal.last(own) - count + 1
        offset = journal._at[own, first][0] - 16
    os.truncate(path, offset)


def charges(village, population="people"):
    with Ledger(ledger_of(village)) as ledger:
        return [(e.round, e.attempt) for e in ledger.entries(population)], ledger.balance(population)


def price(member, t):
    """What a round costs on the scale of μ², by OpenDP's own map."""
    (event,) = member.federation.algorithm.events(member.federation.public.at(0))[t - 1]
    return 2 * rho(float(np.ravel(event.sensitivity)[0]), float(np.ravel(event.scale)[0]), member.width(t))


# --- the ledger is behind the journal -------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [1, 3, None])
def test_an_older_or_missing_ledger_is_charged_what_the_journal_shows(village, kept):
    member = run_to(village, 4, keep=kept)
    before = charges(village)
    restore(village, "kept" if kept else None)
    for again in (False, True):
        member = trainer(village)
        member.open()
        lacking = 4 - (kept or 0)
        if again:
            assert member.notice == ""
        else:
            assert f"the ledger lacked {lacking} of 4 releases in the journal: charged now" in member.notice
            assert "older copy or another file" in member.notice and "\n" not in member.notice
        close(member)
        rounds, balance = charges(village)
        assert rounds == before[0] == [(t, 1) for t in (1, 2, 3, 4)]
        assert balance.spent == before[1].spent == pytest.approx(sum(price(member, t) for t in (1, 2, 3, 4)), rel=1e-9)
    with Ledger(ledger_of(village)) as ledger:
        ((_, note),) = ledger.notes()
        assert f"{lacking} releases charged after they were made, rounds {(kept or 0) + 1} to 4" in note


def test_without_a_memory_the_journal_alone_is_enough(village):
    run_to(village, 4, keep=1)
    restore(village)
    (village.run_folder("ash") / FILE).unlink()
    member = trainer(village)
    member.open()
    assert member.notice == "the ledger lacked 3 of 4 releases in the journal: charged now"
    close(member)


def test_what_was_released_counts_beyond_the_budget_and_nothing_more_is_admitted(village):
    member = run_to(village, 3)
    restore(village, None)
    with Ledger(ledger_of(village)) as ledger:
        ledger.open_population("people", 0.1, 1e-5)
    member = trainer(village)
    with pytest.raises(BudgetExceeded, match="is left"):
        member.open()
    close(member)
    rounds, balance = charges(village)
    assert rounds == [(1, 1), (2, 1), (3, 1)] and balance.spent > balance.limit and balance.left == 0
    assert member.sent == 3


def other_run(village, run):
    with Ledger(ledger_of(village)) as ledger:
        if "people" not in ledger.populations():
            ledger.open_population("people", 20.0, 1e-5, calculus="zcdp")
        ledger.charge("people", run, 1, [Gaussian(0.04, 1.0)])


def test_an_older_ledger_that_lost_what_others_released_is_refused(village):
    run_to(village, 2, keep=2)
    other_run(village, "fit")
    run_to(village, 3)  # sees it
    restore(village)
    before = ledger_of(village).read_bytes()
    for _ in range(2):
        member = trainer(village)
        with pytest.raises(ValueError, match="releases of other runs") as error:
            member.open()
        assert "\n" not in str(error.value) and str(village.run_folder("ash") / FILE) in str(error.value)
        close(member)
    assert charges(village)[0] == [(1, 1), (2, 1)]
    with sqlite3.connect(ledger_of(village)) as db:
        assert db.execute("SELECT count(*) FROM notes").fetchone() == (0,) and before
    db.close()
    (village.run_folder("ash") / FILE).unlink()  # the owner's decision
    member = trainer(village)
    member.open()
    assert "lacked 1 of 3" in member.notice
    close(member)


def test_a_missing_ledger_that_others_used_is_refused(village):
    other_run(village, "fit")
    run_to(village, 2)
    restore(village, None)
    member = trainer(village)
    with pytest.raises(ValueError, match="releases of other runs"):
        member.open()
    close(member)


def test_an_older_ledger_with_all_that_others_released_is_settled(village):
    """Even if yet another run was charged to the older copy meanwhile."""
    other_run(village, "fit")
    run_to(village, 3, keep=1)
    restore(village)
    other_run(village, "later")
    member = trainer(village)
    member.open()
    assert "lacked 2 of 3" in member.notice
    close(member)
    assert charges(village)[0] == [(1, 1), (1, 1), (1, 1), (2, 1), (3, 1)]
    member = trainer(village)
    member.open()  # remembered anew
    assert member.notice == ""
    close(member)


# --- the ledger is ahead of the journal -----------------------------------------------------------------------------


def test_a_round_whose_record_was_cut_off_is_paid_for_again(village):
    """The neighbours hide their copies: two messages for one round exist, so two are charged."""
    first = run_to(village, 3)
    own = first.identity.card.digest
    with village.journal("ash") as journal:
        sent = {journal.frame(own, 3)}
    for attempt in (2, 3):
        cut_last_record(village)
        member = trainer(village)
        member.open()
        assert member.notice == "round 3 was paid for and is not in the journal: it is paid for again"
        held = member.purse.ledger.balance("people")
        assert held.held == pytest.approx(price(member, 3) + price(member, 4), rel=1e-9)
        member.begin()
        if member.sent < 3:
            member.step(neighbours(village, member, 2))
        sent.add(member.journal.frame(own, 3))
        assert member.journal.attempt(own, 3) == attempt
        close(member)
    assert len(sent) == 3  # three different messages
    shutil.copy(village.file, village.run_folder("ash") / "federation.toml")
    mu = mpmath.sqrt(sum(price(first, t) for t in (1, 2, 3, 3, 3)))
    e = mpmath.mpf(village.model("ash").privacy.epsilon)  # the model says so, too
    delta = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
    assert float(delta) == pytest.approx(1e-5, rel=1e-6)
    rounds, balance = charges(village)
    assert rounds == [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3)]
    assert balance.spent == pytest.approx(sum(price(first, t) for t in (1, 2, 3, 3, 3)), rel=1e-9)


def test_attempts_in_the_journal_are_charged_to_a_new_ledger(village):
    run_to(village, 3)
    cut_last_record(village)
    member = trainer(village)
    member.open()
    member.begin()
    if member.sent < 3:
        member.step(neighbours(village, member, 2))
    close(member)
    restore(village, None)
    member = trainer(village)
    member.open()
    assert "lacked 4 of 4 releases" in member.notice
    close(member)
    assert charges(village)[0] == [(1, 1), (2, 1), (3, 1), (3, 2)]


def test_a_budget_that_does_not_cover_another_attempt_refuses_before_a_row_is_read(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    whole = sum(price(member, t) for t in (1, 2, 3, 4))
    close(member)
    with Ledger(ledger_of(village)) as ledger:
        ledger.open_population("people", 1.0, 1e-5, calculus="zcdp")
        ledger.charge("people", "before", 1, [ZCDP(ledger.balance("people").limit / 2 - whole / 2 * (1 + 1e-6))])
    run_to(village, 2)
    cut_last_record(village)
    (tmp_path / "ash.npz").unlink()
    spent = charges(village)
    for _ in range(2):
        member = trainer(village)
        with pytest.raises(BudgetExceeded, match="is left") as error:
            member.open()
        assert "\n" not in str(error.value) and member.sent == 1
        close(member)
    assert charges(village) == spent


def test_the_federations_cap_counts_attempts(tmp_path):
    """Even if the owner's own budget has room."""
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    cap = float(epsilon([ZCDP(price(member, t) / 2) for t in (1, 2, 3, 4)], 1e-5)) * 1.0001
    close(member)
    shutil.rmtree(village.run_folder("ash"))
    (tmp_path / "tight").mkdir()
    tight = Village(tmp_path / "tight", SECURE, seed=None, budget=(cap, 1e-5))
    with Ledger(ledger_of(tight)) as ledger:
        ledger.open_population("people", 20.0, 1e-5)
    spared = trainer(tight, spare=1)
    with pytest.raises(BudgetExceeded, match="4 rounds with 1 more attempts cost"):
        spared.open()
    close(spared)
    run_to(tight, 2)
    cut_last_record(tight)
    member = trainer(tight)
    with pytest.raises(BudgetExceeded, match="more than the federation's cap"):
        member.open()
    close(member)


def test_spare_attempts_are_held_up_front_and_used_up(village):
    member = trainer(village, spare=2)
    member.open()
    prices = [price(member, t) for t in (1, 2, 3, 4)]
    whole, (second, dearest) = sum(prices), sorted(prices)[2:]
    assert member.purse.ledger.balance("people").held == pytest.approx(whole + dearest + second, rel=1e-9)
    close(member)
    run_to(village, 2, spare=2)
    cut_last_record(village)
    member = trainer(village, spare=2)
    member.open()
    now = member.purse.ledger.balance("people")
    assert now.spent + now.held == pytest.approx(whole + price(member, 2) + second, rel=1e-9)
    close(member)
    with pytest.raises(ValueError, match="spare attempts"):
        trainer(village, spare=-1)


def test_a_copy_of_the_node_that_pays_into_the_same_ledger_is_noticed(village):
    run_to(village, 1)
    folder = village.run_folder("ash")
    one = trainer(village)
    one.open()
    shutil.copytree(folder, folder.with_name("copy"))
    with Ledger(ledger_of(village)) as ledger:
        run, events = one.purse.run, one.purse.prices[1]
        ledger.charge("people", run, 2, events, party="ash")  # as the copy does
    one.begin()
    with pytest.raises(ValueError, match="is a copy of this node running"):
        one.step(neighbours(village, one, 1))
    assert one.sent == 1 and one.party._sent is None
    close(one)


# --- the memory -----------------------------------------------------------------------------------------------------


def test_a_memory_survives_torn_writes(tmp_path):
    book = Remembered(tmp_path)
    memories = [Memory(Head(n, bytes([n]) * 32), Head(n - 1, bytes(32)), n > 2) for n in (1, 2, 3)]
    assert book.memory == Memory()
    for memory in memories:
        book.keep(memory)
    book.close()
    data = (tmp_path / FILE).read_bytes()
    half = len(data) // 2
    for at in range(len(data)):
        bad = bytearray(data)
        bad[at] ^= 0x10
        (tmp_path / FILE).write_bytes(bad)
        one = Remembered(tmp_path)
        assert one.memory == (memories[1] if at >= half else memories[2])  # the third is in the second slot
        one.close()
    for size in range(len(data) + 1):
        (tmp_path / FILE).write_bytes(data[:size])
        one = Remembered(tmp_path)
        assert one.memory in (Memory(), *memories)
        one.close()
    (tmp_path / FILE).write_bytes(bytes(len(data)))
    with pytest.raises(ValueError, match="damaged; remove it"):
        Remembered(tmp_path)


def test_the_memory_follows_the_ledger(village):
    member = run_to(village, 2)
    other_run(village, "fit")
    book = Remembered(village.run_folder("ash"))
    with Ledger(ledger_of(village)) as ledger:
        assert ledger.continues(book.memory.head) and ledger.head().rows > book.memory.head.rows
        assert not book.memory.released
        before = ledger.head()
    book.close()
    run_to(village, 3)
    book = Remembered(village.run_folder("ash"))
    assert book.memory.released and book.memory.others == before and book.memory.head.rows > before.rows
    book.close()
    assert member.notice == ""


def test_populations_kept_in_pure_epsilon_take_no_gaussian_run_and_nothing_changes(village):
    """One that cannot add up is refused in one line, before and after a loss."""
    run_to(village, 2)
    restore(village, None)
    with Ledger(ledger_of(village)) as ledger:
        ledger.open_population("people", 5.0, 1e-5, calculus="pure")
        ledger.charge("people", "exact", 1, [PureDP(0.1)])
    member = trainer(village)
    with pytest.raises(ValueError, match="to which nothing else adds"):
        member.open()
    close(member)
    assert charges(village)[0] == [(1, 1)]


def test_no_more_rounds_are_admitted_than_there_are(village):
    """Whoever has a key of this node that was revoked can sign any round, such as one that no price is known of."""
    member = trainer(village)
    member.open()
    member.admit(2**32 - 1)
    assert len(charges(village)[0]) == member.rounds
    close(member)
