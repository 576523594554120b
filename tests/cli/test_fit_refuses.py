"""Bad input to `confide fit` and `confide predict`: one line with file, row and column, and nothing is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fit_cases import HEAD, SCHEMA, fit, run, table, write


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    write(tmp_path / "data.csv", table())
    return tmp_path


def at(row: int, column: int, value: str) -> Callable[[list[list[str]]], Any]:
    def edit(rows: list[list[str]]) -> None:
        rows[row][column] = value

    return edit


def in_lake(column: int, value: str) -> Callable[[list[list[str]]], Any]:
    def edit(rows: list[list[str]]) -> None:
        for row in rows:
            if row[3] == "lake":
                row[column] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (at(3, 2, "SECRET"), ", line 5, column 'job': not one of the declared categories"),
        (at(9, 1, "99"), ", line 11, column 'hours': outside the declared range"),
        (at(2999, 4, "SECRET"), ", line 3001, column 'income': not one of the label's declared values"),
        (at(7, 0, "SECRET"), ", line 9, column 'age': not a number"),
        (at(7, 0, ""), ", line 9, column 'age': missing"),
        (at(7, 4, ""), ", line 9, column 'income': missing"),
        (at(7, 3, "SECRET"), ", line 9, column 'hospital': not one of the declared parties"),
        (lambda rows: rows[5].append("SECRET"), ", line 7: 6 fields, the header has 5"),
        (in_lake(3, "north"), "column 'hospital': no row of 'lake'"),
    ],
)  # fmt: skip
def test_a_bad_row_is_one_line_and_nothing_is_written(home: Path, edit: Any, named: str) -> None:
    rows = table()
    edit(rows)
    path = write(home / "data.csv", rows)
    before = sorted(p.name for p in home.iterdir())
    code, out, err = fit(home, "--run", home / "run.npz")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert err.startswith(f"confide: {path}") and named in err and "SECRET" not in err
    assert sorted(p.name for p in home.iterdir()) == before


def test_a_party_with_one_class_takes_part_and_can_not_be_compared_with_itself_alone(home: Path) -> None:
    """Three patients may well be all of one kind: nodes take them, and so does `fit`; `plan` says what it lacks."""
    lake = [r for r in table() if r[3] == "lake" and r[4] == "high"][:3]
    rows = [*(r for r in table() if r[3] != "lake"), *lake]
    write(home / "data.csv", rows)
    code, out, _ = fit(home, "--seed", 1)
    assert code == 0 and "lake 3" in out
    code, _, err = run("plan", "--data", home / "data.csv", "--schema", home / "schema.toml")
    assert code == 2 and f", line {len(rows) - 1} on, column 'income': all rows of 'lake' have one class" in err


def test_one_party_is_refused(home: Path) -> None:
    (home / "schema.toml").write_text(SCHEMA.replace('["mercy", "north", "lake"]', '["mercy"]'))
    write(home / "data.csv", [[*row[:3], "mercy", row[4]] for row in table(50)])
    code, _, err = fit(home)
    assert code == 2 and "column 'hospital': 1 party, 'mercy'" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "an empty file"), (HEAD + "\n", "no rows below the header"),
        (HEAD + ",id\n1,2,cook,lake,low,7\n", "column 6 of the header, 'id', is not in the schema"),
        ("age,job,hospital,income\n1,cook,lake,low\n", "no column 'hours'"),
        ("age,age,job,hospital,income\n", "columns 1 and 2 of the header have the same name"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(home: Path, text: str, named: str) -> None:
    (home / "bad.csv").write_text(text)
    code, out, err = fit(home, data="bad.csv")
    assert code == 2 and out == "" and err.count("\n") == 1 and str(home / "bad.csv") in err and named in err
    assert not (home / "model.json").exists()


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--label", "wealth"], "--label 'wealth': no such column"), (["--group", "age"], "declare the parties"),
        (["--label", "job", "--group", "job"], "can't be both"), (["--model", "ridge"], "'income' is not a number"),
        (["--label", "age", "--model", "logistic"], "'age' is a number"), (["--model", "tree"], "--model tree"),
        (["--graph", "cube"], "--graph cube"), (["--epsilon", "-1"], "epsilon"), (["--epsilon", "nan"], "epsilon"),
        (["--delta", "2"], "delta"), (["--quantile", "0.5"], "--model quantile"), (["--parties", "3"], "--parties"),
        (["--algorithm", "Nosuch"], "--algorithm 'Nosuch'"), (["--algorithm", "ADMM"], "--allow-unproven"),
        (["--algorithm", "DPSGD", "--set", "depth=1"], "--set depth"), (["--set", "clip=1"], "--set"),
        (["--budget", "3"], "--ledger"), (["--population", "x"], "--ledger"),
        (["--schema", "nosuch.toml"], "nosuch.toml: No such file"), (["--out", "nosuch/m.json"], "not a folder"),
    ],
)  # fmt: skip
def test_a_bad_option_is_one_line(home: Path, extra: list[str], named: str) -> None:
    code, out, err = fit(home, *extra)
    assert code == 2 and out == "" and err.count("\n") == 1 and named in err
    assert sorted(p.name for p in home.iterdir()) == ["data.csv", "schema.toml"]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--evaluate", "1.5"], "--evaluate 1.5: must be the share of rows held out, from 0 to below 1"),
        (["--evaluate", "-0.1"], "--evaluate -0.1: must be"), (["--evaluate", "nan"], "--evaluate nan: must be"),
        (["--epsilon", "0"], "epsilon=0.0: must be finite and above 0"), (["--delta", "1"], "delta=1.0: must be"),
        (["--quantile", "1", "--model", "quantile"], "--quantile 1: must lie strictly between 0 and 1"),
        (["--width", "0", "--model", "huber"], "--width 0: must be a finite number above 0"),
        (["--penalty", "-1"], "--penalty -1: must be a finite number of at least 0"),
    ],
)  # fmt: skip
def test_a_number_that_no_rows_make_possible_is_refused_before_a_file_is_read(
    tmp_path: Path, extra: list[str], said: str
) -> None:
    code, out, err = fit(tmp_path, *extra)  # neither file exists
    assert code == 2 and out == "" and err.count("\n") == 1 and err.startswith(f"confide: {said}")


def test_who_would_have_no_rows_left_is_named(home: Path) -> None:
    mine = sum(row[3] == "mercy" for row in table())
    code, out, err = fit(home, "--evaluate", "0.9999")
    said = f"--evaluate 0.9999, of {mine:,} rows of party mercy: must leave at least 1 to learn from"
    assert code == 2 and out == "" and err == f"confide: {said}\n"


def test_no_file_is_overwritten(home: Path) -> None:
    (home / "model.json").write_text("precious")
    code, _, err = fit(home)
    assert code == 2 and "exists already" in err and (home / "model.json").read_text() == "precious"


def test_the_schema_decides_what_is_clipped_as_it_does_for_a_node(home: Path) -> None:
    """A column with outside = "clip", the default: 130 is 100, here and in what a node reads."""
    from confide.schema.reader import ingest
    from confide.schema.schema import Schema

    rows, learned, read = table(), [], []
    for age, option in (("130", ()), ("100", ()), ("130", ("--clip",))):  # an option of old that changes nothing
        rows[0][0] = age
        write(home / "data.csv", rows)
        assert fit(home, "--seed", 0, *option)[0] == 0
        learned.append(json.loads((home / "model.json").read_text())["coefficients"])
        (home / "model.json").unlink()
        read.append(ingest(home / "data.csv", Schema.load(home / "schema.toml"), home / "work").X.tolist())
    assert learned[0] == learned[1] == learned[2] and read[0] == read[1]


def test_predict_refuses_by_line_and_column(home: Path) -> None:
    assert fit(home, "--seed", 0)[0] == 0
    for text, named in (
        ("age,hours,job\n1,2,SECRET\n", "line 2, column 'job'"),
        ("age,hours,job\n1,99,cook\n", "line 2, column 'hours'"),
        ("age,hours,job,x\n1,2,cook,3\n", "column 4 of the header, 'x',"),
        ("age,hours\n1,2\n", "no column 'job'"), ("", "empty"),
    ):  # fmt: skip
        (home / "new.csv").write_text(text)
        code, out, err = run("predict", home / "model.json", home / "new.csv", "-o", home / "out.csv")
        assert code == 2 and out == "" and err.count("\n") == 1 and named in err and "SECRET" not in err
        assert str(home / "new.csv") in err and not (home / "out.csv").exists()
