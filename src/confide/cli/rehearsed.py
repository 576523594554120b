"""A method that somebody set up by hand, tried before anyone pays: a warning where it ends far from the optimum."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from confide.cli.lines import folded

if TYPE_CHECKING:
    from confide.problem.problem import Public
    from confide.runs.progress import Bars

TURNED = ("step", "coupling", "rounds")  # what decides how far a method comes, where it has them
SOON = 2.0  # seconds after which there is word of how far it is: most rehearsals take less


def tried(method: Any, public: Public, heard: Bars, auto: bool = False) -> str:
    """What a rehearsal says; `auto`: its rounds alone were set."""
    from confide.planning.rehearsal import rehearse

    began = time.monotonic()

    def watch(done: int, total: int) -> None:
        if time.monotonic() - began > SOON:
            heard("trying it", done, total)

    out = rehearse(method, public, watch=watch)
    heard.remove("trying it")
    if out.far:
        own = [name for name in TURNED if name in {one.name for one in fields(method)}]
        names = " or ".join(filter(None, (", ".join(own[:-1]), own[-1])))
        do = "set more rounds, or leave them to it" if auto else f"set {names}, or leave --algorithm out"
        typer.echo(folded(f"warning: {method.name}: {out.why}: {do}", rest=""), err=True)
    elif out.gap is None:
        typer.echo(folded(f"{method.name}: {out.why}"), err=True)
    return out.why
