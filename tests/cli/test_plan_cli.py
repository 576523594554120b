"""`confide plan` as a user meets it: tables in 80 columns, JSON, the picture, own rows, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.core import TyperCommand
from typer.testing import CliRunner
from waiting import is_at_work

from confide.cli import app
from confide.cli.plan import Several
from confide.planning.rows import shares

PROGRAM = [sys.executable, "-c", "from confide.cli import main; main()"]
SMALL = ("--parties", "3", "--rows", "300", "--features", "3", "--seeds", "2")
SCHEMA = """
[label]
name = "ill"
kind = "binary"
values = ["no", "yes"]
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.site]
kind = "category"
categories = ["north", "south [x]"]
"""


def run(*args: object) -> tuple[int, str, str]:
    out = CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": "80"})
    if out.exception and not isinstance(out.exception, SystemExit):
        raise out.exception
    return out.exit_code, out.stdout, out.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    lines = ["age,site,ill"]
    for i in range(200):
        age = int(rng.integers(0, 101))
        lines.append(f"{age},{('north', 'south [x]')[i % 2]},{'yes' if age + rng.normal(0, 20) > 50 else 'no'}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_tables_fit_80_columns(tmp_path: Path) -> None:
    code, out, err = run("plan", *SMALL, "--epsilon", "0.5", "1", "3", "--plot", tmp_path / "plan.png")
    assert code == 0, err
    lines = [line for line in out.splitlines() if str(tmp_path) not in line]  # a path stays whole
    assert max(map(len, lines)) <= 80 and "…" not in out
    for said in ("ε=0.5", "ε=1", "ε=3", "no noise", "alone, private", "rounds", "kB sent", "time", "party 3", " ± ",
                 "best possible accuracy 85 %", "mean ± sd of 2 seeds", "protects nobody", "proven"):  # fmt: skip
        assert said in out
    assert "NOT FOR RELEASE" not in out
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["plan.png"]


def test_many_parties_and_many_epsilons_fit_too() -> None:
    code, out, err = run("plan", "--parties", "22", "--rows", "660", "--features", "2", "--seeds", "2", "--epsilon",
                         *(0.01, 0.5, 1, 2, 5))  # fmt: skip
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80 and "…" not in out and "and 2 more" in out
    assert "at ε=0.01" in out and "at ε=5" in out and out.count("unsure") >= 10


def test_json_has_everything() -> None:
    code, out, err = run("plan", "--rows", "200", "100", "--features", "3", "--seeds", "2", "--epsilon", "2",
                         "--latency", "100", "--json")  # fmt: skip
    assert code == 0, err
    found = json.loads(out)
    assert [p["rows"] for p in found["parties"]] == [200, 100] and found["for_release"] is True
    (one,) = found["epsilons"]
    assert one["epsilon"] == 2 and one["network_seconds"] == pytest.approx(one["seconds"] + 0.1 * one["rounds"])
    assert one["bytes_sent"] == 8 * 2 * 2 * (2 * 3 + 60 * 4)  # up and down, two parties, three features
    party = found["parties"][1]
    assert set(party) == {"name", "rows", "alone", "joining_adds", "joining_adds_over_private"}


def test_own_rows_are_marked_everywhere(home: Path) -> None:
    own = ("--data", home / "data.csv", "--schema", home / "schema.toml", "--group", "site", "--seeds", "2",
           "--epsilon", "1")  # fmt: skip
    code, out, err = run("plan", *own, "--plot", home / "plan.png")
    assert code == 0, err
    assert out.startswith("NOT FOR RELEASE: computed from private rows without noise")
    assert out.count("NOT FOR RELEASE") == 2 and "south [x]" in out
    assert (home / "plan.png").stat().st_mode & 0o777 == 0o600
    found = json.loads(run("plan", *own, "--json")[1])
    assert found["for_release"] is False and "without noise" in found["why"]


def test_several_values_reach_their_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TyperCommand, "parse_args", lambda self, context, args: args)
    given = ["--epsilon", "0.5", "1", "--json", "--rows", "9", "--seeds", "2"]
    expected = ["--epsilon", "0.5", "--epsilon", "1", "--json", "--rows", "9", "--seeds", "2"]
    assert Several("plan").parse_args(None, given) == expected


@pytest.mark.parametrize(("parties", "rows", "sizes"), [(None, None, (800,) * 5), (3, [100], (33, 33, 34)),
                                                         (None, [5, 6], (5, 6)), (2, [5, 6], (5, 6))])  # fmt: skip
def test_rows_are_shared_or_given_one_by_one(parties: int | None, rows: list[int] | None, sizes: object) -> None:
    assert shares(parties, rows) == sizes


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--epsilon", "0"], "epsilon"), (["--epsilon", "1", "1"], "different"), (["--rows", "30"], "at least 20"),
        (["--rows", "30"], "rows 30, of 5 parties together"),
        (["--quantile", "2", "--model", "quantile"], "--quantile 2:"),
        (["--parties", "1"], "--parties"), (["--parties", "2", "--rows", "50", "60", "70"], "3 numbers for 2 parties"),
        (["--best", "0.2"], "best"), (["--model", "tree"], "--model tree"), (["--graph", "cube"], "--graph cube"),
        (["--schema", "x.toml"], "--data"), (["--group", "x"], "--data"), (["--delta", "0"], "delta"),
        (["--data", "x.csv"], "--schema"), (["--data", "x.csv", "--rows", "50"], "generated rows"),
        (["--data", "nosuch.csv", "--schema", "nosuch.toml"], "nosuch.toml"), (["--plot", "nosuch/p.png"], "a folder"),
        (["--seeds", "0"], "--seeds"), (["stray"], "stray"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(extra: list[str], named: str) -> None:
    code, out, err = run("plan", *extra)
    assert code == 2 and out == "" and err.count("\n") == 1 and named in err


def test_bad_own_rows_are_refused_by_line_and_column(home: Path) -> None:
    text = (home / "data.csv").read_text().splitlines()
    text[4] = "SECRET" + text[4][text[4].index(",") :]
    (home / "data.csv").write_text("\n".join(text) + "\n")
    code, out, err = run("plan", "--data", home / "data.csv", "--schema", home / "schema.toml", "--group", "site")
    assert code == 2 and out == "" and "line 5, column 'age': not a number" in err and "SECRET" not in err


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    job = subprocess.Popen([*PROGRAM, "plan", "--rows", "20000", "--seeds", "500", "--plot", "plan.png"], cwd=tmp_path,
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ})  # fmt: skip
    assert is_at_work(job, 6)
    job.send_signal(signal.SIGINT)
    stdout, stderr = job.communicate(timeout=60)
    assert job.returncode == 130 and stdout == "" and stderr.splitlines()[-1] == "confide: interrupted"
    assert "Traceback" not in stderr and list(tmp_path.iterdir()) == []


def printed(out: str) -> dict[str, str]:
    """The commands at the end, as a shell reads them: by their second word."""
    joined = out.replace("\\\n", " ")
    return {line.split()[1]: line for line in joined.splitlines() if line.startswith("confide ")}


def cards_for(names: list[str], home: Path) -> None:
    from confide.network.identity import Identity

    for k, name in enumerate(names):
        Identity.create(home / f"home-{k}", name, f"127.0.0.1:{7001 + k}")
        (home / f"{name}.toml").write_text((home / f"home-{k}" / "card.toml").read_text())


def test_the_federation_has_the_noise_that_was_forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes hold a part of ε for rounds that crashes make them pay for twice; so does the forecast."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("plan", "--rows", 60, 50, 40, "--features", 3, "--epsilon", 1, "--seeds", 1, "--json")
    assert code == 0, err
    forecast = json.loads(out)
    cards_for(["party-1", "party-2", "party-3"], tmp_path)
    code, out, err = run(*forecast["commands"]["federation"][1:], "--json")
    assert code == 0, err
    made = json.loads(out)
    assert forecast["trust"] == [made["promise"]] and forecast["epsilons"][0]["rounds"] == made["rounds"]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logistic", "svc", "lasso", "quantile"])
def test_the_commands_that_were_forecast_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Of generated rows: cards by the parties' names, and a file with the column `party`."""
    from confide.node import federation as federations

    monkeypatch.chdir(tmp_path)
    code, out, err = run("plan", "--rows", 200, 100, "--features", 3, "--seeds", 2, "--epsilon", 1, 2, "--model", model,
                         "--rounds", 12)  # fmt: skip
    assert code == 0, err
    said = printed(out)
    cards_for(["party-1", "party-2"], tmp_path)
    rng = np.random.default_rng(1)
    rows = [(rng.uniform(-1, 1, 3), name) for name, n in (("a", 200), ("b", 100)) for _ in range(n)]
    label = "y" if model in ("logistic", "svc") else "number"
    lines = [",".join([*(f"{x:.4f}" for x in row), name, "yes" if row[0] > 0 else "no", f"{row[0]:.4f}"])
             for row, name in rows]  # fmt: skip
    Path("data.csv").write_text("\n".join(["x1,x2,x3,party,y,number", *lines]) + "\n")
    kind = 'kind = "binary"\nvalues = ["no", "yes"]' if label == "y" else 'kind = "real"\nlow = -1\nhigh = 1'
    columns = "".join(f'[columns.x{k}]\nkind = "numeric"\nlow = -1\nhigh = 1\n' for k in (1, 2, 3))
    other = {"y": "number", "number": "y"}[label]
    Path("schema.toml").write_text(
        f'[label]\nname = "{label}"\n{kind}\n[group]\nname = "party"\nvalues = ["a", "b"]\n{columns}'
        f'[columns.{other}]\nkind = "ignore"\n'
    )
    for command in ("federation", "fit"):
        done = subprocess.run(
            ["bash", "-c", said[command].replace("confide", " ".join(f"'{word}'" for word in PROGRAM), 1)],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    found = federations.load("federation.toml")
    assert found.public.sizes.tolist() == [200, 100] and found.algorithm.rounds == 12
    kinds = {"logistic": "Logistic", "svc": "SmoothedHinge", "lasso": "Squared", "quantile": "Quantile"}
    assert type(found.loss).__name__ == kinds[model] and found.weighting == "rows"
    assert (type(found.penalty).__name__ == "L1") == (model == "lasso")
    assert Path("model.json").is_file()


def test_advice_says_for_whom_and_from_which_epsilon() -> None:
    """On numbers made by hand: joining adds 0.1 at ε=1 for the first party, at ε=3 for both, for the third never."""
    from dataclasses import replace

    from confide.planning.advice import advised, first_worth, worth
    from confide.planning.plan import Generated, plan

    found = plan(Generated((60, 60, 60), 2), [1.0, 3.0], seeds=3)
    joint = np.repeat(np.array([[0.6, 0.5, 0.4], [0.6, 0.6, 0.4]])[:, None], 3, axis=1)  # (E, S, K)
    found = replace(found, joint=joint, alone=np.full((3, 3), 0.5))
    assert first_worth(found) == [1.0, 3.0, None] and advised(found) == 3.0
    assert (
        worth(found)
        == "Joining is worth it from ε=1 for party 1; from ε=3 for party 2; at none of these ε for party 3."
    )
    every = replace(found, joint=joint + 0.2)
    assert worth(every) == "Joining is worth it from ε=1 for every party." and advised(every) == 1.0
    nobody = replace(found, joint=joint - 0.2)
    assert worth(nobody) == "Joining is worth it for no party at any of these ε." and advised(nobody) == 3.0
    fickle = replace(found, joint=joint[::-1])  # helped at ε=1 alone: not from there on
    assert first_worth(fickle)[1] is None
