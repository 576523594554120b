"""`confide federation`: write the one public file that all members agree on."""

from __future__ import annotations

import json as jsonlib
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from confide.network.identity import Card
    from confide.node.federation import Federation

federation = typer.Typer(
    help="Agree on who learns what with whom.",
    epilog="Example: confide federation new --help",
    no_args_is_help=True,
    rich_markup_mode=None,
)
GRAPHS = ("ring", "path", "star", "complete")


@federation.callback()
def group() -> None:
    """Agree on who learns what with whom."""


@federation.command()
def new(
    party: Annotated[list[str], typer.Option(metavar="CARD=ROWS", help="A party's card and number of rows; repeat.")],
    epsilon: Annotated[float, typer.Option(min=0.0, help="Cap on what one party may spend.")],
    features: Annotated[int | None, typer.Option(min=1, help="Columns of X; not with --schema.")] = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="Public schema of the columns.")] = None,
    name: Annotated[str, typer.Option(help="What to call it.")] = "federation",
    delta: Annotated[float, typer.Option(min=0.0, max=1.0, help="δ of the cap.")] = 1e-5,
    graph: Annotated[str, typer.Option(help=f"Who talks to whom: {', '.join(GRAPHS)}.")] = "ring",
    edge: Annotated[list[str] | None, typer.Option(metavar="A,B", help="A link, instead of --graph; repeat.")] = None,
    hub: Annotated[Path | None, typer.Option(metavar="CARD", help="The hub, for methods with a server.")] = None,
    algorithm: Annotated[str, typer.Option(help="A method of `confide algorithms`.")] = "CDPADMM",
    set: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter; repeat.")] = None,
    loss: Annotated[str, typer.Option(help="Such as Huber:width=1 or NoisyLabels:epsilon_min=0.5.")] = "Logistic",
    penalty: Annotated[str, typer.Option(help="Such as L2:strength=0.01.")] = "L2:strength=0.01",
    weighting: Annotated[str, typer.Option(help="parties, or rows.")] = "parties",
    row_norm: Annotated[float, typer.Option(help="Rows longer than this are shortened.")] = 1.0,
    intercept: Annotated[bool, typer.Option(help="A constant term.")] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a neighbour in a round.")] = 3600.0,
    test_noise_seed: Annotated[int | None, typer.Option(help="Seeded noise, for tests: protects nobody.")] = None,
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where it goes.")] = Path("federation.toml"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write federation.toml from the members' cards.

    A Gaussian method without a noise gets the least that keeps every party within (ε, δ) as the secure sampler charges
    it. Every member should read the file and compare its hash before running a node.

    Example: confide federation new --party a/card.toml=400 --party b/card.toml=300 --features 4 --epsilon 1
    """
    from confide.cli.node import needed

    needed()
    from confide.node import federation as federations
    from confide.node.toml import dumps
    from confide.problem.schema_io import dumps as schema_toml

    if output.exists():
        raise ValueError(f"{output} exists: choose another --output, or remove it")
    members = [card_and_rows(text) for text in party]
    rows: dict[str, Any] = {"features": features, "row_norm": row_norm, "intercept": intercept}
    if (schema is None) == (features is None):
        raise ValueError("give either --features, for plain numbers, or --schema")
    document: dict[str, Any] = {
        "format": federations.FORMAT, "name": name, "run": secrets.token_hex(8), "timeout": timeout,
        **({} if test_noise_seed is None else {"test_noise_seed": test_noise_seed}),
        "model": {
            "loss": named(loss), "penalty": named(penalty), "weighting": weighting, **({} if schema else rows),
        },
        "algorithm": {"name": algorithm, **pairs(set or [])},
        "budget": {"epsilon": epsilon, "delta": delta},
        "graph": links([card.name for card, _ in members], graph, edge or [], hub),
        "members": [{**card.to_json(), "rows": size} for card, size in members],
    }  # fmt: skip
    if hub is not None:
        from confide.network.identity import load_card

        document["members"].append(load_card(hub).to_json())
    if schema is not None:
        from confide.problem.schema import Schema

        document["schema"] = Schema.load(schema).to_dict()
    found = calibrated(document, federations.from_document(document))
    schema_text = "" if found.schema is None else "\n" + schema_toml(found.schema, prefix=("schema",))
    output.write_text(dumps({k: v for k, v in document.items() if k != "schema"}) + schema_text, encoding="utf-8")
    said = {"federation": str(output), "hash": found.digest.hex(), "guarantee": str(found.guarantee)}
    if json:
        typer.echo(jsonlib.dumps(said, ensure_ascii=False, indent=2))
    else:
        cap = f"at most ε={epsilon:g} at δ={delta:g} each"
        typer.echo(f"{output}: {len(members)} parties, {found.algorithm.rounds} rounds of {algorithm}, {cap}")
        typer.echo(f"guarantee {found.guarantee}\nhash {said['hash']}")


def calibrated(document: dict[str, Any], given: Federation) -> Federation:
    """The federation with the least noise that its cap allows, if it says none."""
    from dataclasses import replace
    from math import sqrt

    import numpy as np

    from confide.algorithms.base import GaussianMethod
    from confide.node import federation as federations
    from confide.privacy.budget import limit

    method = given.algorithm
    if not isinstance(method, GaussianMethod) or "noise" in document["algorithm"]:
        return given
    assert given.epsilon is not None and given.delta is not None
    method = method.calibrated(given.public, given.epsilon, given.delta)
    # nodes charge what the secure sampler proves, in zCDP, whose limit to Σμ² is the lower one
    more = sqrt(limit(given.epsilon, given.delta) / limit(given.epsilon, given.delta, "zcdp")) * (1 + 1e-8)
    noise = np.asarray(replace(method, noise=np.asarray(method.noise) * more).noise)
    document["algorithm"]["noise"] = noise.tolist()
    return federations.from_document(document)


def card_and_rows(text: str) -> tuple[Card, int]:
    from confide.network.identity import load_card

    path, _, rows = text.rpartition("=")
    if not path or not (rows.isascii() and rows.isdigit()):
        raise ValueError(f"--party {text}: must be CARD=ROWS, such as mercy/card.toml=400")
    return load_card(Path(path)), int(rows)


def links(names: list[str], graph: str, edges: list[str], hub: Path | None) -> dict[str, Any]:
    """The table [graph]."""
    from confide.network.graph import Graph
    from confide.network.identity import load_card

    if hub is not None:
        return {"hub": load_card(hub).name}
    if edges:
        return {"edges": [text.split(",") for text in edges]}
    if graph not in GRAPHS:
        raise ValueError(f"--graph {graph}: must be one of {', '.join(GRAPHS)}; or give --edge")
    drawn: Graph = getattr(Graph, graph)(len(names))
    return {"edges": [[names[i], names[j]] for i, j in drawn.edges.tolist()]}


def named(text: str) -> dict[str, Any]:
    """Name:a=1,b=2 as a table; values may be JSON, as in NoisyLabels:loss={"name": "Multinomial", "classes": 3}."""
    name, _, rest = text.partition(":")
    return {"name": name, **pairs(re.split(r",(?![^\[{]*[\]}])", rest) if rest else [])}


def pairs(texts: list[str]) -> dict[str, Any]:
    """name=value, values as JSON writes them."""
    out = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r}: must be name=value")
        try:
            out[name] = jsonlib.loads(value)
        except ValueError:
            out[name] = value
    return out
