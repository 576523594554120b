"""What a run has released, by the word of its journal and its memory, where nobody is there to go on with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import CARD, load_card
from confide.network.pairing import FILE as KEY
from confide.network.pairing import erase
from confide.node import federation as federations
from confide.node.agreement import in_force
from confide.node.amended_cost import prices_of
from confide.node.caps import caps
from confide.node.journal import Journal, run_name
from confide.node.remembered import FILE, beside, recall
from confide.node.stages import heads_of
from confide.privacy import Event
from confide.privacy.events import EVERYONE, Kind
from confide.privacy.ledger import Ledger


@dataclass(frozen=True)
class Closing:
    """The party whose journal it is, and how often noise was drawn for each of its rounds."""

    folder: Path
    party: str
    attempts: tuple[int, ...]
    prices: list[list[Event]]
    method: str
    guarantee: str
    budgets: dict[Kind, tuple[float, float]]  # the federation's caps

    @classmethod
    def read(cls, folder: Path, run: str) -> Closing:
        """Of the run's folder in a node's home. A node that is running keeps it locked: one line."""
        for name in ("journal", "federation.toml"):
            if not (folder / name).exists():
                raise ConfideError(f"{folder}: has no {name}: give the run's folder in the node's home, runs/…")
        home = folder.resolve().parent.parent
        federation, card = in_force(home, folder / "federation.toml"), load_card(home / CARD)
        if federation.founding.cards.get(card.name) != card or card.name == federation.hub:
            raise ConfideError(f"{folder}: its node, {card.name}, is no party of the federation there")
        if federation.outdated:
            raise ConfideError(
                f"{folder}: {federations.OUTDATED}: what its rounds cost is not known here; --released N "
                "charges all that the run holds"
            )
        with Journal(folder, federation.digest, aliases=federation.aliases) as journal:
            if run_name(journal) != run:
                raise ConfideError(f"{folder}: holds run {run_name(journal)}, not {run}")
            attempts = journal.draws(card.digest)
            heads = heads_of(federation, journal, card.digest) if federation.summed else [
                wire.run_of(journal.frame(card.digest, t)) for t in range(1, journal.last(card.digest) + 1)
            ]  # fmt: skip
        while card.name not in federation.cards and federation.before is not None:
            federation = federation.before  # the others go on without it
        k = federation.parties.index(card.name)
        return cls(
            folder, card.name, tuple(recall(folder).draws(run, attempts)), prices_of(federation, card.name, heads),
            federation.algorithm.name, str(federation.guarantee), caps(federation, k, federation.restarts),
        )  # fmt: skip

    def forget(self) -> None:
        """Nobody goes on with the run: the key of its private sums is of no more use, but to a thief."""
        erase(self.folder / KEY)

    def released(self) -> list[tuple[int, int, list[Event]]]:
        """(round, attempt, what it cost) of every draw."""
        return [(t, a, self.prices[t - 1]) for t, last in enumerate(self.attempts, 1) for a in range(1, last + 1)]


def open_budgets(ledger: Ledger, population: str, budgets: Mapping[Kind, tuple[float, float]]) -> None:
    """Those that the owner has not opened; who has one against everyone keeps it."""
    there = [balance.kind for balance in ledger.balances(population)] if population in ledger.populations() else []
    for kind, (epsilon, delta) in budgets.items():
        if kind not in there and not (there and kind[2] == EVERYONE):
            ledger.open_population(population, epsilon, delta, kind=kind)


def settle_home(ledger: Ledger, folder: Path) -> str:
    """Charge what the other runs of this home released and a ledger that does not continue their memories lacks.

    Each of them paid into the ledger before, so that what is not there was lost with it. Refuses where a run cannot
    tell what it released, or where runs of others are lost, too. Returns what the owner should know, or nothing.
    """
    lost = {where: memory for where, memory in beside(folder).items() if not ledger.continues(memory.head)}
    said = []
    for where, memory in lost.items():
        remedy = f"restore the newest, or, if it is lost, remove {where / FILE}"
        try:
            word = Closing.read(where, memory.run)
        except ConfideError as error:
            raise ConfideError(
                f"{ledger.path} is an older copy or another file, which may lack releases of run "
                f"{memory.run} in this home, and {error}: {remedy}"
            ) from None
        open_budgets(ledger, memory.population, word.budgets)
        done = ledger.settle(memory.population, memory.run, word.released(), party=word.party, method=word.method,
                             guarantee=word.guarantee)  # fmt: skip
        if done:
            said.append(f"the ledger lacked {len(done)} of {len(word.released())} releases of run {memory.run}: "
                        "charged now")  # fmt: skip
    for where, memory in lost.items():  # only now: the owner may remove a memory whose journal is settled
        if memory.released and not ledger.continues(memory.others):
            raise ConfideError(
                f"{ledger.path} is an older copy or another file: releases of other runs that run {memory.run} saw in "
                f"the ledger are not there; restore the newest, or, if it is lost, remove {where / FILE}"
            )
    return "; ".join(said)
