"""Curves as rows: public bases, and inner products of curves with them.

    basis = Basis("cosine", 8)                                  # 1, √2 cos πt, √2 cos 2πt, … on [0, 1]
    rows = scores(X, grid, basis)                               # curves (n, points) observed at one common grid
    rows = Curves.from_pairs(pairs).scores(basis)               # curves observed each at points of its own

A basis is public: it is agreed before anyone looks at the curves, so it costs no privacy. Anything that maps points
(m,) to values (m, count) is one, such as known eigenfunctions; functions learned from curves have to be paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.problem.checks import finite, whole

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Functions = Callable[[Array], Array]  # points (m,) -> values (m, count)

KINDS = ("cosine", "fourier", "bspline")
DEGREE = 3  # of the splines
NODES, PIECES = 4, 32  # Gauss-Legendre points in each piece, and the least number of pieces of the domain
PIECE = 1 << 22  # numbers held at a time by `Curves.scores`


@dataclass(frozen=True)
class Basis:
    """The first `count` functions of a basis over `domain`.

    "cosine"   1, √2 cos(kπu), orthonormal: the eigenfunctions of Zhou and Xiang's design
    "fourier"  1, √2 sin(2πu), √2 cos(2πu), √2 sin(4πu), …, orthonormal
    "bspline"  cubic splines on equal knots, not orthogonal (of lower degree for fewer than 4)

    u runs from 0 to 1 over the domain; orthonormal means with respect to ∫ dt over the domain.
    """

    kind: str
    count: int
    domain: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfideError(f"basis={self.kind!r}: must be one of {', '.join(KINDS)}")
        if not (whole(self.count) and self.count >= 1):
            raise ConfideError(f"count={self.count}: a basis has a whole number of at least 1 functions")
        low, high = self.domain
        if not (finite(low) and finite(high) and low < high):
            raise ConfideError(f"domain={self.domain}: must be (low, high), finite and low < high")

    def __call__(self, t: Any) -> Array:
        """Values at the points t (m,): (m, count). Points outside the domain count as its nearer end."""
        low, high = self.domain
        u = np.clip((np.asarray(t, float) - low) / (high - low), 0.0, 1.0)[:, None]
        k = np.arange(self.count)
        if self.kind == "bspline":
            return self._splines(u[:, 0])
        if self.kind == "cosine":
            waves = np.cos(np.pi * k * u)
        else:
            turns = 2 * np.pi * ((k + 1) // 2) * u
            waves = np.where(k % 2 == 1, np.sin(turns), np.cos(turns))
        return np.asarray(waves * np.where(k == 0, 1.0, np.sqrt(2.0)) / np.sqrt(high - low))

    def _splines(self, u: Array) -> Array:
        degree = min(DEGREE, self.count - 1)
        inner = np.linspace(0.0, 1.0, self.count - degree + 1)
        knots = np.concatenate([np.zeros(degree), inner, np.ones(degree)])
        from scipy.interpolate import BSpline

        return np.asarray(BSpline.design_matrix(u, knots, degree).toarray())


def trapezoid(grid: Array) -> Array:
    """Weights of the trapezoid rule on a rising grid (points,); a single point has weight 1."""
    if len(grid) == 1:
        return np.ones(1)
    step = np.diff(grid)
    return np.concatenate([step[:1], step[:-1] + step[1:], step[-1:]]) / 2


def scores(X: Any, grid: Array, basis: Functions) -> Array:
    """∫ X_i(t) φ_k(t) dt of curves X (n, points) observed at one common grid, by the trapezoid rule: (n, count)."""
    grid = rising(grid, np.shape(X)[1])
    return np.asarray(X @ (trapezoid(grid)[:, None] * basis(grid)))


def orthonormal(values: Array, grid: Array) -> Array:
    """The span of functions given at a grid (points, count), orthonormal under the trapezoid rule there."""
    root = np.sqrt(trapezoid(grid))[:, None]
    return np.asarray(np.linalg.qr(root * values)[0] / root)


def rising(grid: Any, points: int) -> Array:
    """Where `points` values of a curve were observed; 0 to 1 in equal steps if None."""
    if grid is None:
        return np.linspace(0.0, 1.0, points)
    grid = np.asarray(grid, float)
    if grid.shape != (points,) or not np.all(np.isfinite(grid)) or np.any(np.diff(grid) <= 0):
        raise ConfideError(f"grid of shape {grid.shape} for curves of {points} points: must be as many, rising")
    return grid


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves observed each at points of its own: curve i has `points` and `values` starts[i]..starts[i+1].

    Between its points a curve is taken to be straight, and before the first and after the last to be constant.
    """

    points: Array
    values: Array
    starts: Index

    def __post_init__(self) -> None:
        if self.points.shape != self.values.shape or self.points.ndim != 1:
            raise ConfideError(
                f"{self.points.shape} points and {self.values.shape} values: must be one value per point"
            )
        if self.starts[0] != 0 or self.starts[-1] != len(self.points) or np.any(np.diff(self.starts) < 1):
            raise ConfideError(
                f"starts={self.starts[:6]}…: must rise from 0 to {len(self.points)}, at least 1 point per curve"
            )
        if not (np.all(np.isfinite(self.points)) and np.all(np.isfinite(self.values))):
            raise ConfideError("a curve has a point or a value that is NaN or infinite: none is allowed")
        if np.any(np.diff(self.points)[self._inside()] <= 0):
            raise ConfideError("a curve's points do not rise: sort them, and keep one value per point")

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Any, Any]]) -> Curves:
        """One (points, values) a curve."""
        both = [(np.asarray(t, float).ravel(), np.asarray(x, float).ravel()) for t, x in pairs]
        if not both:
            raise ConfideError("no curves: give one (points, values) per curve")
        wrong = next(((t.size, x.size) for t, x in both if t.size != x.size), None)
        if wrong:
            raise ConfideError(f"a curve of {wrong[0]} points and {wrong[1]} values: must be one value per point")
        points, values = (np.concatenate(part) for part in zip(*both, strict=True))
        return cls(points, values, np.cumsum([0, *(len(t) for t, _ in both)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def _inside(self) -> NDArray[np.bool_]:
        """Which steps from one point to the next stay within a curve."""
        inside = np.ones(max(len(self.points) - 1, 0), bool)
        inside[self.starts[1:-1] - 1] = False
        return inside

    def resample(self, grid: Any) -> Array:
        """The curves at a common grid (m,): (n, m)."""
        parts = [slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]
        return np.array([np.interp(grid, self.points[part], self.values[part]) for part in parts])

    def scores(self, basis: Functions, domain: tuple[float, float] = (0.0, 1.0)) -> Array:
        """∫ X_i(t) φ_k(t) dt over the domain, by Gauss and Legendre's rule between a curve's points: (n, count).

        The basis may oscillate between two points of a curve, so products are not taken at the observations alone.
        """
        owner, left, right, a, b = self._segments(domain)
        node, weight = np.polynomial.legendre.leggauss(NODES)
        rise, out = (node + 1) / 2, None
        step = max(1, PIECE // (NODES * np.shape(basis(np.asarray(domain, float)))[1]))
        for first in range(0, len(owner), step):
            part = slice(first, first + step)
            t = left[part, None] + (right - left)[part, None] * rise
            x = a[part, None] + (b - a)[part, None] * rise
            phi = basis(t.ravel()).reshape(*t.shape, -1)
            piece = np.einsum("ij,ijk->ik", x * weight * ((right - left)[part, None] / 2), phi)
            out = np.zeros((len(self), piece.shape[1])) if out is None else out
            np.add.at(out, owner[part], piece)
        assert out is not None
        return out

    def _segments(self, domain: tuple[float, float]) -> tuple[Index, Array, Array, Array, Array]:
        """Straight pieces of all curves within the domain: owner, ends, values at the ends."""
        low, high = domain
        member = np.repeat(np.arange(len(self)), np.diff(self.starts))
        inside, every = np.flatnonzero(self._inside()), np.arange(len(self))
        first, last = self.starts[:-1], self.starts[1:] - 1
        t, x = self.points, self.values
        owner = np.concatenate([every, member[inside], every])
        left = np.concatenate([np.full(len(self), low), t[inside], t[last]])
        right = np.concatenate([t[first], t[inside + 1], np.full(len(self), high)])
        a = np.concatenate([x[first], x[inside], x[last]])
        b = np.concatenate([x[first], x[inside + 1], x[last]])
        span = np.where(right > left, right - left, 1.0)
        near, far = np.clip(left, low, high), np.clip(right, low, high)
        start, end = a + (b - a) * (near - left) / span, a + (b - a) * (far - left) / span
        # a wide gap is cut, since a basis function may turn within it
        parts = np.ceil(PIECES * np.maximum(far - near, 0.0) / (high - low)).astype(int)
        nth = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        owner, near, far, start, end, of = (np.repeat(v, parts) for v in (owner, near, far, start, end, parts))
        low_part, high_part = nth / of, (nth + 1) / of
        return (
            owner, near + (far - near) * low_part, near + (far - near) * high_part,
            start + (end - start) * low_part, start + (end - start) * high_part,
        )  # fmt: skip
