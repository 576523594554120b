"""Figure 5: the trade-off between privacy and accuracy, lasso: error after 200 rounds against ε̄ of (25), and against δ.

Settings and baselines as in fig4. J of (22) and the baselines' noise depend on ε and δ through ε/√log(1.25/δ) alone,
so that one run serves a point of both panels; a baseline takes the parameters tuned for the nearest noise. Errors
are means of rounds 180 and 200.
"""

from __future__ import annotations

from typing import Any

from confide.papers.reproduce import Trials

from . import _tradeoff
from ._runs import measure
from ._tradeoff import draw, findings, table

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
title = "Privacy against accuracy, lasso"
trials = Trials(published=100, full=100, quick=1)
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return _tradeoff.tasks("lasso", trials)
