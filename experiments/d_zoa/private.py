"""PrivateZeroth, the rigorous form of the idea, at the total that D-ZOA claims; not in the paper.

D-ZOA's messages are noised by nothing that is accounted for, so it has no exact total; it claims (25). PrivateZeroth
clips every row's two-point difference, adds calibrated Gaussian noise to their mean and charges every inner step: its
*exact* total is made the same (ε̄, δ) = (2.04, 10⁻³) and (12.9, 10⁻³), the claims for ε = .15 and .95. With the paper's
20 rows per agent a proof leaves little to learn from (an error of K = 5 is that of β = 0); 200 and 2,000 leave more.
Its parameters are the best of GRID on two other data sets for each ε̄ and number of rows; the grid's errors at 20 and
200 rows are measured again here (2,000 would take minutes). As for the baselines, that search is not paid for.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.algorithms import PrivateZeroth
from confide.papers.reproduce import Finding, Results, Trials, own
from confide.privacy import published

from ._draw import COLOURS, ERROR
from ._setting import AGENTS, DELTA, EPSILONS, NETWORK, ROUNDS, chunks, normalised, problem, trial_errors

title = "PrivateZeroth beside D-ZOA at one total"
trials = Trials(published=None, full=20, quick=2)
data = ()

PENALISED, ROWS, SEARCHED, SEEDS = "ridge", (20, 200, 2000), (1000, 1001), 4
GRID = [
    {"rounds": r, "directions": 20, "step": s, "coupling": p, "clip": c}
    for r, s, p, c in product((20, 100), (0.1, 0.3, 1.0), (0.3, 1.0), (0.3, 1.0))
]  # fmt: skip
CHOSEN = {0.15: {20: 6, 200: 19, 2000: 23}, 0.95: {20: 7, 200: 23, 2000: 23}}  # ε -> rows -> place in GRID


def tasks(trials: int) -> list[dict[str, Any]]:
    runs = [{"what": "error", "method": "PrivateZeroth", "epsilon": e, "rows": n, "trials": part}
            for e in EPSILONS for n in ROWS for part in chunks(trials, 2, 9)]  # fmt: skip
    runs += [{"what": "error", "method": "D-ZOA", "epsilon": e, "rows": 20, "trials": [a, a + 1]}
             for e in EPSILONS for a in range(min(trials, 5))]  # fmt: skip
    return runs + [{"what": "grid", "method": "PrivateZeroth", "epsilon": e, "rows": n, "trials": list(SEARCHED)}
                   for e in EPSILONS for n in ROWS[: 1 if trials < 4 else 2]]  # fmt: skip


def measure(what: str, method: str, epsilon: float, rows: int, trials: list[int]) -> dict[str, Any]:
    if method == "D-ZOA":
        return {"error": trial_errors(method, PENALISED, epsilon, DELTA, range(*trials))[:, -1], "label": "refuted"}
    if what == "grid":
        return {"error": np.array([final(epsilon, rows, i, trials, SEEDS)[0].mean() for i in range(len(GRID))])}
    error, exact, label = final(epsilon, rows, CHOSEN[epsilon][rows], range(*trials), 1)
    return {"error": error, "exact": exact, "label": label}


def final(epsilon: float, rows: int, place: int, data_sets: Any, seeds: int) -> tuple[Any, float, str]:
    """Errors at the end, largest exact total, and the guarantee's label."""
    errors, exact = [], 0.0
    for trial in data_sets:
        task = problem(trial, PENALISED, rows)
        method = PrivateZeroth(**GRID[place]).calibrated(task.public(NETWORK), total(epsilon), DELTA)  # type: ignore[arg-type]
        try:
            run = confide.simulate(task, NETWORK, method, seeds=range(trial, trial + seeds),
                                   record={"error": normalised(PENALISED, rows)}, every=method.rounds)  # fmt: skip
        except FloatingPointError:  # a step too large for its penalty parameter
            return np.array([np.inf]), 0.0, ""
        errors.append(run.history["error"][-1])
        exact = max(exact, run.privacy.epsilon(DELTA))
    return np.concatenate(errors), exact, str(run.privacy.guarantee.label)


def total(epsilon: float) -> float:
    """ε̄ of (25)."""
    return float(published.d_zoa_total(epsilon, ROUNDS, DELTA).epsilon)


def table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for method, e, n in dict.fromkeys((t["method"], t["epsilon"], t["rows"]) for t, _ in results.where(what="error")):
        some = results.where(what="error", method=method, epsilon=e, rows=n)
        rows.append({
            "method": method, "total epsilon": total(e), "rows an agent": n, "error": mean(results, method, e, n),
            "exact total": max(v["exact"] for _, v in some) if method != "D-ZOA" else "",
            "guarantee": some[0][1]["label"], "trials": len(some.stack("error")),
            "parameters": str(GRID[CHOSEN[e][n]]) if method != "D-ZOA" else "",
        })  # fmt: skip
    return rows


def mean(results: Results, method: str, epsilon: float, rows: int) -> float:
    return float(results.stack("error", what="error", method=method, epsilon=epsilon, rows=rows).mean())


def findings(results: Results) -> list[Finding]:
    out = []
    for e in EPSILONS:
        refuted = mean(results, "D-ZOA", e, 20)
        mine = {n: mean(results, "PrivateZeroth", e, n) for n in ROWS}
        out.append(own(f"ε̄={total(e):.3g}: a proof costs accuracy at 20 rows an agent, and less with more rows",
                         f"D-ZOA (refuted) {refuted:.2g}; PrivateZeroth "
                         + ", ".join(f"{v:.2g} at {n:,} rows" for n, v in mine.items()),
                         refuted < mine[20] and mine[2000] < mine[200] < mine[20]))  # fmt: skip
    worst = max(float(v["error"][CHOSEN[t["epsilon"]][t["rows"]]] / np.min(v["error"]))
                for t, v in results.where(what="grid"))  # fmt: skip
    out.append(own("the parameters used are the grid's best, or as good",
                     f"error at most {worst:.2f} times the grid's least", worst < 1.1))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7, 4))
    ax = figure.subplots()
    for e, line in zip(EPSILONS, ("--", "-"), strict=True):
        errors = [mean(results, "PrivateZeroth", e, n) for n in ROWS]
        ax.plot(ROWS, errors, "o" + line, color=COLOURS["PrivateZeroth"], markersize=4,
                label=f"PrivateZeroth (proven), exact total ε = {total(e):.3g}")  # fmt: skip
        ax.plot(20, mean(results, "D-ZOA", e, 20), "s", color=COLOURS["D-ZOA"],
                fillstyle="full" if line == "-" else "none",
                label=f"D-ZOA (refuted), claimed total ε = {total(e):.3g}")  # fmt: skip
    ax.axhline(AGENTS, color="#22303c", linewidth=1, linestyle=":", label="β = 0")
    ax.set(xscale="log", yscale="log", xlabel="rows per agent", ylabel=ERROR, title="ridge, δ = 10⁻³")
    ax.legend(fontsize=8, handlelength=4, loc="lower right")
    return figure
