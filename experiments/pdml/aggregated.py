"""Theorems 1 and 2 are about w̄_i(t), the mean of a server's classifiers: measured on Adult, beside the bounds.

Section IV: Σ_i ΔJ_P(w̄_i(t)). Here on the 45,000 rows and their true labels, ε = 0.4, a = 1, β = 0.2; without Phase 2
the bound is Theorem 2's (36), with Phase 2 (R = 1) it is the one that holds on any graph, since (25) is not
satisfiable (see theorems). w̄_i is the mean of the w_i(k), the solutions of (15) before their noise. The labels' term of
the bounds, that of theorems, is above anything that is measured, so what is judged is the rest: Ĵ(w̄) - Ĵ(ŵ) on the
reported labels beside what the bounds give to the iterations, and with Phase 2 to the objective's noise. ‖ŵ‖ is
measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, own, shape
from confide.papers.theory import pdml

from ._adult import aggregated
from ._setting import COUPLING, DECAY, DEVIATION, ROUNDS, SERVERS, network
from .theorems import BOUND, DELTA, EPSILON, RADIUS, ROW_NORM, ROWS, WIDTH

title = "The aggregated classifier of Theorems 1 and 2"
trials = Trials(published=None, full=3, quick=1)
data = ("adult",)

PHASES = {"Phase 1 alone": 0.0, "Phases 1 and 2": BOUND}  # -> R


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"phases": p, "seed": seed} for seed in range(trials) for p in PHASES]


def measure(phases: str, seed: int) -> dict[str, Any]:
    found = aggregated(seed, EPSILON, PHASES[phases])
    start = {"distance": SERVERS * float(found["optimum"][0]) ** 2, "dual_start": 0.0, "labels": labels()}
    graph, noise = network(seed), pdml.NoiseSetting(BOUND, [DEVIATION] * SERVERS, DECAY, WIDTH)
    bounds, rest = [], []
    for t in range(1, ROUNDS + 1):
        if PHASES[phases]:
            one = pdml.any_graph(graph, COUPLING, noise, t, radius=RADIUS, **start)
        else:
            one = pdml.theorem2(graph, COUPLING, t, **start)
        bounds.append(one.value)
        rest.append(one.value - one.terms["labels"])
    return {**found, "bound": np.array([bounds]), "rest": np.array([rest]), "labels": labels()}


def labels() -> float:
    rad = [pdml.linear_rademacher(RADIUS, ROW_NORM, ROWS)] * SERVERS
    return float(pdml.label_term(EPSILON, [ROWS] * SERVERS, rad, pdml.logistic_bounds(RADIUS, ROW_NORM), DELTA))


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"phases": p, "round": t, "at the mean": part.stack("mean")[:, t - 1].mean(),
         "at the last": part.stack("last")[:, t - 1].mean(), "bound": part.stack("bound")[:, t - 1].mean(),
         "of it the labels' term": part.stack("labels").mean(),
         "at the mean, reported labels": part.stack("told")[:, t - 1].mean(),
         "bound without the labels' term": part.stack("rest")[:, t - 1].mean(),
         "longest classifier": part.stack("norm")[:, t - 1].max()}
        for p in PHASES for part in [results.where(phases=p)] for t in (1, 5, 10, 20, 50, 100)
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    judged = {p: (results.where(phases=p).stack("told"), results.where(phases=p).stack("rest")) for p in PHASES}

    def said(told: Any, rest: Any) -> str:
        return (f"{told[:, -1].mean():.3g} of {rest[:, -1].mean():.3g} after {ROUNDS} rounds; nearest "
                f"{np.max(told / rest):.0%} of it")  # fmt: skip

    (told, rest), (noisy_told, noisy_rest) = judged.values()
    out = [
        shape("Phase 1 alone: Ĵ(w̄(t)) - Ĵ(ŵ) is below Theorem 2's term of the iterations in every round",
              "an upper bound", said(told, rest), np.all(told <= rest)),
        own("Phases 1 and 2: and below the iterations' and the objective noise's terms of the bound for any graph",
            said(noisy_told, noisy_rest), np.all(noisy_told <= noisy_rest)),
    ]  # fmt: skip
    quiet, noisy = (results.where(phases=p) for p in PHASES)
    rate = [float(part.stack("mean")[:, -1].mean() / part.stack("mean")[:, 49].mean()) for part in (quiet, noisy)]
    last, mean = (float(quiet.stack(k)[:, -1].mean()) for k in ("last", "mean"))
    return [
        *out,
        shape("the effect of the iterations falls as 1/t: from round 50 to 100 what is above the end halves, Phase 1",
              "O(1/t)", f"from {half(quiet)[0]:.3g} to {half(quiet)[1]:.3g} (all: to {rate[0]:.2f}, {rate[1]:.2f})",
              half(quiet)[1] <= 0.6 * half(quiet)[0]),
        own("the mean of all classifiers is worse than the last one after 100 rounds, Phase 1",
            f"{mean:.3g} and {last:.3g} above the optimum", last < mean),
        own("no classifier is longer than the radius that the bounds assume", f"{results.stack('norm').max():.2f} of "
            f"{RADIUS:g}", results.stack("norm").max() <= RADIUS,
            why="the first rounds' noise pulls the classifiers beyond it: the bounds assume what nothing enforces"),
    ]  # fmt: skip


def half(part: Results) -> tuple[float, float]:
    """What w̄ has above the last classifier's end, at rounds 50 and 100."""
    end, mean = part.stack("last")[:, -1].mean(), part.stack("mean").mean(axis=0)
    return float(mean[49] - end), float(mean[-1] - end)


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7.2, 4.4))
    ax = figure.subplots()
    t = np.arange(1, ROUNDS + 1)
    for i, p in enumerate(PHASES):
        part = results.where(phases=p)
        ax.plot(t, part.stack("bound").mean(axis=0), ":", color=f"C{i}", label=f"{p}: bound")
        ax.plot(t, part.stack("mean").mean(axis=0), color=f"C{i}", label=f"{p}: at the mean w̄_i(t)")
        ax.plot(t, part.stack("last").mean(axis=0), "--", color=f"C{i}", linewidth=1, label=f"{p}: at the last w̃_i(t)")
    ax.set(xscale="log", yscale="log", xlabel="round t", ylabel="Σ_i ΔJ on the true labels")
    ax.legend(fontsize=8)
    return figure
