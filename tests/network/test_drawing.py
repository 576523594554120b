import re
import sys

import numpy as np
import pytest

from confide.network import Graph
from confide.network.drawing import MANY, closest, layout

GRAPHS = [
    Graph.ring(7),
    Graph.path(6),
    Graph.star(6),
    Graph.complete(6),
    Graph.grid(3, 4),
    Graph.path(2),
    Graph.random(12, 20, seed=3),
    Graph.small_world(12, 4, 0.3, seed=3),
]


def test_drawing_shows_every_agent_link_label_and_value(tmp_path):
    graph = Graph.from_edges([(0, 1), (1, 2), (1, 3)], names=["Oslo", "Paris", "Rome", "Bern"])
    figure = graph.draw(tmp_path / "graph.png", values=[1.0, 2.0, 3.0, 4.0], title="spent")
    axes, bar = figure.axes
    links, nodes = axes.collections
    assert len(links.get_segments()) == 3 and nodes.get_offsets().shape == (4, 2)
    assert [text.get_text() for text in axes.texts] == ["Oslo", "Paris", "Rome", "Bern"]
    assert axes.get_title() == "spent" and bar.get_ylim() == (1.0, 4.0)
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_every_family_draws_without_overlap(graph, tmp_path):
    points = layout(graph)
    assert np.abs(points).max() <= 1 + 1e-12 and closest(points) > 0.05
    assert np.array_equal(points, layout(graph))
    graph.draw(tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text()


def test_drawing_on_given_axes():
    from matplotlib.figure import Figure

    figure = Figure()
    left, _ = figure.subplots(1, 2)
    assert Graph.ring(4).relabel([2, 0, 3, 1]).draw(ax=left, labels="abcd") is figure
    assert [text.get_text() for text in left.texts] == list("abcd")


def test_drawing_without_matplotlib_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"^a picture needs matplotlib: pip install 'confide\[plot\]'$"):
        Graph.ring(3).draw()


def test_the_closest_of_few_and_of_many():
    points = np.random.default_rng(2).normal(size=(2 * MANY, 2))
    points[3] = points[7] + [3e-5, 4e-5]
    assert closest(points) == pytest.approx(5e-5) == closest(points[:MANY])


def test_grids_unfold():
    points = layout(Graph.grid(4, 5)).reshape(4, 5, 2)
    assert np.allclose(np.linalg.norm(np.diff(points, axis=0), axis=2), 0.5, atol=0.06)
    assert np.allclose(np.linalg.norm(np.diff(points, axis=1), axis=2), 0.5, atol=0.06)


@pytest.mark.parametrize(
    ("pattern", "make"),
    [
        (": must be 3", lambda: Graph.ring(3).draw(labels=["a"])),
        (": must be 3", lambda: Graph.ring(3).draw(values=[1.0, np.nan, 2.0])),
        ("'ring.txt': a drawing is saved as .png, .svg, .pdf", lambda: Graph.ring(3).draw("ring.txt")),
    ],
)
def test_bad_input_is_one_clear_line(pattern, make):
    with pytest.raises(ValueError, match=re.escape(pattern)):
        make()
