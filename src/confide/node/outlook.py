"""What a node shows of itself to those who watch it: its status, and what of the federation is public.

`Outlook.show` takes each new status; `state()` is what metrics and the live page are made of: public values and the own
spend, no row and no number of a message. It may be read from other threads.
"""

from __future__ import annotations

import datetime
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from confide.node.status import standing, standing_and_way

if TYPE_CHECKING:
    from confide.node.daemon import Status
    from confide.node.federation import Federation

SPAN = 60.0  # seconds of which the mean time of a round is told
FRESH_SECONDS = 10.0  # a status is written twice a second
ENDED = ("finished", "stopped", "failed")


class Outlook:
    """Of the member `name` of a federation, as amended."""

    def __init__(self, federation: Federation, name: str) -> None:
        self.name = name
        self._latest: dict[str, Any] = {}
        self._passed: deque[tuple[float, int]] = deque()  # (when, round)
        self._at = 0.0
        self.hold(federation)

    def hold(self, federation: Federation) -> None:
        """An amendment is in force: members, links, certificates and the cap are those that it leaves."""
        mine = {self.name: federation.cards[self.name], **federation.neighbours(self.name)}
        self._until = {who: card.valid_until for who, card in mine.items()}
        links = federation.edges or [(federation.hub, one) for one in federation.parties]
        self._map = {"members": list(federation.cards), "links": [list(pair) for pair in links], "hub": federation.hub}
        self._budget = {"cap_epsilon": federation.epsilon, "delta": federation.delta}

    def show(self, status: Status) -> None:
        now = time.monotonic()
        self._passed.append((now, status.round))
        while now - self._passed[0][0] > SPAN:
            self._passed.popleft()
        self._latest, self._at = {**vars(status)}, now

    def state(self) -> dict[str, Any]:
        """Everything there is to know, as JSON has it; {} before the first status."""
        if not self._latest:
            return {}
        now = datetime.datetime.now(datetime.UTC)
        days = {who: (until - now).total_seconds() / 86400 for who, until in self._until.items()}
        neighbours = {
            who: {**one, "standing": standing(one), "shown": standing_and_way(one)}
            for who, one in self._latest["neighbours"].items()
            if who in self._until  # the last status may be of before an amendment
        }
        return {**self._latest, **self._budget, "neighbours": neighbours, "seconds_per_round": self._pace(),
                "certificate_days": days, "map": self._map, "age": time.monotonic() - self._at}  # fmt: skip

    def _pace(self) -> float | None:
        passed = list(self._passed)
        if not passed or passed[-1][1] == passed[0][1]:
            return None
        return (passed[-1][0] - passed[0][0]) / (passed[-1][1] - passed[0][1])

    def health(self) -> tuple[bool, str]:
        """Whether the node is at work, and a word on it: waiting for neighbours is healthy, silence is not."""
        if not self._latest:
            return False, "starting"
        state, age = self._latest["state"], time.monotonic() - self._at
        if state == "failed":
            return False, "failed"
        if state not in ENDED and age > FRESH_SECONDS:
            return False, f"no word for {age:.0f} s"
        return True, state
