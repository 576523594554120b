"""Who talks to whom: a connected, undirected, simple graph on the agents 0, ..., size - 1.

SciPy, networkx and matplotlib are imported where they are used, so that `import confide` stays fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import ConfideError
from confide.network import generators
from confide.network.generators import Ints, few, parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CSR = Any  # scipy.sparse.csr_array; SciPy ships no types
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A connected undirected graph. A link listed twice, or in both directions, is one link.

    size     agents, at least 2, numbered from 0
    edges    (E, 2) pairs of agents, no agent linked to itself
    names    of the agents, all different; None where numbers do
    """

    size: int
    edges: Ints  # (E, 2): i < j in each row, rows sorted, read-only
    names: tuple[str, ...] | None = None  # of the agents, all different

    def __post_init__(self) -> None:
        size, edges = generators.parties(self.size), generators.links(self.edges)
        names = None if self.names is None else tuple(self.names)
        if names is not None and not (
            len(names) == len(set(names)) == size and all(isinstance(name, str) and name for name in names)
        ):
            raise ConfideError(f"names={few(names)}: must be {size} different non-empty strings")
        for i, j in edges[((edges < 0) | (edges >= size)).any(axis=1)][:1]:
            raise ConfideError(f"link ({i}, {j}) is out of range: the agents are 0 to {size - 1}")
        for i, j in edges[edges[:, 0] == edges[:, 1]][:1]:
            raise ConfideError(f"link ({i}, {j}) is a self loop: a link joins two different agents")
        edges = generators.distinct(size, edges)
        edges.setflags(write=False)
        if size > 1_000_000 and len(edges) < size - 1:  # a mistyped agent must not cost gigabytes
            raise ConfideError(f"the graph is disconnected: {len(edges)} links cannot join {size} agents")
        if (component := generators.components(size, edges)).any():
            agents = names or range(size)
            raise ConfideError(f"the graph is disconnected: {parts(component, agents)}; all must be joined")
        for field, value in (("size", size), ("edges", edges), ("names", names)):
            object.__setattr__(self, field, value)

    # Constructors; the same seed gives the same graph.

    @classmethod
    def from_edges(
        cls, edges: Iterable[Sequence[int]] | Ints, size: int | None = None, names: Sequence[str] | None = None
    ) -> Graph:
        """Pairs of agents. Without `size`: as many agents as names, else up to the largest number."""
        pairs = generators.links(edges)
        if size is None:
            size = len(names) if names is not None else int(pairs.max(initial=0)) + 1
        return cls(size, pairs, None if names is None else tuple(names))

    @classmethod
    def from_networkx(cls, graph: Any) -> Graph:
        """Nodes 0, ..., n - 1 keep their numbers; others become agents in node order, named str(node)."""
        if not hasattr(graph, "is_directed") or graph.is_directed():
            raise ConfideError(f"{type(graph).__name__}: from_networkx takes an undirected networkx graph")
        nodes = list(graph.nodes)
        numbered = set(nodes) == set(range(len(nodes)))
        agent = {node: node if numbered else k for k, node in enumerate(nodes)}
        return cls(
            len(nodes),
            generators.links((agent[i], agent[j]) for i, j in graph.edges()),
            None if numbered else tuple(map(str, nodes)),
        )

    @classmethod
    def ring(cls, n: int) -> Graph:
        return cls(n, generators.ring(n))

    @classmethod
    def path(cls, n: int) -> Graph:
        return cls(n, generators.path(n))

    @classmethod
    def star(cls, n: int) -> Graph:
        """Agent 0 is the centre."""
        return cls(n, generators.star(n))

    @classmethod
    def complete(cls, n: int) -> Graph:
        return cls(n, generators.complete(n))

    @classmethod
    def grid(cls, rows: int, columns: int) -> Graph:
        """Agent r * columns + c stands in row r and column c."""
        pairs = generators.grid(rows, columns)
        return cls(rows * columns, pairs)

    @classmethod
    def random(cls, n: int, edges: int, seed: int = 0) -> Graph:
        """A uniform random spanning tree and uniformly chosen further links, `edges` links in all."""
        return cls(n, generators.random(n, edges, seed))

    @classmethod
    def erdos_renyi(cls, n: int, p: float, seed: int = 0) -> Graph:
        """Every pair is linked with probability p; redrawn until connected."""
        return cls(n, generators.erdos_renyi(n, p, seed))

    @classmethod
    def geometric(cls, n: int, radius: float, seed: int = 0) -> Graph:
        """Uniform points of the unit square, linked within `radius`; redrawn until connected."""
        return cls(n, generators.geometric(n, radius, seed))

    @classmethod
    def small_world(cls, n: int, neighbours: int, rewire: float, seed: int = 0) -> Graph:
        """Watts-Strogatz: links to the nearest `neighbours` on a ring, rewired with probability `rewire`."""
        return cls(n, generators.small_world(n, neighbours, rewire, seed))

    @classmethod
    def union(cls, graphs: Iterable[Graph]) -> Graph:
        """The links of all the graphs, which must have the same agents."""
        graphs = list(graphs)
        if len({(g.size, g.names) for g in graphs}) != 1:
            raise ConfideError(f"union of {few(graphs)}: must be one or more graphs on the same agents")
        return cls(graphs[0].size, np.vstack([g.edges for g in graphs]), graphs[0].names)

    def relabel(self, permutation: ArrayLike) -> Graph:
        """Agent k becomes agent permutation[k] and takes its name along."""
        new = np.asarray(permutation)
        if new.shape != (self.size,) or not np.array_equal(np.sort(new), np.arange(self.size)):
            raise ConfideError(f"permutation={few(new.tolist())}: must hold 0 to {self.size - 1} once each")
        names = None if self.names is None else tuple(self.names[k] for k in np.argsort(new))
        return Graph(self.size, new[self.edges], names)

    # Matrices: CSR with sorted indices, read-only because they are kept.

    @cached_property
    def degrees(self) -> Ints:
        """(size,) number of neighbours."""
        degrees = np.bincount(self.edges.ravel(), minlength=self.size)
        degrees.setflags(write=False)
        return degrees

    @cached_property
    def adjacency(self) -> CSR:
        """A: one for every link, both ways."""
        return self._symmetric(np.ones(len(self.edges)))

    @cached_property
    def laplacian(self) -> CSR:
        """D - A"""
        return self._symmetric(-np.ones(len(self.edges)), self.degrees)

    @cached_property
    def signless_laplacian(self) -> CSR:
        """D + A"""
        return self._symmetric(np.ones(len(self.edges)), self.degrees)

    def metropolis(self) -> CSR:
        """Doubly stochastic W: w_ij = 1 / (1 + max(d_i, d_j)) on links; the diagonal takes the rest."""
        weights = 1.0 / (1.0 + self.degrees[self.edges].max(axis=1))
        given = np.bincount(self.edges.ravel(), np.repeat(weights, 2), self.size)
        return self._symmetric(weights, 1.0 - given)

    def _symmetric(self, links: Floats, diagonal: NDArray[Any] | None = None) -> CSR:
        from scipy.sparse import csr_array

        i, j = self.edges.T.astype(np.int32)  # the index type of the kernels
        own = np.arange(0 if diagonal is None else self.size, dtype=np.int32)
        values = np.concatenate([links, links, own if diagonal is None else diagonal]).astype(np.float64)
        rows, columns = np.concatenate([i, j, own]), np.concatenate([j, i, own])
        matrix = csr_array((values, (rows, columns)), shape=(self.size, self.size))
        matrix.sort_indices()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.setflags(write=False)
        return matrix

    # Properties; the spectra and the diameter are dense computations, O(size³).

    @cached_property
    def algebraic_connectivity(self) -> float:
        """The second smallest eigenvalue of the Laplacian."""
        return float(np.linalg.eigvalsh(self.laplacian.toarray())[1])

    @cached_property
    def spectral_gap(self) -> float:
        """One minus the second largest absolute eigenvalue of the Metropolis weights."""
        return float(1.0 - np.sort(np.abs(np.linalg.eigvalsh(self.metropolis().toarray())))[-2])

    @cached_property
    def diameter(self) -> int:
        """Links between the two agents furthest apart."""
        from scipy.sparse.csgraph import shortest_path

        return int(shortest_path(self.adjacency, unweighted=True).max())

    def neighbours(self, k: int) -> NDArray[np.int32]:
        """The agents linked to agent k, sorted."""
        k = self._agent(k)
        start, stop = self.adjacency.indptr[k : k + 2]
        return np.asarray(self.adjacency.indices[start:stop])

    def has_edge(self, i: int, j: int) -> bool:
        """Whether agents i and j are linked."""
        return self._agent(j) in self.neighbours(i)

    def _agent(self, k: int) -> int:
        if generators.whole("agent", k, 0) >= self.size:
            raise ConfideError(f"there is no agent {k}: the agents are 0 to {self.size - 1}")
        return k

    def to_networkx(self) -> Any:
        """A networkx.Graph whose nodes are the names, or the numbers where there are none."""
        import networkx as nx

        label = self.names or range(self.size)
        graph = nx.Graph()
        graph.add_nodes_from(label)
        graph.add_edges_from((label[i], label[j]) for i, j in self.edges.tolist())
        return graph

    def draw(
        self,
        path: str | PathLike[str] | None = None,
        ax: Axes | None = None,
        labels: Sequence[str] | None = None,
        values: ArrayLike | None = None,
        title: str | None = None,
    ) -> Figure:
        """Draw on `ax` or a new figure, coloured by one value per agent; save as .png, .svg or .pdf."""
        from confide.network.drawing import draw

        return draw(self, path, ax, labels, values, title)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.size, self.edges.tobytes(), self.names

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self.size, self.edges, self.names)  # copies are read-only too and carry no caches

    def __repr__(self) -> str:
        return f"Graph({self.size} agents, {len(self.edges)} link{'s' * (len(self.edges) > 1)})"
