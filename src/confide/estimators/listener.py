"""`Listener`: hears how a fit goes, so that nobody has to reach into an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Public
from confide.problem.shards import Shards


class Listener:
    """Hears how a fit goes, in its own process: what it is told of rows is private. This one does nothing."""

    def learning(self, parts: Sequence[tuple[Shards, Loss]], penalty: Penalty) -> None:
        """The scaled rows by party and the loss of every phase, before anything is released."""

    def paid(self, phases: Sequence[tuple[Any, Public]]) -> None:
        """The methods that are about to run, once they are paid for."""

    def round(self) -> None:
        """Another round is done."""
