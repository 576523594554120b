"""The start of commands: nothing is loaded that they have no use for. Times depend on machines, this does not."""

import subprocess
import sys
from pathlib import Path

import pytest
from fit_cases import PROGRAM
from loading import HEAVY, loaded, modules
from typer.testing import CliRunner

from confide.cli import COMMANDS, app
from confide.privacy import Gaussian
from confide.privacy.ledger import Ledger

ACCOUNTANTS = {"scipy.special"}  # what they need
GRAPHS = {"scipy.sparse"}


def confide(*words: object) -> str:
    out = CliRunner().invoke(app, [str(word) for word in words])
    assert out.exit_code == 0, out.output
    return out.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, a schema, two members and their federation, a ledger, a person's record."""
    here = tmp_path_factory.mktemp("start")
    (here / "rows.csv").write_text("age,dose,ill\n" + "".join(f"{30 + i % 40},{i % 7},{i % 2}\n" for i in range(60)))
    confide("schema", "suggest", here / "rows.csv", "--label", "ill", "--output", here / "schema.toml")
    (here / "other.toml").write_bytes((here / "schema.toml").read_bytes())
    (here / "record.json").write_text('{"age": 40, "dose": 2, "ill": "1"}')
    (here / "records.jsonl").write_text(confide(*person(here)))
    for name, port in (("mercy", 7001), ("north", 7002)):
        confide("node", "init", "--name", name, "--listen", f"127.0.0.1:{port}", "--home", here / name)
    confide(*new(here, here / "federation.toml"))
    with Ledger(here / "ledger") as book:
        book.open_population("ward", 2.0, 1e-6)
        book.charge("ward", "fit", 1, [Gaussian(0.1, 1.0)], method="CDPADMM", guarantee="proven: clipped")
    return here


def person(here: Path) -> tuple[object, ...]:
    asked = ("randomize", "--task", "flu", "--person", "17", "--epsilon", "1", "--book", here / "book.db")
    return (*asked, "--schema", here / "schema.toml", "--record", here / "record.json")


def new(here: Path, output: Path) -> tuple[object, ...]:
    parties = ("--party", f"{here / 'mercy' / 'card.toml'}=60", "--party", f"{here / 'north' / 'card.toml'}=60")
    return ("federation", "new", *parties, "--schema", here / "schema.toml", "--epsilon", "3", "--output", output)


def test_help_of_all_commands() -> None:
    found = modules("--help")
    assert found == {f"confide.cli.{name}" for name in (*COMMANDS, "evaluate", "lines", "node_options", "node_view")}


@pytest.mark.parametrize("words, files", [("account --help", {"account", "lines"}), ("--version", set()),
                                          ("schema check --help", {"schema", "lines"})])  # fmt: skip
def test_one_command_does_not_load_the_others(words: str, files: set[str]) -> None:
    assert modules(*words.split()) == {f"confide.cli.{name}" for name in files}


def test_the_list_of_methods() -> None:
    assert loaded("algorithms") <= ACCOUNTANTS


def test_an_account(place: Path) -> None:
    found = modules("account", "--ledger", str(place / "ledger"))
    assert found <= {*ACCOUNTANTS, "numpy", "rich", "confide.cli.account", "confide.cli.lines"}


@pytest.mark.parametrize(
    "words",
    ["suggest {0}/rows.csv --label ill", "check {0}/rows.csv --schema {0}/schema.toml",
     "merge {0}/schema.toml {0}/other.toml"],
    ids=lambda words: words.split()[0],
)  # fmt: skip
def test_rows_and_schemas_that_are_only_looked_at(place: Path, words: str) -> None:
    assert modules("schema", *words.format(place).split()) <= {"numpy", "confide.cli.schema", "confide.cli.lines"}


def test_a_persons_record(place: Path) -> None:
    assert modules(*map(str, person(place))) <= {"numpy", "confide.cli.randomize"}


def test_records_that_are_stored(place: Path) -> None:
    words = "node ingest {0}/records.jsonl --schema {0}/schema.toml --task flu --epsilon-range 0.5 8 --home {0}/mercy"
    assert loaded(*words.format(place).split()) <= GRAPHS


def test_a_federation(place: Path, tmp_path: Path) -> None:
    file, home = str(place / "federation.toml"), str(place / "mercy")
    assert loaded(*map(str, new(place, tmp_path / "new.toml"))) <= ACCOUNTANTS
    assert loaded("federation", "review", file, "--home", home) <= ACCOUNTANTS | GRAPHS
    assert loaded("federation", "sign", file, "--home", home, "--yes") <= ACCOUNTANTS | GRAPHS
    address = ("--address", "mercy=127.0.0.1:7003", "--yes")
    assert loaded("federation", "amend", file, "--home", home, *address) <= ACCOUNTANTS | GRAPHS


def test_a_node_that_is_made_and_asked(place: Path, tmp_path: Path) -> None:
    made = loaded("node", "init", "--name", "lake", "--listen", "127.0.0.1:7003", "--home", str(tmp_path / "lake"))
    assert made == set()
    assert not modules("node", "status", "--home", str(place / "mercy")) & {"numpy", "asyncio", "cryptography"}


def test_predictions_for_few_rows_and_a_report(place: Path, tmp_path: Path) -> None:
    schema, model, run = place / "schema.toml", tmp_path / "model.json", tmp_path / "run.npz"
    confide("fit", place / "rows.csv", "--schema", schema, "--epsilon", 3, "--parties", 3, "--rounds", 3, "--seed", 1,
            "--out", model, "--run", run)  # fmt: skip
    page = ("--output", str(tmp_path / "report.html"))
    assert loaded("report", str(run), *page) <= GRAPHS | ACCOUNTANTS
    assert loaded("predict", str(model), str(place / "rows.csv")) <= GRAPHS
    assert loaded("predict", str(model), str(place / "rows.csv"), "--probabilities") <= GRAPHS | ACCOUNTANTS


def test_the_list_of_experiments() -> None:
    assert modules("reproduce") <= {"numpy", "rich", *(f"confide.cli.{file}" for file in ("reproduce", "demo"))}


# --- what is refused, and what only says how it is used ---------------------------------------------------------------

FIT = "fit {0}/rows.csv --schema {0}/schema.toml --parties 3 --out {0}/never.json --epsilon"


@pytest.mark.parametrize(
    "words",
    [f"{FIT} 0", f"{FIT} 1 --delta 2", f"{FIT} 1 --graph cube", f"{FIT} 1 --model tree", f"{FIT} 1 --algorithm X",
     "fit {0}/nosuch.csv --schema {0}/schema.toml --parties 3 --epsilon 1",
     "fit {0}/ledger --schema {0}/schema.toml --parties 3 --epsilon 1", "plan --epsilon 0", "plan --delta 0",
     "plan --graph cube", "plan --model tree", "plan --data {0}/nosuch.csv --schema {0}/schema.toml --parties 3",
     "sweep {0}/nosuch.py", "node run --federation {0}/nosuch.toml --home {0}/mercy"],
)  # fmt: skip
def test_a_refusal_is_fast(place: Path, words: str) -> None:
    assert loaded(*words.format(place).split(), code=2) <= ACCOUNTANTS


@pytest.mark.parametrize("words", ["NoSuch", "CDPADMM --epsilon 0", "CDPADMM --colluders 2"])
def test_what_an_audit_refuses(place: Path, words: str) -> None:
    assert loaded("audit", *words.split(), "--output", str(place / "audit"), code=2) <= ACCOUNTANTS


@pytest.mark.parametrize("command", ["fit", "plan", "audit", "sweep", "node run"])
def test_help_loads_nothing(command: str) -> None:
    assert not modules(*command.split(), "--help") & {*HEAVY, "numpy", "cryptography", "asyncio"}


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["fit", "--help"], 0), (["fit"], 2)])
def test_python_m_confide_is_confide(words: list[str], code: int) -> None:
    said = [subprocess.run([sys.executable, *start, *words], capture_output=True, text=True, check=False)
            for start in (["-m", "confide"], PROGRAM[1:])]  # fmt: skip
    assert said[0].returncode == said[1].returncode == code
    assert (said[0].stdout, said[0].stderr) == (said[1].stdout, said[1].stderr)
