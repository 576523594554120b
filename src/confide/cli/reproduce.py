"""`confide reproduce`: the papers' figures and tables again, beside what was published."""

from __future__ import annotations

import json as jsonlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confide.cli.demo import writable
from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.papers.reproduce import Experiment, Outcome
    from confide.papers.reproduce.runner import Watch

TELLS = "their data is missing, and what the page shows of them, if anything, is of an earlier run"


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="A paper of the list; all its experiments.")] = None,
    name: Annotated[str | None, typer.Argument(help="One experiment of it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All experiments of all papers.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials: minutes for everything.")] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="So many trials of each.")] = None,
    out: Annotated[Path, typer.Option("--output", "--out", metavar="DIR", help="Where results go.")] = Path(
        "reproductions"
    ),
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data sets are; else CONFIDE_DATA.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one per core")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster to run on.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is already there.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Write figures as SVG, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Reproduce figures and tables of the papers.

    Without arguments: lists them. Each writes its data, its figure and a verdict for every published claim to
    DIR/<paper>/<name>, and DIR/index.md shows all of them. Whatever was finished before Ctrl-C is kept, and a second
    run goes on from there; what was measured by code that has changed since is measured again. Exit code 1: a finding
    differs from the paper and no cause is given.

    Example: confide reproduce cdp-admm fig1 --quick
    """
    if data is not None:
        if not data.is_dir():
            raise ConfideError(f"--data {data}: no such folder")
        os.environ["CONFIDE_DATA"] = str(data.resolve())  # workers are told, too
    if everything and paper is not None:
        raise ConfideError(f"--all with {paper!r}: takes no paper")
    if quick and trials is not None:
        raise ConfideError("--quick and --trials: give one of them")
    if not everything and paper is None:
        listing(json)
        return
    began = time.monotonic()
    writable(out)
    from confide.papers.reproduce import choose
    from confide.papers.reproduce import reproduce as run
    from confide.runs.batch import cluster

    chosen, skipped = choose(paper, name)

    with ExitStack() as stack:
        if dask is not None:
            stack.enter_context(cluster(dask))
        watch = stack.enter_context(progress())
        workers = jobs or (None if dask is not None else len(os.sched_getaffinity(0)))
        outcomes = run(chosen, out, quick=quick, trials=trials, jobs=workers, fresh=fresh, svg=svg, skipped=skipped,
                       watch=watch)  # fmt: skip
    show(outcomes, skipped, out, json, time.monotonic() - began, workers)
    failed = [outcome.error for outcome in outcomes if outcome.error]
    if any("\n" in error for error in failed):  # a mistake of ours: all of it is wanted
        typer.echo("\n".join(failed), err=True)
        raise typer.Exit(1)
    if failed:
        raise ConfideError(failed[0] + (f" (and {len(failed) - 1} more failed)" if failed[1:] else ""))
    raise typer.Exit(int(any(outcome.unexplained for outcome in outcomes)))


def listing(json: bool) -> None:
    """Every experiment: trials of a quick run, a full one and the paper's, and the data it needs."""
    from confide.papers.reproduce.listed import listed

    rows = [
        {"paper": e.paper, "name": e.name, "title": e.title, "quick": e.trials.quick, "full": e.trials.full,
         "published": e.trials.published, "data": list(e.data)}
        for e in listed()
    ]  # fmt: skip
    if json:
        typer.echo(jsonlib.dumps({"experiments": rows}, ensure_ascii=False, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for column, style in (("paper", {"no_wrap": True}), ("name", {"no_wrap": True}), ("shows", {}),
                          ("trials", {"justify": "right", "no_wrap": True}), ("data", {"no_wrap": True})):  # fmt: skip
        table.add_column(column, **style)  # type: ignore[arg-type]
    before = None
    for row in rows:
        trials = f"{row['quick']}/{row['full']}/{row['published'] or '?'}"
        shown = "" if row["paper"] == before else str(row["paper"])
        table.add_row(shown, str(row["name"]), str(row["title"]), trials, ", ".join(row["data"]) or "–")  # type: ignore[arg-type]
        before = row["paper"]
    console = Console(highlight=False)
    console.print(table)
    note = "trials: quick / full / in the paper. Run one: confide reproduce cdp-admm fig1 --quick"
    console.print(note, soft_wrap=True)


def show(
    outcomes: list[Outcome], skipped: dict[str, str], out: Path, json: bool, seconds: float, processes: int | None
) -> None:
    """The findings of every experiment, where the page is, the time by the clock, and last what was skipped."""
    if json:
        document = {
            "page": str(out / "index.md"), "skipped": skipped, "seconds": round(seconds, 1),
            "experiments": [
                {"paper": o.experiment.paper, "name": o.experiment.name, "trials": o.trials, "folder": str(o.folder),
                 "core_seconds": round(o.seconds, 3), "error": o.error or None,
                 "findings": [f.to_json() for f in o.findings]}
                for o in outcomes
            ],
        }  # fmt: skip
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
        return
    from rich.console import Console
    from rich.markup import escape

    from confide.papers.reproduce.last import minutes, on

    console = Console(highlight=False)
    colours = {"matches": "green", "matches in shape": "green", "differs": "yellow"}
    for outcome in outcomes:
        state = "[red]failed[/]" if outcome.error else f"{outcome.trials} trials, {outcome.folder}"
        console.print(f"[bold]{outcome.experiment}[/]: {state}", soft_wrap=True)
        for f in outcome.findings:
            colour = "red" if f.unexplained else colours[f.verdict]
            console.print(f"  [{colour}]{f.verdict}[/]  {escape(f.what)}: published {escape(f.published)}, "
                          f"measured {escape(f.measured)}, {escape(f.difference)}", soft_wrap=True)  # fmt: skip
            if f.verdict == "differs":
                console.print(f"           because {escape(f.why)}" if f.why else "           [red]no cause given[/]",
                              soft_wrap=True)  # fmt: skip
    if any(not outcome.error for outcome in outcomes):
        console.print(f"All of them: {out / 'index.md'}", soft_wrap=True)
    core = sum(outcome.seconds for outcome in outcomes)
    console.print(f"Took {minutes(seconds)}{on(processes)}; measured in {minutes(core)} of one core.", soft_wrap=True)
    if skipped:
        console.print(f"[bold red]Not measured[/], {len(skipped)} of {len(skipped) + len(outcomes)}: {TELLS}",
                      soft_wrap=True)  # fmt: skip
    for name, reason in skipped.items():
        console.print(f"[bold]{name}[/]: skipped, {escape(reason)}", soft_wrap=True)


@contextmanager
def progress() -> Iterator[Watch]:
    """One bar over all tasks with the time left, and one for each experiment under way."""
    from confide.cli.progress import bars

    with bars("tasks") as heard:
        state: dict[str, tuple[int, int]] = {}

        def watch(experiment: Experiment, done: int, tasks: int) -> None:
            label = str(experiment)
            state[label] = (done, tasks)
            heard("all", sum(d for d, _ in state.values()), sum(t for _, t in state.values()))
            if 0 < done < tasks:
                heard(label, done, tasks)
            else:
                heard.remove(label)

        yield watch
