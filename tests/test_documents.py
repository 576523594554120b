"""Documents are programs: every Python block in them runs, and every public name and command is in the guide."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ports import free_ports

import confide

ROOT = Path(__file__).parent.parent
needs_checkout = pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="documents are in the checkout only")


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.S)


@needs_checkout
def test_the_first_example_prints_accuracy_epsilon_and_guarantee(capsys):
    (example,) = blocks("README.md")
    assert len(example.strip().splitlines()) <= 13
    exec(compile(example, "README.md", "exec"), {})
    said = capsys.readouterr().out
    accuracy = float(re.search(r"accuracy (0\.\d+)", said).group(1))
    assert accuracy > 0.78  # the majority answer gets 0.625, hospitals alone 0.755
    assert "ε=1 at δ=1e-05" in said and "guarantee proven" in said and "protects nobody" in said


@needs_checkout
def test_the_skeleton_is_a_working_method():
    source = blocks("CONTRIBUTING.md")[0]
    names = {"__name__": "skeleton"}
    exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    kind = names["AveragedDescent"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, -1.0]
    problem = confide.Problem(confide.Shards.split(X, y, 4), confide.losses.Squared(), confide.penalties.L2(0.1))
    graph = confide.Graph.ring(4)
    quiet = confide.simulate(problem, graph, kind(rounds=300, step=0.1))
    assert quiet.history["error"][-1, 0] < 0.05  # a constant step stops near the optimum, not at it
    private = kind(rounds=20, clip=1.0).calibrated(problem.public(graph), 2.0, 1e-5)
    run = confide.simulate(problem, graph, private)
    assert run.privacy.epsilon(1e-5) == pytest.approx(2.0, rel=1e-6)
    assert run.privacy.guarantee.label == "proven"


@needs_checkout
@pytest.mark.parametrize("number", range(len(blocks("docs/guide.md")) if (ROOT / "docs/guide.md").exists() else 0))
def test_the_guide_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("import confide\nimport numpy as np\n" + blocks("docs/guide.md")[number], "guide", "exec"), {})


@needs_checkout
@pytest.mark.parametrize("name", ["consortium", "researcher", "data-scientist"])
def test_a_tutorial_runs_as_one_session(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = {}
    parts = blocks(f"docs/tutorials/{name}.md")
    assert parts
    for part in parts:
        exec(compile(part, name, "exec"), session)


@needs_checkout
@pytest.mark.parametrize("number", range(len(blocks("docs/privacy.md")) if (ROOT / "docs/privacy.md").exists() else 0))
def test_the_privacy_model_runs(number):
    exec(compile("import confide\n" + blocks("docs/privacy.md")[number], "privacy", "exec"), {})


@needs_checkout
@pytest.mark.slow
def test_the_consortium_learns_by_the_commands_of_its_tutorial(tmp_path, monkeypatch):
    """Every command, three nodes at once; afterwards nothing is left for a second run."""
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("docs/tutorials/consortium.md")[0], "consortium", "exec"), {})
    text = re.sub(r"\\\n\s*", "", (ROOT / "docs/tutorials/consortium.md").read_text())  # commands over several lines
    commands = re.findall(r"^\$ (.*)$", "\n".join(re.findall(r"```console\n(.*?)```", text, re.S)), re.M)
    for k, port in enumerate(free_ports(3), start=1):
        commands = [c.replace(f"127.0.0.1:700{k}", f"127.0.0.1:{port}") for c in commands]
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CONFIDE_THREADS": "1"}
    here["CONFIDE_LEDGER"] = str(tmp_path / "never.sqlite")  # the commands name their ledgers

    def shell(script):
        return subprocess.run(["bash", "-c", script], capture_output=True, encoding="utf-8", env=here, timeout=900)

    last = max(k for k, c in enumerate(commands) if "node run" in c)
    done = shell("\n".join(["set -e", *commands[: last + 1], "wait", *commands[last + 1 :]]))
    assert done.returncode == 0, done.stderr
    predicted = list(csv.DictReader(Path("predictions.csv").read_text().splitlines()))
    truth = [row["readmitted"] for row in csv.DictReader(Path("lake.csv").read_text().splitlines())]
    right = np.mean([one["prediction"] == y for one, y in zip(predicted, truth, strict=True)])
    majority = max(truth.count("yes"), truth.count("no")) / len(truth)
    assert right > majority + 0.1
    spent = float(re.search(r"spent ε=[0-9.]+, against all others together ε=([0-9.]+)", done.stdout).group(1))
    promise = r"if at most 1 of 3 collude, ε = ([0-9.]+) against all others together"
    most = float(re.findall(promise, done.stdout)[-1])  # of the federation, after those of the plan
    assert 0.95 * most < spent <= most and "guarantee proven" in done.stdout
    assert "<html" in Path("report.html").read_text() and not Path("never.sqlite").exists()
    again = next(c for c in commands if "federation new" in c) + " --output second.toml"
    run = next(c for c in commands if "node run" in c).rstrip("& ").replace("federation.toml", "second.toml --agree")
    refused = shell(f"{again} && {run}")
    assert refused.returncode == 4 and "is left" in refused.stderr


@needs_checkout
@pytest.mark.slow
def test_a_relay_runs_by_the_commands_of_the_page_on_operations(tmp_path, monkeypatch):
    """Two that take no connections and a relay, as typed; watched while they run."""
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"\\\n\s*", "", (ROOT / "docs/operations.md").read_text())
    block = next(b for b in re.findall(r"```console\n(.*?)```", text, re.S) if "confide relay" in b)
    commands = re.findall(r"^\$ (.*)$", block, re.M)
    rng = np.random.default_rng(0)
    for name in ("east", "west"):
        X = rng.normal(size=(300, 3))
        np.savez(f"{name}.npz", X=X, y=np.where(X @ [2.0, -1.0, 1.0] > 0, 1.0, -1.0))
    for port, free in zip(("7443", "9000", "9001"), free_ports(3), strict=True):
        commands = [re.sub(rf"\b{port}\b", str(free), c) for c in commands]
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CONFIDE_THREADS": "1"}
    here["CONFIDE_LEDGER"] = str(tmp_path / "never.sqlite")
    done = subprocess.run(["bash", "-c", "\n".join(["set -e", *commands])], capture_output=True, encoding="utf-8",
                          env=here, timeout=900)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "finished, round 20 of 20" in done.stdout and "through the relay" in done.stdout


@needs_checkout
def test_every_threat_names_tests_that_are_there():
    """Each row of the table on security: "…" stands for any letters, and a name for one test of the file before it."""
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        found.setdefault(path.name, []).extend(re.findall(r"^def (test_\w+)", path.read_text(), re.M))
    rows = [line for line in (ROOT / "docs/security.md").read_text().splitlines() if line.startswith("|")][2:]
    assert len(rows) > 35
    for row in rows:
        named, file = re.findall(r"`([^`]+)`", row.split("|")[-2]), ""
        assert named, f"no test: {row}"
        for one in named:
            first, _, test = one.rpartition("::") if "::" in one else ("", "", one)
            if one.endswith(".py"):
                assert one in found, row
                file = one
                continue
            file = first or file
            pattern = ".*".join(re.escape(part) for part in test.split("…"))
            assert sum(bool(re.fullmatch(f"(test_.*)?{pattern}", name)) for name in found[file]) == 1, (one, row)


@needs_checkout
def test_every_public_name_is_in_the_guide():
    guide = (ROOT / "docs/guide.md").read_text()
    public = {
        *confide.__all__, *confide.privacy.__all__, *confide.algorithms.REGISTRY, *confide.metrics.METRICS,
        *(kind.__name__ for kind in (*confide.losses.ALL, *confide.penalties.ALL)),
    }  # fmt: skip
    missing = {name for name in public if not re.search(rf"\b{re.escape(name)}\b", guide)} - {"__version__"}
    assert not missing


@needs_checkout
def test_every_command_is_in_the_readme():
    from confide.cli import COMMANDS

    readme = (ROOT / "README.md").read_text()
    assert all(f"confide {name}" in readme for name in COMMANDS)


@needs_checkout
def test_the_plan_of_the_house_names_every_room_and_every_file_is_there():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.parent.name for path in (ROOT / "src" / "confide").glob("*/__init__.py")}
    assert set(re.findall(r"^\| \[(\w+)\]", text, re.M)) == rooms
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"^  (\w+)/ ", contributing, re.M)) >= rooms
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) > 40 and all((ROOT / "docs" / link).exists() for link in links)


@needs_checkout
def test_walks_through_the_house_name_each_file_once():
    """One way: nobody comes by the same place twice."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    for walk in text.split("\n## ")[2:]:
        hops = re.findall(r"\]\((\.\./[^)]+)\)", walk)
        assert len(hops) >= 6 and len(set(hops)) == len(hops)
