"""Figure 1: empirical loss by iteration on 10, 20 and 50 machines, with an l1 penalty.

Panels are ε=.01, .05, .1 and .2 per iteration at δ=1e-3, τ=.5; the loss is that of every worker at its own noisy model.
The text gives no numbers of this figure; its claims in words are the findings. Privacy is assumed (c1 is not enforced).
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _draw, _series
from ._series import measure

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
KIND = "l1"
title = f"Empirical loss by number of machines, {KIND} penalty"
trials = Trials(published=100, full=100, quick=1)
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return _series.tasks(KIND, _series.WORKERS, trials)


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"epsilon an iteration": e, "machines": m, "loss at the end": loss[:, i, -1].mean(),
         "lowest": loss[:, i, -1].min(), "highest": loss[:, i, -1].max(), "guarantee": "assumed"}
        for m in _series.WORKERS
        for loss in [results.stack("loss", workers=m)]
        for i, e in enumerate(_series.BUDGETS)
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    budgets = len(_series.BUDGETS)  # the first cells; on 50 machines there are more
    end = [results.stack("loss", workers=m)[:, :budgets, -1].mean(axis=0) for m in _series.WORKERS]  # machines, then ε
    out = [
        shape("more machines, larger loss at the end: M=10, 20, 50, at every ε", "yes",
              ", ".join(f"{' '.join(f'{row[i]:.3g}' for row in end)} (ε={e:g})" for i, e in enumerate(_series.BUDGETS)),
              bool(np.all(np.diff(end, axis=0) > 0)))
    ]  # fmt: skip
    out.append(shape(
        "weaker privacy brings 50 machines nearer to 10: loss at M=50 over M=10, ε=.01 to .2", "falls",
        " ".join(f"{v:.3g}" for v in end[2] / end[0]), bool((end[2] / end[0])[0] > (end[2] / end[0])[-1]),
    ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    panels = [
        (f"ε={e:g}, δ=1e-3", [(f"M={m}", results.stack("loss", workers=m)[:, i]) for m in _series.WORKERS])
        for i, e in enumerate(_series.BUDGETS)
    ]
    return _draw.series(results, panels, "empirical loss", log=True)
