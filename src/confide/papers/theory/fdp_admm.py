"""FDP-ADMM's theorems as calculators (Zhou and Xiang, Mathematics 10(16), 2022).

Lemma 2 (sensitivity), Theorem 1 (noise of one iteration, and what all iterations together cost exactly) and Theorem 2
(step size and convergence bound). Symbols: c1 `gradient_bound`, c2 `penalty_slope`, c_w `solution_norm`, K `width`,
m_i `rows`, M `workers`, ρ `coupling`, λ `penalty_strength`, g `dual_bound`, L `rounds`, l `iteration`.

Differs from the paper: Lemma 2's m_i² is m_i, as its own proof has it; Theorem 1's (ε, δ) is that of one iteration, and
Lemma 1's ε' grows as ε√k, not √(kε). c_w and g are of the unknown solution: give bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.papers.theory.conditions import positive, probability, whole
from confide.privacy import Gaussian, mu_for
from confide.privacy import epsilon as exact_epsilon
from confide.privacy.published import classical_mu


@dataclass(frozen=True)
class Constants:
    """What Theorem 2 is made of, with equal workers. `epsilon=inf` is the algorithm without noise."""

    gradient_bound: float
    penalty_slope: float
    solution_norm: float
    width: int
    rows: int
    workers: int
    coupling: float
    penalty_strength: float
    dual_bound: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        positive(gradient_bound=self.gradient_bound, solution_norm=self.solution_norm, coupling=self.coupling)
        whole(width=self.width, rows=self.rows, workers=self.workers)
        if self.epsilon != math.inf:
            positive(epsilon=self.epsilon)
        for name in ("penalty_slope", "penalty_strength", "dual_bound"):
            if not getattr(self, name) >= 0:
                raise ConfideError(f"{name}={getattr(self, name)}: must be at least 0")
        probability(delta=self.delta)

    @property
    def energy(self) -> float:
        """E‖f_i' - (ρ + 1/η)ξ‖² as the theorem bounds it: (c1 + λc2/M)² + 8K·c1²·ln(1.25/δ)/(m²ε²)."""
        slope = self.gradient_bound + self.penalty_strength * self.penalty_slope / self.workers
        noise = 8 * self.width * self.gradient_bound**2 * math.log(1.25 / self.delta)
        return slope**2 + noise / (self.rows * self.epsilon) ** 2


def step(setting: Constants, iteration: int) -> float:
    """Theorem 2's η_i^l = c_w / √(2l·energy)."""
    whole(iteration=iteration)
    return setting.solution_norm / math.sqrt(2 * iteration * setting.energy)


def bound(setting: Constants, rounds: int) -> float:
    """Theorem 2: E Σ_i (f_i(w̄_i) - f_i(w*) + g‖w̄_i - w̄‖) is at most this after `rounds` iterations."""
    whole(rounds=rounds)
    s = setting
    first = s.workers * s.solution_norm / math.sqrt(rounds) * math.sqrt(2 * s.energy)
    return first + s.workers * (s.coupling * s.solution_norm**2 + s.dual_bound**2 / s.coupling) / (2 * rounds)


def rounds_for(setting: Constants, target: float) -> int:
    """The fewest iterations after which `bound` is at most `target`."""
    positive(target=target)
    s = setting
    a = s.workers * s.solution_norm * math.sqrt(2 * s.energy)
    b = s.workers * (s.coupling * s.solution_norm**2 + s.dual_bound**2 / s.coupling) / 2
    x = (math.sqrt(a * a + 4 * b * target) - a) / (2 * b)  # of 1/√L: b·x² + a·x = target
    least = max(1, math.ceil(1 / x**2))
    return least if bound(s, least) <= target else least + 1  # rounding


def sensitivity(gradient_bound: float, rows: int, coupling: float, step: float, level: float | None = None) -> float:
    """Lemma 2 with m_i: 2·c1/(m(ρ + 1/η)). `level` τ: 2·max(τ, 1-τ)·c1, if c1 bounds the rows rather than gradients."""
    positive(gradient_bound=gradient_bound, coupling=coupling, step=step)
    whole(rows=rows)
    if level is not None:
        probability(level=level)
    slope = 1.0 if level is None else max(level, 1 - level)
    return 2 * slope * gradient_bound / (rows * (coupling + 1 / step))


def noise(sensitivity: float, epsilon: float, delta: float) -> float:
    """Theorem 1's σ = Δ·√(2 ln(1.25/δ))/ε, for one iteration; the theorem holds for ε ≤ 1 only."""
    positive(sensitivity=sensitivity, epsilon=epsilon)
    probability(delta=delta)
    if epsilon > 1:
        raise ConfideError(f"epsilon={epsilon}: Theorem 1 needs at most 1 per iteration")
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@dataclass(frozen=True)
class RunTotal:
    """What all iterations cost together, exactly: μ-Gaussian-DP, and its ε at δ; `claimed` is Theorem 1's ε."""

    mu: float
    epsilon: float
    claimed: float


def total(epsilon: float, delta: float, rounds: int) -> RunTotal:
    """μ = √L·ε/√(2 ln(1.25/δ)) of L iterations with Theorem 1's noise, and its exact ε at the same δ."""
    mu = classical_mu(epsilon, rounds, delta)
    return RunTotal(mu, float(exact_epsilon([Gaussian(mu, 1.0)], delta)), epsilon)


def iteration_for(epsilon: float, delta: float, rounds: int) -> float:
    """Theorem 1's ε per iteration for which all L iterations cost exactly (epsilon, delta)."""
    positive(epsilon=epsilon)
    whole(rounds=rounds)
    probability(delta=delta)
    return float(mu_for(epsilon, delta)) * math.sqrt(2 * math.log(1.25 / delta) / rounds)


def lemma3(
    before: Any, after: Any, slope: Any, gap: Any, point: Any, step: float, coupling: float, dual: Any = 0.0
) -> tuple[float, float]:
    """Both sides of Lemma 3 in one iteration l, summed over workers, at w_i = w = `point` and γ_i = `dual`.

    before, after   states of iterations l-1 and l: primal w̃_i, dual γ_i, average w^l, each (1, workers, K)
    slope           f_i'(w̃_i^(l-1)), (1, workers, K); gap: f_i(w̃_i^(l-1)) - f_i(point), (1, workers)

    The noise ξ_i is read off the step itself: (ρ + 1/η)ξ = (ρ + 1/η)w̃^l - w̃^(l-1)/η - γ^(l-1) - ρw^(l-1) + f'.
    """
    h = coupling + 1 / step
    noise = h * after.primal - before.primal / step - before.dual - coupling * before.average + slope

    def square(v: Any) -> float:
        return float(np.sum(np.square(v)))

    pairs = ((after.primal - point, -after.dual), (after.average - point, after.dual),
             (after.dual - dual, after.primal - after.average))  # fmt: skip
    left = float(np.sum(gap)) + sum(float(np.sum(a * b)) for a, b in pairs)
    right = step / 2 * square(slope - noise) - float(np.sum(noise * (point - before.primal)))
    right += coupling / 2 * (square(point - before.average) - square(point - after.average))
    right += (square(point - before.primal) - square(point - after.primal)) / (2 * step)
    return left, right + (square(before.dual - dual) - square(after.dual - dual)) / (2 * coupling)
