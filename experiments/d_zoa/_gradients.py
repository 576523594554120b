"""Figures 2 and 3: many draws of one stochastic gradient g_k^(t), and how normal they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from confide.algorithms import zeroth
from confide.algorithms.base import Consensus
from confide.papers.reproduce import Finding, Results, shape
from confide.privacy.noise import SimulatedNoise
from confide.runs.driver import Driver

from ._setting import DELTA, EPSILONS, FEATURES, NETWORK, SMOOTHING, d_zoa, problem

Array = NDArray[np.float64]
AGENT, ENTRY, PENALISED, BATCH = 1, 0, "ridge", 500  # the text's agent 2; "an arbitrary entry"; draws of a task
HEAVY = 0.3  # excess kurtosis beyond which a histogram is visibly not normal


def tasks(t: int, m: int, trials: int) -> list[dict[str, Any]]:
    return [{"t": t, "m": m, "epsilon": e, "first": a} for a in range(0, trials, BATCH) for e in EPSILONS]


def measure(t: int, m: int, epsilon: float, first: int) -> dict[str, Any]:
    """g_k^(t) of round m at the β̃^(t-1) that one run reached, drawn again and again: (BATCH,)."""
    task = problem(0, PENALISED)
    method = d_zoa(task, epsilon, DELTA)
    run = Driver(task, NETWORK, method, [0])
    for _ in range(m - 1):
        run.step()
    public, block = run.public.at(AGENT), task.only(AGENT)
    state = Consensus(*(a[:, AGENT : AGENT + 1] for a in run.state))
    here = replace(method, inner_steps=t - 1)
    beta = here.local(m, state, block, public, SimulatedNoise(np.array([0]), public.agents, m))
    u1, u2 = zeroth.smoothing(t, FEATURES, SMOOTHING)
    draws = SimulatedNoise(np.arange(first, first + BATCH) + (1 << 32), public.agents, m)
    many = Consensus(*(np.repeat(a, BATCH, axis=0) for a in state))
    value = method.lagrangian(many, block, public)
    g = zeroth.two_point(value, np.repeat(beta, BATCH, axis=0), u1, u2, method.counted(public), draws, f"again {t}")
    return {"g": g[:, 0, ENTRY], "directions": int(method.counted(public)[0])}


def shapes(results: Results, epsilon: float) -> dict[str, float]:
    """Moments of the standardised draws and the correlation of their QQ plot."""
    g = results.stack("g", epsilon=epsilon)
    (_, _), (_, _, r) = stats.probplot(g)
    return {"directions": results.where(epsilon=epsilon)[0][1]["directions"], "draws": len(g),
            "skewness": float(stats.skew(g)), "excess kurtosis": float(stats.kurtosis(g)), "QQ correlation": float(r),
            "Kolmogorov-Smirnov p": float(stats.kstest((g - g.mean()) / g.std(), "norm").pvalue)}  # fmt: skip


def table(results: Results) -> list[dict[str, Any]]:
    return [{"epsilon": e, **shapes(results, e)} for e in EPSILONS]


def findings(results: Results) -> list[Finding]:
    out = []
    for e in EPSILONS:
        s = shapes(results, e)
        out.append(shape(
            f"ε={e}, J={s['directions']:.0f}: an entry of g is normal (excess kurtosis below {HEAVY})", "yes",
            f"excess kurtosis {s['excess kurtosis']:.2f}, QQ correlation {s['QQ correlation']:.4f}",
            abs(s["excess kurtosis"]) < HEAVY,
            why="an entry is a mean of J products of normals, whose tails are heavier; J is small at ε=.15",
        ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(8, 6))
    for row, (e, axes) in enumerate(zip(EPSILONS, figure.subplots(2, 2), strict=True)):
        g = results.stack("g", epsilon=e)
        z = (g - g.mean()) / g.std()
        x = np.linspace(-5, 5, 200)
        axes[0].hist(z, 60, range=(-5, 5), density=True, color="#56B4E9", label="drawn")
        axes[0].plot(x, stats.norm.pdf(x), color="#22303c", linewidth=1.2, label="normal")
        axes[0].set(title=f"ε = {e}: J = {shapes(results, e)['directions']:.0f}", ylabel="density",
                    xlabel="entry of g, standardised" if row else "")  # fmt: skip
        theory = stats.norm.ppf((np.arange(len(z)) + 0.5) / len(z))
        axes[1].plot(theory, np.sort(z), ".", color="#0072B2", markersize=3)
        axes[1].plot([-4, 4], [-4, 4], color="#22303c", linewidth=1)
        axes[1].set(ylabel="quantiles drawn", xlabel="normal quantiles" if row else "", title="QQ plot")
    figure.axes[0].legend()
    return figure
