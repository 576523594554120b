"""Randomised records: what fits is stored once and for all, what does not is refused without a word about it."""

import json
import math
import sqlite3

import numpy as np
import pytest

import confide
from confide.node.person import make
from confide.node.records import LONGEST, RecordStore, ingest
from confide.schema.schema import Column, Schema, Target

SCHEMA = Schema(
    (Column("age", "numeric", 0, 100), Column("job", "category", categories=("cook", "clerk"), missing="missing"),
     Column("name", "ignore")),
    Target("flu", "binary", ("no", "yes")), row_norm=2.0,
)  # fmt: skip


def record(i=0, **changes):
    fields = {"id": f"{i:064x}", "task": "flu", "epsilon": 1.0, "features": {"age": 25, "job": "cook"}, "label": "yes"}
    return json.dumps({**fields, **changes})


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path / "records.db", SCHEMA, "flu", (0.5, 8)) as one:
        yield one


def test_records_become_rows_with_each_users_epsilon(store, tmp_path):
    lines = [record(0), "", record(1, epsilon=0.5, label="no"), record(2, features={"age": 200, "job": None}).encode()]
    assert ingest(lines, store) == (3, 0, [])
    assert ingest([*lines[:1], record(3)], store) == (1, 1, [])
    for shards in (store.shards("mercy"), store.shards("mercy", tmp_path / "work")):
        assert shards.names == ("mercy",) and shards.row_norm == 2.0
        assert shards.X.tolist() == [[-0.5, 1, 0, 0], [-0.5, 1, 0, 0], [1, 0, 0, 1], [-0.5, 1, 0, 0]]
        assert shards.y.tolist() == [1, -1, 1, 1] and shards.columns["epsilon"].tolist() == [1, 0.5, 1, 1]
    assert isinstance(shards.X, np.memmap) and store.path.stat().st_mode & 0o077 == 0


SECRET = "48213"
BAD = [
    ("not json " + SECRET, "not a JSON object"), ('{"id": NaN}', "not a JSON object"), ("[]", "no field"),
    (record()[:-1] + ', "label": "no"}', "each field once"), ("[" * 100_000, "not a JSON object"),
    (b"\xff\xfe{}", "not a JSON object"), (" " * 10 + "1" * LONGEST, "longer than"),
    (record(**{SECRET: 1}), "an unknown field: there must be only id, task, epsilon, features, label"),
    (json.dumps({"id": "0"}), "no field 'task'"),
    (record(id=SECRET), "field 'id'"), (record(id=7), "field 'id'"), (record(task=SECRET), "field 'task'"),
    (record(epsilon=0.4821399), "field 'epsilon': must be a number from 0.5 to 8"),
    (record(epsilon=48213), "'epsilon'"),
    (record(epsilon="1"), "field 'epsilon'"), (record(epsilon=True), "field 'epsilon'"),
    (record(epsilon=None), "field 'epsilon'"), (record(label=SECRET), "field 'flu': not one of the label's declared"),
    (record(label=None), "field 'flu'"), (record(label=["yes"]), "field 'label': must be one value"),
    (record(features={"age": 1}), "no column of 'features' 'job'"),
    (record(features=SECRET), "no column of 'features'"),
    (record(features={"age": 1, "job": "cook", SECRET: 1}), "an unknown column of 'features'"),
    (record(features={"age": SECRET + "x", "job": "cook"}), "field 'age': not a number"),
    (record(features={"age": 1, "job": SECRET}), "field 'job': not one of the declared categories"),
    (record(features={"age": None, "job": "cook"}), "field 'age': missing"),
    (record(features={"age": [1], "job": "cook"}), "field 'age': must be one value"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_does_not_fit_is_refused_by_line_and_field(store, number, capfd):
    bad, said = BAD[number]
    stored, repeated, refused = ingest([record(1), bad, record(2)], store)
    assert (stored, repeated, len(store)) == (2, 0, 2)
    ((line, what),) = refused
    assert line == 2 and said in what and SECRET not in what and "4821" not in what and "\n" not in what
    assert capfd.readouterr() == ("", "")


def test_a_person_answers_a_task_once(store):
    stored, repeated, refused = ingest([record(1), record(1), record(1, label="no")], store)
    assert (stored, repeated) == (1, 1) and refused == [
        (3, "field 'id': another record has it; a person answers a task once")]  # fmt: skip
    assert store.shards("mercy").y.tolist() == [1]


def test_the_store_only_grows(store):
    ingest([record(1)], store)
    for statement in ("DELETE FROM records", "UPDATE records SET y = -1", "UPDATE terms SET lowest = 0",
                      "INSERT OR REPLACE INTO records SELECT at, id, x, -1, epsilon FROM records"):  # fmt: skip
        with sqlite3.connect(store.path) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(statement)
        db.close()
    assert store.shards("mercy").y.tolist() == [1]


def test_a_store_is_of_one_task_schema_and_range(store, tmp_path):
    with RecordStore(store.path, SCHEMA, "flu", (0.5, 8)) as again:
        assert len(again) == 0
    other = Schema(SCHEMA.columns, SCHEMA.label)
    for args, said in (((SCHEMA, "cough", (0.5, 8)), "another task"), ((other, "flu", (0.5, 8)), "another schema"),
                       ((SCHEMA, "flu", (0.1, 8)), "another smallest epsilon")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            RecordStore(store.path, *args)
    with pytest.raises(ValueError, match="no records yet"):
        store.shards("mercy")
    for epsilon in ((0, 1), (2, 1), (1, math.inf), (1, 101)):
        with pytest.raises(ValueError, match=r"must be .smallest, largest."):
            RecordStore(tmp_path / "new.db", SCHEMA, "flu", epsilon)
    real = Schema(SCHEMA.columns, Target("flu", "real", low=0, high=1))
    with pytest.raises(ValueError, match="can't be randomised"):
        RecordStore(tmp_path / "new.db", real, "flu", (1, 2))
    (tmp_path / "text").write_text("no database at all, but long enough to look at" * 100)
    with pytest.raises(ValueError, match="not a store of records, or damaged"):
        RecordStore(tmp_path / "text", SCHEMA, "flu", (1, 2))
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(ValueError, match="not a store of records"):
        RecordStore(tmp_path / "other.db", SCHEMA, "flu", (1, 2))


def test_many_records_and_an_interruption(store):
    def lines():
        for i in range(3000):
            if i == 2500:
                raise KeyboardInterrupt
            yield record(i)

    with pytest.raises(KeyboardInterrupt):
        ingest(lines(), store)
    assert len(store) == 2048  # whole batches
    assert ingest((record(i) for i in range(3000)), store) == (952, 2048, [])
    assert len(store.shards("mercy")) == 3000


def test_from_the_users_record_to_a_model(tmp_path):
    """Two parties, 120 users each, everyone with an own ε: the corrected loss finds the signal."""
    rng = np.random.default_rng(0)
    parts, epsilons = [], []
    for party in ("north", "south"):
        with RecordStore(tmp_path / f"{party}.db", SCHEMA, "flu", (1.0, 6.0)) as store:
            made = []
            for i in range(120):
                age, epsilon = int(rng.integers(0, 101)), float(rng.choice([2.0, 6.0]))
                (tmp_path / "me.json").write_text(json.dumps({"age": age, "job": "cook", "name": "x"}))
                truth = "yes" if age > 50 else "no"
                made.append(make("flu", f"{party}{i}", epsilon, tmp_path / "book.db", truth, 2, SCHEMA,
                                 tmp_path / "me.json"))  # fmt: skip
            assert ingest((json.dumps(r) for r in made), store) == (120, 0, [])
            shards = store.shards(party)
            parts.append((shards.X, shards.y))
            epsilons.append(shards.columns["epsilon"])
            assert epsilons[-1].tolist() == [r["epsilon"] for r in made]
    X, y = (np.concatenate(p) for p in zip(*parts, strict=True))
    shards = confide.Shards.from_groups(X, y, np.repeat([0, 1], 120), {"epsilon": np.concatenate(epsilons)})
    loss = confide.losses.NoisyLabels(confide.losses.Logistic(), epsilon_min=1.0)
    problem = confide.Problem(shards, loss, confide.penalties.L2(0.05))
    truth = np.where(X[:, 0] > 0, 1, -1)
    assert np.mean(problem.predict(X, problem.solve()) == truth) > 0.8
