import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide import threads
from confide.network import Graph, Links, all_sum, neighbour_sum

GRAPHS = [
    Graph.ring(5),
    Graph.star(6),
    Graph.complete(7),
    Graph.grid(3, 3),
    Graph.random(20, 50, seed=1),
    Graph.path(2),
]
WEIGHTS = {"adjacency": lambda g: g.adjacency, "metropolis": Graph.metropolis, "laplacian": lambda g: g.laplacian}


def uniform(seeds, t, edges):
    """Keyed draws: each a function of its seed, round and edge only."""
    draws = [np.random.Generator(np.random.Philox(key=[s, t])).random(1000)[:edges] for s in seeds]
    return np.array(draws).reshape(len(seeds), edges)


def naive(weights, messages, down=None):
    received = np.zeros_like(messages)
    for s in range(len(messages)):
        for k in range(weights.shape[0]):
            for entry in range(weights.indptr[k], weights.indptr[k + 1]):
                l = k if down is not None and down[s, entry] else weights.indices[entry]
                received[s, k] += weights.data[entry] * messages[s, l]
    return received


@pytest.fixture(params=["serial", "parallel"])
def either(request, monkeypatch):
    monkeypatch.setattr(threads, "SMALL", 0 if request.param == "parallel" else np.inf)


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_sum_is_the_sparse_product_to_the_last_bit(graph, weights, either):
    w, m = weights(graph), np.random.default_rng(0).normal(size=(3, graph.size, 5))
    assert np.allclose(neighbour_sum(w, m), np.einsum("kl,slp->skp", w.toarray(), m), rtol=1e-13, atol=1e-13)
    assert np.array_equal(neighbour_sum(w, m), naive(w, m))
    down = np.random.default_rng(1).random((3, w.nnz)) < 0.4
    assert np.array_equal(neighbour_sum(w, m, down=down), naive(w, m, down))
    assert np.array_equal(neighbour_sum(w, m, down=np.zeros_like(down)), naive(w, m))


def test_read_only_strided_and_empty_messages(either):
    w, m = Graph.ring(4).adjacency, np.random.default_rng(0).normal(size=(2, 4, 6))
    m.setflags(write=False)
    assert np.array_equal(neighbour_sum(w, m[:, :, ::2]), naive(w, m[:, :, ::2]))
    same = np.broadcast_to(m[:1], m.shape)
    assert np.array_equal(neighbour_sum(w, same), naive(w, same))
    for shape in [(0, 4, 3), (2, 4, 0)]:
        assert neighbour_sum(w, np.empty(shape)).shape == all_sum(np.empty(shape)).shape == shape


def test_a_seed_does_not_depend_on_the_others(either):
    graph = GRAPHS[4]
    m = np.random.default_rng(0).normal(size=(9, 20, 4))
    links = Links(graph, drop=0.3, uniform=uniform)
    seeds = np.arange(9) * 7
    together = neighbour_sum(graph.adjacency, m, links.down(5, seeds))
    for s in range(9):
        alone = neighbour_sum(graph.adjacency, m[s : s + 1], links.down(5, seeds[s : s + 1]))
        assert np.array_equal(alone[0], together[s])


@pytest.mark.parametrize("width", [1, 3])
def test_all_sum_adds_in_index_order(width):
    m = np.random.default_rng(0).normal(size=(4, 300, width))
    total = np.zeros((4, width))
    for k in range(300):
        total += m[:, k]
    assert np.array_equal(all_sum(m), np.repeat(total[:, None], 300, axis=1))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(2, 10), st.integers(0, 1000), st.floats(0, 1), st.integers(0, 50), st.data())
def test_dropped_links_keep_the_duals_balanced(n, seed, drop, t, data):
    edges = data.draw(st.integers(n - 1, n * (n - 1) // 2))
    graph = Graph.random(n, edges, seed)
    links = Links(graph, drop=drop, uniform=uniform)
    m = np.random.default_rng(seed).normal(size=(3, n, 2))
    received = neighbour_sum(graph.adjacency, m, links.down(t, [1, 2, 3]))
    assert np.allclose((graph.degrees[:, None] * m - received).sum(axis=1), 0, atol=1e-12)
    # Metropolis averaging keeps the mean too, and constants.
    w = graph.metropolis()
    down = Links(graph, drop=drop, uniform=uniform, weights=w).down(t, [1, 2, 3])
    assert np.allclose(neighbour_sum(w, m, down).sum(axis=1), m.sum(axis=1), atol=1e-12)
    assert np.allclose(neighbour_sum(w, np.ones((3, n, 1)), down), 1)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_relabelling_agents_permutes_what_they_receive(seed, random):
    graph = Graph.random(9, 15, seed)
    new = random.sample(range(9), 9)
    m = np.random.default_rng(seed).normal(size=(2, 9, 3))
    moved = np.empty_like(m)
    moved[:, new] = m
    for weights in WEIGHTS.values():
        received = neighbour_sum(weights(graph.relabel(new)), moved)
        assert np.allclose(received[:, new], neighbour_sum(weights(graph), m))


def dense(weights, mask):
    """(seeds, agents, agents), true where a link is down."""
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    out = np.zeros((len(mask), *weights.shape), dtype=bool)
    out[:, rows, weights.indices] = mask
    return out


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_a_link_is_down_both_ways_and_nobody_loses_himself(weights):
    graph = GRAPHS[4]
    w = weights(graph)
    links = Links(graph, drop=0.3, uniform=uniform, weights=w)
    lost = dense(w, links.down(4, range(50)))
    assert np.array_equal(lost, lost.transpose(0, 2, 1))
    assert not np.diagonal(lost, axis1=1, axis2=2).any()
    i, j = graph.edges.T
    assert np.array_equal(lost[:, i, j], uniform(range(50), 4, 50) < 0.3)
    assert not np.array_equal(links.down(4, range(50)), links.down(5, range(50)))


def test_nothing_can_be_down_without_a_reason():
    assert Links(Graph.ring(5)).down(0, [0, 1]) is None
    assert Links(Graph.ring(5), graphs=[Graph.ring(5)]).down(3, [0]) is None
    assert Links(Graph.ring(5), drop=1.0, uniform=uniform).down(0, [0, 1]).all()
    assert Links(Graph.ring(5), drop=1e-9, uniform=uniform).down(0, [0, 1]).shape == (2, 10)


def test_graphs_take_turns():
    turns = [Graph.path(5), Graph.star(5), Graph.union([Graph.path(5), Graph.star(5)])]
    base = Graph.union(turns)
    links = Links(base, graphs=turns)
    m = np.random.default_rng(0).normal(size=(2, 5, 3))
    for t in range(7):
        graph = turns[t % 3]
        down = links.down(t, [3, 4])
        missing = (base.degrees - graph.degrees)[:, None] * m
        assert (down is None) == (t % 3 == 2)
        received = neighbour_sum(base.adjacency, m, down)
        assert np.allclose(received, neighbour_sum(graph.adjacency, m) + missing)
    # Dropped links come on top.
    both = Links(base, drop=0.5, graphs=turns, uniform=uniform).down(1, range(20))
    dropped = Links(base, drop=0.5, uniform=uniform).down(1, range(20))
    assert np.array_equal(both, links.down(1, range(20)) | dropped)


def test_lossy_averaging_still_reaches_the_mean():
    graph = Graph.from_networkx(nx.petersen_graph())
    w = graph.metropolis()
    links = Links(graph, drop=0.3, uniform=uniform, weights=w)
    m = start = np.random.default_rng(0).normal(size=(4, 10, 2))
    for t in range(150):
        m = neighbour_sum(w, m, links.down(t, range(4)))
    assert np.allclose(m, start.mean(axis=1, keepdims=True), atol=1e-9)


RING, MESSAGES = Graph.ring(5), np.zeros((2, 5, 3))


@pytest.mark.parametrize(
    ("pattern", "make"),
    [
        (
            r"messages of shape \(5, 3\): must have shape \(seeds, agents, width\)",
            lambda: neighbour_sum(RING.adjacency, MESSAGES[0]),
        ),
        (r"messages of shape \(5, 3\): must have shape \(seeds, agents, width\)", lambda: all_sum(MESSAGES[0])),
        (r"weights csr \(5, 5\): must be csr, 4 × 4", lambda: neighbour_sum(RING.adjacency, MESSAGES[:, :4])),
        (r"weights csc \(5, 5\): must be csr, 5 × 5", lambda: neighbour_sum(RING.adjacency.tocsc(), MESSAGES)),
        (
            r"down: bool of shape \(2, 9\): must be a boolean array of shape \(2, 10\)",
            lambda: neighbour_sum(RING.adjacency, MESSAGES, np.zeros((2, 9), dtype=bool)),
        ),
        (
            r"down: float64 of shape .*: must be a boolean array of shape \(2, 10\)",
            lambda: neighbour_sum(RING.adjacency, MESSAGES, np.zeros((2, 10))),
        ),
        ("drop=1.5: must be a number from 0 to 1", lambda: Links(RING, drop=1.5)),
        ("drop=0.1 with uniform=None: needs a source of draws", lambda: Links(RING, drop=0.1)),
        ("graph .*: must be the union of graphs", lambda: Links(RING, graphs=[Graph.path(5)])),
        ("same agents", lambda: Links(RING, graphs=[Graph.ring(5), Graph.ring(6)])),
        ("one or more graphs", lambda: Links(RING, graphs=[])),
        (
            "where there is no link: must be zero outside the links",
            lambda: Links(RING, weights=Graph.complete(5).adjacency),
        ),
        ("must be 5 × 5, as the graph", lambda: Links(RING, weights=Graph.ring(4).adjacency)),
        ("round=.*: must be a whole number", lambda: Links(RING).down(-1, [0])),
    ],
)
def test_bad_input_is_one_clear_line(pattern, make):
    with pytest.raises(ValueError, match=pattern) as error:
        make()
    assert "\n" not in str(error.value)
