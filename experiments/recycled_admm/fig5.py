"""Figure 5: ADMM (dual variable perturbation), M-ADMM, R-ADMM and MR-ADMM at equal published privacy bounds.

One α for all agents in each method, as the text has it: R- and MR-ADMM that of the plots, ADMM and M-ADMM the one at
which the bound of their most exposed agent is that of R-ADMM's. The green curve is ADMM without noise. (The text adds
that results are similar where α_i and η_i vary from node to node, and shows none: see varied. Of M-ADMM beside ADMM
it says nothing.)
Chosen where the text leaves it open: M-ADMM's penalty 1.02^t (it ends where MR-ADMM's 1.04^k does) and dual step θ = 1.
The exact ε at δ = 1e-5 stands beside the bound; all are *assumed*, because the argmin is taken for exact. "MR-ADMM,
proven" stops at 1e-7 and releases the argmin with Gaussian noise of sd 0.02, which pays for the residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, own, shape

from . import _draw as d
from . import _setting as s

title = "Loss, test error and privacy of four methods at equal bounds"
trials = Trials(published=10, full=10, quick=1)
data = ("adult",)

METHODS = ("ADMM", "M-ADMM", "R-ADMM", "MR-ADMM")
PROVEN, FREE = "MR-ADMM, proven", "ADMM, not private"


def tasks(trials: int) -> list[dict[str, Any]]:
    cases = [*((m, a) for a in s.ALPHAS for m in METHODS), (PROVEN, 1.0)]
    return [{"part": "free", "method": FREE, "alpha": 0.0}, *s.at_equal_privacy(cases, trials)]


def measure(part: str, method: str, alpha: float, seeds: list[int] | None = None) -> dict[str, Any]:
    if part == "free":
        return {**s.trained(s.admm(), [0, 1]), "best": np.array([s.optimum()])}
    bound = float(s.claimed(s.r_admm(alpha)).max())
    made = {
        "ADMM": lambda: s.at_bound(s.dvp, bound), "M-ADMM": lambda: s.at_bound(s.m_admm, bound),
        "R-ADMM": lambda: s.r_admm(alpha), "MR-ADMM": lambda: s.mr_admm(alpha),
        PROVEN: lambda: s.mr_admm(alpha, tolerance=1e-7, release_noise=0.02, ball=200.0),  # thrice the largest f
    }[method]()  # fmt: skip
    if part == "privacy":
        return s.spent(made)
    assert seeds is not None
    return {**s.trained(made, seeds), "best": np.array([s.optimum()])}


def table(results: Results) -> list[dict[str, Any]]:
    return s.compared(results, published_bound=lambda spent: float(spent["bound"][-1]))


def findings(results: Results) -> list[Finding]:
    rows = {(r["method"], r["alpha"]): r for r in table(results)}
    loss, error, bound, exact = ({a: {m: rows[m, a][k] for m in METHODS} for a in s.ALPHAS}
                                 for k in ("loss", "test_error", "published_bound", "exact_epsilon"))  # fmt: skip

    def told(of: dict[float, dict[str, float]]) -> str:
        return "; ".join(f"α={a:g}: " + ", ".join(f"{m} {x:.4g}" for m, x in v.items()) for a, v in of.items())

    def below(of: dict[float, dict[str, float]]) -> bool:
        return all(max(v["R-ADMM"], v["MR-ADMM"]) < min(v["ADMM"], v["M-ADMM"]) for v in of.values())

    out = [
        shape("Fig. 5(a-c): R- and MR-ADMM have smaller losses than ADMM and M-ADMM, at every α", "outperform",
              told(loss), below(loss)),
        shape("Fig. 5(a-c): MR-ADMM has a smaller loss than R-ADMM, at every α", "the highest accuracy", told(loss),
              all(v["MR-ADMM"] < v["R-ADMM"] for v in loss.values())),
        shape("Fig. 5(g): R- and MR-ADMM have smaller test errors than ADMM and M-ADMM, at every α", "smaller",
              told(error), below(error)),
        own("M-ADMM has a smaller loss than ADMM, at every α", told(loss),
            all(v["M-ADMM"] < v["ADMM"] for v in loss.values()),
            why="no cause is known: M-ADMM's penalty and dual step are chosen here (varied has an α_i of each "
            "agent's own)"),
        own("the exact ε at δ=1e-5 is at most a third of the bound of Theorem V.1, at every α",
            "; ".join(f"α={a:g}: " + ", ".join(f"{m} {exact[a][m]:.2f} of {bound[a][m]:.2f}" for m in METHODS)
                      for a in s.ALPHAS),
            all(exact[a][m] < bound[a][m] / 3 for a in s.ALPHAS for m in METHODS)),
    ]  # fmt: skip
    gain = {a: rows["ADMM", a]["loss"] - rows["MR-ADMM", a]["loss"] for a in s.ALPHAS}
    sure, plain = rows[PROVEN, 1.0], rows["MR-ADMM", 1.0]
    return [
        *out,
        shape("Fig. 5: the improvement is larger at smaller privacy loss", "yes",
              ", ".join(f"ADMM - MR-ADMM {g:.3f} (α={a:g})" for a, g in gain.items()),
              all(np.diff([gain[a] for a in s.ALPHAS]) > 0)),
        own("MR-ADMM at α=1 with the solver's residual paid for is proven, and as accurate",
            f"{sure['guarantee']}: ε={sure['exact_epsilon']:.3f} (assumed: {plain['exact_epsilon']:.3f}), "
            f"loss {sure['loss']:.4f} (assumed: {plain['loss']:.4f})",
            sure["guarantee"] == "proven" and abs(sure["loss"] - plain["loss"]) < 0.02),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure, axes = d.panels(2, 4)
    free = results.one(part="free")
    for column, a in enumerate(s.ALPHAS):
        top, bottom = axes[:, column]
        for m in METHODS:
            d.band(top, results.stack("loss", part="run", method=m, alpha=a), color=d.COLOURS[m], label=m)
            bound = results.one(part="privacy", method=m, alpha=a)["bound"]
            bottom.plot(np.arange(1, len(bound) + 1), bound, color=d.COLOURS[m], linewidth=1.2)
        top.plot(np.arange(1, s.ROUNDS + 1), free["loss"][0], color="#009E73", linewidth=1.2, label=FREE)
        top.set(title=f"α={a:g}", yscale="log", xlabel="iteration t", ylabel="average loss L(t)")
        d.plain_ticks(top)
        bottom.set(xlabel="iteration t", ylabel="published bound P(t)")
    d.legend_below(figure, axes[0, 0], 5)
    for m in METHODS:
        groups = [results.stack("error", part="run", method=m, alpha=a) for a in s.ALPHAS]
        d.spans(axes[0, 3], s.ALPHAS, groups, color=d.COLOURS[m], label=m)
        exact = [results.one(part="privacy", method=m, alpha=a)["exact"] for a in s.ALPHAS]
        axes[1, 3].plot(s.ALPHAS, exact, marker="o", markersize=3.5, linewidth=1.1, color=d.COLOURS[m])
    axes[0, 3].axhline(free["error"][-1], color="#009E73", linestyle="--", linewidth=1.2)
    axes[0, 3].set(xlabel="α of R- and MR-ADMM", ylabel="test error", title="after 50 iterations")
    axes[1, 3].set(xlabel="α of R- and MR-ADMM", ylabel="exact ε at δ=1e-5")
    return figure
