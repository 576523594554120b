"""`Federation`: everything the members agree on before a row is read, in one public, readable file.

    name = "heart"
    run = "…"                        a fresh random text for every run
    timeout = 60.0                   seconds a node waits for its neighbours in one round
    [model]                          loss, penalty, features, row_norm, intercept, weighting
    [algorithm]                      name and parameters
    [budget]                         epsilon, delta: what one party may spend at most
    [graph]                          edges between names; or hub = "name" for methods with a server
    [[members]]                      name, address, rows, fingerprint and certificate: the card, and the public M_k
    [schema]                         optional: columns, ranges, categories and label; then no features and row_norm

Its hash is the run's identity: every message carries it, and neighbours compare it before anyone reads a row. Comments,
blanks and the order of fields do not matter.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from confide.algorithms import REGISTRY, Algorithm
from confide.network.graph import Graph
from confide.network.identity import Card
from confide.privacy import Guarantee, Label
from confide.problem import losses, penalties
from confide.problem.checks import finite, whole
from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Public
from confide.problem.schema import Schema

FORMAT = 1
SEEDED = "test noise: its seed is public, it protects nobody"
TOP = {"format", "name", "run", "timeout", "model", "algorithm", "graph", "members"}
MODEL = {"loss", "penalty", "weighting"}
ROWS = {"features", "row_norm", "intercept"}  # a schema says these
MEMBER = {"name", "address", "fingerprint", "certificate"}
LARGEST_TIMEOUT = 7 * 86400.0


@dataclass(frozen=True, eq=False)
class Federation:
    """Agents are numbered in the order of the members, the hub left out."""

    name: str
    digest: bytes  # the run's identity
    cards: dict[str, Card]  # of all members, the hub last
    sizes: dict[str, int]  # M_k of the parties
    edges: tuple[tuple[str, str], ...]
    hub: str | None
    algorithm: Algorithm
    loss: Loss
    penalty: Penalty
    features: int
    row_norm: float | None
    intercept: bool
    weighting: str
    epsilon: float | None
    delta: float | None
    timeout: float
    test_noise_seed: int | None
    schema: Schema | None

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @cached_property
    def graph(self) -> Graph:
        """Between the agents; a method with a hub has no links of its own, all take part in every sum."""
        if self.hub is not None:
            return Graph.complete(len(self.parties))
        number = {name: k for k, name in enumerate(self.parties)}
        return Graph.from_edges([(number[a], number[b]) for a, b in self.edges], names=self.parties)

    @cached_property
    def public(self) -> Public:
        sizes = np.array(list(self.sizes.values()), np.int64)
        return Public(
            self.graph, sizes, self.loss, self.penalty, self.features, self.intercept, self.weighting,
            self.row_norm, np.arange(len(sizes)),
        )  # fmt: skip

    @cached_property
    def guarantee(self) -> Guarantee:
        if self.test_noise_seed is not None:
            return Guarantee(Label.NONE, SEEDED)
        return self.algorithm.guarantee(self.public)

    def neighbours(self, name: str) -> dict[str, Card]:
        """Whom a member talks to: its neighbours, or the hub, and the hub to all."""
        if name not in self.cards:
            raise ValueError(f"{name!r} is not a member of {self.name!r}: the members are {', '.join(self.cards)}")
        if self.hub is not None:
            others = self.parties if name == self.hub else (self.hub,)
        else:
            others = tuple(self.parties[l] for l in self.graph.neighbours(self.parties.index(name)))
        return {other: self.cards[other] for other in others}


def load(path: str | Path) -> Federation:
    """The federation in a file; every mistake is one line."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML: {error}") from None
    try:
        return from_document(document)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def from_document(document: Mapping[str, Any]) -> Federation:
    """The federation that a parsed file describes."""
    top = _table(document, "federation", TOP, {"budget", "schema", "test_noise_seed"})
    if top["format"] != FORMAT:
        raise ValueError(f"format {top['format']!r}: this program reads format {FORMAT}")
    for field in ("name", "run"):
        if not isinstance(top[field], str) or not top[field]:
            raise ValueError(f"{field}={top[field]!r}: must be a text, not empty")
    if not (finite(top["timeout"]) and 0 < top["timeout"] <= LARGEST_TIMEOUT):
        raise ValueError(f"timeout={top['timeout']!r}: must be seconds above 0, at most {LARGEST_TIMEOUT:.0f}")
    seed = top.get("test_noise_seed")
    if seed is not None and not (whole(seed) and 0 <= seed < 2**63):
        raise ValueError(f"test_noise_seed={seed!r}: must be a whole number of at least 0")
    schema = Schema.from_dict(top["schema"]) if "schema" in top else None
    model = _table(top["model"], "model", MODEL if schema else MODEL | {"features"}, set() if schema else ROWS)
    cards, sizes, edges, hub = _members(top)
    budget = _table(top["budget"], "budget", {"epsilon", "delta"}) if "budget" in top else {}
    for field, most in (("epsilon", np.inf), ("delta", 1.0)):
        if budget and not (finite(budget[field]) and 0 < budget[field] < most):
            raise ValueError(f"budget.{field}={budget[field]!r}: must be above 0" + (", below 1" * (most == 1.0)))
    out = Federation(
        top["name"], digest(document, schema), cards, sizes, edges, hub, _algorithm(top["algorithm"]),
        build(model["loss"], "model.loss", losses.ALL), build(model["penalty"], "model.penalty", penalties.ALL),
        len(schema.features) if schema else model["features"], schema.row_norm if schema else model.get("row_norm"),
        schema.intercept if schema else model.get("intercept", False), model["weighting"], budget.get("epsilon"),
        budget.get("delta"), float(top["timeout"]), seed, schema,
    )  # fmt: skip
    _check(out)
    return out


def digest(document: Mapping[str, Any], schema: Schema | None = None) -> bytes:
    """SHA-256 of the canonical form; a schema, whose columns have an order, has a canonical form of its own."""
    plain = {**document, "schema": schema.hash()} if schema else document
    try:
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("values must be texts, finite numbers, true or false, lists and tables") from None
    return hashlib.sha256(text.encode()).digest()


def build(table: Any, where: str, kinds: Any) -> Any:
    """A loss, penalty or algorithm from its name and parameters."""
    if not isinstance(table, dict) or "name" not in table:
        raise ValueError(f'{where}: must be a table with a name, such as {{ name = "{kinds[0].__name__}" }}')
    known = {kind.__name__: kind for kind in kinds}
    if table["name"] not in known:
        raise ValueError(f"{where}: unknown name {table['name']!r}: known are {', '.join(known)}")
    kind = known[table["name"]]
    given = {name: value for name, value in table.items() if name != "name"}
    if unknown := given.keys() - {f.name for f in fields(kind)}:
        raise ValueError(f"{where}: {table['name']} has no parameter {min(unknown)!r}")
    return kind(**{n: build(v, f"{where}.{n}", kinds) if isinstance(v, dict) else v for n, v in given.items()})


def _algorithm(table: Any) -> Algorithm:
    algorithm: Algorithm = build(table, "algorithm", tuple(REGISTRY.values()))
    if algorithm.topology == "central":
        raise ValueError(f"algorithm: {algorithm.name} pools all rows: it cannot run on nodes")
    return algorithm


def _members(top: Mapping[str, Any]) -> tuple[dict[str, Card], dict[str, int], tuple[tuple[str, str], ...], str | None]:
    if not isinstance(top["members"], list):
        raise ValueError("members: must be a list of tables, [[members]]")
    graph = _table(top["graph"], "graph", set(), {"edges", "hub"})
    hub = graph.get("hub")
    cards: dict[str, Card] = {}
    sizes: dict[str, int] = {}
    for number, entry in enumerate(top["members"], start=1):
        where = f"members[{number}]"
        member = _table(entry, where, MEMBER, {"rows"})
        card = Card.from_text(**{field: member[field] for field in MEMBER})
        if card.name in cards or any(card.digest == other.digest for other in cards.values()):
            raise ValueError(f"{where}: {card.name!r} is there twice")
        cards[card.name] = card
        if card.name != hub:
            if not (whole(member.get("rows")) and member["rows"] >= 1):
                raise ValueError(f"{where}: {card.name!r}: rows={member.get('rows')!r}: must be a whole number from 1")
            sizes[card.name] = int(member["rows"])
        elif "rows" in member:
            raise ValueError(f"{where}: the hub {card.name!r} holds no rows: leave them out")
    if hub is not None and hub not in cards:
        raise ValueError(f"graph.hub={hub!r}: must be one of the members, {', '.join(cards)}")
    if len(sizes) < 2:
        raise ValueError(f"{len(sizes)} party: learning over a network needs at least 2")
    edges = tuple(tuple(edge) if isinstance(edge, list) else () for edge in graph.get("edges", ()))
    for edge in edges:
        if len(edge) != 2 or not all(name in sizes for name in edge):
            raise ValueError(f"graph.edges: {list(edge)!r}: must be a pair of the parties {', '.join(sizes)}")
    if (hub is None) == (not edges):
        raise ValueError("graph: must have either edges or a hub")
    return cards, sizes, edges, hub  # type: ignore[return-value]


def _check(federation: Federation) -> None:
    """What no single field shows: that all of them fit together."""
    f = federation
    if (f.hub is None) != (f.algorithm.topology == "peer"):
        needs = "edges and no hub" if f.algorithm.topology == "peer" else "a hub and no edges"
        raise ValueError(f"graph: {f.algorithm.name} needs {needs}")
    if not (whole(f.features) and f.features >= 1):
        raise ValueError(f"model.features={f.features!r}: must be a whole number from 1")
    if f.row_norm is not None and not (finite(f.row_norm) and f.row_norm > 0):
        raise ValueError(f"model.row_norm={f.row_norm!r}: must be a finite number above 0")
    if not isinstance(f.intercept, bool):
        raise ValueError(f"model.intercept={f.intercept!r}: must be true or false")
    if f.weighting not in ("parties", "rows"):
        raise ValueError(f"model.weighting={f.weighting!r}: must be 'parties' or 'rows'")
    f.algorithm.check(f.public)
    f.algorithm.events(f.public)  # a parameter for too few agents shows here
    if f.epsilon is None and f.guarantee.label != Label.NONE:
        raise ValueError("budget: a private method needs a cap, epsilon and delta")


def _table(value: Any, where: str, needed: set[str], optional: set[str] | frozenset[str] = frozenset()) -> Any:
    """`value` as a table with these fields and no others."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: must be a table")
    if missing := needed - value.keys():
        raise ValueError(f"{where}: {min(missing)!r} is missing")
    if unknown := value.keys() - needed - optional:
        raise ValueError(f"{where}: unknown field {min(unknown)!r}: known are {', '.join(sorted(needed | optional))}")
    return value
