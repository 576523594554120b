"""Panels, bands and colours for the figures of this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure
from numpy.typing import NDArray

COLOURS = {"ADMM": "black", "M-ADMM": "#0072B2", "R-ADMM": "#D55E00", "MR-ADMM": "#CC79A7"}  # as in Fig. 5
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
OPTIMUM = {"color": "#009E73", "linestyle": ":", "linewidth": 1.2}


def panels(rows: int, columns: int, **more: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(2.9 * columns + 0.3, 2.5 * rows + 0.4), layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def plain_ticks(ax: Any) -> None:
    """Numbers such as 0.4 and 2 on a logarithmic axis that spans about one decade, where powers of ten say nothing."""
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)))
    ax.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    ax.yaxis.set_minor_formatter(ticker.NullFormatter())


def legend_below(figure: Figure, ax: Any, columns: int) -> None:
    """One legend for all panels."""
    lines, names = ax.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=columns, fontsize=8)


def band(ax: Any, values: NDArray[np.float64], **look: Any) -> None:
    """The mean over runs (first axis) and their range, as the paper's bars show it."""
    x = np.arange(1, values.shape[1] + 1)
    (line,) = ax.plot(x, values.mean(axis=0), linewidth=1.2, **look)
    ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0)


def spans(ax: Any, places: Any, groups: list[NDArray[np.float64]], **look: Any) -> None:
    """Mean and range of each group of values, at its place."""
    middle = np.array([g.mean() for g in groups])
    ends = np.array([[m - g.min(), g.max() - m] for m, g in zip(middle, groups, strict=True)]).T
    ax.errorbar(places, middle, yerr=ends, marker="o", markersize=3.5, capsize=3, linewidth=1.1, **look)
