"""Which commit a run was measured at, and whether the criteria that judge it were committed before it began.

A criterion is code of the experiment's folder. What is written when a run begins is kept with its tasks; when the run
is judged, perhaps later, both moments stand in data.json, and a criterion that changed in between shows.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from confide.files import write_whole
from confide.papers.reproduce.experiment import DRAWING, home

NAME = "begun.json"


def stand(paper: str) -> dict[str, Any]:
    """The commit at hand (None outside a repository), whether the paper's folder is as committed, and its hash."""
    folder = home() / paper.replace("-", "_")
    files = [f for f in sorted(folder.glob("*.py")) if f.name != DRAWING]
    digest = hashlib.sha256("\n".join(f.name + _judging(f) for f in files).encode()).hexdigest()
    commit = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--", ".") if commit else None
    return {"commit": commit, "clean": changed == "", "criteria": digest[:16]}


def begin(tasks: Path, paper: str, *, afresh: bool) -> None:
    """Note where the measurement begins; one that is taken up keeps the note of its beginning."""
    if afresh or not (tasks / NAME).is_file():
        tasks.mkdir(parents=True, exist_ok=True)
        write_whole(tasks / NAME, json.dumps(stand(paper)).encode())


def judged(tasks: Path, paper: str) -> dict[str, Any]:
    """For data.json: `measured` and `judged` at, and whether the criteria are those of before the measurement."""
    now = stand(paper)
    try:
        then = json.loads((tasks / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        then = None
    before = then is not None and then["commit"] is not None and then["clean"] and then["criteria"] == now["criteria"]
    return {"measured": then, "judged": now, "criteria_before_the_run": before}


def _judging(file: Path) -> str:
    """The file's code without docstring and drawing: words and pictures judge nothing."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [
        node for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and node.name == "draw")
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]  # fmt: skip
    return ast.dump(tree)


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
