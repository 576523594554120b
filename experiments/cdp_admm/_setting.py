"""What the figures share: the lasso of Section V, and the three methods at one "total privacy loss".

The paper's loss is ‖Xβ - y‖², confide's is half of it. Half the objective is minimised by the same steps with half the
penalty parameter, half the dual, half the bound on gradients and twice the step: ρ = 4 is penalty=2, η_t = 1/√t is
step=2 with step_decay=½, c1 = 1 is ½, λ is halved. Sensitivity and noise stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import confide
from confide.privacy import published

AGENTS, ROWS, WIDTH = 50, 50, 8  # Section V
LINKS = 0.1  # probability of a link, Erdős–Rényi; the text leaves the graph open
NOISE_VARIANCE = 0.1  # of w
LASSO = 0.001  # λ = 0.001 ‖Xᵀy‖∞
PENALTY = 4.0  # ρ
STEP = 1.0  # η_t = STEP/√t; open in the text
BOUND = 1.0  # c1; open in the text
DELTA = 1e-3  # open in the text
DECAY = 0.97  # R; open in the text, see fig1_decay.py
ROUNDS = 200
HALF = 0.5  # confide's squared loss is half of the paper's
METHODS = ("DP-ADMM", "DDP-ADMM", "CDP-ADMM")


@dataclass(frozen=True, eq=False)
class FallingDPADMM(confide.algorithms.DPADMM):
    """DP-ADMM with a variance that falls as 1/√t, as Section IV-A says of it."""

    def noise_scale(self, t: int, public: confide.Public) -> Any:
        return public.each(self.noise) / t**0.25


def problem(trial: int) -> tuple[confide.Problem, confide.Graph]:
    """Fresh data and a fresh graph for every trial."""
    rng = np.random.default_rng([2023, trial])
    X = rng.normal(size=(AGENTS * ROWS, WIDTH))
    y = X @ rng.normal(size=WIDTH) + rng.normal(scale=math.sqrt(NOISE_VARIANCE), size=AGENTS * ROWS)
    weight = HALF * LASSO * float(np.max(np.abs(X.T @ y)))
    shards = confide.Shards.from_groups(X, y, np.repeat(np.arange(AGENTS), ROWS))
    graph = confide.Graph.erdos_renyi(AGENTS, LINKS, seed=trial)
    return confide.Problem(shards, confide.losses.Squared(), confide.penalties.L1(weight)), graph


def method(name: str, total: float, public: confide.Public, decay: float = DECAY) -> Any:
    """A method as published: c1 = 1 assumed, and noise for the "total privacy loss" of the figures' axes.

    DDP- and DP-ADMM: T rounds that cost together what T rounds of (total/√T, δ) cost with the classical Gaussian
    noise, spread so that the variance falls as 1/√t. CDP-ADMM inverts the corollary. All three take the first
    round's sensitivity for every round, as the corollary does.
    """
    kind = {"DP-ADMM": FallingDPADMM, "DDP-ADMM": confide.algorithms.DDPADMM, "CDP-ADMM": confide.algorithms.CDPADMM}
    common = {"rounds": ROUNDS, "penalty": HALF * PENALTY, "step": STEP / HALF, "step_decay": 0.5}
    made = kind[name](**common, assumed_bound=HALF * BOUND)
    first = made.sensitivity(1, public)[:, 0]
    if name == "CDP-ADMM":
        cost = published.cdp_admm_first_cost(total, DELTA, decay, ROUNDS)
        return confide.algorithms.CDPADMM(
            **common, assumed_bound=HALF * BOUND, noise_decay=decay, noise=first / math.sqrt(2 * cost)
        )  # (12)
    weight = float(np.sum(np.sqrt(np.arange(1, ROUNDS + 1))))  # Σ σ_1²/σ_t²
    mu = published.classical_mu(total / math.sqrt(ROUNDS), ROUNDS, DELTA)
    return kind[name](**common, assumed_bound=HALF * BOUND, noise=first * math.sqrt(weight) / mu)


def crossing(one: Any, other: Any) -> int:
    """The last round at which the curve `one` is not below the curve `other`."""
    return int(np.max(np.flatnonzero(one >= other) + 1, initial=0))


def proven(clip: float, total: float, public: confide.Public) -> Any:
    """CDP-ADMM that shortens every row's gradient to `clip` (in the paper's units); exact total (`total`, δ)."""
    made = confide.algorithms.CDPADMM(
        rounds=ROUNDS, penalty=HALF * PENALTY, step=STEP / HALF, step_decay=0.5, noise_decay=DECAY, clip=HALF * clip
    )
    return made.calibrated(public, total, DELTA)
