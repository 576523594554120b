"""A rehearsal: does a method reach the optimum without noise, on invented rows of the federation's public shape?

Whoever sets a method by hand learns before anyone has spent anything that its step, coupling or rounds do not suffice.
Rows are invented, so that a rehearsal reveals nothing; what it says is of rows of average difficulty, not of theirs.

    gap = max_k (F(β_k) - F*) / (F(0) - F*)        F: what the parties minimise; β_k: party k's model after all rounds

A gap of 0 is the optimum and of 1 no model at all. Beyond `FAR` it is worth a word.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from confide.algorithms import Algorithm
from confide.errors import ConfideError, Diverged
from confide.network.graph import Graph
from confide.problem.losses import BlackBox
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards
from confide.runs.driver import Driver

ROWS, NUMBERS, SECONDS = 20_000, 4_000_000, 10.0  # at most: rows, numbers in them, and time for the rounds
FAR = 0.1
NOISES = ("noise", "noise_rate", "release_noise", "objective_noise")
Watch = Callable[[int, int], None]  # (rounds done, of how many)
STEEP = 2.0  # of the margins of invented rows: the best answer is right in some 4 of 5 cases


@dataclass(frozen=True)
class Rehearsal:
    """`gap` after all rounds, None where it is not known; `why` says so, or what came out."""

    gap: float | None
    why: str

    @property
    def far(self) -> bool:
        return self.gap is not None and self.gap > FAR


def rehearse(method: Algorithm, public: Public, seconds: float = SECONDS,
             watch: Watch = lambda done, total: None) -> Rehearsal:  # fmt: skip
    """Run `method` without noise on rows of this shape, for at most so many seconds; `watch` hears of every round."""
    graph = public.graph
    if isinstance(public.loss, BlackBox) or method.topology == "central" or not isinstance(graph, Graph):
        return Rehearsal(None, "not checked: only methods that learn a linear model over a network are")
    rows = min(int(public.sizes.sum()), ROWS, NUMBERS // public.width)
    if rows < max(2 * public.width, public.count):
        return Rehearsal(None, f"not checked: {public.width:,} coefficients need more rows than are invented for this")
    problem = invented(public, rows)
    quiet = replace(method, **{one.name: 0.0 for one in fields(method) if one.name in NOISES})  # type: ignore[arg-type]
    try:
        driver = Driver(problem, graph, quiet, [0])
        began = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(1, quiet.rounds + 1):
                driver.step()
                watch(t, quiet.rounds)
                if t == 1:
                    began = time.perf_counter()  # the first compiles
                elif time.perf_counter() - began > seconds:
                    return Rehearsal(None, f"not checked: {t} of {quiet.rounds} rounds took {seconds:g} s")
        best, start = problem.objective(problem.solve()), problem.objective(np.zeros(problem.width))
    except Diverged as error:
        return Rehearsal(np.inf, f"without noise, on invented rows of this shape, it diverges: {error}")
    except ConfideError as error:  # its settings do not go without noise, or no optimum was found
        return Rehearsal(None, f"not checked: {error}")
    found = max(problem.objective(model) for model in driver.estimates[0])
    gap = (found - best) / max(start - best, 1e-300)
    return Rehearsal(
        gap,
        f"without noise, on invented rows of this shape, it ends with {100 * gap:.3g} % of the way to the optimum left",
    )


def invented(public: Public, rows: int) -> Problem:
    """So many rows, divided as the parties' are, and a label that follows them through logistic or normal noise."""
    rng = np.random.default_rng(22)
    sizes = np.maximum(1, np.floor(rows * public.sizes / public.sizes.sum()).astype(int))
    n, p, loss = int(sizes.sum()), public.features, public.loss.base
    norm = 1.0 if public.row_norm is None else float(public.row_norm)
    X = rng.normal(size=(n, p))
    X *= norm / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    z = X @ rng.normal(size=(p, loss.outputs))
    z *= STEEP / np.maximum(z.std(axis=0), 1e-300)
    y: Any
    if loss.labels == "sign":
        y = np.where(z[:, 0] + rng.logistic(size=n) > 0, 1.0, -1.0)
    elif loss.labels == "class":
        y = np.argmax(z + rng.gumbel(size=z.shape), axis=1).astype(float)
    else:  # most within -1 to 1, as a schema encodes numbers
        y = np.clip(0.15 * (z[:, 0] + rng.normal(size=n)), -1, 1)
    shards = Shards.from_groups(X, y, np.repeat(np.arange(public.count), sizes))
    if public.row_norm is not None:
        shards = shards.clip_rows(norm)
    return Problem(shards, loss, public.penalty, public.weighting, public.intercept)
