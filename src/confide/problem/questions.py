"""The closed list of questions that private rows answer, each with its one sensitivity.

Rows answer these and nothing else. A method names a question and its bound; the engine computes the answer, adds the
noise to it, and only then does the method's public arithmetic begin (penalty, prox, duals, what neighbours sent), so
that nothing a neighbour sends can change what rows contribute, or how exactly they contribute it.

Neighbouring data sets differ by replacing one row of one agent k, which counts s_k = q_k/M_k in f_k ("parties": 1/M_k).
A row's share, within 0 and 1, is a part of it and multiplies ℓ_i, so that a term only shrinks: weights up to a public W
are shares of W, and beside a mean weight w̄ noise is W/w̄ times as loud. Moments, counts and the like count rows alike.

| question      | answer of agent k                                                   | sensitivity (L2)       |
|---------------|---------------------------------------------------------------------|------------------------|
| Gradient      | s_k Σ_i ∇ℓ_i(β), each row's gradient clipped to norm c               | 2·c·s_k                |
| Differences   | s_k Σ_i [ℓ_i(β⁺) - ℓ_i(β⁻)]/gap, each row's clipped to ±c; J numbers   | √J·2·c·s_k             |
| OuterProducts | mean of x xᵀ over rows clipped to norm c, as a symmetric vector;     | √2·c²/M_k              |
|               | where rows count alike, s_k times their sum                          | √2·c²·s_k              |
| Counts        | s_k times the number of targets in each public cell                  | √2·s_k                 |
| Moments       | s_k Σ_i (½C·x, x∘x) over rows clipped to norm C                      | 9/(4√2)·C²·s_k         |
| PairDistances | 2s_k Σ min(½‖x - x'‖²/C², 1) over disjoint pairs of rows               | 2·s_k                  |
| Standardised  | s_k Σ_i ω_i ∇ℓ_i on centred and scaled rows (u, ½), ω = min(1, 1/‖u‖)  | 2·c·s_k                |

Proofs. A sum of terms, one per row, moves by the difference of two terms. Gradient and difference: each term lies in a
ball of radius c. Second moment: ‖xxᵀ - yyᵀ‖_F² = ‖x‖⁴ + ‖y‖⁴ - 2(xᵀy)² ≤ 2c⁴, attained by orthogonal rows; the diagonal
and √2 times the upper triangle have the same norm. Counts: one cell loses a row, one gains it.
Moments, at C = 1: x∘x - y∘y is the diagonal of xxᵀ - yyᵀ, so with z = xᵀy the squared distance is at most
¼(‖x‖² + ‖y‖²) - ½z + ‖x‖⁴ + ‖y‖⁴ - 2z² ≤ 5/2 - ½z - 2z² ≤ 81/32, attained at z = -1/8 by unit rows in the plane of two
features whose angles add up to 90°. PairDistances: one pair's term, within [0, 1], changes. Standardised: a row's
slope s is within c/√(1 + ¼) and ω‖(u, ½)‖ ≤ √(1 + ¼), at ‖u‖ ≥ 1 as at ‖u‖ ≤ 1, so its term lies in a ball of radius c;
without an intercept there is no ½, nor a centre. All are attained.

In floating point a term is within a factor 1 + κ of its bound and a sum is within κ of the sum of its terms' bounds;
`kernels.rounding` derives κ from public numbers, and every sensitivity here is multiplied by 1 + κ. This holds for
every double that a row, a target or a point can hold: a row's term that is not finite counts as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, WrongType
from confide.problem.block import Block
from confide.problem.kernels import rounding
from confide.problem.problem import Public
from confide.problem.standardised import (
    HALF,
    LARGEST_STRETCH,
    feature_moments,
    pair_distances,
    standard_gradient,
)

Array = NDArray[np.float64]
EXTREME = 1e100  # of a norm that rows are divided by


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every agent's rows, with the bound (A, 1) that one row's term is held to."""

    bound: Array

    def check(self, public: Public) -> None:
        """One clear line unless every agent has a bound of its own: another shape would be spread over all of them."""
        self._one_per_agent("bound", public)

    def _one_per_agent(self, name: str, public: Public) -> None:
        given = np.asarray(getattr(self, name))
        if given.shape != (len(public.agents), 1):
            raise ConfideError(
                f"{type(self).__name__} {name} of shape {given.shape}: must be ({len(public.agents)}, 1), one per agent"
            )
        if not np.all(given > 0):
            raise ConfideError(f"{type(self).__name__} {name}={given[:, 0].min():g}: must be above 0")

    def numbers(self, public: Public) -> int:
        """How many numbers an answer has."""
        raise WrongType(f"{type(self).__name__} does not say how wide its answer is")

    def exact_sensitivity(self, public: Public) -> Array:
        """How far the answer moves when one row is replaced, in exact arithmetic: (A, 1)."""
        raise WrongType(f"{type(self).__name__} has no sensitivity")

    def exact_largest(self, public: Public) -> Array:
        """The longest that an answer can be, in exact arithmetic: (A, 1)."""
        raise WrongType(f"{type(self).__name__} has no largest answer")

    def answer(self, block: Block, *at: Any) -> Array:
        """The exact answer, which must not leave the party as it is: (S, A, numbers)."""
        raise WrongType(f"{type(self).__name__} has no answer")

    def sensitivity(self, public: Public) -> Array:
        """How far the computed answer moves when one row is replaced, its rounding included: (A, 1)."""
        self.check(public)
        return self.exact_sensitivity(public) * (1.0 + self._rounding(public))

    def largest(self, public: Public) -> Array:
        """The longest that a computed answer can be: (A, 1)."""
        return self.exact_largest(public) * (1.0 + self._rounding(public))

    def with_bound(self, bound: Array) -> Question:
        return replace(self, bound=bound)

    def _rounding(self, public: Public) -> Array:
        sizes = public.sizes[public.agents][:, None]
        return np.asarray(rounding(sizes, public.features, public.intercept, public.loss.outputs))


@dataclass(frozen=True, eq=False)
class Gradient(Question):
    """The clipped gradient of f_k at a public point β (S, A, W)."""

    def numbers(self, public: Public) -> int:
        return public.width

    def exact_sensitivity(self, public: Public) -> Array:
        return 2.0 * self.bound * public.scale

    def exact_largest(self, public: Public) -> Array:
        return self.bound * public.scale * public.sizes[public.agents][:, None]

    def answer(self, block: Block, *at: Any) -> Array:
        (beta,) = at
        return block.gradient(beta, self.bound)


@dataclass(frozen=True, eq=False)
class Differences(Question):
    """Clipped two-point differences of f_k at J pairs of public points, each (S, J, A, W), `gap` apart."""

    count: int
    gap: float

    def numbers(self, public: Public) -> int:
        return self.count

    def exact_sensitivity(self, public: Public) -> Array:
        return math.sqrt(self.count) * 2.0 * self.bound * public.scale

    def exact_largest(self, public: Public) -> Array:
        return math.sqrt(self.count) * self.bound * public.scale * public.sizes[public.agents][:, None]

    def answer(self, block: Block, *at: Any) -> Array:
        plus, minus = at
        S, J, A, W = plus.shape
        d = block.difference(plus.reshape(-1, A, W), minus.reshape(-1, A, W), self.gap, self.bound)
        return d.reshape(S, J, A).swapaxes(1, 2)


@dataclass(frozen=True, eq=False)
class OuterProducts(Question):
    """The mean of x xᵀ over an agent's rows, clipped to norm `bound`: diagonal and √2 times the upper triangle.

    With `rows_alike` s_k times the sum of them, as every other question counts rows.
    """

    rows_alike: bool = False

    def numbers(self, public: Public) -> int:
        return public.features * (public.features + 1) // 2

    def exact_sensitivity(self, public: Public) -> Array:
        return math.sqrt(2.0) * self.bound**2 * self._weight(public) / public.sizes[public.agents][:, None]

    def exact_largest(self, public: Public) -> Array:
        return self.bound**2 * self._weight(public)

    def answer(self, block: Block, *at: Any) -> Array:
        (seeds,) = at
        moment = pack(block.second_moment(self.bound[:, 0]))
        if self.rows_alike:
            moment = moment * (block.scale * block.shards.sizes)[:, None]
        return for_seeds(moment, seeds)

    def _weight(self, public: Public) -> Array:
        """Of an agent's mean: (A, 1)."""
        sizes = public.sizes[public.agents][:, None]
        return public.scale * sizes if self.rows_alike else np.ones(sizes.shape)

    def _rounding(self, public: Public) -> Array:
        return super()._rounding(public) + 2.0**-50 * self.rows_alike  # two products


@dataclass(frozen=True, eq=False)
class Counts(Question):
    """s_k times the number of targets in each cell (-∞, e_0], (e_0, e_1], …, (e_last, ∞) of a public grid."""

    edges: tuple[float, ...]

    def numbers(self, public: Public) -> int:
        return len(self.edges) + 1

    def exact_sensitivity(self, public: Public) -> Array:
        return math.sqrt(2.0) * self.bound * public.scale

    def exact_largest(self, public: Public) -> Array:
        return self.bound * public.scale * public.sizes[public.agents][:, None]

    def answer(self, block: Block, *at: Any) -> Array:
        (seeds,) = at
        counts = self.bound * block.counts(self.edges)
        return for_seeds(counts, seeds)


@dataclass(frozen=True, eq=False)
class Moments(Question):
    """Sums of ½C·x and x∘x over an agent's rows, clipped to norm C = `bound`."""

    def numbers(self, public: Public) -> int:
        return 2 * public.features

    def exact_sensitivity(self, public: Public) -> Array:
        return 9.0 / (4.0 * math.sqrt(2.0)) * self.bound**2 * public.scale

    def exact_largest(self, public: Public) -> Array:
        return math.sqrt(1.25) * self.bound**2 * public.scale * public.sizes[public.agents][:, None]

    def answer(self, block: Block, *at: Any) -> Array:
        (seeds,) = at
        sums = feature_moments(block, self.bound[:, 0])
        return for_seeds(sums, seeds)


@dataclass(frozen=True, eq=False)
class PairDistances(Question):
    """How far apart rows are, half their squared distance in units of `bound`² and at most 1, for ⌊M_k/2⌋ pairs."""

    def numbers(self, public: Public) -> int:
        return 1

    def exact_sensitivity(self, public: Public) -> Array:
        return 2.0 * public.scale

    def exact_largest(self, public: Public) -> Array:
        return 2.0 * public.scale * (public.sizes[public.agents][:, None] // 2)

    def answer(self, block: Block, *at: Any) -> Array:
        (seeds,) = at
        sums = pair_distances(block, self.bound[:, 0])
        return for_seeds(sums, seeds)


@dataclass(frozen=True, eq=False)
class Standardised(Gradient):
    """The clipped gradient in θ at public (θ, centre, stretch), rows u = stretch∘(x/C - centre) beside a ½: (S, A, W).

    `bound` is on a row's gradient, `norm` (A, 1) is C, which must be enforced on the rows, and of a size that quotients
    and sums of rows stay among the normal numbers.
    """

    norm: Array

    def check(self, public: Public) -> None:
        super().check(public)
        self._one_per_agent("norm", public)

    def answer(self, block: Block, *at: Any) -> Array:
        theta, centre, stretch = at
        within_norm = block.shards.row_norm is not None and np.all(self.norm >= block.shards.row_norm)
        if not (within_norm and usable_norm(float(np.min(self.norm))) and usable_norm(float(np.max(self.norm)))):
            raise ConfideError(
                f"norm {np.min(self.norm)} of standardised rows: must be at least their row norm, see "
                f"Shards.clip_rows, and between {1 / EXTREME:g} and {EXTREME:g}"
            )
        slope = self.bound[:, 0] / math.sqrt(1.0 + HALF**2 * block.intercept)
        return standard_gradient(block, theta, centre, stretch, self.norm[:, 0], slope)

    def _rounding(self, public: Public) -> Array:
        """Errors of Σ s x/C and of centre·Σ s, both stretched, are at most 2·`LARGEST_STRETCH` times a gradient's."""
        return math.sqrt(2.0) * LARGEST_STRETCH * super()._rounding(public)


def usable_norm(norm: float) -> bool:
    """Whether rows within it may be standardised: public, so that it may be said."""
    return 1 / EXTREME <= norm <= EXTREME


# the closed list
QUESTIONS: tuple[type[Question], ...] = (
    Gradient,
    Differences,
    OuterProducts,
    Counts,
    Moments,
    PairDistances,
    Standardised,
)


def for_seeds(value: Array, seeds: int) -> Array:
    """One answer (A, numbers), which depends on no seed, for so many of them: each gets noise of its own."""
    return np.array(np.broadcast_to(value, (seeds, *value.shape)))


def pack(A: Array) -> Array:
    """Symmetric (…, p, p) as (…, p(p+1)/2) of the same Euclidean norm."""
    i, j = np.triu_indices(A.shape[-1])
    return A[..., i, j] * np.where(i == j, 1.0, math.sqrt(2.0))


def unpack(v: Array, p: int) -> Array:
    """The symmetric matrix again."""
    i, j = np.triu_indices(p)
    A = np.zeros((*v.shape[:-1], p, p))
    A[..., i, j] = A[..., j, i] = v / np.where(i == j, 1.0, math.sqrt(2.0))
    return A


def within(vector: Array, radius: Any) -> Array:
    """Vectors (…, W) clipped to Euclidean norm `radius`, which broadcasts against (…, 1); none that fits is touched.

    Without under- or overflow; an entry that is not a number counts as 0.
    """
    if np.all(np.isinf(radius)):
        return vector
    largest = np.max(np.abs(vector), axis=-1, keepdims=True)
    if np.all(np.isfinite(largest)) and np.all(largest <= radius / math.sqrt(vector.shape[-1])):
        return vector  # most of the time: no need for the exact norm
    v = np.nan_to_num(vector)
    unit = np.maximum(np.max(np.abs(v), axis=-1, keepdims=True), 1e-300)
    norm = np.maximum(np.linalg.norm(v / unit, axis=-1, keepdims=True), 1.0)  # in units of the largest entry
    with np.errstate(over="ignore"):
        outside = norm * unit > radius
    return np.where(outside, v / unit * (radius / norm * (1.0 - 1e-15)), v)
