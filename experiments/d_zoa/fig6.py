"""Figure 6: normalised error against rounds for the ℓ₂-norm (ridge) penalty at ε = .15 and .95 of one iteration.

The methods are DPSGD, PVP, DP-ADMM, DVP and D-ZOA. Chosen where the text leaves it open: R = 1 and L = 2.5; data and
noise of their own in every trial; every baseline gets Gaussian noise that makes one iteration (ε, δ)-private by
(20)'s rule with its own sensitivity under c1 = 1, which nothing enforces: *assumed* (DVP's Gaussian noise has no
account at all: *none*). Their steps and penalty parameters are tuned (see tuning). D-ZOA's J comes from (22), agent
by agent. β^c solves (1) with its 1/N_k: (30) and (31) omit it, and then exact ADMM never gets there. DP-ADMM's error
is that of the server's average, K times. D-ZOA reaches its floor near round 150.
"""

from __future__ import annotations

from typing import Any

from confide.papers.reproduce import Trials

from . import _convergence
from ._convergence import draw, findings, table
from ._runs import measure

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
title = "Normalised error against rounds, ridge"
trials = Trials(published=100, full=100, quick=2)
data = ()


def tasks(trials: int) -> list[dict[str, Any]]:
    return _convergence.tasks("ridge", trials)
