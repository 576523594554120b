"""The demo: what five hospitals gain by learning together, and what privacy costs them.

Readmission within 30 days, by logistic regression. Every private method gets the same total (ε, δ) for every patient,
over all its rounds; noise is calibrated to it exactly. The first is what `fit` and nodes use where nobody says, as it
comes. Settings of the others were chosen by trial on cohort 0 and are shown on cohort 1: with real patients such a
search is itself a release and must be paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.admm import ADMM
from confide.algorithms.base import Algorithm
from confide.algorithms.cdp_admm import CDPADMM
from confide.algorithms.ddp_admm import DDPADMM
from confide.algorithms.dp_admm import DPADMM
from confide.algorithms.dpsgd import DPSGD, Alone
from confide.algorithms.dvp import DVP
from confide.algorithms.joint_descent import JointDescent
from confide.algorithms.pvp import PVP
from confide.algorithms.r_admm import RADMM
from confide.algorithms.summed import SummedMethod
from confide.demo.cohort import Cohort, cohort
from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.privacy import Label
from confide.problem import linear
from confide.problem.losses import Logistic
from confide.problem.penalties import L2
from confide.problem.problem import Problem
from confide.problem.shards import Shards
from confide.runs import metrics
from confide.runs.driver import simulate
from confide.runs.run import Run
from confide.runs.trust import Trust, trust

Array = NDArray[np.float64]
Watch = Callable[[str, int, int], None]  # (what runs, round, of how many)

EPSILON, DELTA = 1.0, 1e-5
PENALTY = L2(1e-3)
CLASSES = ("stays home", "comes back")
TEST_SET = "generated patients of no hospital"
COHORT = 1  # never the one the settings below were chosen on
NOISELESS = ADMM(rounds=100, coupling=0.001)
METHODS: tuple[Any, ...] = (
    JointDescent(),
    CDPADMM(rounds=200, step=15, coupling=0.004, clip=1.0, noise_decay=0.985),
    DDPADMM(rounds=200, step=15, coupling=0.004, clip=1.0),
    DPADMM(rounds=200, step=15, step_decay=0.0, coupling=0.02, clip=1.0),
    DPSGD(rounds=200, step=15, step_decay=0.1, clip=1.0),
    PVP(rounds=40, coupling=0.006),
    # Objective perturbation; the release noise pays for the solver's residual.
    RADMM(rounds=40, coupling=0.006, damping=0.01, release_noise=0.05),
    DVP(rounds=30, coupling=0.004, release_noise=0.05),
)


ALONE = Alone(rounds=50, step=20, clip=0.5)


@dataclass(frozen=True, eq=False)
class MethodLine:
    """One line of the table. `accuracy` on the public test set: (seeds,); `curve`: the same by round."""

    name: str
    group: str  # "alone" or "together"
    accuracy: Array
    network: str = "none"
    epsilon: float = np.inf
    guarantee: Label = Label.NONE
    reason: str = "no noise"
    rounds: int = 0
    bytes_sent: int = 0
    curve: Array | None = None
    trust: Trust | None = None  # where hospitals share their noise

    @property
    def private(self) -> bool:
        return bool(np.isfinite(self.epsilon))

    @property
    def mean(self) -> float:
        return float(self.accuracy.mean())

    @property
    def sd(self) -> float | None:
        """Over the seeds; None where nothing is random or there is one seed."""
        return float(self.accuracy.std(ddof=1)) if self.private and len(self.accuracy) > 1 else None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "group": self.group, "network": self.network, "accuracy": self.mean, "sd": self.sd,
            "epsilon": self.epsilon if self.private else None, "delta": DELTA if self.private else None,
            "guarantee": str(self.guarantee), "reason": self.reason, "rounds": self.rounds,
            "bytes_sent": self.bytes_sent, "trust": None if self.trust is None else self.trust._asdict(),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Result:
    """The cohort, the network and every line of the table."""

    cohort: Cohort
    graph: Graph
    lines: tuple[MethodLine, ...]
    seeds: int
    shown: Run  # the run that the report is about: of the first private method

    @property
    def majority(self) -> float:
        """Accuracy of always giving the more frequent answer."""
        return float(max(np.mean(self.cohort.test_y > 0), np.mean(self.cohort.test_y < 0)))

    @property
    def test_error(self) -> float:
        """Standard error of an accuracy such as the best of them, for the chance of who is in the test set."""
        best = max(line.mean for line in self.lines)
        return float(np.sqrt(best * (1 - best) / len(self.cohort.test_y)))

    def to_json(self) -> dict[str, Any]:
        shards = self.cohort.shards
        return {
            "patients": dict(zip(shards.names, shards.sizes.tolist(), strict=True)),
            "test_patients": len(self.cohort.test_y), "majority": self.majority, "seeds": self.seeds,
            "test_standard_error": self.test_error,
            "budget": {"epsilon": EPSILON, "delta": DELTA}, "simulated": True,
            "lines": [line.to_json() for line in self.lines],
        }  # fmt: skip


def run(seeds: int = 5, patients: int = 20_000, watch: Watch = lambda *_: None) -> Result:
    """Everything the table and the picture show; `watch` hears of every round."""
    if seeds < 1:
        raise ConfideError(f"seeds={seeds}: must be at least 1")
    people = cohort(COHORT, patients)
    names = people.shards.names
    graph = Graph.from_edges([(k, (k + 1) % len(names)) for k in range(len(names))], names=names)
    problem = learn(people.shards)
    public = problem.public(graph)
    lines, runs = alone(people, seeds, watch), []
    for method in (NOISELESS, *METHODS):
        private = method is not NOISELESS
        method = method.calibrated(public, EPSILON, DELTA) if private else method
        out = follow(problem, graph, method, range(seeds if private else 1), people.test, method.name, watch)
        shared = trust([(method, public)], DELTA)
        lines.append(replace(line_of(out, method, method.name), trust=shared))
        runs.append(out)
    X, y = people.test
    shown = replace(runs[1], public=("test",)).with_names(classes=CLASSES)
    shown = shown.with_evaluation(X, np.array(CLASSES)[(y > 0).astype(int)], source=TEST_SET)
    return Result(people, graph, tuple(lines), seeds, shown)


def learn(shards: Shards) -> Problem:
    """Logistic regression with an intercept; every patient counts the same, wherever they are."""
    return Problem(shards, Logistic(), PENALTY, weighting="rows", intercept=True)


def alone(people: Cohort, seeds: int, watch: Watch) -> list[MethodLine]:
    """What each hospital reaches by itself: the five's average and the worst, without and with privacy."""
    names, test = people.shards.names, people.test
    watch("alone", 0, len(names) * ALONE.rounds)  # before the first kernel compiles
    free, private = [], []
    for k, name in enumerate(names):
        problem = learn(people.shards.halves(k))
        right = problem.predict(test[0], problem.solve()) == test[1]
        free.append(MethodLine(name, "alone", np.array([right.mean()])))
        method = ALONE.calibrated(problem.public(None).as_one(), EPSILON, DELTA)

        def hear(what: str, t: int, rounds: int, before: int = k) -> None:
            watch(what, before * rounds + t, len(names) * rounds)

        out = follow(problem, None, method, range(seeds), test, "alone", hear)
        private.append(line_of(out, method, name, "alone"))
    return [*summary(free), *summary(private)]


def summary(lines: list[MethodLine]) -> tuple[MethodLine, MethodLine]:
    """The hospitals' average, at the largest ε among them, and the worst of them."""
    worst = min(lines, key=lambda line: line.mean)
    average, most = np.mean([line.accuracy for line in lines], axis=0), max(line.epsilon for line in lines)
    return (
        replace(worst, name="average of five", accuracy=average, epsilon=most, curve=None),
        replace(worst, name=f"worst, {worst.name}"),
    )


def follow(
    problem: Problem, graph: Graph | None, method: Algorithm, seeds: range, test: tuple[Array, Array], name: str,
    watch: Watch,
) -> Run:  # fmt: skip
    """Simulate, recording the test accuracy of the model each hospital holds, averaged over the hospitals.

    The metric is also where progress is heard of.
    """
    X, y = test

    def accuracy(shot: metrics.Snapshot) -> Array:
        watch(name, shot.t, method.rounds)
        z = linear.margins(X, *linear.split(shot.estimates, 1, True))  # (seeds, agents, patients, 1)
        return np.asarray((linear.predicted(z, "sign") == y).mean(axis=(1, 2)))

    watch(name, 0, method.rounds)
    return simulate(problem, graph, method, seeds, record={"test": accuracy})


def line_of(run: Run, method: Algorithm, name: str, group: str = "together") -> MethodLine:
    """The line of one run."""
    network = {"peer": "peers", "all": "server"}.get(method.topology, "none")
    if isinstance(method, SummedMethod):
        network = "peers"  # masked sums go along links
    curve, guarantee = run.history["test"], run.privacy.guarantee
    return MethodLine(
        name, group, curve[-1], network, run.privacy.epsilon(DELTA), guarantee.label, guarantee.reason,
        run.rounds, run.bytes_sent, curve,
    )  # fmt: skip
