"""A new federation: the document that all members agree on, with a fresh name for its run and the noise it needs.

`new_federation` is one that learns, `new_evaluation` one that measures a model on rows set aside before training.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from confide.algorithms import JointTally, SummedMethod
from confide.errors import ConfideError
from confide.files.parts import to_table
from confide.files.toml import dumps
from confide.network.graph import Graph
from confide.network.identity import Card
from confide.network.named import check_graph
from confide.node import choosing, outside
from confide.node import federation as federations
from confide.node.calibration import calibrated
from confide.node.evaluated import Evaluated, label_values
from confide.node.evaluated import table as evaluation_table
from confide.node.federation import Federation
from confide.problem.losses import Loss, Multinomial
from confide.runs.model import Model
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
    return _calibrated(document, schema, restarts)


def _calibrated(document: dict[str, Any], schema: Schema | None, restarts: int | None) -> tuple[Federation, str]:
    """The federation with its noise, and its file."""
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


# --- measuring a model ------------------------------------------------------------------------------------------------


def new_evaluation(
    learned: Federation, model: Model, rows: Mapping[str, int], budget: dict[str, float], scores: Sequence[float], *,
    collusion: int | None = None, restarts: int = 0,
) -> tuple[Federation, str]:  # fmt: skip
    """A federation of one round that measures a public model, and its file.

    learned      whose members, links, schema and bounds it takes
    rows         how many held-out rows each party has, by name
    scores       borders of the cells of a margin, of two classes
    collusion    how many may pool what they know; None: as many as in `learned`
    restarts     times that a crash may make a party pay for its round again
    """
    _check_held_out(learned, rows)
    _check_model(learned, model)
    loss = _labels(model)
    measured = evaluation_table(model.coefficients, model.intercept, model.classes, tuple(scores))
    asked = Evaluated.from_document(measured, loss, len(model.features), model.classes)
    before = learned.document
    kept = {key: before[key] for key in ("timeout", "patience", "graph", "relay", "schema") if key in before}
    document = {
        "format": federations.FORMAT, "name": f"{learned.name} evaluated", "run": secrets.token_hex(8), **kept,
        "model": {**before["model"], "loss": to_table(loss), "weighting": "rows"},
        "algorithm": {"name": JointTally.__name__, **asked.parameters,
                      "collusion": trusted(learned) if collusion is None else collusion},
        "budget": budget, "evaluation": measured,
        "members": [{**member, "rows": rows[member["name"]]} for member in before["members"]],
    }  # fmt: skip
    return _calibrated(document, learned.schema, restarts)


def trusted(federation: Federation) -> int:
    """How many of its parties may collude: as it says, or all others where its method trusts nobody."""
    method = federation.algorithm
    return method.colluders(federation.public) if isinstance(method, SummedMethod) else len(federation.parties) - 1


def _check_held_out(learned: Federation, rows: Mapping[str, int]) -> None:
    if learned.hub is not None:
        raise ConfideError(f"{learned.name}: has a hub, {learned.hub}: a private sum needs links between the parties")
    for name in rows:
        if name not in learned.parties:
            raise ConfideError(f"rows of {name!r}: must be one of the parties {', '.join(learned.parties)}")
    if missing := [name for name in learned.parties if name not in rows]:
        raise ConfideError(f"no rows of {', '.join(missing)}: every party must say how many it has set aside")


def _check_model(learned: Federation, model: Model) -> None:
    """One line unless the model answers rows as this federation reads them."""
    ours, theirs = (None if one is None else one.hash() for one in (learned.schema, model.schema))
    if ours != theirs:
        which = "a schema, the federation none" if ours is None else "another schema, or none: must be the federation's"
        raise ConfideError(f"the model has {which}")
    if len(model.features) != learned.features:
        raise ConfideError(f"the model has {len(model.features)} features: must be {learned.features}")
    if model.row_norm != learned.row_norm:
        raise ConfideError(f"the model clips rows to norm {model.row_norm}: must be {learned.row_norm}")
    known = label_values(learned.schema, learned.loss)
    if model.classes != known:
        given, wanted = ("a number" if one is None else f"one of {', '.join(one)}" for one in (model.classes, known))
        raise ConfideError(f"the model answers {given}: must be {wanted}")


def _labels(model: Model) -> Loss:
    """The loss whose kind of labels the model answers with; a vector for each class is as of several logits."""
    base, outputs = model.loss.base, len(model.coefficients)
    return base if base.outputs == outputs else Multinomial(outputs)


def evaluation_noise(found: Federation) -> float:
    """Its deviation on a count, in rows; where the label is a number on the mean loss, in halves of its range."""
    assert found.evaluation is not None and isinstance(found.algorithm, JointTally)
    deviation = float(found.algorithm.sum_scale(1, found.public)[0, 0])
    return deviation if found.evaluation.classes is None else deviation * sum(found.sizes.values())
