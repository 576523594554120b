"""`run`: attack a method on neighbouring data sets and compare what is proved with what is claimed.

    1  screen every canary against every adversary on a few repetitions: how far messages move, over their noise
    2  follow up the best of each kind on more: what bound would they promise?
    3  fit every distinguisher to the best on repetitions of its own
    4  choose distinguisher, threshold and kind of bound on further repetitions: what promises the largest bound
    5  count that one test's errors on fresh repetitions; bound the privacy loss at the confidence asked for

Line 5 is one test on repetitions that no choice has seen, so the error level holds over everything tried before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.audit import bounds
from confide.audit.adversary import ADVERSARIES, SILENT, Adversary
from confide.audit.canary import Canary, family
from confide.audit.distinguishers import Distinguisher, fit, noise_fell, signal
from confide.audit.result import AuditResult, Tried
from confide.audit.transcript import Transcript, observe
from confide.errors import ConfideError, WrongType
from confide.problem.losses import Loss
from confide.runs.driver import describe
from confide.runs.progress import Bars, bars

Array = NDArray[np.float64]
FIT, CHOOSE, TEST, SCREEN = range(4)
FOLLOWED = 1 << 24  # where the seeds of line 2 begin among those of line 1
BATCH = 4000  # repetitions held at once; to fit and to choose there are no more
FEW, SOME = 16, 500  # repetitions of lines 1 and 2
FEWEST = 100
CUTS = 1000  # thresholds compared
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

    @property
    def value(self) -> float:
        """μ for a Gaussian-DP claim, else ε."""
        return self.epsilon if self.mu is None else self.mu

    def bound(self, kind: str, false_alarms: Any, misses: Any, repetitions: int) -> Array:
        """What so many errors prove: μ for a Gaussian-DP claim, else ε."""
        errors = (false_alarms, misses, repetitions, self.level)
        if self.mu is None:
            prove = bounds.epsilon_from_accuracy if kind == "accuracy" else bounds.epsilon_from_rates
            return prove(*errors, self.delta)
        return (bounds.mu_from_accuracy if kind == "accuracy" else bounds.mu_from_rates)(*errors)


@dataclass(frozen=True, eq=False)
class Case:
    """A method in one setting: what may be tried on it, and its claim.

    algorithm      the method, its noise in place
    canaries       what may be tried on it
    epsilon, mu    its claim; mu is None where it is not Gaussian
    name           for the table
    """

    algorithm: Algorithm
    canaries: Sequence[Canary]
    epsilon: float
    mu: float | None = None
    name: str = ""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One canary with its adversary, and what a few repetitions say of it."""

    case: Case
    canary: Canary
    signal: float = 0.0


def run(
    algorithm: Algorithm, canary: Canary | Loss | Sequence[Canary], *, epsilon: float, delta: float,
    mu: float | None = None, repetitions: int = 4000, confidence: float = 0.95, seed: int = 0, progress: bool = False,
) -> AuditResult:  # fmt: skip
    """A lower bound on the privacy loss of `algorithm`, against the claim (`epsilon`, `delta`).

    canary        two neighbouring data sets and what the neighbours say; or several of them; or a loss, for its whole
                  `family` against every adversary
    mu            the claim's Gaussian-DP parameter, if it is one; the bound is then on μ, and far tighter
    repetitions   of each world in the final test; as many again, at most 4,000, to fit and to choose
    """
    if not isinstance(algorithm, Algorithm):
        raise WrongType(f"algorithm={algorithm!r}: must be one of confide.algorithms, such as CDPADMM(clip=1, noise=1)")
    if isinstance(canary, Canary):
        canaries: Sequence[Canary] = [canary]
    elif not isinstance(canary, Loss) and not (
        isinstance(canary, Sequence) and all(isinstance(c, Canary) for c in canary)
    ):
        raise WrongType(f"canary={canary!r}: must be a Canary, several of them, or a loss such as losses.Logistic()")
    else:
        canaries = trials(algorithm, family(canary, algorithm)) if isinstance(canary, Loss) else list(canary)
    case = Case(algorithm, canaries, epsilon, mu)
    return attack([case], delta=delta, repetitions=repetitions, confidence=confidence, seed=seed, progress=progress)


def trials(
    algorithm: Algorithm, canaries: Sequence[Canary], adversaries: Sequence[Adversary] | None = None
) -> list[Canary]:
    """Every canary with every adversary that may tell something of it.

    Adversaries who round need rows that pull one way, and those rows need no other. A central method has no neighbours.
    A method with an argmin, whose solver toils in vain among numbers near overflow, hears none of them unless messages
    stay in a public ball.
    """
    if algorithm.topology == "central":
        return [c.against(SILENT) for c in canaries]
    if adversaries is not None:
        return [c.against(a) for a in adversaries for c in canaries]
    solves = hasattr(algorithm, "tolerance") and not np.isfinite(algorithm.message_bound(canaries[0].view(algorithm)))
    return [
        c.against(a)
        for a in ADVERSARIES.values()
        for c in canaries
        if c.name.startswith("crowd") == (a.kind == "rounding") and not (solves and a.kind != "plain")
    ]


def attack(
    cases: Sequence[Case], *, delta: float, repetitions: int = 4000, confidence: float = 0.95, seed: int = 0,
    progress: bool = False,
) -> AuditResult:  # fmt: skip
    """`run` over several settings of a method, each with a claim: the bound is for the one that promises most."""
    for case in cases:
        check(case.epsilon, delta, case.mu, repetitions, confidence, seed)
        if not case.canaries:
            raise ConfideError("no canary: an audit needs at least one")
        case.algorithm.check(case.canaries[0].view(case.algorithm))
    claims = {id(case): Claim(case.epsilon, delta, case.mu, 1 - confidence) for case in cases}
    study, some = min(repetitions, BATCH), min(repetitions, SOME)
    every = [Attempt(case, canary) for case in cases for canary in case.canaries]
    with bars(show=progress) as heard:
        stage = StageProgress(heard)

        def worlds(trial: Attempt, purpose: int, first: int, end: int, predict: bool = True) -> Iterator[Transcript]:
            """Repetitions first to end of both worlds; every purpose and world has seeds of its own."""
            for world in (0, 1):
                seeds = np.arange(first, end, dtype=np.int64) + ((8 * seed + 2 * purpose + world) << 32)
                yield observe(trial.case.algorithm, trial.canary, world, seeds, stage.advance, predict)

        best = every[0]
        if len(every) > 1:
            stage.begin("screening", sum(2 * t.case.algorithm.rounds for t in every))
            every = [replace(t, signal=signal(*worlds(t, SCREEN, 0, FEW))) for t in every]
            few = shortlist(every)
            stage.begin("following up", sum(4 * t.case.algorithm.rounds for t in few))
            promised = []
            for trial in few:
                claim, middle = claims[id(trial.case)], FOLLOWED + some
                found = fit(*worlds(trial, SCREEN, FOLLOWED, middle))
                test = choose(claim, found, *worlds(trial, SCREEN, middle, middle + some))
                promised.append(test.promise / claim.value)
            best = next(t for t, p in zip(few, promised, strict=True) if p >= CLOSE * max(promised))
        algorithm, claim = best.case.algorithm, claims[id(best.case)]
        stage.begin(algorithm.name, (4 + 2 * math.ceil(repetitions / BATCH)) * algorithm.rounds)
        fitted = list(worlds(best, FIT, 0, study))
        found = fit(*fitted)
        test = choose(claim, found, *worlds(best, CHOOSE, 0, study))
        scores = [
            [test.distinguisher.score(x) for x in worlds(best, TEST, first, end, test.distinguisher.predicts)]
            for first, end in pairwise([*range(0, repetitions, BATCH), repetitions])
        ]
    one, other = (np.concatenate(part) for part in zip(*scores, strict=True))
    errors = int(np.sum(one > test.threshold)), int(np.sum(other <= test.threshold))
    low = float(claim.bound(test.kind, *errors, repetitions))
    gaussian, plain = claim.mu is not None, replace(claim, mu=None)
    mu_most, epsilon_most = (
        float(max(c.bound(kind, 0, 0, repetitions) for kind in ("accuracy", "rates"))) for c in (claim, plain)
    )
    speaker = "the hub adds" if algorithm.topology == "all" else "neighbours say"
    coalition = best.canary.coalition(algorithm)
    if coalition is not None:
        left = "the others' sum" if best.canary.hidden(algorithm) else "the target's message"
        speaker = f"outsiders and {coalition.colluders} of {coalition.parties} parties see {left} and say"
    return AuditResult(
        algorithm=algorithm.name, parameters=describe(algorithm), loss=repr(best.canary.one.loss),
        setting=best.case.name, canary=best.canary.text, adversary=f"{speaker} {best.canary.adversary.text}",
        distinguisher=test.distinguisher.name, bound=test.kind,
        epsilon=claim.epsilon, delta=delta, mu=claim.mu,
        epsilon_low=bounds.gaussian_epsilon(low, delta) if gaussian else low, mu_low=low if gaussian else None,
        epsilon_any=float(plain.bound(test.kind, *errors, repetitions)),
        epsilon_most=epsilon_most, mu_most=mu_most if gaussian else None,
        confidence=confidence, repetitions=repetitions, rounds=algorithm.rounds, seed=seed, threshold=test.threshold,
        false_alarms=errors[0], misses=errors[1], rarest=float(bounds.upper(0, repetitions, 1 - confidence)),
        noise_fell=noise_fell(fitted[0]), scores=(one, other),
        tried=tuple(Tried(t.case.name, t.canary.name, t.canary.adversary.name, t.signal) for t in every),
        coalition=coalition,
    )  # fmt: skip


def shortlist(every: Sequence[Attempt]) -> list[Attempt]:
    """For each setting its first trial, and of each kind of adversary the two that promise most."""
    few: list[Attempt] = []
    for case in {id(t.case): t.case for t in every}.values():
        mine = [t for t in every if t.case is case]
        wanted = [mine[0]]
        for kind in dict.fromkeys(t.canary.adversary.kind for t in mine):
            ranked = sorted((t for t in mine if t.canary.adversary.kind == kind), key=lambda t: -t.signal)
            wanted += ranked[:2]
        few += [t for t in mine if any(t is w for w in wanted)]
    return few


def choose(claim: Claim, found: list[Distinguisher], one: Transcript, other: Transcript) -> Test:
    """The simplest test that promises about the largest bound, going by these repetitions."""
    tests = []
    for distinguisher in found:
        a, b = np.sort(distinguisher.score(one)), np.sort(distinguisher.score(other))
        both = np.unique(np.concatenate([a, b]))
        if len(both) < 2 or not np.all(np.isfinite(both)):
            continue
        cuts = 0.5 * (both[1:] + both[:-1])
        cuts = cuts[np.unique(np.linspace(0, len(cuts) - 1, CUTS).astype(int))]
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
        raise ConfideError(f"epsilon={epsilon}: a claim must be finite and above 0")
    if not 0 < delta < 1:
        raise ConfideError(f"delta={delta}: must lie strictly between 0 and 1")
    if mu is not None and not 0 < mu < math.inf:
        raise ConfideError(f"mu={mu}: a Gaussian-DP claim must be finite and above 0")
    if isinstance(repetitions, bool) or int(repetitions) != repetitions or repetitions < FEWEST:
        raise ConfideError(f"repetitions={repetitions}: must be a whole number of at least {FEWEST}")
    if not 0 < confidence < 1:
        raise ConfideError(f"confidence={confidence}: must lie strictly between 0 and 1")
    if isinstance(seed, bool) or int(seed) != seed or not 0 <= seed < 2**27:
        raise ConfideError(f"seed={seed}: must be a whole number from 0 to {2**27 - 1}")


class StageProgress:
    """The stage at hand and how far it is."""

    def __init__(self, heard: Bars) -> None:
        self.heard, self.name, self.done, self.total = heard, "", 0, 0

    def begin(self, name: str, total: int) -> None:
        self.name, self.done, self.total = name, 0, total
        self.heard(name, 0, total)

    def advance(self) -> None:
        self.done += 1
        self.heard(self.name, self.done, self.total)
