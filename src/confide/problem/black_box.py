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
from confide.problem.block import Block
from confide.problem.losses import BlackBox
from confide.problem.shards import Shards

Array = NDArray[np.float64]
VALUES_ONLY = "a BlackBox answers with values only: DZOA, PrivateZeroth, ORZO and ZOOADMM take it"


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
