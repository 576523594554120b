"""What rounds cost in a run that was amended: each what it cost under the terms it was sent under."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, zip_longest

from confide.errors import ConfideError
from confide.node.caps import attempts_held, caps
from confide.node.federation import Federation
from confide.privacy import Event, Gaussian, totals
from confide.privacy.budget import Bill
from confide.privacy.events import EVERYONE
from confide.privacy.ledger import Ledger

TOLERANCE = 1e-9  # rounding of a calibrated schedule
Round = list[Event]


def prices_of(federation: Federation, name: str, heads: Sequence[bytes]) -> list[Round]:
    """Of all rounds of a party that sent its first ones under these heads.

    The round after them may have been paid for under earlier terms, without a message in the journal: it costs the
    dearest of all. So may a round of a private sum that was begun again by fewer: `heads` has the first terms of each,
    and no later ones are dearer, against whomever (`amendment.louder`).
    """
    terms = {one.head: one.prices(one.parties.index(name)) for one in federation.history}
    now = terms[federation.head]
    if not now:
        return []
    out = [terms[head][t] for t, head in enumerate(heads)] + now[len(heads) :]
    if len(heads) < len(now):
        out[len(heads)] = dearest([rounds[len(heads)] for rounds in terms.values() if len(heads) < len(rounds)])
    return out


def dearest(rounds: Sequence[Round]) -> Round:
    return rounds[0] if len(rounds) == 1 else max(rounds, key=_square)


def _square(now: Round) -> float:
    if all(isinstance(event, Gaussian) for event in now):  # the usual case, a thousand times faster
        return sum(float(event.sensitivity / event.scale) ** 2 for event in now if isinstance(event, Gaussian))
    return sum(cost.square for cost in Bill.of(now).costs.values())


def most(federation: Federation) -> float:
    """ε of the party that it costs most, if every round is sent under the dearest terms and all restarts are needed."""
    if federation.delta is None:
        return 0.0
    worst = 0.0
    for name in federation.parties:
        terms = [one.prices(one.parties.index(name)) for one in federation.history]
        rounds = [dearest([one for one in now if one is not None]) for now in zip_longest(*terms)]
        if rounds:
            again = max(federation.restarts, len(federation.stages) - 1 if federation.summed else 0)  # abandoned ones
            every = [*rounds, *attempts_held(rounds, again)]
            worst = max(worst, *(float(e) for e in totals(chain.from_iterable(every), federation.delta).values()))
    return worst


def check_cost(federation: Federation) -> None:
    """One line for terms that cost more than the cap: all would sign what no node could pay."""
    if federation.epsilon is None:
        return
    cost = most(federation)
    if not math.isfinite(cost):
        raise ConfideError("costs more than any cap: choose fewer rounds")
    if cost > federation.epsilon * (1 + TOLERANCE):
        raise ConfideError(
            f"costs up to ε={cost:.4g} at δ={federation.delta:g}, more than the cap of ε={federation.epsilon:g}: the "
            f"amendment must raise the cap, by --epsilon {rounded_up(cost):g}"
        )


def follow_cap(ledger: Ledger, population: str, federation: Federation, name: str, attempts: int) -> str:
    """Raise budgets that are the federation's earlier caps for this party to the ones that the owner signed; a budget
    of the owner's own stays. What was done, or nothing."""
    if federation.before is None or federation.epsilon is None:
        return ""
    earlier = [caps(one, one.parties.index(name), attempts) for one in federation.history[:-1]]
    said = []
    for kind, (epsilon, delta) in caps(federation, federation.parties.index(name), attempts).items():
        now = ledger.balance(population, kind)
        if (now.epsilon, now.delta) in [one.get(kind) for one in earlier] and now.epsilon < epsilon:
            ledger.change_budget(population, epsilon, delta, kind=kind)
            whom = "" if kind[2] == EVERYONE else f" against {kind[2]}"
            said.append(f"the budget of {population!r}{whom} is raised to ε={epsilon:g}, as the amendment says")
    return "; ".join(said)


def rounded_up(cost: float) -> float:
    """To four digits."""
    unit = 10.0 ** (math.floor(math.log10(cost)) - 3)
    return float(f"{math.ceil(cost / unit) * unit:.4g}")
