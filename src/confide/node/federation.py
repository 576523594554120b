"""`Federation`: everything the members agree on before a row is read, in one public, readable file.

    name = "heart"
    run = "…"                        a fresh random text for every run
    timeout = 60.0                   seconds a node waits for its neighbours in one round
    patience = 86400.0               optional: seconds a run stands still before a member may be left out as lost
    [model]                          loss, penalty, features, row_norm, intercept, weighting
    [algorithm]                      name and parameters
    [budget]                         epsilon, delta: what one party may spend at most
    [graph]                          edges between names; or hub = "name" for methods with a server
    [[members]]                      name, address, rows, fingerprint and certificate: the card, and the public M_k
    [package]                        optional: name, version and source of the package whose method it is (`outside`)
    [relay]                          optional: card of a host through which members reach those that take no connections
    [schema]                         optional: columns, ranges, categories and label; then no features and row_norm
    [evaluation]                     optional: a public model that is measured in one round, not learned (`evaluated`)

Its hash is the run's identity: neighbours compare it before anyone reads a row, and every member signs it
(`agreement`). Comments, blanks and the order of fields do not matter. Every message carries the *head*, the hash of
what its sender held to: the file, or the last amendment in force (`amendment`), which leads back to the file.

Format 1 is that of 0.1.0, where `noise` meant something else. Such a file is read, so that its runs can be looked at,
but nothing here knows what its rounds cost: it promises nothing, has no prices and is not run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as default
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from confide.algorithms import REGISTRY, Algorithm, JointDescent, JointTally, SummedMethod
from confide.errors import ConfideError
from confide.files import toml
from confide.files.keys import strict
from confide.files.parts import from_table
from confide.files.values import check_values
from confide.network.graph import Graph
from confide.network.identity import Card
from confide.node.evaluated import Evaluated, check_tally, label_values
from confide.node.members import read_members, read_relay
from confide.node.outside import Package, kind_of
from confide.privacy import Event, Gaussian, Guarantee, Label
from confide.privacy.budget import of_agent
from confide.privacy.secure import charge
from confide.problem import losses, penalties
from confide.problem.checks import finite, whole
from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Public
from confide.schema.schema import Schema

OURS: dict[str, type[Algorithm]] = {**REGISTRY, "JointDescent": JointDescent, "JointTally": JointTally}  # no package
FORMAT = 2  # in 1, `noise` was not the standard deviation on the answer
FORMATS = (1, FORMAT)
OUTDATED = "made by confide 0.1.0, whose noise meant something else"
SEEDED = "test noise: its seed is public, it protects nobody"
TOP = ("format", "name", "run", "timeout", "model", "algorithm", "graph", "members")
OPTIONAL = ("budget", "schema", "test_noise_seed", "patience", "relay", "package", "evaluation")
MODEL = ("loss", "penalty", "weighting")
ROWS = ("features", "row_norm", "intercept")  # a schema says these
LARGEST_TIMEOUT = 7 * 86400.0
PATIENCE, LARGEST_PATIENCE = 86400.0, 366 * 86400.0
MOST_RESTARTS = 10_000
MOST_ROUNDS = 1_000_000


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
    format: int = FORMAT
    restarts: int = 0  # attempts that every party holds besides its rounds
    patience: float = PATIENCE  # seconds
    document: Mapping[str, Any] = default(default_factory=dict, repr=False)  # as the file says it, amended
    head: bytes = b""  # hash of the file, or of the last amendment in force
    before: Federation | None = None  # what that amendment changed

    @cached_property
    def history(self) -> tuple[Federation, ...]:
        """From the file to this, an amendment each."""
        return (*(self.before.history if self.before is not None else ()), self)

    @property
    def founding(self) -> Federation:
        """As the file says it: its parties are numbered for good."""
        return self.history[0]

    def under(self, head: bytes) -> Federation:
        """What holds under this head, which must be this or an earlier one."""
        for one in self.history:
            if one.head == head:
                return one
        raise ConfideError(f"frame of another run, {head.hex()[:16]}, or under an amendment that is not in force here")

    @cached_property
    def stages(self) -> tuple[Federation, ...]:
        """As it was at first, and after each amendment that changed its members or links: private sums begin anew."""
        out = [self.founding]
        for one in self.history[1:]:
            if (one.parties, set(one.edges)) != (out[-1].parties, set(out[-1].edges)):
                out.append(one)
        return tuple(out)

    @cached_property
    def aliases(self) -> dict[bytes, bytes]:
        """Every certificate that a member has had -> the one in the file."""
        first = self.founding.cards
        return {one.cards[name].digest: first[name].digest for one in self.history for name in one.cards}

    package: Package | None = None  # the code of a method that is not confide's own
    relay: Card | None = None  # joins those that cannot reach each other; no member, and trusted with nothing
    evaluation: Evaluated | None = None  # what is measured, where nothing is learned

    @property
    def summed(self) -> bool:
        """Whether parties learn by private sums: over any connected graph, without a hub."""
        return isinstance(self.algorithm, SummedMethod)

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
        sizes, measured = np.array(list(self.sizes.values()), np.int64), self.evaluation
        rows = (self.features, self.intercept, self.weighting, self.row_norm)
        if measured is not None:  # what rows have become then
            rows = (1, False, "rows", measured.row_norm)
        loss = self.loss if measured is None else measured.loss
        return Public(self.graph, sizes, loss, self.penalty, *rows, np.arange(len(sizes)))

    @property
    def outdated(self) -> bool:
        return self.format != FORMAT

    @cached_property
    def guarantee(self) -> Guarantee:
        if self.outdated:
            return Guarantee(Label.NONE, f"{OUTDATED}: what it cost is in its ledger")
        if self.test_noise_seed is not None:
            return Guarantee(Label.NONE, SEEDED)
        return Algorithm.guarantee(self.algorithm, self.public)  # the engine's, whatever a class says of itself

    def check_runnable(self) -> None:
        """One line for a file that can only be read."""
        if self.outdated:
            raise ConfideError(
                f"a federation {OUTDATED}: make a new one by `confide federation new`; a run that was "
                "begun is ended by `confide account --end RUN --released N`"
            )

    def prices(self, k: int) -> list[list[Event]]:
        """What each round costs party k, in the sampler's terms; nothing where nothing is protected."""
        self.check_runnable()
        if self.guarantee.label == Label.NONE:
            return []
        rounds = self.stated(self.algorithm.charged(self.public.at(k)))
        if self.summed:  # a budget keeps room for slack once: for the most that any amendment could bring
            widths = self.algorithm.schedule(self.public).noised
            rounds = [[_with_slack(event, int(width)) for event in now]
                      for now, width in zip(rounds, widths, strict=True)]  # fmt: skip
        return [of_agent(now, 0) for now in rounds]

    def stated(self, rounds: list[list[Event]]) -> list[list[Event]]:
        """What rounds of this federation cost, against the coalition that its file speaks of.

        Once a member is gone, costs follow against any c of the others. Any c of all that were there at first have at
        most c of these among them, so they cost no more against those; and that is the budget that they are paid from.
        """
        if not self.summed or self.before is None:
            return rounds
        first = self.founding
        named = {event.adversary for now in first.algorithm.events(first.public) for event in now}
        assert len(named) == 1
        adversary = named.pop()
        return [[replace(event, adversary=adversary) for event in now] for now in rounds]

    def neighbours(self, name: str) -> dict[str, Card]:
        """Whom a member talks to: its neighbours, or the hub, and the hub to all."""
        if name not in self.cards:
            raise ConfideError(f"{name!r} is not a member of {self.name!r}: the members are {', '.join(self.cards)}")
        if self.hub is not None:
            others = self.parties if name == self.hub else (self.hub,)
        else:
            others = tuple(self.parties[l] for l in self.graph.neighbours(self.parties.index(name)))
        return {other: self.cards[other] for other in others}


def _with_slack(event: Event, width: int) -> Event:
    """A release of a private sum, with the slack that it has if only two share its noise: no fewer ever do."""
    if not (isinstance(event, Gaussian) and np.any(event.alone)):
        return event
    pair = Gaussian(1.0, math.sqrt(2), adversary=event.adversary, alone=1.0)
    ((least,),) = charge([[pair]], width)
    assert isinstance(least, Gaussian)
    return replace(event, slack=np.maximum(event.slack, least.slack))


def load(path: str | Path) -> Federation:
    """The federation in a file; every mistake is one line."""
    document = toml.load(path, "a federation")
    try:
        check_values(document)
        return from_document(document)
    except ConfideError as error:
        raise ConfideError(f"{path}: {error}") from None


def load_runnable(path: str | Path) -> Federation:
    """The same where it is to be run or signed; one line for a file that can only be read."""
    found = load(path)
    try:
        found.check_runnable()
    except ConfideError as error:
        raise ConfideError(f"{path}: {error}") from None
    return found


def from_document(document: Mapping[str, Any]) -> Federation:
    """The federation that a parsed file describes."""
    top = strict(document, "", TOP, OPTIONAL)
    if not (whole(top["format"]) and top["format"] in FORMATS):
        raise ConfideError(f"format {top['format']!r}: this program reads formats {' and '.join(map(str, FORMATS))}")
    for field in ("name", "run"):
        if not isinstance(top[field], str) or not top[field] or not top[field].isprintable():
            raise ConfideError(f"{field}={top[field]!r}: must be a text, not empty, without control characters")
    if not (finite(top["timeout"]) and 0 < top["timeout"] <= LARGEST_TIMEOUT):
        raise ConfideError(f"timeout={top['timeout']!r}: must be seconds above 0, at most {LARGEST_TIMEOUT:.0f}")
    patience = top.get("patience", PATIENCE)
    if not (finite(patience) and 0 <= patience <= LARGEST_PATIENCE):
        raise ConfideError(f"patience={patience!r}: must be seconds from 0 to {LARGEST_PATIENCE:.0f}")
    seed = top.get("test_noise_seed")
    if seed is not None and not (whole(seed) and 0 <= seed < 2**63):
        raise ConfideError(f"test_noise_seed={seed!r}: must be a whole number of at least 0")
    schema = Schema.from_dict(top["schema"]) if "schema" in top else None
    model = strict(top["model"], "model", MODEL if schema else (*MODEL, "features"), () if schema else ROWS)
    cards, sizes, edges, hub = read_members(top)
    budget = strict(top["budget"], "budget", ("epsilon", "delta"), ("restarts",)) if "budget" in top else {}
    for field, most in (("epsilon", np.inf), ("delta", 1.0)):
        if budget and not (finite(budget[field]) and 0 < budget[field] < most):
            allowed = "above 0, below 1" if most == 1.0 else "finite and above 0"
            raise ConfideError(f"budget.{field}={budget[field]!r}: must be {allowed}")
    restarts = budget.get("restarts", 0)
    if not (whole(restarts) and 0 <= restarts <= MOST_RESTARTS):
        raise ConfideError(f"budget.restarts={restarts!r}: must be a whole number from 0 to {MOST_RESTARTS}")
    hashed = digest(document, schema)
    package = Package.from_document(top["package"]) if "package" in top else None
    loss, features = _loss(model["loss"]), len(schema.features) if schema else model["features"]
    measured = None
    if "evaluation" in top:
        measured = Evaluated.from_document(top["evaluation"], loss, features, label_values(schema, loss))
    out = Federation(
        top["name"], hashed, cards, sizes, edges, hub, _algorithm(top["algorithm"], package), loss,
        from_table(model["penalty"], "model.penalty", penalties.ALL), features,
        schema.row_norm if schema else model.get("row_norm"),
        schema.intercept if schema else model.get("intercept", False), model["weighting"], budget.get("epsilon"),
        budget.get("delta"), float(top["timeout"]), seed, schema, top["format"], restarts, float(patience), document,
        hashed, None, package, read_relay(top, cards), measured,
    )  # fmt: skip
    _check(out)
    return out


def digest(document: Mapping[str, Any], schema: Schema | None = None) -> bytes:
    """SHA-256 of the canonical form; a schema, whose columns have an order, has a canonical form of its own."""
    plain = {**document, "schema": schema.hash()} if schema else document
    try:
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise ConfideError(
            "a value of another kind: must be texts, finite numbers, true or false, lists and tables"
        ) from None
    return hashlib.sha256(text.encode()).digest()


def _algorithm(table: Any, package: Package | None) -> Algorithm:
    if isinstance(table, dict) and "penalty" in table and "coupling" not in table:  # as 0.1.0 wrote it
        table = {"coupling" if name == "penalty" else name: value for name, value in table.items()}
    kinds: tuple[type[Algorithm], ...] = tuple(OURS.values())
    if package is not None:
        name = table.get("name") if isinstance(table, dict) else None
        if not isinstance(name, str) or name in OURS:
            raise ConfideError(f"algorithm {name!r}: confide's own, or none, so that [package] must be left out")
        kinds = (kind_of(name, package),)
    algorithm: Algorithm = from_table(table, "algorithm", kinds)
    if algorithm.topology == "central":
        raise ConfideError(f"algorithm: {algorithm.name} pools all rows: it cannot run on nodes")
    return algorithm


def _loss(table: Any) -> Loss:
    if isinstance(table, dict) and table.get("name") == losses.BlackBox.__name__:
        raise ConfideError(
            "model.loss: a BlackBox is a function, which no file can hold: on nodes it must be part of a package's "
            "method, which meets rows itself and is at most assumed"
        )
    loss: Loss = from_table(table, "model.loss", losses.ALL)
    return loss


def _check(federation: Federation) -> None:
    """What no single field shows: that all of them fit together."""
    f = federation
    if not f.algorithm.rounds <= MOST_ROUNDS:
        raise ConfideError(f"algorithm.rounds={f.algorithm.rounds}: must be at most {MOST_ROUNDS}")
    links = f.algorithm.topology == "peer" or f.summed  # a hub would see what masks hide
    if (f.hub is None) != links:
        has = "edges" if f.hub is None else "a hub"
        raise ConfideError(
            f"graph: {has} with {f.algorithm.name}: needs {'edges and no hub' if links else 'a hub and no edges'}"
        )
    if not (whole(f.features) and f.features >= 1):
        raise ConfideError(f"model.features={f.features!r}: must be a whole number from 1")
    if f.row_norm is not None and not (finite(f.row_norm) and f.row_norm > 0):
        raise ConfideError(f"model.row_norm={f.row_norm!r}: must be a finite number above 0")
    if not isinstance(f.intercept, bool):
        raise ConfideError(f"model.intercept={f.intercept!r}: must be true or false")
    if f.weighting not in ("parties", "rows"):
        raise ConfideError(f"model.weighting={f.weighting!r}: must be 'parties' or 'rows'")
    check_tally(f.evaluation, f.algorithm, f.weighting)
    f.algorithm.check(f.public)
    f.algorithm.events(f.public)  # a parameter for too few agents shows here
    if f.epsilon is None and f.guarantee.label != Label.NONE:
        raise ConfideError(f"budget=None: {f.algorithm.name} is private and needs a cap, epsilon and delta")
