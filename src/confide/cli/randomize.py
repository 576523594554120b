"""`confide randomize`: a person's record with a randomised label, made where the person is."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from confide.errors import ConfideError


def randomize(
    task: Annotated[str, typer.Option(metavar="NAME", help="What the label is collected for.")],
    person: Annotated[str, typer.Option(metavar="ID", help="Whose it is; never leaves this machine.")],
    epsilon: Annotated[float, typer.Option(help="The person's own ε: fixed before the label is read.")],
    book: Annotated[Path, typer.Option(metavar="FILE", help="Remembers what was drawn; keep it.")],
    label: Annotated[str | None, typer.Option(
        metavar="VALUE", help="The true label; '-' reads it from stdin. By default the record's.")] = None,
    classes: Annotated[int, typer.Option(min=2, help="Number of classes, where no schema says it.")] = 2,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="The agreed schema.")] = None,
    record: Annotated[Path | None, typer.Option(
        metavar="FILE", help="The person's columns: one JSON object; '-' is stdin.")] = None,
    json: Annotated[bool, typer.Option("--json", help="As without: the record is one line of JSON.")] = False,
) -> None:  # fmt: skip
    """Randomise a person's label, once and for all.

    Prints the record to hand over: the features as they are, the randomised label and ε; neither the person's id nor
    the true label. Only the label is protected. Its noise comes from the operating system and is drawn once for each
    person and task, then read back, because a second draw would cost ε again. Without a schema binary labels are -1
    and 1, others 0, 1, ….

    Example: confide randomize --task flu --person 17 --epsilon 1 --label=-1 --book book.db
    """
    from confide.node.person import make
    from confide.schema.schema import Schema

    agreed = Schema.load(schema) if schema is not None else None
    if record is not None and agreed is None:
        raise ConfideError("--record needs --schema: it says which columns belong in the record")
    if label == "-" and str(record) == "-":
        raise ConfideError("--label - and --record -: only one of them can be stdin")
    typer.echo(jsonlib.dumps(make(task, person, epsilon, book, label, classes, agreed, record), ensure_ascii=False))
