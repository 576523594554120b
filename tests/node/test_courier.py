"""Papers between neighbours: what an amendment costs is found beside the loop, once, whoever brings it."""

import asyncio
import json
import time
from types import SimpleNamespace

import pytest
from test_agreement import CDP, STAY, change, signed
from village import Village

from confide.errors import ConfideError
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


def carried(village, monkeypatch, lines, until):
    """Ash's papers after its courier has asked these neighbours; and the longest time in which its loop did nothing."""
    monkeypatch.setattr(courier, "SOON", 0.001)
    monkeypatch.setattr(courier, "LOOK_SECONDS", 0.01)
    papers = Papers.of(village.folder / "ash", village.federation)

    async def body():
        made = Courier(papers, village.federation, village.identities["ash"],
                       {name: village.federation.cards[name] for name in lines})  # fmt: skip
        monkeypatch.setattr(courier, "Link", lambda identity, card, *_: lines[card.name])
        monkeypatch.setattr(courier, "replace", lambda ways, **_: ways)
        made.start(SimpleNamespace(), None, None)
        still, last = 0.0, time.perf_counter()
        async with asyncio.timeout(60):
            while not until(papers):
                await asyncio.sleep(0.005)
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


def test_what_is_forged_or_may_not_be_is_looked_at_once_and_asked_for_again(village, work, monkeypatch):
    """A signature of nobody; and a cap below the cost."""
    forged = Papers(village.federation)
    signed(forged, village.identities, change(village.federation, without=("cedar",)), ["birch"])
    text = json.loads(forged.pack())
    text["amendments"][0]["signatures"]["birch"] = "00" * 64
    dear = {"text": change(village.federation, epsilon=0.001).document(), "signatures": {"elm": "00" * 64}}
    lines = {"birch": Line(lambda: json.dumps(text).encode()),
             "elm": Line(lambda: json.dumps({**text, "amendments": [dear]}).encode())}  # fmt: skip
    work.clear()
    papers, _ = carried(village, monkeypatch, lines, lambda _: min(line.asked for line in lines.values()) > 3)
    assert len(work) == 2 and not papers.pending
    assert "that 'birch' did not make" in lines["birch"].trouble and "cost" in lines["elm"].trouble


def test_a_member_that_invents_many_amendments_fills_no_memory(village, monkeypatch):
    monkeypatch.setattr(agreement, "REMEMBERED", 3)
    papers = Papers(village.federation)
    for k in range(6):
        with pytest.raises(ConfideError):
            papers.draft(change(village.federation, without=(f"nobody {k}",)))
    assert len(papers._found) == 3
