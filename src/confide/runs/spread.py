"""A mean over seeds with its error bar: the one definition that prints, tables and pictures use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError

Array = NDArray[np.float64]


class Spread(NamedTuple):
    """A mean over seeds and its standard error: "0.853 ± 0.002". One seed says nothing of the others: error None."""

    mean: float
    error: float | None

    @classmethod
    def of(cls, values: Any) -> Spread:
        """Of one number per seed: (seeds,)."""
        error = standard_error(np.asarray(values, float))
        return cls(float(np.mean(values)), None if error is None else float(error))

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if self.error is None else f"{self.mean:.4g} ± {self.error:.1g}"


def standard_error(values: Array) -> Array | None:
    """Of the mean over the last axis, n seeds or test rows: s/√n, s with n - 1 degrees of freedom; None where n = 1."""
    n = values.shape[-1]
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(n)) if n > 1 else None


def recorded(history: Mapping[str, Any], metric: str | None) -> str:
    """The name of a recorded metric: `metric`, or the first if None."""
    known = [name for name in history if name != "round"]
    if metric is None and known:
        return known[0]
    if metric not in known:
        raise ConfideError(f"metric {metric!r}: must be one of those recorded, {', '.join(known) or 'none'}")
    return str(metric)
