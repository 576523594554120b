"""The generalised lasso, which the text names beside the lasso: λ‖Dβ‖₁ with D the differences of neighbours.

Named and not simulated in the paper, which says "capable of solving nonsmooth objectives with a minimal impact on
overall accuracy" and gives no distance: 1 % is ours. Setting of fig1, but θ has two levels, so that most differences
are 0, and λ is 0.01 ‖Xᵀy‖∞ as a penalty is to show. (a) Without noise CDP-ADMM's linearised step reaches the optimum of
the generalised lasso, with one η_t for all agents and with an η_k^t of each agent's own (η_t over 1 to 2, by place in
the network). (b) At total 10 both are run with noise, each round's for its own sensitivity. The optimum is that of
another algorithm (ADMM on z = Dβ); a test has CVXPY's.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.papers.reproduce import Finding, Results, Trials, own, shape

from ._draw import band
from ._setting import AGENTS, DELTA, HALF, LINKS, NOISE_VARIANCE, ROWS, STEP, WIDTH, method

title = "The generalised lasso, and a step of each agent's own"
trials = Trials(published=None, full=20, quick=2)
data = ()

ROUNDS, LASSO, TOTAL = 200, 0.01, 10.0
DIFFERENCES = np.diff(np.eye(WIDTH), axis=0)
STEPS = ("one step", "own steps")
TIES = (
    "the optimum's neighbours are tied, where a subgradient of ‖Dβ‖₁ does not vanish: the linearised step goes past "
    "them by about λη_t/K in every round, which falls as 1/√t only"
)


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"steps": s, "noise": n, "seeds": [a, min(a + 5, trials)]}
            for a in range(0, trials, 5) for s in STEPS for n in (False, True)]  # fmt: skip


def pose(trial: int) -> tuple[confide.Problem, confide.Graph]:
    rng = np.random.default_rng([2024, trial])
    X = rng.normal(size=(AGENTS * ROWS, WIDTH))
    theta = np.repeat(rng.normal(size=2), WIDTH // 2)
    y = X @ theta + rng.normal(scale=math.sqrt(NOISE_VARIANCE), size=len(X))
    penalty = confide.penalties.GeneralisedLasso(DIFFERENCES, HALF * LASSO * float(np.max(np.abs(X.T @ y))))
    shards = confide.Shards.from_groups(X, y, np.repeat(np.arange(AGENTS), ROWS))
    return confide.Problem(shards, confide.losses.Squared(), penalty), confide.Graph.erdos_renyi(
        AGENTS, LINKS, seed=trial
    )


def optimum(task: confide.Problem, rounds: int = 4000) -> Any:
    """argmin ½βᵀHβ - bᵀβ + λ‖Dβ‖₁ by ADMM on z = Dβ."""
    X, y, D = task.shards.X, task.shards.y, DIFFERENCES
    H, b, strength = X.T @ X / ROWS, X.T @ y / ROWS, task.penalty.strength  # type: ignore[attr-defined]
    rho = float(np.linalg.eigvalsh(H)[-1])
    inverse, z, u = np.linalg.inv(H + rho * D.T @ D), np.zeros(len(D)), np.zeros(len(D))
    for _ in range(rounds):
        beta = inverse @ (b + rho * D.T @ (z - u))
        z = np.sign(D @ beta + u) * np.maximum(np.abs(D @ beta + u) - strength / rho, 0.0)
        u = u + D @ beta - z
    return beta


def measure(steps: str, noise: bool, seeds: list[int]) -> dict[str, Any]:
    errors, off, jumps = [], [], []
    for trial in range(*seeds):
        task, graph = pose(trial)
        best = optimum(task)
        made = method("CDP-ADMM", TOTAL, task.public(graph))
        if steps == "own steps":
            share = 1.0 / np.linspace(1.0, 2.0, AGENTS)
            made = replace(
                made, step=1.0, step_profile=STEP / HALF * share / np.sqrt(np.arange(1, ROUNDS + 1))[:, None]
            )
        if not noise:
            made = replace(made, noise=0.0)

        def error(shot: Any, best: Any = best) -> Any:
            return np.sum((shot.estimates - best) ** 2, axis=(1, 2)) / np.sum(best**2)

        run = confide.simulate(task, graph, made, seeds=[trial], record={"error": error})
        errors.append(run.history["error"][:, 0])
        off.append(task.objective(run.model[0]) / task.objective(best) - 1)
        jumps.append([int(np.sum(np.abs(np.diff(best)) > 1e-6))])
    return {"error": np.array(errors), "off": np.array(off), "jumps": np.array(jumps),
            "guarantee": str(run.privacy.guarantee.label)}  # fmt: skip


def table(results: Results) -> list[dict[str, Any]]:
    return [{"steps": s, "noise": n, "round": t, "error": results.stack("error", steps=s, noise=n)[:, t - 1].mean(),
             "objective above the optimum's, relative": results.stack("off", steps=s, noise=n).mean(),
             "δ": DELTA, "guarantee": results.where(steps=s, noise=n)[0][1]["guarantee"]}
            for s in STEPS for n in (False, True) for t in (10, 50, 100, 200)]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    end = {(s, n): float(results.stack("error", steps=s, noise=n)[:, -1].mean()) for s in STEPS for n in (False, True)}
    off = {s: float(results.stack("off", steps=s, noise=False).mean()) for s in STEPS}
    curves = {s: results.stack("error", steps=s, noise=False).mean(axis=0) for s in STEPS}
    later = {s: float(curve[-1] / curve[99]) for s, curve in curves.items()}
    jumps = float(results.stack("jumps").mean())
    return [
        shape("CDP-ADMM solves the generalised lasso: objective within 1 % of the optimum's after 200 rounds, no noise",
              "with a minimal impact on overall accuracy",
              f"{off['one step']:.2%}; error {end['one step', False]:.2g}", off["one step"] < 0.01, why=TIES),
        own("and with an η_k^t of each agent's own",
            f"{off['own steps']:.2%}; error {end['own steps', False]:.2g}", off["own steps"] < 0.01, why=TIES),
        own("the optimum has fewer jumps than coefficients less one: the penalty acts", f"{jumps:.1f} of {WIDTH - 1}",
            jumps < WIDTH - 1),
        own("but it goes on converging, as steps of 1/√t would: at most half of the error of round 100 after 200",
            ", ".join(f"{s} {later[s]:.2g} ({curves[s][-1] / curves[s][49]:.2g} of round 50's)" for s in STEPS),
            max(later.values()) <= 0.5, why="no cause is known: the error falls, but more slowly than 1/t"),
        own("noise at total 10 leaves an error below 1",
            ", ".join(f"{s} {end[s, True]:.2g}" for s in STEPS), max(end[s, True] for s in STEPS) < 1),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7.2, 4.4))
    ax = figure.subplots()
    for s, colour in zip(STEPS, ("#0072B2", "#D55E00"), strict=True):
        for n in (False, True):
            text = f"{s}, {'total ε = 10 (assumed)' if n else 'no noise'}"
            band(ax, np.arange(1, ROUNDS + 1), results.stack("error", steps=s, noise=n), color=colour, label=text,
                 linestyle="-" if n else "--")  # fmt: skip
    ax.set(yscale="log", xlim=(0, ROUNDS), xlabel="round t", ylabel="normalised error, sum over 50 agents")
    ax.set_title("generalised lasso: differences of neighbouring coefficients")
    ax.legend()
    return figure
