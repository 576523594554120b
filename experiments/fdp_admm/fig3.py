"""Figure 3: empirical loss by iteration under several privacy budgets, with an l1 penalty.

The loss is that of every worker at its own noisy model w̃_i, on 50 machines at τ=.5.
Left ε=.01, .05, .1 and .2 per iteration at δ=1e-3, right δ=1e-6 to 1e-3 at ε=.1; the number of machines is not stated.
The text gives no numbers of this figure; its claims in words are the findings. Privacy is assumed (c1 is not enforced).

"Fast" has no number in the text; section 4.2 speaks of dozens of iterations. Judged: within 20 % of the end around
iteration 30.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _draw, _series
from ._series import measure

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
KIND, NEAR = "l1", 0.2
title = f"Empirical loss by privacy budget, {KIND} penalty"
trials = Trials(published=100, full=100, quick=1)
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return _series.tasks(KIND, (_series.MOST,), trials)


def table(results: Results) -> list[dict[str, Any]]:
    return _draw.budget_rows(results.stack("loss"), _series.EVERY)


def findings(results: Results) -> list[Finding]:
    mean = results.stack("loss").mean(axis=0)
    end = mean[:, -10:].mean(axis=1)  # a worker's own model is as noisy as its last iteration
    out = [
        shape("larger ε, lower mean of the last ten: δ=1e-3, ε=.01 .05 .1 .2 ∞", "yes",
              " ".join(f"{end[i]:.4g}" for i in (0, 1, 2, 3, 8)), end[0] > end[1] > end[2] > end[3] >= 0.99 * end[8]),
        shape("larger δ, lower mean of the last ten: ε=.1, δ=1e-6 to 1e-3", "yes",
              " ".join(f"{v:.4g}" for v in end[4:8]), all(end[i] > end[i + 1] for i in range(4, 7))),
    ]  # fmt: skip
    near, free = np.abs(mean[:, 25:35].mean(axis=1) / end - 1), mean[-1]
    slow = near[-1] >= NEAR and free.max() > free[0]  # without noise, too
    cause = (
        f"not the noise: without any it is {near[-1]:.0%} off, too; there the loss first rises, from {free[0]:.2f} to "
        f"{free.max():.2f} at iteration {np.argmax(free) + 1}; no run has another step"
    )
    out.append(shape(
        "fast convergence whatever the privacy: around iteration 30 the loss is within 20 % of its end", "all",
        "off by " + " ".join(f"{v:.0%}" for v in near) + " (last: without noise)", np.all(near < NEAR),
        why=cause if slow else "no cause is known",
    ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    return _draw.budgets(results, results.stack("loss"), "empirical loss")
