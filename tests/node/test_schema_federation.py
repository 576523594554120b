"""Five real processes that read their own files by one public schema equal the simulator on rows encoded by hand."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from test_records_cli import call
from village import NAMES, Crowd

import confide
from confide.node.export import export
from confide.privacy.noise import SimulatedNoise
from confide.problem.block import Block
from confide.runs.party import Party

pytestmark = pytest.mark.slow

SCHEMA = """\
row_norm = 1.5
intercept = true
missing_marks = ["NA"]

[label]
name = "ill"
kind = "binary"
values = ["no", "yes"]

[invalid_row]
label = "yes"

[columns.age]
kind = "numeric"
low = 0
high = 100
missing = "missing"

[columns.stay]
kind = "numeric"
low = 0
high = 20
missing = 5
outside = "invalid"

[columns.ward]
kind = "category"
categories = ["surgery", "eyes", "heart"]
missing = "eyes"

[columns.patient]
kind = "ignore"
"""
WARDS = ("surgery", "eyes", "heart")
SIZES = (12, 30, 25, 40, 33)
FILES = dict(zip(NAMES, ("ash.csv", "birch.csv", "cedar.csv", "doum.parquet", "elm.parquet"), strict=True))
SECRET = "48213"
SEED = 9


def patients(rng, rows):
    """(age, stay, ward, patient, ill) as a file holds them; None is missing."""
    for i in range(rows):
        age = None if rng.random() < 0.2 else float(rng.integers(-10, 115))  # also outside the range: clipped
        stay = None if rng.random() < 0.2 else float(rng.integers(0, 21))
        ward = None if rng.random() < 0.2 else str(rng.choice(WARDS))
        risk = ((age or 50) - 50) / 20 + ((stay or 5) - 10) / 5 + rng.normal()
        yield age, stay, ward, f"p{i}", "yes" if risk > 0 else "no"


def encoded(rows):
    """The schema by hand: age, its missingness, stay, three wards; the label. None is the fixed public row."""
    X, y = np.zeros((len(rows), 6)), np.ones(len(rows))
    for i, row in enumerate(rows):
        if row is None:
            continue
        out, (age, stay, ward, _, ill) = X[i], row
        y[i] = 1.0 if ill == "yes" else -1.0
        out[:2] = (0, 1) if age is None else (min(max(age, 0), 100) / 50 - 1, 0)
        out[2] = (5 if stay is None else stay) / 10 - 1
        out[3 + WARDS.index(ward or "eyes")] = 1
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True) / 1.5), y


def write(path, rows):
    names = ("age", "stay", "ward", "patient", "ill")
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), path)
        return
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names[::-1], *([("NA" if v is None else v) for v in row[::-1]] for row in rows)])


@pytest.fixture
def ring(tmp_path, monkeypatch):
    """A crowd with its files and federation; `rows` and `data` of each."""
    monkeypatch.chdir(tmp_path)
    rng, crowd = np.random.default_rng(8), Crowd(tmp_path, NAMES)
    Path("schema.toml").write_text(SCHEMA)
    crowd.rows = {name: list(patients(rng, n)) for name, n in zip(NAMES, SIZES, strict=True)}
    crowd.data = {name: tmp_path / FILES[name] for name in NAMES}
    for name in NAMES:
        write(crowd.data[name], crowd.rows[name])
        call("node", "init", "--name", name, "--listen", crowd.addresses[name], "--home", name)
    parties = [x for name, n in zip(NAMES, SIZES, strict=True) for x in ("--party", f"{name}/card.toml={n}")]
    chosen = ("rounds=200", "coupling=0.2", "step=1.0", "clip=1.0", "noise=0.05")
    settings = [x for text in chosen for x in ("--set", text)]
    call("federation", "new", *parties, "--schema", "schema.toml", "--epsilon", 1, *settings, "--weighting", "rows",
         "--algorithm", "CDPADMM", "--penalty", "L2:strength=0.01", "--test-noise-seed", SEED,
         "--timeout", 60)  # fmt: skip
    with crowd:
        yield crowd


def problem(rows):
    X, y = (np.concatenate(part) for part in zip(*(encoded(rows[name]) for name in NAMES), strict=True))
    shards = confide.Shards.from_groups(X, y, np.repeat(np.arange(5), SIZES)).clip_rows(1.5)
    return confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.01), weighting="rows",
                           intercept=True)  # fmt: skip


def models(crowd):
    found = [export(crowd.folder / name, next((crowd.folder / name).glob("runs/*"))) for name in NAMES]
    return np.array([[*m.coefficients[0], *m.intercept] for m in found])


def by_hand(crowd, change=0, others=None):
    """All parties in this process; cedar's rows are `others` after round `change`. (5, width)."""
    federation = crowd.federation

    def block(k, rows):
        X, y = encoded(rows)
        shards = confide.Shards.from_groups(X, y, np.zeros(len(y))).clip_rows(1.5)
        return Block(shards, federation.loss, np.array([1 / sum(SIZES)]), True)  # each row weighs the same

    parties = [Party(k, federation.algorithm, federation.public, block(k, crowd.rows[name]),
                     SimulatedNoise(np.array([SEED]), np.array([k]))) for k, name in enumerate(NAMES)]  # fmt: skip
    for t in range(1, federation.algorithm.rounds + 1):
        if t == change + 1 and others is not None:
            parties[2].block = block(2, others)
        sent = [party.send() for party in parties]
        for k, party in enumerate(parties):
            party.receive({l: sent[l] for l in ((k - 1) % 5, (k + 1) % 5)})
    return np.array([party.estimate for party in parties])


def simulated(crowd):
    method = crowd.federation.algorithm
    return confide.simulate(problem(crowd.rows), confide.Graph.ring(5), method, seeds=[SEED], record=()).estimates[0]


def test_csv_and_parquet_by_one_schema_equal_the_simulation(ring):
    ring.start(data=ring.data)
    assert ring.join() == dict.fromkeys(NAMES, 0), ring.log("ash")
    assert np.max(np.abs(models(ring) - simulated(ring))) <= 1e-10
    private = list((ring.folder / "doum").glob("runs/*/rows/*"))
    assert private and all(file.stat().st_mode & 0o077 == 0 for file in private)


def test_an_invalid_row_is_refused_before_training_and_a_fixed_public_row_after(ring):
    good = ring.data["cedar"].read_text()
    spoiled = good.splitlines()
    spoiled[4] = f"no,{SECRET},{SECRET},{SECRET}x,50"  # ward and stay of line 5 are not declared
    ring.data["cedar"].write_text("\n".join(spoiled))
    ring.start(data=ring.data)
    assert ring.join("cedar") == {"cedar": 2}
    assert "cedar.csv, line 5, column" in ring.log("cedar") and SECRET not in ring.log("cedar")
    assert ring.rounds_sent("cedar") == 0

    ring.data["cedar"].write_text(good)
    ring.start("cedar", data=ring.data)
    assert ring.passes("cedar", 10)
    ring.kill("cedar")
    begun = ring.rounds_sent("cedar")
    assert 10 < begun < 190
    ring.data["cedar"].write_text("\n".join(spoiled))
    ring.start("cedar", data=ring.data)
    assert ring.join() == dict.fromkeys(NAMES, 0), ring.log("cedar")
    assert SECRET not in "".join(ring.log(name) for name in NAMES) and "line 5" not in ring.log("ash")

    assert np.max(np.abs(by_hand(ring) - simulated(ring))) <= 1e-10
    expected = by_hand(ring, begun, [*ring.rows["cedar"][:3], None, *ring.rows["cedar"][4:]])
    assert np.max(np.abs(models(ring) - expected)) <= 1e-10
    assert np.max(np.abs(expected - simulated(ring))) > 1e-4  # the row mattered
