"""A compacted journal: shorter, and as good for a restart, a dispute, the ledger, an amendment and a new neighbour."""

import os
import stat
import time
from pathlib import Path

import numpy as np
import pytest
from test_lost_site import Members, frames
from village import NAMES, Village
from waiting import wait_for

import confide
from confide.algorithms import REGISTRY
from confide.errors import ConfideError
from confide.network import wire
from confide.node import compaction, office
from confide.node.comparison import compared
from confide.node.journal import Journal, run_name
from confide.node.member import Trainer
from confide.privacy.ledger import Ledger

ADMM = {"name": "CDPADMM", "rounds": 40, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}
DPSGD = {"name": "DPSGD", "rounds": 40, "clip": 0.5, "noise": 3.0}
WINDOW = 2 * 2  # twice the width of a ring of five


class Crash(BaseException):
    """The power goes."""


@pytest.fixture
def eager(monkeypatch):
    """Small journals are compacted, too."""
    monkeypatch.setattr(compaction, "LEAST", 1)


@pytest.fixture
def members(tmp_path):
    made = []

    def make(algorithm, folder="village", **options):
        paying = options.pop("paying", False)
        (tmp_path / folder).mkdir()
        made.append(Members(Village(tmp_path / folder, algorithm, **options), paying))
        return made[-1]

    yield make
    for one in made:
        one.close()


def forms(member):
    mine = member.identity.card.digest
    return [wire.form_of(member.journal.frame(mine, t)) for t in range(1, member.sent + 1)]


def frames_of(journal):
    return {(sender, t): (frame, journal.attempt(sender, t)) for sender, t, frame in journal.frames()}


def same_messages(now, before):
    """Each of the same sender, round, signature and attempt as before, in the same order."""
    seals = [{key: (wire.seal(frame), attempt) for key, (frame, attempt) in one.items()} for one in (now, before)]
    return seals[0] == seals[1] and [*now] == [*before]


@pytest.mark.parametrize(("algorithm", "form"), [(ADMM, wire.Form.NUMBERS), (DPSGD, wire.Form.SEAL)])
def test_a_member_that_compacts_sends_what_one_sends_that_does_not(members, monkeypatch, algorithm, form):
    """Seeded noise; all are stopped and started again in the middle. Estimates agree to the bit."""
    plain = members(algorithm, "plain")
    plain.run()
    monkeypatch.setattr(compaction, "LEAST", 1)
    short = members(algorithm, "short")
    for until in (20, 33):
        short.run(until=until)
        for name in NAMES:
            short.join(name, short.village.federation)
    short.run()
    for name in NAMES:
        one, other = plain.members[name], short.members[name]
        assert other.t == 40 and np.array_equal(one.estimate, other.estimate)
        found = forms(other)
        assert found[0] == form and found[40 - WINDOW - 1 :] == [wire.Form.WHOLE] * (WINDOW + 1)
        assert forms(one) == [wire.Form.WHOLE] * 40
        mine = [wire.payload_of(frame) for frame in frames(other) if wire.form_of(frame) != wire.Form.SEAL]
        assert mine == [wire.payload_of(frame) for frame in frames(one)][-len(mine) :]
        assert other.journal.size == other.journal.path.stat().st_size < 0.75 * one.journal.size
        others = short.village.federation
        for sender, _, frame in other.journal.frames():  # all still prove what was signed
            card = next(card for card in others.cards.values() if card.digest == sender)
            wire.authentic(frame, card, others.digest)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RADMM", "MRADMM", "PVP", "MADMM", "DZOA", "PrivateZeroth", "PDML", "FADMM"])
def test_a_state_stands_for_the_messages_of_every_method(tmp_path, monkeypatch, method):
    """One party hears the same frames twice: in one life, and stopped after every round with its journal compacted."""
    village = Village(tmp_path, {"name": method, "rounds": 9}, graph=confide.Graph.complete(5), hub=method == "FADMM")
    federation, ash = village.federation, village.identities["ash"]
    assert compaction.form(federation, "ash") == wire.Form.SEAL
    rng, heads = np.random.default_rng(3), {}
    found = []
    for eager in (False, True):
        monkeypatch.setattr(compaction, "LEAST", -(1 << 20) if eager else 1 << 40)  # though a state takes more room
        monkeypatch.setattr(compaction, "SHARE", -np.inf)
        journal = Journal(tmp_path / f"run-{eager}", federation.digest)
        member = Trainer(federation, ash, journal, None, village.folder / "ash.npz")
        member.begin()
        for t in range(1, 10):
            for name in member.neighbours:
                numbers = rng.normal(size=member.width(t)).astype("<f8").tobytes()
                told = bytes(96 * len(member.witness.told(name, t)))
                heads.setdefault((name, t), wire.pack(village.identities[name], federation.digest, t, numbers, told))
            member.step({name: heads[name, t] for name in member.neighbours})
            if eager:
                journal.close()
                journal = Journal(journal.path.parent, federation.digest)
                member = Trainer(federation, ash, journal, None, village.folder / "ash.npz")
                member.begin()
        seals = [wire.form_of(frame) == wire.Form.SEAL for _, _, frame in journal.frames()]
        assert any(seals) == eager and member.t == 9
        found.append((member.estimate, wire.payload_of(member.frame(9))))
        journal.close()
    assert found[0] == found[1]


def test_what_a_round_takes_on_disk(members, monkeypatch):
    """By the definition of a record and of the forms: header 84, salt 16, hash or commitment 32, signature 64."""
    for algorithm, long in ((ADMM, 84 + 16 + 4 * 8 + 32 + 64), (DPSGD, 84 + 32 + 64)):
        ours = members(algorithm, algorithm["name"])
        ours.run()
        one = ours.members["ash"]
        with monkeypatch.context() as now:
            now.setattr(compaction, "LEAST", 1)
            one.end()
        old = 40 - WINDOW - 1
        assert forms(one)[old - 1] != wire.Form.WHOLE == forms(one)[old]
        sizes = [len(frame) for _, t, frame in one.journal.frames() if t <= old]
        assert sizes == [long] * 3 * old  # own, and of two neighbours
        whole = [len(frame) for _, t, frame in one.journal.frames() if t > old]
        assert whole == [84 + 16 + 4 * 8 + 4 * 96 + 64] * 3 * (WINDOW + 1)
        state = len(one.journal.state) + 4 + 16 if one.journal.state else 0
        assert one.journal.size == 70 + state + sum(16 + size for size in (*sizes, *whole))


def crash_at(monkeypatch, number):
    """The power goes before the number-th thing that changes the disk; returns what was done before."""
    done = []

    def counted(name, real):
        def call(*args, **options):
            if len(done) == number:
                raise Crash
            folder = name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode)
            done.append(f"{name} folder" if folder else name)
            return real(*args, **options)

        return call

    for where, name in ((os, "open"), (os, "fsync"), (os, "fdatasync"), (os, "close"), (Path, "replace")):
        monkeypatch.setattr(where, name, counted(name, getattr(where, name)))
    return done


def lasting(done):
    """Of what was done, what decides which file is there after the power goes."""
    return [one for one in done if one == "replace" or one.startswith("fsync")]


# The new bytes, then the name. What they were called before needs no sync: without the rename the old file is there.
IN_ORDER = ["fsync", "replace", "fsync folder"]


@pytest.mark.parametrize("algorithm", [ADMM, DPSGD], ids=["numbers", "seals"])
def test_a_crash_at_any_moment_leaves_the_old_file_or_the_new_one(members, monkeypatch, tmp_path, algorithm):
    ours = members(algorithm)
    ours.run(until=25)
    one = ours.members["ash"]
    folder, federation = one.journal.path.parent, one.federation
    before, bytes_before, name = frames_of(one.journal), one.journal.path.read_bytes(), run_name(one.journal)
    state, estimate, sent = one.party.state, one.estimate, one.sent
    ours.leave("ash")
    monkey = pytest.MonkeyPatch()
    for number in range(100):
        one.journal.path.write_bytes(bytes_before)
        journal = Journal(folder, federation.digest)
        monkey.setattr(compaction, "LEAST", 1)
        done = crash_at(monkey, number)
        try:
            finished = compaction.compact(journal, federation, "ash", 25, 2, state)
        except Crash:
            finished = None
        finally:
            monkey.undo()
        with Journal(folder, federation.digest, write=False) as reader:  # what others see at this moment
            assert same_messages(frames_of(reader), before) and run_name(reader) == name
        journal.close()
        assert lasting(done) == IN_ORDER[: len(lasting(done))]
        if "replace" in done:
            assert one.journal.path.stat().st_size < len(bytes_before)
        else:
            assert one.journal.path.read_bytes() == bytes_before
        ours.join("ash", federation)
        again = ours.members["ash"]
        assert (again.t, again.sent) == (25, sent) and np.array_equal(again.estimate, estimate)
        assert not list(folder.glob("*.part"))
        ours.leave("ash")
        if finished:
            break
    else:
        raise AssertionError("never finished")
    assert lasting(done) == IN_ORDER
    ours.join("ash", federation)
    ours.run()
    assert {one.t for one in ours.members.values()} == {40}


def test_a_torn_or_damaged_copy_is_never_read(members, eager):
    """Whatever a crash left of the new file under its own name; and damage in what was compacted is found."""
    ours = members(DPSGD)
    ours.run(until=25)
    one = ours.members["ash"]
    folder, federation = one.journal.path.parent, one.federation
    assert one.journal.state
    ours.leave("ash")
    data = (folder / "journal").read_bytes()
    left = folder / ".journal.0123abcd.part"
    left.write_bytes(data[: len(data) // 2])
    Journal(folder, federation.digest).close()
    assert (folder / "journal").read_bytes() == data and not left.exists()
    for at in range(70, len(data), 97):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        (folder / "journal").write_bytes(bad)
        with pytest.raises(ConfideError, match="damaged at byte"):
            Journal(folder, federation.digest)
    (folder / "journal").write_bytes(data)
    ours.join("ash", federation)
    ours.run()
    assert ours.members["ash"].t == 40


def test_without_room_on_the_disk_the_run_goes_on(members, eager, monkeypatch, caplog):
    ours = members(ADMM)
    ours.run(until=2)
    real = os.fsync

    def full(file):
        if os.readlink(f"/proc/self/fd/{file}").endswith(".part"):
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", full)
    ours.run(until=30)
    one = ours.members["ash"]
    assert one.t == 30 and forms(one) == [wire.Form.WHOLE] * 31
    assert "No space left on device: stays as long as it is" in caplog.text
    assert not list(one.journal.path.parent.glob("*.part"))
    monkeypatch.setattr(os, "fsync", real)
    ours.run()
    assert forms(one)[0] == wire.Form.NUMBERS and one.t == 40


def test_patience_counts_from_the_last_round_not_from_the_compaction(members, monkeypatch):
    """As at the end of a run that stopped for a silent member: the others may go on without it as soon as before."""
    ours = members(ADMM)
    ours.run(until=30)
    one, then = ours.members["ash"], time.time() - 1000
    os.utime(one.journal.path, (then, then))
    monkeypatch.setattr(compaction, "LEAST", 1)
    one.end()
    home = ours.village.folder / "ash"
    assert one.journal.horizon > 20 and office._moved(home, one.federation) == pytest.approx(then, abs=1)


def test_the_ledger_and_the_memory_agree_with_a_compacted_journal(members, eager):
    """Rounds and attempts are read from seals: an older ledger is charged what it lacks."""
    algorithm = {**DPSGD, "rounds": 12}
    ours = members(algorithm, seed=None, budget=(20.0, 1e-5), paying=True, graph=confide.Graph.complete(5))
    path = ours.village.folder / "ash" / "ledger.sqlite"
    ours.run()
    one = ours.members["ash"]
    one.end()
    assert forms(one)[:3] == [wire.Form.SEAL] * 3
    ours.leave("ash")
    with Ledger(path) as ledger:
        spent = ledger.spent("ash")
    path.unlink()  # as if it were lost
    ours.join("ash", ours.village.federation)
    assert "charged now" in ours.members["ash"].notice
    with Ledger(path) as ledger:
        assert [(e.round, e.attempt) for e in ledger.entries("ash")] == [(t, 1) for t in range(1, 13)]
        assert ledger.spent("ash") == pytest.approx(spent, rel=1e-12)


def test_an_attempt_survives(tmp_path, eager):
    """A round that was drawn twice is known to have been, once compacted."""
    village = Village(tmp_path, {**DPSGD, "rounds": 12}, seed=None, budget=(20.0, 1e-5), hub=False)
    ash = village.identities["ash"]
    folder = village.run_folder("ash")
    with Journal(folder, village.federation.digest) as journal:
        for t in range(1, 13):
            journal.commit(wire.pack(ash, village.federation.digest, t, bytes(32)), 3 if t == 2 else 1)
        journal.rewrite(lambda sender, t, frame: wire.shortened(frame, wire.Form.SEAL if t < 9 else wire.Form.WHOLE))
        assert journal.draws(ash.card.digest) == [1, 3, *[1] * 10] and journal.horizon == 8
    with Journal(folder, village.federation.digest, write=False) as journal:
        assert journal.draws(ash.card.digest) == [1, 3, *[1] * 10] and journal.horizon == 8


@pytest.mark.parametrize("name", [name for name, one in REGISTRY.items() if one.topology != "central"])
def test_a_state_that_stands_for_messages_does_not_depend_on_the_number_of_rounds(name):
    """Rounds may be added by an amendment: then a state is either computed again, from numbers, or the same."""
    method = REGISTRY[name]
    made = [method(rounds=rounds) for rounds in (6, 12)]
    if hasattr(method, "average_from"):
        return  # their numbers stay: see `compaction.form`
    X = np.random.default_rng(0).normal(size=(30, 3))
    problem = confide.Problem(confide.Shards.split(X, np.sign(X[:, 0]), 5).clip_rows(1.0), confide.losses.Logistic())
    public = problem.public(confide.Graph.ring(5))
    states = [one.init(public) for one in made]
    rng = np.random.default_rng(1)
    for t in range(1, 7):
        width = int(made[0].schedule(public).widths[t - 1])
        message, received = rng.normal(size=(2, 1, 5, width))
        states = [one.absorb(t, state, message, received, public) for one, state in zip(made, states, strict=True)]
    for field, short, long in zip(states[0]._fields, *states, strict=True):
        assert np.array_equal(short, long), field


def test_it_is_done_when_it_is_worth_it(members, monkeypatch, rewritten):
    """Often enough that the file stays small, seldom enough that little is written twice; never for little."""
    monkeypatch.setattr(compaction, "LEAST", 2000)
    ours = members({**ADMM, "rounds": 150})
    ours.run()
    for name in NAMES:
        mine = [(before, after) for who, before, after in rewritten if who == name]
        assert 2 <= len(mine) <= 8
        for before, after in mine:
            assert before - after >= max(2000, 0.2 * before)  # so at most four times that is written for it
        whole = 150 * 3 * (16 + 84 + 16 + 32 + 4 * 96 + 64)
        assert ours.members[name].journal.size < 0.75 * whole


def test_real_nodes_are_killed_after_they_have_compacted(tmp_path):
    """The model is the simulator's; each message that anyone has is its sender's, and was sent once."""
    algorithm = {**ADMM, "rounds": 1200, "noise": 0.0}
    with Village(tmp_path, algorithm, timeout=300.0) as village:
        village.start()

        def compacted():
            with village.journal("ash") as journal:
                return journal.horizon > 0

        assert wait_for(lambda: village.rounds_sent("ash") > 0 and compacted(), 240, 0.2)
        village.kill("ash", "birch")
        with village.journal("ash") as journal:
            sent = {t: wire.seal(frame) for sender, t, frame in journal.frames()
                    if sender == village.identities["ash"].card.digest}  # fmt: skip
        village.start("ash", "birch")
        assert set(village.join(seconds=300).values()) == {0}
        assert np.allclose(village.models(), village.simulated(), rtol=0, atol=1e-9)
        seals = {}
        for name in NAMES:
            with village.journal(name) as journal:
                assert journal.horizon > 0 and village.status(name)["journal_bytes"] == journal.size
                for sender, t, frame in journal.frames():
                    assert seals.setdefault((sender, t), wire.seal(frame)) == wire.seal(frame)
        ash = village.identities["ash"].card.digest
        assert {t: seals[ash, t] for t in sent} == sent
        assert compared(tmp_path / "ash", tmp_path / "birch").lies == ()
