"""The picture of the demo: accuracy by round with a band over the seeds, and the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from confide.demo.simulated import DELTA, EPSILON, Result
from confide.files.pictures import new_figure, write_picture

# Told apart by all eyes; the first is of what everybody gets who chooses nothing.
COLOURS = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#D55E00", "#8C6BB1")
INK = "#22303c"
LAST = 240  # right end of the rounds shown


def picture(result: Result, path: Path) -> Path:
    """Draw it to `path`; written whole or not at all."""
    figure = new_figure(11, 5)
    left, right = figure.subplots(1, 2, width_ratios=(2.1, 1))
    curves(left, result)
    shards = result.cohort.shards
    labels = [f"{name}\n{size:,}" for name, size in zip(shards.names, shards.sizes, strict=True)]
    result.graph.draw(ax=right, labels=labels)
    right.set_title("who talks to whom, and their patients", color=INK, fontsize=11)
    right.set(xlim=(-1.7, 1.7), ylim=(-1.6, 1.6))
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_picture(path, figure)


def curves(ax: Any, result: Result) -> None:
    """Every private method, between what a hospital reaches alone and what all reach without privacy."""
    from matplotlib.patheffects import withStroke

    private = [line for line in result.lines if line.group == "together" and line.private]
    for line, colour in zip(private, COLOURS, strict=True):
        assert line.curve is not None
        t = np.arange(1, line.rounds + 1)
        mean, sd = 100 * line.curve.mean(axis=1), 100 * line.curve.std(axis=1, ddof=int(result.seeds > 1))
        ax.fill_between(t, mean - sd, mean + sd, color=colour, alpha=0.18, linewidth=0)
        ax.plot(t, mean, color=colour, linewidth=1.8, label=line.name)
        ax.plot(t[-1], mean[-1], "o", color=colour, markersize=5)
    free = next(line for line in result.lines if line.group == "together" and not line.private)
    for line, text, side in (
        (free, "together, not private", 4), (result.lines[0], "average alone, not private", 4),
        (result.lines[2], "average alone, private", -12),
    ):  # fmt: skip
        ax.axhline(100 * line.mean, color=INK, linewidth=0.9, linestyle="--", zorder=1)
        note = ax.annotate(text, (LAST, 100 * line.mean), (0, side), textcoords="offset points", ha="right", color=INK)
        note.set_path_effects([withStroke(linewidth=3, foreground="white")])  # readable across a curve
    ax.set(xscale="log", xlim=(1, LAST), xlabel="round", ylabel="accuracy on the public test set, %")
    ax.set_ylim(bottom=100 * result.majority - 2, top=100 * free.mean + 2)
    ticks = [1, 2, 5, 10, 20, 50, 100, 200]
    ax.set_xticks(ticks, labels=[str(t) for t in ticks])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right", ncols=2)
    budget = f"ε = {EPSILON:g}, δ = {DELTA:g}"
    title = f"the same total for all: {budget}; bands: ± sd of {result.seeds} seeds"
    for line in private:
        if line.trust is not None:
            title += f"\n{line.name}: if at most {line.trust.colluders} of {line.trust.parties} collude"
    ax.set_title(title, color=INK, fontsize=11)
