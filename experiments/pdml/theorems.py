"""Theorems 1 and 2 and their corollaries as numbers, and the condition (25) that Theorem 1 rests on.

`confide.papers.theory.pdml` has calculators and errata. (25) asks that (1 - b)(1 + φ) exceed σ²_max(L₊)/σ²_min(L₊)
for some b in (0, 1) and λ₁ > 1. Shown are both sides at their most favourable, for the constants of Adult (a = 1, κ =
ϱ = 1, c₃ = 1/4, 10 servers, so that J̃ is 0.1-strongly convex with a 0.35-Lipschitz gradient). Where (25) fails
Theorem 1 says nothing; `any_graph` is the bound that holds instead. The bounds' open constants: rows of norm 1,
classifiers of norm at most 3, δ = 0.05, 4,500 rows per server, ε = 0.4, R = 1, 100 rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide import Graph
from confide.papers.reproduce import Finding, Results, Trials, own, shape
from confide.papers.theory import pdml

from ._setting import COUPLING, DECAY, DEVIATION, ROUNDS, SERVERS, STRENGTH, network

title = "What the theorems give"
trials = Trials(published=None, full=200, quick=20)
data = ()

RADIUS, ROW_NORM, DELTA, ROWS, EPSILON, BOUND, WIDTH = 3.0, 1.0, 0.05, 4500, 0.4, 1.0, 105
NAMED = {"two servers": Graph.complete(2), "complete, 10": Graph.complete(10), "complete, 60": Graph.complete(60),
         "ring, 10": Graph.ring(10), "star, 10": Graph.star(10)}  # fmt: skip


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"first": 0, "count": trials}]


def measure(first: int, count: int) -> dict[str, Any]:
    """(25)'s two sides for networks of 10 servers and 13 links, and for graphs with names."""
    drawn = [sides(network(seed)) for seed in range(first, first + count)]
    found = {name: per_server(name, bound) for name, bound in bounds().items()}
    return {"drawn": np.array(drawn), "named": np.array([sides(graph) for graph in NAMED.values()]), "bounds": found}


def sides(graph: Graph) -> tuple[float, float]:
    n, c3 = graph.size, pdml.logistic_bounds(RADIUS, ROW_NORM).curvature
    strong, smooth = pdml.strong_convexity(STRENGTH, 1.0, n), pdml.smoothness(c3, STRENGTH, 1.0, n)
    found = pdml.condition(graph, strong, smooth)
    return found.reached, found.needed


def bounds() -> dict[str, pdml.Bound]:
    """Per server, on the network of the first trial."""
    graph, loss = network(0), pdml.logistic_bounds(RADIUS, ROW_NORM)
    rad = [pdml.linear_rademacher(RADIUS, ROW_NORM, ROWS)] * SERVERS
    labels = pdml.label_term(EPSILON, [ROWS] * SERVERS, rad, loss, DELTA)
    noise = pdml.NoiseSetting(BOUND, [DEVIATION] * SERVERS, DECAY, WIDTH)
    start = {"distance": SERVERS * RADIUS**2, "dual_start": 0.0, "labels": labels}
    return {
        "any graph, for Theorem 1": pdml.any_graph(graph, COUPLING, noise, ROUNDS, radius=RADIUS, **start),
        "Theorem 2": pdml.theorem2(graph, COUPLING, ROUNDS, **start),
        "Corollary 1": pdml.corollary1(SERVERS, noise, a=STRENGTH, kappa=1.0, labels=labels),
        "Corollary 2": pdml.corollary2(SERVERS, labels=labels),
    }


def per_server(name: str, bound: pdml.Bound) -> float:
    """The theorems sum over the servers, the corollaries do not."""
    return bound.value if name.startswith("Corollary") else bound.value / SERVERS


def table(results: Results) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, (reached, needed) in zip(NAMED, results[0][1]["named"], strict=True):
        rows.append({"what": "(25)", "graph": name, "reached": reached, "needed": needed,
                     "verdict": "satisfiable" if reached > needed else "not satisfiable"})  # fmt: skip
    for reached, needed in results[0][1]["drawn"]:
        rows.append({"what": "(25)", "graph": "10 servers, 13 links", "reached": reached, "needed": needed,
                     "verdict": "satisfiable" if reached > needed else "not satisfiable"})  # fmt: skip
    for name, bound in bounds().items():
        rows.append({"what": name, **bound.terms, "per_server": per_server(name, bound)})
    return rows


def findings(results: Results) -> list[Finding]:
    drawn = results[0][1]["drawn"]
    met = int(np.sum(drawn[:, 0] > drawn[:, 1]))
    close = drawn[np.argmax(drawn[:, 0] / drawn[:, 1])]
    found = results[0][1]["bounds"]
    blank = float(np.log(2))  # the loss of w = 0, which any bound worth having is below
    return [
        shape("Theorem 1's condition (25) can be met on the paper's network (by arithmetic, not by a run)",
              "if b and λ₁ can be chosen",
              f"on {met} of {len(drawn)} networks; nearest: 1 + φ = {close[0]:.3f}, needed {close[1]:.1f}", met > 0,
              why="not satisfiable: σ²_max(L₊)/σ²_min(L₊) is far above 1 + φ on every sparse graph"),
        own("at the paper's sizes Corollary 2's bound is below the loss at w = 0 (by arithmetic, not by a run)",
            ", ".join(f"{k}: {v:.2g}" for k, v in found.items()) + f" per server; the loss at w = 0 is {blank:.2f}",
            found["Corollary 2"] < blank,
            why="the labels' term of (28) alone is above the loss of a constant: right, and vacuous"),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7, 4.2))
    ax = figure.subplots()
    drawn = results[0][1]["drawn"]
    ax.loglog(drawn[:, 1], drawn[:, 0], ".", color="C0", alpha=0.5, label="10 servers, 13 links")
    for (reached, needed), name, i in zip(results[0][1]["named"], NAMED, range(len(NAMED)), strict=True):
        ax.plot(needed, reached, "s", color="C1", label="graphs by name" if i == 0 else None)
        place = {"ring, 10": (-50, 8), "star, 10": (4, 8)}.get(name, (6, 4))  # these two all but coincide
        ax.annotate(name, (needed, reached), place, textcoords="offset points", fontsize=9)
    line = np.geomspace(0.9, 100, 50)
    ax.fill_between(line, line, 200, color="C2", alpha=0.12, linewidth=0, label="(25) can be met")
    ax.set(xlabel="needed: σ²_max(L₊) / σ²_min(L₊)", ylabel="reached at best: 1 + φ", ylim=(0.9, 20))
    ax.legend(loc="upper right")
    return figure
