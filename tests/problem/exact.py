"""Norms in exact arithmetic, doubles of every size, and blocks made of them."""

from fractions import Fraction

import numpy as np
import oracles
import scipy.sparse as sp

from confide import Shards, losses
from confide.problem.block import Block

FORMS = {"dense": np.asarray, "sparse": sp.csr_array, "float32": np.float32}
LARGEST32 = float(np.finfo(np.float32).max)
LOSSES = [
    *oracles.EVERY, losses.NoisyLabels(losses.Logistic(), epsilon_min=5e-324),
    losses.NoisyLabels(losses.Multinomial(3), epsilon_min=5e-324),
]  # fmt: skip
SIZES = [0.0, 5e-324, 2.3e-308, 1e-300, 1e-170, 1e-9, 0.3, 1.0, 2.0**52, 1e155, 1e170, 5e307, 1.7e308]
ENTRIES = [*SIZES, *(-x for x in SIZES)]
POINTS = [*ENTRIES, np.inf, -np.inf, np.nan]


def name(loss):
    own = "Own" if isinstance(loss, losses.NoisyLabels) and loss.epsilon is None else ""
    return own + oracles.name(loss)


def square(values):
    """Σ v² of doubles, none of them inf or nan, or of fractions."""
    return sum((Fraction(v) ** 2 for v in np.ravel(values).tolist()), Fraction(0))


def apart(a, b):
    """‖a - b‖²."""
    pairs = zip(np.ravel(a).tolist(), np.ravel(b).tolist(), strict=True)
    return sum(((Fraction(x) - Fraction(y)) ** 2 for x, y in pairs), Fraction(0))


def within(square, bound, kappa):
    """√square ≤ bound·(1 + κ)."""
    return square <= (Fraction(bound) * (1 + Fraction(kappa))) ** 2


def rows(X, form):
    X = np.asarray(X, float)
    return FORMS[form](np.clip(X, -LARGEST32, LARGEST32) if form == "float32" else X)


def values(X):
    """The doubles that X holds."""
    return X.toarray() if sp.issparse(X) else np.asarray(X, float)


def shards(X, y, sizes=None, form="dense", **columns):
    sizes = sizes or (len(y),)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    columns = {name: np.asarray(c, float) for name, c in columns.items() if c is not None}
    return Shards(rows(X, form), np.asarray(y, float), offsets, tuple(map(str, range(len(sizes)))), columns)


def block(X, y, loss, sizes=None, form="dense", intercept=False, **columns):
    s = shards(X, y, sizes, form, **columns)
    return Block(s, loss, 1.0 / s.sizes, intercept)
