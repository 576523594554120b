"""A report from a node's own folder: its spend, its rounds, its federation. From the journal, without reading a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import Identity
from confide.node import export as exports
from confide.node import federation as federations
from confide.node.agreement import in_force
from confide.node.caps import promise
from confide.node.contributions import contributions
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.keys import bystander
from confide.node.member import Trainer
from confide.node.status import FEDERATION, read_status
from confide.node.summer import Summer
from confide.privacy import Event, Label, Unbounded
from confide.report.evaluation import paid_for
from confide.report.subject import Subject
from confide.runs.driver import describe
from confide.runs.run import CLAIM_DELTA, Privacy, Run
from confide.runs.setting import Setting
from confide.schema.schema import Schema

ALONE = "this run only: other runs on the same people add to it"


def latest(home: Path) -> Path:
    """The folder of the latest run of the node in `home` that learns."""
    folders = exports.learning(home)
    if not folders:
        raise ConfideError(f"{home}: no run of a node that learns in there yet; a run's own file is given by its name")
    return folders[0]


def schema_of(home: Path) -> Schema | None:
    """How the rows of that run are read, a test set's too."""
    return federations.load(latest(home) / FEDERATION).schema


def subject(home: Path) -> Subject:
    """The latest run of the node in `home`, with what was paid for to know how good its model is."""
    folder = latest(home)
    source = folder / FEDERATION
    federation, identity = bystander(home, in_force(home, source), source)
    name = identity.card.name
    if name == federation.hub:
        raise ConfideError(f"{home} is the hub of {federation.name!r}: it holds no rows and spends nothing")
    with Journal(folder, federation.digest, write=False, aliases=federation.aliases) as journal:
        member = (Summer if federation.summed else Trainer)(federation, identity, journal)
        history = progress(member) if isinstance(member, Summer) else distances(federation, identity, member, journal)
        run = run_of(federation, member, history)
        contributed = contributions(federation, journal, member.t, member.made if isinstance(member, Summer) else ())
    status = read_status(folder) or {}
    facts = [
        ("node", name),
        ("federation", federation.name),
        ("neighbours", ", ".join(member.neighbours)),
        ("state", str(status.get("state", "not known")) + (f": {why}" if (why := status.get("reason")) else "")),
        ("rounds", f"{member.t} of {member.rounds} complete, {member.sent} sent and paid for"),
        ("contributed", contributed),
    ]
    if again := sum(times - 1 for times in member.attempts):
        facts.append(("noise drawn again", f"{again} times, and paid for again: the ledger's total counts it"))
    if said := promise(federation):
        facts.append(("promise", said))
    if federation.epsilon is not None:
        facts.append(("cap of the federation", f"ε = {federation.epsilon:g} at δ = {federation.delta:g} for one party"))
    if status.get("spent_epsilon") is not None:
        whom = ", against all others together," if status.get("promise") else ""
        spent = f"ε = {status['spent_epsilon']:.4g}{whom} in all runs, by this node's ledger"
        facts.append(("spent on the same people", spent))
    own = federation.parties.index(name)
    out = Subject.of(run, title=f"{federation.name}: {name}", own=own, facts=tuple(facts))
    coefficients, constant = exports.parts(federation, member.estimate)
    return replace(out, paid=paid_for(home, coefficients, constant))


def run_of(federation: Federation, member: Trainer | Summer, history: dict[str, Any]) -> Run:
    """The rounds sent so far as a run; every party's cost follows from the public file."""
    public, method, delta = federation.public, federation.algorithm, federation.delta or CLAIM_DELTA
    known = not federation.outdated  # what its noise means, and so what it costs
    nothing: list[list[Event]] = [[Unbounded()]] * member.rounds
    events = sent_under(federation, member, "events") if known else nothing[: member.sent]
    pays = federation.test_noise_seed is None and federation.guarantee.label != Label.NONE
    charged = sent_under(federation, member, "charged") if pays else None
    spent = Privacy(
        events, method.guarantee(public) if known else federation.guarantee, public.count,
        federation.test_noise_seed is not None,
        claims=tuple(method.claims(public, delta)) if known and member.sent == member.rounds else (),
        claim_delta=delta, charged=charged,
    )  # fmt: skip
    setting = replace(
        Setting.of(public, method.topology, federation.parties), agents=federation.parties,
        row_norm=federation.row_norm, classes=exports.classes(federation) or (),
    )  # fmt: skip
    if federation.schema is not None:
        setting = replace(setting, features=federation.schema.features)
    return Run(
        np.array(member.estimate)[None, None], history, spent, method.name, describe(method), member.t,
        method.bytes_sent(public.at(member.party.k), member.sent), 0.0, np.array([], np.int64),
        id=federation.digest.hex()[:16], setting=setting, public=("distance", "moved", "signal"), delta=delta,
        not_covered=(ALONE,),
    )  # fmt: skip


def sent_under(federation: Federation, member: Trainer | Summer, how: str) -> list[list[Event]]:
    """What the rounds sent cost, each under the terms that this node held to, for the parties that are there now."""
    terms = {}
    for now in federation.history:
        agents = np.array([now.parties.index(name) for name in federation.parties])
        terms[now.head] = now.stated(getattr(now.algorithm, how)(replace(now.public, agents=agents)))
    return [terms[head][t] for t, head in enumerate(member.heads)]


def progress(member: Summer) -> dict[str, Any]:
    """How far the model of a private sum moved in each round, and how much of the sum was not noise.

    All have the same model, and nobody sees others' messages. A round that bought something else than a step, as
    moments, moves nothing: it is left out.
    """
    steps = [t for t, length in enumerate(member.moved, start=1) if length > 0]
    return _history(steps, moved=[member.moved[t - 1] for t in steps], signal=[member.signal[t - 1] for t in steps])


def distances(federation: Federation, identity: Identity, member: Trainer, journal: Journal) -> dict[str, Any]:
    """Largest distance of the own message to a neighbour's, or to the hub's mean, over its length, by round.

    Rounds whose numbers were left out have none.
    """
    share = 1.0 if federation.hub is None else 1.0 / len(federation.parties)
    out: dict[int, float] = {}
    for t in range(1, member.t + 1):
        if wire.form_of(journal.frame(identity.card.digest, t)) == wire.Form.SEAL:
            continue
        own = _vector(journal.frame(identity.card.digest, t))
        others = [_vector(journal.frame(card.digest, t)) for card in member.neighbours.values()]
        farthest = max(float(np.linalg.norm(share * v - own)) for v in others)
        out[t] = farthest / max(float(np.linalg.norm(own)), 1e-300)
    return _history([*out], distance=[*out.values()])


def _history(rounds: list[int], **metrics: list[float]) -> dict[str, Any]:
    """Of these rounds; nothing before the first is complete."""
    return {name: np.array(values) for name, values in {"round": rounds, **metrics}.items()} if rounds else {}


def _vector(frame: bytes) -> Any:
    return np.frombuffer(wire.payload_of(frame), "<f8")
