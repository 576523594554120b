"""Payment: what a fit costs is known, allowed and charged before the first release."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils import check_random_state

from confide.errors import ConfideError
from confide.estimators import evaluating
from confide.estimators import one_fit as engine
from confide.estimators.listener import Listener
from confide.estimators.record import Paid
from confide.privacy import Label
from confide.privacy.ledger import Ledger
from confide.problem.checks import whole
from confide.problem.problem import Public
from confide.runs.trust import trusted


class Paying:
    """The part of an estimator that pays; `PrivateEstimator` says what the parameters mean."""

    epsilon: float
    delta: float
    collusion: int | None
    random_state: Any
    ledger: Any
    population: str | None
    allow_unproven: bool

    _listener: ClassVar[Listener]
    _held: Any  # rows to evaluate on; None: none

    def _tally(self, blank: bool) -> evaluating.Tally:
        """What is asked of the held-out rows; `blank`: before there is a model, with the same public part."""
        raise NotImplementedError

    def _seed(self) -> int | None:
        """None for secure noise."""
        if self.random_state is None:
            return None
        if whole(self.random_state):
            if self.random_state < 0:
                raise ConfideError(f"random_state={self.random_state}: must be at least 0, or None for secure noise")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _pay(self, phases: Sequence[tuple[Any, Public]]) -> int | None:
        """Set `privacy_`, refuse what is not proven and charge the ledger, all before the first release; the seed."""
        seed = self._seed()
        spent = engine.price(phases, self.delta, seed is None, self._not_covered())
        if self._held is not None:
            spent = engine.beside(spent, self._plan_evaluation(*phases[-1]), self.delta)
        if spent.guarantee.label != Label.PROVEN and not self.allow_unproven:
            raise ConfideError(f"{spent.method}: {spent.guarantee}; allow_unproven=True runs it all the same")
        self._paid = Paid(uuid.uuid4().hex, phases, spent, seed)
        if self.ledger is not None:
            self._charge(spent, seed)
        self.privacy_ = spent if seed is None else replace(spent, guarantee=engine.simulated(spent.guarantee))
        self._listener.paid(phases)
        return seed

    def _plan_evaluation(self, fitted: Any, known: Public) -> tuple[Any, Public]:
        """The evaluation's method and public problem: all of (ε, δ), on rows that the fit does not read.

        It holds against as many colluders as the fit.
        """
        tally, mu = self._tally(blank=True), engine.budget(self.epsilon, self.delta)
        public = tally.problem.public(known.graph)
        method = replace(tally.method, collusion=trusted(fitted, known))
        self._evaluation = engine.calibrated(method, public, mu, self.epsilon, self.delta), public
        return self._evaluation

    def _not_covered(self) -> tuple[str, ...]:
        return () if self.ledger is not None else (engine.SELECTION,)

    def _charge(self, spent: engine.FitPrivacy, seed: int | None) -> None:
        if seed is not None:
            raise ConfideError(f"random_state={self.random_state}: a ledger pays for secure noise, random_state=None")
        if self.population is None:
            raise ConfideError("population=None: a ledger needs it, the name its owner gave to the people in the data")
        if spent.charged is None:
            raise ConfideError(f"{spent.method}: a ledger of fits takes Gaussian noise, give a method of it")
        ledger = Ledger(self.ledger) if isinstance(self.ledger, str | Path) else self.ledger
        ledger.charge(
            self.population, f"fit-{self._paid.id}", 1, [spent.charged],
            method=f"{type(self).__name__} by {spent.method}", guarantee=spent.guarantee,
        )  # fmt: skip
