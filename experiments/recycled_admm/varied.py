"""Figure 5 where α_i and η_i vary from node to node: "we observe similar results" (Section VIII-B1), which shows none.

R-ADMM has α_i = 0.8 to 1.2, and every other method the α_i at which each agent's published bound is that of R-ADMM.
MR-ADMM's and M-ADMM's penalties are those of fig5 times the η_i of Fig. 1(b); R-ADMM and ADMM keep η = 1. Everything
else is as in fig5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, own, shape

from . import _draw as d
from . import _setting as s

title = "Four methods with parameters that vary from node to node"
trials = Trials(published=None, full=5, quick=1)
data = ("adult",)

METHODS = ("ADMM", "M-ADMM", "R-ADMM", "MR-ADMM")
ALPHA = (0.8, 1.2, 0.9, 1.1, 1.0)  # of R-ADMM, by agent
ETA = (1.0, 1.03, 1.02, 0.8, 1.01)  # Fig. 1(b)


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"method": m, "seeds": [t, t + 1]} for t in range(trials) for m in METHODS]


def measure(method: str, seeds: list[int]) -> dict[str, Any]:
    made = chosen(method)
    return {**s.trained(made, seeds), "bound": s.claimed(made)[None], "best": np.array([s.optimum()])}


def chosen(method: str) -> Any:
    reference = s.r_admm(ALPHA)
    make: dict[str, Callable[[Any], Any]] = {
        "ADMM": s.dvp, "M-ADMM": lambda alpha: replace(s.m_admm(alpha), coupling=np.array(ETA) / s.C),
        "MR-ADMM": lambda alpha: s.mr_admm(alpha, eta=ETA),
    }  # fmt: skip
    return reference if method == "R-ADMM" else matched(make[method], s.claimed(reference))


def matched(make: Callable[[Any], Any], bounds: s.Array) -> Any:
    """The method with the α_i at which each agent's published bound, affine in α_i, is that of `bounds`."""
    ones = np.ones(s.AGENTS)
    one, two = (s.claimed(make(alpha * ones)) for alpha in (1.0, 2.0))
    return make(1.0 + (bounds - one) / (two - one))


def table(results: Results) -> list[dict[str, Any]]:
    return [{"method": m, **s.summary(results.where(method=m)),
             **{f"bound of agent {i + 1}": b for i, b in enumerate(results.stack("bound", method=m)[0])}}
            for m in METHODS]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    rows = {row["method"]: row for row in table(results)}
    loss, error = ({m: rows[m][k] for m in METHODS} for k in ("loss", "test_error"))
    said = "; ".join(f"{name} " + ", ".join(f"{m} {x:.4g}" for m, x in of.items())
                     for name, of in (("L(50)", loss), ("test error", error)))  # fmt: skip
    below = all(max(of["R-ADMM"], of["MR-ADMM"]) < min(of["ADMM"], of["M-ADMM"]) for of in (loss, error))
    return [
        shape("α_i and η_i that vary: R- and MR-ADMM have smaller losses and test errors than ADMM and M-ADMM, and "
              "MR-ADMM a smaller loss than R-ADMM", "similar results", said,
              below and loss["MR-ADMM"] < loss["R-ADMM"]),
        own("with an α_i of each agent's own M-ADMM has a smaller loss than ADMM", said, loss["M-ADMM"] < loss["ADMM"],
            why="no cause is known: M-ADMM's penalty and dual step are chosen here, and no run has others"),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7, 4.2))
    ax = figure.subplots()
    for m in METHODS:
        d.band(ax, results.stack("loss", method=m), color=d.COLOURS[m], label=m)
    ax.axhline(float(results.stack("best")[0][0]), **d.OPTIMUM, label="optimum")
    ax.set(yscale="log", xlabel="iteration t", ylabel="average loss L(t)", title="α$_i$ and η$_i$ vary; equal bounds")
    d.plain_ticks(ax)
    ax.legend(fontsize=8)
    return figure
