"""Figure 4: normalised error against rounds for the ℓ₁-norm (lasso) penalty at ε = .15 and .95 of one iteration.

The methods are DPSGD, DP-ADMM and D-ZOA (PVP and DVP need a smooth objective). Chosen where the text leaves it open:
R = 1 and L = 2.5; data and noise of their own in every trial; every baseline gets Gaussian noise that makes one
iteration (ε, δ)-private by (20)'s rule with its own sensitivity under c1 = 1, which nothing enforces: *assumed*
(DVP's Gaussian noise has no account at all: *none*). Their steps and penalty parameters are tuned (see tuning).
D-ZOA's J comes from (22), agent by agent. β^c solves (1) with its 1/N_k: (30) and (31) omit it, and then exact ADMM
never gets there. DP-ADMM's error is that of the server's average, K times. Errors are divided by the mean of ‖β^c‖²
over data sets, not by each one's own: the lasso's β^c is 0 in one data set of 100 and nearly 0 in six. At ρ = 4 even
exact ADMM still falls at round 200, so D-ZOA has not reached its floor at ε = .95.
"""

from __future__ import annotations

from typing import Any

from confide.papers.reproduce import Finding, Results, Trials, shape

from . import _convergence
from ._convergence import TAIL, draw, table
from ._runs import measure
from ._setting import EPSILONS, compared

__all__ = ["data", "draw", "findings", "measure", "table", "tasks", "title", "trials"]
title = "Normalised error against rounds, lasso"
trials = Trials(published=100, full=100, quick=2)
data = ()
STEADY = 0.1  # of the error of the rounds before


def tasks(trials: int) -> list[dict[str, Any]]:
    return _convergence.tasks("lasso", trials)


def findings(results: Results) -> list[Finding]:
    return [*_convergence.findings(results), converged(results)]


def converged(results: Results) -> Finding:
    """Of each curve the last rounds are below the first one, and as those before them: neither rising nor falling."""
    curves = {(m, e): results.stack("error", method=m, epsilon=e).mean(axis=0)
              for m in compared(results) for e in EPSILONS}  # fmt: skip
    parts = {key: (curve[0], curve[-2 * TAIL : -TAIL].mean(), curve[-TAIL:].mean()) for key, curve in curves.items()}
    moving = {key: c / b for key, (a, b, c) in parts.items() if not (c < a and abs(c / b - 1) <= STEADY)}
    return shape(
        f"all algorithms converge, at both ε and one δ: the mean error of the last {TAIL} rounds is below the first "
        f"round's and within {STEADY:.0%} of that of the {TAIL} before", "all converge",
        ", ".join(f"{m}, ε={e}: {a:.2g}, then {b:.2g}, {c:.2g}" for (m, e), (a, b, c) in parts.items()),
        not moving, why=falling(moving),
    )  # fmt: skip


def falling(moving: dict[tuple[str, float], float]) -> str:
    """A cause if whatever has not settled still falls."""
    if not all(f < 1 for f in moving.values()):
        return ""
    said = ", ".join(f"{m} at ε={e} to {f:.0%}" for (m, e), f in moving.items())
    return f"200 rounds are too few: what has not settled still falls ({said})"
