"""Figure 1: D-ZOA against two central zeroth-order methods, OR-ZO and ZOO-ADMM, by the number of iterations.

Section VI's settings for all three: 200 iterations, α0 = 0.54, u1 = 1. The text does not say which objective: lasso and
ridge are shown. D-ZOA has the J of (22) at ε = .95. The central methods hold all rows, use 150 directions, about as
many as an agent of degree 2, and the same rule for the step; ZOO-ADMM has ρ = 4. Their model is the last iterate, and
their error counts K times, since D-ZOA's is a sum over K agents; it is divided by the mean of ‖β^c‖² over data sets
(see fig4). An iteration of D-ZOA has 100 inner ones, so D-ZOA evaluates its objective a hundred times as often.
fig1-long has 400 iterations and central methods with a step of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from ._draw import COLOURS, ERROR, band
from ._runs import measure, task
from ._setting import DELTA, ROUNDS

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
title = "D-ZOA and two central zeroth-order methods"
trials = Trials(published=100, full=100, quick=1)
data = ()

PENALTIES = ("lasso", "ridge")
METHODS = ("OR-ZO", "ZOO-ADMM", "D-ZOA")
EPSILON, TAIL, HALF = 0.95, 20, 0.5
LAST, FALLS = 50, 0.9  # still falls: in so many iterations to this part of the error, or less
FASTER = {
    "lasso": "the printed step: with α0 = 2 both central methods are the faster ones (fig1-long)",
    "ridge": "no cause is known: no run of ridge has another step",
}
SHOWN = (1, 10, 25, 50, 100, 150, 200)


def tasks(trials: int) -> list[dict[str, Any]]:
    work = [one for p in PENALTIES for m in METHODS for one in task(m, p, EPSILON, DELTA, trials)]
    return sorted(work, key=lambda one: one["trials"][0])


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"penalty": p, "method": m, "iteration": t,
         "error": results.stack("error", penalty=p, method=m)[:, t - 1].mean(),
         "guarantee": results.where(method=m)[0][1]["label"]}
        for p in PENALTIES for m in METHODS for t in SHOWN
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    return [finding for p in PENALTIES for finding in judged(p, results.where(penalty=p), ROUNDS)]


def judged(penalty: str, results: Results, rounds: int) -> list[Finding]:
    """What the text says of the curves of one objective."""
    mean = {m: results.stack("error", method=m).mean(axis=0) for m in METHODS}
    end = {m: float(curve[-TAIL:].mean()) for m, curve in mean.items()}
    reach = {m: int(np.argmax(curve < HALF)) + 1 if np.any(curve < HALF) else rounds + 1 for m, curve in mean.items()}
    ratios = [end["D-ZOA"] / end[m] for m in ("OR-ZO", "ZOO-ADMM")]
    said = ", ".join(f"{m} {v:.2g}" for m, v in end.items())
    times = ", ".join(f"{m} {v if v <= rounds else 'not reached'}" for m, v in reach.items())
    return [
        shape(f"{penalty}: D-ZOA's error at the end is comparable to the central methods' (within 3 times each)",
              "comparable", said, all(1 / 3 <= ratio <= 3 for ratio in ratios),
              why=unsteady(mean)),
        shape(f"{penalty}: the central methods converge faster (iterations to an error of {HALF})", "faster", times,
              reach["D-ZOA"] > max(reach["OR-ZO"], reach["ZOO-ADMM"]),
              why=FASTER[penalty]),
    ]  # fmt: skip


def unsteady(mean: dict[str, Any]) -> str:
    """Which methods still fall in their last iterations: their errors are not steady."""
    fall = {m: float(mean[m][-TAIL:].mean() / mean[m][-LAST - TAIL : -LAST].mean()) for m in METHODS}
    said = ", ".join(f"{m} to {f:.0%}" for m, f in fall.items() if f <= FALLS)
    return f"not steady yet: in the last {LAST} iterations errors fall ({said})" if said else "no cause is known"


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9.5, 4))
    for ax, penalty in zip(figure.subplots(1, 2, sharey=True), PENALTIES, strict=True):
        panel(ax, penalty, results.where(penalty=penalty))
    figure.axes[1].set_ylabel("")
    figure.axes[0].legend()
    return figure


def panel(ax: Any, penalty: str, results: Results) -> None:
    for m in METHODS:
        text = f"{m} ({'central, ' if m != 'D-ZOA' else ''}{results.where(method=m)[0][1]['label']})"
        error = results.stack("error", method=m)
        band(ax, np.arange(1, error.shape[1] + 1), error, color=COLOURS[m], label=text)
    ax.set(yscale="log", xlabel="iteration", ylabel=ERROR, xlim=(0, error.shape[1]), title=penalty)
