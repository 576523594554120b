"""From people's answers to a joint model with the commands they would type: randomize, ingest, federation, nodes."""

import json
import stat

import numpy as np
import pytest
from typer.testing import CliRunner
from village import Crowd

import confide
from confide.cli import app
from confide.cli.federation import named
from confide.errors import ConfideError
from confide.files.parts import from_table
from confide.node.records import LONGEST, RecordStore, is_store
from confide.privacy import response
from confide.privacy.response import ResponseBook
from confide.problem import losses
from confide.schema.schema import Schema

SCHEMA = """\
row_norm = 1.0
intercept = true

[label]
name = "flu"
kind = "binary"
values = ["no", "yes"]

[columns.age]
kind = "numeric"
low = 0
high = 100

[columns.job]
kind = "category"
categories = ["cook", "clerk"]
missing = "clerk"

[columns.name]
kind = "ignore"
"""
PARTIES = ("mercy", "north", "south")
SIZES = (14, 9, 11)
RANGE = ("--epsilon-range", "0.5", "8")
SECRET = "48213"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def call(*args, code=0, given=None):
    """A command's standard output."""
    out = CliRunner().invoke(app, [str(a) for a in args], input=given)
    assert out.exit_code == code, out.output
    return out.stdout


def answer(person, epsilon, age, job, flu, folder):
    """One person's line: the true label goes in, the randomised one comes out."""
    me = folder / "me.json"
    me.write_text(json.dumps({"age": age, "job": job, "name": SECRET, "flu": flu}))
    line = call("randomize", "--task", "flu", "--person", person, "--epsilon", epsilon, "--schema", "schema.toml",
                "--record", me, "--book", folder / "book.db")  # fmt: skip
    assert SECRET not in line
    return line


def record(i, **changes):
    fields = {"id": f"{i:064x}", "task": "flu", "epsilon": 1.0, "features": {"age": 25, "job": "cook"}, "label": "yes"}
    return json.dumps({**fields, **changes}) + "\n"


def ingest(*args, **more):
    return call("node", "ingest", *args, "--schema", "schema.toml", "--task", "flu", *RANGE, "--home", "mercy", **more)


def test_what_fits_is_stored_and_what_does_not_is_named_by_line_and_field(here):
    bad = [record(3, epsilon=9), record(4, features={"age": SECRET + "x", "job": None}), "x" * (3 * LONGEST) + "\n"]
    (here / "records.jsonl").write_text("".join([record(1), *bad, record(2), record(1)]))
    said = ingest("records.jsonl", code=1)
    assert said.splitlines() == [
        "line 2: field 'epsilon': must be a number from 0.5 to 8", "line 3: field 'age': not a number",
        f"line 4: longer than {LONGEST} characters",
        "2 stored, 1 there already, 3 refused; 2 records are in mercy/records/flu.db",
    ]  # fmt: skip
    store = here / "mercy" / "records" / "flu.db"
    assert is_store(store) and stat.S_IMODE(store.stat().st_mode) == 0o600
    assert SECRET.encode() not in store.read_bytes()
    said = json.loads(ingest("-", "--json", given=record(1) + record(5) + record(6, task=SECRET), code=1))
    assert said == {"store": "mercy/records/flu.db", "records": 3, "stored": 1, "repeated": 1,
                    "refused": [{"line": 3, "what": "field 'task': another task than the store's"}]}  # fmt: skip
    assert "2 stored, 0 there already, 0 refused; 5 records" in ingest("-", given=record(7) + "\n" + record(8))


def test_mistakes_are_one_line_and_make_no_store(here):
    common = ["--schema", "schema.toml", "--home", "mercy"]
    for args, said in (
        (["missing.jsonl", "--task", "flu", *RANGE], "missing.jsonl: No such file"),
        (["-", "--task", "../flu", *RANGE], "must be letters"),
        (["-", "--task", "flu", "--epsilon-range", "8", "0.5"], "must be (smallest, largest)"),
    ):
        out = CliRunner().invoke(app, ["node", "ingest", *args, *common], input=record(1))
        assert out.exit_code == 2 and said in out.stderr and out.stderr.count("\n") == 1
    assert not list(here.glob("mercy/records/*"))
    ingest("-", given=record(1))
    out = CliRunner().invoke(app, ["node", "ingest", "-", "--task", "flu", "--epsilon-range", "1", "8", *common])
    assert out.exit_code == 2 and "another smallest epsilon" in out.stderr


def test_the_loss_for_randomised_labels_can_be_written_on_the_command_line():
    for text, loss in (
        ("NoisyLabels:epsilon_min=0.5", losses.NoisyLabels(epsilon_min=0.5)),
        ("NoisyLabels:epsilon=1", losses.NoisyLabels(epsilon=1)),
        ('NoisyLabels:loss={"name": "Multinomial", "classes": 3},epsilon_min=0.5',
         losses.NoisyLabels(losses.Multinomial(3), epsilon_min=0.5)),
        ("Huber:width=2", losses.Huber(2)), ("Logistic", losses.Logistic()),
    ):  # fmt: skip
        assert from_table(named(text), "model.loss", losses.ALL) == loss


def people(rng, rows):
    for _ in range(rows):
        age, job = int(rng.integers(0, 101)), str(rng.choice(["cook", "clerk", ""]))
        yield float(rng.choice([0.5, 2.0, 8.0])), age, job, "yes" if age + 20 * rng.normal() > 50 else "no"


@pytest.mark.slow
def test_five_commands_from_answers_to_a_model(here):
    """Three parties' users, each with an own ε; the nodes equal the simulator on rows encoded by hand."""
    rng = np.random.default_rng(2)
    crowd, X, y, epsilon = Crowd(here, PARTIES), [], [], []
    for name, rows in zip(PARTIES, SIZES, strict=True):
        lines = []
        for i, (own, age, job, flu) in enumerate(people(rng, rows)):
            line = answer(f"{name}-{i}", own, age, job, flu, here)
            assert line == answer(f"{name}-{i}", own, age, job, flu, here)  # never a second draw
            lines.append(line)
            X.append([age / 50 - 1, job == "cook", job != "cook"])
            y.append(1.0 if json.loads(line)["label"] == "yes" else -1.0)
            epsilon.append(own)
        (here / f"{name}.jsonl").write_text("".join(lines))
        call("node", "init", "--name", name, "--listen", crowd.addresses[name], "--home", name)
        said = call("node", "ingest", f"{name}.jsonl", "--schema", "schema.toml", "--task", "flu", *RANGE,
                    "--home", name)  # fmt: skip
        assert said.startswith(f"{rows} stored, 0 there already, 0 refused")
    with RecordStore.load(here / "north" / "records" / "flu.db", Schema.load("schema.toml")) as store:
        assert (store.task, store.lowest, store.highest, len(store)) == ("flu", 0.5, 8.0, SIZES[1])
    parties = [x for name, n in zip(PARTIES, SIZES, strict=True) for x in ("--party", f"{name}/card.toml={n}")]
    chosen = ("rounds=30", "coupling=0.2", "step=2.0", "clip=2.0", "noise=0.1")
    settings = [x for text in chosen for x in ("--set", text)]
    call("federation", "new", *parties, "--schema", "schema.toml", "--epsilon", "1", "--loss",
         "NoisyLabels:epsilon_min=0.5", "--penalty", "L2:strength=0.1", "--algorithm", "CDPADMM",
         "--weighting", "parties", *settings, "--test-noise-seed", "11",
         "--timeout", "60")  # fmt: skip
    # a record that comes after the number of rows was agreed on is for another run
    late = here / "mercy" / "late.jsonl"
    late.write_text(answer("late", 2.0, 99, "cook", "no", here))
    call("node", "ingest", late, "--schema", "schema.toml", "--task", "flu", *RANGE, "--home", "mercy")
    with crowd:
        crowd.start(data={name: here / name / "records" / "flu.db" for name in PARTIES})
        assert crowd.join() == dict.fromkeys(PARTIES, 0), crowd.log("mercy")
    models = []
    for name in PARTIES:
        call("node", "model", "--home", name, "--output", f"{name}.json")
        found = json.loads((here / f"{name}.json").read_text())
        assert found["loss"]["name"] == "NoisyLabels"
        models.append([*found["coefficients"][0], *found["intercept"]])
    X, y = np.array(X, float), np.array(y)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    shards = confide.Shards.from_groups(X, y, np.repeat(np.arange(3), SIZES), {"epsilon": np.array(epsilon)})
    problem = confide.Problem(shards.clip_rows(1.0), losses.NoisyLabels(epsilon_min=0.5), confide.penalties.L2(0.1),
                              intercept=True)  # fmt: skip
    method = confide.algorithms.CDPADMM(rounds=30, coupling=0.2, step=2.0, clip=2.0, noise=0.1)
    expected = confide.simulate(problem, confide.Graph.ring(3), method, seeds=[11], record=()).estimates[0]
    assert np.max(np.abs(np.array(models) - expected)) <= 1e-10
    plain = confide.Problem(problem.shards, losses.Logistic(), problem.penalty, intercept=True)
    other = confide.simulate(plain, confide.Graph.ring(3), method, seeds=[11], record=()).estimates[0]
    assert np.max(np.abs(other - expected)) > 1e-3  # each user's ε matters


def refusal(here, store, loss, schema="schema.toml"):
    """What a party's node says to a store whose users could choose from 0.5 to 8."""
    from confide.node import federation as federations
    from confide.node.rows import read_block

    (here / "federation.toml").unlink(missing_ok=True)
    source = ["--schema", schema] if schema else ["--features", 3]
    call("federation", "new", "--party", "a/card.toml=2", "--party", "b/card.toml=2", "--graph", "path", *source,
         "--epsilon", 1, "--loss", loss, "--algorithm", "CDPADMM", "--set", "clip=1", "--set", "rounds=3")  # fmt: skip
    with pytest.raises(ValueError) as error:
        read_block(store, federations.load(here / "federation.toml"), 0, here / "work", training=False)
    return str(error.value)


def test_a_store_must_fit_the_federation(here):
    for name in "ab":
        call("node", "init", "--name", name, "--listen", f"127.0.0.1:{7001 + ord(name)}", "--home", name)
    ingest("-", given=record(1) + record(2))
    store = here / "mercy" / "records" / "flu.db"
    assert "labels in a store are randomised" in refusal(here, store, "Logistic")
    assert "from 0.5 to 8: the loss takes at least 0.6" in refusal(here, store, "NoisyLabels:epsilon_min=0.6")
    assert "from 0.5 to 8: the loss takes only 0.5" in refusal(here, store, "NoisyLabels:epsilon=0.5")
    assert "has a schema, the federation none" in refusal(here, store, "NoisyLabels:epsilon_min=0.5", None)
    (here / "other.toml").write_text(SCHEMA.replace("high = 100", "high = 99"))
    assert "another schema" in refusal(here, store, "NoisyLabels:epsilon_min=0.5", "other.toml")
    (here / "rows.csv").write_text("age,job,flu\n5,cook,no\n6,cook,yes\n")
    assert "needs each row's ε" in refusal(here, here / "rows.csv", "NoisyLabels:epsilon_min=0.5")
    short = here / "short" / "records" / "flu.db"
    call("node", "ingest", "-", "--schema", "schema.toml", "--task", "flu", *RANGE, "--home", "short", given=record(1))
    assert "1 records, not yet the 2 that a promised" in refusal(here, short, "NoisyLabels:epsilon_min=0.5")


LOOKALIKES = [("Mu\u0308ller", "flu"), ("M\u00fcller ", "flu"), ("M\u00fcller", " flu")]


@pytest.mark.parametrize(("person", "task"), LOOKALIKES)
def test_under_a_name_that_looks_the_same_nothing_is_drawn_again(here, monkeypatch, person, task):
    """Else the same label is drawn twice, for ε each, and the collector takes it for two people's."""
    command = ("randomize", "--epsilon", 1, "--label=-1", "--book", "book.db")
    call(*command, "--person", "M\u00fcller", "--task", "flu")
    out = CliRunner().invoke(app, [*map(str, command), "--person", person, "--task", task])
    wrong = "task" if task != "flu" else "person"
    assert out.exit_code == 2 and f"{wrong}: must be in Unicode's form NFC" in out.stderr and person not in out.stderr
    book = ResponseBook("book.db")
    with monkeypatch.context() as earlier:  # a version that took every name
        earlier.setattr(response, "_one_name", lambda **names: None)
        book.choose(person, task, 1.0)
    kept = book.respond(person, task, -1.0)
    asked = [json.loads(call(*command, "--person", person, "--task", task))["label"] for _ in range(8)]
    assert asked == [kept] * 8  # read back, not drawn
    with pytest.raises(ConfideError, match=f"{wrong}: must be"):
        book.choose(person, f"{task}2", 1.0)  # a new one is refused all the same
