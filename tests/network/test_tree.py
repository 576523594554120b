"""Spanning trees, and frames that go up and down them."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide import Graph
from confide.network import frames
from confide.network.frames import NOTHING, Phase, Place, frame_size, pack, source, unpack
from confide.network.identity import Identity
from confide.network.tree import Adding, Gathering, SpanningTree

RUN = bytes(range(32))


@st.composite
def graphs(draw, most=12):
    """Any connected graph: a random tree and some more links."""
    n = draw(st.integers(2, most))
    links = [(k, draw(st.integers(0, k - 1))) for k in range(1, n)]
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1])
    links += draw(st.lists(pairs, max_size=n))
    order = draw(st.permutations(range(n)))
    return Graph.from_edges([(order[i], order[j]) for i, j in links], n)


# --- the tree ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(graphs())
def test_a_tree_spans_any_connected_graph_and_is_as_shallow_as_can_be(graph):
    tree = SpanningTree.of(graph)
    links = [(k, up) for k, up in enumerate(tree.parent) if up >= 0]
    assert len(links) == graph.size - 1 and all(graph.has_edge(k, up) for k, up in links)
    found = nx.Graph(links)
    assert nx.is_tree(found) and len(found) == graph.size
    assert tree.depth == max(nx.shortest_path_length(found, tree.root).values()) == nx.radius(graph.to_networkx())
    assert tree.root == min(nx.center(graph.to_networkx()))
    for k in range(graph.size):
        rooted = nx.bfs_tree(found, tree.root)
        assert set(tree.below[k]) == {k} | nx.descendants(rooted, k) and set(tree.children[k]) == set(rooted[k])
    assert SpanningTree.of(graph) == tree


def test_trees_of_common_graphs():
    assert SpanningTree.of(Graph.star(5)) == SpanningTree((-1, 0, 0, 0, 0)) == SpanningTree.of(Graph.complete(5))
    assert SpanningTree.of(Graph.path(5)) == SpanningTree((1, 2, -1, 2, 3))
    assert SpanningTree.of(Graph.ring(4)).depth == 2


# --- contents ---------------------------------------------------------------------------------------------------------


def test_contents_are_added_or_gathered_in_order():
    a, b = (np.array(v, "<u8").tobytes() for v in ([2**64 - 1, 5], [3, 7]))
    assert np.frombuffer(Adding(2).merge({(0,): a, (3, 4): b}), "<u8").tolist() == [2, 12]
    whole = Gathering(8).merge({(1,): b"b" * 8, (0, 3): b"a" * 8 + b"d" * 8, (2,): b"c" * 8})
    assert Gathering(8).items(whole) == [letter * 8 for letter in (b"a", b"b", b"c", b"d")]


# --- frames -----------------------------------------------------------------------------------------------------------

PLACE = Place(Phase.SUM_UP, 3, 2, b"h" * 32)


@pytest.fixture(scope="module")
def ash(tmp_path_factory):
    return Identity.create(tmp_path_factory.mktemp("ash"), "ash", "127.0.0.1:7001")


@pytest.fixture(scope="module")
def frame(ash):
    return pack(ash, RUN, PLACE, bytes(range(56)))


def test_a_frame_comes_back(ash, frame):
    assert unpack(frame, ash.card, RUN, PLACE, 56) == bytes(range(56)) == frames.payload_of(frame)
    assert source(frame) == (ash.card.digest, PLACE) and len(frame) == frame_size(56)


def test_what_is_wrong_is_said_in_one_line(ash, frame, tmp_path):
    birch = Identity.create(tmp_path, "birch", "127.0.0.1:7002")

    def other(run=RUN, who=ash, payload=bytes(range(56)), **changes):
        return pack(who, run, Place(**{**PLACE.__dict__, **changes}), payload)

    forged = other(who=birch)[:40] + ash.card.digest + other(who=birch)[72:]
    cases = {
        "frame of 0 bytes": b"", "frame of 251 bytes": frame[:-1], "must be 252": frame + b"\0",
        "not a frame": b"PK\3\4" + frame[4:], "version 1:": frame[:4] + b"\1\0" + frame[6:],
        "another run": other(run=bytes(32)), "another sender": other(who=birch), "not signed by ash": forged,
        "kind 1, phase 7, attempt 2": other(phase=Phase.SUM_DOWN), "frame of round 2: asked": other(round=2),
        "phase 6, attempt 1": other(attempt=1), "has heard something else": other(heard=bytes(32)),
        "claims": frame[:80] + b"\xff" + frame[81:], "kind 0, phase 6": frame[:6] + b"\0" + frame[7:],
    }  # fmt: skip
    for words, bad in cases.items():
        with pytest.raises(ValueError, match=words) as error:
            unpack(bad, ash.card, RUN, PLACE, 56)
        assert "\n" not in str(error.value)


def test_no_mutation_of_a_frame_is_taken(ash, frame):
    rng = np.random.default_rng(0)
    for number in range(3000):
        bad = bytearray(frame)
        at = int(rng.integers(len(bad)))
        match number % 4:
            case 0:
                bad[at] ^= 1 << int(rng.integers(8))
            case 1:
                del bad[at:]
            case 2:
                bad.insert(at, int(rng.integers(256)))
            case _:
                bad = bytearray(rng.bytes(len(frame)))
        for reads in (lambda f: unpack(f, ash.card, RUN, PLACE, 56), source):
            try:
                reads(bytes(bad))
            except ValueError:
                continue
            assert reads is source  # which looks at the header alone
    assert unpack(frame, ash.card, RUN, PLACE, 56)


@pytest.mark.parametrize(("given_", "match"), [
    ((Phase.SUM_UP, 0, 1), "from 1"), ((Phase.SUM_UP, 1, 0), "from 1"), ((Phase.SUM_DOWN, 2**20, 1), "must be from 0"),
    ((Phase.SUM_DOWN, 1, 2**9), "must be from 0"), ((Phase.AGAIN, 1, 0), "from 1"),
    ((Phase.AGREED_UP, 1, 1), "have no attempt"), ((Phase.KEYS_UP, 1, 0), "before round 1"),
    ((Phase.KEYS_DOWN, 0, 0, b"h" * 32), "nothing was heard"), ((Phase.SUM_UP, 1, 1, b"h"), "must be 32"),
])  # fmt: skip
def test_a_place_has_one_form(given_, match):
    with pytest.raises(ValueError, match=match):
        Place(*given_)


def test_places_are_asked_for_by_numbers_that_rise():
    """Keys, round by round all attempts, the last signatures: 32 bits hold the largest."""
    phases = [(Phase.KEYS_UP, 0, 0), (Phase.KEYS_DOWN, 0, 0), (Phase.AGREED_UP, 0, 0), (Phase.AGREED_DOWN, 0, 0)]
    phases += [(Phase.SUM_UP, 1, 1), (Phase.SUM_DOWN, 1, 1), (Phase.AGAIN, 1, 2), (Phase.SUM_UP, 1, 2)]
    phases += [(Phase.SUM_UP, 2, 1), (Phase.AGREED_UP, 3, 0), (Phase.SUM_DOWN, 2**20 - 1, 2**9 - 1)]
    numbers = [Place(*one).number for one in phases]
    assert numbers == sorted(set(numbers)) and numbers[0] == 1 and numbers[-1] == 2**32 - 1
    assert [frames.place_of(number) for number in numbers] == phases
    for bad in (0, 5, 6, 4096 + 1, 4096 + 6):  # no phase; a sum before round 1; keys after it; attempt 0
        with pytest.raises(ValueError, match=r"no place of a frame|sums have rounds|keys are shown"):
            frames.place_of(bad)


def test_a_header_without_one_form_is_refused(ash):
    """A frame signed by its sender, but of a form that means nothing."""
    good = pack(ash, RUN, PLACE, b"")
    for at, byte in ((76, 9), (76, 0), (76, 1), (76, 3), (72, 0), (78, 0)):  # phases; round 0; attempt 0
        bad = good[:at] + bytes([byte]) + good[at + 1 :]
        with pytest.raises(ValueError, match=r"not a frame of a private sum|sums have rounds|keys are shown"):
            source(bad)
    with pytest.raises(ValueError, match="multiple of 8"):
        pack(ash, RUN, PLACE, b"1234567")
    assert not any(NOTHING)
