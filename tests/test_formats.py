"""Files of earlier versions: each opens, with what was written into it, or is refused in one clear line.

They are made by `fixtures/formats/make.py`, never again by a later version. What they hold is known from that script
and from reading the files with other programs (SQLite, NumPy, JSON, struct), not from ours.
"""

import json
import math
import shutil
import sqlite3
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import confide
from confide.network import wire
from confide.node import federation as federations
from confide.node.journal import Journal
from confide.node.member import Trainer
from confide.privacy.ledger import ROW, Ledger
from confide.runs.model import Model

FORMATS = Path(__file__).parent / "fixtures" / "formats"
LABEL = ("label", "replace", "network")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy: opening may bring a file to the present format."""
    return Path(shutil.copytree(FORMATS / "0.1.0", tmp_path / "old"))


def sums(path: Path, population: str, kind: tuple[str, str, str], column: str) -> tuple[float, float]:
    """Spent and held, by SQL alone."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    text = json.dumps(list(kind))
    spent: dict[tuple[str, str], list[float]] = {}
    for run, party, cost in db.execute(
        f"SELECT run, party, {column} FROM costs JOIN releases ON release = releases.id "
        "WHERE population = ? AND kind = ? ORDER BY costs.id", (population, text),
    ):  # fmt: skip
        spent.setdefault((run, party), []).append(cost)
    last = {(run, party): amount for run, party, amount in db.execute(
        f"SELECT run, party, {column} FROM reservations WHERE population = ? AND kind = ? ORDER BY id",
        (population, text))}  # fmt: skip
    db.close()
    by_run = {key: math.fsum(costs) for key, costs in spent.items()}
    return math.fsum(by_run.values()), math.fsum(max(0.0, a - by_run.get(k, 0.0)) for k, a in last.items())


def test_a_ledger_keeps_every_total_to_the_bit(old: Path) -> None:
    path = old / "ledger.sqlite"
    expected = {
        ("ward [7]", ROW): ("gaussian", *sums(path, "ward [7]", ROW, "square")),
        ("ward [7]", LABEL): ("pure", *sums(path, "ward [7]", LABEL, "pure")),
        ("people", ROW): ("zcdp", *sums(path, "people", ROW, "square")),
    }
    assert expected["ward [7]", ROW][1] > 0.03**2 + 0.07**2 and expected["ward [7]", ROW][2] > 3.9 * 0.03**2
    assert expected["people", ROW][2] > 0 < expected["people", ROW][1]  # two rounds of four
    for _ in range(2):  # and again, once it is of the present format
        with Ledger(path, create=False) as ledger:
            assert ledger.populations() == ["ward [7]", "people"]
            for (population, kind), (calculus, spent, held) in expected.items():
                balance = ledger.balance(population, kind)
                assert (balance.calculus, balance.spent, balance.held) == (calculus, spent, held)
            assert [(e.run, e.party, e.round) for e in ledger.entries("ward [7]")] == [
                ("held", "", 1), ("ended", "1", 1), ("ended", "1", 2), ("labels", "north", 0)]  # fmt: skip
            assert not ledger.note_data("ward [7]", [b"rows"])  # the key is the same


def test_a_journal_is_read_and_replayed(old: Path) -> None:
    federation = federations.load(old / "federation.toml")
    assert federation.parties == ("ash", "birch") and federation.algorithm.rounds == 4
    ash, birch = (federation.cards[name] for name in federation.parties)
    data = (old / "run" / "journal").read_bytes()
    payloads, at = [], 16 + 2 + 32 + 16 + 4  # magic, version, run, nonce, code
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        payloads.append(data[at + 12 + 78 : at + 12 + length - 64])  # record head, frame head, signature
        at += 12 + length
    assert len(payloads) == 3 and all(len(p) == 16 for p in payloads)
    with Journal(old / "run", federation.digest, write=False) as journal:
        assert journal.nonce == data[50:66]
        assert [(sender, t) for sender, t, _ in journal.frames()] == [
            (ash.digest, 1), (birch.digest, 1), (ash.digest, 2)]  # fmt: skip
        assert [wire.payload_of(frame) for _, _, frame in journal.frames()] == payloads
        for sender, _, frame in journal.frames():
            assert wire.signed_of_old(frame, ash if sender == ash.digest else birch)
        member = Trainer(federation, SimpleNamespace(card=ash), journal)  # type: ignore[arg-type]
        assert (member.t, member.sent) == (1, 2) and np.all(np.isfinite(member.estimate or []))
    with Journal(old / "run", federation.digest) as journal:  # for writing, too
        assert journal.last(ash.digest) == 2 and journal.nonce == data[50:66]
        assert [wire.payload_of(frame) for _, _, frame in journal.frames()] == payloads


def test_a_model_answers(old: Path) -> None:
    model = Model.load(old / "model.json")
    assert model.coefficients.tolist() == [[1.5]] and model.intercept.tolist() == [0.25]
    assert model.classes == ("no", "yes") and model.predict(np.array([[-0.9], [0.9]])) == ["no", "yes"]


def test_a_run_loads(old: Path) -> None:
    run = confide.load_run(old / "run.npz")
    with np.load(old / "run.npz") as file:
        assert np.array_equal(run.estimates, file["estimates"]) and run.estimates.shape == (2, 4, 2)
    assert (run.algorithm, run.rounds, run.seeds.tolist()) == ("CDPADMM", 6, [1, 2])
    assert len(run.privacy.events) == 6 and run.privacy.guarantee.label == "proven"


def test_a_checkpoint_goes_on_or_is_refused_in_one_line(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FORMATS))
    monkeypatch.delitem(sys.modules, "make", raising=False)
    from make import simulated

    try:
        run = simulated(checkpoint=old / "checkpoint.npz")
    except ValueError as refusal:  # a method that computes something else by now must not go on from here
        assert "another run" in str(refusal) and "\n" not in str(refusal)
    else:
        with np.load(old / "run.npz") as file:
            assert np.allclose(run.estimates, file["estimates"], rtol=1e-9) and run.history["round"].tolist()[-1] == 6
