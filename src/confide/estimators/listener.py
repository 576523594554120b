"""`Listener`: hears how a fit goes, and finds its noise, so that nobody has to reach into an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Public
from confide.problem.shards import Shards


class Listener:
    """Hears how a fit goes, in its own process: what it is told of rows is private. This one changes nothing."""

    def calibrated(self, method: Any, public: Public, mu: float, epsilon: float, delta: float) -> Any:
        """The method with the noise that it will have, before anything is paid."""
        from confide.estimators.one_fit import calibrated

        return calibrated(method, public, mu, epsilon, delta)

    def learning(self, parts: Sequence[tuple[Shards, Loss]], penalty: Penalty) -> None:
        """The scaled rows by party and the loss of every phase, before anything is released."""

    def paid(self, phases: Sequence[tuple[Any, Public]]) -> None:
        """The methods that are about to run, once they are paid for."""

    def round(self) -> None:
        """Another round is done."""
