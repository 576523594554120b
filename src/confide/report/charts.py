"""Line and point charts: their words and numbers. `page.js` draws them, for the width, scale and range at hand.

Where no script runs, a chart is its table of numbers. No charting library: the common ones weigh 0.2 to 4 MB, want
their own licence text and a looser content policy; a report has lines, bands and points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.report.markup import Markup, data, element, escape, shown, table

POINTS = 240  # of a series, at most: a page stays small


@dataclass(frozen=True, eq=False)
class Series:
    """Points (x, y), with a band from low to high, or bars at points."""

    name: str
    x: Any
    y: Any
    low: Any = None
    high: Any = None
    dash: bool = False
    points: bool = False  # marks instead of a line


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart and what it shows in words."""

    id: str
    title: str
    x: str
    y: str
    series: Sequence[Series]
    words: str = ""
    log: bool | None = None  # None: no logarithmic scale is offered
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    ticks: Sequence[str] | None = None  # names of x = 0, 1, …
    zero: bool = False  # the vertical axis begins at 0


def chart(what: Chart) -> Markup:
    """The figure: caption, tools, legend, picture, numbers."""
    plain = _plain(what)
    name = f"chart-{what.id}"
    legend = [
        element(
            "button",
            element("svg", _key(k, one), width="22", height="10", aria_hidden="true"),
            escape(one.name),
            type="button",
            class_="key",
            aria_pressed="true",
            data_series=k,
        )
        for k, one in enumerate(what.series)
    ]
    tools = [
        element("button", "logarithmic", type="button", class_="tool log", aria_pressed=str(bool(what.log)).lower())
        if what.log is not None
        else None,
        element("button", "whole range", type="button", class_="tool reset", disabled=True),
    ]
    return element(
        "figure",
        element("figcaption", element("h3", what.title), element("p", what.words) if what.words else None),
        element(
            "div",
            element("div", *legend, class_="legend", role="group", aria_label="Shown lines"),
            element("div", *tools, class_="tools"),
            class_="bar",
        ),
        element("div", _canvas(what), element("div", class_="tip", role="status", aria_live="polite"), class_="plot"),
        element("details", element("summary", "Numbers"), _numbers(what, plain), class_="numbers", open=True),
        data(plain),
        class_="chart",
        id=name,
    )


def _plain(what: Chart) -> dict[str, Any]:
    """The chart as the script reads it; a number that is not finite is a gap."""
    log = bool(what.log) and any(np.any(np.asarray(s.y, float) > 0) for s in what.series)
    return {
        "x": what.x,
        "y": what.y,
        "log": log,
        "xRange": what.x_range,
        "yRange": what.y_range,
        "zero": what.zero,
        "ticks": None if what.ticks is None else list(what.ticks),
        "title": what.title,
        "series": [
            {
                "name": s.name,
                "dash": s.dash,
                "points": s.points,
                **{key: _list(getattr(s, key), len(s.x)) for key in ("x", "y", "low", "high")},
            }
            for s in what.series
        ],
    }


def _list(values: Any, count: int) -> list[float | None] | None:
    if values is None:
        return None
    keep: Any = np.unique(np.linspace(0, count - 1, min(count, POINTS)).astype(int)) if count else []
    return [float(f"{v:.8g}") if math.isfinite(v) else None for v in np.asarray(values, float)[keep]]


def _canvas(what: Chart) -> Markup:
    """Where the script draws, with the words for those who do not see it."""
    return element("svg", role="img", tabindex="0", aria_label=f"{what.title}. {what.words}".strip())


def _key(k: int, one: Series) -> Markup:
    if one.points:
        return element("circle", cx="11", cy="5", r="4", class_=f"dot s{k % 8}")
    return element("path", d="M1 5L21 5", class_=f"curve s{k % 8}{' dash' if one.dash else ''}")


def _numbers(what: Chart, plain: dict[str, Any]) -> Markup:
    """Some of the numbers as a table, for readers and programs that see no picture."""
    rows = []
    for one in plain["series"]:
        count = len(one["x"])
        some = {round(k * (count - 1) / 7) for k in range(8)} if count else set()
        for i in range(count) if plain["ticks"] else sorted(some):
            x = plain["ticks"][int(one["x"][i])] if plain["ticks"] else shown(one["x"][i])
            spread = "" if one["low"] is None else f"{shown(one['low'][i])} to {shown(one['high'][i])}"
            rows.append((one["name"], x, shown(one["y"][i]), spread))
    return table(("", what.x, what.y, "from, to"), rows, numeric=(1, 2, 3))
