"""The model of a run, from its journal alone: a function of messages, readable while the node trains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from confide.algorithms import SummedMethod
from confide.errors import ConfideError
from confide.files import toml
from confide.node.agreement import in_force
from confide.node.contributions import contributions
from confide.node.evaluated import label_values
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.keys import bystander
from confide.node.member import Trainer
from confide.node.status import FEDERATION, read_status, runs
from confide.node.summer import Summer
from confide.privacy import Event, Label, totals
from confide.privacy.budget import of_agent
from confide.runs.model import NOT_COVERED, Model, Spent, finite_or_none
from confide.runs.trust import Trust

Array = NDArray[np.float64]


def learning(home: Path) -> list[Path]:
    """Folders of the node's runs that learn a model, the latest first; others evaluate one."""
    return [folder for folder in runs(home) if not evaluates(folder)]


def evaluates(folder: Path) -> bool:
    """Whether the run in this folder measures a model. Its file may be of a method that is not here any more."""
    source = folder / FEDERATION
    return source.exists() and "evaluation" in toml.load(source, "a federation")


def export(home: Path, folder: Path) -> Model:
    """What `confide predict` needs, and what the model cost."""
    source = folder / FEDERATION
    federation, identity = bystander(home, in_force(home, source), source)
    if federation.evaluation is not None:
        raise ConfideError(f"{federation.name!r} evaluates a model and learns none: see `confide node status`")
    if identity.card.name == federation.hub:
        raise ConfideError(f"{home} is the hub of {federation.name!r}: models are with the parties")
    with Journal(folder, federation.digest, write=False, aliases=federation.aliases) as journal:
        member = (Summer if federation.summed else Trainer)(federation, identity, journal)
        contributed = contributions(federation, journal, member.t, member.made if isinstance(member, Summer) else ())
        terms = member.heads
    status = read_status(folder) or {}
    coefficients, constant = parts(federation, member.estimate)
    schema = federation.schema
    return Model(
        federation.loss,
        schema.features if schema else tuple(f"x{j + 1}" for j in range(federation.features)),
        coefficients, constant, classes(federation), federation.row_norm, schema,
        spent(federation, identity.card.name, member.attempts, terms),
        {
            "node": identity.card.name, "federation": federation.name, "run": federation.digest.hex(),
            "parties": len(federation.parties), "contributed": contributed, "round": member.t, "rounds": member.rounds,
            "population_epsilon": finite_or_none(status.get("spent_epsilon")),  # of all runs, by the ledger
        },
    )  # fmt: skip


def parts(federation: Federation, estimate: list[float] | None) -> tuple[Array, Array]:
    """Coefficients (outputs, features) and intercept (outputs,) of what was learned."""
    every = np.array(estimate).reshape(federation.loss.outputs, -1)
    constant = every[:, -1] if federation.intercept else np.zeros(len(every))
    return every[:, : federation.features], constant


def classes(federation: Federation) -> tuple[str, ...] | None:
    """The label's values; of plain numbers those that the loss takes."""
    return label_values(federation.schema, federation.loss)


def spent(federation: Federation, name: str, attempts: Sequence[int], heads: Sequence[bytes]) -> Spent:
    """What the rounds that a party has sent cost a row of its own, as its purse pays for them: every draw of each."""
    sent = len(attempts)
    promise, method = federation.guarantee, federation.algorithm
    cost = exact = None
    reason = promise.reason
    if promise.label != Label.NONE and federation.delta is not None:
        events, paid = (
            [terms[head][t] for t, head in enumerate(heads)]
            for terms in (
                {now.head: price(now, now.parties.index(name)) for now in federation.history}
                for price in (exactly, Federation.prices)
            )
        )
        cost, exact, alone = (
            total([now for now, times in zip(rounds, attempts, strict=True) for _ in range(times)], federation.delta)
            for rounds in (paid, events, [[event.everyone or event for event in now] for now in paid])
        )
        if isinstance(method, SummedMethod) and cost is not None and alone is not None and alone > cost:
            trusted = Trust(method.colluders(federation.public), len(federation.parties), alone)
            reason = f"{reason}; {trusted.line(cost)}"
    return Spent(cost, federation.delta, promise.label, reason, method.name, sent, exact,
                 ("this run only: other runs on the same people add to it", *NOT_COVERED))  # fmt: skip


def exactly(federation: Federation, k: int) -> list[list[Event]]:
    """What each round costs party k, whatever is charged for it, under the terms of one federation."""
    return [of_agent(now, 0) for now in federation.stated(federation.algorithm.events(federation.public.at(k)))]


def total(rounds: list[list[Event]], delta: float) -> float | None:
    """ε of these rounds, the largest where several things are protected; None where there is no bound."""
    worst = max((float(e) for e in totals(chain.from_iterable(rounds), delta).values()), default=0.0)
    return finite_or_none(worst)
