"""Figure 2: augmented objective by iteration under several privacy budgets, with an l1 penalty.

The value is Σ_i f_i(w̄_i) + ρ‖w̄_i - w̄‖ with w̄ the running means, on 50 machines at τ=.5.
Left ε=.01, .05, .1 and .2 per iteration at δ=1e-3, right δ=1e-6 to 1e-3 at ε=.1; the number of machines is not stated.
The text gives no numbers of this figure; its claims in words are the findings. Privacy is assumed (c1 is not enforced).
"""

from typing import Any

from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _draw, _series
from ._series import measure

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
KIND = "l1"
title = f"Augmented objective by privacy budget, {KIND} penalty"
trials = Trials(published=100, full=100, quick=1)
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return _series.tasks(KIND, (_series.MOST,), trials)


def table(results: Results) -> list[dict[str, Any]]:
    return _draw.budget_rows(results.stack("augmented"), _series.EVERY)


def findings(results: Results) -> list[Finding]:
    mean = results.stack("augmented").mean(axis=0)
    end = mean[:, -1]
    out = [
        shape("larger ε, lower value at the end: δ=1e-3, ε=.01 .05 .1 .2 ∞", "yes",
              " ".join(f"{end[i]:.4g}" for i in (0, 1, 2, 3, 8)), end[0] > end[1] > end[2] > end[3] >= 0.99 * end[8]),
        shape("larger δ, lower value at the end: ε=.1, δ=1e-6 to 1e-3", "yes",
              " ".join(f"{v:.4g}" for v in end[4:8]), all(end[i] > end[i + 1] for i in range(4, 7))),
    ]  # fmt: skip
    falls = mean[:, -1] < mean[:, 4]
    out.append(shape(
        "the value falls with the iterations, from the 5th to the last", "all", f"{falls.sum()} of {len(falls)}",
        falls.all(),
    ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    return _draw.budgets(results, results.stack("augmented"), "augmented objective")
