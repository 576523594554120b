"""What the figures of the D-ZOA paper share: network, data, methods and their noise (section VI).

The text's loss is the plain square (xᵀβ - y)² and its ridge penalty ‖β‖²; `Squared` and `L2` are halves, so rows count
twice and L2 has strength 2η. Both are then exactly f_k of (2), with 1/N_k, and β^c solves (1) with it.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide
from confide.algorithms import ADMM, DPADMM, DPSGD, DVP, DZOA, ORZO, PVP, ZOOADMM, Algorithm
from confide.papers.reproduce import Results
from confide.privacy import published
from confide.runs.driver import Driver
from confide.runs.metrics import Metric, Snapshot

from ._tuned import TUNED

Array = NDArray[np.float64]

# Section VI. R and L are not printed; only R/L enters the method, and 0.4 converges at every ε used.
AGENTS, ROWS, FEATURES, ROUNDS, INNER = 5, 20, 10, 200, 100
COUPLING, STRENGTH, BOUND, DELTA = 4.0, 1.0, 1.0, 1e-3
STEP, RADIUS, LIPSCHITZ, SMOOTHING = 0.54, 1.0, 2.5, 1.0
EPSILONS = (0.15, 0.95)
NETWORK = confide.Graph.from_edges([(0, 1), (0, 3), (1, 2), (2, 3), (3, 4)])
METHODS = {"lasso": ("DPSGD", "DP-ADMM", "D-ZOA"), "ridge": ("DPSGD", "PVP", "DP-ADMM", "DVP", "D-ZOA")}
CENTRAL = {"rounds": ROUNDS, "directions": 150, "step": STEP, "radius": RADIUS, "lipschitz": LIPSCHITZ,
           "smoothing": SMOOTHING, "average_from": 1.0}  # fmt: skip
DATA_SEED = 20220


@lru_cache(maxsize=8)
def problem(trial: int, penalty: str, rows: int = ROWS) -> confide.Problem:
    """The data of one trial, `rows` an agent: scaled by column, then to norm at most 1; y from the scaled rows."""
    rng = np.random.default_rng((DATA_SEED, trial))
    X = rng.normal(size=(AGENTS * rows, FEATURES))
    X /= np.abs(X).max(axis=0)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = X @ rng.normal(size=FEATURES) + rng.normal(scale=math.sqrt(0.1), size=len(X))
    party = np.repeat(np.arange(AGENTS), rows)
    shards = confide.Shards.from_groups(X, y, party, columns={"weight": np.full(len(X), 2.0)})
    kind = {"lasso": confide.penalties.L1(STRENGTH), "ridge": confide.penalties.L2(2 * STRENGTH)}[penalty]
    return confide.Problem(shards, confide.losses.Squared(), kind)


def normalised(penalty: str, rows: int = ROWS) -> Metric:
    """Σ_k ‖β_k - β^c‖² over the mean of ‖β^c‖² in 100 data sets, so that a mean over trials is a ratio of means.

    A mean of ratios is not defined for the lasso: of 100 data sets one has β^c = 0, and six ‖β^c‖ < .2.
    """
    size = mean_square(penalty, rows)

    def error(shot: Snapshot) -> Array:
        return np.asarray(np.sum((shot.estimates - shot.optimum) ** 2, axis=(1, 2)) / size)

    return error


@cache
def mean_square(penalty: str, rows: int) -> float:
    return float(np.mean([np.sum(problem(trial, penalty, rows).solve() ** 2) for trial in range(100)]))


def setting(agent: int, solution: float) -> published.DZOASetting:
    """What (17), (20) and (22) are made of at this agent; `solution` is ‖β^c‖."""
    degree = int(NETWORK.degrees[agent])
    return published.DZOASetting(BOUND, COUPLING, degree, ROWS, FEATURES, INNER, RADIUS, STEP, 0.5, solution)


def directions(task: confide.Problem, epsilon: float, delta: float) -> tuple[int, ...]:
    """J of every agent: (22) solved for J."""
    norm = float(np.linalg.norm(task.solve()))
    return tuple(published.d_zoa_directions(setting(k, norm), epsilon, delta) for k in range(AGENTS))


def d_zoa(task: confide.Problem, epsilon: float, delta: float = DELTA, rounds: int = ROUNDS) -> DZOA:
    """The method as simulated."""
    return DZOA(
        rounds=rounds, coupling=COUPLING, inner_steps=INNER, directions=directions(task, epsilon, delta), step=STEP,
        radius=RADIUS, lipschitz=LIPSCHITZ, smoothing=SMOOTHING,
    )  # fmt: skip


def multiple(epsilon: float, delta: float) -> float:
    """Noise as a multiple of a message's sensitivity that makes one iteration (ε, δ)-private: as in (20)."""
    return math.sqrt(2.1 * math.log(1.25 / delta)) / epsilon


def baseline(name: str, epsilon: float, delta: float, **tuned: float) -> Algorithm:
    """A baseline with noise for (ε, δ) in every iteration, under the paper's c1 = 1, which nothing enforces."""
    m, shift = multiple(epsilon, delta), 2 * BOUND / ROWS  # how far an agent's gradient moves
    common: dict[str, Any] = {"rounds": ROUNDS, "ball": math.inf}
    if name == "DPSGD":
        return DPSGD(**common, assumed_bound=BOUND, noise=m * shift, **tuned)
    if name == "DP-ADMM":
        return DPADMM(**common, assumed_bound=BOUND, noise=m * shift, **tuned)
    if name == "PVP":
        h = 2 * tuned["coupling"] * NETWORK.degrees + 2 * STRENGTH / AGENTS  # strong convexity of the argmin
        return PVP(**common, assumed_bound=BOUND, noise=m * shift / h, **tuned)
    return DVP(**common, noise=m * shift, **tuned)


def tuned(name: str, penalty: str, epsilon: float, delta: float = DELTA) -> Algorithm:
    """A baseline with the parameters of `_tuned` for the nearest noise: only ε/√log(1.25/δ) enters the noise."""
    known = {e: abs(math.log(multiple(e, DELTA) / multiple(epsilon, delta))) for e in TUNED[penalty][name]}
    return baseline(name, epsilon, delta, **TUNED[penalty][name][min(known, key=known.__getitem__)])


def chunks(trials: int, first: int, size: int) -> list[list[int]]:
    """[0, first], then `size` at a time: the tasks of a quick run of `first` trials begin those of a full one."""
    starts = [0, *range(first, trials, size)]
    return [[a, min(b, trials)] for a, b in zip(starts, [*starts[1:], trials], strict=True)]


def central(name: str, **changes: Any) -> Algorithm:
    """OR-ZO or ZOO-ADMM, which hold all rows, with section VI's settings."""
    settings: dict[str, Any] = {**CENTRAL, **changes}
    return ORZO(**settings) if name == "OR-ZO" else ZOOADMM(coupling=COUPLING, **settings)


def chosen(name: str, penalty: str, task: confide.Problem, epsilon: float, delta: float) -> Algorithm:
    """Any method by its name; "ADMM" is the exact one without noise, at D-ZOA's ρ."""
    if name == "ADMM":
        return ADMM(rounds=ROUNDS, coupling=COUPLING)
    if name in ("OR-ZO", "ZOO-ADMM"):
        return central(name)
    return d_zoa(task, epsilon, delta) if name == "D-ZOA" else tuned(name, penalty, epsilon, delta)


def trial_errors(name: str, penalty: str, epsilon: float, delta: float, trials: range) -> Array:
    """The normalised error of one method: (trials, rounds). A trial has data and noise of its own."""
    out = []
    for trial in trials:
        task = problem(trial, penalty)
        out.append(errors(task, penalty, chosen(name, penalty, task, epsilon, delta), trial))
    return np.array(out)


def errors(task: confide.Problem, penalty: str, method: Algorithm, seed: int) -> Array:
    """`normalised` by round (rounds,), as `simulate` records it, without accounting the privacy, which takes longer.

    A central method's error counts K times, since the others' is a sum over K agents.
    """
    alone = method.topology == "central"
    run, size, optimum = (
        Driver(task, None if alone else NETWORK, method, [seed]),
        mean_square(penalty, ROWS),
        task.solve(),
    )
    out = np.empty(method.rounds)
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges ends in `step`
        for t in range(method.rounds):
            run.step()
            out[t] = np.sum((run.estimates - optimum) ** 2) / size
    return AGENTS * out if alone else out


def compared(results: Results) -> tuple[str, ...]:
    """The methods of a figure: those for its penalty."""
    return METHODS[results[0][0]["penalty"]]


def label(name: str, penalty: str) -> str:
    """The guarantee's label, as the simulator prints it."""
    task = problem(0, penalty)
    method = chosen(name, penalty, task, 0.95, DELTA)
    public = task.public(None).as_one() if method.topology == "central" else task.public(NETWORK)
    return str(method.guarantee(public).label)
