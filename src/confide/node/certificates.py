"""Dates of certificates, looked at when a node starts: nobody talks to a node whose own is out of date, and of others'
it is said in time.
"""

from __future__ import annotations

import datetime

from confide.errors import ConfideError
from confide.network.identity import Card
from confide.node.federation import Federation


def check_dates(federation: Federation, own: Card) -> list[str]:
    """A word on each certificate that soon ends, or on another's that is out of date; one line if the own one is."""
    if why := _out_of_date(own):
        raise ConfideError(f"{why}: {_remedy(federation)}")
    said = [own.check_valid()]
    for card in federation.neighbours(own.name).values():
        why = _out_of_date(card)
        said.append(f"{why}, so that it cannot be reached: {_remedy(federation)}" if why else card.check_valid())
    if (relay := federation.relay) is not None:
        why = _out_of_date(relay)
        said.append(f"{why}, so that nobody is reached through this relay: a federation with another card of it is "
                    "needed" if why else relay.check_valid())  # fmt: skip
    return [words for words in said if words]


def _out_of_date(card: Card) -> str:
    """Why TLS refuses this certificate today, or nothing."""
    now = datetime.datetime.now(datetime.UTC)
    if now > card.valid_until:
        return f"the certificate of {card.name} expired on {card.valid_until:%Y-%m-%d}"
    early = f"the certificate of {card.name} is valid from {card.valid_from:%Y-%m-%d} only (is the clock right?)"
    return early if now < card.valid_from else ""


def _remedy(federation: Federation) -> str:
    """What gives a member another certificate."""
    if federation.summed:
        return "the keys of a private sum stay, so begin another run, with a card by `confide node rekey`"
    return "`confide node rekey` makes another, and `confide federation amend --card`, signed by all, takes it up"
