"""A new federation: the document that all members agree on, with a fresh name for its run and the noise it needs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from confide.errors import ConfideError
from confide.files.toml import dumps
from confide.network.graph import Graph
from confide.network.identity import Card
from confide.network.named import check_graph
from confide.node import choosing, outside
from confide.node import federation as federations
from confide.node.calibration import calibrated
from confide.node.federation import Federation
from confide.schema.document import dumps as schema_toml
from confide.schema.schema import Schema


def new_federation(
    members: Sequence[tuple[Card, int]], model: dict[str, Any], algorithm: dict[str, Any], budget: dict[str, float], *,
    name: str = "federation", graph: str = "ring", edges: Sequence[Sequence[str]] = (), hub: Card | None = None,
    schema: Schema | None = None, restarts: int | None = None, timeout: float = 3600.0,
    patience: float | None = None, test_noise_seed: int | None = None, relay: Card | None = None,
) -> tuple[Federation, str]:  # fmt: skip
    """The federation and its file, TOML.

    members        card and number of rows of every party
    model          loss, penalty and weighting; without a schema also features, row_norm and intercept
    algorithm      name and parameters, or "auto" (`choosing`), and rounds if you like; a Gaussian method without a
                   noise gets the least that keeps within `budget`; also of an installed package (`outside`)
    budget         epsilon and delta: what one party may spend at most
    graph          "ring", "path", "star" or "complete", where neither `edges` between names nor a `hub` are given
    restarts       rounds that crashes may make a party pay for twice; None: one in thirty
    timeout        seconds that a node waits for its neighbours in one round, above 0
    patience       seconds of standstill after which members may leave one out as lost; None: a day
    relay          through which members reach those that take no connections
    """
    document: dict[str, Any] = {
        "format": federations.FORMAT, "name": name, "run": secrets.token_hex(8), "timeout": timeout,
        **({} if patience is None else {"patience": patience}),
        **({} if test_noise_seed is None else {"test_noise_seed": test_noise_seed}),
        "model": model, "algorithm": algorithm, "budget": budget,
        "graph": links([card.name for card, _ in members], graph, edges, hub),
        "members": [{**card.to_json(), "rows": rows} for card, rows in members],
    }  # fmt: skip
    if hub is not None:
        document["members"].append(hub.to_json())
    if relay is not None:
        document["relay"] = relay.to_json()
    if schema is not None:
        document["schema"] = schema.to_dict()
    method = algorithm.get("name")
    if method not in (choosing.AUTO, *federations.OURS) and (package := outside.offered(str(method))) is not None:
        document["package"] = package._asdict()
    document["algorithm"] = settled(document, algorithm)
    found = calibrated(document, federations.from_document(document), restarts)
    text = dumps({key: value for key, value in document.items() if key != "schema"})
    return found, text if schema is None else f"{text}\n{schema_toml(schema, prefix=('schema',))}"


def usual_loss(schema: Schema | None) -> dict[str, Any]:
    """The loss for a schema's kind of label, as `confide fit` takes it."""
    if schema is None or schema.label.kind == "binary":
        return {"name": "Logistic"}
    if schema.label.kind == "real":
        return {"name": "Squared"}
    return {"name": "Multinomial", "classes": len(schema.label.values)}


def settled(document: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The table [algorithm] with everything that public quantities decide."""
    name, budget = given.get("name"), document["budget"]
    if name != choosing.AUTO:
        named = federations.from_document({**document, "algorithm": given})
        return choosing.filled(given, named.algorithm, named.public)
    if "hub" in document["graph"]:
        raise ConfideError(f"algorithm {name}: works between neighbours; leave the hub out, or name a method for it")
    public = federations.from_document({**document, "algorithm": {"name": "CDPADMM"}}).public  # any would do
    own = {key: value for key, value in given.items() if key != "name"}
    return choosing.choose(public, budget["epsilon"], budget["delta"], own)


def links(names: list[str], graph: str, edges: Sequence[Sequence[str]], hub: Card | None) -> dict[str, Any]:
    """The table [graph]."""
    if hub is not None:
        return {"hub": hub.name}
    if edges:
        return {"edges": [list(edge) for edge in edges]}
    check_graph(graph, f"graph {graph}", "; or give edges")
    drawn: Graph = getattr(Graph, graph)(len(names))
    return {"edges": [[names[i], names[j]] for i, j in drawn.edges.tolist()]}
