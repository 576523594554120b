"""Rows to learn from, whose truth is known."""

import numpy as np


def labelled(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, np.where(X @ [3.0, -2.0, 0.0] + 0.3 + 0.3 * rng.logistic(size=n) > 0, "ill", "well")


def measured(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, 0.2 + X @ [0.6, -0.4, 0.0] + 0.1 * rng.normal(size=n)
