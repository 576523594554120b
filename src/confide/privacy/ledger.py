"""The ledger: a durable record of every release and its cost, so that no budget is ever overspent.

    ledger = Ledger()                                        # CONFIDE_LEDGER, or the user's data folder
    ledger.open_population("ward-7", epsilon=2.0, delta=1e-6)
    ledger.reserve("ward-7", run, events)                    # before the first release: the whole schedule, or nothing
    for t, now in enumerate(events, start=1):
        ledger.charge("ward-7", run, t, now)                 # on disk before it returns; then journal, then send
    ledger.end("ward-7", run)                                # a run that stops early gives back what it held

* A *population* is a name that the owner declares for the people in the data. A changed, re-encoded or extended file
  under that name continues the spend; a keyed hash of the data only warns. All parties charged under one name add up.
* A budget is for one kind (unit, adjacency, adversary): other kinds protect other things and never add. A release of
  a kind without a budget is refused. Arithmetic and calculi: :mod:`confide.privacy.budget`.
* The key of a release is (population, run, party, round). Charging it again with the same events is a no-op that
  returns "already": the caller may re-send what it journaled, and nothing else. A run name stands for one journal.
* A reservation holds the unspent part of a schedule, so that of two runs that do not both fit one is refused before its
  first release. Without one, or when the owner lowers the budget, a run stops before the release that would exceed.
* SQLite in WAL mode syncs every commit, and every check shares one IMMEDIATE transaction with its write: of processes
  racing for the last of a budget exactly one wins. Rows are only ever appended; triggers refuse all else.

Not covered: a file restored from an older copy forgets what was spent since; WAL needs a local disk.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Self

from confide.privacy.budget import (
    GAUSSIAN,
    PURE,
    RHO,
    ROW,
    TOLERANCE,
    Balance,
    Bill,
    BudgetExceeded,
    check_addable,
    limit,
    of_agent,
)
from confide.privacy.events import Event, Free, Kind
from confide.privacy.serialize import event_to_json
from confide.privacy.storage import (
    Connection,
    Entry,
    Key,
    Store,
    append,
    budget_of,
    entries_of,
    events_of,
    kinds_of,
    reserved_by,
    spent_by,
)

__all__ = ["ROW", "Balance", "BudgetExceeded", "Entry", "Ledger", "default_path"]


def default_path() -> Path:
    """CONFIDE_LEDGER, or the user's data folder."""
    if given := os.environ.get("CONFIDE_LEDGER"):
        return Path(given)
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "confide" / "ledger.sqlite"


class Ledger:
    """The ledger at `path`, made if it is not there; safe to share between threads and processes."""

    def __init__(self, path: str | Path | None = None, *, create: bool = True, timeout: float = 30.0) -> None:
        self.path = default_path() if path is None else Path(path)
        self._store = Store(self.path, create=create, timeout=timeout)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def __reduce__(self) -> tuple[type[Ledger], tuple[Path]]:
        return Ledger, (self.path,)  # a worker process opens its own connection

    # --- budgets ----------------------------------------------------------------------------------------------------

    def open_population(self, name: str, epsilon: float, delta: float, *, kind: Kind = ROW,
                        calculus: str | None = None) -> str:  # fmt: skip
        """Set the owner's total budget for one kind, once: "opened", or "already" if it is this one.

        Without a `calculus` the first run decides: zCDP if it has any such release, else Gaussian.
        """
        _text(population=name)
        if len(kind) != 3 or Free(unit=kind[0], adjacency=kind[1], adversary=kind[2]).kind != tuple(kind):
            raise ValueError(f"kind must be (unit, adjacency, adversary), given {kind!r}")
        limit(epsilon, delta, calculus or GAUSSIAN)
        with self._store.writing() as db:
            found = budget_of(db, name, kind)
            if found is None:
                append(db, "budgets", population=name, kind=kind, epsilon=epsilon, delta=delta, calculus=calculus)
                return "opened"
            if found[:2] == (epsilon, delta) and calculus in (None, found[2]):
                return "already"
            raise ValueError(f"population {name!r} has a {kind[0]} budget of ε={found[0]:g} at δ={found[1]:g} "
                             f"({found[2] or 'any'} calculus), given another: change_budget changes it")  # fmt: skip

    def change_budget(self, name: str, epsilon: float, delta: float, *, kind: Kind = ROW,
                      calculus: str | None = None) -> None:  # fmt: skip
        """Raise or lower a budget, never below what is spent; recorded as a row of its own.

        The guarantee is that of the largest budget there was. `calculus` re-declares how the budget counts; both are
        the owner's decisions and must not depend on what was released.
        """
        with self._store.writing() as db:
            now = self._balance(db, name, kind, calculus)
            if calculus is not None and now.held > 0:
                raise ValueError(f"population {name!r}: unfinished runs hold part of the budget: end them first")
            charged = Bill.sum(Bill.of(e.events) for e in entries_of(db, name))
            check_addable(name, kind, now.calculus, charged.parts.get(kind, frozenset()))
            if now.spent > limit(epsilon, delta, now.calculus) * (1 + TOLERANCE):
                raise ValueError(f"population {name!r}: ε={now.spent_epsilon:.4g} at δ={now.delta:g} is spent, a "
                                 f"budget of ε={epsilon:g} at δ={delta:g} would lie below")  # fmt: skip
            fixed = calculus or self._in_force(db, name, kind)[2]
            append(db, "budgets", population=name, kind=kind, epsilon=epsilon, delta=delta, calculus=fixed)

    # --- releases ---------------------------------------------------------------------------------------------------

    def reserve(self, population: str, run: str, events_by_round: Sequence[Sequence[Event]], *,
                agent: int | None = None, party: str | None = None) -> None:  # fmt: skip
        """Hold the whole schedule for this run, or refuse it; what the run has charged already counts as part of it."""
        party = _party(party, agent)
        _text(population=population, run=run)
        bill = Bill.sum(Bill.of(of_agent(events, agent)) for events in events_by_round)
        with self._store.writing() as db:
            self._admit(db, population, (run, party), bill, f"run {run!r} ({len(events_by_round)} rounds)", whole=True)
            for kind, cost in bill.costs.items():
                if reserved_by(db, population, kind, GAUSSIAN).get((run, party)) != cost.square:
                    append(db, "reservations", population=population, run=run, party=party, kind=kind, **cost._asdict())

    def charge(self, population: str, run: str, round: int, events: Sequence[Event], *, agent: int | None = None,
               party: str | None = None, method: str = "", guarantee: object = "") -> str:  # fmt: skip
        """Pay for one release before it is made: "charged", or "already"; raises if the budget does not cover it.

        `agent` picks the values of one agent where events have one value an agent, and names the `party` unless given.
        """
        party = _party(party, agent)
        _text(population=population, run=run)
        if isinstance(round, bool) or not isinstance(round, Integral) or round < 0:
            raise ValueError(f"round {round!r}: must be a whole number of at least 0")
        mine = of_agent(events, agent)
        bill = Bill.of(mine)
        text = json.dumps([event_to_json(e) for e in mine], sort_keys=True, allow_nan=False)
        with self._store.writing() as db:
            key = (population, run, party, int(round))
            query = "SELECT events FROM releases WHERE (population, run, party, round) = (?, ?, ?, ?)"
            if found := db.execute(query, key).fetchone():
                if found[0] == text:
                    self._store.sync()
                    return "already"
                before = list(events_of(found[0]))
                raise ValueError(f"round {round} of run {run!r} was charged to {population!r} as {before}, given "
                                 f"{mine}: another release needs another run")  # fmt: skip
            self._admit(db, population, (run, party), bill, f"round {round} of run {run!r}", whole=False)
            release = append(db, "releases", population=population, run=run, party=party, round=int(round),
                             method=method, guarantee=str(guarantee), events=text)  # fmt: skip
            for kind, cost in bill.costs.items():
                append(db, "costs", release=release, kind=kind, **cost._asdict())
        return "charged"

    def end(self, population: str, run: str, *, agent: int | None = None, party: str | None = None) -> None:
        """Give back what a run holds and has not spent."""
        key = (run, _party(party, agent))
        with self._store.writing() as db:
            for kind in kinds_of(db, population):
                if reserved_by(db, population, kind, GAUSSIAN).get(key):
                    append(db, "reservations", population=population, run=run, party=key[1], kind=kind,
                           square=0.0, pure=0.0)  # fmt: skip

    def note_data(self, population: str, chunks: Iterable[bytes]) -> bool:
        """Remember a keyed hash of the data; warn, and return True, if it is not the one seen last.

        The key never leaves the ledger: a plain hash would let anyone test a guess of the whole file.
        """
        _text(population=population)
        with self._store.reading() as db:
            (key,) = db.execute("SELECT key FROM secret").fetchone()
        code = hmac.new(key, population.encode(), hashlib.sha256)
        for chunk in chunks:
            code.update(chunk)
        with self._store.writing() as db:
            query = "SELECT hash FROM fingerprints WHERE population = ? ORDER BY id DESC LIMIT 1"
            last = db.execute(query, (population,)).fetchone()
            if last is None or last[0] != code.digest():
                append(db, "fingerprints", population=population, hash=code.digest())
        if changed := last is not None and last[0] != code.digest():
            warnings.warn(f"the data of population {population!r} changed: its spend continues", stacklevel=2)
        return changed

    # --- questions --------------------------------------------------------------------------------------------------

    def populations(self) -> list[str]:
        """Every population, the first opened first."""
        with self._store.reading() as db:
            return [name for (name,) in db.execute("SELECT population FROM budgets GROUP BY 1 ORDER BY min(id)")]

    def balances(self, population: str) -> list[Balance]:
        """One balance for each kind that has a budget."""
        with self._store.reading() as db:
            return [self._balance(db, population, kind) for kind in kinds_of(db, population)]

    def balance(self, population: str, kind: Kind = ROW) -> Balance:
        with self._store.reading() as db:
            return self._balance(db, population, kind)

    def spent(self, population: str, kind: Kind = ROW) -> float:
        """ε at the budget's δ of everything charged."""
        return self.balance(population, kind).spent_epsilon

    def remaining(self, population: str, kind: Kind = ROW) -> float:
        """Largest ε, at the budget's δ, of one more run that would be admitted."""
        return self.balance(population, kind).left_epsilon

    def entries(self, population: str) -> list[Entry]:
        """Every charged release, in order."""
        with self._store.reading() as db:
            return entries_of(db, population)

    # --- inside a transaction ---------------------------------------------------------------------------------------

    def _admit(self, db: Connection, population: str, key: Key, bill: Bill, what: str, *, whole: bool) -> None:
        """Refuse a bill that does not fit beside what all others spent or hold; the first one fixes the calculus."""
        for kind, cost in bill.costs.items():
            epsilon, delta, calculus = self._in_force(db, population, kind)
            if calculus is None:
                calculus = RHO if RHO in bill.parts[kind] else GAUSSIAN
                append(db, "budgets", population=population, kind=kind, epsilon=epsilon, delta=delta, calculus=calculus)
            check_addable(population, kind, calculus, bill.parts[kind])
            spent = spent_by(db, population, kind, calculus)
            own, amount = spent.pop(key, 0.0), cost.on(calculus)
            reserved = reserved_by(db, population, kind, calculus)
            held = [max(0.0, reserved[k] - spent.get(k, 0.0)) for k in reserved if k != key]
            needed = max(own, amount) if whole else own + amount
            if math.fsum([*spent.values(), *held, needed]) > limit(epsilon, delta, calculus) * (1 + TOLERANCE):
                used = math.fsum([*spent.values(), own])
                now = Balance(population, kind, epsilon, delta, calculus, used, math.fsum(held))
                waits = f" (ε={now.at(now.held):.4g} is held by other runs)" if now.held > 0 else ""
                hint = "; for pure ε alone, calculus='pure' counts less" if bill.parts[kind] == {PURE} else ""
                raise BudgetExceeded(
                    f"population {population!r}: {what} costs ε={now.at(amount):.4g}, and of {now} for each {kind[0]} "
                    f"ε={now.left_epsilon:.4g} is left{waits}: nothing was charged{hint if calculus != PURE else ''}"
                )

    def _in_force(self, db: Connection, population: str, kind: Kind) -> tuple[float, float, str | None]:
        if budget := budget_of(db, population, kind):
            return budget
        raise ValueError(f"population {population!r} has no budget for {'/'.join(kind)}: open_population sets it")

    def _balance(self, db: Connection, population: str, kind: Kind, calculus: str | None = None) -> Balance:
        epsilon, delta, fixed = self._in_force(db, population, kind)
        calculus = calculus or fixed or GAUSSIAN
        spent, reserved = spent_by(db, population, kind, calculus), reserved_by(db, population, kind, calculus)
        held = math.fsum(max(0.0, amount - spent.get(k, 0.0)) for k, amount in reserved.items())
        return Balance(population, kind, epsilon, delta, calculus, math.fsum(spent.values()), held)


def _party(party: str | None, agent: int | None) -> str:
    """The party's part of the key; by default the agent, so that no agent's release passes for another's."""
    return party if party is not None else "" if agent is None else str(agent)


def _text(**names: str) -> None:
    for name, value in names.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ValueError(f"{name} must be a name on one line, given {value!r}")
