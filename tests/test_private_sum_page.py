"""docs/private-sum.md: its examples run, its table is what the theorem says, and its picture is drawn by its script."""

import json
import math
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ports import free_ports

from confide.privacy import Gaussian, epsilon, mu_for

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "private-sum.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="documents are in the checkout only")


def test_the_table_is_the_theorem_s():
    rows = re.findall(r"^\| (.+?) \| \**σ.*? \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
    assert len(rows) == 6
    mu = float(mu_for(1.0, 1e-5))
    for who, *numbers in rows:
        told = [float(number.strip("*")) for number in numbers]
        for (parties, c), (factor, cost) in zip(((5, 2), (20, 9)), (told[:2], told[2:]), strict=True):
            j = {"outsiders": 0, "j = 1": 1, "**j = c": c, "j = c+1": c + 1, "j = K−2": parties - 2, "all": parties - 1}
            (colluders,) = (
                value
                for name, value in j.items()
                if who == name or who.startswith((name + "*", name + " o", name + ","))
            )
            wanted = math.sqrt((parties - c) / (parties - colluders))
            assert factor == pytest.approx(wanted, abs=5.1e-4)
            assert cost == pytest.approx(float(epsilon([Gaussian(mu * wanted, 1.0)], 1e-5)), abs=5.1e-4)


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", PAGE.read_text() if PAGE.exists() else "", re.S))
def test_its_examples_run(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(PAGE), "exec"), {})


def test_its_picture_is_what_its_script_draws():
    made = runpy.run_path(str(ROOT / "docs" / "_site" / "who_sees_what.py"))
    assert made["FILE"].read_text() == made["picture"]()


@pytest.mark.slow
def test_three_hospitals_learn_by_its_commands(tmp_path, monkeypatch):
    """Every command, three nodes at once: one model, both budgets were paid into, and its evaluation is true."""
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"\\\n\s*", "", PAGE.read_text())  # commands over several lines
    exec(compile(re.search(r"```python\n(import numpy.*?)```", text, re.S).group(1), str(PAGE), "exec"), {})
    commands = re.findall(r"^\$ (.*)$", "\n".join(re.findall(r"```console\n(.*?)```", text, re.S)), re.M)
    for k, port in enumerate(free_ports(3), start=1):
        commands = [c.replace(f"127.0.0.1:700{k}", f"127.0.0.1:{port}") for c in commands]
    here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "CONFIDE_THREADS": "1"}
    nodes = [k for k, c in enumerate(commands) if c.endswith("&")]
    for k in reversed([k for k in nodes if k + 1 not in nodes]):  # the last of each three
        commands.insert(k + 1, "wait")
    script = "\n".join(["set -e", *commands])
    script += "\nfor n in north south; do confide node model --home $n --output $n.json; done"
    done = subprocess.run(["bash", "-c", script], capture_output=True, encoding="utf-8", env=here, timeout=900)
    assert done.returncode == 0, done.stderr
    told = re.search(r"^(ε = .* if at most 1 of 3 collude, ε = .* against all others together)$", text, re.M).group(1)
    assert told in done.stdout and "outsiders and any 1 of 3 parties together" in " ".join(done.stdout.split())
    learned = [json.loads(Path(f"{name}.json").read_text())["coefficients"] for name in ("model", "north", "south")]
    assert learned[0] == learned[1] == learned[2]
    right = []
    for name in ("mercy", "north", "south"):
        with np.load(f"{name}.npz") as rows:
            right.append(np.mean(np.sign(rows["X"] @ np.ravel(learned[0])) == rows["y"]))
    assert np.mean(right) > 0.85
    assert not list(tmp_path.glob("*/runs/*/run-key"))
    found = [json.loads(path.read_text()) for path in tmp_path.glob("*/runs/*/evaluation.json")]
    assert len(found) == 3 and found[0] == found[1] == found[2] and found[0]["rows"] == 1500
    held = [np.load(f"{name}-held-out.npz") for name in ("mercy", "north", "south")]
    model = json.loads(Path("model.json").read_text())
    z = [rows["X"] / np.maximum(np.linalg.norm(rows["X"], axis=1), 1)[:, None] @ np.ravel(model["coefficients"])
         + model["intercept"][0] for rows in held]  # fmt: skip
    exact = np.mean([np.sign(margin) == rows["y"] for margin, rows in zip(z, held, strict=True)])
    told = found[0]["scores"]["accuracy"]
    assert told["low"] < exact < told["high"] and told["high"] - told["low"] < 0.15
    assert done.stdout.count("evaluated on 1,500 held-out rows, ε=1 at δ=1e-05 for each of them") == 4  # and the status
    assert "How good it is, paid for" in Path("report.html").read_text()
