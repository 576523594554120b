"""`confide account`: what a ledger says was spent, on what, and what is left."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from confide.privacy.ledger import Entry, Ledger

PRIOR = 0.5
CALCULI = {"gaussian": "in Gaussian DP; ε do not add up", "zcdp": "in zCDP; ε do not add up", "pure": "pure ε, summed"}
COVERED = (
    "Protected: {unit}, against everyone who reads every message.\n"
    "Not protected: how many rows there are, whether a person is in the data at all,\n"
    "and several rows of one person together (g rows cost g times μ)."
)
UNITS = {"row": "the content of any one row", "label": "the label of any one row"}


def account(
    ledger: Annotated[Path | None, typer.Option(
        metavar="FILE", help="The ledger; by default CONFIDE_LEDGER, else in the user's data folder.")] = None,
    population: Annotated[str | None, typer.Option(metavar="NAME", help="Only this population.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:  # fmt: skip
    """Show what was spent, on what, and what is left.

    Every population of the ledger with its budgets, the runs charged to them, and in plain words what an attacker can
    tell by now. Reads only.

    Example: confide account --json
    """
    from confide.privacy.ledger import Ledger, default_path

    path = ledger or default_path()
    if ledger is None and population is None and not path.exists():
        empty = {"ledger": str(path), "populations": []}
        typer.echo(jsonlib.dumps(empty) if json else f"Nothing is charged yet: there is no {path}")
        return
    with Ledger(path, create=False) as book:
        names = book.populations()
        if population is not None and population not in names:
            raise ValueError(f"no population {population!r} in {path}: there are {', '.join(names) or 'none'}")
        pages = [page(book, name) for name in names if population in (None, name)]
    if json:
        typer.echo(jsonlib.dumps({"ledger": str(path), "populations": pages}, ensure_ascii=False, indent=2))
    else:
        show(path, pages)


def page(book: Ledger, name: str) -> dict[str, Any]:
    """One population: its budgets, each with the runs charged to it."""
    from confide.privacy.budget import Cost

    entries, budgets = book.entries(name), []
    for balance in book.balances(name):
        unit, adjacency, adversary = balance.kind
        runs: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            if balance.kind in entry.costs:
                runs.setdefault((entry.run, entry.party), []).append(entry)
        budgets.append({
            "unit": unit, "adjacency": adjacency, "adversary": adversary, "calculus": balance.calculus,
            "epsilon": balance.epsilon, "delta": balance.delta, "spent_epsilon": balance.spent_epsilon,
            "held_epsilon": balance.at(balance.held), "left_epsilon": balance.left_epsilon,
            "left_mu": balance.left_mu, "distinguish": {"prior": PRIOR, "probability": balance.distinguish(PRIOR)},
            "runs": [
                {
                    "run": run, "party": party, "method": mine[-1].method, "guarantee": mine[-1].guarantee,
                    "rounds": len(mine), "first": mine[0].at, "last": mine[-1].at,
                    "epsilon": balance.at(Cost.sum(e.costs[balance.kind] for e in mine).on(balance.calculus)),
                }
                for (run, party), mine in runs.items()
            ],
        })  # fmt: skip
    return {"name": name, "budgets": budgets}


def show(path: Path, pages: list[dict[str, Any]]) -> None:
    """At most 80 columns a line."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"[dim]{escape(str(path))}[/]", soft_wrap=True)  # a path stays whole
    if not pages:
        console.print("No population has a budget here.")
    for one in pages:
        for budget in one["budgets"]:
            console.print()
            section(console, one["name"], budget)
    for unit in dict.fromkeys(budget["unit"] for one in pages for budget in one["budgets"]):
        console.print("\n" + COVERED.format(unit=UNITS[unit]))


def section(console: Any, name: str, budget: dict[str, Any]) -> None:
    """One budget of one population."""
    from rich.markup import escape
    from rich.padding import Padding

    def say(text: str) -> None:
        console.print(Padding(text, (0, 0, 0, 2)))

    unit, guess = budget["unit"], budget["distinguish"]
    kind = f"{budget['adjacency']}; seen by: {budget['adversary']}"
    console.print(f"[bold]{escape(name)}[/], each {unit} ({escape(kind)})")
    held = f", held by unfinished runs ε={budget['held_epsilon']:.4g}" if budget["held_epsilon"] > 0 else ""
    say(f"budget ε={budget['epsilon']:g} at δ={budget['delta']:g}: spent ε={budget['spent_epsilon']:.4g}{held}")
    left = f"one more run of up to ε={budget['left_epsilon']:.4g}" if budget["left_epsilon"] > 0 else "nothing"
    say(f"left: {left}  [dim]({CALCULI[budget['calculus']]})[/]")
    if budget["runs"]:
        console.print(table(budget["runs"]))
    for guarantee in dict.fromkeys(run["guarantee"] for run in budget["runs"]):
        say(f"Guarantee {escape(guarantee or 'not stated')}.")
    say(
        f"In plain words: who knows all but one {unit} and reads every message guesses which of two values it has with "
        f"probability {guess['probability']:.3f} at most; blind, with {guess['prior']:g} (the prior)."
    )
    if any(label(run) != "proven" for run in budget["runs"]):
        say("[yellow]That holds only as far as every guarantee above does: not all are proven.[/]")


def label(run: dict[str, Any]) -> str:
    return str(run["guarantee"].split(":")[0] or "–")


def table(runs: list[dict[str, Any]]) -> Any:
    """What the budget went to."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    out = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("run", "method", "guarantee", "rounds", "when (UTC)", "ε alone"):
        out.add_column(title, justify="right" if title in ("rounds", "ε alone") else "left", overflow="fold")
    for run in runs:
        named = f"{run['run']} / {run['party']}" if run["party"] else run["run"]
        when = run["last"][:16].replace("T", " ")
        out.add_row(escape(named), escape(run["method"] or "–"), escape(label(run)), f"{run['rounds']}", when,
                    f"{run['epsilon']:.4g}")  # fmt: skip
    return out
