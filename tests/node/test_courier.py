"""Papers between neighbours: what an amendment costs is found beside the loop, once, whoever brings it."""

import asyncio
import errno
import json
import time
from types import SimpleNamespace

import pytest
from test_agreement import CDP, STAY, change, signed, text
from village import NAMES, Village

from confide.errors import ConfideError
from confide.network.identity import AMENDMENT_LABEL, Identity
from confide.node import agreement, courier
from confide.node.agreement import Papers
from confide.node.amendment import amended
from confide.node.courier import Courier

LONG = 1.5  # seconds that a cost takes here


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))


@pytest.fixture
def work(monkeypatch):
    """The amendments whose cost was looked for, each for long."""
    done = []

    def slowly(state, change):
        done.append(change.hash)
        time.sleep(LONG)
        return amended(state, change)

    monkeypatch.setattr(agreement, "amended", slowly)
    return done


class Line:
    """A neighbour that answers with these papers."""

    def __init__(self, held):
        self.held, self.asked, self.trouble = held, 0, ""

    async def papers(self, held):
        self.asked += 1
        await asyncio.sleep(0)
        return self.held()

    async def close(self): ...


def started(village, monkeypatch, lines, papers):
    """Ash's courier, which asks these neighbours."""
    monkeypatch.setattr(courier, "SOON", 0.001)
    monkeypatch.setattr(courier, "MISSING", 0.01)
    monkeypatch.setattr(courier, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(courier, "Link", lambda identity, card, *_: lines[card.name])
    monkeypatch.setattr(courier, "replace", lambda ways, **_: ways)
    made = Courier(papers, village.federation, village.identities["ash"],
                   {name: village.federation.cards[name] for name in lines})  # fmt: skip
    made.start(SimpleNamespace(), None, None)
    return made


def carried(village, monkeypatch, lines, until, shown=None):
    """Ash's papers after its courier has asked these neighbours; and the longest time in which its loop did nothing.

    `shown` gets what it shows to be refused, whenever that changes.
    """
    papers = Papers.of(village.folder / "ash", village.federation)

    async def body():
        made = started(village, monkeypatch, lines, papers)
        still, last = 0.0, time.perf_counter()
        async with asyncio.timeout(60):
            while not until(papers):
                await asyncio.sleep(0.005)
                if shown is not None and made.refused not in shown[-1:]:
                    shown.append({**made.refused})
                still, last = max(still, time.perf_counter() - last), time.perf_counter()
        assert made._failure is None
        await made.stop()
        return still

    return papers, asyncio.run(body())


def test_a_node_answers_while_it_looks_what_an_amendment_costs(village, work, monkeypatch):
    """Both neighbours bring it, one signature each."""
    told = {name: Papers(village.federation) for name in ("birch", "elm")}
    leave = change(village.federation, without=("cedar",))
    for name, papers in told.items():
        signed(papers, village.identities, leave, [name])
    assert len(work) == 2
    work.clear()
    lines = {name: Line(papers.pack) for name, papers in told.items()}
    papers, still = carried(village, monkeypatch, lines, lambda papers: len(
        papers.pending[leave.hash].signatures if papers.pending else ()) == 2)  # fmt: skip
    assert work == [leave.hash] and still < 0.6 * LONG
    again = Papers.of(village.folder / "ash", village.federation)  # and it was kept
    assert again.pending[leave.hash].signatures.keys() == {"birch", "elm"}


def test_what_the_owner_signs_beside_the_node_is_looked_at_beside_the_loop(village, work, monkeypatch):
    leave = change(village.federation, without=("cedar",))
    line = Line(lambda: b"")
    owner = Papers.of(village.folder / "ash", village.federation)

    def until(papers):
        if line.asked and not owner.pending:
            signed(owner, village.identities, leave, ["ash"])
            work.clear()
        return bool(papers.pending)

    papers, _ = carried(village, monkeypatch, {"birch": line}, until)
    assert work == [leave.hash] and papers.pending[leave.hash].signatures.keys() == {"ash"}


def test_one_in_force_and_the_next_are_both_foreseen(village, work):
    told = Papers(village.federation)
    signed(told, village.identities, change(village.federation, without=("cedar",)), STAY)
    signed(told, village.identities, change(told.current, rounds=20), ["ash"])
    work.clear()
    papers = Papers(village.federation)
    before = papers.pack()
    papers.foresee(told.pack(), b"no papers", b"")
    assert len(work) == 2 and papers.pack() == before and papers.current is village.federation
    assert papers.take(told.pack()) and len(work) == 2 and len(papers.chain) == len(papers.pending) == 1


def test_what_is_forged_is_never_looked_at_and_what_may_not_be_once(village, work, monkeypatch, caplog):
    """A signature of nobody; and a cap below the cost. Both are asked again, and spoken of once."""
    forged = Papers(village.federation)
    signed(forged, village.identities, change(village.federation, without=("cedar",)), ["birch"])
    text = json.loads(forged.pack())
    text["amendments"][0]["signatures"]["birch"] = "00" * 64
    cap = change(village.federation, epsilon=0.001)
    signature = village.identities["elm"].sign(cap.hash, AMENDMENT_LABEL)
    dear = {"text": cap.document(), "signatures": {"elm": signature.hex()}}
    lines = {"birch": Line(lambda: json.dumps(text).encode()),
             "elm": Line(lambda: json.dumps({**text, "amendments": [dear]}).encode())}  # fmt: skip
    work.clear()
    papers, _ = carried(village, monkeypatch, lines, lambda _: min(line.asked for line in lines.values()) > 3)
    assert work == [cap.hash] and not papers.pending
    assert "that 'birch' did not make" in lines["birch"].trouble and "cost" in lines["elm"].trouble
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"papers of {name} are not taken: {lines[name].trouble}" for name in ("birch", "elm")]  # fmt: skip


def asked(line, times=3):
    """So many answers of it were taken."""
    return lambda papers: line.asked > times


def test_no_answer_of_a_neighbour_ends_a_run(village, monkeypatch, caplog):
    """Nor does a mistake of ours that it finds: its kind is in the log."""
    answers = iter([b"\xff", b'{"signatures": {"\\ud800": 1}, "amendments": []}', b"[" * 900 + b"]" * 900])
    line = Line(lambda: next(answers, b"x"))
    real = Papers.take
    monkeypatch.setattr(Papers, "take", lambda papers, data: {}["a bug"] if data == b"x" else real(papers, data))
    carried(village, monkeypatch, {"birch": line}, asked(line, 6))
    assert line.trouble == "KeyError: 'a bug'"
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4 and said[-1] == "papers of birch are not taken: KeyError: 'a bug'"


def test_what_a_neighbour_invents_does_not_fill_the_log(village, monkeypatch, caplog):
    monkeypatch.setattr(courier, "MOST_REASONS", 3)
    line = Line(lambda: json.dumps({f"\x1b[2J\n{line.asked}" + "x" * 1000: 1}).encode())
    carried(village, monkeypatch, {"birch": line}, asked(line, 6))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3 and all(one.isprintable() and len(one) < 400 for one in said)
    assert said[-1].endswith("; no other reason is logged")
    assert "papers.?[2J " in line.trouble and not any(line.trouble in one for one in said)  # shown all the same


def test_a_full_disk_is_not_the_fault_of_who_brings_papers(village, monkeypatch):
    """The run ends, to be resumed: an amendment that was held to and not kept would leave a journal nobody can read."""
    told = Papers(village.federation)
    told.sign(village.identities["birch"])

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    async def body():
        papers = Papers.of(village.folder / "ash", village.federation)
        monkeypatch.setattr(agreement, "write_whole", full)
        made = started(village, monkeypatch, {"birch": Line(told.pack)}, papers)
        async with asyncio.timeout(30):
            with pytest.raises(OSError, match="No space left"):
                await made.amended()
        await made.stop()
        assert not made.refused.get("birch")

    asyncio.run(body())


def test_papers_that_are_refused_are_shown_until_better_ones_come(village, monkeypatch):
    shown, good = [], Papers(village.federation)
    good.sign(village.identities["birch"])
    bad = {"birch": "papers that are not JSON, or damaged"}
    line = Line(lambda: good.pack() if bad in shown else b"no papers")
    papers, _ = carried(village, monkeypatch, {"birch": line}, lambda _: shown[-1:] == [{"birch": ""}], shown)
    assert papers.signed("birch")


def test_an_amendment_beside_a_forged_one_is_noticed(village, monkeypatch):
    """Who is to leave answers first, and could keep it from its neighbour otherwise."""
    leave = change(village.federation, without=("birch",))
    told = Papers(village.federation)
    signed(told, village.identities, leave, [name for name in NAMES if name != "birch"])
    forged = {"text": {**leave.document(), "changes": "11" * 32}, "signatures": {"elm": "00" * 64}}
    both = json.loads(told.pack())
    both["amendments"].append(forged)
    line = Line(lambda: json.dumps(both).encode())
    papers = Papers.of(village.folder / "ash", village.federation)

    async def body():
        made = started(village, monkeypatch, {"birch": line}, papers)
        async with asyncio.timeout(60):
            await made.amended()
        await made.stop()

    asyncio.run(body())
    assert papers.current.head == leave.hash and "not known here" in line.trouble
    assert Papers.of(village.folder / "ash", village.federation).current.head == leave.hash


def test_a_member_that_invents_many_amendments_is_heard_once(village, work):
    """Each is refused, and has its true signature: who signs what may not be keeps nobody busy by more of the kind."""
    papers = Papers(village.federation)

    def told(name, who, one):
        signature = who.sign(one.hash, AMENDMENT_LABEL)
        return text(papers, amendments=[{"text": one.document(), "signatures": {name: signature.hex()}}])

    for k in range(6):
        one = told("birch", village.identities["birch"], change(village.federation, epsilon=0.001 + k / 1e6))
        fresh = Identity.make("elm", f"127.0.0.1:{k + 1}")
        other = told("elm", fresh, change(village.federation, cards=(fresh.card,), epsilon=0.001))
        for data in (one, other):
            papers.foresee(data)
            with pytest.raises(ConfideError, match="not looked at" if k else "more than the cap"):
                papers.take(data)
    assert len(work) == 2 and papers.pending == {}
    true = change(village.federation, without=("cedar",))  # others are looked at, and what all have signed
    assert papers.take(told("elm", village.identities["elm"], true))
    assert papers.take(signed(Papers(village.federation), village.identities, true, STAY).pack())
    assert papers.current.head == true.hash


def test_amendments_that_may_not_be_fill_no_memory(village, monkeypatch):
    monkeypatch.setattr(agreement, "REMEMBERED", 3)
    papers = Papers(village.federation)
    for k in range(6):
        with pytest.raises(ConfideError, match="must be one of the parties"):
            papers.draft(change(village.federation, without=(f"nobody {k}",)))
    assert len(papers._found) == 3
