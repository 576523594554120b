"""Figure 3: the effect of γ on private MR-ADMM with η(2k-1) = 1.01^k, at α = 1 and 2.

Chosen where the text leaves it open: γ = 0.1, 0.5, 1, 2. γ enters no bound, so all have the same privacy loss at the
same α.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _draw as d
from . import _setting as s

title = "Private MR-ADMM with several γ"
trials = Trials(published=10, full=10, quick=1)
data = ("adult",)

GAMMAS = (0.1, 0.5, 1.0, 2.0)
ALPHAS = (1.0, 2.0)
SLOW = 1.01  # caption of Fig. 3


def tasks(trials: int) -> list[dict[str, Any]]:
    private = [{"alpha": a, "gamma": g, "seeds": b} for b in s.batches(trials) for a in ALPHAS for g in GAMMAS]
    return [*private, {"alpha": 0.0, "gamma": 0.0, "seeds": [0, 1]}]  # ADMM without noise, the green curve


def measure(alpha: float, gamma: float, seeds: list[int]) -> dict[str, Any]:
    best = np.array([s.optimum()])
    if not alpha:
        return {**s.trained(s.admm(), seeds), "best": best}
    method = s.mr_admm(alpha, SLOW, gamma=gamma)
    return {**s.trained(method, seeds), "bound": float(s.claimed(method).max()), "best": best}


def table(results: Results) -> list[dict[str, Any]]:
    return [{"alpha": a, "gamma": g, **s.summary(results.where(alpha=a, gamma=g)),
             "bound": results.stack("bound", alpha=a, gamma=g)[0]} for a in ALPHAS for g in GAMMAS]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    loss, error = (
        {a: [float(results.stack(what, alpha=a, gamma=g).reshape(-1, n)[:, -1].mean()) for g in GAMMAS] for a in ALPHAS}
        for what, n in (("loss", s.ROUNDS), ("error", 1))
    )
    said = "; ".join(f"α={a:g}: L(50) {', '.join(f'{x:.3f}' for x in loss[a])}, test error "
                     f"{', '.join(f'{x:.4f}' for x in error[a])}" for a in ALPHAS)  # fmt: skip
    return [shape("Fig. 3: γ does not matter much, at both α (loss within 15 %, test error within 2 points)",
                  "no significant effect", f"γ={', '.join(f'{g:g}' for g in GAMMAS)}; {said}",
                  all(max(v) < 1.15 * min(v) for v in loss.values())
                  and all(max(v) - min(v) < 0.02 for v in error.values()))]  # fmt: skip


def draw(results: Results) -> Figure:
    figure, axes = d.panels(1, 3)
    for ax, a in zip(axes, ALPHAS, strict=False):
        for g, colour in zip(GAMMAS, d.CYCLE, strict=False):
            d.band(ax, results.stack("loss", alpha=a, gamma=g), color=colour, label=f"γ={g:g}")
        d.band(ax, results.one(alpha=0.0)["loss"], color="0.25", linestyle="--", label="ADMM, not private")
        ax.set(title=f"α={a:g}", xlabel="iteration t", ylabel="average loss L(t)")
    for a, colour in zip(ALPHAS, d.CYCLE, strict=False):
        d.spans(axes[2], GAMMAS, [results.stack("error", alpha=a, gamma=g) for g in GAMMAS], color=colour,
                label=f"α={a:g}")  # fmt: skip
    axes[2].axhline(results[0][1]["best"][0][1], **d.OPTIMUM, label="optimum")
    axes[2].set(title="after 50 iterations", xlabel="γ", ylabel="test error")
    axes[2].margins(y=0.16)
    axes[2].legend(fontsize=7, loc="upper center", ncols=3, columnspacing=1.0)
    d.legend_below(figure, axes[0], 7)
    return figure
