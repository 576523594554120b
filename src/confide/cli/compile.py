"""`confide compile`: compile ahead of time, or, for a command that is about to need it, with a bar."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from confide.planning.ahead import Part


def compile(
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes side by side.", show_default="cores")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compile ahead of time, so that the first fit starts at once.

    Compiled code is kept in CONFIDE_CACHE, else in the user's cache, under a hash of the sources: after an update it is
    compiled again. Without this command the first `fit` or `plan` does it, and shows a bar.

    Example: confide compile
    """
    import confide.compiled as kernels
    from confide.planning.ahead import ALL

    began = time.perf_counter()
    made = compiled(ALL, jobs)
    place = kernels.folder()
    said = {"compiled": made, "kept_in": None if place is None else str(place), "seconds": time.perf_counter() - began}
    if json:
        typer.echo(jsonlib.dumps(said, ensure_ascii=False, indent=2))
    elif place is None:
        typer.echo("nothing can be kept here: set CONFIDE_CACHE to a folder that can be written")
    else:
        typer.echo(f"{len(made)} of {sum(map(len, ALL))} parts compiled in {said['seconds']:.0f} s, kept in {place}")


def compiled(stages: Iterable[Iterable[Part]], jobs: int | None = None) -> list[str]:
    """Compile what is not there yet, with a bar; the names of what was compiled."""
    from confide.cli.progress import bars
    from confide.planning import ahead

    missing = ahead.missing(stages)
    if not any(missing):
        return []
    with bars("parts", passing=True) as heard:
        heard.say("compiling, once on this machine (`confide compile` does it ahead of time)")
        return ahead.compiled(missing, jobs, partial(heard, "compiling"))
