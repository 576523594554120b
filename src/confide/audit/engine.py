"""`run`: attack a method on two neighbouring data sets and compare what is proved with what is claimed.

    1  fit every distinguisher on repetitions of its own
    2  choose distinguisher, threshold and kind of bound on further repetitions: what promises the largest bound
    3  count that one test's errors on fresh repetitions; bound the privacy loss at the confidence asked for

Line 3 is one test, so the error level holds over everything that was tried before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.audit import bounds
from confide.audit.canary import Canary, worst_case
from confide.audit.distinguishers import Distinguisher, fit
from confide.audit.result import AuditResult
from confide.audit.transcript import Transcript, observe
from confide.problem.losses import Loss
from confide.simulation import describe

Array = NDArray[np.float64]
FIT, CHOOSE, TEST = range(3)
BATCH = 4000  # repetitions held at once; to fit and to choose there are no more
FEWEST = 100
CLOSE = 0.9  # a promise is uncertain itself: tests this close to the best count as equal, and the simplest is taken


@dataclass(frozen=True)
class Test:
    """A guess: the second world where the score lies above `threshold`; and how its errors are turned into a bound."""

    distinguisher: Distinguisher
    threshold: float
    kind: str  # "accuracy" or "rates"
    promise: float


@dataclass(frozen=True)
class Claim:
    """What is to be contradicted, in plain numbers; `mu` only where the claim is Gaussian-DP."""

    epsilon: float
    delta: float
    mu: float | None
    level: float  # 1 - confidence

    def bound(self, kind: str, false_alarms: Any, misses: Any, repetitions: int) -> Array:
        """μ for a Gaussian-DP claim, else ε."""
        errors = (false_alarms, misses, repetitions, self.level)
        if self.mu is None:
            prove = bounds.epsilon_from_accuracy if kind == "accuracy" else bounds.epsilon_from_rates
            return prove(*errors, self.delta)
        return (bounds.mu_from_accuracy if kind == "accuracy" else bounds.mu_from_rates)(*errors)


def run(
    algorithm: Algorithm, canary: Canary | Loss, *, epsilon: float, delta: float, mu: float | None = None,
    repetitions: int = 4000, confidence: float = 0.95, seed: int = 0, progress: bool = False,
) -> AuditResult:  # fmt: skip
    """A lower bound on the privacy loss of `algorithm`, against the claim (`epsilon`, `delta`).

    canary        two neighbouring data sets, or a loss, for `worst_case` of it
    mu            the claim's Gaussian-DP parameter, if it is one; the bound is then on μ, and far tighter
    repetitions   of each world in the final test; as many again, at most 4,000, to fit and to choose
    """
    check(epsilon, delta, mu, repetitions, confidence, seed)
    canary = canary if isinstance(canary, Canary) else worst_case(canary, algorithm)
    algorithm.check(canary.view(algorithm))
    claim = Claim(epsilon, delta, mu, 1 - confidence)
    study = min(repetitions, BATCH)
    batches = 4 + 2 * math.ceil(repetitions / BATCH)
    with bar(progress, algorithm, batches * algorithm.rounds) as step:

        def worlds(purpose: int, first: int, end: int, predict: bool = True) -> Iterator[Transcript]:
            """Repetitions first to end of both worlds; every purpose and world has seeds of its own."""
            for world in (0, 1):
                seeds = np.arange(first, end, dtype=np.int64) + ((8 * seed + 2 * purpose + world) << 32)
                yield observe(algorithm, canary, world, seeds, step, predict)

        found = fit(*worlds(FIT, 0, study))
        test = choose(claim, found, *worlds(CHOOSE, 0, study))
        scores = [
            [test.distinguisher.score(x) for x in worlds(TEST, first, end, test.distinguisher.predicts)]
            for first, end in pairwise([*range(0, repetitions, BATCH), repetitions])
        ]
    one, other = (np.concatenate(part) for part in zip(*scores, strict=True))
    errors = int(np.sum(one > test.threshold)), int(np.sum(other <= test.threshold))
    low = float(claim.bound(test.kind, *errors, repetitions))
    return AuditResult(
        algorithm.name, describe(algorithm), repr(canary.one.loss), canary.text, test.distinguisher.name, test.kind,
        epsilon, delta, mu, low if mu is None else bounds.gaussian_epsilon(low, delta), None if mu is None else low,
        confidence, repetitions, seed, test.threshold, errors[0], errors[1], (one, other),
    )  # fmt: skip


def choose(claim: Claim, found: list[Distinguisher], one: Transcript, other: Transcript) -> Test:
    """The simplest test that promises about the largest bound, going by these repetitions."""
    tests = []
    for distinguisher in found:
        a, b = np.sort(distinguisher.score(one)), np.sort(distinguisher.score(other))
        both = np.unique(np.concatenate([a, b]))
        if len(both) < 2 or not np.all(np.isfinite(both)):
            continue
        cuts = 0.5 * (both[1:] + both[:-1])
        false_alarms, misses = len(a) - np.searchsorted(a, cuts, "right"), np.searchsorted(b, cuts, "right")
        all_hold = replace(claim, level=claim.level / len(cuts))  # or chance in a tail would look like promise
        for kind in ("accuracy", "rates"):
            promise = all_hold.bound(kind, false_alarms, misses, len(a))
            tests.append(Test(distinguisher, plateau(cuts, promise), kind, float(promise.max())))
    if not tests:  # every score is the same number: nothing is told apart
        return Test(found[0], 0.0, "rates", 0.0)
    enough = CLOSE * max(test.promise for test in tests)
    return next(test for test in tests if test.promise >= enough)


def plateau(cuts: Array, promise: Array) -> float:
    """The middle of the cuts around the best that promise about as much."""
    best = int(np.argmax(promise))
    low = np.flatnonzero(promise < CLOSE * promise[best])
    before, after = low[low < best], low[low > best]
    first = int(before[-1]) + 1 if before.size else 0
    last = int(after[0]) - 1 if after.size else len(cuts) - 1
    return float(0.5 * (cuts[first] + cuts[last]))


def check(epsilon: float, delta: float, mu: float | None, repetitions: int, confidence: float, seed: int) -> None:
    """One clear line for a claim or a setting that makes no sense."""
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon={epsilon}: a claim must be finite and above 0")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta}: must lie strictly between 0 and 1")
    if mu is not None and not 0 < mu < math.inf:
        raise ValueError(f"mu={mu}: a Gaussian-DP claim must be finite and above 0")
    if isinstance(repetitions, bool) or int(repetitions) != repetitions or repetitions < FEWEST:
        raise ValueError(f"repetitions={repetitions}: must be a whole number of at least {FEWEST}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence}: must lie strictly between 0 and 1")
    if isinstance(seed, bool) or int(seed) != seed or not 0 <= seed < 2**27:
        raise ValueError(f"seed={seed}: must be a whole number from 0 to {2**27 - 1}")


@contextmanager
def bar(show: bool, algorithm: Algorithm, total: int) -> Iterator[Callable[[], Any]]:
    """A progress bar on stderr, or nothing."""
    if not show:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>14}"), BarColumn(40), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(algorithm.name, total=total)
        yield lambda: shown.advance(task)
