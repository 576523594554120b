"""Figure 1 with one sensitivity for all rounds, that of the first: a comparison, not the paper's Lemma I.

The corollary composes as if Δ were constant, so this is how its noise might have been set: CDP-ADMM's variance falls as
R^t and DDP- and DP-ADMM's as 1/√t from the first round's, and together their rounds cost what T rounds of (ε, δ) do.
Everything else as in fig1. It shows that the round where CDP-ADMM passes DP-ADMM is a matter of this choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.papers.reproduce import Finding, Results, Trials, own

from ._draw import COLOURS, band
from ._setting import DELTA, METHODS, ROUNDS, crossing, method, problem

title = "Figure 1 with the first round's sensitivity for all rounds"
trials = Trials(published=None, full=50, quick=10)
data = ()

TOTAL = 10.0


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"name": m, "seeds": [a, min(a + 10, trials)]} for a in range(0, trials, 10) for m in METHODS]


def measure(name: str, seeds: list[int]) -> dict[str, Any]:
    errors, exact = [], []
    for trial in range(*seeds):
        task, graph = problem(trial)
        chosen = method(name, TOTAL, task.public(graph), own=False)
        run = confide.simulate(task, graph, chosen, seeds=[trial], record=("error",))
        errors.append(run.history["error"][:, 0])
        exact.append(run.privacy.epsilon(DELTA))
    return {"error": np.array(errors), "exact": np.array(exact), "guarantee": str(run.privacy.guarantee.label)}


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"method": name, "round": t, "error": results.stack("error", name=name)[:, t - 1].mean(),
         "exact ε if c1 held": results.stack("exact", name=name).max(), "δ": DELTA,
         "guarantee": results.where(name=name)[0][1]["guarantee"]}
        for name in METHODS for t in (10, 50, 100, 150, 200)
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    mean = {name: results.stack("error", name=name).mean(axis=0) for name in METHODS}
    exact = [float(results.stack("exact", name=name).max()) for name in METHODS]
    dp, ddp, cdp = (mean[name] for name in METHODS)
    after = crossing(cdp, dp)
    return [
        own("with one sensitivity for all rounds CDP-ADMM passes DP-ADMM well before t=180", f"after t={after}",
            after < 180, why="the round where it does is a matter of few trials"),
        own("and ends below DDP-ADMM", f"{cdp[-1] / ddp[-1]:.2g} of its error", cdp[-1] < ddp[-1]),
        own("the exact totals stay below the claimed 10: later rounds' sensitivities are smaller than the first's",
            ", ".join(f"{name} {e:.3g}" for name, e in zip(METHODS, exact, strict=True)), max(exact) < TOTAL),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7.2, 4.4))
    ax = figure.subplots()
    for name in METHODS:
        exact = results.stack("exact", name=name).max()
        band(ax, np.arange(1, ROUNDS + 1), results.stack("error", name=name), color=COLOURS[name],
             label=f"{name} (exact ε {exact:.2g})")  # fmt: skip
    ax.set(yscale="log", xlim=(0, ROUNDS), xlabel="round t", ylabel="normalised error, sum over 50 agents")
    ax.set_title(f"one sensitivity for all rounds; claimed total ε = {TOTAL:g}; {results.trials} trials, 80 % band")
    ax.legend()
    return figure
