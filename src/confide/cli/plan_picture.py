"""The picture of a plan: score against ε, and what joining adds for each party; error bars over the seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from confide.files import OWNER_ONLY
from confide.files.pictures import new_figure, write_picture
from confide.planning.plan import PRIVATE_ROWS, Forecast

INK = "#22303c"
TOGETHER, ALONE = "#0072B2", "#D55E00"
COLOURS = ("#56B4E9", "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#8C6BB1")  # told apart by all eyes
MOST = 20  # parties that the picture has room for


def picture(found: Forecast, path: Path) -> Path:
    """Draw it to `path`, whole or not at all."""
    figure = new_figure(11, 5)
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    against_epsilon(left, found)
    for_parties(right, found)
    if found.for_release:
        figure.suptitle(f"Simulation on {found.source}", color=INK, fontsize=11)
    else:
        figure.suptitle(PRIVATE_ROWS, color="#B00020", weight="bold")
    return write_picture(path, figure, 0o666 if found.for_release else OWNER_ONLY)


def against_epsilon(ax: Any, found: Forecast) -> None:
    x = np.array(found.epsilons)
    for scores, colour, name, marker in (
        (found.joint, TOGETHER, "together, private", "o"), (found.alone_private, ALONE, "alone, private", "s"),
    ):  # fmt: skip
        mean, sd = statistics(found.average(scores).T)
        ax.errorbar(x, mean, sd, color=colour, marker=marker, capsize=3, linewidth=1.6, label=name)
    for scores, style, name in ((found.free, "-", "together, no noise"), (found.alone, "--", "alone, no noise")):
        ax.axhline(100 * found.average(scores).mean(), color=INK, linewidth=1.0, linestyle=style, label=name)
    ax.set(xscale="log", xlabel="total ε of a row", ylabel=f"{found.metric} on rows not learned from, %")
    ax.set_xticks(x, labels=[f"{e:g}" for e in x])
    ax.minorticks_off()
    ax.margins(x=0.08)
    finish(ax, f"{len(found.names)} parties, {found.sizes.sum():,} rows, δ = {found.delta:g}")
    ax.legend(frameon=False, loc="best")


def for_parties(ax: Any, found: Forecast) -> None:
    shown = min(len(found.names), MOST)
    place = np.arange(shown)
    width = 0.6 / max(len(found.epsilons), 1)
    for i, epsilon in enumerate(found.epsilons):
        mean, sd = statistics(found.gain[i][:, :shown])
        at = place + (i - (len(found.epsilons) - 1) / 2) * width
        ax.errorbar(at, mean, sd, fmt="o", markersize=5, color=COLOURS[i % len(COLOURS)], capsize=2,
                    label=f"ε = {epsilon:g}")  # fmt: skip
    ax.axhline(0, color=INK, linewidth=0.9)
    rows = [f"{name if len(name) <= 12 else name[:11] + '…'}\n{size:,}"
            for name, size in zip(found.names[:shown], found.sizes, strict=False)]  # fmt: skip
    ax.set_xticks(place, labels=rows, fontsize=8 if shown > 6 else 9)
    ax.set(ylabel=f"points of {found.metric} over training alone, no noise")
    finish(ax, f"what joining adds; bars: ± sd of {found.seeds} seeds")
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=len(COLOURS))  # clear of the bars


def statistics(scores: Any) -> tuple[Any, Any]:
    """Mean and sd over the seeds, the first axis, in %."""
    return 100 * scores.mean(axis=0), 100 * scores.std(axis=0, ddof=int(len(scores) > 1))


def finish(ax: Any, title: str) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, color=INK, fontsize=11)
