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


EVERY = (*BY_EPSILON, *BY_DELTA, NONE)  # the cells on MOST machines; BY_EPSILON's come first


def tasks(kind: str, workers: tuple[int, ...], trials: int) -> list[dict[str, Any]]:
    """Those on MOST machines belong to three figures: measured once in a run of them all."""
    return [{"workers": m, "kind": kind, "trial": t} for t in range(trials) for m in workers]


def measure(workers: int, kind: str, trial: int) -> dict[str, Any]:
    """Of every cell by iteration, each (1, cells, rounds).

    loss        (1/M) Σ_i mean check loss of worker i's rows at its noisy w̃_i
    augmented   Σ_i f_i(w̄_i) + ρ‖w̄_i - w̄‖ of the running means; on MOST machines only
    """
    cells = EVERY if workers == MOST else BY_EPSILON
    noise = [multiplier(DESIGN, *cell) if np.isfinite(cell[0]) else 0.0 for cell in cells]
    run = driver(problem(DESIGN, LEVEL, workers, kind, trial), noise, trial)
    loss, augmented = [], []
    own, common = np.zeros_like(run.state.primal), np.zeros_like(run.state.average)
    for l in range(1, ROUNDS + 1):
        own = own + (run.state.primal - own) / l  # w̃ of iterations 0 to l-1
        run.step()
        loss.append(run.block.value_and_gradient(run.state.primal).mean(axis=1))
        if workers == MOST:
            common = common + (run.state.average - common) / l
            penalty = (run.public.penalty.terms(own) * run.public.mask).sum(axis=2) / workers
            gap = COUPLING * np.linalg.norm(own - common, axis=2)
            augmented.append((run.block.value(own) + penalty + gap).sum(axis=1))
    found = {"loss": np.array(loss).T[None]}
    return {**found, "augmented": np.array(augmented).T[None]} if augmented else found
