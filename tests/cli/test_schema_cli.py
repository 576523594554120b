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
from confide.schema.schema import Schema

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
    lines = text.splitlines()
    fields = [i for i, x in enumerate(lines) if " = " in x and not x.startswith("#")]
    assert fields and all("# AGREE: " in lines[i] or lines[i - 1].startswith("# AGREE: ") for i in fields)
    schema = Schema.from_toml(text)
    kinds = {c.name: c.kind for c in schema.columns}
    assert kinds == {"age": "numeric", "income": "numeric", "job": "category", "note": "ignore", "visits": "numeric"}
    ranges = {c.name: (c.low, c.high) for c in schema.columns if c.kind == "numeric"}
    assert ranges == {"age": (0, 100), "income": (0, 1_500_000), "visits": (0, 3)}
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
    assert (real.label.kind, real.label.low, real.label.high) == ("real", 0, 100)


def test_who_makes_a_draft_public_is_told(data: Path, tmp_path: Path) -> None:
    draft, public, model = tmp_path / "draft.toml", tmp_path / "federation.toml", tmp_path / "model.json"
    run("schema", "suggest", data, "--group", "site", "--output", draft)
    agreed = tmp_path / "agreed.toml"
    agreed.write_text(Schema.load(draft).to_toml())
    for k in (1, 2):
        assert (
            run("node", "init", "--name", f"p{k}", "--listen", f"127.0.0.1:{k}", "--home", tmp_path / f"p{k}")[0] == 0
        )
    cards = [x for k in (1, 2) for x in ("--party", f"{tmp_path / f'p{k}' / 'card.toml'}=100")]
    for schema, told in ((draft, True), (agreed, False)):
        found = run("federation", "new", "--schema", schema, *cards, "--epsilon", 1, "--output", public,
                    "--algorithm", "CDPADMM", "--set", "rounds=2", "--set", "clip=1")  # fmt: skip
        assert found[0] == 0 and ("draft.toml is still a private draft" in found[2]) is told
        assert ("is in federation.toml" in found[2]) is told
        document = json.loads(run("fit", data, "--schema", schema, "--epsilon", 1, "--seed", 0, "--rounds", 2,
                                  "--out", model, "--json")[1])  # fmt: skip
        assert any("is still a private draft" in note for note in document["notes"]) is told
        public.unlink()
        model.unlink()


# --- schema merge -----------------------------------------------------------------------------------------------------


def test_drafts_are_merged_with_their_differences_and_a_warning(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    lines = data.read_text().replace(",cook,", ",baker,").splitlines()
    other.write_text("\n".join([lines[0], *(f"1{line}" for line in lines[1:])]) + "\n")  # 100 years older
    a, b, both = tmp_path / "a.toml", tmp_path / "b.toml", tmp_path / "both.toml"
    run("schema", "suggest", data, "--output", a)
    run("schema", "suggest", other, "--output", b)
    out = confide("schema", "merge", a, b, "--output", both)
    assert out.returncode == 0 and both.stat().st_mode & 0o077 == 0
    assert max(map(len, [*out.stdout.splitlines()[1:], *out.stderr.splitlines(), *both.read_text().splitlines()])) <= 80
    assert "Still drafts: a.toml, b.toml." in out.stderr and "read off rows" in " ".join(out.stderr.split())
    said = " ".join(out.stdout.split())
    assert "columns.job.categories = clerk, cook, baker a.toml clerk, cook b.toml baker, clerk" in said
    assert "columns.age.low = 0 a.toml 0 b.toml 100" in said and "columns.age.high = 200 a.toml 100 b.toml 200" in said
    text = both.read_text()
    assert "PRIVATE until agreed" in text and "high = 200  # DIFFERS: a.toml: 100; b.toml: 200" in text
    for file in (data, other):
        assert run("schema", "check", file, "--schema", both)[0] == 0
    document = json.loads(run("schema", "merge", a, b, "--json")[1])
    assert Schema.from_dict(document["schema"]) == Schema.load(both) and document["private"] == ["a.toml", "b.toml"]
    told = {d["field"]: d for d in document["differences"]}
    assert told["columns.age.high"] == {
        "field": "columns.age.high",
        "given": {"a.toml": 100, "b.toml": 200},
        "taken": 200,
    }
    assert run("schema", "merge", a, both)[0] == 0  # what was merged can be merged
    again = confide("schema", "merge", a, b, "--output", both)
    assert again.returncode == 2 and "exists already" in again.stderr and both.read_text() == text


def test_schemas_that_were_agreed_on_are_merged_without_a_warning(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(SCHEMA)
    code, text, warning = run("schema", "merge", tmp_path / "a.toml", tmp_path / "b.toml")
    assert code == 0 and warning == "" and "do not differ" in text and "PRIVATE" not in text
    assert Schema.from_toml(text) == Schema.from_toml(SCHEMA)


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
    said = " ".join(out.stdout.split())
    assert "(whole row) 1 3 fields; does not fit age 1 not a number; does not fit" in said
    assert "age 1 outside the declared range; counts as the nearer end" in said
    marked = data.read_text().count("?")
    assert f"job {marked} missing; has a feature of its own" in said
    assert "for your eyes only" in said and "2 of 302 rows do not fit. `confide fit` and `confide node run`" in said
    assert "every feature 0 and readmitted = 'no', without a word. Values outside their range, 1," in said
    code, text, _ = run("schema", "check", data, "--schema", schema, "--json", "--limit", 1)
    document = json.loads(text)
    assert code == 1 and document["fits"] is False and document["rows"] == 302 and document["private"] is True
    assert {"column": "age", "what": "not a number", "count": 1, "becomes": "does not fit"} in document["columns"]
    assert document["rows_that_do_not_fit"] == 2 and document["header"] == []
    assert document["problems"] == [{"place": "line 5", "column": None, "what": "3 fields, the header has 7"}]


def test_a_header_that_does_not_fit_is_named_column_by_column(data: Path, tmp_path: Path) -> None:
    schema = tmp_path / "s.toml"
    schema.write_text(
        SCHEMA.replace('"flu"', '"Readmitted"').replace('["none", "mild", "severe"]', '["no", "yes", "?"]')
    )
    out = confide("schema", "check", data, "--schema", schema)
    assert out.returncode == 1 and out.stderr == "" and max(map(len, out.stdout.splitlines()[1:])) <= 80
    said = " ".join(out.stdout.split())
    for column in ("2 of the header, 'income',", "5 of the header, 'visits',", "6 of the header, 'site',"):
        assert f"column {column} is not in the schema: declare it there" in said
    assert "column 7 of the header, 'readmitted', is not in the schema: it has 'Readmitted'" in said
    assert "no column 'Readmitted' in the header" in said and "rows were not read" in said
    document = json.loads(run("schema", "check", data, "--schema", schema, "--json")[1])
    assert document["fits"] is False and len(document["header"]) == 6 and document["rows"] == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("schema", "check", "nosuch.csv", "--schema", "{schema}"), "nosuch.csv: No such file"),
        (("schema", "check", "{data}", "--schema", "nosuch.toml"), "nosuch.toml: No such file"),
        (("schema", "check", "{data}", "--schema", "{data}"), "not TOML"),
        (("schema", "check", "{data}"), "--schema"),
        (("schema", "suggest", "{data}", "--label", "wage"), "no column 'wage'"),
        (("schema", "suggest", "{data}", "--label", "note"), "column 'note' can't be a label"),
        (("schema", "suggest", "{data}", "--group", "note"), "column 'note' can't name the parties"),
        (("schema", "suggest", "{data}", "--group", "readmitted"), "both label and group"),
        (("schema", "suggest", "{data}", "--output", "/nosuch/schema.toml"), "/nosuch/schema.toml"),
        (("schema", "suggest", "/tmp"), "/tmp: Is a directory"),
        (("schema", "draw"), "draw"), (("schema", "merge", "{schema}"), "1 file: merging needs at least 2"),
        (("schema", "merge", "{schema}", "{schema}"), "s.toml: given twice"),
        (("schema", "merge", "{schema}", "{data}"), "data.csv: not TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(data: Path, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA)
    code, stdout, stderr = run(*(a.format(data=data, schema=tmp_path / "s.toml") for a in args))
    assert code == 2 and stdout == "" and stderr.count("\n") == 1 and stderr.startswith("confide: ") and said in stderr


@pytest.mark.parametrize("name", ["schema suggest", "schema merge", "schema check", "randomize"])
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
    from confide.node.person import make

    n, epsilon = 200, 1.2
    labels = [make("flu", f"p{i}", epsilon, book, "2", 4, None, None)["label"] for i in range(n)]
    keep = math.exp(epsilon) / (math.exp(epsilon) + 3)
    assert abs(np.mean(np.array(labels) == 2) - keep) < 4.5 * math.sqrt(keep * (1 - keep) / n)
    assert set(labels) == {0, 1, 2, 3}


def test_epsilon_is_on_disk_before_the_label_is_read(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from confide.node import person

    def look(*_: object) -> str:
        with sqlite3.connect(book) as db:  # another connection sees only what is committed
            assert db.execute("SELECT epsilon FROM choice").fetchall() == [(1.0,)]
        db.close()
        return "1"

    monkeypatch.setattr(person, "read_label", look)
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
