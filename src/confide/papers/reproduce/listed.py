"""What the experiments say of themselves, read off their files: importing all of them takes seconds."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, NamedTuple

from confide.papers.reproduce.experiment import Trials, find, home, names


class Listed(NamedTuple):
    """An experiment as a list shows it."""

    paper: str
    name: str
    title: str
    trials: Trials
    data: tuple[str, ...]


def listed() -> list[Listed]:
    """Every experiment."""
    return [_listed(paper, name) for paper, name in names()]


def _listed(paper: str, name: str) -> Listed:
    said = _constants(home() / paper.replace("-", "_") / f"{name.replace('-', '_')}.py")
    title, trials, data = (said.get(what) for what in ("title", "trials", "data"))
    if isinstance(title, str) and isinstance(trials, Trials) and isinstance(data, tuple):
        return Listed(paper, name, title, trials, data)
    whole = find(paper, name)  # it computes them, or lacks some, and then this says so
    return Listed(paper, name, whole.title, whole.trials, whole.data)


def _constants(file: Path, follow: bool = True) -> dict[str, Any]:
    """What a file sets at its top level by itself, by `Trials`, and by constants of an experiment beside it."""
    known: dict[str, Any] = {"Trials": Trials}
    try:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if follow and isinstance(node, ast.ImportFrom) and node.level == 1 and (node.module or "_")[0] != "_":
                beside = _constants(file.with_name(f"{node.module}.py"), follow=False)
                known |= {a.asname or a.name: beside[a.name] for a in node.names if a.name in beside}
            elif isinstance(node, ast.Assign) and _names(node.value) <= known.keys():
                exec(compile(ast.Module([node], []), str(file), "exec"), {"__builtins__": {}}, known)
    except Exception:  # whatever is wrong, `find` meets it again and says where
        return {}
    return known


def _names(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
