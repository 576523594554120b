"""A compacted journal of a private sum: shorter, and as good for a restart, a loss, the ledger and a dispute."""

import os
import shutil

import losing
import numpy as np
import pytest
from losing import PATH, RING, STAR
from test_compaction import IN_ORDER, Crash, crash_at, frames_of, lasting, same_messages
from village import FEATURES, NAMES

from confide.errors import ConfideError
from confide.network import frames, wire
from confide.network.frames import Phase, Place
from confide.node import compaction
from confide.node.journal import Journal, run_name

ROUNDS = 10
DESCENT = {**losing.DESCENT, "rounds": ROUNDS}
MOMENTS = {**DESCENT, "first": "moments"}
pytestmark = pytest.mark.usefixtures("used")
WHOLE, SEAL = wire.Form.WHOLE, wire.Form.SEAL


@pytest.fixture
def circle(circle):
    return lambda algorithm=DESCENT, *args, **options: circle(algorithm, *args, restarts=3, **options)


def eager(monkeypatch):
    """Whatever can go goes, after every total, though of so few numbers the state takes more room."""
    monkeypatch.setattr(compaction, "LEAST", -1 << 20)
    monkeypatch.setattr(compaction, "SHARE", -np.inf)
    monkeypatch.setattr(compaction, "LAST_SHARE", -np.inf)


@pytest.fixture
def always(monkeypatch):
    eager(monkeypatch)


def forms(journal):
    """{(stage, round): forms of its frames} of what belongs to a sum."""
    out = {}
    for _, number, frame in journal.frames():
        phase, round, _ = frames.place_of(number)
        if phase >= Phase.AGAIN and round:
            out.setdefault((wire.stage_in(number), round), set()).add(wire.form_of(frame))
    return out


def entries(made, name):
    return [(e.round, e.attempt) for e in made.members[name].purse.ledger.entries("people")]


def same(models):
    assert all(model.tobytes() == models[0].tobytes() for model in models)
    return models[0]


# --- a run ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [RING, STAR], ids=["ring", "star"])
def test_who_compacts_learns_what_one_learns_that_does_not(circle, monkeypatch, graph):
    """Seeded noise; all are stopped and started again on the way. Models agree to the bit."""
    plain = circle(MOMENTS, "plain", graph=graph).begin()
    assert plain.carry()
    eager(monkeypatch)
    short = circle(MOMENTS, "short", graph=graph).begin()
    for t in (2, 5, 6):
        short.carry(until=lambda t=t: all(one.t >= t for one in short.members.values()))
        short.again(*NAMES)
    assert short.carry()
    assert same(short.models()).tobytes() == same(plain.models()).tobytes()
    for name in NAMES:
        found = forms(short.members[name].journal)
        assert short.members[name].moved == plain.members[name].moved
        assert short.members[name].signal == plain.members[name].signal
        assert found == {(0, t): {SEAL if t < ROUNDS else WHOLE} for t in range(1, ROUNDS + 1)}
        assert all(form == {WHOLE} for form in forms(plain.members[name].journal).values())
        short.again(name)  # after the end
        assert short.members[name].done and short.members[name].t == ROUNDS
        cards = {card.digest: card for card in short.federation.cards.values()}
        for sender, _, frame in short.members[name].journal.frames():  # all still prove what was signed
            wire.authentic(frame, cards[sender], short.federation.digest)


def test_what_a_round_takes_on_disk(circle, always):
    """By the definition of a record and of a seal: header 84, commitment 32, signature 64; whole 16 + 32 more each."""
    made = circle(graph=PATH).begin()
    assert made.carry()
    for name, count in (("ash", 2), ("birch", 4), ("cedar", 3)):  # up, down, and each child's up and parent's down
        journal = made.members[name].journal
        sizes = {t: [] for t in range(1, ROUNDS + 1)}
        for _, number, frame in journal.frames():
            if frames.place_of(number)[0] >= Phase.AGAIN:
                sizes[wire.round_in(number)].append(len(frame))
        assert sizes == {t: [84 + 32 + 64 if t < ROUNDS else 84 + 16 + 32 + 8 * FEATURES + 64] * count for t in sizes}
        assert journal.size == journal.path.stat().st_size


def test_it_is_done_when_it_is_worth_it(circle, monkeypatch, rewritten):
    """Often enough that the file stays small, seldom enough that little is written twice; never for little."""
    monkeypatch.setattr(compaction, "LEAST", 1500)
    monkeypatch.setattr(compaction, "SHARE", 0.1)  # of five numbers little can go
    made = circle({**DESCENT, "rounds": 120}, graph=PATH).begin()
    assert made.carry()
    for name in NAMES:
        mine = [before - after for who, before, after in rewritten if who == name]
        assert 1 <= len(mine) <= 8 and min(mine) >= 1200


def test_without_room_on_the_disk_the_run_goes_on(circle, always, monkeypatch, caplog):
    made = circle().begin()
    real = os.fsync

    def full(file):
        if os.readlink(f"/proc/self/fd/{file}").endswith(".part"):
            raise OSError(28, "No space left on device")
        real(file)

    with monkeypatch.context() as now:
        now.setattr(os, "fsync", full)
        made.carry(until=lambda: made.members["ash"].t == 6)
        assert made.members["ash"].t == 6 and made.members["ash"].journal.horizon == 0
    assert "No space left on device: stays as long as it is" in caplog.text
    assert made.carry() and made.members["ash"].journal.horizon == ROUNDS - 1
    same(made.models())


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["ash", "birch", "cedar"], ids=["leaf", "between", "root"])
def test_a_crash_at_any_moment_leaves_the_old_file_or_the_new_one(circle, monkeypatch, victim):
    """And whichever it is, the member goes on with the same bytes, to the model of a run without crashes."""
    plain = circle(folder="plain", graph=PATH).begin()
    assert plain.carry()
    made = circle(graph=PATH).begin()
    made.carry(until=lambda: made.members[victim].t == 6)
    one = made.members[victim]
    folder, state, path = one.folder, one.party.state, one.journal.path
    before, whole, name = frames_of(one.journal), path.read_bytes(), run_name(one.journal)
    now = (one.t, one.sent, one.said, one.attempts, one.made, one.moved, one.estimate)
    beside = {"stage": np.int64(0), "moved": np.array(one.moved), "signal": np.array(one.signal)}
    made.crash(victim)
    claims, monkey = (folder / "claims").read_bytes(), pytest.MonkeyPatch()
    for number in range(100):
        path.write_bytes(whole)
        journal = Journal(folder, made.federation.digest)
        eager(monkey)
        done = crash_at(monkey, number)
        try:
            finished = compaction.compact_sums(journal, 6, FEATURES, set(), state, **beside)
        except Crash:
            finished = None
        finally:
            monkey.undo()
        with Journal(folder, made.federation.digest, write=False) as reader:  # what others see at this moment
            assert same_messages(frames_of(reader), before) and run_name(reader) == name
        journal.close()
        assert lasting(done) == IN_ORDER[: len(lasting(done))]
        if "replace" in done:
            assert path.stat().st_size != len(whole)
        else:
            assert path.read_bytes() == whole
        again = made.begin(victim).members[victim]
        assert (again.t, again.sent, again.said, again.attempts, again.made, again.moved, again.estimate) == now
        assert same_messages(frames_of(again.journal), before)  # nothing was said anew
        assert (folder / "claims").read_bytes() == claims and not list(folder.glob("*.part"))
        made.crash(victim)
        if finished:
            break
    else:
        raise AssertionError("never finished")
    assert lasting(done) == IN_ORDER
    made.begin(victim)
    assert made.carry()
    assert same(made.models()).tobytes() == same(plain.models()).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("graph", [PATH, STAR], ids=["path", "star"])
def test_who_is_killed_anywhere_sends_the_same_bytes_and_pays_once(circle, always, graph):
    """After every frame that anyone hears, another member is killed and starts again; all compact after each total."""
    made = circle(seed=None, graph=graph).begin()
    made.kill_everywhere(kept=wire.seal)
    same(made.models())
    for name in NAMES:
        assert made.members[name].journal.horizon == ROUNDS - 1
        assert entries(made, name) == [(t, 1) for t in range(1, ROUNDS + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("victim", NAMES)
def test_a_message_lost_after_journals_were_compacted_costs_everyone_another_attempt(circle, always, monkeypatch,
                                                                                      victim):  # fmt: skip
    """Seals say how often a round was drawn, so that a lost ledger is charged for all of it."""
    made = circle(seed=None, graph=PATH).begin()
    made.carry(until=lambda: made.members[victim].sent == 5)
    one, commit = made.members[victim], made.members[victim].journal.commit
    assert one.journal.horizon >= 3

    def crash(frame, draws=0):
        if draws and wire.place(frame)[0] == 6:
            raise Crash
        commit(frame, draws)

    with monkeypatch.context() as now:
        now.setattr(one.journal, "commit", crash)
        with pytest.raises(Crash):
            made.carry()
    assert one._claims.last == (6, 1) and one.sent == 5
    made.again(victim)
    assert made.carry()
    same(made.models())
    for name in NAMES:
        one = made.members[name]
        assert forms(one.journal)[0, 6] == {SEAL} and Place(Phase.AGAIN, 6, 2).number in made.own_frames(name)
        paid, drawn = entries(made, name), one.attempts
        assert sorted(paid) == [(t, a) for t, last in enumerate(drawn, start=1) for a in range(1, last + 1)]
        made.crash(name)
        for file in (made.folder / name / "ledger.sqlite", made.run_folder(name) / "ledger-head"):
            file.unlink()
        made.begin(name)
        assert "charged now" in made.members[name].notice and entries(made, name) == paid


# --- older copies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compacted", [False, True], ids=["whole copy", "compacted copy"])
def test_an_older_journal_is_refused(circle, monkeypatch, compacted):
    """The claims tell, whichever of the two was compacted."""
    if compacted:
        eager(monkeypatch)
    made = circle().begin()
    made.carry(until=lambda: made.members["ash"].sent == 4)
    journal = made.members["ash"].journal
    old = journal.path.read_bytes()
    assert (journal.horizon > 0) == compacted
    eager(monkeypatch)
    made.carry(until=lambda: made.members["ash"].sent == 7)
    assert journal.horizon >= 5
    made.crash("ash")
    journal.path.write_bytes(old)
    with pytest.raises(ValueError, match=r"round 7 was masked and the journal ends at round [45]: an old copy"):
        made.begin("ash")


def test_neighbours_tell_a_home_that_is_older_in_all_its_files(circle, always):
    """What they show of it in the greeting is never left out, and is signed by it."""
    made = circle(seed=None).begin()
    made.carry(until=lambda: made.members["ash"].sent == 4)
    home, old = made.folder / "ash", made.folder / "old"
    made.crash("ash")
    shutil.copytree(home, old)
    made.begin("ash")
    made.carry(until=lambda: made.members["ash"].sent == 8)
    made.crash("ash")
    shutil.rmtree(home)
    old.rename(home)
    one = made.begin("ash").members["ash"]
    assert one.t < 5
    mine, shown = one.identity.card.digest, 0
    for name in one.neighbours:
        journal = made.members[name].journal
        last = journal.frame(mine, journal.last(mine))
        assert wire.form_of(last) == WHOLE
        wire.authentic(last, one.identity.card, made.federation.digest)
        shown = max(shown, wire.source(last)[1])
    assert shown > one.said  # upon which the daemon admits it, and refuses to go on
    one.admit(shown)
    assert len(entries(made, "ash")) == wire.round_in(shown) >= 7


def test_who_asks_for_a_compacted_round_is_refused_in_one_line(circle, always):
    made = circle().begin()
    made.carry(until=lambda: made.members["ash"].t == 6)
    one = made.members["ash"]
    said = next(number for number in made.own_frames("ash") if wire.round_in(number) == 3)
    with pytest.raises(ConfideError, match=r"^round 3: left out when the journal was compacted, .* restore the newest"):
        one.frame(said)
    assert frames.is_whole(one.frame(one.said))
    keys = [number for number in made.own_frames("ash") if wire.round_in(number) == 0]
    assert keys and all(frames.is_whole(one.frame(number)) for number in keys)
