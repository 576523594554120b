"""Figure 1: empirical loss by iteration on 10, 20 and 50 machines, with an l1 penalty.

Panels are ε=.01, .05, .1 and .2 per iteration at δ=1e-3, τ=.5; the loss is that of every worker at its own noisy model.
The text gives no numbers of this figure; its claims in words are the findings. Privacy is assumed (c1 is not enforced).
"""

from typing import Any

from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _draw, _series

KIND = "l1"
title = f"Empirical loss by number of machines, {KIND} penalty"
trials = Trials(published=100, full=100, quick=1)
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"workers": m, "trial": t} for t in range(trials) for m in _series.WORKERS]


def measure(workers: int, trial: int) -> dict[str, Any]:
    return _series.losses(workers, KIND, _series.BY_EPSILON, trial)


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"epsilon an iteration": e, "machines": m, "loss at the end": loss[:, i, -1].mean(),
         "lowest": loss[:, i, -1].min(), "highest": loss[:, i, -1].max(), "guarantee": "assumed"}
        for m in _series.WORKERS
        for loss in [results.stack("loss", workers=m)]
        for i, e in enumerate(_series.BUDGETS)
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    end = [results.stack("loss", workers=m)[:, :, -1].mean(axis=0) for m in _series.WORKERS]  # machines, then ε
    out = [
        shape(f"more machines, larger loss at the end: ε={e:g}, M=10, 20, 50", "yes",
              " ".join(f"{row[i]:.3g}" for row in end), end[0][i] < end[1][i] < end[2][i])
        for i, e in enumerate(_series.BUDGETS)
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
