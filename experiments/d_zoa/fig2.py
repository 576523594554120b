"""Figure 2: histogram and QQ plot of an entry of g_k^(t) at agent 2, t = 100, m = 50.

One run of the ridge problem is taken to round m and inner step t; from that point g is drawn again and again. The text
does not say at which ε, that is, with how many directions J: shown are both of its values, .15 (J = 4) and .95
(J = 142). Normality of g, which Lemma 1 assumes, is a matter of J.
"""

from __future__ import annotations

from typing import Any

from confide.papers.reproduce import Trials

from . import _gradients
from ._gradients import draw, findings, measure, table

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
title = "Histogram and QQ plot of the stochastic gradient, t = 100, m = 50"
trials = Trials(published=None, full=2000, quick=500)  # draws
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return _gradients.tasks(100, 50, trials)
