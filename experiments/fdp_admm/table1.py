"""Table 1: mean integrated squared error of FDP-ADMM with an l1 penalty on 10 machines.

Both designs of `_setting.py` are run: the printed numbers fit `as-published-tables`; `as-written`, with Theorem 2's
step and five cells, is shown beside it. A trial is a data set of 100,000 rows and a stream of noise of its own; its 21
cells share the rows. 100 trials at τ=.5, as in the paper, 20 at the other τ, 10 of the design as written: the count
below is that of τ=.5. A run with fewer trials measures τ=.5 only. The privacy of every cell is assumed: nothing
enforces c1.
"""

from typing import Any

from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials

from . import _draw, _tables

TABLE, WORKERS, KIND = 1, 10, "l1"
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
