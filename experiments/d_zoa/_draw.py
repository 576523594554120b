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
    """The mean over the first axis and the middle 80 per cent."""
    (line,) = ax.plot(x, values.mean(axis=0), **look)
    if len(values) > 2:
        low, high = np.quantile(values, [0.1, 0.9], axis=0)
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.13, linewidth=0)
