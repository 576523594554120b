"""The links of the named families of graphs, as (E, 2) arrays of agents; Graph checks and sorts them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError

Ints = NDArray[np.int64]
TRIES = 200  # draws before a random graph counts as too sparse to connect


def ring(n: int) -> Ints:
    k = np.arange(parties(n))
    return np.column_stack([k, (k + 1) % n])


def path(n: int) -> Ints:
    k = np.arange(parties(n) - 1)
    return np.column_stack([k, k + 1])


def star(n: int) -> Ints:
    k = np.arange(1, parties(n))
    return np.column_stack([np.zeros_like(k), k])


def complete(n: int) -> Ints:
    return decode(np.arange(pairs(n)))


def grid(rows: int, columns: int) -> Ints:
    k = np.arange(whole("rows", rows, 1) * whole("columns", columns, 1)).reshape(rows, columns)
    across = np.column_stack([k[:, :-1].ravel(), k[:, 1:].ravel()])
    return np.vstack([across, np.column_stack([k[:-1].ravel(), k[1:].ravel()])])


def random(n: int, edges: int, seed: int) -> Ints:
    """A uniform random spanning tree (a random Prüfer sequence) and uniformly chosen further links."""
    import networkx as nx

    most = pairs(n)
    if not n - 1 <= whole("edges", edges, 0) <= most:
        raise ConfideError(f"edges={edges}: must be from {n - 1} (a tree) to {most} for {n} agents")
    rng = np.random.default_rng(whole("seed", seed, 0))
    tree = links(nx.from_prufer_sequence(rng.integers(n, size=n - 2).tolist()).edges())
    # At most n - 1 of `edges` different pairs lie in the tree, so the others are enough.
    drawn = rng.choice(most, size=edges, replace=False)
    new = drawn[~np.isin(drawn, encode(tree))][: edges - (n - 1)]
    return np.vstack([tree, decode(new)])


def erdos_renyi(n: int, p: float, seed: int) -> Ints:
    most, p = pairs(n), real("p", p, 1.0)
    return connected(
        n,
        lambda rng: decode(rng.choice(most, size=rng.binomial(most, p), replace=False)),
        seed,
        f"p={p:g} is too small",
    )


def geometric(n: int, radius: float, seed: int) -> Ints:
    from scipy.spatial import KDTree

    n, radius = parties(n), real("radius", radius, np.inf)
    return connected(
        n,
        lambda rng: KDTree(rng.random((n, 2))).query_pairs(radius, output_type="ndarray"),
        seed,
        f"radius={radius:g} is too small",
    )


def small_world(n: int, neighbours: int, rewire: float, seed: int) -> Ints:
    import networkx as nx

    # networkx takes an odd number and silently uses one less.
    if not 2 <= whole("neighbours", neighbours, 0) < parties(n) or neighbours % 2:
        raise ConfideError(f"neighbours={neighbours}: must be even, at least 2 and below the {n} agents")
    rewire = real("rewire", rewire, 1.0)
    return connected(
        n,
        lambda rng: links(nx.watts_strogatz_graph(n, neighbours, rewire, seed=rng).edges()),
        seed,
        f"neighbours={neighbours} is too small",
    )


def connected(n: int, draw: Callable[[np.random.Generator], Ints], seed: int, trouble: str) -> Ints:
    """The first connected graph of a seeded sequence of draws."""
    rng = np.random.default_rng(whole("seed", seed, 0))
    for _ in range(TRIES):
        edges = draw(rng)
        if len(edges) >= n - 1 and components(n, edges).max() == 0:
            return edges.astype(np.int64)
    raise ConfideError(f"{trouble}: none of {TRIES} random graphs on {n} agents was connected")


def components(n: int, edges: Ints) -> NDArray[np.int32]:
    """(n,): the number of the component of every agent, in order of its first agent."""
    first = np.arange(n)  # an agent joined to this one, with a smaller number if there is one
    i, j = edges[:, 0], edges[:, 1]
    while True:
        here, there = first[i], first[j]
        apart = here != there
        if not apart.any():
            return np.unique(first, return_inverse=True)[1].astype(np.int32)
        i, j, here, there = i[apart], j[apart], here[apart], there[apart]
        np.minimum.at(first, np.maximum(here, there), np.minimum(here, there))
        while not np.array_equal(further := first[first], first):  # half as far each time
            first = further


def distinct(n: int, edges: Ints) -> Ints:
    """Every pair once, i < j in each, in order."""
    if n >= 1 << 31:  # i·n + j is no number of 64 bits
        return np.unique(np.sort(edges, axis=1), axis=0)
    codes = np.sort(edges.min(axis=1) * n + edges.max(axis=1))  # rows take several times as long to sort
    return np.column_stack(divmod(codes[np.diff(codes, prepend=-1) > 0], n))


def encode(edges: Ints) -> Ints:
    """Number the pairs {i, j}: 0 is {0, 1}, 1 is {0, 2}, 2 is {1, 2}, 3 is {0, 3}, ..."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    return np.asarray(high * (high - 1) // 2 + low)


def decode(codes: Ints) -> Ints:
    high = ((1 + np.sqrt(1 + 8 * codes)) / 2).astype(np.int64)  # exact while n < 10⁷
    return np.column_stack([codes - high * (high - 1) // 2, high])


def links(edges: Iterable[Any]) -> Ints:
    """Pairs of agents as an (E, 2) array."""
    if isinstance(edges, np.ndarray):
        array, shown = edges, f"{edges.dtype} of shape {edges.shape}"
    else:
        given = list(edges) if isinstance(edges, Iterable) else [edges]
        shown = few(given)
        try:
            array = np.asarray([tuple(edge) for edge in given])
        except (TypeError, ValueError):
            array = np.empty(1)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ConfideError(f"edges={shown}: must be pairs of whole numbers (i, j)")
    return array.astype(np.int64)


def whole(what: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ConfideError(f"{what}={value!r}: must be a whole number of at least {least}")
    return number


def real(what: str, value: Any, most: float) -> float:
    number = float(value) if isinstance(value, int | float | np.integer | np.floating) else np.nan
    if not 0 <= number <= most:
        raise ConfideError(f"{what}={value!r}: must be a number from 0 to {most:g}")
    return number


def parties(n: Any) -> int:
    if whole("the number of parties", n, 0) < 2:
        raise ConfideError(f"{n} {'party' if n == 1 else 'parties'}: a network needs at least 2")
    return operator.index(n)


def pairs(n: Any) -> int:
    return parties(n) * (operator.index(n) - 1) // 2


def few(items: Collection[object], most: int = 6) -> str:
    """The first few, on one line."""
    more = f", ... {len(items)} in all" if len(items) > most else ""
    return "{" + ", ".join(map(repr, islice(items, most))) + more + "}"


def parts(component: NDArray[np.int32], agents: Sequence[object]) -> str:
    """The first few components, by the names of their agents."""
    count = int(component.max()) + 1
    named = [few([agents[int(k)] for k in np.flatnonzero(component == c)]) for c in range(min(count, 4))]
    return "components " + ", ".join(named) + (f" and {count - 4} more" if count > 4 else "")
