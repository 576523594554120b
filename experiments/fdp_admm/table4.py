"""Table 4: as table1, with an l2 penalty on 10 machines.

100 trials at τ=.5, 20 at the other τ, 10 of the design as written: the count below is that of τ=.5.
"""

from typing import Any

from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials

from . import _draw, _tables

TABLE, WORKERS, KIND = 4, 10, "l2"
title = f"MISE with an {KIND} penalty on {WORKERS} machines"
trials = Trials(published=100, full=100, quick=2)
data = ()


def tasks(trials: int, full: int = trials.full) -> list[dict[str, Any]]:
    return _tables.tasks(trials, full)


def measure(design: str, level: float, trial: int) -> dict[str, Any]:
    return _tables.measure(design, level, WORKERS, KIND, trial)


def table(results: Results) -> list[dict[str, Any]]:
    return _tables.table(results, TABLE)


def findings(results: Results) -> list[Finding]:
    return _tables.findings(results, TABLE)


def draw(results: Results) -> Figure:
    return _draw.table(results, TABLE)
