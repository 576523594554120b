"""One round of messages in one process: an agent receives a weighted sum of its neighbours' messages.

Messages are (seeds, agents, width) float64. Sums run in index order, so that the result does not depend on
the number of threads or seeds, and is that of a node which adds its neighbours' messages one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from confide import threads
from confide.compiled import njit
from confide.errors import ConfideError
from confide.network.generators import real, whole
from confide.network.graph import CSR, Graph

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]
Uniform = Callable[[NDArray[np.int64], int, int], Floats]  # seeds, round, edges -> (seeds, edges)

NONE_DOWN: Mask = np.zeros((0, 0), dtype=np.bool_)


def _readonly(kind: str, dimensions: int) -> str:
    return f"Array({kind}, {dimensions}, 'C', readonly=True)"  # takes writable arrays too


# Explicit signatures: one compilation for read-only and writable arrays alike.
_INPUTS = ", ".join([
    _readonly("int32", 1),
    _readonly("int32", 1),
    _readonly("float64", 1),
    _readonly("float64", 3),
    _readonly("boolean", 2),
    "float64[:, :, ::1]",
])  # fmt: skip


@njit(f"void({_INPUTS}, int64, int64)", nogil=True)
def _receive(
    indptr: Ints, indices: Ints, weights: Floats, messages: Floats, down: Mask, received: Floats, start: int, stop: int
) -> None:
    """Rows start to stop of the flattened (seeds × agents)."""
    agents, width = messages.shape[1], messages.shape[2]
    lossy = down.shape[0] > 0
    for task in range(start, stop):
        s, k = task // agents, task % agents
        own = received[s, k]
        own[:] = 0.0
        for entry in range(indptr[k], indptr[k + 1]):
            l = indices[entry]
            if lossy:  # its own message in place of the lost one; a branch on random bits would be slower
                l += down[s, entry] * (k - l)
            w, sent = weights[entry], messages[s, l]
            for p in range(width):
                own[p] += w * sent[p]


@njit(f"void({_readonly('float64', 3)}, float64[:, :, ::1])")
def _add_all(messages: Floats, received: Floats) -> None:
    seeds, agents, width = messages.shape
    for s in range(seeds):
        for p in range(width):
            received[s, 0, p] = 0.0
        for k in range(agents):
            for p in range(width):
                received[s, 0, p] += messages[s, k, p]
        for k in range(1, agents):
            for p in range(width):
                received[s, k, p] = received[s, 0, p]


def neighbour_sum(weights: CSR, messages: Floats, down: Mask | None = None) -> Floats:
    """received[s, k] = Σ_l w_kl m[s, l] over the stored entries of row k, its own on the diagonal included.

    Where `down`, (seeds, stored entries), is true, m[s, k] takes the place of m[s, l].
    """
    messages = _checked(messages)
    seeds, agents, width = messages.shape
    if weights.format != "csr" or weights.shape != (agents, agents):
        raise ConfideError(f"weights {weights.format} {weights.shape}: must be csr, {agents} × {agents}")
    mask = NONE_DOWN if down is None else np.ascontiguousarray(down)
    if down is not None and (mask.shape != (seeds, weights.nnz) or mask.dtype != np.bool_):
        raise ConfideError(
            f"down: {mask.dtype} of shape {mask.shape}: must be a boolean array of shape {(seeds, weights.nnz)}"
        )
    received = np.empty(messages.shape)
    inputs = (
        weights.indptr.astype(np.int32, copy=False),
        weights.indices.astype(np.int32, copy=False),
        np.ascontiguousarray(weights.data, dtype=np.float64),
        messages,
        mask,
        received,
    )
    threads.run(_receive, seeds * agents, seeds * weights.nnz * (width + 8), *inputs)
    return received


def all_sum(messages: Floats) -> Floats:
    """received[s, k] = Σ_l m[s, l] over all agents, for every k: what a relaying hub hands out."""
    messages = _checked(messages)
    received = np.empty(messages.shape)
    if messages.shape[1]:
        _add_all(messages, received)
    return received


def _checked(messages: Floats) -> Floats:
    messages = np.ascontiguousarray(messages, dtype=np.float64)
    if messages.ndim != 3:
        raise ConfideError(f"messages of shape {messages.shape}: must have shape (seeds, agents, width)")
    return messages


class Links:
    """Which links are down in a round.

    A link is down, both ways at once, with probability `drop`; `uniform(seeds, round, edges)` gives the
    draws in [0, 1), (seeds, edges), each a function of its seed, round and edge alone.
    With `graphs`, round t uses graphs[t % len(graphs)]: the other links of `graph`, their union, are down.
    The masks are for `weights`, by default the adjacency: any CSR matrix on these links and the diagonal.
    """

    def __init__(
        self,
        graph: Graph,
        drop: float = 0.0,
        graphs: Sequence[Graph] | None = None,
        *,
        uniform: Uniform | None = None,
        weights: CSR | None = None,
    ) -> None:
        self.graph, self.drop, self._uniform = graph, real("drop", drop, 1.0), uniform
        if self.drop and uniform is None:
            raise ConfideError(
                f"drop={drop:g} with uniform=None: needs a source of draws, uniform(seeds, round, edges)"
            )
        if graphs is not None and Graph.union(graphs) != graph:
            raise ConfideError(f"graph {graph}: must be the union of graphs, {Graph.union(graphs)}")
        links = _codes(graph.edges, graph.size)  # sorted, as the edges are
        self._absent = [~np.isin(links, _codes(g.edges, graph.size)) for g in graphs or [graph]]  # each (E,)
        # (stored entries,): the number of the link; a diagonal entry has number E, a link that never fails.
        matrix = graph.adjacency if weights is None else weights
        if matrix.shape != (graph.size, graph.size):
            raise ConfideError(f"weights of shape {matrix.shape}: must be {graph.size} × {graph.size}, as the graph")
        ends = np.column_stack([np.repeat(np.arange(graph.size), np.diff(matrix.indptr)), matrix.indices])
        codes = _codes(np.sort(ends, axis=1), graph.size)
        self._link = np.searchsorted(links, codes)
        own = ends[:, 0] == ends[:, 1]
        if not np.isin(codes[~own], links).all():
            raise ConfideError(
                f"weights with an entry where there is no link: must be zero outside the links of {graph}"
            )
        self._link[own] = len(links)

    def down(self, t: int, seeds: Sequence[int] | NDArray[np.int64]) -> Mask | None:
        """(seeds, stored entries), true where the link is down in round t; None if no link can be."""
        absent = self._absent[whole("round", t, 0) % len(self._absent)]
        if not self.drop and not absent.any():
            return None
        seeds = np.asarray(seeds, dtype=np.int64)
        lost = np.zeros((len(seeds), len(absent) + 1), dtype=np.bool_)
        lost[:, :-1] = absent
        if self.drop and self._uniform is not None:
            lost[:, :-1] |= self._uniform(seeds, t, len(absent)) < self.drop
        return lost[:, self._link]


def _codes(edges: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    return edges[:, 0].astype(np.int64) * size + edges[:, 1]
