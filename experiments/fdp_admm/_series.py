"""Figures 1 to 6: empirical loss and augmented objective by iteration.

The figures' ε are those listed in section 5, .01 to .2. Chosen where the text leaves it open: the design and settings
that fit the tables; in Figures 2, 3, 5 and 6 M=50, where privacy costs most.
"""

from typing import Any

import numpy as np

from ._setting import COUPLING, ROUNDS, driver, multiplier, problem

DESIGN, LEVEL = "as-published-tables", 0.5
BUDGETS = (0.01, 0.05, 0.1, 0.2)  # section 5
WORKERS = (10, 20, 50)
MOST = 50
BY_EPSILON = tuple((e, 1e-3) for e in BUDGETS)
BY_DELTA = tuple((0.1, d) for d in (1e-6, 1e-5, 1e-4, 1e-3))
NONE = (float("inf"), 1.0)


def losses(workers: int, kind: str, cells: Any, trial: int) -> dict[str, Any]:
    """(1/M) Σ_i mean check loss of worker i's rows at its noisy w̃_i: {"loss": (1, cells, rounds)}."""
    run = _run(workers, kind, cells, trial)
    out = []
    for _ in range(ROUNDS):
        run.step()
        out.append(run.block.value(run.state.primal).mean(axis=1))
    return {"loss": np.array(out).T[None]}


def augmented(workers: int, kind: str, cells: Any, trial: int) -> dict[str, Any]:
    """Σ_i f_i(w̄_i) + ρ‖w̄_i - w̄‖ of the running means, and Σ_i f_i at the true coefficients' place, 0 noise."""
    run = _run(workers, kind, cells, trial)
    out, own, common = [], np.zeros_like(run.state.primal), np.zeros_like(run.state.average)
    for l in range(1, ROUNDS + 1):
        own = own + (run.state.primal - own) / l  # w̃ of iterations 0 to l-1
        run.step()
        common = common + (run.state.average - common) / l
        penalty = (run.public.penalty.terms(own) * run.public.mask).sum(axis=2) / workers
        gap = COUPLING * np.linalg.norm(own - common, axis=2)
        out.append((run.block.value(own) + penalty + gap).sum(axis=1))
    return {"augmented": np.array(out).T[None]}


def _run(workers: int, kind: str, cells: Any, trial: int) -> Any:
    noise = [multiplier(DESIGN, *cell) if np.isfinite(cell[0]) else 0.0 for cell in cells]
    return driver(problem(DESIGN, LEVEL, workers, kind, trial), noise, trial)
