"""Drafts of real files: what we punched into scikit-learn's data is what the draft must find, with a reason."""

import numpy as np
import pandas as pd
import pytest
from samples import patients
from sklearn import datasets

from confide.errors import ConfideError
from confide.schema.check import check
from confide.schema.document import dumps
from confide.schema.suggest import HEAD, outward, suggest


@pytest.fixture
def draft(tmp_path):
    def make(df, name="d.csv", **options):
        df.to_csv(tmp_path / name, index=False)
        schema, notes = suggest(tmp_path / name, **options)
        return schema, {c.name: c for c in schema.columns}, notes

    return make


def test_a_hospitals_file(draft, tmp_path):
    df = patients()
    schema, columns, notes = draft(df)
    ignored = {c.name for c in schema.columns if c.kind == "ignore"}
    assert ignored == {"PatientID", "row", "admitted", "seen", "stamp", "surname", "empty"}
    marks = {name: c.missing_marks for name, c in columns.items() if c.missing_marks}
    assert marks == {"s1": ("-9",), "s2": ("999",), "sex": ("9",), "bp": ("refused",), "ward": ("-9",)}
    assert schema.missing_marks == ("?",) and columns["ward"].categories == ("east", "west")
    assert (schema.label.kind, schema.label.values) == ("binary", ("0", "1"))  # the file says 0.0 and 1.0
    clean = datasets.load_diabetes(as_frame=True, scaled=False).frame
    for name in ("age", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"):
        low, high = clean[name].min(), clean[name].max()
        c = columns[name]
        assert c.kind == "numeric" and c.low <= low and high <= c.high <= low + 2.5 * (high - low)  # no mark within
    text = HEAD + dumps(schema, notes)
    assert max(map(len, text.splitlines())) <= 80
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert "# AGREE: " in line or lines[i - 1].startswith("# AGREE: ")  # each has its reason
    for reason in ("not read: dates", "not read: counts the rows", "not read: an id by its name", "marks for missing?",
                   "not read: nearly every row has its own text", "not read: no value in any row"):  # fmt: skip
        assert reason in text
    found = check(tmp_path / "d.csv", schema)
    assert found.fits and not found.clipped
    for name, mark in (("s1", -9), ("s2", 999), ("sex", 9), ("s6", "?"), ("bp", "refused"), ("ward", "-9")):
        assert found.filled[name] == (df[name] == mark).sum() > 0
    assert found.filled["s4"] == df["s4"].isna().sum() > 0


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_nothing_is_found_where_nothing_was_punched(draft, name):
    df = getattr(datasets, f"load_{name}")(as_frame=True).frame
    schema, columns, _ = draft(df)
    assert not schema.missing_marks and not any(c.missing_marks or c.missing is not None for c in columns.values())
    assert {c.kind for c in columns.values()} == {"numeric"}
    assert schema.label.values == tuple(map(str, sorted(df["target"].unique())))


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([0, 5, 12, -1, -1], ("-1",)), ([-1, 1, 1, -1], ()), ([-1, 0, 1], ()), ([-5.5, 30, -9, 4], ()),
        ([-5, 30, -999, 4], ("-999",)), ([1, 2, 2, 9, 9], ("9",)), ([1, 2, 2, 9], ()), ([1, 5, 9, 9], ()),
        ([18, 90, 99, 99], ()), ([1, 12, 99, 99], ("99",)), ([0.1, 0.9, 999], ("999",)), ([-9, -8, 0, 3], ("-9", "-8")),
        ([9, 9, 9], ()), ([700, 900, 999, 1200], ()), ([1, 12, 999.5], ()),
    ],
)  # fmt: skip
def test_a_sentinel_lies_apart(draft, values, marks):
    _, columns, _ = draft(
        pd.DataFrame({"x": values, "y": ["no", "yes"] * (len(values) // 2) + ["no"] * (len(values) % 2)})
    )
    assert columns["x"].missing_marks == marks
    rest = [v for v in values if str(v) not in marks]
    assert columns["x"].low <= min(rest) and max(rest) <= columns["x"].high


def test_numbers_that_all_differ_are_ids_only_by_name_or_by_counting(draft):
    rng = np.random.default_rng(0)
    pay = rng.permutation(50_000)[:60] + 20_000
    df = pd.DataFrame({"salary": pay, "record no": pay, "caseId": pay, "i": np.arange(60), "w": pay / 7,
                       "y": rng.choice(["a", "b"], 60)})  # fmt: skip
    _, columns, notes = draft(df)
    kinds = {name: c.kind for name, c in columns.items()}
    assert kinds == {"salary": "numeric", "record no": "ignore", "caseId": "ignore", "i": "ignore", "w": "numeric"}
    assert "if these are ids" in notes["columns", "salary", "kind"]


def test_few_rows_do_not_make_names_of_people_categories(draft):
    names = ["Ada", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal", "Ivy"]
    schema, columns, _ = draft(pd.DataFrame({"who": names, "x": range(3, 30, 3), "y": ["a", "b", "a"] * 3}))
    assert columns["who"].kind == "ignore" and not any(name in dumps(schema) for name in names)


def test_a_rare_category_is_pointed_out(draft):
    often = pd.DataFrame({"job": ["cook"] * 30 + ["clerk"] * 29, "x": [*range(59)], "y": ["a", "b"] * 29 + ["a"]})
    assert "fewer than" not in draft(often)[2]["columns", "job", "categories"]
    rare = pd.concat([often, pd.DataFrame({"job": ["king"], "x": [3], "y": ["a"]})])
    assert "some in fewer than 5" in draft(rare)[2]["columns", "job", "categories"]


def test_a_label_with_gaps_says_that_rows_must_go(draft, tmp_path):
    df = pd.DataFrame({"x": np.linspace(0, 1, 40), "case": [1.0, 2.0] * 18 + [-9.0] * 4})  # as PLINK writes it
    schema, _, notes = draft(df)
    assert schema.label.values == ("1", "2") and "rows without it do not fit" in notes["label", "name"]
    assert check(tmp_path / "d.csv", schema).unfit == 4


def test_decimal_commas_are_said_to_be(draft, tmp_path):
    commas = [f"0,{k}" for k in range(118, 158)]
    df = pd.DataFrame({"dose": commas, "half": [*commas[:20], *["1"] * 20], "x": range(0, 80, 2), "y": ["a", "b"] * 20})
    _, columns, notes = draft(df)
    for name in ("dose", "half"):
        assert columns[name].kind == "ignore" and "with decimal commas" in notes["columns", name, "kind"]
    with pytest.raises(ConfideError, match="column 'dose' can't be a label: numbers with decimal commas"):
        suggest(tmp_path / "d.csv", label="dose")
    with pytest.raises(ConfideError, match="no column to learn from: 'dose' is not read: numbers with decimal commas"):
        draft(df[["dose", "y"]])


def test_codes_keep_their_zeros(draft, tmp_path):
    """ "007" is not "7": a few codes are categories, and many are not read."""
    rows = 60
    df = pd.DataFrame({"county": [("01001", "01003", "10001")[k % 3] for k in range(rows)],
                       "zip": [f"{k % 30:05d}" for k in range(rows)], "y": ["a", "b"] * 30})  # fmt: skip
    schema, columns, notes = draft(df)
    assert columns["county"].categories == ("01001", "01003", "10001") and columns["zip"].kind == "ignore"
    assert "begin with 0" in notes["columns", "county", "kind"] and "begin with 0" in notes["columns", "zip", "kind"]
    assert check(tmp_path / "d.csv", schema).fits


@pytest.mark.parametrize(("values", "said"), [([-1, 0, 3, 5], True), ([-1, 0, 1, 1], False), ([-2, 0, 3, 5], False),
                                              ([-1, 0.5, 3, 5], False)])  # fmt: skip
def test_a_lone_negative_is_pointed_out(draft, values, said):
    _, columns, notes = draft(pd.DataFrame({"x": values * 3, "y": ["a", "b"] * 6}))
    assert columns["x"].kind == "numeric" and columns["x"].low <= min(values)
    assert ("a mark for missing?" in notes["columns", "x", "low"]) is said


def test_the_label_says_why_it_is_one(draft, tmp_path):
    _, _, notes = draft(pd.DataFrame({"x": [1.5, 2.5, 3.5], "y": ["a", "b", "a"]}))
    assert notes["label", "name"] == "AGREE: what is learned: the last column, as none was named"
    assert suggest(tmp_path / "d.csv", label="y")[1]["label", "name"] == "AGREE: what is learned"


@pytest.mark.parametrize(("text", "said"), [("größe,y\n1,a\n2,b\n", "the header is not UTF-8"),
                                            ("x,y\ngrün,a\nrot,b\n", "column 'x': is not UTF-8")])  # fmt: skip
def test_a_file_in_latin_1_is_one_line(tmp_path, text, said):
    (tmp_path / "d.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfideError, match=said) as caught:
        suggest(tmp_path / "d.csv")
    assert str(caught.value).isprintable()


def test_an_unnamed_column_is_one_line(tmp_path):
    pd.DataFrame({"x": [1, 2], "y": ["a", "b"]}).to_csv(tmp_path / "d.csv")  # with pandas' row numbers
    with pytest.raises(ConfideError, match=r"column 1 of the header has no name: .*index=False") as caught:
        suggest(tmp_path / "d.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(17, 90, (0, 100)), (12_345, 1_484_705, (0, 1_500_000)), (0, 3, (0, 3)), (18, 42.2, (15, 45)),
     (126, 564, (100, 600)), (0.0123, 0.0987, (0, 0.1)), (-3.2, 2.9, (-4, 4)), (5, 5, (5, 6))],
)  # fmt: skip
def test_ranges_have_ends_that_people_choose(low, high, expected):
    assert outward(low, high) == expected
