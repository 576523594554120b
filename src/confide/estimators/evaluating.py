"""Private evaluation: how good a fit is on held-out rows of all parties, by one more private sum.

    model = PrivateLogisticRegression(epsilon=1.0, evaluate=0.2).fit(X, y, groups=hospital)
    model.evaluation_["accuracy"]          Estimate(value, low, high)

Every party holds out the same share of its rows, chosen by their places in the table and a public seed: each row is in
exactly one of training and evaluation. So the two compose in parallel: neighbouring tables differ in one row, which
keeps its place, and only one of the two releases reads it (the evaluation also reads the model, which is public by
then). Each may spend all of (ε, δ), and together they cost a row no more than that; what evaluation takes is rows.

Classifiers release how many held-out rows are in each cell (class, score) of a public grid, for more than two classes
in each cell (class, answer): accuracy, confusion and, for two, the area under the ROC curve of the cells: scores in one
cell are ties, which makes it a little smaller than that of the scores. Regressors release their mean pinball loss,
residuals clipped to half the target range; but for quantiles it is that of the median, doubled: the absolute error.

Intervals are 95 % and hold both the chance of who was held out and the noise. Counts: that of a multinomial plus the
noise's variance. A mean m of losses within [0, c]: a variance of at most m(c - m)/n, plus the noise's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.joint_tally import JointTally
from confide.errors import ConfideError
from confide.estimators.limits import check_share
from confide.problem.losses import Quantile, Squared
from confide.problem.problem import Problem
from confide.problem.shards import Shards

Array = NDArray[np.float64]
# Edges of the cells of a margin; 0 is one, where answers change. Few, as each cell brings its noise: more would cost
# accuracy's interval more than ties cost the area under the curve.
SCORES = (-4.0, -2.5, -1.5, -0.8, -0.3, 0.0, 0.3, 0.8, 1.5, 2.5, 4.0)
SEED = 13  # of which places are held out; public
DRAWS, NORMAL = 1_000, 1.959964  # of a bootstrap; 97.5 % quantile of a standard normal


class Estimate(NamedTuple):
    """A number and its 95 % interval, noise included."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, eq=False)
class PrivateEvaluation:
    """What was found on `rows` held-out rows, paid for by them: ε each, as those learned from paid theirs."""

    found: dict[str, Estimate]
    rows: int
    epsilon: float
    delta: float
    confusion: Array | None = None  # noised counts of (class, answer)

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.found:
            raise KeyError(f"{name!r}: this evaluation has {', '.join(self.found)}")
        return self.found[name]

    def __str__(self) -> str:
        values = "; ".join(f"{name} {value}" for name, value in self.found.items())
        return f"{values}; of {self.rows:,} held-out rows, ε={self.epsilon:.4g} at δ={self.delta:g} for each of them"


def held_out(share: Any, groups: Any, rows: int) -> NDArray[np.bool_]:
    """Which rows are held out: so many of each party's, by their places alone."""
    check_share(share)
    out = np.zeros(rows, bool)
    if share == 0:
        return out
    names, member = (
        (("all",), np.zeros(rows, int)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)
    )
    for k, name in enumerate(names):
        mine = np.flatnonzero(member == k)
        count = held_count(share, len(mine), str(name))
        out[np.random.default_rng([SEED, k]).permutation(mine)[:count]] = True
    return out


def held_count(share: float, size: int, party: str, given: str = "") -> int:
    """How many of a party's rows are held out: at least one, and one stays to learn from."""
    count = max(1, round(share * size))
    if count >= size:
        of = f"{size:,} row{'' if size == 1 else 's'} of party {party}"
        raise ConfideError(f"{given or f'evaluate={share}'}, of {of}: must leave at least 1 to learn from")
    return count


Reader = Callable[[Array, float], tuple[dict[str, Estimate], Array | None]]  # from the answer and its noise


class Tally(NamedTuple):
    """What is asked of held-out rows: the method, the rows as it reads them, and what follows from its answer."""

    method: JointTally
    problem: Problem
    read: Reader


def cells(codes: Any, count: int, groups: Any, read: Reader) -> Tally:
    """Counts of `count` cells, each row's being in `codes`."""
    shards = Shards.from_groups(np.zeros((len(codes), 1)), np.asarray(codes, float), groups).clip_rows(1.0)
    method = JointTally(edges=tuple(float(c) + 0.5 for c in range(count - 1)))
    return Tally(method, Problem(shards, Squared(), weighting="rows"), read)


def of_scores(margins: Array, positive: Any, groups: Any) -> Tally:
    """Two classes: cells (class, score)."""
    width = len(SCORES) + 1
    codes = np.searchsorted(SCORES, margins, side="left") + width * np.asarray(positive, int)
    return cells(codes, 2 * width, groups, scores_reader(len(codes)))


def scores_reader(rows: int) -> Reader:
    """What cells (class, score) of so many rows say."""
    width = len(SCORES) + 1

    def read(share: Array, noise: float) -> tuple[dict[str, Estimate], Array]:
        counts, sd = rows * share.reshape(2, width), rows * noise
        middle = SCORES.index(0.0) + 1
        confusion = np.column_stack([counts[:, :middle].sum(axis=1), counts[:, middle:].sum(axis=1)])
        right = counts[0, :middle].sum() + counts[1, middle:].sum()
        return {
            "accuracy": proportion(right / rows, rows, sd * math.sqrt(width) / rows),
            "AUC": bootstrapped(counts, sd, rows),
        }, confusion

    return read


def of_answers(answers: Any, truth: Any, classes: int, groups: Any) -> Tally:
    """Several classes: cells (class, answer)."""
    codes = np.asarray(truth, int) * classes + np.asarray(answers, int)
    return cells(codes, classes**2, groups, answers_reader(len(codes), classes))


def answers_reader(rows: int, classes: int) -> Reader:
    """What cells (class, answer) of so many rows say."""

    def read(share: Array, noise: float) -> tuple[dict[str, Estimate], Array]:
        counts = rows * share.reshape(classes, classes)
        found = proportion(float(np.trace(counts)) / rows, rows, noise * math.sqrt(classes))
        return {"accuracy": found}, counts

    return read


def of_residuals(residuals: Array, unit: float, level: float | None, groups: Any) -> Tally:
    """Mean pinball loss of residuals, counted in `unit`, half the target range; without a level the absolute error."""
    tau = 0.5 if level is None else level
    counted = np.nan_to_num(np.clip(residuals / unit, -2, 2))  # a row that had no place would show itself by an error
    shards = Shards.from_groups(counted[:, None], np.zeros(len(residuals)), groups)
    problem = Problem(shards.clip_rows(2.0), Quantile(tau), weighting="rows")
    return Tally(JointTally(clip=max(tau, 1 - tau)), problem, residuals_reader(len(residuals), unit, level))


def residuals_reader(rows: int, unit: float, level: float | None) -> Reader:
    """What the mean loss of so many rows says."""
    tau, name = (0.5, "mean absolute error") if level is None else (level, "pinball loss")
    factor, most = unit * (2.0 if level is None else 1.0), max(tau, 1 - tau)

    def read(mean: Array, noise: float) -> tuple[dict[str, Estimate], None]:
        m = min(max(float(mean[0]), 0.0), most)
        half = NORMAL * math.sqrt(m * (most - m) / rows + noise**2)
        return {name: Estimate(factor * m, factor * max(m - half, 0.0), factor * min(m + half, most))}, None

    return read


def proportion(p: float, rows: int, noise: float) -> Estimate:
    p = min(max(p, 0.0), 1.0)
    half = NORMAL * math.sqrt(max(p * (1 - p), 1 / rows) / rows + noise**2)
    return Estimate(p, max(p - half, 0.0), min(p + half, 1.0))


def auc(counts: Array) -> Any:
    """Area under the ROC curve from counts (…, 2, cells), scores in one cell being ties."""
    negative, positive = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(negative, axis=-1) - negative / 2
    pairs = np.sum(positive, axis=-1) * np.sum(negative, axis=-1)
    return np.clip(np.sum(positive * below, axis=-1) / np.where(pairs > 0, pairs, np.nan), 0.0, 1.0)


def bootstrapped(counts: Array, noise: float, rows: int) -> Estimate:
    """From noised counts (2, cells); the bootstrap reads nothing else, so its seed may be known.

    Cells below 0 count as 0, and a class as large as all its cells say: noise alone would make a rare one larger, and
    its area surer. Of a class that noise could have made nothing is known.
    """
    value, sizes = float(np.nan_to_num(auc(counts), nan=0.5)), counts.sum(axis=1, keepdims=True)
    if np.any(sizes <= NORMAL * noise * math.sqrt(counts.shape[1])):
        return Estimate(value, 0.0, 1.0)
    rng = np.random.default_rng(SEED)
    likely = np.maximum(counts, 0.0)
    likely = (likely * sizes / likely.sum(axis=1, keepdims=True)).ravel()
    again = rng.multinomial(rows, likely / likely.sum(), size=DRAWS).reshape(DRAWS, *counts.shape)
    drawn = auc(again + noise * rng.normal(size=again.shape))
    half = NORMAL * float(np.nan_to_num(np.nanstd(drawn), nan=0.5))
    return Estimate(value, max(value - half, 0.0), min(value + half, 1.0))
