"""What the figures share: the lasso of Section V, and the three methods at one "total privacy loss".

The paper's loss is ‖Xβ - y‖², confide's is half of it. Half the objective is minimised by the same steps with half the
penalty parameter, half the dual, half the bound on gradients and twice the step: ρ = 4 is coupling=2, η_t = 1/√t is
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
COUPLING = 4.0  # ρ
STEP = 1.0  # η_t = STEP/√t; open in the text
BOUND = 1.0  # c1; open in the text
DELTA = 1e-3  # open in the text
DECAY = 0.97  # R; open in the text, see fig1_decay.py
ROUNDS = 200
HALF = 0.5  # confide's squared loss is half of the paper's
METHODS = ("DP-ADMM", "DDP-ADMM", "CDP-ADMM")


class OwnSensitivity:
    """The noise of each round for that round's own sensitivity (11): σ_t = Δ_t·(σ_1/Δ_1)·shape(t).

    On the gradient, whose sensitivity is the same in every round, that is noise·shape(t): Δ_t is 2c1/(M·h_t), and the
    engine divides the gradient's noise by h_t.
    """

    def shape(self, t: int) -> float:
        return 1.0

    def noise_scale(self, t: int, public: confide.Public) -> Any:
        return public.each(self.noise) * self.shape(t)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class OwnDPADMM(OwnSensitivity, confide.algorithms.DPADMM):
    """DP-ADMM, every round (ε, δ)."""


@dataclass(frozen=True, eq=False)
class OwnDDPADMM(OwnSensitivity, confide.algorithms.DDPADMM):
    """DDP-ADMM, every round (ε, δ)."""


@dataclass(frozen=True, eq=False)
class OwnCDPADMM(OwnSensitivity, confide.algorithms.CDPADMM):
    """CDP-ADMM, φ_t = φ_1/R^(t-1): (12) with each round's own sensitivity, which the corollary composes exactly."""

    def shape(self, t: int) -> float:
        return float(self.noise_decay ** ((t - 1) / 2))


@dataclass(frozen=True, eq=False)
class FallingDPADMM(confide.algorithms.DPADMM):
    """DP-ADMM with a variance that falls as 1/√t, as Section IV-A says of it, for the first round's sensitivity."""

    def noise_scale(self, t: int, public: confide.Public) -> Any:
        return public.each(self.noise) * self.stiffness(t) / self.stiffness(1) / t**0.25


OWN = {"DP-ADMM": OwnDPADMM, "DDP-ADMM": OwnDDPADMM, "CDP-ADMM": OwnCDPADMM}
FIRST = {"DP-ADMM": FallingDPADMM, "DDP-ADMM": confide.algorithms.DDPADMM, "CDP-ADMM": confide.algorithms.CDPADMM}


def problem(trial: int) -> tuple[confide.Problem, confide.Graph]:
    """Fresh data and a fresh graph for every trial."""
    rng = np.random.default_rng([2023, trial])
    X = rng.normal(size=(AGENTS * ROWS, WIDTH))
    y = X @ rng.normal(size=WIDTH) + rng.normal(scale=math.sqrt(NOISE_VARIANCE), size=AGENTS * ROWS)
    weight = HALF * LASSO * float(np.max(np.abs(X.T @ y)))
    shards = confide.Shards.from_groups(X, y, np.repeat(np.arange(AGENTS), ROWS))
    graph = confide.Graph.erdos_renyi(AGENTS, LINKS, seed=trial)
    return confide.Problem(shards, confide.losses.Squared(), confide.penalties.L1(weight)), graph


def method(name: str, total: float, public: confide.Public, decay: float = DECAY, own: bool = True) -> Any:
    """A method as published: c1 = 1 assumed, and noise for the "total privacy loss" of the figures' axes.

    Lemma I has η^t, so each round's noise is for that round's own sensitivity: DDP- and DP-ADMM's T rounds are
    (total/√T, δ)-private each with the classical Gaussian noise, CDP-ADMM inverts the corollary. With own=False the
    first round's sensitivity stands for all, as the corollary's proof has it: DDP- and DP-ADMM then cost together what
    T rounds of (total/√T, δ) do, spread so that the variance falls as 1/√t.
    """
    common: dict[str, Any] = {
        "rounds": ROUNDS, "coupling": HALF * COUPLING, "step": STEP / HALF, "step_decay": 0.5, "ball": math.inf,
        "assumed_bound": HALF * BOUND,
    }  # fmt: skip
    kind = (OWN if own else FIRST)[name]
    first = kind(**common).sensitivity(1, public)[:, 0]  # of the gradient, the same in every round
    if name == "CDP-ADMM":
        cost = published.cdp_admm_first_cost(total, DELTA, decay, ROUNDS)
        return kind(**common, noise_decay=decay, noise=first / math.sqrt(2 * cost))  # (12)
    mu = published.classical_mu(total / math.sqrt(ROUNDS), ROUNDS, DELTA)
    rounds = ROUNDS if own else float(np.sum(np.sqrt(np.arange(1, ROUNDS + 1))))  # Σ (Δ_t/σ_t)²·(σ_1/Δ_1)²
    return kind(**common, noise=first * math.sqrt(rounds) / mu)


def crossing(one: Any, other: Any) -> int:
    """The last round at which the curve `one` is not below the curve `other`."""
    return int(np.max(np.flatnonzero(one >= other) + 1, initial=0))


def knee(error: Any) -> float:
    """Where the lines through log-error before and after meet: rounds 50 to 90 and 150 to 200."""
    t = np.arange(1, ROUNDS + 1)
    (a, b), (c, d) = (np.polyfit(t[part], np.log(error[part]), 1) for part in (slice(49, 90), slice(149, 200)))
    return float((d - b) / (a - c)) if a != c else math.inf


def proven(clip: float, total: float, public: confide.Public) -> Any:
    """CDP-ADMM that shortens every row's gradient to `clip` (in the paper's units); exact total (`total`, δ)."""
    made = OwnCDPADMM(
        rounds=ROUNDS, coupling=HALF * COUPLING, step=STEP / HALF, step_decay=0.5, noise_decay=DECAY, clip=HALF * clip
    )
    return made.calibrated(public, total, DELTA)
