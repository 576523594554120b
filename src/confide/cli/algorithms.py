"""`confide algorithms`: every method with its paper, losses, network and guarantee."""

from __future__ import annotations

import json as jsonlib
from dataclasses import fields
from typing import Annotated, Any

import typer

NETWORKS = {"peer": "peers", "all": "server", "central": "central"}
SUMS = "private sums"


def algorithms(json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """List every method, with its guarantee; first the one that `auto` stands for.

    Paper, losses, network, and the guarantee of the usual private setting on rows clipped to a public norm, with the
    parameters that ask for it.

    Example: confide algorithms --json
    """
    rows = listing()
    if json:
        typer.echo(jsonlib.dumps({"algorithms": rows}, ensure_ascii=False, indent=2))
    else:
        show(rows)


def listing() -> list[dict[str, Any]]:
    """One entry for each method: joint descent first, then those of papers, those that other packages offer last."""
    from confide.algorithms import SummedMethod
    from confide.algorithms.catalogue import catalogue
    from confide.runs.usual import usual_guarantee

    out = []
    for name, kind in sorted(catalogue().items(), key=lambda one: not issubclass(one[1], SummedMethod)):
        guarantee, settings = usual_guarantee(kind)
        network = SUMS if issubclass(kind, SummedMethod) else NETWORKS[kind.topology]
        out.append({
            "name": name, "paper": kind.paper, "losses": kind.needs, "network": network,
            "guarantee": str(guarantee.label), "reason": guarantee.reason, "set": list(settings),
            "parameters": [f.name for f in fields(kind)],
        })  # fmt: skip
    return out


def show(rows: list[dict[str, Any]]) -> None:
    """A table of at most 80 columns."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name in ("method", "losses", "network", "guarantee", "paper"):
        table.add_column(name, max_width=12 if name == "losses" else None)
    colours = {"proven": "green", "assumed": "yellow", "refuted": "red", "none": "dim"}
    console = Console(highlight=False)
    for row in rows:
        label = f"[{colours[row['guarantee']]}]{row['guarantee']}[/]"
        if row["network"] == SUMS:  # what it takes is a list, too long for a table
            whose = " (auto)" if row["name"] == "JointDescent" else ""
            console.print(f"[bold]{row['name']}[/]{whose}, on {SUMS}, {label}: {row['losses']}")
        else:
            table.add_row(f"[bold]{row['name']}[/]", row["losses"], row["network"], label, row["paper"])
    console.print(table)
    notes = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    for names, text in asked(rows).items():
        notes.add_row(names, text)
    console.print(notes)


def asked(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Under the table: what to set for a guarantee, and why there is none."""
    from confide.runs.usual import SILENT

    notes: dict[str, str] = {}
    for row in rows:
        if row["guarantee"] == "proven" and row["network"] != SUMS:  # which clip by themselves
            settings = f"with {', '.join(row['set'])}"
            notes[settings] = f"{notes[settings]}, {row['name']}" if settings in notes else row["name"]
    return notes | {r["name"]: r["reason"] for r in rows if r["guarantee"] != "proven" and r["reason"] != SILENT}
