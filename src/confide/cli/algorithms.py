"""`confide algorithms`: every method with its paper, losses, network and guarantee."""

from __future__ import annotations

import json as jsonlib
from dataclasses import fields
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.algorithms import Algorithm
    from confide.privacy import Guarantee
    from confide.problem.problem import Public

NETWORKS = {"peer": "peers", "all": "server", "central": "central"}
# Ways to ask a method for privacy, the usual last; a method takes those whose names it knows.
SETTINGS: tuple[dict[str, float], ...] = (
    {}, {"noise_rate": 1.0}, {"noise_rate": 1.0, "release_noise": 1.0}, {"noise": 1.0}, {"noise": 1.0, "clip": 1.0},
)  # fmt: skip
SILENT = "messages carry no noise"


def algorithms(json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """List every method, with its guarantee.

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
    """One entry for each method, those that other packages offer last."""
    from confide.algorithms.catalogue import catalogue

    out = []
    for name, kind in catalogue().items():
        guarantee, settings = usual(kind)
        out.append({
            "name": name, "paper": kind.paper, "losses": kind.needs, "network": NETWORKS[kind.topology],
            "guarantee": str(guarantee.label), "reason": guarantee.reason, "set": list(settings),
            "parameters": [f.name for f in fields(kind)],
        })  # fmt: skip
    return out


def usual(kind: type[Algorithm]) -> tuple[Guarantee, dict[str, float]]:
    """The best guarantee the method gives under the settings above, and the setting."""
    from confide.privacy import Guarantee, Label

    order = [Label.PROVEN, Label.ASSUMED, Label.REFUTED, Label.NONE]
    best, how = Guarantee(Label.NONE, SILENT), dict[str, float]()
    for settings, public in product(SETTINGS, publics(kind)):
        if not settings.keys() <= {f.name for f in fields(kind)}:
            continue
        try:
            method = kind(**settings)  # type: ignore[arg-type]
            method.check(public)
            given = method.guarantee(public)
        except ConfideError:  # not this loss, or not these parameters together
            continue
        if order.index(given.label) <= order.index(best.label):
            best, how = given, settings
    return best, how


def publics(kind: type[Algorithm]) -> list[Public]:
    """Small public networks of bounded rows, one for each loss a method may ask for; no row is needed."""
    import numpy as np

    from confide.network.graph import Graph
    from confide.problem import losses
    from confide.problem.penalties import L2
    from confide.problem.problem import Public

    sizes, agents = np.full(3, 100), np.arange(3)
    whole = [
        Public(Graph.ring(3), sizes, loss, L2(0.01), 4, weighting="rows", row_norm=1.0, agents=agents)
        for loss in (losses.Logistic(), losses.Quantile(0.5), losses.NoisyLabels(losses.Logistic(), 1.0))
    ]
    return [public.as_one() for public in whole] if kind.topology == "central" else whole


def show(rows: list[dict[str, Any]]) -> None:
    """A table of at most 80 columns."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name in ("method", "losses", "network", "guarantee", "paper"):
        table.add_column(name, max_width=12 if name == "losses" else None)
    colours = {"proven": "green", "assumed": "yellow", "refuted": "red", "none": "dim"}
    for row in rows:
        label = f"[{colours[row['guarantee']]}]{row['guarantee']}[/]"
        table.add_row(f"[bold]{row['name']}[/]", row["losses"], row["network"], label, row["paper"])
    console = Console(highlight=False)
    console.print(table)
    notes = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    for names, text in asked(rows).items():
        notes.add_row(names, text)
    console.print(notes)


def asked(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Under the table: what to set for a guarantee, and why there is none."""
    notes: dict[str, str] = {}
    for row in rows:
        if row["guarantee"] == "proven":
            settings = f"with {', '.join(row['set'])}"
            notes[settings] = f"{notes[settings]}, {row['name']}" if settings in notes else row["name"]
    return notes | {r["name"]: r["reason"] for r in rows if r["guarantee"] != "proven" and r["reason"] != SILENT}
