"""Drafts of several parties become one schema that fits everybody's file, and every difference is told."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from samples import patients, schemas

from confide.errors import ConfideError
from confide.schema.check import check
from confide.schema.merge import merge
from confide.schema.schema import Column, Group, Schema, Target
from confide.schema.suggest import suggest

LABEL = Target("ill", "binary", ("no", "yes"))


def schema(*columns, label=LABEL, **more):
    return Schema((Column("always", "numeric", 0, 1), *columns), label, **more)


def settled(*columns, **more):
    """The merged column of as many drafts, and what was told: field -> what each gives."""
    drafts = {f"p{k}": schema(*([c] if c else []), **more) for k, c in enumerate(columns)}
    merged, told = merge(drafts)
    return merged.columns[1], {d.at[-1]: list(d.given.values()) for d in told}


def test_hospitals_files_fit_what_their_drafts_became(tmp_path):
    files = {}
    for k, (name, rows) in enumerate((("mercy", slice(150)), ("north", slice(150, 300)), ("lake", slice(300, None)))):
        df = patients(k, rows)
        if name == "north":
            df["ward"] = df["ward"].replace("east", "annexe")
            df = df.drop(columns="s5")
        files[name] = tmp_path / f"{name}.csv"
        df.to_csv(files[name], index=False)
    drafts = {name: suggest(path)[0] for name, path in files.items()}
    merged, differences = merge(drafts)
    for path in files.values():
        found = check(path, merged)
        assert found.fits and not found.clipped
    columns = {c.name: c for c in merged.columns}
    assert columns["s5"].kind == "ignore" and columns["s1"].missing_marks == ("-9",)
    assert set(columns["ward"].categories) == {"east", "west", "annexe"}
    told = {d.at: d for d in differences}
    assert told["columns", "ward", "categories"].given["north"] == ("annexe", "west")
    assert told["columns", "s5", "kind"].given == {"mercy": "numeric", "north": "(no such column)", "lake": "numeric"}
    for draft in drafts.values():  # every range lies within the merged one
        for c in draft.columns:
            if c.kind == "numeric" and c.name != "s5":
                assert columns[c.name].low <= c.low and c.high <= columns[c.name].high


@settings(max_examples=100, deadline=None)
@given(schemas())
def test_what_agrees_stays_as_it_is(one):
    assert merge({"a": one, "b": one, "c": one}) == (one, [])


def test_ranges_marks_and_rules():
    low, high = Column("x", "numeric", 0, 80, missing=40), Column("x", "numeric", 20, 100, missing_marks=("-9",))
    column, told = settled(low, high)
    assert column == Column("x", "numeric", 0, 100, missing=40, missing_marks=("-9",))
    assert told == {"low": [0, 20], "high": [80, 100], "missing": [40, "(no rule)"], "missing_marks": [(), ("-9",)]}
    assert settled(low, replace(high, missing=60))[0].missing == 50  # the middle of what all have
    assert settled(low, replace(high, missing="missing"))[0].missing == "missing"
    column, told = settled(low, replace(low, outside="invalid"))
    assert column.outside == "clip" and told == {"outside": ["clip", "invalid"]}


def test_categories_and_a_mark_that_is_one_elsewhere():
    left = Column("x", "category", categories=("a", "1"), missing="missing", missing_marks=("-9", "."))
    right = Column("x", "category", categories=("1.0", "b", "-9"))
    column, told = settled(left, right)
    assert column == Column("x", "category", categories=("a", "1", "b", "-9"), missing="missing", missing_marks=(".",))
    assert set(told) == {"categories", "missing", "missing_marks"}
    left, right = replace(right, missing="b"), replace(right, categories=("b", "1"), missing="b")
    assert settled(left, right)[0].missing == "b"


@pytest.mark.parametrize(
    ("others", "kind"),
    [
        (Column("x", "category", categories=("7", "12")), "numeric"),
        (Column("x", "category", categories=("7", "many")), "ignore"),
        (Column("x", "category", categories=("007", "12")), "ignore"),
        (Column("x", "ignore"), "ignore"), (None, "ignore"),
    ],
)  # fmt: skip
def test_a_column_that_is_read_differently(others, kind):
    column, told = settled(Column("x", "numeric", 0, 10), others)
    assert column.kind == kind and told["kind"] == ["numeric", others.kind if others else "(no such column)"]
    if kind == "numeric":
        assert (column.low, column.high) == (0, 12)


def test_a_column_of_another_spelling_is_pointed_out():
    one, other = schema(Column("bmi", "numeric", 10, 60)), schema(Column("BMI", "numeric", 10, 50))
    merged, told = merge({"mercy": one, "north": other})
    assert {c.name: c.kind for c in merged.columns} == {"always": "numeric", "bmi": "ignore", "BMI": "ignore"}
    given = {d.at[1]: d.given for d in told}
    assert given["bmi"] == {"mercy": "numeric", "north": "(no such column; 'BMI' is there)"}
    assert given["BMI"] == {"mercy": "(no such column; 'bmi' is there)", "north": "numeric"}


def test_an_ignored_column_need_not_be_there():
    assert settled(Column("x", "ignore"), None) == (Column("x", "ignore"), {})


def test_labels():
    three = Target("ill", "classes", ("no", "maybe", "yes"))
    merged, told = merge({"a": schema(), "b": schema(label=three)})
    assert merged.label == Target("ill", "classes", ("no", "yes", "maybe")) and merged.invalid_label == "no"
    assert [d.at for d in told] == [("label", "values"), ("label", "kind")]
    codes, amount = Target("ill", "classes", ("0", "1", "7")), Target("ill", "real", low=2, high=4)
    merged, _ = merge({"a": schema(label=codes), "b": schema(label=amount)})
    assert merged.label == Target("ill", "real", low=0, high=7) and merged.invalid_label == 3.5
    swapped = Target("ill", "binary", ("yes", "no"))  # which is -1 and which is 1 is to be agreed, too
    merged, told = merge({"a": schema(), "b": schema(label=swapped)})
    assert merged.label == LABEL and told[0].given == {"a": ("no", "yes"), "b": ("yes", "no")}


def test_parties_and_marks_of_all_columns():
    a = schema(group=Group("site", ("north",)), missing_marks=("?",))
    b = schema(group=Group("site", ("south", "north")), row_norm=2.0, missing_marks=("NA", "?"))
    merged, told = merge({"a": a, "b": b, "c": schema()})
    assert merged.group == Group("site", ("north", "south")) and merged.missing_marks == ("?", "NA")
    assert merged.row_norm == 1.0 and {d.at for d in told} == {
        ("group", "name"), ("group", "values"), ("row_norm",), ("missing_marks",)}  # fmt: skip


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (schema(label=Target("sick", "binary", ("no", "yes"))), "label: a has 'ill'; b has 'sick': all drafts must"),
        (schema(label=Target("ill", "real", low=0, high=1)), "label 'ill': a binary; b real: can't be both"),
        (schema(group=Group("ward", ("x",))), "group: a has 'site'; b has 'ward': all drafts must name the same"),
    ],
)  # fmt: skip
def test_drafts_that_can_not_be_merged_are_one_line(other, said):
    with pytest.raises(ConfideError, match="at least 2"):
        merge({"a": other})
    with pytest.raises(ConfideError) as caught:
        merge({"a": schema(group=Group("site", ("x",))), "b": other})
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)
