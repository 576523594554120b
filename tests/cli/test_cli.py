"""The command line as a user meets it: help, lists, JSON, one-line errors, Ctrl-C."""

import errno
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner
from waiting import is_at_work

from confide import __version__
from confide.algorithms import REGISTRY
from confide.cli import app, bench
from confide.cli.algorithms import listing
from confide.errors import ConfideError, Diverged, MissingExtra, WrongType, describe

COMMANDS = ("demo", "fit", "predict", "plan", "algorithms", "audit", "account", "randomize", "relay", "report",
            "reproduce", "sweep", "bench", "compile")  # fmt: skip
GROUPS = {"schema": ("suggest", "merge", "check"), "federation": ("new", "evaluate", "review", "sign", "amend"),
          "node": ("init", "rekey", "ingest", "run", "status", "model", "compare")}  # fmt: skip
EVERY = [*COMMANDS, *(f"{group} {name}" for group, names in GROUPS.items() for name in names)]
PROGRAM = [sys.executable, "-c", "from confide.cli import main; main()"]


def confide(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, 80 columns wide."""
    environment = {**os.environ, "COLUMNS": "80", **env}
    return subprocess.run([*PROGRAM, *args], capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_help_lists_every_command() -> None:
    for args in (["--help"], ["-h"], []):
        out = CliRunner().invoke(app, args)
        assert out.exit_code == 0 and all(f"\n  {name} " in out.stdout for name in (*COMMANDS, *GROUPS))
    root: Any = get_command(app)
    found = {name: root.get_command(None, name) for name in root.list_commands(None)}
    groups = {name: tuple(one.commands) for name, one in found.items() if hasattr(one, "commands")}
    assert sorted(found) == sorted((*COMMANDS, *GROUPS)) and groups == GROUPS


@pytest.mark.parametrize("name", EVERY)
def test_help_of_a_command_has_a_runnable_example_and_json(name: str) -> None:
    out = CliRunner().invoke(app, [*name.split(), "--help"])
    assert out.exit_code == 0 and f"Example: confide {name}" in out.stdout and "--json" in out.stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom confide.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'scipy', 'numba', 'matplotlib', 'rich') if m in sys.modules], file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert out.stderr.strip() == "[]"


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"confide {__version__}\n"


def test_completion_is_offered() -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the shell asked for, not the one tests run in
    out = confide("--show-completion", "bash", **named)
    assert out.returncode == 0 and "_confide_completion" in out.stdout


def test_algorithms_lists_the_registry_in_80_columns() -> None:
    out = confide("algorithms")
    lines = out.stdout.splitlines()
    assert out.returncode == 0 and max(map(len, lines)) <= 80
    assert lines[0].startswith("JointDescent (auto), on private sums, proven: logistic")
    for name, kind in REGISTRY.items():
        line = next(x for x in lines if x.split()[:1] == [name])
        assert {"peer": "peers", "all": "server", "central": "central"}[kind.topology] in line


def test_algorithms_as_json() -> None:
    out = CliRunner().invoke(app, ["algorithms", "--json"])
    rows = {row["name"]: row for row in json.loads(out.stdout)["algorithms"]}
    assert list(rows) == ["JointDescent", *REGISTRY] and rows["JointDescent"]["network"] == "private sums"
    assert rows == {row["name"]: row for row in listing()}
    assert all(row["losses"] and row["reason"] for row in rows.values())
    assert all(rows[name]["paper"] for name in REGISTRY)
    assert rows["ADMM"]["guarantee"] == "none" and rows["ADMM"]["set"] == []
    assert rows["CDPADMM"]["guarantee"] == "proven" and rows["CDPADMM"]["set"] == ["noise", "clip"]
    assert rows["DVP"]["set"] == ["noise_rate", "release_noise"]
    assert rows["DPADMM"]["network"] == "server"


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["demo", "--bogus"], "--bogus"), (["nosuch"], "nosuch"), (["demo", "--seeds", "0"], "--seeds"),
        (["demo", "--seeds", "many"], "--seeds"), (["demo", "--output", __file__], "not a folder"),
        (["algorithms", "extra"], "extra"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(args: list[str], named: str) -> None:
    out = confide(*args)
    assert out.returncode == 2 and out.stdout == ""
    assert out.stderr.count("\n") == 1 and out.stderr.startswith("confide: ") and named in out.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("demo --seeds 0", "--seeds 0: "), ("plan --parties=x", "--parties x: "), ("bench --nodes 2", "--nodes 2: "),
        ("fit a.csv --schema a.toml --epsilon abc", "--epsilon abc: "),
        ("plan --epsilon 1 x 3", "Invalid value for '--epsilon': "),  # of several values, which is not known
    ],
)  # fmt: skip
def test_a_wrong_value_is_said_before_what_is_allowed(words: str, said: str) -> None:
    out = CliRunner().invoke(app, words.split())
    assert out.exit_code == 2 and out.stderr.startswith(f"confide: {said}") and out.stderr.count("\n") == 1


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("confide.demo.simulated.run", run)


@pytest.mark.parametrize("error", [
    Diverged("agent 3 diverged:\n lower the step"), ConfideError("agent 3 diverged: lower the step"),
    MissingExtra("agent 3 diverged: lower the step"), WrongType("agent 3 diverged: lower the step"),
    TimeoutError("agent 3 diverged: lower the step"),
])  # fmt: skip
def test_an_error_in_the_work_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception) -> None:
    failing(monkeypatch, error)
    out = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert out.exit_code == 2 and out.stderr.endswith("confide: agent 3 diverged: lower the step\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number, said", [(errno.ENOSPC, "No space left on device"), (errno.EDQUOT, "quota")])
def test_trouble_of_the_machine_is_one_line(monkeypatch, tmp_path: Path, number: int, said: str) -> None:
    failing(monkeypatch, OSError(number, os.strerror(number)))
    out = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert out.exit_code == 2 and said in out.stderr and "Traceback" not in out.stderr


@pytest.mark.parametrize("error", [
    KeyError("missing"), ValueError("operands could not be broadcast"), ZeroDivisionError("division by zero"),
    ModuleNotFoundError("No module named 'confide.nothing'"), TypeError("wrong"), OSError(errno.EBADF, "Bad file"),
])  # fmt: skip
def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error) -> None:
    """And is followed by one line that says whose it is and where to report it."""
    failing(monkeypatch, error)
    found = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)]).exception
    assert found is error
    *_, last = "".join(traceback.format_exception(found)).splitlines()
    assert last.startswith("confide: this is a bug of ours: please report it") and "https://" in last


def test_a_mistake_of_ours_in_a_process_of_its_own(tmp_path: Path) -> None:
    start = ("import confide.privacy.ledger as l; l.default_path = lambda: {}['x']; "
             "import sys; sys.argv = ['confide', 'account']; from confide.cli import main; main()")  # fmt: skip
    out = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True)
    lines = out.stderr.splitlines()
    assert out.returncode == 1 and lines[0].startswith("Traceback") and "KeyError: 'x'" in lines
    assert lines[-1].startswith("confide: this is a bug of ours") and out.stdout == ""


def test_errors_of_the_system_name_the_file() -> None:
    assert describe(FileNotFoundError(2, "No such file or directory", "x.csv")) == "x.csv: No such file or directory"
    assert describe(FileNotFoundError("no benchmarks here")) == "no benchmarks here"


def test_bench_without_a_checkout_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "a" / "b" / "c" / "bench.py"))
    out = CliRunner().invoke(app, ["bench"])
    assert out.exit_code == 2 and out.stderr.count("\n") == 1 and "benchmarks/run.py" in out.stderr


def test_bench_runs_the_script_and_hands_on_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "run.py").write_text("import sys; print(sys.argv[1:]); sys.exit(len(sys.argv))")
    out = confide("bench", "--json", cwd=tmp_path)
    assert (out.returncode, out.stdout) == (2, "['--json']\n")
    assert confide("bench", cwd=tmp_path).returncode == 1
    (tmp_path / "benchmarks" / "node.py").write_text("print('nodes')")
    assert confide("bench", "--network", cwd=tmp_path).stdout == "nodes\n"
    (tmp_path / "benchmarks" / "accuracy.py").write_text("import sys; print(sys.argv[1:])")
    assert confide("bench", "--accuracy", "adult,wine", cwd=tmp_path).stdout == "['--only', 'adult,wine']\n"


@pytest.mark.slow
def test_ctrl_c_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    """While functions are compiled, too: LLVM would swallow the interruption."""
    job = subprocess.Popen([*PROGRAM, "demo", "--output", str(tmp_path / "demo")], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, "CONFIDE_CACHE": str(tmp_path / "cache")})  # fmt: skip
    assert is_at_work(job, 3)
    job.send_signal(signal.SIGINT)
    stdout, stderr = job.communicate(timeout=120)
    assert job.returncode == 130 and stdout == "" and stderr.splitlines()[-1] == "confide: interrupted"
    assert "Traceback" not in stderr and not (tmp_path / "demo").exists()


@pytest.mark.slow
def test_demo_prints_its_table_in_80_columns(tmp_path: Path) -> None:
    out = confide("demo", "--seeds", "1", cwd=tmp_path)
    assert out.returncode == 0
    table = out.stdout
    assert max(map(len, table.splitlines())) <= 80 and "…" not in table
    for name in ("JointDescent", "CDPADMM", "DDPADMM", "DPADMM", "DPSGD", "RADMM", "DVP", "alone, not private",
                 "if at most 2 of 5", "protects nobody"):  # fmt: skip
        assert name in table
    for file in ("convergence.png", "report.html"):
        assert f"demo/{file}" in table and (tmp_path / "demo" / file).exists()


@pytest.mark.slow
def test_demo_json_is_all_of_stdout(tmp_path: Path) -> None:
    out = confide("demo", "--seeds", "1", "--json", "--output", str(tmp_path))
    document = json.loads(out.stdout)
    assert document["picture"] == str(tmp_path / "convergence.png") and document["simulated"] is True
    assert document["report"] == str(tmp_path / "report.html")
    assert all(line["epsilon"] is None or line["epsilon"] <= 1 + 1e-9 for line in document["lines"])


def test_bench_of_many_nodes_goes_with_the_network(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "many.py").write_text("import sys; print(sys.argv[1:])")
    out = confide("bench", "--network", "--nodes", "300", "--rounds", "7", "--json", cwd=tmp_path)
    assert out.returncode == 0 and out.stdout.strip() == str(["--json", "--nodes", "300", "--rounds", "7"])
    out = confide("bench", "--nodes", "300", cwd=tmp_path)
    assert out.returncode == 2 and "--nodes 300: goes with --network" in out.stderr
    out = confide("bench", "--network", "--rounds", "7", cwd=tmp_path)
    assert out.returncode == 2 and out.stderr == "confide: --rounds 7: goes with --nodes\n"
