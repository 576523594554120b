"""Lemmas 1 and 2, and what an audit says: the variance that (17) claims for β_k^(m) against the one that is there.

One run of the ridge problem is taken to round m; from there every agent's primal update is drawn again and again, so
that its variance and its mean are those of the inner loop alone. Privacy needs a *lower* bound on that variance; (35)
and (39) bound it from above, and Lemma 2 writes "=". R is in (22) and, but for R/L, not in the method: R and L ten
times as large leave every message as it is and divide the claimed ε by about ten.

The audit attacks one round of D-ZOA with the J of (22) on a loss for which c1 = 1 does hold (the absolute one, rows of
norm 1), and PrivateZeroth at the same ε beside it. An audit gives a lower bound on ε at 95 % confidence; it never
confirms. With few repetitions (the quick run) it can show no more than about ln(repetitions/3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide import audit
from confide.algorithms import ADMM
from confide.audit.prepare import prepare
from confide.papers.reproduce import Finding, Results, Trials, own, shape
from confide.papers.theory import d_zoa as theory
from confide.privacy.noise import SimulatedNoise
from confide.runs.driver import Driver

from . import _setting as paper
from ._setting import AGENTS, COUPLING, DELTA, EPSILONS, INNER, NETWORK, d_zoa, problem, setting

title = "The claimed and the measured variance, and an audit"
trials = Trials(published=None, full=2000, quick=150)  # draws of an update, and repetitions of the audit
data = ()

ROUNDS, PENALISED = (1, 50, 150), "ridge"
AUDITED = {"DZOA": 0.15, "PrivateZeroth": 0.15}  # method -> ε claimed for one round
SCALED = 10.0
FORMULAS = {
    "T": "(23), least T", "inner": "(26), inner gap", "total": "(29), outer gap", "start": "(29), from the start",
    "privacy": "(29), from the claimed noise", "printed": "(29) as printed, one agent's",
}  # fmt: skip


def tasks(trials: int) -> list[dict[str, Any]]:
    seen = [{"what": "variance", "epsilon": e, "m": m, "draws": min(trials, 400)} for e in EPSILONS for m in ROUNDS]
    seen.append({"what": "formulas", "epsilon": EPSILONS[-1], "draws": 0})
    return seen + [{"what": "audit", "method": name, "epsilon": e, "draws": trials} for name, e in AUDITED.items()]


def measure(what: str, epsilon: float, draws: int, m: int = 0, method: str = "") -> dict[str, Any]:
    if what == "variance":
        return variances(epsilon, m, draws)
    if what == "formulas":
        T, inner, outer = calculated()
        return {"T": T, "inner": inner, "total": outer.total, "start": outer.start, "privacy": outer.privacy,
                "printed": outer.printed}  # fmt: skip
    job = prepare(method, None, epsilon, DELTA, 1, False)
    found = audit.run(job.method, job.canary, epsilon=job.epsilon, delta=DELTA, mu=job.mu, repetitions=draws)
    label = str(job.method.guarantee(job.canary.public(job.method)).label)
    return {"claim": found.epsilon, "low": found.epsilon_low, "refuted": found.refuted, "verdict": found.verdict,
            "label": label}  # fmt: skip


def variances(epsilon: float, m: int, draws: int) -> dict[str, Any]:
    """Of every agent's update in round m: claimed and measured variance of an entry, bias, claimed sensitivity."""
    task = problem(0, PENALISED)
    method, norm = d_zoa(task, epsilon, DELTA), float(np.linalg.norm(task.solve()))
    run = Driver(task, NETWORK, method, [0])
    for _ in range(m - 1):
        run.step()
    many = type(run.state)(*(np.repeat(a, draws, axis=0) for a in run.state))
    noise = SimulatedNoise(np.arange(draws) + (1 << 32), run.public.agents, m)
    beta = method.local(m, many, task.block, run.public, noise)  # (draws, agents, P)
    exact = ADMM(coupling=COUPLING).local(m, run.state, task.block, run.public, noise)[0]
    settings = [setting(k, norm) for k in range(AGENTS)]
    claimed = [theory.variance(s, int(j)) for s, j in zip(settings, method.counted(run.public), strict=True)]
    wide = [replace(s, radius=SCALED * s.radius) for s in settings]
    epsilons = [
        [float(theory.iteration_epsilon(s, int(j), DELTA).epsilon) for s, j in zip(some, method.counted(run.public),
         strict=True)] for some in (settings, wide)
    ]  # fmt: skip
    rescaled = replace(method, radius=SCALED * method.radius, lipschitz=SCALED * method.lipschitz)
    again = rescaled.local(m, run.state, task.block, run.public, SimulatedNoise(np.array([0]), run.public.agents, m))
    once = method.local(m, run.state, task.block, run.public, SimulatedNoise(np.array([0]), run.public.agents, m))
    return {
        "moved by scaling": float(np.abs(again - once).max()),
        "claimed": np.array(claimed), "measured": beta.var(axis=0).mean(axis=1), "J": method.counted(run.public),
        "bias": bias(beta, exact), "sensitivity": np.array([s.sensitivity for s in settings]),
        "epsilon": np.array(epsilons[0]), "epsilon, R times 10": np.array(epsilons[1]),
    }  # fmt: skip


def bias(beta: Any, exact: Any) -> Any:
    """‖E[β_k] - exact‖, less what a mean of so many draws is off by chance: (agents,)."""
    chance = beta.var(axis=0).sum(axis=1) / len(beta)
    return np.sqrt(np.maximum(np.sum((beta.mean(axis=0) - exact) ** 2, axis=1) - chance, 0.0))


def table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for task, value in results.where(what="variance"):
        for k in range(AGENTS):
            rows.append({
                "epsilon": task["epsilon"], "round": task["m"], "agent": k + 1, "J": value["J"][k],
                "variance claimed (17)": value["claimed"][k], "variance measured": value["measured"][k],
                "claimed / measured": value["claimed"][k] / value["measured"][k], "bias": value["bias"][k],
                "sensitivity (19)": value["sensitivity"][k], "epsilon (22)": value["epsilon"][k],
            })  # fmt: skip
    for task, value in results.where(what="audit"):
        rows.append({"audit": task["method"], "claim": value["claim"], "lower bound": value["low"],
                     "verdict": value["verdict"], "guarantee": value["label"]})  # fmt: skip
    given = results.one(what="formulas")
    return rows + [{"formula": text, "value": given[key]} for key, text in FORMULAS.items()]


def calculated() -> tuple[int, float, theory.OuterGap]:
    """(23), (26) and (29) at ε = .95 for the data of trial 0."""
    beta = problem(0, PENALISED).solve()
    width, R, alpha = paper.FEATURES, paper.RADIUS, paper.STEP
    T = theory.inner_rounds(width, R, alpha, float(np.linalg.norm(beta)), 0.5)
    inner = theory.inner_gap(width, INNER, R, paper.LIPSCHITZ, alpha, paper.SMOOTHING, 0.5)
    outer = theory.outer_gap(NETWORK, beta, 200, EPSILONS[-1], DELTA, gradient_bound=1.0, coupling=COUPLING, rows=20)
    return T, inner, outer


def findings(results: Results) -> list[Finding]:
    seen = [value for _, value in results.where(what="variance")]
    over = np.concatenate([v["claimed"] / v["measured"] for v in seen])
    off = np.concatenate([v["bias"] / v["sensitivity"] for v in seen])
    moved = max(v["moved by scaling"] for v in seen)
    scale = seen[0]["epsilon"][0] / seen[0]["epsilon, R times 10"][0]
    found, rigorous = (results.one(what="audit", method=name) for name in AUDITED)
    return [
        shape("Lemma 2: the variance of an entry is (17), or larger", "equal", f"{over.min():.0f} to {over.max():.0f} "
              "times smaller", over.max() <= 1, why="(35) is an upper bound that Lemma 2 takes for the value"),
        shape("Lemma 1: the mean of the update is the exact one (bias below a tenth of the sensitivity (19))", "equal",
              f"off by at most {off.max():.2f} sensitivities", off.max() < 0.1,
              why="100 inner steps of falling size from 0 do not reach the argmin; that bias depends on the rows, too"),
        own("(22) is a property of the method: what leaves every message as it is leaves ε as it is",
            f"R and L {SCALED:g} times as large move a message by {moved:.1g} (a run) and divide ε by {scale:.1f} "
            "(arithmetic)", moved > 1e-9 or abs(scale - 1) < 0.01, why="R is a bound used in the analysis, not noise"),
        shape(f"one round of D-ZOA costs at most ε={found['claim']:.2f}", "proven", f"at least {found['low']:.2g}: "
              f"{found['label']}", not found["refuted"], why="the variance is not there: refuted by audit"),
        own(f"PrivateZeroth at ε={rigorous['claim']:.2f} stands the same audit",
            f"lower bound {rigorous['low']:.2g}: {rigorous['label']}", not rigorous["refuted"],
            why="a tight audit errs one time in twenty"),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9, 3.8))
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    for e, colour in zip(EPSILONS, ("#D55E00", "#0072B2"), strict=True):
        for m, mark, size in zip(ROUNDS, "os^", (11, 8, 4), strict=True):  # some lie on one another
            v = results.one(what="variance", epsilon=e, m=m)
            left.loglog(v["claimed"], v["measured"], mark, color=colour, fillstyle="none", markersize=size,
                        label=f"ε = {e}, round {m}")  # fmt: skip
    ends = np.array([1e-5, 1.0])
    left.loglog(ends, ends, color="#22303c", linewidth=1)
    left.text(2e-2, 1.2e-3, "as claimed", fontsize=9, color="#22303c")
    left.annotate("", (1e-2, 1e-2), (2e-2, 2e-3), arrowprops={"arrowstyle": "-", "color": "#9aa5ad"})
    left.set(xlabel="variance claimed by (17)", ylabel="variance measured", title="an entry of an agent's update")
    left.legend(loc="upper left", fontsize=8)
    for place, name in enumerate(AUDITED):
        v = results.one(what="audit", method=name)
        right.bar(place - 0.18, v["claim"], 0.34, color="#9aa5ad", label="claimed" if place == 0 else None)
        right.bar(place + 0.18, v["low"], 0.34, color="#D55E00", label="at least, by audit" if place == 0 else None)
        said = "refuted" if v["refuted"] else "not\ncontradicted"
        right.text(place + 0.18, max(v["claim"], v["low"]) * 1.02, said, ha="center", va="bottom", fontsize=9)
    right.set(xticks=range(len(AUDITED)), xticklabels=["D-ZOA", "PrivateZeroth"], ylabel="ε of one round, δ = 10⁻³")
    right.set(title="attacked")
    right.legend(loc="upper right")
    right.margins(y=0.15)
    return figure
