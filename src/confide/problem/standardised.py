"""Answers about the scale of features, and gradients on rows that are centred and scaled by public numbers.

Functions of a `Block`, for `questions`. Rows lie within the public norm C, so x/C is in the unit ball.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.files.library import sparse as sp
from confide.problem import kernels
from confide.problem.block import Block
from confide.problem.rows import clipped

Array = NDArray[np.float64]
LARGEST_STRETCH = 256.0  # of a feature; the sums' rounding grows with it
HALF = 0.5  # the intercept's feature, beside rows within the unit ball
PIECE = 1 << 16  # entries that are looked at together


def feature_moments(block: Block, norm: Array) -> Array:
    """scale_k·Σ_i (½C·x_i, x_i∘x_i) over each agent's rows, clipped to C = norm (A,): (A, 2p).

    Replacing a row moves it by at most 9/(4√2)·C²·scale_k·(1 + κ).
    """
    bounds = kernels.usable(np.broadcast_to(np.asarray(norm, float), block.agents), kernels.MOST**0.5)
    size, offsets = block.shards.norms(intercept=False), block.shards.offsets
    with np.errstate(all="ignore"):  # a warning would tell of a row
        return np.stack([
            _sums(block.shards.X, size, offsets[k], offsets[k + 1], C) * block.scale[k] for k, C in enumerate(bounds)
        ])  # fmt: skip


def _sums(X: Any, size: Array, first: int, end: int, C: float) -> Array:
    """Σ (½C·x, x∘x) over rows first..end: by halves, down to pieces whose rounding is known."""
    if end - first > kernels.LONGEST:
        middle = (first + end) // 2
        return _sums(X, size, first, middle, C) + _sums(X, size, middle, end, C)
    x = clipped(X[first:end].astype(float), C, size[first:end])
    square = x.multiply(x) if sp.issparse(x) else x * x
    return np.concatenate([0.5 * C * np.asarray(x.sum(axis=0)).ravel(), np.asarray(square.sum(axis=0)).ravel()])


def pair_distances(block: Block, norm: Array) -> Array:
    """2·scale_k times the sum of min(½‖x - x'‖²/C², 1) over agent k's rows 1 and 2, 3 and 4, …: (A, 1).

    Replacing a row moves it by at most 2·scale_k·(1 + κ).
    """
    offsets, out = block.shards.offsets, np.zeros((block.agents, 1))
    bounds = np.broadcast_to(np.asarray(norm, float), block.agents)
    with np.errstate(all="ignore"):
        for k, C in enumerate(bounds):
            out[k, 0] = 2.0 * block.scale[k] * _distances(block.shards.X, int(offsets[k]), int(offsets[k + 1]), C)
    return out


def _distances(X: Any, first: int, end: int, C: float) -> float:
    if end - first > kernels.LONGEST:
        middle = first + (end - first) // 4 * 2  # pairs stay together
        return _distances(X, first, middle, C) + _distances(X, middle, end, C)
    even = first + (end - first) // 2 * 2
    gap = (X[first:even:2].astype(float) - X[first + 1 : even : 2].astype(float)) / C
    square = gap.multiply(gap) if sp.issparse(gap) else gap * gap
    half = 0.5 * np.asarray(square.sum(axis=1)).ravel()
    return float(np.sum(np.where(half < 1.0, half, 1.0)))  # not a number: as far apart as can be


def standard_gradient(block: Block, theta: Array, centre: Array, stretch: Array, norm: Array, slope: Array) -> Array:
    """∇ in θ of scale_k·Σ_i ω_i ℓ(u_iᵀθ + ½b, y_i), u = stretch∘(x/C - centre), ω = min(1, 1/‖u‖): (S, A, W).

    `theta` (S, A, W) has the intercept b last, as a model has; centre and stretch (S, A, p) are public, the centre 0
    for a model without intercept. Each row's slope is kept within ±slope_k; so replacing a row moves the answer by at
    most 2·slope_k·√(1 + ¼)·scale_k·(1 + κ).

    Rows are never transformed: x_iᵀ(stretch∘θ)/C is a margin of the rows as they are, and Σ s_i u_i = stretch∘(Σ s_i
    x_i/C - centre Σ s_i), so that a round reads them once, sparse ones too. Weights ω are kept with the block.
    """
    S, A, m, p = len(theta), block.agents, block.loss.outputs, block.shards.features
    C = np.asarray(norm, float).reshape(1, A, 1)
    a, c = tamed(centre, stretch, block.intercept)
    weights = _kept_weights(block, a, c, C)
    model = np.array(theta, float).reshape(S, A, m, -1)
    with np.errstate(all="ignore"):
        model[..., :p] *= (a / C)[:, :, None]
        if block.intercept:
            model[..., p] = HALF * model[..., p] - np.sum(model[..., :p] * (C * c)[:, :, None], axis=-1)
        sums = np.concatenate([
            block.weighted_gradient(model[s : s + 1].reshape(1, A, -1), weights[s], slope) for s in range(S)
        ]).reshape(S, A, m, -1)  # fmt: skip
        if block.intercept:
            sums[..., :p] = a[:, :, None] * (sums[..., :p] / C[..., None] - c[:, :, None] * sums[..., p:])
            sums[..., p] *= HALF
        else:
            sums *= (a / C)[:, :, None]
    return sums.reshape(S, A, -1)


def tamed(centre: Array, stretch: Array, intercept: bool) -> tuple[Array, Array]:
    """Stretch within [0, `LARGEST_STRETCH`] and centre within the unit ball, whatever was made of them."""
    a = np.clip(np.nan_to_num(np.asarray(stretch, float)), 0.0, LARGEST_STRETCH)
    if not intercept:
        return a, np.zeros_like(a)
    c = np.clip(np.nan_to_num(np.asarray(centre, float)), -1.0, 1.0)
    return a, c / np.maximum(1.0, np.linalg.norm(c, axis=-1, keepdims=True) * (1 + 2.0**-40))


def _kept_weights(block: Block, a: Array, c: Array, C: Array) -> Array:
    """ω of every row and seed, (S, n), the same from round to round."""
    key = a.tobytes() + c.tobytes() + C.tobytes()
    if block.kept.get("standard", (b"",))[0] != key:
        weights = np.empty((len(a), len(block.shards)))
        for k, seed in np.ndindex(block.agents, len(a)):
            part = slice(int(block.shards.offsets[k]), int(block.shards.offsets[k + 1]))
            weights[seed, part] = row_weights(block.shards.X[part], a[seed, k], c[seed, k], float(C[0, k, 0]))
        block.kept["standard"] = (key, weights)
    return np.asarray(block.kept["standard"][1])


def row_weights(X: Any, a: Array, c: Array, C: float) -> Array:
    """At most min(1, 1/‖u_i‖) for rows within C, and no less than that by more than rounding: (n,) from a, c (p,).

    ‖u‖² = Σ a²c² + Σ a²x(x - 2c), x in units of C, reads sparse rows as they are. Its p + 4 roundings, in whatever
    order, act on terms whose sizes add up to 4·max a² at most: with that added it is no less than ‖u‖².
    """
    n, p = X.shape
    square, cross = a * a, 2.0 * a * a * c
    rest = np.sum(square * c * c) + 4.0 * (p + 16) * 2.0**-52 * np.max(square)
    out, step = np.empty(n), max(1, PIECE // p)
    for i in range(0, n, step):
        x = X[i : i + step].astype(float) / C
        out[i : i + step] = (x.multiply(x) if sp.issparse(x) else x * x) @ square - x @ cross + rest
    return 1.0 / np.sqrt(np.maximum(out, 1.0) * (1 + 2.0**-50))
