"""Ingestion at its limits: files larger than memory, a missing pyarrow, any bytes at all."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.schema import tables
from confide.schema.reader import ingest
from confide.schema.schema import Column, Schema, Target

SCHEMA = Schema(
    (Column("age", "numeric", 0, 100, missing=50), Column("job", "category", categories=("cook", "clerk")),
     Column("note", "ignore")),
    Target("y", "binary", ("no", "yes")), row_norm=2.0,
)  # fmt: skip

MEMORY = """
    import sys, tracemalloc
    from confide.schema import tables
    from confide.schema.reader import ingest
    from confide.schema.schema import *
    kind, path, work = sys.argv[1:]
    if kind == "plain":
        tables._csv_batches = tables._plain_csv
        tracemalloc.start()
    schema = Schema(tuple(Column(f"c{j}", "category", categories=tuple("abcdefgh")) for j in range(5)),
                    Target("y", "binary", ("no", "yes")), Group("site", ("north", "south")))
    rows = ingest(path, schema, work)
    traced = tracemalloc.get_traced_memory()[1] if kind == "plain" else 0
    peak = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmHWM"))
    print(len(rows.y), peak / 1024, traced / 1e6)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", ["arrow", "plain", "parquet"])
def test_memory_does_not_depend_on_the_size_of_the_file(tmp_path, kind):
    rng = np.random.default_rng(0)
    lines = [",".join((*rng.choice(list("abcdefgh"), 5), "no", "north" if i % 2 else "south")) for i in range(1000)]
    used = {}
    for thousands in (200, 600):  # encoded: 64 and 192 MB; below 200,000 rows the reader's buffers aren't full yet
        path = tmp_path / f"{thousands}.csv"
        with path.open("w") as file:
            file.write("c0,c1,c2,c3,c4,y,site\n")
            for _ in range(thousands):
                file.write("\n".join(lines) + "\n")
        if kind == "parquet":
            pd.read_csv(path).to_parquet(tmp_path / "p", row_group_size=50_000)
            path = tmp_path / "p"
        out = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(MEMORY), kind, path, tmp_path / "work"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        rows, rss, traced = map(float, out.stdout.split())  # fmt: skip
        assert rows == thousands * 1000
        used[thousands] = (rss, traced)
    assert used[600][0] < used[200][0] + 25  # MB
    assert used[600][1] < used[200][1] + 2


def test_csv_needs_no_pyarrow_and_parquet_says_that_it_does(tmp_path, monkeypatch):
    (tmp_path / "d.csv").write_text("age,job,note,y\n1,cook,x,no\n2,cook,x,yes\n")
    pd.read_csv(tmp_path / "d.csv").to_parquet(tmp_path / "d.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert ingest(tmp_path / "d.csv", SCHEMA, tmp_path / "work").y.tolist() == [-1, 1]
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'confide\[parquet\]'"):
        ingest(tmp_path / "d.parquet", SCHEMA, tmp_path / "work")


def test_a_small_file_is_read_without_pyarrow(tmp_path, monkeypatch):
    """Loading it would take longer."""
    text = "age,job,note,y\n" + "1,cook,x,no\n" * 50
    (tmp_path / "d.csv").write_text(text)
    read = []
    monkeypatch.setattr(tables, "_arrow_csv", lambda *given: read.append(given) or tables._plain_csv(*given))
    for small in (len(text), len(text) + 1):
        monkeypatch.setattr(tables, "SMALL", small)
        assert ingest(tmp_path / "d.csv", SCHEMA, tmp_path / str(small)).y.tolist() == [-1] * 50
        assert len(read) == 1


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.booleans(), st.booleans())
def test_any_bytes_are_rows_or_one_line(tmp_path_factory, data, headed, parquet):
    folder = tmp_path_factory.mktemp("bytes")
    path = folder / "d.csv"
    path.write_bytes((b"PAR1" if parquet else b"\n\nage,job,note,y\n1,cook,x,no\n" if headed else b"") + data)
    for training in (False, True):
        try:
            rows = ingest(path, SCHEMA, folder / "work", training=training)
        except ValueError as error:
            assert "\n" not in str(error) and not list((folder / "work").iterdir())
            assert not (training and headed and not parquet)  # once it has begun, nothing is refused
        else:
            assert np.all(np.linalg.norm(rows.X, axis=1) <= SCHEMA.row_norm) and set(rows.y) <= {-1.0, 1.0}
            assert rows.X[0].tolist() == [-0.98, 1, 0]
            for file in (folder / "work").iterdir():
                file.unlink()
