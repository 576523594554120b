"""Figure 3: the servers' classifiers agree (a), and (1) converges, but not to what the original data give (b).

Chosen where the text leaves it open: ε = 0.4, a = 1, β = 0.2, V = 1, noise decay 0.8; R = 1 is the text's. The distance
in (a) is ‖w_i - w_l‖ between the two servers farthest apart, which bounds the text's difference of norms; (1) is
divided by the number of servers. The reference is the least value of (1) at one classifier, so that both end above it
is no finding. Curves are of the broadcast classifiers w̃_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from ._adult import settled, watched

title = "Consensus and empirical risk on Adult"
trials = Trials(published=1, full=10, quick=1)
data = ("adult",)

EPSILON, BOUND, BY = 0.4, 1.0, 80
CURVES = {"labels": 0.0, "labels and ADMM": BOUND}  # what is randomised -> R
NAMES = {"labels": "Phase 1 alone", "labels and ADMM": "Phases 1 and 2 (R = 1)"}


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"curve": curve, "seed": seed} for seed in range(trials) for curve in CURVES]


def measure(curve: str, seed: int) -> dict[str, Any]:
    return watched(seed, EPSILON, CURVES[curve])


def table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for curve in CURVES:
        apart, risk = (results.stack(k, curve=curve) for k in ("apart", "risk"))
        for t in range(apart.shape[1]):
            rows.append({"curve": curve, "round": t + 1, "distance": apart[:, t].mean(), "risk": risk[:, t].mean(),
                         "reference": results.stack("reference", curve=curve).mean()})  # fmt: skip
    return rows


def findings(results: Results) -> list[Finding]:
    apart = {c: results.stack("apart", curve=c) for c in CURVES}
    risk = {c: results.stack("risk", curve=c) for c in CURVES}
    best = results.stack("reference", curve="labels")
    quiet, noisy = CURVES
    end = {c: apart[c][:, -1] / apart[c].max(axis=1) for c in CURVES}
    words = ", ".join(f"{NAMES[c]} {apart[c][:, -1].mean():.1g}" for c in CURVES)
    rounds = {c: [settled(one) for one in risk[c]] for c in CURVES}
    late = {c: float(np.mean(rounds[c])) for c in CURVES}
    above = {c: risk[c][:, -1] - best for c in CURVES}
    return [
        shape("(a) distances converge to 0 with and without Phase 2", "yes", f"after 100 rounds: {words}",
              max(v.max() for v in end.values()) < 1e-3),
        shape(f"(b) Phase 2 keeps convergence, within 1 % of its end by round {BY} of 100, and makes it longer",
              "longer", f"after {late[quiet]:.0f} and {late[noisy]:.0f} rounds, at the latest {max(rounds[noisy])}",
              late[noisy] > late[quiet] and max(rounds[noisy]) <= BY),
        shape("(b) Phase 2 ends higher than Phase 1 alone", "yes",
              f"{above[quiet].mean():.2g} and {above[noisy].mean():.2g} above the reference, {best.mean():.4f}",
              np.all(above[noisy] > above[quiet])),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(10, 4))
    left, right = figure.subplots(1, 2)
    for i, curve in enumerate(CURVES):
        for ax, key in ((left, "apart"), (right, "risk")):
            y = results.stack(key, curve=curve)
            x = np.arange(1, y.shape[1] + 1)
            ax.plot(x, y.mean(axis=0), color=f"C{i}", label=NAMES[curve])
            ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=f"C{i}", alpha=0.2, linewidth=0)
    best = float(results.stack("reference", curve="labels").mean())
    right.axhline(best, color="C2", linestyle="--", label="ADMM on the original data, its end")
    left.set(yscale="log", xlabel="round", ylabel="largest ‖w_i - w_l‖", title="(a) servers farthest apart")
    right.set(yscale="log", xlabel="round", ylabel="(1) per server", title="(b) empirical risk", ylim=(0.58, 12))
    ticks = (0.6, 0.7, 1, 2, 5, 10)
    right.set_yticks(ticks, [f"{v:g}" for v in ticks])
    right.set_yticks([], minor=True)
    for ax in (left, right):
        ax.legend()
    return figure
