"""Drawings and rows of CSVs that several files share: no task's value depends on this file."""

from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure

from confide.papers.reproduce import Results

from ._published import DELTAS, EPSILONS
from ._series import BY_DELTA, BY_EPSILON, NONE
from ._setting import DESIGNS, ROUNDS
from ._tables import WRITTEN, column, errors


def table(results: Results, which: int) -> Figure:
    """MISE against ε for each δ at τ=.5: printed crosses, measured lines with their range; squares as written."""
    figure = Figure(figsize=(7.6, 4.4))
    axis = figure.subplots()
    printed, values, written = column(which, 0.5), errors(results, DESIGNS[0], 0.5), errors(results, DESIGNS[1], 0.5)
    for j in range(len(DELTAS)):
        part = slice(j, 20, 4)
        axis.fill_between(EPSILONS, values[:, part].min(0), values[:, part].max(0), alpha=0.12, color=f"C{j}", lw=0)
        axis.plot(EPSILONS, values[:, part].mean(0), color=f"C{j}", label=f"δ=1e-{6 - j}")
        axis.plot(EPSILONS, printed[part], "x", color=f"C{j}", markersize=6)
    axis.axhline(values[:, -1].mean(), color="0.3", linestyle="--", label="non-private")
    axis.plot([EPSILONS[-1] * 1.12], [printed[-1]], "x", color="0.3", markersize=6)
    places = [cell[0] for cell in WRITTEN[:-1]]
    axis.plot(places, written[:, :-1].mean(0), "s", color="0.3", fillstyle="none", markersize=6,
              label="as written, δ=1e-6, 1e-3")  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="ε per iteration", xticks=EPSILONS, ylabel="MISE at τ=.5")
    axis.set_xticks([], minor=True)
    axis.set_xticklabels([f"{e:g}" for e in EPSILONS])
    plain_ticks(axis)
    axis.set_title("lines measured with their range, crosses printed")
    axis.legend()
    return figure


def plain_ticks(axis: Any) -> None:
    """Numbers such as 0.6 and 20 on a logarithmic axis, where 6 × 10⁻¹ would stand."""
    axis.yaxis.set_minor_locator(ticker.LogLocator(subs=(2, 3, 4, 6, 8)))  # labels of all would touch
    axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.yaxis.set_minor_formatter(ticker.FormatStrFormatter("%g"))
    axis.tick_params(axis="y", which="minor", labelsize=8)


def series(results: Results, panels: list[tuple[str, list[tuple[str, Any]]]], ylabel: str, log: bool = False) -> Figure:
    """Panels (title, [(label, values (trials, rounds))]) against the iteration, mean and range."""
    figure = Figure(figsize=(7.8, 4.2) if len(panels) < 3 else (6.8, 5.1))
    axes = np.atleast_1d(figure.subplots(*((1, len(panels)) if len(panels) < 3 else (2, 2)))).ravel()
    for axis, (title, lines) in zip(axes, panels, strict=True):
        for label, values in lines:
            t = np.arange(1, values.shape[1] + 1)
            (line,) = axis.plot(t, values.mean(0), label=label)
            axis.fill_between(t, values.min(0), values.max(0), alpha=0.2, color=line.get_color(), linewidth=0)
        axis.set(title=title, xlabel="iteration", xlim=(1, ROUNDS), yscale="log" if log else "linear")
        if log:
            plain_ticks(axis)
        if len(panels) < 3:  # below: no corner is free in all of them
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, columnspacing=1.2, handlelength=1.4)
    if len(panels) > 2:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    for axis in axes[[0] if len(panels) < 3 else [0, 2]]:
        axis.set_ylabel(ylabel)
    return figure


def budgets(results: Results, values: Any, ylabel: str) -> Figure:
    """Values (trials, cells, rounds) of BY_EPSILON, BY_DELTA and NONE, in this order: a panel by ε and one by δ."""
    free = ("non-private", values[:, 8])
    panels = [
        ("δ=1e-3", [*((f"ε={e:g}", values[:, i]) for i, (e, _) in enumerate(BY_EPSILON)), free]),
        ("ε=.1", [*((f"δ={d:g}", values[:, 4 + i]) for i, (_, d) in enumerate(BY_DELTA)), free]),
    ]
    return series(results, panels, ylabel, log=True)


def budget_rows(values: Any, cells: Any) -> list[dict[str, Any]]:
    """The rows of the CSV beside `budgets`."""
    return [
        {"epsilon an iteration": e, "delta": d, "iteration": l, "mean": values[:, i, l - 1].mean(),
         "lowest": values[:, i, l - 1].min(), "highest": values[:, i, l - 1].max(),
         "guarantee": "none" if (e, d) == NONE else "assumed"}
        for i, (e, d) in enumerate(cells)
        for l in (1, 5, 10, 30, 50, 100)
    ]  # fmt: skip
