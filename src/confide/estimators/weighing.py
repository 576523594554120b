"""Weights of rows and classes: what a row counts is a share of the most that one may count, which is public.

    share_i = min(w_i, W)/W · v(y_i)/max v       W: weight_bound, v: class weights

A row is (x, y, w), so that replacing it may change its weight; with shares within 0 and 1 no question's sensitivity
changes. What a bound costs is that noise is max(weight)/mean(weight) times as loud beside the rows: give no larger
bound than needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.estimators.hints import hint
from confide.problem.checks import finite
from confide.problem.shards import Shards

Array = NDArray[np.float64]
BALANCED = "balanced"


def bound(weight_bound: Any, given: bool) -> float:
    """W; 1 where none is named."""
    if weight_bound is None:
        if given:
            hint("sample_weight without weight_bound: weights above 1 count as 1; weight_bound=W allows up to W")
        return 1.0
    if not (finite(weight_bound) and weight_bound > 0):
        raise ConfideError(f"weight_bound={weight_bound}: must be a finite number above 0, or None for 1")
    return float(weight_bound)


def heaviest(rows: Shards, weight_bound: Any, by_class: Array | None = None) -> float:
    """The weight of a row whose share is 1: the engine's loss, and so its penalty, is in units of it."""
    most = bound(weight_bound, False) if "share" in rows.columns else 1.0
    return most * (1.0 if by_class is None else float(by_class.max()))


def shares(sample_weight: Any, rows: int, most: float) -> Array | None:
    """Each row's weight over the bound, within 0 and 1; None where none are given."""
    if sample_weight is None:
        return None
    try:
        w = np.asarray(sample_weight, float)
    except (TypeError, ValueError):
        raise ConfideError("sample_weight holds what is not a number: must be one number per row") from None
    if w.ndim == 0:
        w = np.full(rows, float(w))
    if w.shape != (rows,):
        raise ConfideError(f"sample_weight has shape {w.shape}: must be one number per row, ({rows},)")
    if not np.all(np.isfinite(w)) or np.any(w < 0):
        raise ConfideError("a weight in sample_weight is negative or not finite: must be at least 0")
    return np.minimum(w, most) / most


def class_weights(class_weight: Any, rates: Array | None, classes: Any) -> Array | None:
    """The weight of every class, from a table by class, or balanced: 1/(classes·rate)."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == BALANCED:
        return None if rates is None else 1.0 / (len(classes) * rates)
    if not isinstance(class_weight, Mapping):
        raise ConfideError(f"class_weight={class_weight!r}: must be None, 'balanced' or a dict of weights by class")
    known = list(np.asarray(classes).tolist())
    for name in class_weight:
        if name not in known:
            raise ConfideError(f"class_weight of {name!r}: the classes are {known}")
    weights = [class_weight.get(name, 1.0) for name in known]
    if not all(finite(w) and w >= 0 for w in weights) or max(weights) <= 0:
        raise ConfideError(f"class_weight={dict(class_weight)}: must be finite numbers of at least 0, not all 0")
    return np.asarray(weights, float)


def rates(class_rates: Any, classes: Any) -> Array | None:
    """Declared shares of the classes, in their order."""
    if class_rates is None:
        return None
    known = list(np.asarray(classes).tolist())
    if isinstance(class_rates, Mapping):
        class_rates = [class_rates.get(name) for name in known]
    values = list(class_rates) if isinstance(class_rates, list | tuple | np.ndarray) else []
    good = len(values) == len(known) and all(finite(r) and r > 0 for r in values)
    if not good or not abs(sum(values) - 1) < 0.01:
        raise ConfideError(f"class_rates={class_rates!r}: must be shares above 0 of the classes {known}, 1 together")
    return np.asarray(values, float) / sum(values)


def weighed(rows: Shards, by_class: Array | None) -> Shards:
    """Rows whose targets are class numbers, with their class's share in the column."""
    if by_class is None:
        return rows
    own = (by_class / by_class.max())[rows.y.astype(int)]
    columns = {**rows.columns, "share": own * rows.columns.get("share", 1.0)}
    return Shards.checked(rows.X, rows.y, rows.offsets, rows.names, columns, rows.row_norm)
