"""The network with each party's spend, as SVG. Every party can be reached with the arrow keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.network.drawing import closest, layout
from confide.network.graph import Graph
from confide.report.markup import Markup, element, shown
from confide.runs.setting import Setting

Array = NDArray[np.float64]
WIDTH, HEIGHT = 720, 400
MANY, DRAWN = 24, 1500  # more parties have no names beside them; still more are not drawn


def network(setting: Setting, spent: Array | None, paying: str, own: int | None = None) -> Markup:
    """Parties and links; the stronger a party's colour, the more it spent. `own` is marked."""
    count = len(setting.agents)
    if setting.topology == "central":
        return element("p", "No network: this method holds all rows in one place.", class_="absent")
    if count > DRAWN:
        return element("p", f"{count:,} parties are too many to draw: the table has them.", class_="absent")
    places = _places(setting)
    wide, high = (245, 130) if count <= MANY else (320, 180)  # names need room
    x, y = WIDTH / 2 + wide * places[:, 0], HEIGHT / 2 - high * places[:, 1]
    radius = float(np.clip(120 * closest(places) / 2.4, 3, 20)) if count > 1 else 20.0
    hub = setting.topology == "all"
    ends = (
        [(x[a], y[a], x[b], y[b]) for a, b in setting.edges]
        if not hub
        else [(x[k], y[k], WIDTH / 2, HEIGHT / 2) for k in range(count)]
    )
    links = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in ends)
    parts = [element("path", d=links, class_="links")]
    if hub:
        parts.append(
            element("rect", x=WIDTH / 2 - 26, y=HEIGHT / 2 - 13, width="52", height="26", rx="6", class_="hub")
        )
        parts.append(element("text", "hub", x=WIDTH / 2, y=HEIGHT / 2 + 4, text_anchor="middle"))
    most = float(np.max(spent[np.isfinite(spent)], initial=0.0)) if spent is not None else 0.0
    for k in range(count):
        parts.append(_party(setting, k, x[k], y[k], radius, spent, most, paying, own))
    words = f"{count} parties and {len(ends)} links"
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="network", role="group", aria_label=words)


def _places(setting: Setting) -> Array:
    """Of the parties, in [-1, 1]²."""
    count = len(setting.agents)
    if setting.topology == "all" or not setting.edges:
        around = np.pi / 2 - 2 * np.pi * np.arange(count) / count
        return np.column_stack([np.cos(around), np.sin(around)])
    places = layout(Graph.from_edges(setting.edges, size=count))
    return np.asarray(places / np.maximum(np.abs(places).max(axis=0), 1e-9))  # the page is wide


def _party(
    setting: Setting,
    k: int,
    x: float,
    y: float,
    radius: float,
    spent: Array | None,
    most: float,
    paying: str,
    own: int | None,
) -> Markup:
    name, cost = setting.agents[k], "not known" if spent is None else f"ε = {shown(float(spent[k]))}"
    rows = f", {setting.sizes[k]:,} rows" if k < len(setting.sizes) else ""
    told = f"{name}{' (this party)' if k == own else ''}: {paying} {cost}{rows}"
    share = 1.0 if spent is None or not np.isfinite(spent[k]) else float(spent[k]) / most if most else 0.0
    above = y < HEIGHT / 2 - 1
    beside = element(
        "text",
        element("tspan", _short(name), x=x, dy="-1.55em" if above else "1.15em", class_="name"),
        element("tspan", cost, x=x, dy="1.15em"),
        x=x,
        y=y - radius if above else y + radius,
        text_anchor="middle",
    )
    return element(
        "g",
        element("title", told),
        element("circle", cx=x, cy=y, r=radius, class_="back"),
        element("circle", cx=x, cy=y, r=radius, fill_opacity=0.3 + 0.7 * share, class_="body"),
        beside if len(setting.agents) <= MANY else None,
        class_="party own" if k == own else "party",
        tabindex="0" if k == 0 else "-1",
        role="img",
        aria_label=told,
    )


def _short(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"
