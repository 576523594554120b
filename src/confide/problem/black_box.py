"""The block of an objective that is a black box: values and clipped differences of them, and nothing else.

Replacing a row changes one row's term, which is clipped, so that `difference` has the sensitivity of any other loss's;
that holds if the function treats every row alone and remembers none, which nothing enforces: at most *assumed*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, WrongType
from confide.files.library import sparse as sp
from confide.problem import losses
from confide.problem.block import Block
from confide.problem.losses import BlackBox, Loss
from confide.problem.shards import Shards

Array = NDArray[np.float64]
VALUES_ONLY = "a BlackBox answers with values only: DZOA, PrivateZeroth, ORZO and ZOOADMM take it"


def as_loss(given: Any, features: int) -> Loss:
    """A loss of `confide.losses` as it is; of anything else that has values, the black box of them.

    A function is (β, X, y) -> values, with a coefficient per feature. An object with `value(z, y)` is the loss of a
    linear model's margins z = Xβ; so is one of our own with another `value`, since no compiled kernel would know of it.
    """
    value = getattr(given, "value", None)
    if isinstance(given, Loss) and all(_ours(type(given), name) for name in ("value", "slope", "curvature")):
        return given
    if isinstance(given, Loss) and _ours(type(given), "value"):
        raise WrongType(f"loss={type(given).__name__}: it has a slope or curvature of its own but no `value`: add one")
    if isinstance(given, type):
        raise WrongType(f"loss={given!r}: must be a loss, not a class: {given.__name__}()")
    if callable(value):
        return BlackBox(function=lambda beta, X, y: value(X @ beta, y), coefficients=features)
    if callable(given):
        return BlackBox(function=given, coefficients=features)
    raise WrongType(
        f"loss={given!r}: must be one of confide.losses, such as Logistic(), an object with value(z, y), or a function "
        "of (beta, X, y)"
    )


def _ours(kind: type, name: str) -> bool:
    """Whether a loss's method is one that confide.losses has written."""
    return next(c for c in kind.__mro__ if name in vars(c)).__module__ == losses.__name__


class BlackBoxBlock(Block):
    """Rows under a loss that is known by its values."""

    def __init__(self, shards: Shards, loss: BlackBox, scale: Array, intercept: bool) -> None:
        if intercept:
            raise ConfideError("intercept=True: a BlackBox has its own coefficients, leave it False")
        if sp.issparse(shards.X):
            raise WrongType("a BlackBox takes dense rows: give X.toarray()")
        super().__init__(shards, loss, scale, intercept)
        self.width = loss.coefficients

    def _rows(self, beta: Array) -> Any:
        """(seed, agent, values of its rows, their weights) for every β_sk of (S, A, W)."""
        assert isinstance(self.loss, BlackBox)
        for k in range(self.agents):
            X, y = self.shards.part(k)
            rows = slice(int(self.shards.offsets[k]), int(self.shards.offsets[k + 1]))
            w = np.broadcast_to(self._w, len(self.shards))[rows]
            for s in range(len(beta)):
                yield s, k, self.loss.values(beta[s, k], X, y), w

    def value(self, beta: Array) -> Array:
        out = np.zeros(beta.shape[:2])
        for s, k, found, w in self._rows(beta):
            out[s, k] = self.scale[k] * np.sum(w * found)
        return out

    def difference(self, plus: Array, minus: Array, gap: float, clip: Any = np.inf) -> Array:
        out, clips = np.zeros(plus.shape[:2]), self._clips(clip)
        for (s, k, high, w), (_, _, low, _) in zip(self._rows(plus), self._rows(minus), strict=True):
            out[s, k] = self.scale[k] * np.sum(w * np.clip((high - low) / gap, -clips[k], clips[k]))
        return out

    def gradient(self, beta: Array, clip: Any = np.inf) -> Array:
        raise WrongType(VALUES_ONLY)

    def argmin(self, *_: Any, **__: Any) -> Array:
        raise WrongType(VALUES_ONLY)
