"""Colours and curves with a band, for the figures of this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COLOURS = {
    "D-ZOA": "#0072B2", "DP-ADMM": "#009E73", "DPSGD": "#D55E00", "PVP": "#CC79A7", "DVP": "#E69F00",
    "OR-ZO": "#D55E00", "ZOO-ADMM": "#009E73", "PrivateZeroth": "#56B4E9",
}  # fmt: skip
ERROR = "normalised error  $\\sum_k \\|\\beta_k-\\beta^c\\|^2/E\\,\\|\\beta^c\\|^2$"


def band(ax: Any, x: Any, values: NDArray[np.float64], **look: Any) -> None:
    """The mean over the first axis (trials) and how far it is known, by a factor: bands of the trials themselves, whose
    data sets differ, would cover one another."""
    mean = values.mean(axis=0)
    (line,) = ax.plot(x, mean, **look)
    if len(values) > 2:
        factor = 1 + 2 * values.std(axis=0, ddof=1) / np.sqrt(len(values)) / mean
        text = None if ax.collections else "two standard errors of a mean"
        ax.fill_between(x, mean / factor, mean * factor, color=line.get_color(), alpha=0.2, linewidth=0, label=text)
