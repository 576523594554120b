"""Not a figure of the paper: R-ADMM and MR-ADMM against themselves without the even steps.

The same 25 noisy iterations at the same α, so at the same privacy, once with a recycled step after each (50 messages)
and once without (25 messages; `recycle=False`). It shows whether the gain over ADMM comes from the recycled step or
from touching the data half as often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, own

from . import _draw as d
from . import _setting as s

title = "R-ADMM and MR-ADMM with the even steps left out"
trials = Trials(published=10, full=10, quick=1)
data = ("adult",)

METHODS = ("R-ADMM", "MR-ADMM")


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"method": m, "alpha": a, "recycle": r, "seeds": b} for b in s.batches(trials)
            for m in METHODS for a in s.ALPHAS for r in (True, False)]  # fmt: skip


def measure(method: str, alpha: float, recycle: bool, seeds: list[int]) -> dict[str, Any]:
    make = {"R-ADMM": s.r_admm, "MR-ADMM": s.mr_admm}[method]
    made = make(alpha, recycle=recycle, rounds=s.ROUNDS if recycle else s.ROUNDS // 2)
    out = s.trained(made, seeds)
    loss = out["loss"][:, ::2] if recycle else out["loss"]  # the odd iterations
    return {**out, "noisy": loss, "bound": float(s.claimed(made).max()), "best": np.array([s.optimum()])}


def table(results: Results) -> list[dict[str, Any]]:
    cases = [{"method": m, "alpha": a, "recycle": r} for m in METHODS for a in s.ALPHAS for r in (True, False)]
    return [{**case, "messages": s.ROUNDS if case["recycle"] else s.ROUNDS // 2, **s.summary(results.where(**case)),
             "bound": results.stack("bound", **case)[0]} for case in cases]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    rows = {(r["method"], r["alpha"], r["recycle"]): r for r in table(results)}
    cases = {(m, a): (rows[m, a, False], rows[m, a, True]) for m in METHODS for a in s.ALPHAS}
    lowered = [f"{m} at α={a:g}" for (m, a), (odd, whole) in cases.items() if odd["loss"] > 1.02 * whole["loss"]]
    same = all(odd["bound"] == whole["bound"] for odd, whole in cases.values())
    return [
        own("leaving the even steps out does as well or better, for both methods at every α (loss within 2 %)",
            "; ".join(f"{m}, α={a:g}: loss {odd['loss']:.3f} without, {whole['loss']:.3f} with, error "
                      f"{odd['test_error']:.4f}, {whole['test_error']:.4f}, bound {odd['bound']:.2f}, "
                      f"{whole['bound']:.2f}" for (m, a), (odd, whole) in cases.items()),
            same and not lowered,
            why=f"the recycled step lowers the loss: {', '.join(lowered)}" if same else ""),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure, axes = d.panels(1, 3)
    for ax, a in zip(axes, s.ALPHAS, strict=True):
        for m in METHODS:
            for recycle in (True, False):
                noisy = results.stack("noisy", method=m, alpha=a, recycle=recycle)
                d.band(ax, noisy, color=d.COLOURS[m], linestyle="-" if recycle else "--",
                       label=m if recycle else f"{m}, no even steps")  # fmt: skip
        ax.axhline(results[0][1]["best"][0][0], **d.OPTIMUM, label="optimum")
        ax.set(title=f"α={a:g}", xlabel="noisy iteration k", ylabel="average loss after it", yscale="log")
        d.plain_ticks(ax)
    d.legend_below(figure, axes[0], 5)
    return figure
