"""Amendments: what members change in a run that goes on. A member leaves, an address or key changes, rounds are added.

    format = 1
    federation = "…"                 hash of the file: the run
    changes = "…"                    hash of what this changes: the file, or the amendment before
    number = 1                       of the amendment, from 1
    without = ["north"]              who leaves
    edges = [["ash", "doum"]]        links that are added
    rounds = 150                     in all
    epsilon = 1.3                    the new cap
    [[members]]                      cards in the place of those of the same name: another address, or another key

It is in force once every member that it leaves has signed its hash, with the key that it leaves to them (`agreement`):
so a lost member cannot prevent it, a stolen key takes no part, and a new key proves that it is held. More than half of
the parties stay, so that two that change the same have a signer in common. Whose a new key is, the
others vouch for, each with the key that it has: an amendment brings one new key at most, and nobody leaves by the same
one, or a member could give new keys of its own making to all others and sign for them. The chain of hashes leads back
to the file, so that an old amendment cannot be brought again.

**A member leaves.** The state of a peer method is a function of messages. It is computed again from the journal with
the links that remain, as if those to the lost member had never been, and links that are added as if they had always
been (their other end still has all its messages). No message is made anew: no round is repeated or noised again. For a
method of `KEEPS` whose members have one coupling ρ_t, the dual is γ_k = Σ_t ρ_t Σ_l (m_k^t - m_l^t) over the links (k,
l) of the network that remains. In Σ_k γ_k every link's two terms cancel, whatever the messages were, so the sum is 0 as
at the start, and a fixed point is the optimum of those who remain. That needs no common round of change: a message that
was sent before its sender heard of the amendment is a message like any other. It holds for no method that draws more
from a message than its value (R-ADMM reads a gradient off it, which the new dual would falsify), nor for sums of a hub,
from which nobody's part can be taken out.

A private sum goes on from the last total that any of those who stay has: the round under way is abandoned and stays
charged, and is summed again by fewer (`network.standing`). As many may collude as before, c, so that h = |S| - c share
the noise, and each adds more of it: as little as leaves every round at the price that the file says (`louder`). With h
below 2 nobody would share it, and the run ends with the model so far.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms import REGISTRY, Algorithm, SummedMethod
from confide.errors import ConfideError
from confide.files import toml
from confide.files.keys import strict
from confide.files.values import check_values, shown
from confide.network.generators import components
from confide.network.identity import Card
from confide.node import federation as federations
from confide.node.amended_cost import check_cost
from confide.node.federation import MOST_ROUNDS, Federation
from confide.node.members import MEMBER
from confide.privacy import Gaussian
from confide.problem.checks import finite
from confide.problem.problem import Public

FORMAT = 1
NEEDED = ("format", "federation", "changes", "number")
OPTIONAL = ("without", "edges", "rounds", "epsilon", "members")
MOST = 1000  # amendments of one run
LONGEST_AMENDMENT = 1 << 15  # bytes of one: everybody keeps it and passes it on
MOST_TIMES = 10  # as many rounds as before: what more cost would take hours to find, at the word of one member
KEEPS = ("ADMM", "LinearizedADMM", "CDPADMM", "DDPADMM")  # methods whose duals are sums over links


@dataclass(frozen=True)
class Amendment:
    """One change of one run."""

    run: bytes
    changes: bytes
    number: int
    without: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    rounds: int | None = None
    epsilon: float | None = None
    cards: tuple[Card, ...] = ()

    def document(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "format": FORMAT, "federation": self.run.hex(), "changes": self.changes.hex(), "number": self.number,
        }  # fmt: skip
        out |= {} if not self.without else {"without": [*self.without]}
        out |= {} if not self.edges else {"edges": [[*edge] for edge in self.edges]}
        out |= {name: value for name in ("rounds", "epsilon") if (value := getattr(self, name)) is not None}
        return out if not self.cards else out | {"members": [card.to_json() for card in self.cards]}

    def to_toml(self) -> str:
        return toml.dumps(self.document())

    @cached_property
    def text(self) -> bytes:
        """The canonical form."""
        return json.dumps(self.document(), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    @cached_property
    def hash(self) -> bytes:
        """What is signed, and what the next amendment changes."""
        return hashlib.sha256(self.text).digest()

    def rekeyed(self, federation: Federation) -> set[str]:
        """Members whose key it replaces."""
        return {one.name for one in self.cards if one.digest != federation.cards.get(one.name, one).digest}


def load(path: Path) -> Amendment:
    document = toml.load(path, "an amendment")
    try:
        check_values(document, "amendment")
        return from_document(document)
    except ConfideError as error:
        raise ConfideError(f"{path}: {error}") from None


def from_document(document: Any) -> Amendment:
    """The amendment that a parsed file or message describes."""
    top = strict(document, "amendment", NEEDED, OPTIONAL)
    if top["format"] != FORMAT:
        raise ConfideError(f"amendment.format {top['format']!r}: this program reads format {FORMAT}")
    if not (type(top["number"]) is int and 1 <= top["number"] <= MOST):
        raise ConfideError(f"amendment.number={top['number']!r}: must be a whole number from 1 to {MOST}")
    without, edges, members = (top.get(name, []) for name in ("without", "edges", "members"))
    if not (isinstance(without, list) and all(isinstance(name, str) for name in without)):
        raise ConfideError(f"amendment.without={shown(without)}: must be a list of names")
    if not (isinstance(edges, list) and all(isinstance(edge, list) and len(edge) == 2 and all(
            isinstance(name, str) for name in edge) for edge in edges)):  # fmt: skip
        raise ConfideError(f"amendment.edges={shown(edges)}: must be a list of pairs of names")
    if not isinstance(members, list):
        raise ConfideError(f"amendment.members={shown(members)}: must be a list of tables, [[members]]")
    if "rounds" in top and not (type(top["rounds"]) is int and 1 <= top["rounds"] <= MOST_ROUNDS):
        raise ConfideError(f"amendment.rounds={top['rounds']!r}: must be a whole number from 1 to {MOST_ROUNDS}")
    if "epsilon" in top and not (finite(top["epsilon"]) and top["epsilon"] > 0):
        raise ConfideError(f"amendment.epsilon={top['epsilon']!r}: must be above 0")
    cards = [Card.from_text(**strict(one, "amendment.members", MEMBER)) for one in members]
    return Amendment(
        _hash(top, "federation"), _hash(top, "changes"), top["number"], tuple(without),
        tuple((a, b) for a, b in edges), top.get("rounds"), top.get("epsilon"), tuple(cards),
    )  # fmt: skip


def _hash(top: Mapping[str, Any], name: str) -> bytes:
    try:
        found = bytes.fromhex(top[name])
    except (TypeError, ValueError):
        found = b""
    if len(found) != 32:
        raise ConfideError(f"amendment.{name}={top[name]!r}: must be a hash, 64 digits")
    return found


# --- what follows from it -------------------------------------------------------------------------------------------


def check_limits(federation: Federation, change: Amendment) -> None:
    """Of what waits for signatures, at the word of one member: one line if it is too long, or takes too long to price.

    What all have signed is in force, and was before there were limits.
    """
    if (size := len(change.text)) > LONGEST_AMENDMENT:
        raise ConfideError(f"amendment of {size} bytes: must be at most {LONGEST_AMENDMENT}; make it several")
    if (change.rounds or 0) > (most := MOST_TIMES * federation.algorithm.rounds):
        raise ConfideError(f"rounds={change.rounds}: must be at most {most}: more are added by several amendments")


def amended(federation: Federation, change: Amendment) -> Federation:
    """The federation as the amendment leaves it; one line where it may not."""
    if change.run != federation.digest:
        raise ConfideError(
            f"amendment of another federation, {change.run.hex()[:16]}, not {federation.digest.hex()[:16]}"
        )
    if change.changes != federation.head or change.number != len(federation.history):
        raise ConfideError(
            f"amendment {change.number} changes {change.changes.hex()[:16]}: in force is {federation.head.hex()[:16]}, "
            f"which amendment {len(federation.history)} would change"
        )
    if not (change.without or change.edges or change.rounds or change.epsilon or change.cards):
        raise ConfideError("amendment: changes nothing")
    document = {**federation.document}
    _members(document, federation, change)
    _links(document, federation, change)
    _terms(document, federation, change)
    found = federations.from_document(document)
    if federation.summed and change.without:
        document["algorithm"] = {**document["algorithm"], "noise": louder(federation, found)}
        found = federations.from_document(document)
    out = replace(found, digest=federation.digest, head=change.hash, before=federation)
    check_cost(out)
    return out


def _members(document: dict[str, Any], federation: Federation, change: Amendment) -> None:
    """Who leaves, with the parameters that were its own, and new cards."""
    for name in change.without:
        if name not in federation.parties:
            raise ConfideError(f"without {name!r}: must be one of the parties {', '.join(federation.parties)}")
    if len(set(change.without)) < len(change.without):
        raise ConfideError(f"without {', '.join(change.without)}: a name is there twice")
    if (change.without or change.edges) and (why := refusal(federation)):
        raise ConfideError(why)
    keys = sorted(change.rekeyed(federation))
    if federation.summed and (keys or change.rounds):
        raise ConfideError(
            f"{federation.algorithm.name}: keys and rounds of a private sum stay, for its masks are agreed with those "
            "keys and its noise is shared for those rounds: begin another run"
        )
    if len(keys) > 1 or (keys and change.without):
        others = f"those of {', '.join(keys[1:])}" if len(keys) > 1 else f"without {', '.join(change.without)}"
        raise ConfideError(f"the key of {keys[0]} and {others}: a new key must be all that changes among the members: "
                           "one amendment each")  # fmt: skip
    if len(federation.parties) - len(change.without) < 2:
        raise ConfideError(f"without {', '.join(change.without)}: learning over a network needs at least 2 parties")
    if federation.summed and change.without:
        _check_honest(federation, change)
    if 2 * (left := len(federation.parties) - len(change.without)) <= (count := len(federation.parties)):
        raise ConfideError(
            f"without {', '.join(change.without)}: {left} of {count} would go on: must be more than half, or a few "
            "could shut out all others, and two halves each other: begin another run"
        )
    used = {card.digest for one in federation.history for card in one.cards.values()}
    new = {card.name: card for card in change.cards}
    for card in change.cards:
        if card.name not in federation.cards or card.name in change.without:
            raise ConfideError(f"card of {card.name!r}: must be of a member that stays")
        if card == federation.cards[card.name] or len(new) < len(change.cards):
            raise ConfideError(f"card of {card.name!r}: must differ from the one in force, and be there once")
        if card.digest != federation.cards[card.name].digest and card.digest in used:
            raise ConfideError(
                f"card of {card.name!r}: its key was in use before: make a new one by `confide node rekey`"
            )
        card.check_tls()
    document["members"] = [
        {**member, **(new[member["name"]].to_json() if member["name"] in new else {})}
        for member in federation.document["members"] if member["name"] not in change.without
    ]  # fmt: skip
    if change.without:
        stay = [k for k, name in enumerate(federation.parties) if name not in change.without]
        document["algorithm"] = _parameters(federation.document["algorithm"], stay, len(federation.parties))
    if isinstance(federation.algorithm, SummedMethod) and change.without:
        document["algorithm"]["collusion"] = federation.algorithm.colluders(federation.public)


def _check_honest(federation: Federation, change: Amendment) -> None:
    """One line where too few would share the noise."""
    assert isinstance(federation.algorithm, SummedMethod)
    c, left = federation.algorithm.colluders(federation.public), len(federation.parties) - len(change.without)
    if left - c < 2:
        raise ConfideError(
            f"without {', '.join(change.without)} there are {left}, of whom {c} may collude: fewer than 2 would share "
            "the noise, so the run ends with the model so far, see `confide node model`; begin another run"
        )


def louder(before: Federation, after: Federation) -> float:
    """A party's noise in a private sum of those who stay: the least under which no round costs one of them more than it
    did, to nine digits, rounded up so that all come to the same number.

    Where rows are weighed by their number a row counts n/n' times what it did, and h' in the place of h share the
    noise: it is n/n'·√(h/h') times what it was.
    """
    method, stay = after.algorithm, [before.parties.index(name) for name in after.parties]
    assert isinstance(method, SummedMethod)
    noise = float(np.max(method.noise))
    if not method.private(after.public):
        return noise
    agreed = _prices(before.algorithm, before.public)[:, stay]
    for _ in range(8):  # rounding to the grid has a share in the price that no noise makes smaller, a few parts in 1e8
        ratio = float(np.max(_prices(method, after.public) / agreed))
        if ratio <= 1:
            return noise
        unit = 10.0 ** (math.floor(math.log10(noise * ratio)) - 8)
        noise = float(f"{math.ceil(noise * ratio / unit) * unit:.9g}")
        method = replace(method, noise=noise)
    raise ConfideError(f"{method.name}: no noise of fewer parties leaves the rounds at their price")


def _prices(method: Algorithm, public: Public) -> NDArray[np.float64]:
    """μ of every round and party, (rounds, parties), against those whom the method is private against."""
    rounds = [[event.mu for event in now if isinstance(event, Gaussian)] for now in method.charged(public)]
    return np.array([np.broadcast_to(mu, public.count) for now in rounds for mu in now])


def _parameters(table: Mapping[str, Any], stay: Sequence[int], count: int) -> dict[str, Any]:
    """A method's table with the values per agent of those who stay."""
    per_agent = {one.name for one in fields(federations.OURS[table["name"]]) if one.type == "Parameter"}
    out = dict(table)
    for name, value in table.items():
        if name in per_agent and isinstance(value, list) and len(value) == count:
            out[name] = [value[k] for k in stay]
        elif isinstance(value, list) and value and all(isinstance(v, list) and len(v) == count for v in value):
            out[name] = [[v[k] for k in stay] for v in value]  # by round and agent
    return out


def _links(document: dict[str, Any], federation: Federation, change: Amendment) -> None:
    """Links to those who leave go; what remains must hang together."""
    if not (change.without or change.edges):
        return
    stay = [name for name in federation.parties if name not in change.without]
    edges = [edge for edge in federation.edges if not set(edge) & set(change.without)]
    for a, b in change.edges:
        if a == b or a not in stay or b not in stay or (a, b) in edges or (b, a) in edges:
            raise ConfideError(f"link {a},{b}: must join two of {', '.join(stay)} that are not joined yet")
        edges.append((a, b))
    number = {name: k for k, name in enumerate(stay)}
    pairs = np.array([(number[a], number[b]) for a, b in edges], np.int64).reshape(-1, 2)
    part = components(len(stay), pairs)
    if part.any():
        groups = [[name for name, one in zip(stay, part, strict=True) if one == k] for k in np.unique(part)]
        near = {name for edge in federation.edges if set(edge) & set(change.without) for name in edge}
        ends = [next((name for name in group if name in near), group[0]) for group in groups]
        links = " ".join(f"--edge {a},{b}" for a, b in pairwise(ends))
        raise ConfideError(
            f"without {', '.join(change.without)} the network falls apart into {' | '.join(map(', '.join, groups))}: "
            f"add links, such as {links}"
        )
    document["graph"] = {"edges": [[*edge] for edge in edges]}


def _terms(document: dict[str, Any], federation: Federation, change: Amendment) -> None:
    """Rounds and the cap."""
    if change.rounds is not None:
        if change.rounds <= federation.algorithm.rounds:
            raise ConfideError(
                f"rounds={change.rounds}: must be above {federation.algorithm.rounds}: rounds are added, not taken back"
            )
        document["algorithm"] = {**document["algorithm"], "rounds": change.rounds}
    if change.epsilon is not None:
        if federation.epsilon is None:
            raise ConfideError(f"epsilon={change.epsilon:g}: this federation has no budget")
        document["budget"] = {**document["budget"], "epsilon": change.epsilon}


def refusal(federation: Federation) -> str:
    """Why links of this run cannot change, in one line; empty where they can.

    The one place that decides which methods survive a lost site.
    """
    method = federation.algorithm
    if federation.summed:
        return ""
    if federation.hub is not None:
        return (
            f"{method.name}: nobody's part can be taken out of a hub's sums: begin another run without the lost member"
        )
    if method.name not in KEEPS or type(method) is not REGISTRY.get(method.name):
        return f"{method.name} does not survive a lost member, as {', '.join(KEEPS)} do: begin another run"
    if len(set(np.atleast_1d(method.coupling).tolist())) > 1:
        return f"{method.name} with a coupling per agent: its duals never sum to 0: begin another run"
    return ""
