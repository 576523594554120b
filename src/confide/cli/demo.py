"""`confide demo`: the job in `confide.demo.simulated`, with its progress, table and picture."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.demo.simulated import MethodLine, Result

PICTURE, REPORT = "convergence.png", "report.html"


def demo(
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Repetitions with fresh noise.")] = 5,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where files go.", show_default="demo, or demo-network")
    ] = None,
    network: Annotated[bool, typer.Option("--network", help="Five real nodes instead, one of them killed.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of the table.")] = False,
) -> None:
    """Five hospitals learn together, at equal privacy.

    Generates 20,000 patients of five unequal hospitals and shows the accuracy of each hospital alone, of all together
    under every private method at the same total (ε=1, δ=1e-5), and of all together without privacy; ends with a picture
    and a report of one run. Takes less than a minute.

    With --network it runs five real nodes on this machine instead, with secure noise, and shows every command:
    identities, federation, a relay for one that takes no connections, training, a node killed and started again, model,
    predictions and report. Takes less than two minutes.

    Example: confide demo --seeds 3 --output /tmp/demo
    """
    output = output or Path("demo-network" if network else "demo")
    writable(output)
    if network:
        nodes(output, json)
        return
    from confide.cli.picture import picture
    from confide.cli.progress import bars
    from confide.demo.simulated import run
    from confide.report import write
    from confide.report.subject import Subject

    with bars() as watch:
        watch.say("Compiling comes first where confide has not run before: some 20 s.")
        result = run(seeds, watch=watch)
    try:
        path, note = str(picture(result, output / PICTURE)), f"Convergence and network: {output / PICTURE}"
    except ImportError as missing:  # the table is worth showing without it
        path, note = None, f"No picture: {missing}"
    page = write(Subject.of(result.shown, title="Readmission within 30 days"), output / REPORT)
    if json:
        document = {**result.to_json(), "picture": path, "report": str(page)}
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
    else:
        show(result, f"{note}\nReport of {result.shown.algorithm}, in a browser: {page}")


def nodes(output: Path, json: bool) -> None:
    """The demo in `confide.demo.network`."""
    from confide.cli.node_options import needed

    needed()
    from confide.demo.network import run

    result = run(output, say=(lambda text: None) if json else typer.echo)
    if json:
        typer.echo(jsonlib.dumps(vars(result), ensure_ascii=False, indent=2))
        return
    typer.echo(
        f"\nAccuracy on the public test set: {100 * result.accuracy:.1f} % by this model, "
        f"{100 * result.joint:.1f} % by a joint one\n"
        f"without privacy, ± {100 * result.standard_error:.1f} (standard error, for who is in the test set); "
        f"the same\nanswer for everyone gets {100 * result.majority:.1f} %.\n"
        f"Each patient's record: ε={result.epsilon:.3g} at δ={result.delta:g}, guarantee {result.guarantee}.\n"
        "Not protected: how many patients a hospital has, whether someone is one, timing.\n"
        f"Took {result.seconds:.0f} s. The report, in a browser: {result.report}"
    )


def writable(folder: Path) -> None:
    """Say now, not after the work, that nothing can be saved there."""
    place = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not place.is_dir():
        raise ConfideError(f"--output {folder}: {place} is not a folder")
    if not os.access(place, os.W_OK):
        raise ConfideError(f"--output {folder}: no permission to write in {place}")


def show(result: Result, note: str) -> None:
    """The table, what it protects, and where picture and report are."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from confide.demo.simulated import DELTA, EPSILON

    shards = result.cohort.shards
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True, min_width=22)
    for name in ("accuracy %", "ε", "guarantee", "network", "rounds", "kB sent"):
        table.add_column(name, justify="left" if name in ("guarantee", "network") else "right", no_wrap=True)
    for title, group, private in (
        ("alone, not private", "alone", False), ("alone, private", "alone", True),
        ("together, private", "together", True), ("together, not private", "together", False),
    ):  # fmt: skip
        table.add_row(f"[bold]{title}[/]")
        for line in result.lines:
            if (line.group, line.private) == (group, private):
                table.add_row(*cells(line))
    console = Console(highlight=False)
    console.print(
        f"\n[bold]Readmission within 30 days[/]: {len(shards):,} patients, {shards.parties} hospitals, "
        f"total ε={EPSILON:g}, δ={DELTA:g}"
    )
    console.print(table)
    console.print(
        f"Accuracy of the hospitals' own models on {len(result.cohort.test_y):,} public test patients, mean ± sd of "
        f"{result.seeds} seeds; who is in the test set moves all of them by ± {100 * result.test_error:.1f} (standard "
        f"error); the same answer for everyone gets {100 * result.majority:.1f}.\n"
        f"{result.shown.algorithm} is what you get without choosing, as it comes; settings of the others were found by "
        "trial on other generated patients.\n"
        f"{protected(result.lines)}\n"
        "Not protected: how many patients a hospital has, and whether someone is one.\n"
        "[bold]This is a simulation: its noise is seeded and protects nobody.[/]"
    )
    console.print(note, soft_wrap=True, markup=False)  # a path stays whole


def protected(lines: Sequence[MethodLine]) -> str:
    """What ε is said of, and against whom."""
    text = "Protected: any one patient's record, against everyone who reads all messages"
    for line in lines:
        if line.trust is not None:
            text += f"; by {line.name}, where hospitals share their noise: {line.trust.line(line.epsilon)}"
    return f"{text}."


def cells(line: MethodLine) -> list[str]:
    """A line as the table shows it."""
    spread = "      " if line.sd is None else f" ± {100 * line.sd:.1f}"
    sent = line.bytes_sent > 0
    return [
        f"  {line.name}", f"{100 * line.mean:.1f}{spread}", f"{line.epsilon:.2f}" if line.private else "∞",
        str(line.guarantee), line.network if sent else "–", f"{line.rounds}" if line.rounds else "–",
        f"{line.bytes_sent / 1000:.0f}" if sent else "–",
    ]  # fmt: skip
