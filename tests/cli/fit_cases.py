"""A file of three hospitals' rows with its schema, and the commands on it, in this process or in one of their own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from confide.cli import app

PROGRAM = [sys.executable, "-c", "from confide.cli import main; main()"]
SCHEMA = """
[label]
name = "income"
kind = "binary"
values = ["low", "high"]
[group]
name = "hospital"
values = ["mercy", "north", "lake"]
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.hours]
kind = "numeric"
low = 0
high = 80
outside = "invalid"
[columns.job]
kind = "category"
categories = ["cook", "clerk", "nurse"]
"""
HEAD = "age,hours,job,hospital,income"


def table(rows: int = 3000, seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(rows):
        age, hours = int(rng.integers(18, 90)), int(rng.integers(0, 81))
        job = str(rng.choice(["cook", "clerk", "nurse"]))
        high = (age - 54) / 12 + (hours - 40) / 15 + (job == "nurse") - 0.3 + rng.logistic() > 0
        site = str(rng.choice(["mercy", "north", "lake"], p=[0.5, 0.3, 0.2]))
        out.append([str(age), str(hours), job, site, "high" if high else "low"])
    return out


def encoded(rows: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """By hand: ranges to -1..1, 0/1 for categories, rows no longer than 1."""
    X = np.array([[float(r[0]) / 50 - 1, float(r[1]) / 40 - 1, *(r[2] == c for c in ("cook", "clerk", "nurse"))]
                  for r in rows], float)  # fmt: skip
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), np.array([r[4] for r in rows])


def write(path: Path, rows: list[list[str]], head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n")
    return path


def run(*args: object) -> tuple[int, str, str]:
    out = CliRunner().invoke(app, [str(a) for a in args])
    if out.exception and not isinstance(out.exception, SystemExit):
        raise out.exception
    return out.exit_code, out.stdout, out.stderr


def program(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own, 80 columns wide."""
    return subprocess.run([*PROGRAM, *map(str, args)], capture_output=True, text=True, check=False, cwd=cwd,
                          env={**os.environ, "COLUMNS": "80"})  # fmt: skip


def fit(home: Path, *extra: object, data: str = "data.csv", schema: str = "schema.toml") -> tuple[int, str, str]:
    given = [] if "--epsilon" in extra else ["--epsilon", "1"]
    return run("fit", home / data, "--schema", home / schema, "--out", home / "model.json", *given, *extra)
