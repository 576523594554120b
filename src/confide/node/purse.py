"""`Purse`: what one node may spend in one run. The ledger is asked before every release; nothing is sent unpaid.

**One payment a draw.** The order in a round is ledger, memory, noise, journal, send. So whatever a neighbour has seen
of round t was in the journal and paid for. When a node starts again, the ledger and the journal may disagree:

* *The journal has rounds that the ledger lacks*: the ledger is an older copy, or a new one. The journal is the evidence
  of what was released, so these rounds are charged, before anything else and whatever the budget says.
* *The ledger has the round after the journal's last, and nothing later.* Either the node crashed between payment and
  journal, and nobody has seen a message of that round; or the journal lost its last record, and its message is known
  to everyone. No file tells the two apart: in both the ledger shows the payment and the journal ends before it. If it
  was the second, noise drawn now is a second release of the same round. So it is paid as one, attempt 2, before it is
  drawn; and attempt 3 if that happens again. The number is durable in time, because it is part of the ledger's row.
  If it was the first, one price was paid for nothing: the price of not knowing. `spare` attempts are held for that, as
  many as the federation says where the owner says nothing.
* *The ledger has several rounds more*: an older copy of the journal. Every one of them would be drawn again against
  neighbours who hold the first: refused.
* *Both end too early*, as on a disk that lied about syncing: the run's memory (`remembered`) has what was paid for
  last. It counts as the ledger's own rows do, and is charged again.
* *The ledger lost what other runs of this home released*: their journals are settled, too (`closing.settle_home`).

An attempt counts like any round, against the owner's budget and the federation's cap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

from confide.errors import ConfideError
from confide.node.amended_cost import follow_cap
from confide.node.caps import attempts_held, caps
from confide.node.closing import open_budgets, settle_home
from confide.node.federation import Federation
from confide.node.remembered import LONGEST, Memory, Remembered
from confide.privacy import Event, Label, totals
from confide.privacy.budget import NOTHING
from confide.privacy.events import EVERYONE
from confide.privacy.ledger import BudgetExceeded, Ledger, default_path

TOLERANCE = 1e-9  # rounding of a calibrated schedule; the ledger's own limit is exact


class Purse:
    """Pays for party k's rounds at what the secure sampler proves.

    The owner's budget for the `population` is the ledger's; a population without one gets the federation's cap. Where
    parties share their noise the cap is against a coalition, which has a budget of its own, and a population without
    one against everyone gets what the same noise is worth against them (`caps`): each release pays into both. Where
    nothing protects (seeded or no noise, which the owner must have allowed) there is nothing to pay with.
    """

    def __init__(self, federation: Federation, k: int, population: str, path: Path | None = None,
                 spare: int | None = None) -> None:  # fmt: skip
        spare = federation.restarts if spare is None else spare
        if spare < 0:
            raise ConfideError(f"{spare} spare attempts: must be 0 or more")
        if len(population.encode()) > LONGEST:
            raise ConfideError(f"population {population[:20]!r}…: must be at most {LONGEST} bytes long")
        self.federation, self.population, self.party = federation, population, federation.parties[k]
        self.ledger: Ledger | None = None
        self.few: float | None = (
            None  # ε against the coalition, where parties share their noise; as of the last `spent`
        )
        self.left: float | None = None  # ε of one more run that would be admitted, as of the last `spent`
        self._remembered: Remembered | None = None
        self._path, self._spare, self._k = path, spare, k
        self._has_budgets = False  # whoever shows what is spent may ask from another thread, while `open` is at work

    @property
    def protects(self) -> bool:
        return self.federation.guarantee.label != Label.NONE

    @cached_property
    def prices(self) -> list[list[Event]]:
        """Of every round, whatever the terms were that it was sent under."""
        return self.federation.prices(self._k)

    @cached_property
    def _terms(self) -> list[list[Event]]:
        """Of a round that is sent now."""
        return self.federation.prices(self._k)

    def open(self, run: str, attempts: Sequence[int], folder: Path) -> str:
        """Settle what was released, then hold the rest of the schedule before a row is read, or refuse.

        `attempts` has one number for each own round in the journal; the run's memory is in `folder`. Returns what the
        owner should know, on one line, or nothing.
        """
        self.federation.check_runnable()
        if not self.protects:
            return ""
        epsilon, delta = self.federation.epsilon, self.federation.delta
        assert epsilon is not None and delta is not None
        self._check_cap(self.prices, "", epsilon, delta)
        self.run = run
        self._check_mode()
        self.ledger, self._remembered = Ledger(self._path), Remembered(folder)
        draws = self._remembered.memory.draws(run, attempts)
        said = [settle_home(self.ledger, folder), self._check_copy()]
        self._check_population()
        self._charged = self.ledger.attempts(self.population, run, party=self.party)
        open_budgets(self.ledger, self.population, caps(self.federation, self._k, self._spare))
        said.append(follow_cap(self.ledger, self.population, self.federation, self.party, self._spare))
        self._has_budgets = True
        self._charged |= {t: max(a, self._charged.get(t, 0)) for t, a in enumerate(draws, start=1)}
        if (paid := max(self._charged, default=0)) > len(attempts) + 1:
            self.settle(draws)
            raise ConfideError(
                f"round {paid} of this run was paid for and the journal has only {len(attempts)}: "
                "an older copy of the journal would release other noise for the same rounds; begin another run"
            )
        said += self._hold(draws, len(attempts) + 1, epsilon, delta)
        self._remember()
        return "; ".join(filter(None, said))

    def _check_mode(self) -> None:
        """Refuse a ledger that others may write: it is what the owner's promises rest on."""
        path = self._path or default_path()
        if path.exists() and path.stat().st_mode & 0o022:
            raise ConfideError(f"{path}: others can write the ledger (mode {path.stat().st_mode & 0o777:o}): chmod 600")

    def _hold(self, draws: Sequence[int], t: int, epsilon: float, delta: float) -> list[str]:
        """Reserve the schedule and settle the draws: they were released, whether or not the rest fits."""
        refusal, held = None, ""
        try:  # first: a single round would make the budget keep more slack than the whole schedule leaves room for
            held = self._reserve(t, epsilon, delta)
        except BudgetExceeded as error:
            refusal = error
        lacked = self.settle(draws)
        if refusal is not None:
            words = str(refusal).replace(NOTHING, f"nothing more was charged; {lacked}") if lacked else str(refusal)
            raise BudgetExceeded(words) from None
        return [lacked, held]

    def _check_copy(self) -> str:
        """Refuse a ledger that has lost what others released; what this run released is in the journal."""
        assert self.ledger is not None and self._remembered is not None
        self._seen = memory = self._remembered.memory
        if self.ledger.continues(memory.head):
            return ""
        if memory.run != self.run:
            raise ConfideError(
                f"{self.ledger.path} is an older copy or another file, and the journal of run {memory.run}, which paid "
                f"into it, is not here: restore the newest of one, or, if both are lost, remove {self._remembered.path}"
            )
        if memory.released and not self.ledger.continues(memory.others):
            raise ConfideError(
                f"{self.ledger.path} is an older copy or another file: releases of other runs that this one saw in "
                f"the ledger are not there; restore the newest, or, if it is lost, remove {self._remembered.path}"
            )
        self._seen = Memory()  # what is missing is ours: everything else is to be looked at again
        return f"{self.ledger.path} is an older copy or another file than this run paid into"

    def _check_population(self) -> None:
        """A run stays with the people it began with: their rows are in all of its rounds."""
        assert self.ledger is not None and self._remembered is not None
        memory = self._remembered.memory
        paid = [name for name, party in self.ledger.who(self.run) if party == self.party]
        for population in [*paid, *([memory.population] if memory.run == self.run else [])]:
            if population != self.population:
                raise ConfideError(
                    f"this run is charged to {population!r}, not to {self.population!r}: resume it with "
                    f"--population {population!r}"
                )

    def settle(self, attempts: Sequence[int]) -> str:
        """Charge what the journal, the memory or a neighbour shows and the ledger lacks."""
        if self.ledger is None:
            return ""
        released = [(t, a, self.prices[t - 1]) for t, last in enumerate(attempts, start=1) for a in range(1, last + 1)]
        done = self.ledger.settle(
            self.population, self.run, released, party=self.party,
            method=self.federation.algorithm.name, guarantee=self.federation.guarantee,
        )  # fmt: skip
        self._charged |= {t: max(a, self._charged.get(t, 0)) for t, a in done}
        return f"the ledger lacked {len(done)} of {len(released)} releases in the journal: charged now" if done else ""

    def _reserve(self, t: int, epsilon: float, delta: float) -> str:
        """Hold the schedule with every attempt made, and one more if round t, the next, was paid for already."""
        assert self.ledger is not None
        due = t in self._charged
        again = [self.prices[r - 1] for r, last in self._charged.items() for _ in range(last - 1 + (r == t))]
        rest = attempts_held(self.prices, self._spare)[len(again) :]  # of what was held for attempts
        what = f" with {len(again) + len(rest)} more attempts" if again or rest else ""
        whole = [*self.prices, *again, *rest]
        self._check_cap(whole, what, epsilon, delta)
        self.ledger.reserve(self.population, self.run, whole, party=self.party)
        return f"round {t} was paid for and is not in the journal: it is paid for again" if due else ""

    def _check_cap(self, rounds: list[list[Event]], what: str, epsilon: float, delta: float) -> None:
        for kind, total in totals(chain.from_iterable(rounds), delta).items():
            if float(total) > epsilon * (1 + TOLERANCE):
                raise BudgetExceeded(
                    f"{self.party}: {len(self.prices)} rounds{what} cost each {kind[0]} ε={float(total):.4g} at "
                    f"δ={delta:g}, more than the federation's cap of ε={epsilon:g}: {NOTHING}"
                )

    def note_rows(self, rows: Iterable[bytes]) -> str:
        """A word if these are not the rows that were seen last: who replaces them should know that nothing begins anew.

        What was spent on the population stays spent, whatever its rows are now.
        """
        if self.ledger is None:
            return ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is said in the notice
            changed = self.ledger.note_data(self.population, rows)
        return f"the rows are not those that {self.population!r} had last: its spend continues" if changed else ""

    def pay(self, t: int) -> int:
        """Pay for one draw of round t and say which attempt it is; raises before anything is computed if it may not.

        On disk before it returns. A round that was paid for before is paid for again: see above.
        """
        if self.ledger is None:
            return 1
        attempt = self._charged.get(t, 0) + 1
        answer = self.ledger.charge(
            self.population, self.run, t, self._terms[t - 1], attempt=attempt, party=self.party,
            method=self.federation.algorithm.name, guarantee=self.federation.guarantee,
        )  # fmt: skip
        if answer != "charged":
            raise ConfideError(
                f"round {t} of this run was paid for by another process: is a copy of this node running?"
            )
        self._charged[t] = attempt
        self._remember()
        return attempt

    def _remember(self) -> None:
        assert self.ledger is not None and self._remembered is not None
        before, head = self._seen, self.ledger.head()
        others, released = self.ledger.others(self.run, party=self.party, after=before.head.rows)
        t = max(self._charged, default=0)
        self._seen = Memory(head, others or before.others, before.released or released, self.run, self.population, t,
                            self._charged.get(t, 0))  # fmt: skip
        self._remembered.keep(self._seen)

    def spent(self) -> float | None:
        """ε of the population so far, over all runs, against everyone; None where nothing protects or is open yet.

        Then `left` is what is left of that budget, and `few` what was spent against a coalition, if this run has one.
        """
        if self.ledger is None or not self._has_budgets:
            return None
        few = next((event.kind for event in self.prices[0] if event.adversary != EVERYONE), None)
        self.few = None if few is None else self.ledger.spent(self.population, few)
        balance = self.ledger.balance(self.population)
        self.left = balance.left_epsilon
        return balance.spent_epsilon

    def end(self) -> None:
        """The run is over: give back what it held and did not spend."""
        if self.ledger is not None:
            self.ledger.end(self.population, self.run, party=self.party)
            self._remember()

    def close(self) -> None:
        for one in (self.ledger, self._remembered):
            if one is not None:
                one.close()
