"""Who takes part in a federation: [[members]], [graph] and [relay] of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confide.errors import ConfideError
from confide.files.keys import strict
from confide.files.values import shown
from confide.network.identity import BY_RELAY, FIELDS, Card
from confide.problem.checks import whole

MEMBER = FIELDS


def read_members(top: Mapping[str, Any]
                 ) -> tuple[dict[str, Card], dict[str, int], tuple[tuple[str, str], ...], str | None]:  # fmt: skip
    """Cards of all, rows of the parties, links between them, and the hub, if there is one."""
    if not isinstance(top["members"], list):
        raise ConfideError(f"members={shown(top['members'])}: must be a list of tables, [[members]]")
    graph = strict(top["graph"], "graph", (), ("edges", "hub"))
    hub, given = graph.get("hub"), graph.get("edges", [])
    if not (hub is None or isinstance(hub, str)) or not isinstance(given, list):
        raise ConfideError(f"graph={shown(graph)}: must have a list of edges, or a name as its hub")
    cards: dict[str, Card] = {}
    sizes: dict[str, int] = {}
    for number, entry in enumerate(top["members"], start=1):
        where = f"members[{number}]"
        member = strict(entry, where, MEMBER, ("rows",))
        card = Card.from_text(**{field: member[field] for field in MEMBER})
        if card.name in cards or any(card.digest == other.digest for other in cards.values()):
            raise ConfideError(f"{where}: {card.name!r} is there twice: must be there once, with a key of its own")
        cards[card.name] = card
        if card.name != hub:
            if not (whole(member.get("rows")) and member["rows"] >= 1):
                raise ConfideError(
                    f"{where}: {card.name!r}: rows={member.get('rows')!r}: must be a whole number from 1"
                )
            sizes[card.name] = int(member["rows"])
        elif "rows" in member:
            raise ConfideError(f"{where}: the hub {card.name!r} holds no rows: leave them out")
    if hub is not None and hub not in cards:
        raise ConfideError(f"graph.hub={hub!r}: must be one of the members, {', '.join(cards)}")
    if len(sizes) < 2:
        raise ConfideError(f"{len(sizes)} party: learning over a network needs at least 2")
    edges = tuple(tuple(edge) if isinstance(edge, list) else () for edge in given)
    for edge in edges:
        if len(edge) != 2 or not all(isinstance(name, str) and name in sizes for name in edge):
            raise ConfideError(f"graph.edges: {list(edge)!r}: must be a pair of the parties {', '.join(sizes)}")
    if (hub is None) == (not edges):
        has = "neither edges nor a hub" if hub is None else "both edges and a hub"
        raise ConfideError(f"graph: has {has}: must have one of them")
    return cards, sizes, edges, hub  # type: ignore[return-value]


def read_relay(top: Mapping[str, Any], cards: Mapping[str, Card]) -> Card | None:
    """The relay's card; who takes no connections needs one."""
    if "relay" not in top:
        alone = next((name for name, card in cards.items() if card.address == BY_RELAY), None)
        if alone is not None:
            raise ConfideError(f"relay: {alone!r} takes no connections, so the federation must name a relay")
        return None
    card = Card.from_text(**strict(top["relay"], "relay", MEMBER))
    if card.address == BY_RELAY:
        raise ConfideError(f"relay: address {card.address!r}: must be host:port, where members reach it")
    return card
