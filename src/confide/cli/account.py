"""`confide account`: what a ledger says was spent, on what, and what is left."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from confide.cli.lines import folded
from confide.errors import ConfideError
from confide.files.plain import without_infinity

CALCULI = {"gaussian": "in Gaussian DP; ε do not add up", "zcdp": "in zCDP; ε do not add up", "pure": "pure ε, summed"}
NOT_COVERED = (
    "Not protected: how many rows there are, whether a person is in the data at all, and several rows of one person "
    "together (g rows cost g times μ)."
)
NETWORK, EVERYONE = "network", "everyone who reads every message"
UNITS = {"row": "the content of any one row", "label": "the label of any one row"}


def account(
    ledger: Annotated[Path | None, typer.Option(
        metavar="FILE", help="The ledger; by default CONFIDE_LEDGER, else in the user's data folder.")] = None,
    population: Annotated[str | None, typer.Option(metavar="NAME", help="Only this population.")] = None,
    end: Annotated[str | None, typer.Option(metavar="RUN", help="End this run: give back what it holds.")] = None,
    journal: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="With --end: the run's folder at its node; its journal says what was released.")] = None,
    released: Annotated[int | None, typer.Option(
        metavar="N", help="With --end: your own word that rounds 1 to N were released, and no more.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:  # fmt: skip
    """Show what was spent, on what, and what is left; or end a run.

    Every population of the ledger with its budgets, the runs charged to them and those that hold a part, and in plain
    words what an attacker can tell by now. The whole ledger is verified first; one that is damaged is refused.

    A run that was given up holds its budget until it is ended. What it released and was not charged for is charged
    first: by the journal's word, or by yours.

    Example: confide account --json
    """
    from confide.node.ending import end_run
    from confide.privacy.ledger import Ledger, default_path
    from confide.privacy.statement import statements

    path = ledger or default_path()
    if end is None and not (journal is None and released is None):
        raise ConfideError("--journal and --released say what a run released: give --end RUN too")
    if ledger is None and population is None and end is None and not path.exists():
        empty = {"ledger": str(path), "populations": []}
        typer.echo(jsonlib.dumps(empty) if json else f"Nothing is charged yet: there is no {path}")
        return
    with Ledger(path, create=False) as book:
        ended = [] if end is None else end_run(book, end, population, journal, released)
        pages = statements(book, population)
        head, notes = book.head(), [{"at": at, "text": text} for at, text in book.notes()]
    chain = {"verified": True, "rows": head.rows, "tag": head.tag.hex(), "notes": notes}
    if json:
        said = {"ledger": str(path), "chain": chain, "populations": pages, **({"ended": ended} if end else {})}
        typer.echo(jsonlib.dumps(without_infinity(said), ensure_ascii=False, indent=2))
    elif end is None:
        show(path, chain, pages)
    else:
        for one in ended:
            typer.echo(ending_words(one))


def show(path: Path, chain: dict[str, Any], pages: list[dict[str, Any]]) -> None:
    """At most 80 columns per line."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"[dim]{escape(str(path))}[/]", soft_wrap=True)  # a path stays whole
    console.print(f"[dim]verified: all {chain['rows']} rows are as they were written[/]")
    for note in chain["notes"]:
        console.print(f"[dim]{note['at'][:16].replace('T', ' ')} {escape(note['text'])}[/]")
    if not pages:
        console.print("No population has a budget here.")
    for one in pages:
        for budget in one["budgets"]:
            console.print()
            section(console, one["name"], budget)
    for unit, who in dict.fromkeys((b["unit"], b["adversary"]) for one in pages for b in one["budgets"]):
        told = EVERYONE if who == NETWORK else f"{who}, as far as masks hold, which is a matter of computation"
        console.print("\n" + folded(f"Protected: {UNITS[unit]}, against {told}.", rest=""), markup=False)
    if any(one["budgets"] for one in pages):
        console.print("\n" + folded(NOT_COVERED, rest=""), markup=False)


def section(console: Any, name: str, budget: dict[str, Any]) -> None:
    """One budget of one population."""
    from rich.markup import escape
    from rich.padding import Padding

    def say(text: str) -> None:
        console.print(Padding(text, (0, 0, 0, 2)))

    unit, guess = budget["unit"], budget["distinguish"]
    seen = EVERYONE if budget["adversary"] == NETWORK else budget["adversary"]
    kind = f"{budget['adjacency']}; seen by: {seen}"
    console.print(f"[bold]{escape(name)}[/], each {unit} ({escape(kind)})")
    held = f", held by unfinished runs ε={budget['held_epsilon']:.4g}" if budget["held_epsilon"] > 0 else ""
    say(f"budget ε={budget['epsilon']:g} at δ={budget['delta']:g}: spent ε={budget['spent_epsilon']:.4g}{held}")
    left = f"one more run of up to ε={budget['left_epsilon']:.4g}" if budget["left_epsilon"] > 0 else "nothing"
    say(f"left: {left}  [dim]({CALCULI[budget['calculus']]})[/]")
    for hold in budget["held"]:
        since = hold["since"][:16].replace("T", " ")
        say(f"held: {escape(named(hold))}, ε={hold['epsilon']:.4g}, since {since} UTC")
    if budget["runs"]:
        console.print(table(budget["runs"]))
    for guarantee in dict.fromkeys(run["guarantee"] for run in budget["runs"]):
        say(f"Guarantee {escape(guarantee or 'not stated')}.")
    reads = "reads every message" if budget["adversary"] == NETWORK else "is one of these"
    say(
        f"In plain words: who knows all but one {unit} and {reads} guesses which of two values it has with "
        f"probability {guess['probability']:.3f} at most; blind, with {guess['prior']:g} (the prior)."
    )
    if any(label(run) != "proven" for run in budget["runs"]):
        say("[yellow]That holds only as far as every guarantee above does: not all are proven.[/]")
    if budget["calculus"] == "zcdp":  # an upper bound from ρ alone, where the report knows that the noise is Gaussian
        say("This budget counts in zCDP, which knows less: the report of a run with Gaussian noise says a smaller one.")


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
        when = run["last"][:16].replace("T", " ")
        again = run["releases"] - run["rounds"]
        rounds = f"{run['rounds']}+{again}" if again else f"{run['rounds']}"  # drawn, and paid for, again
        out.add_row(escape(named(run)), escape(run["method"] or "–"), escape(label(run)), rounds, when,
                    f"{run['epsilon']:.4g}")  # fmt: skip
    return out


def named(run: dict[str, Any]) -> str:
    return f"{run['run']} / {run['party']}" if run["party"] else str(run["run"])


# --- ending a run -----------------------------------------------------------------------------------------------------


def ending_words(done: dict[str, Any]) -> str:
    """What was done, in 80 columns."""
    back = ", ".join(f"ε={one['epsilon']:.4g} for each {one['unit']}" for one in done["given_back"]) or "nothing"
    now = f", {len(done['charged_now'])} releases of them only now" if done["charged_now"] else ""
    return folded(f"{named(done)} has ended in {done['population']}: {done['rounds']} rounds are charged{now}; "
                  f"given back: {back}")  # fmt: skip
