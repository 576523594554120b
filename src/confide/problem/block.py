"""`Block`: private rows together with the few sums an algorithm's `local` may ask of them.

In a simulation one block holds every agent's rows, on a node its own; arrays are (seeds, agents, width) either way.
Gram matrices, norms and limits of rows are kept with the block, which is as private as the rows; nothing else is.

The answers that a private method may ask for (`gradient`, `difference`, `second_moment` with a finite bound, `counts`)
are finite and bounded for every double that a row, target, weight or point may hold; `kernels.rounding` is their κ.
"""

from __future__ import annotations

import contextlib
import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import threads
from confide.errors import ConfideError, Diverged
from confide.files.library import sparse as sp
from confide.problem import kernels, piecewise, solvers
from confide.problem.losses import Loss, NoisyLabels
from confide.problem.margin import MULTINOMIAL, SQUARED
from confide.problem.penalties import Penalty
from confide.problem.rows import clipped
from confide.problem.shards import Shards

Array = NDArray[np.float64]


_NO_L1 = np.zeros(0)  # told apart by identity: most rounds have no l1 term, and need not look for one


class SolverError(Diverged):
    """An inner problem was not solved to its tolerance."""


class Block:
    """Rows of some agents under one loss. `scale` (A,) is q_k/M_k: what one row's loss counts in f_k."""

    def __init__(self, shards: Shards, loss: Loss, scale: Array, intercept: bool) -> None:
        self.shards, self.loss, self.intercept = shards, loss, intercept
        self.scale = np.ascontiguousarray(scale, float)
        self.agents = shards.parties
        self.width = loss.outputs * (shards.features + intercept)
        self._w = shards.columns.get("weight", np.ones(1)) * np.clip(shards.columns.get("share", np.ones(1)), 0.0, 1.0)
        self._q = self._label_noise()
        self._inverse: tuple[bytes, Array] = (b"", np.zeros(0))
        self._clipping: tuple[bytes, Array, Array] = (b"", np.zeros(0), np.zeros(0))
        self.kept: dict[str, Any] = {}  # what a question keeps with the rows from round to round
        row_bytes = np.full(self.agents, 8.0 * shards.features)
        if sp.issparse(shards.X):
            row_bytes = 16.0 * np.diff(shards.rows[2][shards.offsets]) / shards.sizes
        self._table = kernels.chunk_table(shards.offsets, row_bytes)
        # multiply-adds of a pass; 10 for the slope
        self._work = float(shards.sizes @ (row_bytes / 8 + 10)) * loss.outputs

    def _label_noise(self) -> Array:
        """q_i = 1/(e^ε_i - 1) of every row, or one for all; 0 where labels are true."""
        if not isinstance(self.loss, NoisyLabels):
            return np.zeros(1)
        if self.loss.epsilon is not None:
            return np.array([self.loss.q])
        with np.errstate(over="ignore"):  # beyond the doubles: 0 or inf
            return np.asarray(1.0 / np.expm1(self.shards.columns["epsilon"]))

    @cached_property
    def _norms(self) -> Array:
        return self.shards.norms(self.intercept)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What compiled inner loops take: rows, targets, weights, label noise, offsets, scale, loss."""
        s = self.shards
        return s.rows, s.y, self._w, self._q, s.offsets, self.scale, self.loss.code, self.loss.base.parameter

    def _model(self, beta: Array) -> Array:
        seeds, agents, width = beta.shape
        return np.ascontiguousarray(beta).reshape(seeds, agents, self.loss.outputs, width // self.loss.outputs)

    def gradient(self, beta: Array, clip: Any = np.inf) -> Array:
        """∇ of scale_k·Σ_i ℓ_i at β_sk, each row's gradient clipped to norm `clip`: (S, A, W).

        Replacing a row moves it by at most 2·clip·scale_k·(1 + κ).
        """
        clip, limits = self._kept_limits(clip)
        return self._gradient(beta, self._w, limits, clip)

    def weighted_gradient(self, beta: Array, weight: Array, slope: Array) -> Array:
        """∇ of scale_k·Σ_i weight_i·ℓ_i, each row's slopes kept within norm slope_k before they are weighed."""
        clip = self._clips(slope)
        return self._gradient(beta, self._w * weight, np.repeat(clip, self.shards.sizes) * weight, clip)

    def _gradient(self, beta: Array, weight: Array, limits: Array, clip: Array) -> Array:
        model = self._model(beta)
        part = np.zeros((len(self._table), *model.shape[:1], *model.shape[2:]))
        threads.run(
            kernels.gradient_jobs, len(self._table) * kernels.seed_groups(len(beta)), self._work * len(beta),
            self.shards.rows, self.shards.y, weight, self._q, limits, self._table,
            model, self.loss.code, self.loss.base.parameter, clip, part,
        )  # fmt: skip
        return self._sum(part.reshape(len(part), len(beta), -1))

    def value(self, beta: Array) -> Array:
        """scale_k·Σ_i ℓ_i(β_sk): (S, A)."""
        part = np.zeros((len(self._table), len(beta), 1))
        threads.run(
            kernels.value_jobs, len(self._table) * kernels.seed_groups(len(beta)), self._work * len(beta),
            self.shards.rows, self.shards.y, self._w, self._q, self._table,
            self._model(beta), self.loss.code, self.loss.base.parameter, part,
        )  # fmt: skip
        return np.asarray(self._sum(part)[:, :, 0])

    def difference(self, plus: Array, minus: Array, gap: float, clip: Any = np.inf) -> Array:
        """scale_k·Σ_i of [ℓ_i(plus) - ℓ_i(minus)]/gap, each row's kept within ±clip: (S, A).

        Replacing a row moves it by at most 2·clip·scale_k·(1 + κ).
        """
        part = np.zeros((len(self._table), len(plus), 1))
        threads.run(
            kernels.difference_jobs, len(self._table) * len(plus), 2 * self._work * len(plus),
            self.shards.rows, self.shards.y, self._w, self._q, self._table, self._model(plus), self._model(minus),
            gap, self.loss.code, self.loss.base.parameter, self._clips(clip), part,
        )  # fmt: skip
        return np.asarray(self._sum(part)[:, :, 0])

    def _clips(self, clip: Any) -> Array:
        given = np.ascontiguousarray(clip, float).reshape(-1)
        return kernels.usable(given if given.size == self.agents else np.full(self.agents, float(given[0])))

    def _kept_limits(self, clip: Any) -> tuple[Array, Array]:
        """Clips (A,) and the largest slope of every row under them (n,), the same from round to round."""
        key, kept = np.asarray(clip, float).tobytes(), self._clipping
        if kept[0] != key:
            clips, limits = self._clips(clip), np.zeros(1)
            if np.any(clips < np.inf):
                limits = np.empty(len(self.shards))
                kernels.row_limits(self._norms, self.shards.offsets, clips, limits)
            self._clipping = kept = (key, clips, limits)
        return kept[1:]

    def _sum(self, part: Array) -> Array:
        out = np.zeros((part.shape[1], self.agents, part.shape[2]))
        kernels.sum_chunks(part, self._table, self.scale, out)
        return out

    @cached_property
    def gram(self) -> Array:
        """scale_k·Σ_i w_i x_i x_iᵀ with the intercept's border: (A, P, P)."""
        p = self.shards.features
        out = np.zeros((self.agents, p + self.intercept, p + self.intercept))
        for k in range(self.agents):
            X, _ = self.shards.part(k)
            rows = slice(int(self.shards.offsets[k]), int(self.shards.offsets[k + 1]))
            w = np.broadcast_to(self._w, len(self.shards))[rows]
            out[k] = weighted_gram(X, w, self.intercept) * self.scale[k]
        return out

    def second_moment(self, norm: Any) -> Array:
        """Mean of x xᵀ over each agent's rows, rows longer than `norm` (A,) clipped to it: (A, p, p).

        Replacing a row moves it by at most √2·norm²/M_k·(1 + κ) in Frobenius norm.
        """
        bounds = kernels.usable(np.broadcast_to(np.asarray(norm, float), self.agents), math.sqrt(kernels.MOST))
        size, offsets = self.shards.norms(intercept=False), self.shards.offsets
        with np.errstate(all="ignore"):  # a warning would tell of a row
            sums = [_moment(self.shards.X, size, offsets[k], offsets[k + 1], bound) for k, bound in enumerate(bounds)]
            return np.stack(sums) / self.shards.sizes[:, None, None]

    def counts(self, edges: Any) -> Array:
        """scale_k times the number of agent k's targets in each cell (-∞, e₀], (e₀, e₁], …, (e_last, ∞): (A, cells).

        Replacing a row moves it by at most √2·scale_k·(1 + κ): one cell loses a row, another gains it.
        """
        cuts = np.asarray(edges, float)
        if cuts.ndim != 1 or not np.all(np.isfinite(cuts)) or np.any(np.diff(cuts) <= 0):
            raise ConfideError(f"edges {cuts.tolist()}: must be finite numbers, each above the one before")
        cells = len(cuts) + 1
        place = np.repeat(np.arange(self.agents) * cells, self.shards.sizes) + np.searchsorted(cuts, self.shards.y)
        return np.bincount(place, minlength=self.agents * cells).reshape(-1, cells) * self.scale[:, None]

    def argmin(
        self, linear: Array, quad: Any, penalty: Penalty, mask: Array, share: float, start: Array, tolerance: float
    ) -> Array:
        """argmin of f_k(β) + share·R(β) + linearᵀβ + ½quad‖β‖², solved to the gradient norm `tolerance`: (S, A, W).

        `quad` is a number or (A, 1); `mask` (W,) is 0 at unpenalised coordinates. Concave penalties are
        majorised by their tangent until the point stops moving: a stationary point.
        """
        quad_full = np.asarray(quad, float) + np.zeros((self.agents, 1)) + share * penalty.l2 * mask
        beta = np.array(start, float, order="C")
        if linear.shape != beta.shape or not linear.flags.c_contiguous:
            linear = np.array(np.broadcast_to(linear, beta.shape), order="C")  # writable: kernels are compiled once
        if penalty.convex:
            l1 = np.broadcast_to(share * penalty.l1 * mask, beta.shape) if penalty.l1 else _NO_L1
            return self._argmin(beta, linear, quad_full, l1, tolerance)
        for _ in range(200):  # local linear approximation
            weights = share * np.abs(penalty.gradient(np.where(beta == 0, 1e-300, beta))) * mask
            new = self._argmin(beta.copy(), linear, quad_full, weights, tolerance)
            moved = float(np.max(np.abs(new - beta)))
            beta = new
            if moved <= 1e-10:
                break
        return beta

    def _argmin(self, beta: Array, linear: Array, quad: Array, l1: Array, tolerance: float) -> Array:
        if not self.loss.smooth:
            residual = self._augmented(beta, linear, quad, l1, tolerance)
        elif l1 is _NO_L1 or not np.any(l1):
            solve = self._linear if self.loss.code == SQUARED else self._quasi_newton
            residual = solve(beta, linear, quad, tolerance)
        else:
            solve_l1 = self._lasso if self.loss.code == SQUARED else self._prox_newton
            residual = solve_l1(beta, linear, quad, l1, tolerance)
        if not np.all(residual <= tolerance):
            s, k = np.unravel_index(np.argmax(residual), residual.shape)
            raise SolverError(
                f"inner problem of agent {k} stopped at residual {residual[s, k]:.1e}, above the tolerance "
                f"{tolerance:.1e}: scale the features or raise the tolerance"
            )
        return beta

    @cached_property
    def _moment(self) -> Array:
        """-∇f_k at 0: (A, W)."""
        return -self.gradient(np.zeros((1, self.agents, self.width)))[0]

    def _linear(self, beta: Array, linear: Array, quad: Array, tolerance: float) -> Array:
        """Squared loss: f_k is ½βᵀGβ - momentᵀβ, so the argmin is a linear system and needs no pass over the rows."""
        residual = np.empty(beta.shape[:2])
        threads.run(
            solvers.linear_system, residual.size, 4 * beta.size * self.width,
            self.gram, self._moment, beta, linear, quad, self._kept_inverse(quad), tolerance, residual,
        )  # fmt: skip
        return residual

    def _lasso(self, beta: Array, linear: Array, quad: Array, l1: Array, tolerance: float) -> Array:
        residual = np.empty(beta.shape[:2])
        threads.run(
            solvers.lasso_system, residual.size, 50 * beta.size * self.width,
            self.gram, self._moment, beta, linear, quad, np.array(l1, order="C"), tolerance, residual,
        )  # fmt: skip
        return residual

    def _kept_inverse(self, quad: Array) -> Array:
        key = quad.tobytes()
        if self._inverse[0] != key:  # the same from round to round, unless the coupling moves
            self._inverse = (key, self._curvature_inverse(quad))
        return self._inverse[1]

    def _quasi_newton(self, beta: Array, linear: Array, quad: Array, tolerance: float) -> Array:
        m, start = self.loss.outputs, beta.copy()
        residual = np.empty(beta.shape[:2])
        threads.run(
            solvers.quasi_newton, residual.size, 5 * self._work * len(beta),
            self.shards.rows, self.shards.y, self._w, self._q, self.shards.offsets, beta, m, self.loss.code,
            self.loss.base.parameter, self.scale, linear, quad, self._kept_inverse(quad), tolerance, 10_000, residual,
        )  # fmt: skip
        for n, k in np.argwhere(~(residual <= tolerance)):
            curvature = self.loss.curvature_bound * np.trace(self.gram[k]) + quad[k].max()
            if curvature > quad[k].min() * solvers.WORST_CONDITION:
                continue
            beta[n, k] = start[n, k]  # `descend` is certain from there
            residual[n, k] = solvers.descend(
                self.shards.rows, self.shards.y, self._w, self._q, self.shards.offsets[k], self.shards.offsets[k + 1],
                beta[n, k], m, self.loss.code, self.loss.base.parameter, self.scale[k], linear[n, k], quad[k],
                float(curvature), tolerance, int(40 * curvature / quad[k].min()) + 10,
            )  # fmt: skip
        return residual

    def _curvature_inverse(self, quad: Array) -> Array:
        """Inverse of the curvature bound c·XᵀX + diag(quad) of every agent: (A, W, W)."""
        bound = self.loss.curvature_bound
        m, P = self.loss.outputs, self.width // self.loss.outputs
        inverse = np.zeros((self.agents, self.width, self.width))
        for k in range(self.agents):
            for c in range(m):  # the curvature of a row is at most bound·I over its margins
                part = slice(c * P, (c + 1) * P)
                inverse[k, part, part] = stable_inverse(bound * self.gram[k] + np.diag(quad[k, part]))
        return inverse

    def _augmented(self, beta: Array, linear: Array, quad: Array, l1: Array, tolerance: float) -> Array:
        l1 = l1 if l1 is not _NO_L1 else np.zeros(beta.shape)
        unit = np.sqrt(np.tile(np.diagonal(self.gram, axis1=1, axis2=2), self.loss.outputs) + quad)
        residual = np.full(beta.shape[:2], np.inf)
        with contextlib.suppress(np.linalg.LinAlgError):  # a singular system: an unsolved problem, as the residual says
            threads.run(
                piecewise.augmented, residual.size, 50 * self._work * len(beta),
                self.shards.rows, self.shards.y, self._w, self.shards.offsets, beta, self.loss.code,
                self.loss.base.parameter, self.scale, linear, quad, np.array(l1, order="C"),
                np.where(unit > 0, unit, 1.0), tolerance, 200, residual,
            )  # fmt: skip
        return residual

    def _prox_newton(self, beta: Array, linear: Array, quad: Array, l1: Array, tolerance: float) -> Array:
        residual = np.empty(beta.shape[:2])
        for s, k in np.ndindex(*residual.shape):
            one = AgentView(self, k)
            beta[s, k], residual[s, k] = solvers.prox_newton(
                lambda b, s=s, k=k, one=one: one.value(b) + linear[s, k] @ b + 0.5 * quad[k] @ b**2,  # type: ignore[misc]
                lambda b, s=s, k=k, one=one: one.gradient(b) + linear[s, k] + quad[k] * b,  # type: ignore[misc]
                lambda b, floor, k=k, one=one: one.hessian(b, floor) + np.diag(quad[k]),  # type: ignore[misc]
                l1[s, k], beta[s, k], tolerance,
            )  # fmt: skip
        return residual


class AgentView:
    """One agent's part of a block, one coefficient vector at a time."""

    def __init__(self, block: Block, k: int) -> None:
        self.block, self.k = block, k
        self.start, self.stop = int(block.shards.offsets[k]), int(block.shards.offsets[k + 1])

    def value(self, beta: Array) -> float:
        """f_k at β (W,)."""
        b, model = self.block, np.ascontiguousarray(beta).reshape(self.block.loss.outputs, -1)
        rows, y = b.shards.rows, b.shards.y
        total = kernels.add_values(
            rows, y, b._w, b._q, self.start, self.stop, model, b.loss.code, b.loss.base.parameter
        )
        return float(total * b.scale[self.k])

    def gradient(self, beta: Array) -> Array:
        """∇f_k at β (W,)."""
        b, m = self.block, self.block.loss.outputs
        out = np.zeros((m, beta.size // m))
        kernels.add_gradients(
            b.shards.rows, b.shards.y, b._w, b._q, np.empty(0), self.start, self.stop,
            np.ascontiguousarray(beta).reshape(m, -1), b.loss.code, b.loss.base.parameter, np.inf, out,
        )  # fmt: skip
        return np.asarray(out.ravel() * b.scale[self.k])

    def hessian(self, beta: Array, floor: float) -> Array:
        """∇²f_k at β, each row's curvature lifted to at least `floor` of its bound, so that floor=1 majorises."""
        b = self.block
        X, _ = b.shards.part(self.k)
        w = np.broadcast_to(b._w, len(b.shards))[self.start : self.stop]
        if b.loss.code == MULTINOMIAL:
            return self._softmax_hessian(X, w, beta, floor)
        z = kernels.margins(b.shards.rows, self.start, self.stop, np.ascontiguousarray(beta)[None])
        d = kernels.curvatures(z[0], b.shards.y, b._w, self.start, b.loss.code, b.loss.base.parameter)
        return weighted_gram(X, np.maximum(d, floor * b.loss.curvature_bound * w), b.intercept) * b.scale[self.k]

    def _softmax_hessian(self, X: Any, w: Array, beta: Array, floor: float) -> Array:
        """(1 - floor)·Σ w_i (diag(p_i) - p_i p_iᵀ) ⊗ x_i x_iᵀ + floor·½I ⊗ Gram, class by class."""
        b = self.block
        m, P = b.loss.outputs, beta.size // b.loss.outputs
        model = np.ascontiguousarray(beta).reshape(m, P)
        z = np.stack([kernels.margins(b.shards.rows, self.start, self.stop, row[None])[0] for row in model])
        p = np.exp(z - z.max(axis=0))
        p /= p.sum(axis=0)
        H = np.kron(np.eye(m), floor * b.loss.curvature_bound * b.gram[self.k])
        for c in range(m):
            for e in range(c + 1):
                d = (1 - floor) * w * p[c] * ((c == e) - p[e])
                part = weighted_gram(X, d, b.intercept) * b.scale[self.k]
                H[c * P : (c + 1) * P, e * P : (e + 1) * P] += part
                if c != e:
                    H[e * P : (e + 1) * P, c * P : (c + 1) * P] += part.T
        return H


def stable_inverse(H: Array) -> Array:
    """Of a positive semidefinite matrix, its diagonal scaled to 1 and then lifted: features may have any units."""
    size = np.sqrt(H.diagonal())
    unit = 1.0 / np.where(size > 0, size, 1.0)
    both = unit[:, None] * unit
    return np.asarray(np.linalg.inv(H * both + 1e-14 * np.eye(len(H))) * both)


def _moment(X: Any, size: Array, first: int, end: int, bound: float) -> Array:
    """Σ x xᵀ over rows first..end, clipped to `bound`: by halves, down to pieces whose rounding is known."""
    if end - first > kernels.LONGEST:
        middle = (first + end) // 2
        return _moment(X, size, first, middle, bound) + _moment(X, size, middle, end, bound)
    rows = clipped(X[first:end].astype(float), bound, size[first:end])
    square = rows.T @ rows
    return np.asarray(square.toarray() if sp.issparse(square) else square)


def weighted_gram(X: Any, d: Array, intercept: bool) -> Array:
    """Σ d_i (x_i, 1)(x_i, 1)ᵀ, in pieces of rows."""
    p = X.shape[1]
    G = np.zeros((p + intercept, p + intercept))
    step = max(1, (1 << 20) // max(p, 1))
    for i in range(0, X.shape[0], step):
        part, w = X[i : i + step], d[i : i + step]
        weighted = part.multiply(w[:, None]).tocsr() if sp.issparse(part) else part * w[:, None]
        square = part.T @ weighted
        G[:p, :p] += square.toarray() if sp.issparse(square) else square
        if intercept:
            border = np.asarray(weighted.sum(axis=0)).ravel()
            G[p, :p] += border
            G[:p, p] += border
            G[p, p] += w.sum()
    return G
