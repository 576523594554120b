"""How good answers are, with 95 % intervals for the chance of who is in the test set.

A proportion has Wilson's interval, the area under the ROC curve DeLong's, and what is an average of squares or sizes of
errors a bootstrap's. Over the seeds of a simulation values are averaged, and their spread widens the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.files.library import special
from confide.problem import linear
from confide.runs.evaluation import pinball, same_answer

Array = NDArray[np.float64]
NORMAL = 1.959963984540054  # 97.5 % quantile of a standard normal
DRAWS, SEED = 500, 29  # of a bootstrap; its seed may be known, as everything here is public
BINS = 10  # of predicted probabilities


class Score(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


Scores = dict[str, Score]


@dataclass(frozen=True, eq=False)
class PartyScores:
    """What a party's test rows say of the joint model, of the same answer for everyone and of its own model."""

    name: str
    rows: int
    joint: Scores
    same: Scores
    alone: Scores | None = None


@dataclass(frozen=True, eq=False)
class Quality:
    """Of a run on a test set declared public. `bins`: (bins, 3) mean predicted probability, fraction, rows."""

    source: str
    rows: int
    joint: Scores
    same: Scores
    alone: Scores | None = None  # of each test row's own party, or of the only one: computed from private rows
    parties: Sequence[PartyScores] = ()
    bins: Array | None = None
    classes: tuple[str, ...] = ()
    own: str = ""  # whose model `alone` is, where the test set names no party
    first: str = field(default="accuracy")
    own_model: str = ""  # what `alone` minimises

    @property
    def public(self) -> bool:
        """Whether nothing in it was computed from private rows."""
        return self.alone is None and all(p.alone is None for p in self.parties)

    def to_json(self) -> dict[str, Any]:
        def plain(scores: Scores | None) -> Any:
            return None if scores is None else {name: list(score) for name, score in scores.items()}

        return {
            "source": self.source, "rows": self.rows, "joint": plain(self.joint), "same": plain(self.same),
            "alone": plain(self.alone), "alone_minimises": self.own_model or None, "for_release": self.public,
            "parties": [{"name": p.name, "rows": p.rows, "joint": plain(p.joint), "same": plain(p.same),
                         "alone": plain(p.alone)} for p in self.parties],
        }  # fmt: skip


# --- of answers -------------------------------------------------------------------------------------------------------


def proportion(right: float, rows: int) -> Score:
    """Wilson's interval: Wilson, "Probable inference, the law of succession, and statistical inference", 1927."""
    p, z = right / rows, NORMAL
    middle = (p + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(p * (1 - p) / rows + z * z / (4 * rows * rows))
    return Score(p, max(0.0, middle - half), min(1.0, middle + half))


def auc(margin: Array, positive: Any) -> Score | None:
    """DeLong, DeLong and Clarke-Pearson 1988, by ranks as Sun and Xu 2014; None where one class is missing."""
    positive = np.asarray(positive, bool)
    x, y = margin[positive], margin[~positive]
    m, n = len(x), len(y)
    if not (m and n):
        return None
    from scipy.stats import rankdata

    both, own_x, own_y = rankdata(np.concatenate([x, y])), rankdata(x), rankdata(y)
    above = (both[:m] - own_x) / n  # the share of negatives below each positive
    below = 1 - (both[m:] - own_y) / m
    value = float(above.mean())
    if min(m, n) < 2:
        return Score(value, 0.0, 1.0)
    half = NORMAL * math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n)
    return Score(value, max(0.0, value - half), min(1.0, value + half))


def of_classes(z: Array, truth: Any) -> Scores:
    """Of margins (rows, outputs) and class numbers (rows,): accuracy, and AUC (of several classes the mean over them,
    each against the rest)."""
    wide = z.shape[1] > 1
    out = {"accuracy": proportion(float(np.sum(linear.answers(z) == truth)), len(truth))}
    each = [auc(z[:, c], truth == c) for c in range(z.shape[1])] if wide else [auc(z[:, 0], truth == 1)]
    known = [one for one in each if one is not None]
    if known:
        out["AUC"] = Score(*(float(np.mean([one[k] for one in known])) for k in range(3)))
    return out


def of_numbers(predicted: Array, truth: Array, level: float | None) -> Scores:
    """R², root mean squared and mean absolute error; of a quantile coverage, and D² of its loss."""
    rng = np.random.default_rng(SEED)
    error = truth - predicted
    rest = truth - same_answer(truth, False, level)
    if level is None:
        loss, best, names = error**2, rest**2, ["R²", "root mean squared error", "mean absolute error"]
    else:
        loss, best, names = pinball(error, level), pinball(rest, level), ["D²"]
    columns = np.column_stack([loss, best, np.abs(error)])
    drawn = np.array([columns[rng.integers(len(truth), size=len(truth))].mean(axis=0) for _ in range(DRAWS)])

    def read(mean: Array) -> list[float]:
        share = 1 - float(mean[0]) / max(float(mean[1]), 1e-300)
        return [share, math.sqrt(mean[0]), float(mean[2])] if level is None else [share]

    values, again = read(columns.mean(axis=0)), np.array([read(one) for one in drawn])
    low, high = np.quantile(again, [0.025, 0.975], axis=0)
    out = {name: Score(values[k], float(low[k]), float(high[k])) for k, name in enumerate(names)}
    if level is not None:
        out = {"coverage": proportion(float(np.sum(truth <= predicted)), len(truth)), **out}
    return out


def averaged(each: Sequence[Scores]) -> Scores:
    """Over the models of several seeds."""
    if len(each) == 1:
        return each[0]
    out = {}
    for name in each[0]:
        values, low, high = (np.array([one[name][k] for one in each if name in one]) for k in range(3))
        spread = NORMAL * float(values.std(ddof=1)) if len(values) > 1 else 0.0
        centre = float(values.mean())
        down, up = float((values - low).mean()), float((high - values).mean())
        out[name] = Score(centre, centre - math.hypot(down, spread), centre + math.hypot(up, spread))
    return out


def calibration(z: Array, truth: Any) -> Array:
    """Test rows by their predicted probability, of the second class or of the answer: (bins, 3), see `Quality`."""
    if z.shape[1] == 1:
        p, hit = special.expit(z[:, 0]), truth == 1
    else:
        p = special.softmax(z, axis=1).max(axis=1)
        hit = linear.answers(z) == truth
    count = min(BINS, max(1, len(p) // 20))
    parts = np.array_split(np.argsort(p, kind="stable"), count)
    return np.array([[p[rows].mean(), np.mean(hit[rows]), len(rows)] for rows in parts if len(rows)])
