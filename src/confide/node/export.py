"""The model of a run, from its journal alone: a function of messages, readable while the node trains."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path

import numpy as np

from confide.model import NOT_COVERED, Model, Spent
from confide.network.identity import Identity
from confide.node import daemon
from confide.node import federation as federations
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.member import Trainer
from confide.privacy import Event, Label, totals
from confide.privacy.budget import of_agent
from confide.privacy.secure import charge


def export(home: Path, folder: Path) -> Model:
    """What `confide predict` needs, and what the model cost."""
    federation, identity = federations.load(folder / daemon.FEDERATION), Identity.load(home)
    if identity.card.name == federation.hub:
        raise ValueError(f"{home} is the hub of {federation.name!r}: models are with the parties")
    with Journal(folder, federation.digest, write=False) as journal:
        member = Trainer(federation, identity, journal)
    status = daemon.read_status(folder) or {}
    estimate = np.array(member.estimate).reshape(federation.loss.outputs, -1)
    constant = estimate[:, -1] if federation.intercept else np.zeros(len(estimate))
    schema = federation.schema
    return Model(
        federation.loss,
        schema.features if schema else tuple(f"x{j + 1}" for j in range(federation.features)),
        estimate[:, : federation.features], constant, classes(federation), federation.row_norm, schema,
        spent(federation, member.party.k, member.sent),
        {
            "node": identity.card.name, "federation": federation.name, "run": federation.digest.hex(),
            "parties": len(federation.parties), "round": member.t, "rounds": member.rounds,
            "population_epsilon": status.get("spent_epsilon"),  # of all runs on the same people, by the ledger
        },
    )  # fmt: skip


def classes(federation: Federation) -> tuple[str, ...] | None:
    """The label's values; of plain numbers those that the loss takes."""
    if federation.schema is not None:
        return None if federation.schema.label.kind == "real" else federation.schema.label.values
    match federation.loss.labels:
        case "sign":
            return ("-1", "1")
        case "class":
            return tuple(str(k) for k in range(federation.loss.outputs))
    return None


def spent(federation: Federation, k: int, sent: int) -> Spent:
    """What the rounds that party k has sent cost a row of its own, as its purse pays for them."""
    promise = federation.guarantee
    cost = exact = None
    if promise.label != Label.NONE and federation.delta is not None:
        mine = federation.public.at(k)
        widths = federation.algorithm.schedule(mine).widths[:sent]
        events = [of_agent(now, 0) for now in federation.algorithm.events(mine)[:sent]]
        paid = [charge([now], int(width))[0] for now, width in zip(events, widths, strict=True)]
        cost, exact = total(paid, federation.delta), total(events, federation.delta)
    return Spent(cost, federation.delta, promise.label, promise.reason, federation.algorithm.name, sent, exact,
                 ("this run only: other runs on the same people add to it", *NOT_COVERED))  # fmt: skip


def total(rounds: list[list[Event]], delta: float) -> float | None:
    """ε of these rounds, the largest where several things are protected; None where there is no bound."""
    worst = max((float(e) for e in totals(chain.from_iterable(rounds), delta).values()), default=0.0)
    return worst if math.isfinite(worst) else None
