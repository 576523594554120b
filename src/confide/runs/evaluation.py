"""How good a model is, on a test set that its owner has declared public: never on the rows it was learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError

Array = NDArray[np.float64]
GROUPS = 10  # of test rows, by their prediction, in which a quantile's coverage is looked at


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Of the agents' average model; numbers are means over the seeds of a simulation.

    confusion     `matrix` (true class, answer): how many test rows
    calibration   `groups` (groups, 3): mean prediction, fraction of targets at or below it, rows; `value`: over all
    errors        `value`: root of the mean squared error; `second`: mean absolute error
    """

    kind: str
    source: str  # the test set, in the words of whoever declared it public
    rows: int
    value: float  # accuracy, coverage or root mean squared error
    classes: tuple[str, ...] = ()
    level: float | None = None
    second: float | None = None
    matrix: Array | None = None
    groups: Array | None = None


def confusion(truth: Any, answers: Array, classes: Sequence[Any], source: str) -> Evaluation:
    """Of answers (seeds, rows) in the same terms as `truth` (rows,)."""
    known = [str(c) for c in classes]
    index = {name: k for k, name in enumerate(known)}
    right = _indices(truth, index)
    said = np.array([_indices(one, index) for one in np.atleast_2d(answers)])
    matrix = np.zeros((len(known), len(known)))
    for one in said:
        np.add.at(matrix, (right, one), 1.0 / len(said))
    return Evaluation("confusion", source, len(right), float(np.mean(said == right)), tuple(known), matrix=matrix)


def _indices(labels: Any, index: dict[str, int]) -> NDArray[np.int64]:
    texts = [label_text(v) for v in np.asarray(labels).ravel().tolist()]
    for text in texts:
        if text not in index:
            raise ConfideError(f"test label {text!r}: must be one of the classes {', '.join(index)}")
    return np.array([index[text] for text in texts], np.int64)


def label_text(value: Any) -> str:
    """A label as text: 1.0 and "1" are the same."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() else str(value)


def calibration(truth: Any, predicted: Array, level: float, source: str) -> Evaluation:
    """How often the target lies at or below a predicted quantile: over all rows, and by the size of the prediction."""
    y, said = _numbers(truth, predicted)
    count = min(GROUPS, max(1, len(y) // 20))
    parts = []
    for one in said:
        order = np.array_split(np.argsort(one, kind="stable"), count)
        parts.append([[one[rows].mean(), np.mean(y[rows] <= one[rows]), len(rows)] for rows in order])
    covered = float(np.mean(y <= said))
    return Evaluation("calibration", source, len(y), covered, level=level, groups=np.mean(parts, axis=0))


def same_answer(targets: Any, classes: bool, level: float | None = None) -> float:
    """The best answer that is the same for everyone: the commonest class, of equals the first; a quantile; the mean."""
    y = np.asarray(targets, float)
    if classes:
        values, counts = np.unique(y, return_counts=True)
        return float(values[counts.argmax()])
    return float(y.mean() if level is None else np.quantile(y, level))


def pinball(residuals: Array, level: float) -> Array:
    """What each residual y - ŷ of a quantile costs."""
    return np.maximum(level * residuals, (level - 1) * residuals)


def errors(truth: Any, predicted: Array, source: str) -> Evaluation:
    """Of a regression that predicts a mean or a median."""
    y, said = _numbers(truth, predicted)
    root = float(np.sqrt(np.mean((said - y) ** 2, axis=1)).mean())
    return Evaluation("errors", source, len(y), root, second=float(np.abs(said - y).mean()))


def _numbers(truth: Any, predicted: Array) -> tuple[Array, Array]:
    try:
        y, said = np.asarray(truth, float).ravel(), np.atleast_2d(np.asarray(predicted, float))
    except (TypeError, ValueError):
        raise ConfideError(f"test targets of {np.asarray(truth).dtype}: must be numbers") from None
    if not len(y) or said.shape[1] != len(y) or not np.all(np.isfinite(y)) or not np.all(np.isfinite(said)):
        raise ConfideError(
            f"{len(y)} test targets, {said.shape[1]} predictions: must be as many finite numbers, from 1"
        )
    return y, said
