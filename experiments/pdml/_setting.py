"""What the experiments of the PDML paper (Wang, Ishii, Du, Cheng and Chen, 2020) share.

Section VI-A: 10 servers with as many users each, a connected random graph of 13 links, logistic loss, ½‖w‖². The text
leaves a, β, V and the number of rounds open (it refers to a synthetic data set that it does not contain); a = 1,
β = 0.2, V = 1 and 100 rounds approach Table I. The noise η_i is uniform in the ℓ2 ball of radius R: the text's
‖η_i‖_∞ ≤ R fits its own table worse (cube).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import Graph, Problem, Shards, losses, penalties
from confide.algorithms import PDML
from confide.privacy import randomize_labels

SERVERS, LINKS, ROUNDS = 10, 13, 100
COUPLING = 0.2  # β
STRENGTH = 1.0  # a
DEVIATION, DECAY = 1.0, 0.8  # V and ρ of the Gaussian noise
SHARE = 0.7  # of the rows train
APART = 1 << 20  # between the seeds of a trial's draws, so that labels do not share a stream with the split

Array = NDArray[np.float64]


def network(seed: int) -> Graph:
    """10 servers, 13 links."""
    return Graph.random(SERVERS, LINKS, seed=seed)


def divided(y: Array, seed: int) -> tuple[Any, Any]:
    """Indices of the rows that train and of those that test."""
    order = np.random.default_rng(seed).permutation(len(y))
    count = int(SHARE * len(y))
    return order[:count], order[count:]


def reported(
    X: Any, y: Array, epsilon: float | None, seed: int, *, strength: float = STRENGTH, intercept: bool = False,
    row_norm: float | None = None,
) -> Problem:  # fmt: skip
    """Problem 2: rows dealt out to the servers, labels randomised by their users; with epsilon=None the true labels."""
    labels = y if epsilon is None else randomize_labels(y, epsilon, seed=seed + APART)
    loss: losses.Loss = losses.Logistic()
    if epsilon is not None:
        loss = losses.NoisyLabels(losses.Logistic(), epsilon)
    shards = Shards.split(X, labels, SERVERS, seed=seed + 2 * APART)
    shards = shards if row_norm is None else shards.clip_rows(row_norm)
    return Problem(shards, loss, penalties.L2(strength), intercept=intercept)


def method(bound: float, **other: Any) -> PDML:
    """Phase 2 with η_i within `bound`; without Phase 2 where it is 0."""
    noise = DEVIATION if bound else 0.0
    given = {"rounds": ROUNDS, "coupling": COUPLING, "noise": noise, "noise_decay": DECAY, "tolerance": 1e-7}
    return PDML(objective_noise=bound, **{**given, **other})


def accuracy(problem: Problem, X: Any, y: Array, model: Array) -> float:
    """Per cent of the labels that the model predicts."""
    return 100 * float(np.mean(problem.predict(X, model) == y))
