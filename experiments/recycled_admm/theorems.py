"""Theorems IV.1, VI.1 and VI.2 at the settings of the experiments, from `confide.papers.theory.recycled_admm`.

Theorem IV.1 takes the gradients' Lipschitz constants M_i: the public bound C/4 + ρ/N, or the data's own
C·λ_max(XᵀX/B)/4 + ρ/N. L and μ are those that need the smallest γ.
Theorems VI.1 and VI.2 leave their constants open: w = 1 and a = 1 here, δ = 0.05, f_ref is the centralised optimum and
Δ = 0, the most favourable. With w open the numbers of rows are orders of magnitude at best; whether Theorem VI.2 can be
met at all does not depend on w.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.papers.reproduce import Finding, Results, Trials, own, shape
from confide.papers.theory import recycled_admm as theory

from . import _draw as d
from . import _setting as s

title = "The convergence condition and the sample-complexity bounds, evaluated"
trials = Trials(published=1, full=1, quick=1)
data = ("adult",)

ETAS = (0.5, 1.0)  # Fig. 1(a), and all others
SQUARE = ((0, 1), (0, 2), (0, 4), (1, 3), (2, 3))  # bipartite: a cycle of four agents and one more
GAPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # τ
FAILURE, W, SMALL_A = 0.05, 1.0, 1.0
MARGIN_AT = tuple(float(g) for g in np.logspace(-1, 5, 25))


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"part": "convergence"}, {"part": "rows"}]


def measure(part: str) -> dict[str, Any]:
    problem = s.problem()
    if part == "rows":
        norm = float(np.linalg.norm(problem.solve()))
        open_ = {"a": SMALL_A, "width": problem.width, "loss_weight": s.C}
        rates = [theory.least_noise_rate(0.0, gap, norm, FAILURE, **open_) for gap in GAPS]
        return {"norm": norm, "least_rate": np.array(rates), "rows": int(problem.shards.sizes[0]),
                "plain": np.array([theory.rows_needed(0.0, gap, norm, FAILURE, w=W) for gap in GAPS]),
                "ratio": private(0.1, norm, problem.width, 1e9) / theory.rows_needed(0.0, 0.1, norm, FAILURE, w=W),
                "loud": np.array([private(gap, norm, problem.width, 2 * rates[0]) for gap in GAPS])}  # fmt: skip
    top = np.array([np.linalg.eigvalsh(gram)[-1] for gram in problem.block.gram])  # of XᵀX/B
    constants = {"public": s.C / 4 + s.RHO / s.AGENTS, "data": s.C * top / 4 + s.RHO / s.AGENTS}
    graph = s.network()
    need = {f"{name}, η={eta:g}": theory.least_damping(graph, eta, M) for name, M in constants.items() for eta in ETAS}
    at = [theory.best_condition(graph, s.ETA, g, constants["data"]) for g in MARGIN_AT]
    try:
        theory.least_damping(confide.Graph.from_edges(SQUARE), s.ETA, 1e-6)
        refused = ""
    except theory.NotSatisfiable as error:
        refused = str(error)
    return {"need": need, "smoothness": np.atleast_1d(constants["data"]), "bipartite": refused,
            "margin": np.array([min(c.first, c.second) for c in at])}  # fmt: skip


def private(gap: float, norm: float, width: int, rate: float) -> float:
    return theory.private_rows_needed(0.0, gap, norm, FAILURE, w=W, a=SMALL_A, noise_rate=rate, width=width,
                                      parties=s.AGENTS, loss_weight=s.C)  # fmt: skip


def table(results: Results) -> list[dict[str, Any]]:
    need, rows = results.one(part="convergence")["need"], results.one(part="rows")
    out = [{"theorem": "IV.1", "at": at, "quantity": "least γ", "value": value} for at, value in need.items()]
    for i, gap in enumerate(GAPS):
        out += [{"theorem": "VI.1", "at": f"τ={gap:g}", "quantity": "rows an agent, over w", "value": rows["plain"][i]},
                {"theorem": "VI.2", "at": f"τ={gap:g}", "quantity": "least α", "value": rows["least_rate"][i]},
                {"theorem": "VI.2", "at": f"τ={gap:g}, α={2 * rows['least_rate'][0]:.0f}",
                 "quantity": "rows an agent, over w", "value": rows["loud"][i]}]  # fmt: skip
    return out


def findings(results: Results) -> list[Finding]:
    c, r = results.one(part="convergence"), results.one(part="rows")
    tenth = GAPS.index(0.1)
    return [
        own(f"Theorem IV.1, sufficient only, asks for a larger γ than the {s.GAMMA:g} that converges in Fig. 1",
            "least γ: " + ", ".join(f"{v:.0f} ({at})" for at, v in c["need"].items())
            + f"; largest M_i {c['smoothness'].max():.0f} (data)", min(c["need"].values()) > s.GAMMA),
        shape("Theorem IV.1: a sufficiently large γ always satisfies it (by arithmetic, not by a run)", "always",
              f"five agents with a triangle: yes; bipartite graph: {c['bipartite']}", not c["bipartite"],
              why="(ii) needs D + A ≻ 0, and D + A is singular on every bipartite graph"),
        own(f"Theorem VI.1, sufficient only, asks for more than the {r['rows']} rows an agent has, τ=0.1",
            f"{r['plain'][tenth]:.3g} with w=1, ‖f_ref‖={r['norm']:.1f}, δ={FAILURE:g}; {r['rows']} rows give "
            f"τ={0.1 * np.sqrt(r['plain'][tenth] / r['rows']):.2f}", r["plain"][tenth] > r["rows"]),
        own("Theorem VI.2, sufficient only, can't be met at the α of the experiments by any number of rows, τ=0.1",
            f"needs α above {r['least_rate'][tenth]:.0f}", r["least_rate"][tenth] > max(s.ALPHAS)),
        shape("Theorem VI.2: reduces to Theorem VI.1 for α → ∞ (by arithmetic, not by a run)", "the same number",
              f"{r['ratio']:.3f} times it", abs(r["ratio"] - 1) < 0.01,
              why="a factor of 2, which the open constant w may hide"),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    c, r = results.one(part="convergence"), results.one(part="rows")
    figure, (left, right) = d.panels(1, 2)
    left.plot(MARGIN_AT, c["margin"], color=d.CYCLE[0])
    left.axhline(0.0, color="grey", linewidth=0.8)
    left.axvline(s.GAMMA, **d.OPTIMUM, label="γ = 0.5, the paper's")
    left.set(xscale="log", yscale="symlog", xlabel="γ", ylabel="smaller margin of (i) and (ii)",
             title="Theorem IV.1, η=1: met above 0")  # fmt: skip
    left.legend(fontsize=7)
    right.plot(GAPS, r["plain"], color="black", marker="o", markersize=3.5, label="Theorem VI.1")
    right.plot(GAPS, r["loud"], color=d.CYCLE[1], marker="o", markersize=3.5,
               label=f"Theorem VI.2, α={2 * r['least_rate'][0]:.0f}")  # fmt: skip
    right.axhline(r["rows"], **d.OPTIMUM, label="rows an agent has")
    right.set(xscale="log", yscale="log", xlabel="τ", ylabel="rows needed, over w", title="Sample complexity")
    right.legend(fontsize=7)
    return figure
