"""`confide schema` and `confide randomize` as a user meets them."""

import json
import math
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide.privacy.response import ResponseBook
from confide.problem.schema import Schema

PROGRAM = [sys.executable, "-c", "from confide.cli import main; main()"]
SCHEMA = """
[label]
name = "flu"
kind = "classes"
values = ["none", "mild", "severe"]
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.job]
kind = "category"
categories = ["cook", "clerk"]
missing = "missing"
[columns.name]
kind = "ignore"
"""


def confide(*args: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, 80 columns wide."""
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run([*PROGRAM, *map(str, args)], capture_output=True, text=True, env=environment, check=False,
                          input=stdin)  # fmt: skip


def run(*args: object, stdin: str | None = None) -> tuple[int, str, str]:
    """The same in this process, for speed."""
    out = CliRunner().invoke(app, [str(a) for a in args], input=stdin)
    if out.exception and not isinstance(out.exception, SystemExit):
        raise out.exception
    return out.exit_code, out.stdout, out.stderr


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["age,income,job,note,visits,site,readmitted"]
    for i in range(300):
        age, income = rng.integers(17, 91), rng.uniform(12345, 1484705)
        job, site = rng.choice(["cook", "clerk", "?"]), rng.choice(["north", "south"])
        lines.append(f"{age},{income:.2f},{job},note {i},{rng.integers(0, 4)},{site},{rng.choice(['no', 'yes'])}")
    lines.append("17,12345,cook,,1,north,no")
    lines.append("90,1484705,cook,,1,north,no")
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


# --- schema suggest ---------------------------------------------------------------------------------------------------


def test_a_draft_fits_its_file_and_marks_what_must_be_agreed(data: Path, tmp_path: Path) -> None:
    code, text, _ = run("schema", "suggest", data, "--group", "site")
    assert code == 0 and max(map(len, text.splitlines())) <= 80
    assert "PRIVATE until agreed" in text and "rounded outward" in text
    fields = [x for x in text.splitlines() if " = " in x and not x.startswith("#")]
    assert all("# AGREE" in x for x in fields)
    schema = Schema.from_toml(text)
    kinds = {c.name: c.kind for c in schema.columns}
    assert kinds == {"age": "numeric", "income": "numeric", "job": "category", "note": "ignore", "visits": "numeric"}
    ranges = {c.name: (c.low, c.high) for c in schema.columns if c.kind == "numeric"}
    assert ranges == {"age": (10, 90), "income": (0, 1_500_000), "visits": (0, 3)}
    assert "12345" not in text and "1484705" not in text
    assert schema.columns[2].categories == ("clerk", "cook") and schema.columns[2].missing == "missing"
    assert schema.label.values == ("no", "yes") and schema.group and schema.group.values == ("north", "south")
    assert "or category, if these are codes" in text
    path = tmp_path / "schema.toml"
    out = confide("schema", "suggest", data, "--group", "site", "--output", path)
    assert out.returncode == 0 and "rivate until agreed" in out.stdout and path.read_text() == text
    assert path.stat().st_mode & 0o077 == 0
    assert run("schema", "check", data, "--schema", path)[0] == 0
    again = confide("schema", "suggest", data, "--output", path)
    assert again.returncode == 2 and "exists already" in again.stderr and path.read_text() == text


def test_a_draft_as_json_names_the_fields_to_agree_on(data: Path) -> None:
    document = json.loads(run("schema", "suggest", data, "--label", "visits", "--json")[1])
    schema = Schema.from_dict(document["schema"])
    assert (schema.label.kind, schema.label.values) == ("classes", ("0", "1", "2", "3"))
    assert {"row_norm", "columns.age.low", "label.values"} <= set(document["agree"]) and document["private"] is True
    real = Schema.from_dict(json.loads(run("schema", "suggest", data, "--label", "age", "--json")[1])["schema"])
    assert (real.label.kind, real.label.low, real.label.high) == ("real", 10, 90)


# --- schema check -----------------------------------------------------------------------------------------------------


def test_problems_are_listed_by_place_without_values(data: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    run("schema", "suggest", data, "--group", "site", "--output", schema)
    lines = data.read_text().splitlines()
    lines[4], lines[6] = "smith@example.com,1,cook", lines[6].replace(lines[6].split(",")[0], "ninety", 1)
    lines[8] = lines[8].replace(lines[8].split(",")[0], "104", 1)
    data.write_text("\n".join(lines))
    out = confide("schema", "check", data, "--schema", schema)
    assert out.returncode == 1 and out.stderr == ""
    body = out.stdout.splitlines()
    assert "  line 5  3 fields, the header has 7" in body and "  line 7  age: not a number" in body
    assert "  line 9  age: outside the declared range" in body and max(map(len, body[1:])) <= 80
    assert not any(v in out.stdout for v in ("smith", "ninety", "104"))
    code, text, _ = run("schema", "check", data, "--schema", schema, "--json", "--limit", 1)
    document = json.loads(text)
    assert code == 1 and document["fits"] is False and document["rows"] == 302
    assert document["problems"] == [{"place": "line 5", "column": None, "what": "3 fields, the header has 7"}]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("schema", "check", "nosuch.csv", "--schema", "{schema}"), "nosuch.csv: No such file"),
        (("schema", "check", "{data}", "--schema", "nosuch.toml"), "nosuch.toml: No such file"),
        (("schema", "check", "{data}", "--schema", "{data}"), "not TOML"),
        (("schema", "check", "{data}", "--schema", "{schema}"), "column 2 of the header is not in the schema"),
        (("schema", "check", "{data}"), "--schema"),
        (("schema", "suggest", "{data}", "--label", "wage"), "no column 'wage'"),
        (("schema", "suggest", "{data}", "--label", "note"), "column 'note' can't be a label"),
        (("schema", "suggest", "{data}", "--group", "note"), "column 'note' can't name the parties"),
        (("schema", "suggest", "{data}", "--group", "readmitted"), "both label and group"),
        (("schema", "suggest", "{data}", "--output", "/nosuch/schema.toml"), "/nosuch/schema.toml"),
        (("schema", "suggest", "/tmp"), "/tmp: Is a directory"),
        (("schema", "draw"), "draw"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(data: Path, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA)
    code, stdout, stderr = run(*(a.format(data=data, schema=tmp_path / "s.toml") for a in args))
    assert code == 2 and stdout == "" and stderr.count("\n") == 1 and stderr.startswith("confide: ") and said in stderr


@pytest.mark.parametrize("name", ["schema suggest", "schema check", "randomize"])
def test_help_has_an_example_and_json(name: str) -> None:
    code, text, _ = run(*name.split(), "--help")
    assert code == 0 and f"Example: confide {name}" in text and "--json" in text
    assert max(map(len, text.splitlines())) <= 80


# --- randomize --------------------------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "book.db"


def asked(book: Path, *more: object, task: str = "flu", person: str = "Ada-1815", epsilon: float = 1.0) -> list[object]:
    return ["randomize", "--task", task, "--person", person, "--epsilon", epsilon, "--book", book, *more]


def test_one_answer_for_each_person_and_task(book: Path) -> None:
    out = confide(*asked(book, "--label=-1"))
    assert out.returncode == 0 and out.stdout.count("\n") == 1 and out.stderr == ""
    record = json.loads(out.stdout)
    assert list(record) == ["id", "task", "epsilon", "features", "label"]
    assert record["label"] in (-1, 1) and (record["task"], record["epsilon"]) == ("flu", 1.0)
    assert "Ada" not in out.stdout and b"Ada" not in book.read_bytes() and book.stat().st_mode & 0o077 == 0
    for label in ("--label=-1", "--label=1"):  # whatever is asked later, nothing is drawn again
        assert run(*asked(book, label, "--json"))[1] == out.stdout
    others = [run(*asked(book, "--label=-1", person=p, task=t))[1] for p, t in (("Bob", "flu"), ("Ada-1815", "cough"))]
    assert len({record["id"], *(json.loads(o)["id"] for o in others)}) == 3
    code, stdout, stderr = run(*asked(book, "--label=1", epsilon=2.0))
    assert code == 2 and stdout == "" and "fixed at 1" in stderr and stderr.count("\n") == 1


def test_a_record_keeps_what_the_schema_reads_and_hides_the_label(book: Path, tmp_path: Path) -> None:
    schema, mine = tmp_path / "s.toml", tmp_path / "me.json"
    schema.write_text(SCHEMA)
    mine.write_text(json.dumps({"age": 36, "job": None, "name": "Ada", "phone": "555-0199", "flu": "severe"}))
    code, stdout, _ = run(*asked(book, "--schema", schema, "--record", mine, epsilon=1e-6))
    record = json.loads(stdout)
    assert code == 0 and record["features"] == {"age": 36, "job": None}
    assert record["label"] in ("none", "mild", "severe")
    assert "Ada" not in stdout and "555-0199" not in stdout  # three digits may stand in its random id
    piped = run(*asked(book, "--schema", schema, "--record", "-"), stdin=mine.read_text())
    assert piped[0] == 2 and "fixed at 1e-06" in piped[2]  # another epsilon
    piped = run(*asked(book, "--schema", schema, "--label", "-", person="Bob"), stdin="mild\n")
    assert piped[0] == 0 and json.loads(piped[1])["features"] == {}


def test_labels_are_kept_with_the_odds_of_randomised_response(book: Path) -> None:
    from confide.cli.randomize import make

    n, epsilon = 200, 1.2
    labels = [make("flu", f"p{i}", epsilon, book, "2", 4, None, None)["label"] for i in range(n)]
    keep = math.exp(epsilon) / (math.exp(epsilon) + 3)
    assert abs(np.mean(np.array(labels) == 2) - keep) < 4.5 * math.sqrt(keep * (1 - keep) / n)
    assert set(labels) == {0, 1, 2, 3}


def test_epsilon_is_on_disk_before_the_label_is_read(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from confide.cli import randomize

    def look(*_: object) -> str:
        with sqlite3.connect(book) as db:  # another connection sees only what is committed
            assert db.execute("SELECT epsilon FROM choice").fetchall() == [(1.0,)]
        db.close()
        return "1"

    monkeypatch.setattr(randomize, "read_label", look)
    assert run(*asked(book))[0] == 0
    assert ResponseBook(book).choose("Ada-1815", "flu", 1.0) == 1.0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--label", "48213"], "label: must be one of -1, 1"), ([], "no label: give --label"),
        (["--label", "1", "--classes", 1], "--classes"), (["--record", "me.json"], "--record needs --schema"),
        (["--label", "48213", "--schema", "{s}"], "label: must be one of none, mild, severe"),
        (["--schema", "{s}", "--record", "{r}"], "column 'job': not one of the declared categories"),
        (["--label", "mild", "--schema", "{s}", "--record", "{s}"], "not JSON"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_is_one_line_without_values(book: Path, tmp_path: Path, more: list[str],
                                                               said: str) -> None:  # fmt: skip
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "r.json").write_text('{"age": 1, "job": "48213", "flu": "none"}')
    filled = [str(m).format(s=tmp_path / "s.toml", r=tmp_path / "r.json") for m in more]
    code, stdout, stderr = run(*asked(book, *filled))
    assert code == 2 and stdout == "" and stderr.count("\n") == 1 and said in stderr and "48213" not in stderr


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf")])
def test_an_epsilon_that_is_none(book: Path, epsilon: float) -> None:
    code, stdout, stderr = run(*asked(book, "--label=1", epsilon=epsilon))
    assert code == 2 and stdout == "" and "must be finite and above 0" in stderr
