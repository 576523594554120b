"""The model of a run, from its journal alone: a function of messages, readable while the node trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confide.network.identity import Identity
from confide.node import daemon
from confide.node import federation as federations
from confide.node.journal import Journal
from confide.node.member import Trainer


def export(home: Path, folder: Path) -> dict[str, Any]:
    """What `confide predict` needs, and what the model cost."""
    federation, identity = federations.load(folder / daemon.FEDERATION), Identity.load(home)
    if identity.card.name == federation.hub:
        raise ValueError(f"{home} is the hub of {federation.name!r}: models are with the parties")
    with Journal(folder, federation.digest, write=False) as journal:
        member = Trainer(federation, identity, journal)
    status = daemon.read_status(folder) or {}
    return {
        "format": 1, "node": identity.card.name, "federation": federation.name, "run": federation.digest.hex(),
        "method": federation.algorithm.name, "guarantee": str(federation.guarantee), "round": member.t,
        "rounds": member.rounds, "spent_epsilon": status.get("spent_epsilon"),
        "loss": repr(federation.loss), "features": federation.features, "intercept": federation.intercept,
        "row_norm": federation.row_norm, "coefficients": member.estimate,
        **({"schema": federation.schema.to_dict()} if federation.schema else {}),
    }  # fmt: skip
