"""What joint descent learns when members leave on the way, in plain NumPy."""

import numpy as np
import scipy.special
from village import NAMES, SIZES, rows

from confide.algorithms.joint_descent import gradient_shares
from confide.privacy.noise import SimulatedNoise


def expected(federation, made, seed=5):
    """The model after each round's sum over the members of its stage, by the formulas of the method's page alone.

    Rows within norm 1 and no intercept: u = x. Without moments: a = 1, m = 0, κ = 1, and the goal is that of the start.
    """
    X, y = rows()
    X = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    owner = np.repeat(NAMES, SIZES)
    T, first = len(made), federation.founding
    h, K = first.algorithm.honest(first.public), 5

    def weight(parties):
        n = sum(SIZES[NAMES.index(p)] for p in parties)
        by_rows = first.weighting == "rows"
        return {p: 1 / n if by_rows else 1 / SIZES[NAMES.index(p)] for p in parties}, (1 if by_rows else len(parties))

    def deviation(stage, t):
        """σ_t of a party: that of round 1, with what each round has of the budget."""
        share = gradient_shares(T)
        return federation.stages[stage].algorithm.noise * np.sqrt(share[0] / share[t - 1])

    loud = np.sqrt(K) * deviation(0, T) / weight(NAMES)[1] * np.sqrt(gradient_shares(T)[-1])
    brisk = 1.9 * 1.8 / 0.2
    goal = min(1 / (loud * T), brisk / 0.25)
    theta = before = last = np.zeros(X.shape[1])
    step, bend, tail, stage = brisk / (0.25 * 1.25) / 1.15, 0.0, None, 0
    for t, now in enumerate(made, start=1):
        if now > stage:
            stage, before = now, theta
        parties = federation.stages[stage].parties
        share, mass = weight(parties)
        total = np.zeros(X.shape[1])
        for p in parties:
            mine = owner == p
            slope = np.clip(-y[mine] * scipy.special.expit(-y[mine] * (X[mine] @ theta)), -0.5, 0.5)
            noise = SimulatedNoise(np.array([seed]), np.array([NAMES.index(p)])).at(t)
            draw = noise.gaussian("answer", np.zeros((1, 1, X.shape[1])), np.ones((1, 1)))[0, 0]
            total += share[p] * X[mine].T @ slope + deviation(stage, t) * draw
        g, moved = total / mass, theta - before
        quiet = np.sqrt(len(parties)) * deviation(stage, t - 1) / mass if t > 1 else 0.0
        if moved @ moved > 0:
            bend = max(bend, ((g - last) @ moved - 0.2 * step * moved.size * quiet**2) / (moved @ moved))
        step = min(goal, 1.15 * step, 0.8 * brisk / max(bend, 1e-300))
        v = theta - 0.2 * step * g + 0.8 * moved
        before, theta, last = theta, v / (1 + 0.2 * step * 0.5 / mass), g  # the prox of L2(½), ¼‖β‖²
        tail = theta if t <= int(0.6 * T) else tail + (theta - tail) / (t - int(0.6 * T))
    assert h == 3
    return tail
