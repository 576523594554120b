"""`Purse`: what one node may spend in one run. The ledger is asked before every release; nothing is sent unpaid."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from confide.node.federation import Federation
from confide.privacy import Event, Label, totals
from confide.privacy.budget import of_agent
from confide.privacy.ledger import BudgetExceeded, Ledger
from confide.privacy.secure import charge

TOLERANCE = 1e-9  # rounding of a calibrated schedule; the ledger's own limit is exact


class Purse:
    """Pays for party k's rounds at what the secure sampler proves.

    The owner's budget for the `population` is the ledger's; a population without one gets the federation's cap. Where
    nothing protects (seeded or no noise, which the owner must have allowed) there is nothing to pay with.
    """

    def __init__(self, federation: Federation, k: int, population: str, path: Path | None = None) -> None:
        self.federation, self.population, self.party = federation, population, federation.parties[k]
        self.ledger: Ledger | None = None
        self._path, self._events = path, self._priced(k)

    @property
    def protects(self) -> bool:
        return self.federation.guarantee.label != Label.NONE

    def _priced(self, k: int) -> list[list[Event]]:
        """What each round costs party k, in the sampler's terms."""
        if not self.protects:
            return []
        mine = self.federation.public.at(k)
        widths = self.federation.algorithm.schedule(mine).widths
        events = [of_agent(now, 0) for now in self.federation.algorithm.events(mine)]
        return [charge([now], int(width))[0] for now, width in zip(events, widths, strict=True)]

    def open(self, run: str, journaled: int) -> None:
        """Hold the whole schedule before a row is read, or refuse; `journaled` rounds were released already."""
        if not self.protects:
            return
        epsilon, delta = self.federation.epsilon, self.federation.delta
        assert epsilon is not None and delta is not None
        self._check_cap(epsilon, delta)
        self.run = run
        self.ledger = Ledger(self._path)
        if self.population not in self.ledger.populations():
            self.ledger.open_population(self.population, epsilon, delta)
        charged = [e.round for e in self.ledger.entries(self.population) if (e.run, e.party) == (run, self.party)]
        if max(charged, default=0) > journaled + 1:  # one more: a crash between ledger and journal
            raise ValueError(
                f"the ledger has round {max(charged)} of this run and the journal only {journaled}: "
                "an older copy of the journal would release other noise for the same rounds; begin another run"
            )
        self.ledger.reserve(self.population, run, self._events, party=self.party)

    def _check_cap(self, epsilon: float, delta: float) -> None:
        for kind, total in totals(chain.from_iterable(self._events), delta).items():
            if float(total) > epsilon * (1 + TOLERANCE):
                raise BudgetExceeded(
                    f"{self.party}: {len(self._events)} rounds cost each {kind[0]} ε={float(total):.4g} at "
                    f"δ={delta:g}, more than the federation's cap of ε={epsilon:g}: nothing was charged"
                )

    def pay(self, t: int) -> None:
        """On disk before it returns; raises, before anything is computed, if the budget does not cover round t."""
        if self.ledger is not None:
            self.ledger.charge(
                self.population, self.run, t, self._events[t - 1], party=self.party,
                method=self.federation.algorithm.name, guarantee=self.federation.guarantee,
            )  # fmt: skip

    def spent(self) -> float | None:
        """ε of the population so far, over all runs; None where nothing is protected."""
        return None if self.ledger is None else self.ledger.spent(self.population)

    def end(self) -> None:
        """The run is over: give back what it held and did not spend."""
        if self.ledger is not None:
            self.ledger.end(self.population, self.run, party=self.party)

    def close(self) -> None:
        if self.ledger is not None:
            self.ledger.close()
