"""What figures 1 and 4 to 7 measure: the error of one method by round.

They have runs in common, such as D-ZOA's at ε = .95 and δ = 10⁻³: files with the same `measure` and the same task are
measured once in a run of them all.
"""

from __future__ import annotations

from typing import Any

from ._setting import chunks, label, trial_errors


def task(method: str, penalty: str, epsilon: float, delta: float, trials: int) -> list[dict[str, Any]]:
    """The tasks for `trials` data sets; D-ZOA takes longest."""
    return [
        {"method": method, "penalty": penalty, "epsilon": epsilon, "delta": delta, "trials": part}
        for part in chunks(trials, 2, 2 if method == "D-ZOA" else 14)
    ]


def measure(method: str, penalty: str, epsilon: float, delta: float, trials: list[int]) -> dict[str, Any]:
    """{"error": (trials, rounds), "label": the guarantee's}."""
    return {"error": trial_errors(method, penalty, epsilon, delta, range(*trials)), "label": label(method, penalty)}
