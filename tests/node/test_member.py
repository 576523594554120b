"""A party on disk, without a network: ledger, noise, journal, send; a crash between any two releases nothing unpaid."""

import numpy as np
import pytest
from village import NAMES, Village

from confide.network import wire
from confide.node.journal import Journal
from confide.node.member import Trainer
from confide.node.purse import Purse
from confide.privacy.ledger import BudgetExceeded, Ledger

SECURE = {"name": "CDPADMM", "rounds": 4, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}


class Crash(BaseException):
    """The power goes."""


def trainer(village, name="ash", population="people", spare=0):
    journal = Journal(village.run_folder(name), village.federation.digest)
    k = NAMES.index(name)
    purse = Purse(village.federation, k, population, village.folder / name / "ledger.sqlite", spare)
    data = village.folder / f"{name}.npz"
    return Trainer(village.federation, village.identities[name], journal, purse, data)


def close(member):
    member.purse.close()
    member.journal.close()


def neighbours(village, member, t):
    """Frames of a round as the two neighbours might send them."""
    width = member.width(t)
    rng = np.random.default_rng(t)
    return {
        name: wire.pack(village.identities[name], village.federation.digest, t, rng.normal(size=width).tobytes())
        for name in member.neighbours
    }


@pytest.mark.parametrize("where", ["before the ledger", "after the ledger", "after the noise", "after the journal"])
def test_a_crash_between_any_two_steps_releases_nothing_unpaid(tmp_path, monkeypatch, where):
    """Where the journal does not show that the round was drawn but the ledger does, it may have been: paid again."""
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    member.open()
    member.begin()
    first = member.journal.frame(member.identity.card.digest, 1)

    def crash(*_, **__):
        raise Crash

    spot = {
        "before the ledger": (member.purse, "pay"), "after the ledger": (member.party, "send"),
        "after the noise": (member.journal, "commit"), "after the journal": (member.journal, "sync"),
    }[where]  # fmt: skip
    if where == "after the ledger":  # `send` is also asked for the own message of this round
        real, calls = member.party.send, []
        monkeypatch.setattr(*spot, lambda: crash() if member.party.t == 1 and calls.append(1) is None else real())
    else:
        monkeypatch.setattr(*spot, crash)
    with pytest.raises(Crash):
        member.step(neighbours(village, member, 1))
    monkeypatch.undo()
    close(member)

    again = trainer(village)
    assert again.journal.frame(again.identity.card.digest, 1) == first  # the same bytes
    assert again.t == 1  # the round was complete: replayed, not computed
    again.open()
    again.begin()
    second = again.journal.frame(again.identity.card.digest, 2)
    for t in (2, 3, 4):
        again.step(neighbours(village, again, t))
    assert again.journal.frame(again.identity.card.digest, 2) == second and again.t == 4
    entries, redrawn = again.purse.ledger.entries("people"), where in ("after the ledger", "after the noise")
    assert [(e.round, e.attempt) for e in entries] == [(1, 1), (2, 1), *([(2, 2)] if redrawn else []), (3, 1), (4, 1)]
    assert len({e.run for e in entries}) == 1
    assert [again.journal.attempt(again.identity.card.digest, t) for t in (1, 2, 3, 4)] == [1, 1 + redrawn, 1, 1]
    assert ("round 2 was paid for and is not in the journal" in again.notice) == redrawn
    again.end()
    assert again.purse.ledger.balance("people").held == 0
    close(again)


def test_the_whole_schedule_must_fit_before_a_row_is_read(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(0.01, 1e-5))
    (tmp_path / "ash.npz").unlink()
    member = trainer(village)
    with pytest.raises(BudgetExceeded, match="more than the federation's cap"):
        member.open()
    assert member.sent == 0
    close(member)


def test_an_owners_smaller_budget_refuses_the_run(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    with Ledger(tmp_path / "ash" / "ledger.sqlite") as ledger:
        ledger.open_population("people", 0.02, 1e-5)
    member = trainer(village)
    with pytest.raises(BudgetExceeded, match="is left"):
        member.open()
    assert member.sent == 0 and member.purse.ledger.spent("people") == 0
    close(member)


def test_budget_exhaustion_stops_before_the_release(tmp_path):
    """The owner lowers the budget while the run goes on: the next message is neither computed nor written."""
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    member.open()
    member.begin()
    member.step(neighbours(village, member, 1))
    with Ledger(tmp_path / "ash" / "ledger.sqlite") as ledger:
        ledger.change_budget("people", ledger.spent("people") * 1.01, 1e-5)
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        member.step(neighbours(village, member, 2))
    assert member.sent == 2 and member.party._sent is None
    assert len(member.purse.ledger.entries("people")) == 2
    close(member)


def test_an_older_copy_of_the_journal_is_refused(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    member.open()
    member.begin()
    old = member.journal.path.read_bytes()
    for t in (1, 2, 3):
        member.step(neighbours(village, member, t))
    close(member)
    member.journal.path.write_bytes(old)
    again = trainer(village)
    with pytest.raises(ValueError, match="other noise for the same rounds"):
        again.open()
    close(again)


def test_a_lost_journal_is_paid_for_again(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(40.0, 1e-5))
    for spends in (1, 2):
        member = trainer(village)
        member.open()
        member.begin()
        assert len(member.purse.ledger.entries("people")) == spends
        member.end()
        close(member)
        member.journal.path.unlink()


def test_rows_must_be_what_the_federation_says_and_no_error_shows_a_value(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    X, y = np.full((12, 4), 0.123456789), np.ones(12)
    bad = {
        "12 rows of 4 for ash": (X[:5], y[:5]), "a label is not one": (X, y * 0.987654321),
        r"ash.npz: X\[0, 0\] is nan: every": (X * np.nan, y), "must hold the arrays": None,
    }  # fmt: skip
    for words, arrays in bad.items():
        np.savez(tmp_path / "ash.npz", **({"Z": X} if arrays is None else {"X": arrays[0], "y": arrays[1]}))
        member = trainer(village)
        with pytest.raises(ValueError, match=words) as error:
            member._block(tmp_path / "ash.npz")
        assert "0.12345" not in str(error.value) and "0.98765" not in str(error.value)
        close(member)


def test_plain_csv_is_read_and_its_errors_name_the_line(tmp_path):
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    member = trainer(village)
    with np.load(tmp_path / "ash.npz") as file:
        X, y = file["X"], file["y"]
    path = tmp_path / "ash.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", fmt="%.17g")
    there, here = member._block(path), member._block(tmp_path / "ash.npz")
    assert np.array_equal(there.shards.X, here.shards.X) and np.array_equal(there.shards.y, here.shards.y)
    path.write_text("1,2,3,4,1\n1,2,secret,4,1\n")
    with pytest.raises(ValueError, match="line 2, column 3: not a finite number") as error:
        member._block(path)
    assert "secret" not in str(error.value)
    close(member)
