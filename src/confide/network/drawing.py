"""A picture of a graph, through matplotlib's object interface: no pyplot, no global state, no display."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import ConfideError
from confide.files.pictures import check_drawing, new_figure, write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from confide.network.graph import Graph

FORMATS = (".png", ".svg", ".pdf")
INK, LINK, NODE = "#22303c", "#a9b8c6", "#2f6f9f"
MANY = 250  # agents beyond which the Kamada-Kawai layout, and comparing all pairs, take too long


def draw(
    graph: Graph,
    path: str | PathLike[str] | None,
    ax: Any,
    labels: Sequence[str] | None,
    values: ArrayLike | None,
    title: str | None,
) -> Figure:
    """See Graph.draw."""
    check_drawing()
    from matplotlib.collections import LineCollection

    colour = None if values is None else np.asarray(values, dtype=np.float64)
    if colour is not None and (colour.shape != (graph.size,) or not np.isfinite(colour).all()):
        raise ConfideError(f"values of shape {colour.shape}: must be {graph.size} finite numbers, one per agent")
    if labels is not None and len(labels) != graph.size:
        raise ConfideError(f"{len(labels)} labels: must be {graph.size} strings, one per agent")
    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise ConfideError(f"{str(path)!r}: a drawing is saved as {', '.join(FORMATS)}")

    if ax is None:
        ax = new_figure(5.6 if colour is None else 6.4, 5.4).add_subplot()
    points = layout(graph)
    radius = float(np.clip(55 * closest(points), 2.5, 13))  # in points; the picture is some 330 wide
    ax.add_collection(
        LineCollection(
            list(points[graph.edges]),
            colors=LINK,
            zorder=1,
            linewidths=np.clip(18 / np.sqrt(len(graph.edges)), 0.3, 1.5),
        )
    )
    nodes = ax.scatter(
        *points.T,
        s=(2 * radius) ** 2,
        zorder=2,
        edgecolors="white",
        linewidths=radius / 10,
        **({"color": NODE} if colour is None else {"c": colour, "cmap": "viridis"}),
    )
    if colour is not None:
        ax.figure.colorbar(nodes, ax=ax, shrink=0.7, pad=0.02).outline.set_visible(False)
        dark = nodes.to_rgba(colour)[:, :3] @ (0.299, 0.587, 0.114) < 0.55
    else:
        dark = np.ones(graph.size, dtype=bool)
    if radius > 4 or labels is not None or graph.names is not None:  # else too small to read
        write(ax, graph, points, radius, labels, dark)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title, color=INK)
    if path is not None:
        write_picture(Path(path), ax.figure, form=Path(path).suffix[1:].lower())
    figure: Figure = ax.figure
    return figure


def write(
    ax: Any,
    graph: Graph,
    points: NDArray[np.float64],
    radius: float,
    labels: Sequence[str] | None,
    dark: NDArray[np.bool_],
) -> None:
    """A short label goes inside its node; any longer, and they stand beside, away from the links."""
    from matplotlib.patheffects import withStroke

    text = list(map(str, labels if labels is not None else graph.names or range(graph.size)))
    inside = max(map(len, text)) <= 3 and radius > 4
    halo = withStroke(linewidth=2.5, foreground="white")
    for k, (label, point) in enumerate(zip(text, points, strict=True)):
        if inside:
            ax.annotate(
                label,
                point,
                color="white" if dark[k] else INK,
                ha="center",
                va="center_baseline",
                fontsize=0.8 * radius,
                zorder=3,
            )
            continue
        away = point - points[graph.neighbours(k)]
        away = (away / np.linalg.norm(away, axis=1, keepdims=True)).sum(axis=0)
        # Between opposite links no side is free: below, as under any picture.
        x, y = away / np.linalg.norm(away) if np.linalg.norm(away) > 0.3 else (0.0, -1.0)
        ax.annotate(
            label,
            point,
            (x * (radius + 3), y * (radius + 3)),
            textcoords="offset points",
            color=INK,
            fontsize=9,
            zorder=3,
            path_effects=[halo],
            ha="center" if abs(x) < 0.4 else "left" if x > 0 else "right",
            va="center" if abs(y) < 0.4 else "bottom" if y > 0 else "top",
        )


def layout(graph: Graph) -> NDArray[np.float64]:
    """(size, 2) in [-1, 1]²: a circle for rings and complete graphs, else by distance along the links."""
    links = len(graph.edges)
    if links == graph.size * (graph.size - 1) // 2 or (links == graph.size and graph.degrees.max() == 2):
        around = np.pi / 2 - 2 * np.pi * np.arange(graph.size) / graph.size  # clockwise from the top
        order = np.argsort(walk(graph)) if links == graph.size else np.arange(graph.size)
        return np.column_stack([np.cos(around), np.sin(around)])[order]
    points = scaled(graph)
    if graph.size <= MANY:
        import networkx as nx

        placed = nx.kamada_kawai_layout(nx.Graph(graph.edges.tolist()), pos=dict(enumerate(points)))
        points = np.array([placed[k] for k in range(graph.size)])
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    return np.asarray(points / np.abs(points).max())


def scaled(graph: Graph) -> NDArray[np.float64]:
    """Classical scaling: distances in the plane that follow those along the links, so that grids unfold."""
    from scipy.sparse.csgraph import shortest_path

    square = shortest_path(graph.adjacency, unweighted=True) ** 2
    square -= square.mean(axis=0)
    size, axis = np.linalg.eigh(-(square - square.mean(axis=1, keepdims=True)) / 2)
    apart = np.random.default_rng(0).normal(scale=0.1, size=(graph.size, 2))  # twins would share a point
    return np.asarray(axis[:, :-3:-1] * np.sqrt(np.maximum(size[:-3:-1], 0.0)) + apart)


def walk(ring: Graph) -> list[int]:
    """The agents of a ring in the order in which one meets them, whatever their numbers."""
    order = [0, int(ring.neighbours(0)[0])]
    while len(order) < ring.size:
        order.append(next(int(k) for k in ring.neighbours(order[-1]) if k != order[-2]))
    return order


def closest(points: NDArray[np.float64]) -> float:
    """The distance between the two nearest points."""
    if len(points) <= MANY:
        apart = np.linalg.norm(points[:, None] - points, axis=-1)
        np.fill_diagonal(apart, np.inf)
        return float(apart.min())
    from scipy.spatial import KDTree

    return float(np.asarray(KDTree(points).query(points, k=2)[0])[:, 1].min())
