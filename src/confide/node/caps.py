"""What a federation promises its members, by adversary: the cap in its file, and what that leaves against everyone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from confide import privacy
from confide.node.federation import Federation
from confide.privacy import Label
from confide.privacy.budget import ROW, Bill, everyone
from confide.privacy.events import EVERYONE, Event, Kind
from confide.runs.trust import trust

_UP = 1 + 1e-6  # so that the schedule itself fits, however its sums are rounded


def caps(federation: Federation, k: int, attempts: int = 0) -> dict[Kind, tuple[float, float]]:
    """(ε, δ) of the budgets under which party k can pay for all rounds and so many attempts more, by kind.

    The cap is stated against those whom the method is private against. Where parties share their noise that is a
    coalition; then a budget against everyone is needed besides, and holds what the same noise is worth against them.
    """
    epsilon, delta = federation.epsilon, federation.delta
    if epsilon is None or delta is None:
        return {}
    prices = agreed(federation, k) if federation.summed else federation.prices(k)
    few = dict.fromkeys(event.kind for now in prices for event in now if event.adversary != EVERYONE)
    if not few:
        return {ROW: (epsilon, delta)}
    held = [*prices, *attempts_held(prices, attempts)]
    alone = [event.everyone for now in held for event in now]
    left = float(np.max(privacy.epsilon([event for event in alone if event is not None], delta)))
    return {everyone(kind): (left * _UP, delta) for kind in few} | dict.fromkeys(few, (epsilon, delta))


def agreed(federation: Federation, k: int) -> list[list[Event]]:
    """What each round of a private sum cost party k under the file: at least what it does under any amendment.

    Against fewer who collude that is what `amendment.louder` is for; against everyone all later noise is louder.
    """
    first = federation.founding
    return first.prices(first.parties.index(federation.parties[k]))


def attempts_held(prices: Sequence[list[Event]], count: int) -> list[list[Event]]:
    """What is held for so many attempts more: the rounds that cost most, each once; all again where there are no more.

    Rounds may cost very different amounts, as one that buys moments for a tenth of the budget: to hold the price of
    that one for each attempt would waste what the others could have used.
    """
    ranked = sorted(prices, key=lambda now: -sum(cost.square for cost in Bill.of(now).costs.values()))
    return [ranked[k % len(ranked)] for k in range(count)]


def promise(federation: Federation) -> str:
    """Whom the members trust and what for, in one line; nothing where they trust nobody, or nothing is protected."""
    if federation.guarantee.label == Label.NONE or federation.delta is None:
        return ""
    public, method = federation.public, federation.algorithm
    trusted = trust([(method, public)], federation.delta)
    if trusted is None:
        return ""
    charged = [event for now in method.charged(public) for event in now]
    if federation.before is None or len(federation.stages) == 1:
        return trusted.line(float(np.max(privacy.epsilon(charged, federation.delta))))
    few = alone = 0.0  # rounds of the file's terms and of later ones, and those that were abandoned
    for k in range(public.count):
        rounds = agreed(federation, k)
        events = [event for now in [*rounds, *attempts_held(rounds, len(federation.stages) - 1)] for event in now]
        few = max(few, float(np.max(privacy.epsilon(events, federation.delta))))
        all_others = [event.everyone or event for event in events]
        alone = max(alone, float(np.max(privacy.epsilon(all_others, federation.delta))))
    return trusted._replace(everyone=alone).line(few)
