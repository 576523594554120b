"""Tuning: the grid over which the baselines' parameters were chosen, at every ε of the trade-off figures.

The text says that DP-ADMM and DPSGD "are tuned to achieve the best accuracy" and not how. Here every baseline is: step
and its decay for DPSGD and DP-ADMM, the coupling for DP-ADMM, PVP and DVP; the error after 200 rounds decides.
The data sets are others than those of the figures. This costs privacy, too, which no method here pays for: the paper's
comparison has the same flaw, and it favours the baselines, since D-ZOA's parameters are the printed ones.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, own
from confide.runs import metrics
from confide.runs.driver import Driver

from ._setting import DELTA, METHODS, NETWORK, ROUNDS, baseline, problem
from ._tuned import GRID, TUNED

title = "Parameters of the baselines, by grid search"
trials = Trials(published=None, full=3, quick=1)  # data sets; the parameters were chosen with 8
data = ()

EPSILONS = (0.15, 0.35, 0.55, 0.95)
AS_GOOD = 1.5
FIRST, SEEDS = 1000, 5  # data sets from here on, each with so many draws of the noise


def tasks(trials: int) -> list[dict[str, Any]]:
    return [
        {"penalty": penalty, "method": method, "epsilon": epsilon, "data_set": FIRST + i}
        for i in range(trials) for penalty, methods in METHODS.items() for method in methods if method != "D-ZOA"
        for epsilon in (EPSILONS if trials > 1 else EPSILONS[-1:])
    ]  # fmt: skip


def measure(penalty: str, method: str, epsilon: float, data_set: int) -> dict[str, Any]:
    task, errors = problem(data_set, penalty), []
    for parameters in GRID[method]:
        chosen = baseline(method, epsilon, DELTA, **parameters)
        run = Driver(task, NETWORK, chosen, range(SEEDS))  # no account of the privacy, which takes longer than the run
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges ends in `step`
            for _ in range(ROUNDS):
                run.step()
        errors.append(metrics.error(metrics.Snapshot(task, run.public, chosen, estimates=run.estimates)).mean())
    return {"error": np.array([errors])}  # (1, grid)


def searched(results: Results) -> list[tuple[str, str, float, np.ndarray[Any, Any], int]]:
    """penalty, method, ε, mean error of every grid point, and the place of the chosen one."""
    return [
        (penalty, method, epsilon, results.stack("error", penalty=penalty, method=method, epsilon=epsilon).mean(axis=0),
         GRID[method].index(TUNED[penalty][method][epsilon]))
        for penalty, methods in METHODS.items() for method in methods if method != "D-ZOA"
        for epsilon in sorted({task["epsilon"] for task, _ in results})
    ]  # fmt: skip


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"penalty": penalty, "method": method, "epsilon": epsilon, "parameters": json.dumps(GRID[method][i]),
         "error": error[i], "chosen": i == place}
        for penalty, method, epsilon, error, place in searched(results) for i in range(len(error))
    ]  # fmt: skip


def disagreement(results: Results) -> str:
    """What the data sets say one by one of the parameters of one penalty, method and ε."""
    task, _ = results[0]
    place = GRID[task["method"]].index(TUNED[task["penalty"]][task["method"]][task["epsilon"]])
    times = [float(error[place] / error.min()) for error in results.stack("error")]
    each = f"of {len(times)} data sets (8 chose the parameters) they have {', '.join(f'{t:.2f}' for t in times)} times"
    if min(times) < AS_GOOD <= max(times):
        return f"the data sets disagree: {each} the least error"
    return f"no cause is known: {each} the least error"


def findings(results: Results) -> list[Finding]:
    out = []
    for penalty in METHODS:
        rows = [row for row in searched(results) if row[0] == penalty]
        worst, method, epsilon = max((float(e[place] / e.min()), m, eps) for _, m, eps, e, place in rows)
        out.append(own(
            f"{penalty}: the parameters used are the grid's best, or as good (below {AS_GOOD:g} times its least error)",
            f"at most {worst:.2f} times the grid's least error: {method} at ε={epsilon}", worst < AS_GOOD,
            why=disagreement(results.where(penalty=penalty, method=method, epsilon=epsilon)),
        ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9, 3.8))
    shown = sorted({task["epsilon"] for task, _ in results})
    for ax, penalty in zip(figure.subplots(1, 2, sharey=True, width_ratios=(1, 2)), METHODS, strict=True):
        methods = [m for m in METHODS[penalty] if m != "D-ZOA"]
        for place, method in enumerate(methods):
            for _, _, epsilon, error, chosen in (r for r in searched(results) if r[:2] == (penalty, method)):
                x = place + 0.18 * (shown.index(epsilon) - (len(shown) - 1) / 2)
                first = (place, epsilon) == (0, shown[0])
                ax.plot(np.full(len(error), x), error, "_", color="#9aa5ad", markersize=9,
                        label="a point of the grid" if first else None)  # fmt: skip
                ax.plot(x, error[chosen], "o", color="#D55E00", markersize=5, label="chosen" if first else None)
        ax.set(yscale="log", xticks=range(len(methods)), xticklabels=methods, title=penalty)
        ax.set_xlim(-0.5, len(methods) - 0.5)
    figure.supxlabel(f"method; from the left ε = {', '.join(map(str, shown))} in each iteration", fontsize=10)
    figure.axes[0].set_ylabel("normalised error after 200 rounds")
    figure.axes[1].legend(loc="upper right")
    return figure
