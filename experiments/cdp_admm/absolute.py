"""The least absolute deviation, which the text names as an objective that is not smooth: Σ_k mean |xᵀβ - y| + λ‖β‖₁.

Named and not simulated in the paper. Data, graph, λ, ρ, η_t, δ and R of fig1, with |·| in place of the square. β_c and
the optimum's objective are a linear program's (HiGHS). Without noise CDP-ADMM runs for 1,000 rounds; after 200 it is
judged. With noise it runs for 200 at total privacy loss 10, the corollary inverted as in fig1: for c1 = 1, and for
c1 = max‖x‖, with which Assumption 1 holds here, since a row's gradient is ±x. max‖x‖ is read off the rows, so the
guarantee is still *assumed*. Judged is the objective (1) at the mean of the agents' β_k.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from scipy.optimize import linprog

import confide
from confide.papers.reproduce import Finding, Results, Trials, own, shape
from confide.privacy import published

from ._draw import band
from ._setting import BOUND, COUPLING, DECAY, DELTA, HALF, ROUNDS, STEP, OwnCDPADMM, problem

title = "The least absolute deviation"
trials = Trials(published=None, full=10, quick=2)
data = ()

TOTAL = 10.0
LONG = 1000  # rounds of the run without noise, of which the first 200 are judged
CLOSE = 0.01  # "minimal impact on overall accuracy": our reading, the paper has no number
CASES = ("no noise", "c1 = 1", "c1 = max‖x‖")
COLOURS = dict(zip(CASES, ("#22303c", "#D55E00", "#0072B2"), strict=True))


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"case": c, "seeds": [a, min(a + 5, trials)]} for a in range(0, trials, 5) for c in CASES]


def pose(trial: int) -> tuple[confide.Problem, confide.Graph]:
    """fig1's data and graph under |xᵀβ - y|, which needs no halves."""
    squares, graph = problem(trial)
    penalty = confide.penalties.L1(squares.penalty.strength / HALF)  # type: ignore[attr-defined]
    return confide.Problem(squares.shards, confide.losses.Absolute(), penalty), graph


def optimum(task: confide.Problem) -> Any:
    """argmin of (1) as a linear program: β = p - q, residuals a - b, all four at least 0."""
    X, y, strength = task.shards.X, task.shards.y, task.penalty.strength  # type: ignore[attr-defined]
    rows, width = X.shape
    sizes = np.repeat(task.shards.sizes, task.shards.sizes)
    cost = np.concatenate([np.full(2 * width, strength), 1 / sizes, 1 / sizes])
    equal = sp.hstack([X, -X, sp.eye(rows), -sp.eye(rows)], format="csr")
    found = linprog(cost, A_eq=equal, b_eq=y, bounds=(0, None), method="highs")
    if not found.success:
        raise RuntimeError(f"linprog: {found.message}")
    return found.x[:width] - found.x[width : 2 * width]


def longest(task: confide.Problem, beta: Any) -> float:
    """The largest norm of a row's gradient at β."""
    X, y = task.shards.X, task.shards.y
    return float(np.max(np.abs(task.loss.slope(X @ beta, y)) * np.linalg.norm(X, axis=1)))


def measure(case: str, seeds: list[int]) -> dict[str, Any]:
    out: dict[str, list[Any]] = {k: [] for k in ("error", "off", "worst", "exact", "true", "gradient", "c1")}
    for trial in range(*seeds):
        task, graph = pose(trial)
        best, public = optimum(task), task.public(graph)
        least, largest = float(task.objective(best)), float(np.max(np.linalg.norm(task.shards.X, axis=1)))
        c1 = largest if case == CASES[2] else BOUND
        made = OwnCDPADMM(rounds=ROUNDS, coupling=COUPLING, step=STEP, step_decay=0.5, ball=math.inf, assumed_bound=c1,
                          noise_decay=DECAY)  # fmt: skip
        first = made.sensitivity(1, public)[:, 0]
        cost = published.cdp_admm_first_cost(TOTAL, DELTA, DECAY, ROUNDS)
        made = replace(made, noise=first / math.sqrt(2 * cost))
        if case == CASES[0]:
            made = replace(made, noise=0.0, rounds=LONG)

        def error(shot: Any, best: Any = best) -> Any:
            return np.sum((shot.estimates - best) ** 2, axis=(1, 2)) / np.sum(best**2)

        def off(shot: Any, task: Any = task, least: float = least) -> Any:
            return np.array([task.objective(b) / least - 1 for b in shot.estimates.mean(axis=1)])

        run = confide.simulate(task, graph, made, seeds=[trial], record={"error": error, "off": off})
        end = run
        if case == CASES[0]:
            end = confide.simulate(task, graph, replace(made, rounds=ROUNDS), seeds=[trial], record=())
        out["error"].append(run.history["error"][:, 0])
        out["off"].append(run.history["off"][:, 0])
        out["worst"].append(max(task.objective(b) for b in end.estimates[0]) / least - 1)
        if case != CASES[0]:
            out["exact"].append(run.privacy.epsilon(DELTA))
            bounded = confide.simulate(task, graph, replace(made, assumed_bound=largest), seeds=[trial], record=())
            out["true"].append(bounded.privacy.epsilon(DELTA))
        out["gradient"].append(max(longest(task, b) for b in (np.zeros(task.width), best, *run.estimates[0])))
        out["c1"].append(c1)
    return {**{k: np.array(v) for k, v in out.items()}, "guarantee": str(run.privacy.guarantee.label)}


def table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for case in CASES:
        error, off = (results.stack(k, case=case) for k in ("error", "off"))
        exact, true = (results.stack(k, case=case) for k in ("exact", "true"))
        for t in (10, 50, 100, 150, 200, *((LONG,) if case == CASES[0] else ())):
            rows.append({
                "case": case, "round": t, "error": error[:, t - 1].mean(),
                "objective above the optimum's, relative": off[:, t - 1].mean(),
                "c1": results.stack("c1", case=case).mean(),
                "largest gradient of a row": results.stack("gradient", case=case).max(),
                "claimed total ε": TOTAL if len(exact) else None, "exact ε if c1 held": exact.max(initial=0) or None,
                "exact ε for max‖x‖": true.max(initial=0) or None, "δ": DELTA,
                "guarantee": results.where(case=case)[0][1]["guarantee"],
            })  # fmt: skip
    return rows


def findings(results: Results) -> list[Finding]:
    off = {c: results.stack("off", case=c).mean(axis=0) for c in CASES}
    end = {c: float(off[c][ROUNDS - 1]) for c in CASES}
    worst = {c: float(results.stack("worst", case=c).max()) for c in CASES}
    none, small, large = CASES
    later = float(off[none][-1])
    ratio = float(np.max(results.stack("gradient", case=large) / results.stack("c1", case=large)))
    beyond = float(results.stack("gradient", case=small).max())
    exact, true = (float(results.stack(k, case=c).max()) for k, c in (("exact", large), ("true", small)))
    more = f"no cause is known; after {LONG:,} rounds it is {later:.2%}"
    return [
        shape(f"the least absolute deviation is solved: objective within {CLOSE:.0%} of the optimum's after {ROUNDS} "
              "rounds, no noise", "capable of solving nonsmooth objectives with a minimal impact on overall accuracy",
              f"{end[none]:.2%}, at the worst agent {worst[none]:.2%}", end[none] < CLOSE,
              why=f"{ROUNDS} rounds are too few: {later:.2%} after {LONG:,}" if later < CLOSE else more),
        *(own(f"and with noise at total {TOTAL:g} for {c}", f"{end[c]:.2%}, at the worst agent {worst[c]:.2%}",
              end[c] < CLOSE, why=f"the noise: without it {end[none]:.2%}" if end[none] < CLOSE else
              f"not the noise alone: without it {end[none]:.2%}") for c in (small, large)),
        own("without noise it goes on converging: after 1,000 rounds less than half of what it is above after 200",
            f"{later:.2%}", later < 0.5 * end[none], why="no cause is known"),
        own("Assumption 1 holds with c1 = max‖x‖: no row's gradient is longer, at 0, at the optimum and at the end",
            f"at most {ratio:.3g} times c1; with c1 = 1 {beyond:.3g} times", ratio <= 1 + 1e-9),
        own(f"noise for c1 = max‖x‖ has an exact total of at most the claimed {TOTAL:g}",
            f"{exact:.3g}; the noise for c1 = 1 has {true:.3g} on these rows", exact <= TOTAL,
            why="the corollary is no exact composition"),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9, 4.2))
    left, right = figure.subplots(1, 2)
    for case in CASES:
        for ax, key in ((left, "off"), (right, "error")):
            values = results.stack(key, case=case)
            text = case if case == CASES[0] else f"{case}: claimed total ε = {TOTAL:g}"
            band(ax, np.arange(1, values.shape[1] + 1), values, color=COLOURS[case], label=text)
    left.axhline(CLOSE, color="#9aa5ad", linewidth=1, linestyle=":", label=f"{CLOSE:.0%}")
    left.set(xscale="log", yscale="log", xlim=(1, LONG), xlabel="round t",
             ylabel="objective above the optimum's, relative", title="at the mean of the agents")  # fmt: skip
    right.set(
        xscale="log", yscale="log", xlim=(1, LONG), xlabel="round t", title="normalised error, sum over 50 agents"
    )
    left.legend(loc="lower left", fontsize=8)
    return figure
