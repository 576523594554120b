"""Figure 5: augmented objective by iteration under several privacy budgets, with an l2 penalty.

The value is Σ_i f_i(w̄_i) + ρ‖w̄_i - w̄‖ with w̄ the running means, on 50 machines at τ=.5.
Left ε=.01, .05, .1 and .2 per iteration at δ=1e-3, right δ=1e-6 to 1e-3 at ε=.1; the number of machines is not stated.
The text gives no numbers of this figure; its claims in words are the findings. Privacy is assumed (c1 is not enforced).
"""

from typing import Any

from . import _series
from ._series import measure
from .fig2 import data, draw, findings, table, trials

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
KIND = "l2"
title = f"Augmented objective by privacy budget, {KIND} penalty"


def tasks(trials: int) -> list[dict[str, Any]]:
    return _series.tasks(KIND, (_series.MOST,), trials)
