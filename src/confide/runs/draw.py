"""Pictures of runs and sweeps: means over seeds, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.files.pictures import new_figure
from confide.runs.spread import recorded, standard_error

if TYPE_CHECKING:
    from confide.runs.run import Run

Array = NDArray[np.float64]
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1")  # told apart by all eyes
LINES = ("-", "--", ":", "-.")


def run_axes(run: Run, metric: str | None, ax: Any) -> Any:
    """A metric by round."""
    name = recorded(run.history, metric)
    ax = _axes(ax)
    _curve(ax, run.history["round"], run.history[name], run.algorithm, COLOURS[0], "-")
    return _finish(ax, "round", name, run.history[name])


def sweep_axes(found: Sequence[tuple[dict[str, Any], Run]], metric: str | None, ax: Any) -> Any:
    """A metric by ε, a colour per method, a kind of line per problem and graph; by round where there is one ε."""
    if not found:
        raise ConfideError("an empty sweep: nothing to draw")
    name = recorded(found[0][1].history, metric)
    ax = _axes(ax)
    budgets = sorted({said["epsilon"] for said, _ in found if said["epsilon"] is not None})
    methods = list(dict.fromkeys(said["method"] for said, _ in found))
    places = list(dict.fromkeys((said["problem"], said["graph"]) for said, _ in found))
    by_budget, values = len(budgets) > 1, []
    for i, method in enumerate(methods):
        for j, place in enumerate(places):
            mine = [(s, r) for s, r in found if s["method"] == method and (s["problem"], s["graph"]) == place]
            text = " ".join([method, *(str(p) for p, k in zip(place, (0, 1), strict=True) if _differ(places, k))])
            style = COLOURS[i % len(COLOURS)], LINES[j % len(LINES)]
            if by_budget:
                points = sorted((s["epsilon"], r.history[name][-1]) for s, r in mine if s["epsilon"] is not None)
                if points:
                    _curve(ax, np.array([e for e, _ in points]), np.array([v for _, v in points]), text, *style)
                    values += [v for _, v in points]
            else:
                for _, run in mine:
                    _curve(ax, run.history["round"], run.history[name], text, *style)
                    values.append(run.history[name].ravel())
    if by_budget:
        ax.set_xscale("log")
        ax.set_xticks(budgets, [f"{e:g}" for e in budgets], minor=False)
        ax.set_xticks([], minor=True)
    return _finish(ax, "ε" if by_budget else "round", name, np.concatenate(values))


def _differ(places: list[tuple[str, str]], k: int) -> bool:
    return len({place[k] for place in places}) > 1


def _axes(ax: Any) -> Any:
    return new_figure(6.4, 4.2).subplots() if ax is None else ax


def _curve(ax: Any, x: Any, values: Array, label: str, colour: str, line: str) -> None:
    mean, error = values.mean(axis=1), standard_error(values)
    if error is not None:
        ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, mean, line, color=colour, label=label, marker="o" if len(mean) < 12 else None, markersize=4)


def _finish(ax: Any, across: str, up: str, values: Array) -> Any:
    if np.all(values > 0) and np.max(values) > 30 * np.min(values):
        ax.set_yscale("log")
    ax.set(xlabel=across, ylabel=up)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax
