import pickle
import re
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.network import Graph

FAMILIES = {
    "ring": Graph.ring(7),
    "path": Graph.path(6),
    "star": Graph.star(6),
    "complete": Graph.complete(6),
    "grid": Graph.grid(3, 4),
    "random": Graph.random(12, 20, seed=3),
    "erdos_renyi": Graph.erdos_renyi(12, 0.3, seed=3),
    "geometric": Graph.geometric(15, 0.45, seed=3),
    "small_world": Graph.small_world(12, 4, 0.3, seed=3),
    "two": Graph.ring(2),
}
graphs = pytest.mark.parametrize("graph", FAMILIES.values(), ids=FAMILIES)


@st.composite
def random_graphs(draw):
    n = draw(st.integers(2, 12))
    edges = draw(st.integers(n - 1, n * (n - 1) // 2))
    return Graph.random(n, edges, seed=draw(st.integers(0, 1000)))


def refuses(pattern, make, *args, **kwargs):
    with pytest.raises(ValueError, match=pattern) as error:
        make(*args, **kwargs)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Graph.ring(7), nx.cycle_graph(7)),
        (Graph.path(5), nx.path_graph(5)),
        (Graph.star(5), nx.star_graph(4)),
        (Graph.complete(5), nx.complete_graph(5)),
        (Graph.ring(2), nx.path_graph(2)),
        (Graph.grid(1, 4), nx.path_graph(4)),
        (Graph.grid(3, 4), nx.relabel_nodes(nx.grid_2d_graph(3, 4), lambda node: 4 * node[0] + node[1])),
    ],
)
def test_named_families_are_those_of_networkx(ours, theirs):
    assert ours == Graph.from_networkx(theirs)


@graphs
def test_edges_are_canonical_and_read_only(graph):
    assert graph.edges.dtype == np.int64
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert np.array_equal(graph.edges, np.unique(graph.edges, axis=0))
    for array in (graph.edges, graph.degrees, graph.adjacency.data, graph.laplacian.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@graphs
def test_matrices_and_properties_match_networkx(graph):
    other = graph.to_networkx()
    a = nx.to_numpy_array(other)
    assert np.array_equal(graph.degrees, a.sum(axis=0))
    assert np.array_equal(graph.adjacency.toarray(), a)
    assert np.array_equal(graph.laplacian.toarray(), np.diag(a.sum(axis=0)) - a)
    assert np.array_equal(graph.signless_laplacian.toarray(), np.diag(a.sum(axis=0)) + a)
    assert graph.diameter == nx.diameter(other)
    assert np.isclose(graph.algebraic_connectivity, nx.laplacian_spectrum(other)[1])
    for k in range(graph.size):
        assert graph.neighbours(k).tolist() == sorted(other[k])
        assert all(graph.has_edge(k, l) == other.has_edge(k, l) for l in range(graph.size))


@graphs
def test_metropolis_is_doubly_stochastic_and_its_gap_governs_averaging(graph):
    w = graph.metropolis().toarray()
    assert np.array_equal(w, w.T) and (w >= 0).all()
    assert np.allclose(w.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    for i, j in graph.edges:
        assert w[i, j] == 1 / (1 + max(graph.degrees[i], graph.degrees[j]))
    # The gap is one minus the worst contraction of a vector that averages to zero.
    rest = np.linalg.norm(w - 1 / graph.size, 2)
    assert np.isclose(graph.spectral_gap, 1 - rest) and 0 < graph.spectral_gap <= 1


def test_spectra_in_closed_form():
    assert np.isclose(Graph.ring(10).algebraic_connectivity, 2 - 2 * np.cos(2 * np.pi / 10))
    assert np.isclose(Graph.complete(8).algebraic_connectivity, 8)
    assert np.isclose(Graph.star(9).algebraic_connectivity, 1)
    assert np.isclose(Graph.complete(8).spectral_gap, 1)
    assert np.isclose(Graph.ring(10).spectral_gap, 1 - (1 + 2 * np.cos(2 * np.pi / 10)) / 3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(random_graphs(), st.randoms(use_true_random=False))
def test_relabelling_permutes(graph, random):
    new = random.sample(range(graph.size), graph.size)
    named = Graph(graph.size, graph.edges, tuple(f"agent {k}" for k in range(graph.size)))
    moved = named.relabel(new)
    for matrix in ("adjacency", "laplacian", "signless_laplacian"):
        new_matrix = getattr(moved, matrix).toarray()
        assert np.array_equal(new_matrix[np.ix_(new, new)], getattr(graph, matrix).toarray())
    assert np.array_equal(moved.degrees[new], graph.degrees)
    assert tuple(moved.names[k] for k in new) == named.names
    assert moved.diameter == graph.diameter
    assert np.isclose(moved.algebraic_connectivity, graph.algebraic_connectivity)
    assert np.isclose(moved.spectral_gap, graph.spectral_gap)
    assert moved.relabel(np.argsort(new)) == named


@settings(max_examples=60, deadline=None, derandomize=True)
@given(random_graphs(), st.randoms(use_true_random=False))
def test_order_direction_and_repetition_of_links_do_not_matter(graph, random):
    pairs = [tuple(random.sample(pair, 2)) for pair in 2 * graph.edges.tolist()]
    random.shuffle(pairs)
    assert Graph.from_edges(pairs) == graph == Graph.from_networkx(graph.to_networkx())
    assert hash(Graph.from_edges(pairs)) == hash(graph)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(2, 15), st.integers(0, 10**6), st.data())
def test_random_graphs_have_the_links_asked_for(n, seed, data):
    edges = data.draw(st.integers(n - 1, n * (n - 1) // 2))
    graph = Graph.random(n, edges, seed)
    assert len(graph.edges) == edges and graph == Graph.random(n, edges, seed)
    assert nx.is_connected(graph.to_networkx())


def test_random_trees_are_uniform():
    trees = [Graph.random(4, 3, seed=s).edges.tobytes() for s in range(1600)]
    counts = np.unique(trees, return_counts=True)[1]
    assert len(counts) == 16  # Cayley: 4² labelled trees on 4 agents
    assert ((counts - 100) ** 2 / 100).sum() < 37.7  # chi-square with 15 degrees of freedom, 0.1 %


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: Graph.random(20, 40, seed),
        lambda seed: Graph.erdos_renyi(20, 0.25, seed),
        lambda seed: Graph.geometric(20, 0.4, seed),
        lambda seed: Graph.small_world(20, 4, 0.3, seed),
    ],
)
def test_a_seed_fixes_the_graph(make):
    assert make(1) == make(1) != make(2)


def test_random_families_follow_their_parameters():
    density = np.mean([len(Graph.erdos_renyi(30, 0.4, s).edges) for s in range(60)]) / (30 * 29 / 2)
    assert abs(density - 0.4) < 0.015
    assert Graph.erdos_renyi(6, 1.0) == Graph.complete(6) == Graph.geometric(6, 2.0)
    assert Graph.small_world(9, 2, 0.0) == Graph.ring(9)
    assert len(Graph.small_world(20, 6, 0.5).edges) == 60


def test_networkx_names_are_kept():
    other = nx.Graph([("Oslo", "Paris"), ("Paris", "Rome")])
    graph = Graph.from_networkx(other)
    assert graph.names == ("Oslo", "Paris", "Rome")
    assert nx.utils.graphs_equal(graph.to_networkx(), other)
    assert Graph.from_networkx(nx.Graph([(2, 0), (0, 1)])).edges.tolist() == [[0, 1], [0, 2]]  # numbers stay


def test_union_of_graphs():
    both = Graph.union([Graph.ring(5), Graph.star(5)])
    assert np.array_equal(
        both.adjacency.toarray(), np.maximum(Graph.ring(5).adjacency.toarray(), Graph.star(5).adjacency.toarray())
    )
    refuses("same agents", Graph.union, [Graph.ring(5), Graph.ring(6)])
    refuses("one or more", Graph.union, [])


def test_copies_are_equal_read_only_and_light():
    graph = Graph.from_edges([(0, 1)], names=("a", "b"))
    assert graph.diameter == 1
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph and not copy.edges.flags.writeable and "diameter" not in vars(copy)
    assert graph != Graph.path(2) and graph != "graph"
    assert repr(graph) == "Graph(2 agents, 1 link)" and repr(Graph.ring(5)) == "Graph(5 agents, 5 links)"


# Bad input


@pytest.mark.parametrize(
    "make",
    [
        Graph.ring,
        Graph.path,
        Graph.star,
        Graph.complete,
        lambda n: Graph.grid(1, n),
        lambda n: Graph.random(n, 1),
        lambda n: Graph.erdos_renyi(n, 0.5),
        lambda n: Graph.geometric(n, 0.5),
        lambda n: Graph.small_world(n, 2, 0.1),
        lambda n: Graph.from_edges([], size=n),
    ],
)
def test_one_party_is_no_network(make):
    refuses("1 party: a network needs at least 2", make, 1)
    refuses("at least|whole number", make, 2.5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(random_graphs(), random_graphs())
def test_disconnected_graphs_are_refused_by_component(one, two):
    pairs = np.vstack([one.edges, two.edges + one.size])
    size = one.size + two.size
    first = ", ".join(map(str, range(min(6, one.size))))
    second = f"{one.size}, {one.size + 1}"
    refuses(rf"disconnected: components {{{first}[,}}].*{{{second}[,}}]", Graph, size, pairs)
    refuses(r"{'x0', 'x1'", Graph.from_edges, pairs, names=[f"x{k}" for k in range(size)])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(random_graphs(), st.data())
def test_links_out_of_range_and_self_loops_are_refused(graph, data):
    k = data.draw(st.integers(-(2**40), -1) | st.integers(graph.size, 2**40))
    refuses(
        re.escape(f"link (0, {k}) is out of range: the agents are 0 to {graph.size - 1}"),
        Graph,
        graph.size,
        [*graph.edges.tolist(), (0, k)],
    )
    k = data.draw(st.integers(0, graph.size - 1))
    refuses(re.escape(f"link ({k}, {k}) is a self loop"), Graph, graph.size, [*graph.edges.tolist(), (k, k)])


@pytest.mark.parametrize(
    ("pattern", "make"),
    [
        ("disconnected: components {0, 1}, {2}, {3}, {4} and 1 more", lambda: Graph.from_edges([(0, 1)], size=6)),
        ("1 links cannot join 1000000000001 agents", lambda: Graph.from_edges([(0, 10**12)])),
        ("edges={(0, 1.5)}: must be pairs of whole numbers (i, j)", lambda: Graph.from_edges([(0, 1.5)])),
        ("edges={(0, 1), (1, 2, 3)}: must be pairs", lambda: Graph.from_edges([(0, 1), (1, 2, 3)])),
        ("edges={('a', 'b')}: must be pairs of whole numbers (i, j)", lambda: Graph.from_edges([("a", "b")])),
        ("edges={0, 1}: must be pairs of whole numbers (i, j)", lambda: Graph.from_edges([0, 1])),
        ("edges={5}: must be pairs of whole numbers (i, j)", lambda: Graph.from_edges(5)),
        ("float64 of shape (1, 2)", lambda: Graph.from_edges(np.array([[0.0, np.nan]]))),
        ("2 different non-empty strings", lambda: Graph.from_edges([(0, 1)], size=2, names=["a"])),
        ("2 different non-empty strings", lambda: Graph.from_edges([(0, 1)], names=["a", "a"])),
        ("2 different non-empty strings", lambda: Graph.from_networkx(nx.Graph([(1, "1")]))),
        ("DiGraph: from_networkx takes an undirected", lambda: Graph.from_networkx(nx.DiGraph([(0, 1)]))),
        ("list: from_networkx takes an undirected", lambda: Graph.from_networkx([(0, 1)])),
        ("self loop", lambda: Graph.from_networkx(nx.Graph([(0, 1), (1, 1)]))),
        ("edges=3: must be from 4 (a tree) to 10 for 5 agents", lambda: Graph.random(5, 3)),
        ("edges=11: must be from 4 (a tree) to 10 for 5 agents", lambda: Graph.random(5, 11)),
        ("seed=-1: must be a whole number of at least 0", lambda: Graph.random(5, 5, seed=-1)),
        ("p=0.01 is too small: none of 200", lambda: Graph.erdos_renyi(20, 0.01)),
        ("p=1.5: must be a number from 0 to 1", lambda: Graph.erdos_renyi(20, 1.5)),
        ("p=nan: must be a number from 0 to 1", lambda: Graph.erdos_renyi(20, float("nan"))),
        ("radius=0.01 is too small: none of 200", lambda: Graph.geometric(20, 0.01)),
        (": must be even", lambda: Graph.small_world(10, 3, 0.1)),
        (": must be even", lambda: Graph.small_world(10, 10, 0.1)),
        (": must be a number from 0 to 1", lambda: Graph.small_world(10, 2, -0.1)),
        ("rows=None: must be a whole number of at least 1", lambda: Graph.grid(None, 3)),
        (": must hold 0 to 2 once each", lambda: Graph.ring(3).relabel([0, 0, 1])),
        ("there is no agent 3: the agents are 0 to 2", lambda: Graph.ring(3).neighbours(3)),
        (": must be a whole number", lambda: Graph.ring(3).has_edge(0, -1)),
    ],
)
def test_bad_input_is_one_clear_line(pattern, make):
    refuses(re.escape(pattern), make)


def test_importing_the_graph_is_light():
    heavy = {"scipy", "networkx", "numba", "matplotlib"}
    code = f"import sys, confide.network; print(len({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "0\n"
