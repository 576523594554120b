"""Columns of many categories: what is done once for a file is not done for each batch, and X is not made in vain."""

import numpy as np
import pytest

from confide.schema import check, columns, encode, reader
from confide.schema.schema import Column, Schema, Target

MANY = 3000
SCHEMA = Schema(
    (
        Column("place", "category", categories=tuple(f"c{i}" for i in range(MANY)), missing="missing"),
        Column("age", "numeric", 0.0, 100.0, missing="missing"),
        Column("dose", "numeric", 0.0, 1.0, outside="invalid"),
    ),
    Target("ill", "binary", ("0", "1")),
    missing_marks=("?",),
)
LINES = [
    "c1,20,0.5,1", "c2999,?,0.5,0", "nowhere,20,0.5,1", "?,101,0.5,1", "c7,20,2,1", "c7,20,?,1", "c7,x,0.5,1",
    "c7,20,0.5,2", "c7,20,0.5,?", "c7,20,0.5", "c7.0,20,0.5,1",
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("place,age,dose,ill\n" + "\n".join(LINES * 40) + "\n")
    return path


def test_declared_values_are_prepared_once_for_all_batches(file, monkeypatch):
    pytest.importorskip("pyarrow")
    file.write_text("place,age,dose,ill\n" + "c1,20,0.5,1\n" * 1000)
    seen = []
    monkeypatch.setattr(reader, "ROWS", 64)  # 16 batches
    monkeypatch.setattr(columns, "plain", lambda field: seen.append(field) or field)
    columns._plain_texts.cache_clear()
    assert check.check(file, SCHEMA).rows == 1000
    columns._plain_texts.cache_clear()
    assert MANY <= len(seen) <= 2 * MANY


def test_a_check_makes_no_features(file, monkeypatch):
    """Eight bytes for each category and row would be gigabytes."""
    made = []
    real = encode.clipped
    monkeypatch.setattr(encode, "clipped", lambda X, *given: made.append(X.shape) or real(X, *given))
    found = check.check(file, SCHEMA)
    assert found.rows == 40 * len(LINES) and made == []


@pytest.mark.parametrize("lists", [True, False])
def test_what_does_not_fit_is_the_same_without_features(file, lists):
    if not lists:
        pytest.importorskip("pyarrow")
    fields = [(line + ",")[: None if line.count(",") < 3 else -1].split(",") for line in LINES]
    given = dict(zip(("place", "age", "dose", "ill"), map(list, zip(*fields, strict=True)), strict=True))
    if not lists:
        given = {name: columns._arrow_texts(values) for name, values in given.items()}
    whole = encode.encode(SCHEMA, given, len(LINES))
    light = encode.encode(SCHEMA, given, len(LINES), features=False)
    assert light[3:] == whole[3:] and whole.flaws and whole.clipped and whole.filled
    assert np.array_equal(light.y, whole.y) and light.X.shape == (len(LINES), 0)
    assert whole.X.shape == (len(LINES), MANY + 4)
