"""Files into rows: every reader agrees, and no message holds a value."""

import csv
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide
from confide.schema import reader as module
from confide.schema import tables
from confide.schema.check import check
from confide.schema.reader import BadRows, ingest
from confide.schema.schema import Column, Group, Schema, Target

SCHEMA = Schema(
    (Column("age", "numeric", 0, 100, missing=50), Column("job", "category", categories=("cook", "clerk")),
     Column("note", "ignore")),
    Target("y", "binary", ("no", "yes")), row_norm=2.0,
)  # fmt: skip
PARTIES = Schema(SCHEMA.columns, SCHEMA.label, Group("site", ("north", "south", "west")), row_norm=2.0)
READERS = ("arrow", "plain")


@pytest.fixture(params=READERS)
def reader(request, monkeypatch):
    """Both readers of CSV."""
    if request.param == "plain":
        monkeypatch.setattr(tables, "_csv_batches", tables._plain_csv)
    return request.param


def write(path, *lines, end="\n", head="age,job,note,y"):
    path.write_bytes(end.join((head, *lines, "")).encode())
    return path


def random_frame(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "age": rng.uniform(-20, 130, n), "job": rng.choice(["cook", "clerk"], n), "note": rng.integers(0, 9, n),
        "y": rng.choice(["no", "yes"], n), "site": rng.choice(["north", "south", "west"], n),
    })  # fmt: skip


def expected(df):
    X = np.column_stack([df["age"].clip(0, 100) / 50 - 1, df["job"] == "cook", df["job"] == "clerk"]).astype(float)
    return X, np.where(df["y"] == "yes", 1.0, -1.0)  # rows no longer than sqrt(2): none is clipped


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_csv_and_parquet_give_what_pandas_gives(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 100)  # many batches
    df = random_frame(1234)
    df.drop(columns="site").to_csv(tmp_path / "d.csv", index=False)
    df.drop(columns="site").to_parquet(tmp_path / "d.parquet", row_group_size=500)
    X, y = expected(df)
    for name in ("d.csv", "d.parquet"):
        rows = ingest(tmp_path / name, SCHEMA, tmp_path / "work")
        assert isinstance(rows.X, np.memmap) and rows.names == ("all",)
        np.testing.assert_allclose(rows.X, X, atol=1e-12)
        np.testing.assert_array_equal(rows.y, y)
    narrow = ingest(tmp_path / "d.csv", SCHEMA, tmp_path / "work", dtype="float32")
    assert narrow.X.dtype == np.float32
    np.testing.assert_allclose(narrow.X, X, atol=1e-6)
    np.testing.assert_allclose(rows.X, X, atol=1e-12)  # an earlier result outlives a second ingestion


def test_parties_become_contiguous_and_train(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 64)
    df = random_frame(1000)
    df.to_csv(tmp_path / "d.csv", index=False)
    shards = ingest(tmp_path / "d.csv", PARTIES, tmp_path / "work").shards()
    X, y = expected(df)
    by_hand = confide.Shards.from_groups(X, y, df["site"])
    assert shards.names == by_hand.names and shards.row_norm == 2.0
    np.testing.assert_array_equal(shards.sizes, by_hand.sizes)
    np.testing.assert_allclose(shards.X, by_hand.X, atol=1e-12)
    np.testing.assert_array_equal(shards.y, by_hand.y)
    loss, penalty = confide.losses.Logistic(), confide.penalties.L2(0.01)
    solved = confide.Problem(shards, loss, penalty).solve()
    np.testing.assert_allclose(solved, confide.Problem(by_hand, loss, penalty).solve(), atol=1e-8)


def test_a_party_needs_no_party_column(tmp_path):
    path = write(tmp_path / "d.csv", "1,cook,x,no")
    assert ingest(path, PARTIES, tmp_path / "work", party="north").shards().names == ("north",)
    with pytest.raises(ValueError, match="no column 'site' in the header, the schema declares it"):
        ingest(path, PARTIES, tmp_path / "work")


def test_types_of_parquet(tmp_path):
    schema = Schema(
        (Column("i", "numeric", 0, 10, missing=5), Column("f", "numeric", 0, 10, missing=5),
         Column("t", "numeric", 0, 10, missing=5), Column("k", "category", categories=("1", "2")),
         Column("b", "category", categories=("true", "false")), Column("d", "category", categories=("u", "v"))),
        Target("y", "binary", ("0", "1")), row_norm=10,
    )  # fmt: skip
    table = pa.table({
        "d": pa.array(["u", "v"]).dictionary_encode(), "i": pa.array([10, None], pa.int16()),
        "f": pa.array([0.0, None], pa.float32()), "t": [" 2.5 ", None], "k": [1.0, 2.0],
        "b": [True, False], "y": [0, 1],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "d.parquet")
    rows = ingest(tmp_path / "d.parquet", schema, tmp_path / "work")
    assert rows.X.tolist() == [[1, -1, -0.5, 1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0, 1, 0, 1]] and [*rows.y] == [-1, 1]


def test_what_is_written_is_the_owners_and_nowhere_else(tmp_path):
    (tmp_path / "source").mkdir()
    path = write(tmp_path / "source" / "d.csv", "1,cook,x,no")
    ingest(path, SCHEMA, tmp_path / "work")
    assert [p.name for p in path.parent.iterdir()] == ["d.csv"]
    written = sorted((tmp_path / "work").iterdir())
    assert [p.name for p in written] == ["d.csv.X.npy", "d.csv.y.npy"]
    assert all(p.stat().st_mode & 0o077 == 0 for p in (tmp_path / "work", *written))


# --- how files are written --------------------------------------------------------------------------------------------


def test_bom_crlf_quotes_and_blank_lines(tmp_path, reader):
    path = tmp_path / "d.csv"
    text = '\ufeff age ,job,"no\r\nte",y\r\n\r\n1, cook ,"two\r\nlines, ""quoted""",no\r\n100,clerk,,"yes"\r\n\r\n'
    path.write_bytes(text.encode())
    schema = Schema((*SCHEMA.columns[:2], Column("no\r\nte", "ignore")), SCHEMA.label, row_norm=2.0)
    rows = ingest(path, schema, tmp_path / "work")
    assert rows.X.tolist() == [[-0.98, 1, 0], [1, 0, 1]] and [*rows.y] == [-1, 1]
    path.write_bytes((text + '"5,0",cook,,no\r\n').encode())
    assert check(path, schema).flaws == [
        ("line 8", "age", "not a number")
    ]  # header 1-2, blank 3, row 4-5, row 6, blank 7


def test_every_flaw_is_found_by_line_and_column(tmp_path, reader):
    path = write(tmp_path / "d.csv", "1,cook,x,no", "1,cook,no", "NaN,cook,x,no", "1,king,x,no", ",cook,x,no",
                 "7e3,cook,x,no", "1,,x,no", "1,cook,x,", "1,cook,x,no,9", '1,cook,"a\nb",maybe',
                 "x,y,z,w")  # fmt: skip
    found = check(path, SCHEMA)
    flaws, clipped = found.flaws, found.clipped
    assert found.rows == 11 and found.unfit == 8 and found.filled == {"age": 1} and not found.fits
    counts = {(column, what.split(",")[0].split(":")[0]): n for (column, what), n in found.counts.items()}
    assert counts == {
        ("", "3 fields"): 1, ("", "5 fields"): 1, ("age", "not a number"): 2, ("job", "missing"): 1,
        ("job", "not one of the declared categories"): 2, ("y", "missing"): 1,
        ("y", "not one of the label's declared values"): 2,
    }  # fmt: skip
    assert found.clip_counts == {("age", "outside the declared range"): 1}
    assert flaws == [
        ("line 3", "", "3 fields, the header has 4"), ("line 4", "age", "not a number"),
        ("line 5", "job", "not one of the declared categories"),
        ("line 8", "job", "missing, and the schema has no rule for that"),
        ("line 9", "y", "missing: a label never may be"), ("line 10", "", "5 fields, the header has 4"),
        ("line 11", "y", "not one of the label's declared values"), ("line 13", "age", "not a number"),
        ("line 13", "job", "not one of the declared categories"),
        ("line 13", "y", "not one of the label's declared values"),
    ]  # fmt: skip
    assert clipped == [("line 7", "age", "outside the declared range")]
    assert check(path, SCHEMA, limit=2).flaws == flaws[:2]


def test_bytes_that_are_no_text_and_fields_that_never_end(tmp_path, reader):
    path = tmp_path / "d.csv"
    path.write_bytes(b"age,job,note,y\n1,cook,\xff\xfe,no\n1,co\xffok,x,no\n1,cook,x,no\n")
    assert [f[:2] for f in check(path, SCHEMA).flaws] == [("line 3", "job")]
    path.write_text('age,job,note,y\n1,cook,x,no\n1,cook,"' + "z" * 200_000 + "\n" + "1,cook,x,yes\n" * 3)
    found = check(path, SCHEMA)
    assert found.flaws == [("line 3", "", "unreadable")] and found.rows == 5


def test_a_malformed_record_far_into_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 256)  # Arrow has handed over many blocks when it gives way
    lines = [f"{i % 100},cook,x,yes" for i in range(300)]
    lines[200], lines[250] = "1,cook", "x,cook,x,yes"
    path = write(tmp_path / "d.csv", *lines)
    found = check(path, SCHEMA)
    assert found.rows == 300 and [f[0] for f in found.flaws] == ["line 202", "line 252"]
    X = ingest(path, SCHEMA, tmp_path / "work", training=True).X
    bad = [200, 250]
    assert not X[bad].any()
    np.testing.assert_allclose(np.delete(X[:, 0], bad), np.delete(np.arange(300) % 100 / 50 - 1, bad), atol=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["a", '"', '""', ",", "\n", "\r\n", " ", "1,2\n", '"x\ny",3\n']), max_size=12))
def test_arrow_reads_what_the_standard_library_reads(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    path.write_bytes(("p,q\n" + "".join(pieces)).encode())

    def told(read):
        columns = {"p": [], "q": []}
        broken = {}
        for batch in read(path, ["p", "q"], 3):
            broken |= {len(columns["p"]) + i: what for i, what in batch.broken.items()}
            for name, fields in batch.columns.items():
                columns[name] += fields if isinstance(fields, list) else fields.to_pylist()
        return columns, broken

    columns, broken = told(tables._csv_batches)
    assert (columns, broken) == told(tables._plain_csv)
    with path.open(newline="") as file:
        records = [r for r in csv.reader(file) if r][1:]
    assert sorted(broken) == [i for i, r in enumerate(records) if len(r) != 2]


# --- refusals ---------------------------------------------------------------------------------------------------------

SECRETS = ("48213", "blacksmith", "confessed", "perhaps", "Zanzibar")


def test_no_message_holds_a_value(tmp_path, reader, caplog, capfd):
    head = "age,job,note,y,site"
    good = "1,cook,x,no,north"
    bad = ("48213x,cook,confessed,no,north", "1,blacksmith,confessed,no,north", "1,cook,confessed,perhaps,north",
           "1,cook,confessed,no,Zanzibar", "48213,blacksmith,perhaps", '"48213,blacksmith,confessed')  # fmt: skip
    for lines in (*([good, b] for b in bad), bad):
        path = write(tmp_path / "d.csv", *lines, head=head)
        with pytest.raises(BadRows) as caught:
            ingest(path, PARTIES, tmp_path / "work")
        told = str(caught.value) + repr(caught.value.flaws) + repr(check(path, PARTIES))
        assert not any(s in told for s in SECRETS) and "\n" not in str(caught.value)
        assert not any(s in "".join(traceback.format_exception(caught.value)) for s in SECRETS)
    assert str(caught.value).startswith(f"{path}, line 2, column 'age': not a number (and more")
    path.write_text("48213,blacksmith,confessed,perhaps,Zanzibar\n" * 2)  # no header: its first row is data
    with pytest.raises(ValueError) as caught:
        ingest(path, PARTIES, tmp_path / "work")
    assert str(caught.value).startswith(f"{path}: column 1 of the header is not in the schema: declare it there")
    assert "is the first line a header?" in str(caught.value) and "(and 8 more" in str(caught.value)
    told = str(caught.value) + repr(check(path, PARTIES).header)
    assert not any(s in told for s in SECRETS)
    path.write_text("48213,48213\n")
    with pytest.raises(ValueError) as caught:
        ingest(path, PARTIES, tmp_path / "work")
    assert str(caught.value) == f"{path}: columns 1 and 2 of the header have the same name"
    assert not list((tmp_path / "work").iterdir())
    said = "".join(capfd.readouterr()) + caplog.text
    assert said == ""


def test_once_training_has_begun_an_invalid_row_is_the_fixed_row(tmp_path, reader, capfd):
    path = write(tmp_path / "d.csv", "1,cook,x,yes", "1,cook,yes", "x,cook,x,yes", "1,king,x,yes", "1,cook,x,",
                 '1,cook,"x,yes')  # fmt: skip
    rows = ingest(path, SCHEMA, tmp_path / "work", training=True)
    assert rows.X.tolist() == [[-0.98, 1, 0], *([[0, 0, 0]] * 5)] and [*rows.y] == [1, -1, -1, -1, -1, -1]
    assert capfd.readouterr() == ("", "")
    # a bad row of whatever kind gives the same bytes
    seen = set()
    for bad in ("1", "1,2,3,4,5", "x,cook,x,yes", "1,king,x,yes"):
        one = write(tmp_path / "e.csv", "1,cook,x,yes", bad)
        seen.add(ingest(one, SCHEMA, tmp_path / "work", training=True).X.tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file, without even a header"), ("age,job,note,y\n", "no rows below the header"),
        ("age,job,y\n1,cook,no\n", None), ("age,note,y\n1,cook,no\n", "no column 'job' in the header"),
        ("age,job,age,y\n1,cook,1,no\n", "columns 1 and 3 of the header have the same name"),
        ("age;job;note;y\n1;cook;x;no\n", "with semicolons or tabs in it: separate fields by commas"),
        ("age\tjob\tnote\ty\n", "separate fields by commas"), ("age,,note,y\n", "column 2 of the header has no name"),
        ("PAR1 and no more", "not a Parquet file, or damaged"),
    ],
)  # fmt: skip
def test_files_that_are_not_what_they_should_be(tmp_path, text, said):
    path = tmp_path / "d.csv"
    path.write_text(text)
    if said is None:  # an ignored column need not be there
        assert len(ingest(path, SCHEMA, tmp_path / "work").y) == 1
        return
    with pytest.raises(ValueError, match=said) as caught:
        ingest(path, SCHEMA, tmp_path / "work")
    assert str(path) in str(caught.value) and not list((tmp_path / "work").iterdir())
    if "no column" in said:
        found = check(path, SCHEMA)
        assert found.header == ["no column 'job' in the header, the schema declares it"] and not found.fits
    else:
        with pytest.raises(ValueError, match=said):
            check(path, SCHEMA)
    with pytest.raises(OSError):
        check(tmp_path, SCHEMA)


def test_a_header_is_named_by_column_once_it_is_one(tmp_path):
    path = write(tmp_path / "d.csv", "1,cook,x,no,7", head="Age,job,note,y,ward")
    assert check(path, SCHEMA).header == [
        "column 1 of the header, 'Age', is not in the schema: it has 'age'",
        "column 5 of the header, 'ward', is not in the schema: declare it there, as kind 'ignore' if it is not to be "
        "read, or leave it out of the file", "no column 'age' in the header, the schema declares it",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"column 1 of the header, 'Age', .* \(and 2 more: see `confide schema check`"):
        ingest(path, SCHEMA, tmp_path / "work")


def test_a_failure_leaves_the_earlier_rows(tmp_path):
    path = write(tmp_path / "d.csv", "1,cook,x,no")
    ingest(path, SCHEMA, tmp_path / "work")
    before = {p.name: p.read_bytes() for p in (tmp_path / "work").iterdir()}
    write(path, "1,cook,x,no", "bad,cook,x,no")
    with pytest.raises(BadRows):
        ingest(path, SCHEMA, tmp_path / "work")
    assert {p.name: p.read_bytes() for p in (tmp_path / "work").iterdir()} == before
