"""Whose budget pays for a fit: a population's total is set once, and fits spend it."""

from __future__ import annotations

from pathlib import Path

from confide.errors import ConfideError
from confide.privacy.ledger import Ledger


def open_budget(ledger: Path, population: str, budget: float | None, delta: float) -> None:
    """Set the population's total (budget, delta), ε and δ; None where it has one already, which stays as it is."""
    with Ledger(ledger) as book:
        if budget is not None:
            book.open_population(population, budget, delta)  # once; the same again, or one line
        elif population not in book.populations():
            raise ConfideError(f"population {population!r}: has no budget yet; --budget E sets its total")
