"""A private evaluation as a run keeps it: measured on held-out rows, which paid for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from confide.runs.evaluation import Evaluation

PAID = "paid: "  # what the kind of such an evaluation begins with; the names of its scores follow
HELD_OUT = "held-out rows of all parties"


def paid_evaluation(
    scores: Mapping[str, tuple[float, float, float]], rows: int, epsilon: float, delta: float,
    confusion: Any = None, classes: tuple[str, ...] = (),
) -> Evaluation:  # fmt: skip
    """Scores (value, low, high) by name, of so many rows that paid (epsilon, delta) each: in `level` and `second`."""
    return Evaluation(
        PAID + ", ".join(scores), HELD_OUT, rows, float(next(iter(scores.values()))[0]), classes, level=epsilon,
        second=delta, matrix=confusion, groups=np.array([list(score) for score in scores.values()]),
    )  # fmt: skip


def is_paid(found: Evaluation | None) -> bool:
    return found is not None and found.kind.startswith(PAID)


def scores_of(found: Evaluation) -> dict[str, tuple[float, float, float]]:
    """The scores again."""
    assert found.groups is not None
    names = found.kind.removeprefix(PAID).split(", ")
    return {name: tuple(score) for name, score in zip(names, found.groups.tolist(), strict=True)}
