"""`confide report`: one page about a run, for people who were not there."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from confide.problem.schema import Schema
    from confide.run import Run


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A file by Run.save, or a node's folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page.")] = Path("report.html"),
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV of test rows, which you declare public by naming it.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Reads the test rows as `confide fit` read its own.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Its target; by default the schema's, or the last one.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's heading.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write one HTML page about a run: network, spend, guarantee, convergence, model.

    The page needs nothing else: it makes no request, prints, and is light or dark. Numbers computed from private rows
    are shown for simulations only, quality only on a test set declared public.

    Example: confide report run.npz --output report.html
    """
    from dataclasses import replace

    from confide import report as pages
    from confide.cli.table import agreed
    from confide.report.subject import Subject

    if output.is_dir():
        raise ValueError(f"--output {output}: is a folder, name a file such as {output / 'report.html'}")
    if run.is_dir():
        from confide.cli.node import needed

        needed()
        from confide.report.node import schema_of
        from confide.report.node import subject as of_node

        if schema is not None:
            raise ValueError(f"--schema {schema}: a node's folder has the federation's own, leave it out")
        subject, known = of_node(run), schema_of(run)
        if known is not None and label not in (None, known.label.name):
            raise ValueError(f"--label {label}: the federation's schema says {known.label.name}")
    else:
        from confide.run import load_run

        subject, known = Subject.of(load_run(run)), None
        if schema is not None:
            if test is None:
                raise ValueError(f"--schema {schema}: says how the test set is read; give --test, too")
            known, _ = agreed(schema, label, None)
    if test is not None and known is not None:
        subject = replace(subject, run=by_schema(subject.run, test, known))
    elif test is not None:
        subject = replace(subject, run=evaluated(subject.run, test, label))
    elif label is not None:
        raise ValueError(f"--label {label}: names a column of the test set; give --test, too")
    if title is not None:
        subject = replace(subject, title=title)
    path = pages.write(subject, output)
    if json:
        typer.echo(jsonlib.dumps(summary(subject, path), ensure_ascii=False, indent=2))
    else:
        typer.echo(f"The report is in {path}")


def summary(subject: Any, path: Path) -> dict[str, Any]:
    """What the page is headed by."""
    first, run = subject.first, subject.run
    return {
        "report": str(path), "run": run.id, "simulated": subject.simulated,
        "guarantee": "none" if subject.simulated else str(run.privacy.guarantee.label),
        "epsilon": first.epsilon if first is not None and first.finite else None, "delta": run.delta,
        "rounds": run.rounds, "quality": None if run.evaluation is None else run.evaluation.value,
    }  # fmt: skip


def by_schema(run: Run, file: Path, schema: Schema) -> Run:
    """The run with its quality on a test set that is read as the training rows were: by their schema."""
    from tempfile import TemporaryDirectory

    import numpy as np

    from confide.problem.ingest import ingest

    if run.setting is None or tuple(run.setting.features) != schema.features:
        raise ValueError(f"{file}: the schema makes other features of it than those of this run")
    with TemporaryDirectory() as work:
        rows = ingest(file, schema, work, party="public")
        X, y = np.array(rows.X), np.array(rows.y)
    return run.with_evaluation(X, y if schema.label.kind == "real" else schema.label.decode(y), source=file.name)


def evaluated(run: Run, file: Path, label: str | None) -> Run:
    """The run with its quality on the test set in a CSV file."""
    import csv

    if run.setting is None:
        raise ValueError("this run carries no setting: it cannot answer a test set")
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            head, *rows = [row for row in csv.reader(text) if row] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{file}: not a CSV file: {error}") from None
    if len(head) < 2 or not rows:
        raise ValueError(f"{file}: must have a line of names, at least two columns and a row")
    for k, row in enumerate(rows, start=2):
        if len(row) != len(head):
            raise ValueError(f"{file}: line {k} has {len(row)} fields, the first line {len(head)}")
    target = head[-1] if label is None else label
    if target not in head:
        raise ValueError(f"--label {target}: the columns of {file} are {', '.join(head)}")
    names = [name for name in head if name != target]
    wanted = list(run.setting.features)
    if not set(wanted) <= set(names):  # a run whose features nobody named takes the columns in their order
        if any(name != f"x{k}" for k, name in enumerate(wanted, start=1)) or len(wanted) != len(names):
            raise ValueError(f"{file}: the model reads {', '.join(wanted[:8])}; the columns are {', '.join(names[:8])}")
        wanted = names
    places = [head.index(name) for name in wanted]
    try:
        X = [[float(row[k]) for k in places] for row in rows]
    except ValueError as error:
        raise ValueError(f"{file}: {error}; a test set has numbers as its features") from None
    return run.with_evaluation(X, [row[head.index(target)] for row in rows], source=file.name)
