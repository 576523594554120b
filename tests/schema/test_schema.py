"""Schemas: one way to write each, every mistake one line, and an encoding that others agree with."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import schemas
from sklearn.preprocessing import OneHotEncoder

from confide.errors import ConfideError
from confide.schema.document import dumps, loads
from confide.schema.encode import encode, fixed_label
from confide.schema.schema import Column, Schema, Target
from confide.schema.suggest import outward

TOML = """
row_norm = 2.5
missing_marks = ["?"]

[label]
name = "income"
kind = "binary"
values = ["<=50K", ">50K"]

[columns.age]
kind = "numeric"
low = 18
high = 98
missing = 50

[columns."last job"]
kind = "category"
categories = ["clerk", "cook", 3]
missing = "missing"

[columns.zip]
kind = "ignore"
"""
BINARY = Target("y", "binary", ("no", "yes"))


# --- in and out -------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(schemas())
def test_what_is_written_is_read_back(schema):
    text = dumps(schema)
    again = loads(text)
    assert again == schema and again.hash() == schema.hash() and dumps(again) == text
    assert Schema.from_dict(schema.to_dict()) == schema
    nested = dumps(schema, {("row_norm",): "a note"}, prefix=("schema",))
    import tomllib

    assert Schema.from_dict(tomllib.loads(nested)["schema"]) == schema


def test_a_file_as_people_write_it():
    schema = Schema.from_toml(TOML)
    assert schema.features == ("age", "last job=clerk", "last job=cook", "last job=3", "last job=missing")
    assert (schema.row_norm, schema.intercept, schema.invalid_label) == (2.5, True, "<=50K")
    assert schema.label.decode([-1, 1]) == ["<=50K", ">50K"]


def test_the_hash_is_of_the_meaning_and_published():
    schema = Schema.from_toml(TOML)
    assert schema.hash() == "81193d2ce4950bcd2ba3e4dfdc0d614a1c90b82d4532297d15df1dde71924ac0"
    assert Schema.from_toml("# a comment\nintercept = true\n" + TOML).hash() == schema.hash()
    for change in (("98", "99"), ('"clerk", "cook"', '"cook", "clerk"'), ("row_norm = 2.5", "row_norm = 2.0"),
                   ('["?"]', "[]"), ('kind = "ignore"', 'kind = "numeric"\nlow=0\nhigh=1')):  # fmt: skip
        assert Schema.from_toml(TOML.replace(*change)).hash() != schema.hash()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("row_norm = 2.5", "rownorm = 2.5", "unknown field rownorm: allowed are label, columns, row_norm, intercept"),
        ("low = 18", "min = 18", "unknown field columns.age.min: allowed are kind, low, high"),
        ('name = "income"', 'named = "income"', "unknown field label.named: allowed are name, kind, values"),
        ('name = "income"', "", "no field label.name"),
        ("row_norm = 2.5", "row_norm = -1", "row_norm=-1: must be a finite number above 0"),
        ("row_norm = 2.5", "row_norm = nan", "row_norm=nan"),
        ("row_norm = 2.5", "intercept = 1", "intercept=1: must be true or false"),
        ("low = 18", "low = 98", "low=98, high=98: must be finite numbers, low below high"),
        ("low = 18", "", "low=None"),
        ("high = 98", "high = inf", "high=inf"),
        ("missing = 50", "missing = 5", "missing=5: must be a number in the range, or 'missing'"),
        ("missing = 50", 'missing = "none"', "missing='none'"),
        ("missing = 50", 'categories = ["a"]', "kind='numeric' with categories: they are for kind 'category'"),
        ('missing = "missing"', 'missing = "chef"', "missing='chef': must be one of the categories"),
        ('"clerk", "cook", 3', '"clerk", "clerk"', "'clerk' twice"),
        ('"clerk", "cook", 3', '"1", "1.0"', "has '1' and '1.0', which are one value"),
        ('"clerk", "cook", 3', '"clerk", " cook"', "without blanks at its ends"),
        ('"clerk", "cook", 3', '"clerk", 1.5', "categories=['clerk', 1.5]: must be a list of texts or whole numbers"),
        ('["clerk", "cook", 3]', '"A"', "columns.last job.categories='A': must be a list of texts or whole numbers"),
        ('missing = "missing"', "missing = 1.5", "columns.last job.missing=1.5: must be a text or a whole number"),
        ('"clerk", "cook", 3', '"clerk", "?"', "a declared value and a missing mark"),
        ('missing = "missing"', 'missing_marks = ["3.0"]', "'3' is a declared value and a missing mark"),
        ("missing = 50", "missing_marks = [1.5]", "age.missing_marks=[1.5]: must be a list of texts or whole numbers"),
        ('kind = "ignore"', 'kind = "ignore"\nmissing_marks = [-9]', "they are for columns that are read"),
        ('"<=50K", ">50K"', '"a", "b", "c"', "kind='binary' with 3 values: must be 2; more are kind 'classes'"),
        ('kind = "binary"', 'kind = "yes/no"', "kind='yes/no': must be 'binary' or 'classes' or 'real'"),
        ('kind = "ignore"', 'kind = "drop"', "kind='drop': must be 'numeric' or 'category' or 'ignore'"),
        ('name = "income"', 'name = "age"', "column 'age' is declared twice"),
        ("row_norm = 2.5", "row_norm = ", "not TOML"),
        ("row_norm = 2.5", '[invalid_row]\nlabel = "x"\n', "unknown field invalid_row.missing_marks"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_the_field(old, new, said):
    with pytest.raises(ValueError) as caught:
        Schema.from_toml(TOML.replace(old, new, 1), "s.toml")
    message = str(caught.value)
    assert message.startswith("s.toml: ") and said in message and "\n" not in message


# --- encoding ---------------------------------------------------------------------------------------------------------


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "age": rng.normal(50, 30, n).round(2), "dose": rng.uniform(0, 1, n), "sex": rng.choice(["F", "M", "X"], n),
        "job": rng.choice(["a", "b"], n), "y": rng.choice(["lo", "mid", "hi"], n),
    })  # fmt: skip


FRAME = Schema(
    (Column("age", "numeric", 18, 98), Column("sex", "category", categories=("X", "M", "F")),
     Column("dose", "numeric", -1, 3), Column("job", "category", categories=("b", "a", "never"))),
    Target("y", "classes", ("lo", "mid", "hi")), row_norm=1.3,
)  # fmt: skip


def as_columns(df):
    return {name: df[name].tolist() for name in df}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_encoders_agree(dtype):
    df = frame()
    got = encode(FRAME, as_columns(df), len(df), dtype=dtype)
    one_hot = OneHotEncoder(categories=[["X", "M", "F"], ["b", "a", "never"]], sparse_output=False)
    cats = one_hot.fit_transform(df[["sex", "job"]].to_numpy())
    age = ((df["age"].clip(18, 98) - 18) / 40 - 1).to_numpy()[:, None]
    dose = ((df["dose"] + 1) / 2 - 1).to_numpy()[:, None]
    expected = np.hstack([age, cats[:, :3], dose, cats[:, 3:]])
    norm = np.linalg.norm(expected, axis=1, keepdims=True)
    expected *= np.minimum(1, 1.3 / norm)
    assert got.X.dtype == dtype and not got.flaws
    np.testing.assert_allclose(got.X, expected, atol=1e-6 if dtype == "float32" else 1e-12)
    assert np.linalg.norm(got.X.astype(float), axis=1).max() <= 1.3  # enforced, not up to rounding
    np.testing.assert_array_equal(got.y, df["y"].map({"lo": 0, "mid": 1, "hi": 2}))
    outside = np.flatnonzero((df["age"] < 18) | (df["age"] > 98))
    assert [f.row for f in got.clipped] == outside.tolist()


def test_a_row_is_encoded_alike_in_any_company():
    df = frame(40)
    together = encode(FRAME, as_columns(df), 40).X
    alone = np.vstack([encode(FRAME, as_columns(df.iloc[[i]]), 1).X for i in range(40)])
    np.testing.assert_array_equal(together, alone)


def test_missing_values_follow_the_declared_rule():
    schema = Schema(
        (Column("a", "numeric", 0, 4, missing=1), Column("b", "numeric", 0, 4, missing="missing"),
         Column("c", "category", categories=("u", "v"), missing="v"),
         Column("d", "category", categories=("u", "v"), missing="missing")),
        BINARY, row_norm=10, missing_marks=("?",),
    )  # fmt: skip
    fields = {"a": ["4", "", "?"], "b": ["0", None, "?"], "c": ["u", " ", "?"], "d": ["v", "", "?"], "y": ["no"] * 3}
    got = encode(schema, fields, 3)
    gone = [-0.5, 0, 1, 0, 1, 0, 0, 1]
    assert got.X.tolist() == [[1, -1, 0, 1, 0, 0, 1, 0], gone, gone] and not got.flaws


@pytest.mark.parametrize("form", ["fields", "texts in Arrow", "numbers in Arrow"])
def test_a_mark_of_one_column_and_whole_numbers_however_they_are_written(form):
    schema = Schema(
        (Column("a", "numeric", 0, 10, missing=5, missing_marks=("-9", "999")), Column("b", "numeric", -10, 10),
         Column("c", "category", categories=("1", "2.0"), missing="missing", missing_marks=("-9",))),
        Target("y", "binary", ("0", "1")), row_norm=10,
    )  # fmt: skip
    fields = {"a": ["-9", "-9.0", "999.00", "10"], "b": ["-9", "-9.0", "0", "10"], "c": ["1.0", "2", "-9.0", "1"],
              "y": ["0", "1.0", "1", "0.0"]}  # fmt: skip
    if form != "fields":
        kind = pa.string() if form == "texts in Arrow" else pa.float64()
        fields = {name: pa.array([float(v) if kind == pa.float64() else v for v in values], kind)
                  for name, values in fields.items()}  # fmt: skip
    got = encode(schema, fields, 4)
    assert not got.flaws and not got.clipped
    np.testing.assert_allclose(got.X[:, 0], [0, 0, 0, 1])  # 5 is the middle of 0..10
    np.testing.assert_allclose(got.X[:, 1], [-0.9, -0.9, 0, 1])  # here -9 is a number like any other
    assert got.X[:, 2:].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]] and got.y.tolist() == [-1, 1, 1, -1]


def test_leading_zeros_are_part_of_a_code():
    schema = Schema((Column("c", "category", categories=("007", "7")),), BINARY, row_norm=2)
    got = encode(schema, {"c": ["007", "7", "7.0", "07"], "y": ["no"] * 4}, 4)
    assert got.X.tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]] and [f.row for f in got.flaws] == [3]


def test_without_a_rule_or_a_declared_value_the_row_is_the_fixed_one():
    schema = Schema(
        (Column("a", "numeric", 0, 4), Column("b", "numeric", 0, 4, outside="invalid"),
         Column("c", "category", categories=("u",))), BINARY, invalid_label="yes",
    )  # fmt: skip
    bad = {"a": ["", "nan", "inf", "1_0", "٣", "0x1", "1", "1", "1", "1", "4"],
           "b": ["1", "1", "1", "1", "1", "1", "4.1", "1", "1", "1", "4"],
           "c": ["u", "u", "u", "u", "u", "u", "u", "w", "u", "u", "u"],
           "y": ["no", "no", "no", "no", "no", "no", "no", "no", "maybe", "", "no"]}  # fmt: skip
    got = encode(schema, bad, 11)
    assert [(f.row, f.column) for f in got.flaws] == [
        *((i, "a") for i in range(6)), (6, "b"), (7, "c"), (8, "y"), (9, "y")]  # fmt: skip
    assert np.all(got.X[:10] == 0) and np.all(got.y[:10] == 1) and got.y[10] == -1 and np.any(got.X[10])


def test_a_real_label_is_scaled_and_comes_back_in_its_unit():
    schema = Schema((Column("a", "numeric", 0, 1),), Target("y", "real", low=-10, high=30))
    got = encode(schema, {"a": ["0"] * 4, "y": ["-10", "30", "10", "99"]}, 4)
    assert got.y.tolist() == [-1, 1, 0, 1] and schema.label.decode(got.y) == [-10, 30, 10, 30]
    assert schema.invalid_label == 10 and fixed_label(schema) == 0


def test_predicting_needs_no_label():
    assert encode(FRAME, {k: v for k, v in as_columns(frame(5)).items() if k != "y"}, 5, label=False).X.shape == (5, 8)


# --- drafting ---------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e12, 1e12), st.floats(0, 1e12))
def test_a_drafted_range_holds_the_values_and_is_round(low, span):
    high = low + span
    a, b = outward(low, high)
    assert a < b and a <= low and high <= b
    assert b - a <= 2.5 * max(high - low, abs(high), 1.0)
    if low >= 0 and high > 2 * low:  # not far from 0 compared to the width
        assert float(f"{a:.2g}") == pytest.approx(a, rel=1e-12) and float(f"{b:.2g}") == pytest.approx(b, rel=1e-12)


def test_two_hundred_thousand_categories_one_of_them_twice():
    """Looked through once: comparing each with all before it would outlast any patience."""
    many = tuple(f"category {i}" for i in range(200_000))
    assert len(Column("job", "category", categories=many).features) == 200_000
    with pytest.raises(ConfideError, match="categories has 'category 199999' twice"):
        Column("job", "category", categories=(*many, many[-1]))
