"""`confide report`: one page about a run, for people who were not there."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from confide.errors import ConfideError


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
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The party of each test row; by default the schema's.")
    ] = None,
    alone: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own rows: also what you reach alone. Not for release.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's heading.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write one HTML page about a run: network, spend, guarantee, convergence, model.

    The page needs nothing else: it makes no request, prints, and is light or dark. Numbers computed from private rows
    are shown for simulations only, quality only on a test set declared public or on rows that paid for it. Only
    --alone adds what is computed from private rows without noise, and the page says that it is not for release then.

    Example: confide report run.npz --output report.html
    """
    from dataclasses import replace

    from confide import report as pages
    from confide.report.subject import Subject
    from confide.report.test_set import by_schema, evaluated, own_models, plain_rows, quality
    from confide.schema.chosen import agreed

    if output.is_dir():
        raise ConfideError(f"--output {output}: is a folder, name a file such as {output / 'report.html'}")
    if run.is_dir():
        from confide.cli.node_options import needed

        needed()
        from confide.report.node import schema_of
        from confide.report.node import subject as of_node

        if schema is not None:
            raise ConfideError(f"--schema {schema}: a node's folder has the federation's own, leave it out")
        subject, known = of_node(run), schema_of(run)
        if known is not None and label not in (None, known.label.name):
            raise ConfideError(f"--label {label}: the federation's schema says {known.label.name}")
    else:
        from confide.runs.run import load_run

        try:
            subject, known = Subject.of(load_run(run)), None
        except ConfideError as error:
            raise ConfideError(f"{error}: must be a node's folder, or a run, as `confide fit --run` saves it") from None
        if schema is not None:
            if test is None:
                raise ConfideError(f"--schema {schema}: says how the test set is read; give --test, too")
            known, _ = agreed(schema, label, None)
    if test is not None:
        rows = by_schema(subject.run, test, known, group) if known else plain_rows(subject.run, test, label, group)
        own = None
        if alone is not None:
            if known is None:
                raise ConfideError(f"--alone {alone}: is read by a schema; give --schema, too")
            assert subject.run.setting is not None
            name = None if subject.own is None else subject.run.setting.agents[subject.own]
            own = own_models(alone, known, subject.run.setting, name)
        run_ = evaluated(subject.run, rows)
        subject = replace(subject, run=run_, quality=quality(subject.run, rows, own))
    else:
        for option, given in (("--label", label), ("--group", group), ("--alone", alone)):
            if given is not None:
                raise ConfideError(f"{option} {given}: is for a test set; give --test, too")
    if title is not None:
        subject = replace(subject, title=title)
    path = pages.write(subject, output)
    if json:
        typer.echo(jsonlib.dumps(summary(subject, path), ensure_ascii=False, indent=2))
    else:
        typer.echo(f"The report is in {path}")


def summary(subject: Any, path: Path) -> dict[str, Any]:
    """What the page is headed by."""
    from confide.report.trust import first_line
    from confide.runs.paid import scores_of

    first, run = subject.first, subject.run
    return {
        "report": str(path), "run": run.id, "simulated": subject.simulated,
        "guarantee": "none" if subject.simulated else str(run.privacy.guarantee.label),
        "epsilon": first.epsilon if first is not None and first.finite else None, "delta": run.delta,
        "rounds": run.rounds, "quality": None if run.evaluation is None else run.evaluation.value,
        "scores": None if subject.quality is None else subject.quality.to_json(),
        "paid_scores": None if subject.paid is None else scores_of(subject.paid),
        "first_line": first_line(subject),
    }  # fmt: skip
