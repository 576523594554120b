"""The ledger: a durable record of every release and its cost, so that no budget is ever overspent.

    ledger = Ledger()                                        # CONFIDE_LEDGER, or the user's data folder
    ledger.open_population("ward-7", epsilon=2.0, delta=1e-6)
    ledger.reserve("ward-7", run, events)                    # before the first release: the whole schedule, or nothing
    for t, now in enumerate(events, start=1):
        ledger.charge("ward-7", run, t, now)                 # on disk before it returns; then journal, then send
    ledger.end("ward-7", run)                                # a run that stops early gives back what it held

* A *population* is a name that the owner declares for the people in the data. A changed, re-encoded or extended file
  under that name continues the spend; a keyed hash of the data only warns. All parties charged under one name add up.
* A budget is for one kind (unit, adjacency, adversary): other units protect other things and never add. A release of
  a kind without a budget is refused. Arithmetic and calculi: :mod:`confide.privacy.budget`.
* Every release says what it costs against everyone, all others together, and needs a budget for that. A coalition may
  have one besides: it is charged what a release states against this very coalition, and in full for one that states
  nothing, such as any without masks. Opened later, it begins with all that was charged before. It is c of K of *each*.
* The key of a release is (population, run, party, round, attempt). Charging it again with the same events is a no-op
  that returns "already": the caller may re-send what it journaled, and nothing else. A run name stands for one journal.
* A round whose noise is drawn a second time is a second release, another *attempt*, and is paid again.
* A reservation holds the unspent part of a schedule, so that of two runs that do not both fit one is refused before its
  first release. Without one, or when the owner lowers the budget, a run stops before the release that would exceed.
* SQLite in WAL mode syncs every commit, and every check shares one IMMEDIATE transaction with its write: of processes
  racing for the last of a budget exactly one wins. Rows are only ever appended; triggers refuse all else.
* Every row is in a chain of keyed checksums that is verified on opening (:mod:`confide.privacy.chain`): damage is
  refused in one line. Files of version 1 get their chain when they are first opened.

Not covered: a file restored from an older copy forgets what was spent since. Only who kept its `head` can tell; a node
does, and charges again what its journal shows (`settle`). WAL needs a local disk.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from numbers import Integral
from pathlib import Path
from typing import Self

from confide.errors import ConfideError
from confide.privacy import admission
from confide.privacy.budget import (
    GAUSSIAN,
    ROW,
    TOLERANCE,
    Balance,
    Bill,
    BudgetExceeded,
    Cost,
    check_addable,
    check_stated,
    limit,
    of_agent,
)
from confide.privacy.chain import Head
from confide.privacy.events import Event, Free, Kind
from confide.privacy.serialize import event_to_json
from confide.privacy.storage import (
    Connection,
    Entry,
    Hold,
    Store,
    append,
    budget_of,
    entries_of,
    events_of,
    kinds_of,
    last_of_others,
    reserved_by,
    spent_by,
)

__all__ = ["ROW", "Balance", "BudgetExceeded", "Entry", "Head", "Hold", "Ledger", "default_path"]


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
        _name(population=name)
        if len(kind) != 3 or Free(unit=kind[0], adjacency=kind[1], adversary=kind[2]).kind != tuple(kind):
            raise ConfideError(f"kind={kind!r}: must be (unit, adjacency, adversary)")
        limit(epsilon, delta, calculus or GAUSSIAN)
        epsilon, delta = float(epsilon), float(delta)  # sqlite3 writes NumPy's numbers as bytes
        with self._store.writing() as db:
            found = budget_of(db, name, kind)
            if found is None:
                calculus = calculus or admission.calculus_before(db, name, kind)
                append(db, "budgets", population=name, kind=kind, epsilon=epsilon, delta=delta, calculus=calculus)
                admission.catch_up(db, name, kind, calculus)
                return "opened"
            if (found.epsilon, found.delta) == (epsilon, delta) and calculus in (None, found.calculus):
                return "already"
            raise ConfideError(
                f"another budget for population {name!r}: it has a {kind[0]} one of ε={found.epsilon:g} at "
                f"δ={found.delta:g} ({found.calculus or 'any'} calculus): change_budget changes it"
            )

    def change_budget(self, name: str, epsilon: float, delta: float, *, kind: Kind = ROW,
                      calculus: str | None = None, slack: float | None = None) -> None:  # fmt: skip
        """Raise or lower a budget, never below what is spent; recorded as a row of its own.

        The guarantee is that of the largest budget there was. `calculus` re-declares how the budget counts, `slack` how
        much total variation it keeps for secure noise; all are the owner's decisions and must not depend on what was
        released.
        """
        if slack is not None and (isinstance(slack, bool) or not 0 <= slack < 1):
            raise ConfideError(f"slack={slack!r}: must be at least 0 and below 1")
        with self._store.writing() as db:
            now = admission.balance(db, name, kind, calculus)
            if calculus is not None and now.held > 0:
                raise ConfideError(f"population {name!r}: unfinished runs hold part of the budget: end them first")
            check_addable(name, kind, now.calculus, admission.parts_charged(db, name, kind))
            before = admission.in_force(db, name, kind)
            kept = before.slack if slack is None else slack
            if slack is None and now.spent_slack > (kept or 0.0):
                kept = now.spent_slack  # of releases that were settled after they were made
            most = limit(epsilon, delta, now.calculus, kept or 0.0) * (1 + TOLERANCE)
            if now.spent > most or now.spent_slack > (kept or 0.0):
                raise ConfideError(
                    f"population {name!r}: ε={now.spent_epsilon:.4g} at δ={now.delta:g} is spent, a "
                    f"budget of ε={epsilon:g} at δ={delta:g} would lie below"
                )
            append(db, "budgets", population=name, kind=kind, epsilon=float(epsilon), delta=float(delta),
                   calculus=calculus or before.calculus, slack=None if kept is None else float(kept))  # fmt: skip

    # --- releases ---------------------------------------------------------------------------------------------------

    def together(self) -> AbstractContextManager[object]:
        """What this thread does inside is one transaction: all of it or, if an error leaves it, nothing."""
        return self._store.writing()

    def reserve(self, population: str, run: str, events_by_round: Sequence[Sequence[Event]], *, spare: int = 0,
                agent: int | None = None, party: str | None = None) -> None:  # fmt: skip
        """Hold the whole schedule for this run, or refuse it; what the run has charged already counts as part of it.

        `spare` attempts are held besides, each at the price of the dearest round.
        """
        party = _party(party, agent)
        _text(population=population)
        _name(run=run)
        _whole(spare=spare)
        check_stated(event for events in events_by_round for event in events)
        rounds = [Bill.of(of_agent(events, agent)) for events in events_by_round]
        bill = Bill.sum([*rounds, Bill.largest(rounds).times(int(spare))])
        what = f"run {run!r} ({len(rounds)} rounds{f' and {spare} spare' if spare else ''})"
        with self._store.writing() as db:
            admission.admit(db, population, (run, party), bill, what, whole=True)
            for kind, cost in admission.recorded(db, population, bill).items():
                held = reserved_by(db, population, kind).get((run, party))
                if held is None or held[1] != cost:
                    append(db, "reservations", population=population, run=run, party=party, kind=kind, **cost._asdict())

    def charge(self, population: str, run: str, round: int, events: Sequence[Event], *, attempt: int = 1,
               agent: int | None = None, party: str | None = None, method: str = "", guarantee: object = ""
               ) -> str:  # fmt: skip
        """Pay for one release before it is made: "charged", or "already"; raises if the budget does not cover it.

        `agent` picks the values of one agent where events have one value per agent, and names the `party` unless given.
        """
        party = _party(party, agent)
        with self._store.writing() as db:
            return self._charge(db, (population, run, party), round, attempt, of_agent(events, agent), method,
                                str(guarantee), forced=False)  # fmt: skip

    def settle(self, population: str, run: str, released: Iterable[tuple[int, int, Sequence[Event]]], *,
               agent: int | None = None, party: str | None = None, method: str = "", guarantee: object = ""
               ) -> list[tuple[int, int]]:  # fmt: skip
        """Charge what was released already, each (round, attempt, events), and is not here; those it had to charge.

        It happened, so it counts even where it passes the budget: then nothing more is admitted. All or nothing, once.
        """
        party, done = _party(party, agent), []
        with self._store.writing() as db:
            there = self._attempts(db, population, run, party)
            for round, attempt, events in released:
                if attempt > there.get(round, 0):
                    self._charge(db, (population, run, party), round, attempt, of_agent(events, agent), method,
                                 str(guarantee), forced=True)  # fmt: skip
                    done.append((round, attempt))
            if done:
                append(db, "notes", text=f"run {run!r} of {population!r}: {len(done)} releases charged after they were "
                                         f"made, rounds {done[0][0]} to {done[-1][0]}")  # fmt: skip
        return done

    def end(self, population: str, run: str, *, agent: int | None = None, party: str | None = None) -> None:
        """Give back what a run holds and has not spent."""
        key = (run, _party(party, agent))
        with self._store.writing() as db:
            for kind in kinds_of(db, population, "reservations"):
                held = reserved_by(db, population, kind).get(key)
                if held is not None and any(held[1]):
                    append(db, "reservations", population=population, run=run, party=key[1], kind=kind,
                           **Cost(0.0, 0.0)._asdict())  # fmt: skip

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
            return [admission.balance(db, population, kind) for kind in kinds_of(db, population)]

    def balance(self, population: str, kind: Kind = ROW) -> Balance:
        with self._store.reading() as db:
            return admission.balance(db, population, kind)

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

    def holds(self, population: str) -> list[Hold]:
        """What unfinished runs hold and have not spent, by kind and run."""
        out = []
        with self._store.reading() as db:
            for kind in kinds_of(db, population):
                calculus = admission.in_force(db, population, kind).calculus or GAUSSIAN
                spent = spent_by(db, population, kind, admission.column_of(calculus))
                loose = spent_by(db, population, kind, "slack")
                for key, (at, cost) in reserved_by(db, population, kind).items():
                    rest = Cost(*(max(0.0, most - used.get(key, 0.0)) for most, used in
                                  ((cost.square, spent), (cost.pure, spent), (cost.slack, loose))))  # fmt: skip
                    if rest.on(calculus) > 0:
                        out.append(Hold(population, kind, *key, at, rest.on(calculus), rest.slack))
        return out

    def who(self, run: str) -> list[tuple[str, str]]:
        """Every (population, party) that this run was charged or reserved for."""
        with self._store.reading() as db:
            return db.execute("SELECT population, party FROM releases WHERE run = ? UNION SELECT population, party "
                              "FROM reservations WHERE run = ? ORDER BY 1, 2", (run, run)).fetchall()  # fmt: skip

    def attempts(self, population: str, run: str, *, party: str = "") -> dict[int, int]:
        """Of every round that a run was charged for, the last attempt."""
        with self._store.reading() as db:
            return self._attempts(db, population, run, party)

    def notes(self) -> list[tuple[str, str]]:
        """What happened to the file itself: when, and what."""
        with self._store.reading() as db:
            return db.execute("SELECT at, text FROM notes ORDER BY id").fetchall()

    def head(self) -> Head:
        """How far the chain has come. Keep it elsewhere: an older copy of the file does not continue it."""
        with self._store.reading() as db:
            return db.chain.head

    def continues(self, head: Head) -> bool:
        """Whether everything is here that was here at this head."""
        with self._store.reading() as db:
            found = db.execute("SELECT tag FROM chain WHERE id = ?", (head.rows,)).fetchone()
            return head.rows == 0 or (found is not None and found[0] == head.tag)

    def others(self, run: str, *, party: str = "", after: int = 0) -> tuple[Head | None, bool]:
        """The last row beyond number `after` of the chain that is not this run's, and whether one is a release."""
        with self._store.reading() as db:
            return last_of_others(db, run, party, after)

    # --- inside a transaction ---------------------------------------------------------------------------------------

    def _attempts(self, db: Connection, population: str, run: str, party: str) -> dict[int, int]:
        return dict(db.execute("SELECT round, max(attempt) FROM releases WHERE (population, run, party) = (?, ?, ?) "
                               "GROUP BY round", (population, run, party)).fetchall())  # fmt: skip

    def _charge(self, db: Connection, who: tuple[str, str, str], round: int, attempt: int, events: list[Event],
                method: str, guarantee: str, *, forced: bool) -> str:  # fmt: skip
        population, run, party = who
        _text(population=population)
        _name(run=run)
        _line(method=method)
        _whole(round=round)
        _whole(attempt=attempt, least=1)
        check_stated(events)
        bill = Bill.of(events)
        text = json.dumps([event_to_json(e) for e in events], sort_keys=True, allow_nan=False)
        query = "SELECT events FROM releases WHERE (population, run, party, round, attempt) = (?, ?, ?, ?, ?)"
        if found := db.execute(query, (*who, int(round), int(attempt))).fetchone():
            if events_of(found[0]) == tuple(events):
                self._store.sync()
                return "already"
            before = list(events_of(found[0]))
            raise ConfideError(
                f"{events} for round {round} of run {run!r}: it was charged to {population!r} as {before}: another "
                "release needs another run"
            )
        again = f", attempt {attempt}," if attempt > 1 else ""
        admission.admit(db, population, (run, party), bill, f"round {round}{again} of run {run!r}", whole=False,
                    forced=forced)  # fmt: skip
        release = append(db, "releases", population=population, run=run, party=party, round=int(round),
                         attempt=int(attempt), method=method, guarantee=guarantee, events=text)  # fmt: skip
        for kind, cost in admission.recorded(db, population, bill).items():
            append(db, "costs", release=release, kind=kind, **cost._asdict())
        return "charged"


def _whole(least: int = 0, **numbers: int) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value < 2**63:
            raise ConfideError(f"{name} {value!r}: must be a whole number of at least {least} and below 2**63")


def _party(party: str | None, agent: int | None) -> str:
    """The party's part of the key; by default the agent, so that no agent's release passes for another's."""
    if party is not None:
        _line(party=party)
        return party
    return "" if agent is None else str(agent)


def _line(**texts: str) -> None:
    """On one line, perhaps empty."""
    for name, value in texts.items():
        if not isinstance(value, str) or not value.isprintable():
            raise ConfideError(f"{name}={value!r}: must be a text on one line")


def _text(**names: str) -> None:
    for name, value in names.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ConfideError(f"{name}={value!r}: must be a name on one line")


def _name(**names: str) -> None:
    """A name as it is given first: no other that looks the same may stand beside it, with a budget of its own."""
    _text(**names)
    for name, value in names.items():
        if value != unicodedata.normalize("NFC", value).strip():
            raise ConfideError(f"{name}={value!a}: must be in Unicode's form NFC and without blanks around it")
