"""Figure 4: empirical loss by iteration on 10, 20 and 50 machines, with an l2 penalty.

Panels are ε=.01, .05, .1 and .2 per iteration at δ=1e-3, τ=.5; the loss is that of every worker at its own noisy model.
The text gives no numbers of this figure; its claims in words are the findings. Privacy is assumed (c1 is not enforced).
"""

from typing import Any

from . import _series
from ._series import measure
from .fig1 import data, draw, findings, table, trials

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
KIND = "l2"
title = f"Empirical loss by number of machines, {KIND} penalty"


def tasks(trials: int) -> list[dict[str, Any]]:
    return _series.tasks(KIND, _series.WORKERS, trials)
