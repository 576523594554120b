"""Three first hours, each as one script on data that ship with what confide needs: they end with a good model."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ports import free_ports

ROOT = Path(__file__).parent.parent
needs_checkout = pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="documents are in the checkout only")


def shell(script, **more):
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CONFIDE_THREADS": "1",
            "COLUMNS": "80", **more}  # fmt: skip
    return subprocess.run(["bash", "-c", script], capture_output=True, encoding="utf-8", env=here, timeout=900)


def story(name):
    """The Python blocks and the commands of a page."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "docs" / name).read_text())
    commands = re.findall(r"^\$ (.*)$", "\n".join(re.findall(r"```console\n(.*?)```", text, re.S)), re.M)
    return re.findall(r"```python\n(.*?)```", text, re.S), [re.sub(r"\s+# \d.*", "", c) for c in commands]


@needs_checkout
def test_a_consortium_of_five_ends_with_a_model_it_can_defend(tmp_path, monkeypatch):
    """Every command of docs/first-hour.md, as many as it says, with missing values, and five nodes at once."""
    monkeypatch.chdir(tmp_path)
    (block,), commands = story("first-hour.md")
    Path("files.py").write_text(block)
    assert len(commands) == 24 and (ROOT / "docs/first-hour.md").read_text().count("Twenty-four commands") == 1
    assert commands[:2] == ["make demo", ". .venv/bin/activate"]  # which this environment stands for
    commands = commands[2:]
    for k, port in enumerate(free_ports(5), start=1):
        commands = [c.replace(f"127.0.0.1:700{k}", f"127.0.0.1:{port}") for c in commands]
    last = max(k for k, c in enumerate(commands) if "node run" in c)
    done = shell("\n".join(["set -e", *commands[: last + 1], "wait", *commands[last + 1 :]]))
    assert done.returncode == 0, done.stderr
    assert "if at most 2 of 5 parties collude" in done.stdout and "Joining is worth it" in done.stdout
    said = json.loads(shell("confide report mercy --test test.csv --group site --json --output again.html").stdout)
    scores = said["scores"]
    assert scores["joint"]["accuracy"][0] > scores["same"]["accuracy"][0] + 0.2  # .63 is the majority's
    assert scores["joint"]["AUC"][1] > 0.85 and len(scores["parties"]) == 5
    page = Path("report.html").read_text()
    assert "if at most 2 of 5 parties collude" in page and "By party" in page
    held = json.loads(shell("confide account --ledger mercy/ledger --json").stdout)
    assert held["populations"][0]["name"] == "mercy"


def test_a_data_scientist_has_a_private_model_of_digits(tmp_path, monkeypatch):
    """scikit-learn's digits, ten classes: a pipeline with public constants, a ledger that refuses, a page."""
    monkeypatch.chdir(tmp_path)
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    import confide
    from confide.errors import ConfideError
    from confide.privacy.ledger import Ledger

    X, y = load_digits(return_X_y=True)
    X = (X - 8) / 8 / 8  # pixels are 0 to 16, and there are 64: rows are within 1
    train, test, label, truth = train_test_split(X, y, test_size=0.25, random_state=0)
    ledger = Ledger("ledger.sqlite")
    ledger.open_population("writers", epsilon=8.0, delta=1e-5)
    model = confide.PrivateLogisticRegression(epsilon=8.0, classes=list(range(10)), ledger=ledger, population="writers")
    model.fit(train, label)
    assert model.privacy_.guarantee.label == "proven" and model.privacy_.spent <= 8.0
    assert model.score(test, truth) > 0.8  # one in ten by the same answer for everyone
    with pytest.raises(ConfideError, match="left"):
        model.fit(train, label)
    model.run_.save("fit.npz")
    with open("test.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"x{k}" for k in range(1, 65)), "digit"])
        table.writerows([*row, digit] for row, digit in zip(test.tolist(), truth.tolist(), strict=True))
    done = shell("confide report fit.npz --test test.csv --json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["scores"]["joint"]["accuracy"][0] == pytest.approx(model.score(test, truth))
    assert said["scores"]["joint"]["AUC"][0] > 0.95


def test_a_researcher_compares_a_method_of_their_own(tmp_path, monkeypatch):
    """Diabetes, a method in a package of its own, found by its name: contracts, a sweep at equal ε, an attack."""
    package = tmp_path / "mine"
    package.mkdir()
    (package / "my_method.py").write_text(
        re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)[0]
    )
    info = package / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[confide.algorithms]\nAveragedDescent = my_method:AveragedDescent\n")
    monkeypatch.syspath_prepend(package)
    monkeypatch.chdir(tmp_path)
    from sklearn.datasets import load_diabetes

    import confide
    from confide.algorithms.catalogue import method_class
    from confide.testing import check_algorithm

    kind = method_class("AveragedDescent")
    assert check_algorithm(kind(rounds=6, clip=1.0, noise=0.1), quiet=kind(rounds=800, step=0.3), distance=0.2)
    X, y = load_diabetes(return_X_y=True, scaled=True)
    shards = confide.Shards.split(X / 0.2, (y - 150) / 200, parties=4, seed=0).clip_rows(1.0)
    problem = confide.Problem(shards, confide.losses.Squared(), confide.penalties.L2(0.01), weighting="rows")
    graph = confide.Graph.ring(4)
    methods = {"mine": kind(rounds=40, step=2.0, clip=0.5),
               "CDP": confide.algorithms.CDPADMM(rounds=40, coupling=0.05, step=2.0, clip=0.5)}  # fmt: skip
    found = confide.sweep(methods, problem, graph, epsilons=[4.0], seeds=range(5), jobs=1)
    rows = found.rows()
    assert {row["method"] for row in rows} == {"mine", "CDP"} and all(np.isfinite(row["error"]) for row in rows)
    env = {"PYTHONPATH": os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = shell("confide audit AveragedDescent --loss logistic --rounds 2 --repetitions 200 --json", **env)
    assert done.returncode == 0, done.stderr
    assert "not contradicted" in json.loads(done.stdout)["verdict"]
