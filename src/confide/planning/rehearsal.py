"""A rehearsal: does a method reach the optimum without noise, on invented rows of the federation's public shape?

Whoever sets a method by hand learns before anyone has spent anything that its step, coupling or rounds do not suffice.
Rows are invented, so that a rehearsal reveals nothing; what it says is of rows of average difficulty, not of theirs.

    gap = max_k (F(β_k) - F*) / (F(0) - F*)        F: what the parties minimise; β_k: party k's model after all rounds

A gap of 0 is the optimum and of 1 no model at all. Beyond `FAR` it is worth a word.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from confide.algorithms import Algorithm
from confide.errors import ConfideError, Diverged
from confide.estimators.fitting import Calibrate
from confide.estimators.one_fit import calibrated
from confide.network.graph import Graph
from confide.privacy import Label
from confide.problem.losses import BlackBox
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards
from confide.runs.driver import Driver

ROWS, NUMBERS, SECONDS = 20_000, 4_000_000, 10.0  # at most: rows, numbers in them, and time
FAR = 0.1
TRIED = "without noise, on invented rows of this shape,"
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


def rehearsing(tried: Callable[[Any, Public], object], allow_unproven: bool) -> Calibrate:
    """Calibration that hands a method to `tried`, once, before anything is paid for, unless it will be refused."""
    done = False

    def calibrate(method: Any, public: Public, mu: float, epsilon: float, delta: float) -> Any:
        nonlocal done
        made = calibrated(method, public, mu, epsilon, delta)
        refused = made.guarantee(public).label != Label.PROVEN and not allow_unproven  # which is said soon
        if not done and not refused:  # several parts, one class against the rest each, are alike
            done = True
            tried(made, public)
        return made

    return calibrate


def rehearse(method: Algorithm, public: Public, seconds: float = SECONDS,
             watch: Watch = lambda done, total: None) -> Rehearsal:  # fmt: skip
    """Run `method` without noise on rows of this shape, for at most so many seconds; `watch` hears of every round."""
    graph = public.graph
    networked = isinstance(graph, Graph) or (graph is None and public.count == 1)
    if isinstance(public.loss, BlackBox) or method.topology == "central" or not networked:
        return Rehearsal(None, "not checked: only methods that learn a linear model over a network are")
    rows = min(int(public.sizes.sum()), ROWS, NUMBERS // public.width)
    if rows < max(2 * public.width, public.count):
        return Rehearsal(None, f"not checked: {public.width:,} coefficients need more rows than are invented for this")
    began = time.perf_counter()
    problem = invented(public, rows)
    quiet = replace(method, **{one.name: 0.0 for one in fields(method) if one.name in NOISES})  # type: ignore[arg-type]
    watch(0, quiet.rounds)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            best, start = problem.objective(problem.solve()), problem.objective(np.zeros(problem.width))
            driver = Driver(problem, graph, quiet, [0])  # type: ignore[arg-type]
            for t in range(quiet.rounds):
                if time.perf_counter() - began > seconds:
                    return Rehearsal(
                        None, f"not checked: the optimum and {t} of {quiet.rounds} rounds took {seconds:g} s"
                    )
                driver.step()
                watch(t + 1, quiet.rounds)
            found = max(problem.objective(model) for model in driver.estimates[0])
    except Diverged as error:
        return Rehearsal(np.inf, f"{TRIED} it diverges: {error}")
    except ConfideError as error:  # its settings do not go without noise, or no optimum was found
        return Rehearsal(None, f"not checked: {error}")
    gap = (found - best) / max(start - best, 1e-300)
    if not math.isfinite(gap):
        return Rehearsal(np.inf, f"{TRIED} it diverges: its numbers grow beyond all bounds")
    if gap > 1:
        return Rehearsal(gap, f"{TRIED} it diverges: it ends {gap:.3g} times as far from the optimum as no model")
    return Rehearsal(gap, f"{TRIED} it ends with {100 * gap:.3g} % of the way to the optimum left")


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
