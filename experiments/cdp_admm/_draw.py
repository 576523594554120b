"""Curves with a band, for the figures of this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COLOURS = {"DP-ADMM": "#009E73", "DDP-ADMM": "#D55E00", "CDP-ADMM": "#0072B2"}


def band(ax: Any, x: Any, values: NDArray[np.float64], **look: Any) -> None:
    """The mean over the first axis and the middle 80 per cent."""
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    (line,) = ax.plot(x, values.mean(axis=0), **look)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
