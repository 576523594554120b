"""Theorems 1 and 2 and Lemma 3: what one iteration is said to cost and what all cost, the step and the bounds.

Theorem 1 is per iteration: over L=100 iterations the exact total is μ = √L·ε/√(2 ln(1.25/δ)), whatever the noise's
decay. Theorem 2 gives the step, and Section 5.1 says that it was used: the tables' own design is run with it, without
noise, beside the printed errors. Its bound holds for any comparison point of norm c_w, so the gap of the objective is
measured against the true coefficients. Lemma 3 bounds what one iteration adds, for any comparison point: both sides
are measured in every iteration of a noisy run (ε=.1, δ=1e-6), at the true coefficients with γ_i = 0, and at a
random w with random γ_i.
"""

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape
from confide.papers.theory import fdp_admm as theory

from ._published import DELTAS, EPSILONS
from ._setting import (
    C1,
    COEFFICIENTS,
    COUPLING,
    DESIGNS,
    ROUNDS,
    STEP,
    constants,
    driver,
    mise,
    multiplier,
    problem,
)  # fmt: skip
from ._tables import column

title = "Theorem 1 per iteration and in total; Theorem 2's step and bound; Lemma 3"
trials = Trials(published=None, full=3, quick=1)
data = ()

WORKERS = 10
CELL = (0.1, 1e-6)  # of Lemma 3's run
MACHINES = {1: (10, "l1"), 2: (20, "l1"), 3: (50, "l1"), 4: (10, "l2"), 5: (20, "l2"), 6: (50, "l2")}


def setting(epsilon: float, delta: float, workers: int = WORKERS, kind: str = "l1") -> theory.Constants:
    """Theorem 2 with the c1 that fits the tables and the true c_w."""
    return constants(epsilon, delta, workers, kind, C1, float(np.linalg.norm(COEFFICIENTS)))


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"part": "bound"}, *({"part": "gap", "trial": t} for t in range(trials)),
            *({"part": "lemma", "trial": t} for t in range(trials)),
            *({"part": "step", "which": k} for k in (MACHINES if trials > 1 else (3,)))]  # fmt: skip


def measure(part: str, trial: int = 0, which: int = 0) -> dict[str, Any]:
    free = setting(math.inf, 0.5)
    if part == "bound":
        one = theory.total(*CELL, ROUNDS)
        return {"total": one.epsilon, "mu": one.mu, "claimed": one.claimed, "step": theory.step(free, 1),
                "bound": np.array([theory.bound(free, l) for l in range(1, ROUNDS + 1)])}  # fmt: skip
    if part == "lemma":
        return lemma(trial)
    if part == "step":
        return {"mise": np.array(own_step(which))}
    given = problem(DESIGNS[0], 0.5, WORKERS, "l1", trial)
    run = driver(given, [0.0], trial, step=theory.step(free, 1))
    own, common, gaps = np.zeros_like(run.state.primal), np.zeros_like(run.state.average), []
    truth = value(run, np.broadcast_to(COEFFICIENTS, own.shape)).sum()
    for l in range(1, ROUNDS + 1):
        own = own + (run.state.primal - own) / l
        run.step()
        common = common + (run.state.average - common) / l
        apart = free.dual_bound * np.linalg.norm(own - common, axis=2).sum()
        gaps.append(value(run, own).sum() - truth + apart)
    return {"gap": np.array(gaps)[None]}


def value(run: Any, w: Any) -> Any:
    """f_i(w_i) of every worker: (seeds, workers)."""
    share = (run.public.penalty.terms(w) * run.public.mask).sum(axis=2) / run.public.count
    return run.block.value(w) + share


def own_step(which: int) -> list[float]:
    """MISE in the tables' design without noise, with Theorem 2's step: c_w = ‖w‖ and c_w = 1."""
    workers, kind = MACHINES[which]
    given = problem(DESIGNS[0], 0.5, workers, kind, 0)
    found = []
    for made in (setting(math.inf, 0.5, workers, kind), constants(math.inf, 0.5, workers, kind)):
        run = driver(given, [0.0], 0, step=theory.step(made, 1))
        for _ in range(ROUNDS):
            run.step()
        found.append(float(mise(run.estimates[0, 0])))
    return found


def lemma(trial: int) -> dict[str, Any]:
    """Both sides of Lemma 3 in every iteration of a run with noise: (1, 2·rounds) each."""
    given = problem(DESIGNS[1], 0.5, WORKERS, "l1", trial)
    eta1 = theory.step(constants(*CELL, WORKERS), 1)
    run = driver(given, [multiplier(DESIGNS[1], *CELL)], trial, step=eta1, assumed_bound=1.0)
    rng, shape = np.random.default_rng([13, trial]), run.state.primal.shape
    other = np.broadcast_to(rng.standard_normal(shape[2]), shape)  # w is one for all workers, γ_i each their own
    points = [(np.broadcast_to(COEFFICIENTS, shape), np.zeros(shape)), (other, rng.standard_normal(shape))]
    known, sides = [value(run, w) for w, _ in points], []
    for l in range(1, ROUNDS + 1):
        before, f = run.state, value(run, run.state.primal)
        slope = run.block.gradient(before.primal) + run.public.penalty_gradient(before.primal)
        run.step()
        for (w, dual), at in zip(points, known, strict=True):
            sides.append(theory.lemma3(before, run.state, slope, f - at, w, eta1 / math.sqrt(l), COUPLING, dual))
    left, right = np.array(sides).T
    return {"left": left[None], "right": right[None]}


def table(results: Results) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"epsilon an iteration": e, "delta": d, "iterations": ROUNDS, "total mu": total.mu,
         "total epsilon": total.epsilon, "Theorem 1 claims": total.claimed,
         "Theorem 2 step at l=1, M=10": theory.step(setting(e, d), 1),
         "Theorem 2 bound at L=100, M=10": theory.bound(setting(e, d), ROUNDS)}
        for e in EPSILONS
        for d in DELTAS
        for total in [theory.total(e, d, ROUNDS)]
    ]  # fmt: skip
    return rows + [
        {"table": t["which"], "printed": column(t["which"], 0.5)[-1],
         "MISE with Theorem 2's step, c_w = ‖w‖": v["mise"][0],
         "with c1 = c_w = 1": v["mise"][1]}
        for t, v in results.where(part="step")
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    known = results.one(part="bound")
    gap, limit = results.stack("gap", part="gap")[:, -1].mean(), known["bound"][-1]
    left, right = results.stack("left", part="lemma"), results.stack("right", part="lemma")
    steps = {t["which"]: v["mise"] for t, v in results.where(part="step")}
    return [
        shape("ε=.1, δ=1e-6 an iteration is the algorithm's (Theorem 1; by arithmetic, not by a run)", known["claimed"],
              f"{known['total']:.3g} in total, μ={known['mu']:.3g}", known["total"] <= known["claimed"],
              why="Theorem 1's proof covers one iteration; L iterations cost μ = √L·ε/√(2 ln(1.25/δ))"),
        shape("Theorem 2's step (c1 = c_w = 1), said to be used, gives the tables' errors at τ=.5 without noise, each "
              "within 15 %", ", ".join(f"{column(k, 0.5)[-1]:.3g} (table {k})" for k in steps),
              ", ".join(f"{found[1]:.3g}" for found in steps.values()),
              all(abs(found[1] / column(k, 0.5)[-1] - 1) <= 0.15 for k, found in steps.items()), why=NOT_USED),
        shape("Theorem 2: the gap with g‖w̄_i - w̄‖ after 100 iterations is below the bound", float(limit),
              float(gap), gap <= limit),
        shape("Lemma 3: the left side is at most the right one in every iteration, at both points", "all",
              f"in {np.mean(left <= right + 1e-9):.0%} of {left.size}; least slack {np.min(right - left):.2g}",
              np.all(left <= right + 1e-9)),
    ]  # fmt: skip


NOT_USED = (
    f"Theorem 2's step is two orders below the {STEP:g}/√l that fits the tables: with it 100 iterations leave the "
    "tables' small-variance scores all but unlearned, so the tables were not made as Section 5.1 says"
)


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    one = np.geomspace(0.01, 1, 60)
    for delta in DELTAS:
        left.plot(one, [theory.total(e, delta, ROUNDS).epsilon for e in one], label=f"δ={delta:g}")
    left.plot(one, one, color="0.4", linestyle="--", label="claimed by Theorem 1")
    left.set(xscale="log", yscale="log", xlabel="ε per iteration", ylabel="exact total ε, L=100", title="Theorem 1")
    left.legend()
    t, gap = np.arange(1, ROUNDS + 1), results.stack("gap", part="gap").mean(0)
    right.plot(t, results.one(part="bound")["bound"], color="0.4", linestyle="--", label="bound")
    right.plot(t, gap, label="measured, no noise")
    right.set(xscale="log", xlabel="iteration", ylabel="gap of the objective, with g‖w̄_i - w̄‖", title="Theorem 2, M=10")
    right.legend()
    return figure
