"""`confide randomize`: a person's record with a randomised label, made where the person is."""

from __future__ import annotations

import hashlib
import hmac
import json as jsonlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from confide.problem.schema import Schema


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
    from confide.problem.schema import Schema

    agreed = Schema.load(schema) if schema is not None else None
    if record is not None and agreed is None:
        raise ValueError("--record needs --schema: it says which columns belong in the record")
    if label == "-" and str(record) == "-":
        raise ValueError("--label - and --record -: only one of them can be stdin")
    typer.echo(jsonlib.dumps(make(task, person, epsilon, book, label, classes, agreed, record), ensure_ascii=False))


def make(task: str, person: str, epsilon: float, book: Path, label: str | None, classes: int, schema: Schema | None,
         record: Path | None) -> dict[str, Any]:  # fmt: skip
    """The randomised record. ε is on disk before the label, or the file that may hold it, is read."""
    from confide.privacy.response import ResponseBook

    class Book(ResponseBook):
        """A book that also names records: the same person and task, the same name, which only the book can tell."""

        def name(self, person: str, task: str) -> str:
            message = b"record\0" + hashlib.sha256(task.encode()).digest() + person.encode()
            return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    if schema is not None and schema.label.kind == "real":
        raise ValueError("a real label can't be randomised: randomised response needs declared values")
    values = schema.label.values if schema is not None else plain_values(classes)
    if not book.exists():
        book.touch(mode=0o600)
    responses = Book(book)
    responses.choose(person, task, epsilon, len(values))
    columns = read_record(record, schema) if record is not None and schema is not None else {}
    truth = read_label(label, columns, schema)
    if truth not in values:
        raise ValueError(f"label: must be one of {', '.join(values)}")
    kept = responses.respond(person, task, position_to_number(values.index(truth), len(values)))
    drawn = values[int((kept + 1) / 2 if len(values) == 2 else kept)]
    features = {name: columns[name] for name in columns if schema is not None and name != schema.label.name}
    return {"id": responses.name(person, task), "task": task, "epsilon": epsilon, "features": features,
            "label": drawn if schema is not None else int(drawn)}  # fmt: skip


def plain_values(classes: int) -> tuple[str, ...]:
    return ("-1", "1") if classes == 2 else tuple(str(k) for k in range(classes))


def position_to_number(position: int, classes: int) -> float:
    """As randomised response counts them: -1 and 1, or 0, 1, …"""
    return 2.0 * position - 1 if classes == 2 else float(position)


def read_record(path: Path, schema: Schema) -> dict[str, Any]:
    """The columns that the schema reads, and the label if it is there; every other is left behind."""
    from confide.problem.encode import encode

    try:
        found = jsonlib.loads(
            sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8"), parse_constant=lambda _: None
        )  # NaN is missing
    except ValueError:
        raise ValueError(f"{path}: not JSON") from None
    if not isinstance(found, dict) or any(isinstance(v, dict | list) for v in found.values()):
        raise ValueError(f"{path}: must be one JSON object, of column names and values")
    read = [c.name for c in schema.read]
    for name in read:
        if name not in found:
            raise ValueError(f"{path}: no column {name!r}, the schema declares it")
    flaws = encode(schema, {name: [found[name]] for name in read}, 1, label=False).flaws
    if flaws:
        raise ValueError(f"{path}, column {flaws[0].column!r}: {flaws[0].what}")
    return {name: found[name] for name in (*read, schema.label.name) if name in found}


def read_label(label: str | None, columns: dict[str, Any], schema: Schema | None) -> str:
    """The true label as a file would hold it."""
    from confide.problem.columns import text

    if label == "-":
        return sys.stdin.readline().strip()
    if label is not None:
        return label.strip()
    if schema is None or schema.label.name not in columns:
        raise ValueError("no label: give --label, or a --record that holds it")
    return text(columns[schema.label.name])
