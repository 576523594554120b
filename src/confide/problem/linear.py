"""Linear models: margins, the answer they stand for, and rows clipped as those learned from were. Each once.

A model is a vector (width,): the coefficients of each output and, with an intercept, its constant after them. Where
margins tie, the first class is the answer, as in scikit-learn: of two classes with one margin, the second needs a
margin above 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.problem.rows import clipped as clipped

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def split(models: Any, outputs: int, intercept: bool) -> tuple[Array, Array]:
    """Models (…, width) as coefficients (…, outputs, features) and constants (…, outputs), 0 without an intercept."""
    one = np.asarray(models, float)
    one = one.reshape(*one.shape[:-1], outputs, -1)
    return (one[..., :-1], one[..., -1]) if intercept else (one, np.zeros(one.shape[:-1]))


def margins(X: Any, coefficients: Array, constant: Array) -> Array:
    """Of rows X (n, features), dense or sparse, under models as `split` has them: (…, n, outputs)."""
    flat = coefficients.reshape(-1, X.shape[1])
    z = np.asarray(X @ flat.T).T.reshape(*coefficients.shape[:-1], X.shape[0])
    return np.asarray(np.moveaxis(z, -2, -1) + constant[..., None, :])


def answers(z: Array) -> Index:
    """The place of each row's class among the classes, from margins (…, outputs): (…,)."""
    return np.asarray((z[..., 0] > 0).astype(np.int64) if z.shape[-1] == 1 else z.argmax(axis=-1))


def predicted(z: Array, labels: str) -> Array:
    """What margins (…, outputs) say in the terms of a loss: a "real" number, a "sign" -1 or 1, or a "class" 0, 1, …"""
    match labels:
        case "real":
            return z[..., 0]
        case "sign":
            return np.asarray(2.0 * answers(z) - 1.0)
    return answers(z).astype(float)
