"""Figure 4: the effect of the penalty schedule η(2k-1) = q^k on private MR-ADMM, at α = 1 and 2, γ = 0.5.

Chosen where the text leaves it open: nothing. R-ADMM (q = 1) is added to measure the improvement from.
That the bound of Theorem V.1 falls as η grows is a property of its formula, drawn and not judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _draw as d
from . import _setting as s

title = "Private MR-ADMM with faster and slower growing penalties"
trials = Trials(published=10, full=10, quick=1)
data = ("adult",)

GROWTHS = (1.0, 1.01, 1.02, 1.03, 1.04, 1.05)  # caption of Fig. 4
ALPHAS = (2.0, 1.0)


def tasks(trials: int) -> list[dict[str, Any]]:
    private = [{"alpha": a, "growth": q, "seeds": b} for b in s.batches(trials) for a in ALPHAS for q in GROWTHS]
    return [*private, {"alpha": 0.0, "growth": 0.0, "seeds": [0, 1]}]  # ADMM without noise, the green curve


def measure(alpha: float, growth: float, seeds: list[int]) -> dict[str, Any]:
    if not alpha:
        return s.trained(s.admm(), seeds)
    method = s.mr_admm(alpha, growth)
    return {**s.trained(method, seeds), "bound": s.bound_by_round(method)[None]}


def table(results: Results) -> list[dict[str, Any]]:
    return [{"alpha": a, "growth": q, **s.summary(results.where(alpha=a, growth=q)),
             "bound": results.stack("bound", alpha=a, growth=q)[0, -1]} for a in ALPHAS for q in GROWTHS]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    out, gains = [], {}
    for a in ALPHAS:
        loss = [float(results.stack("loss", alpha=a, growth=q)[:, -1].mean()) for q in GROWTHS]
        error = [float(results.stack("error", alpha=a, growth=q).mean()) for q in GROWTHS]
        gains[a] = loss[0] - loss[-1]
        out.append(shape(f"Fig. 4, α={a:g}: the faster η grows, the smaller the loss", "yes",
                         "L(50) " + ", ".join(f"{x:.3f}" for x in loss) + " for q=1, …, 1.05",
                         all(np.diff(loss) < 0)))  # fmt: skip
        out.append(shape(f"Fig. 4(e), α={a:g}: and the smaller the test error", "yes",
                         f"{error[0]:.4f} (q=1), {error[-1]:.4f} (q=1.05)", error[-1] < error[0]))  # fmt: skip
    out.append(shape("Fig. 4: the improvement is larger under the higher privacy requirement", "α=1 more than α=2",
                     f"L(50) falls by {gains[1.0]:.3f} at α=1, {gains[2.0]:.3f} at α=2",
                     gains[1.0] > gains[2.0]))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure, axes = d.panels(1, 4)
    for ax, a in zip(axes, ALPHAS, strict=False):
        for q, colour in zip(GROWTHS, ("black", *d.CYCLE), strict=True):
            d.band(ax, results.stack("loss", alpha=a, growth=q), color=colour, label=f"q={q:g}")
            axes[2].plot(np.arange(1, s.ROUNDS + 1), results.stack("bound", alpha=a, growth=q)[0], color=colour,
                         linestyle="-" if a == 1 else "--", linewidth=1.1)  # fmt: skip
        d.band(ax, results.one(alpha=0.0)["loss"], color=d.OPTIMUM["color"], label="ADMM, not private")
        ax.set(title=f"α={a:g}", xlabel="iteration t", ylabel="average loss L(t)")
        d.spans(axes[3], GROWTHS, [results.stack("error", alpha=a, growth=q) for q in GROWTHS],
                color=d.CYCLE[ALPHAS.index(a)], label=f"α={a:g}")  # fmt: skip
    axes[2].set(title="solid α=1, dashed α=2", xlabel="iteration t", ylabel="published bound P(t)")
    axes[3].set(title="after 50 iterations", xlabel="q", ylabel="test error")
    axes[3].legend(fontsize=7)
    d.legend_below(figure, axes[0], 7)
    return figure
