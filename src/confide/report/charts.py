"""Line and point charts as SVG, drawn here so that the page prints and reads without a script.

No charting library: the common ones weigh 0.2 to 4 MB, want their own licence text and a looser content policy. A
report has lines, bands and points; this module draws them, and `page.js` draws the same from the same numbers for
another width, scale or range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.report.markup import Markup, data, element, escape, join, number, shown, table

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 12, 44
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
        element(
            "div", svg(what, plain), element("div", class_="tip", role="status", aria_live="polite"), class_="plot"
        ),
        element("details", element("summary", "Numbers"), _numbers(what, plain), class_="numbers"),
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


def svg(what: Chart, plain: dict[str, Any]) -> Markup:
    """The picture, in the coordinates of a page 720 wide."""
    x0, x1, y0, y1 = ranges(plain)
    log = plain["log"]

    def px(v: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (v - x0) / (x1 - x0)

    def py(v: float) -> float:
        share = (math.log(v) - math.log(y0)) / (math.log(y1) - math.log(y0)) if log else (v - y0) / (y1 - y0)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    marks: list[Markup] = []
    for v in log_ticks(y0, y1) if log else nice_ticks(y0, y1):
        marks.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=py(v), y2=py(v), class_="grid"))
        marks.append(element("text", shown(v), x=LEFT - 8, y=py(v) + 4, text_anchor="end"))
    names = plain["ticks"]
    steps = [(k, n) for k, n in enumerate(names)] if names else [(v, shown(v)) for v in nice_ticks(x0, x1)]
    stride = max(1, -(-len(steps) // 12))
    for v, text in steps[::stride]:
        marks.append(element("text", text[:12], x=px(v), y=HEIGHT - BOTTOM + 18, text_anchor="middle"))
    drawn = join(_line(k, one, px, py, log) for k, one in enumerate(plain["series"]))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return element(
        "svg",
        *marks,
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM, class_="axis"),
        element("text", what.x, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 6, text_anchor="middle", class_="label"),
        element(
            "text",
            what.y,
            x=14,
            y=middle,
            transform=f"rotate(-90 14 {number(middle)})",
            text_anchor="middle",
            class_="label",
        ),
        drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        tabindex="0",
        aria_label=f"{what.title}. {what.words}".strip(),
    )


def _line(k: int, one: dict[str, Any], px: Any, py: Any, log: bool) -> Markup:
    """Band and line, or bars and points, of one series."""

    def at(x: float, v: float | None) -> tuple[float, float] | None:
        return None if v is None or (log and v <= 0) else (px(x), py(v))

    def path(points: Sequence[tuple[float, float] | None]) -> str:
        out, pen = [], "M"
        for p in points:
            out.append("" if p is None else f"{pen}{number(p[0])} {number(p[1])}")
            pen = "M" if p is None else "L"
        return "".join(out)

    shape = f"s{k % 8}"
    parts: list[Markup] = []
    points = [at(x, y) for x, y in zip(one["x"], one["y"], strict=True)]
    if one["low"] is not None:
        low = [at(x, y) for x, y in zip(one["x"], one["low"], strict=True)]
        high = [at(x, y) for x, y in zip(one["x"], one["high"], strict=True)]
        if one["points"]:
            bars = [path([a, b]) for a, b in zip(low, high, strict=True) if a and b]
            parts.append(element("path", d="".join(bars), class_=f"whisker {shape}"))
        else:
            there = [(a, b) for a, b in zip(low, high, strict=True) if a and b]
            around = [b for _, b in there] + [a for a, _ in reversed(there)]
            parts.append(element("path", d=path(around) + "Z" if around else "", class_=f"band {shape}"))
    if one["points"]:
        parts += [element("circle", cx=p[0], cy=p[1], r="4", class_=f"dot {shape}") for p in points if p]
    else:
        parts.append(element("path", d=path(points), class_=f"curve {shape}{' dash' if one['dash'] else ''}"))
    return element("g", *parts, data_series=k)


def ranges(plain: dict[str, Any]) -> tuple[float, float, float, float]:
    """Of both axes; the script has the same function for a part of the rounds."""
    xs = [v for s in plain["series"] for v in s["x"] if v is not None]
    ys = [v for s in plain["series"] for key in ("y", "low", "high") for v in s[key] or () if v is not None]
    named = (-0.5, len(plain["ticks"]) - 0.5) if plain["ticks"] else None
    x0, x1 = plain["xRange"] or named or (min(xs, default=0.0), max(xs, default=1.0))
    if x0 == x1:
        x0, x1 = x0 - 0.5, x1 + 0.5
    if plain["log"]:
        ys = [v for v in ys if v > 0]
    y0, y1 = plain["yRange"] or (min(ys, default=0.0), max(ys, default=1.0))
    if plain["yRange"]:
        return x0, x1, y0, y1
    if plain["log"]:
        return x0, x1, y0 / 1.15, y1 * 1.15
    y0 = min(0.0, y0) if plain["zero"] else y0
    room = 0.05 * (y1 - y0) or 0.05 * abs(y1) or 1.0
    return x0, x1, y0 if plain["zero"] and y0 == 0 else y0 - room, y1 + room


def nice_ticks(low: float, high: float, count: int = 8) -> list[float]:
    """Round numbers within a range."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 of them where the range is short."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    stride = max(1, (last - first) // 6)
    return [m * 10.0**p for p in range(first, last + 1, stride) for m in factors if low <= m * 10.0**p <= high]


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
