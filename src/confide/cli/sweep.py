"""`confide sweep`: the combinations that a study file asks for, kept and resumed."""

from __future__ import annotations

import json as jsonlib
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from confide.cli.demo import writable
from confide.errors import ConfideError

KNOWN = ("methods", "problems", "graphs", "epsilons", "delta", "seeds", "record", "every", "test")


def sweep(
    study: Annotated[Path, typer.Argument(metavar="STUDY.py", help="A Python file that sets methods, problems, …")],
    out: Annotated[Path, typer.Option("--output", "--out", metavar="DIR", help="Where results are kept.")] = Path(
        "sweep"
    ),
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one per core")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster to run on.")] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help="Only the I-th of N parts, for batch systems.")] = "1/1",
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is kept.")] = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one line per combination and seed.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the first metric by ε or round.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Simulate methods × problems × graphs × ε × seeds.

    STUDY.py is run; it sets `methods` and `problems`, and may set graphs, epsilons, delta, seeds, record, every and
    test, as `confide.sweep` takes them. Whatever was finished is kept in DIR under a hash of all that it depends on, so
    that a second run measures only what is missing.

    Example: confide sweep study.py --output results --csv results.csv
    """
    from confide.cli.progress import bars
    from confide.runs.batch import cluster
    from confide.runs.batch import shard as parsed
    from confide.runs.sweep import sweep as run

    part = parsed(shard)
    writable(out)
    asked = load(study)
    with ExitStack() as stack:
        if dask is not None:
            stack.enter_context(cluster(dask))
        heard = stack.enter_context(bars("combinations", passing=True))
        workers = jobs or (None if dask is not None else len(os.sched_getaffinity(0)))
        found = run(
            **asked,
            keep=out,
            jobs=workers,
            shard=part,
            fresh=fresh,
            watch=lambda done, total: heard("sweep", done, total),
        )
    rows = found.rows()
    if csv is not None:
        write_csv(csv, rows)
    if plot is not None:
        figure(found, plot)
    if json:
        typer.echo(jsonlib.dumps({"rows": rows, "missing": list(found.missing)}, ensure_ascii=False, indent=2))
        return
    show(rows, found.missing, out)


def load(study: Path) -> dict[str, Any]:
    """What a study file sets."""
    import runpy

    if not study.is_file():
        raise ConfideError(f"{study}: no such file; it is a Python file that sets methods and problems")
    try:
        names = runpy.run_path(str(study))
    except Exception as error:
        if (blame := whose_fault(study, error)) is None:
            raise
        raise ConfideError(blame) from error
    asked = {name: names[name] for name in KNOWN if name in names}
    for name in ("methods", "problems"):
        if name not in asked:
            raise ConfideError(f"{study}: sets no {name}: it must set methods and problems, and may set "
                               f"{', '.join(KNOWN[2:])}")  # fmt: skip
    return asked


def whose_fault(study: Path, error: Exception) -> str | None:
    """What a study's own mistake is, with its line; None where our code broke under it."""
    import traceback

    from confide.errors import describe, expected

    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    if not expected(error) and Path(frames[-1].filename).is_relative_to(Path(__file__).parents[1]):
        return None
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(study)), 1)
    kind = "" if expected(error) else f"{type(error).__name__}: "
    return f"{study}, line {line}: {kind}{describe(error)}"


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    import csv as csvlib
    import io

    from confide.files import write_whole

    text = io.StringIO()
    writer = csvlib.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def figure(found: Any, path: Path) -> None:
    from confide.files.pictures import write_picture

    write_picture(path, found.plot().figure, form=path.suffix[1:] or "png")


def show(rows: list[dict[str, Any]], missing: Any, out: Path) -> None:
    """Mean and standard error over seeds, one line per combination."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from confide.runs.spread import Spread

    labels = ("method", "problem", "graph", "epsilon")
    rest = [name for name in (rows[0] if rows else {}) if name not in (*labels, "seed", "spent", "guarantee")]
    shown = [n for n in labels if n in ("method", "epsilon") or len({row[n] for row in rows}) > 1]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name in (*shown, *rest, "guarantee"):
        table.add_column({"epsilon": "ε"}.get(name, name), justify="right" if name in rest else "left")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[n] for n in labels), []).append(row)
    for members in groups.values():
        said = members[0]
        budget = "–" if said["epsilon"] is None else f"{said['epsilon']:g}"
        cells = [budget if name == "epsilon" else said[name] for name in shown]
        for name in rest:
            cells.append(str(Spread.of([row[name] for row in members])))
        table.add_row(*cells, members[0]["guarantee"])
    console = Console(highlight=False)
    console.print(table)
    seeds = len(next(iter(groups.values()), []))
    console.print(
        f"mean ± standard error over {seeds} seeds" if seeds > 1 else "one seed: no error bars, set seeds for them"
    )
    console.print("simulations: seeded noise protects nobody; guarantee is what secure noise would give")
    if missing:
        console.print(f"{len(missing)} combinations are not in {out} yet: run the other shards, or without --shard")
