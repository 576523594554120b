"""A person's record with a randomised label, made where the person is: what `confide node ingest` takes in.

Neither the person's id nor the true label is in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.privacy.response import ResponseBook
from confide.schema.columns import text
from confide.schema.encode import encode
from confide.schema.schema import Schema


def make(task: str, person: str, epsilon: float, book: Path, label: str | None, classes: int, schema: Schema | None,
         record: Path | None) -> dict[str, Any]:  # fmt: skip
    """The randomised record. ε is on disk before the label, or the file that may hold it, is read."""
    if schema is not None and schema.label.kind == "real":
        raise ConfideError("a real label can't be randomised: randomised response needs declared values")
    values = schema.label.values if schema is not None else plain_values(classes)
    if not book.exists():
        book.touch(mode=0o600)
    responses = ResponseBook(book)
    responses.choose(person, task, epsilon, len(values))
    columns = read_record(record, schema) if record is not None and schema is not None else {}
    truth = read_label(label, columns, schema)
    if truth not in values:
        raise ConfideError(f"label: must be one of {', '.join(values)}")
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
    try:
        found = json.loads(
            sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8"), parse_constant=lambda _: None
        )  # NaN is missing
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ConfideError(f"{path}: not JSON") from None
    if not isinstance(found, dict) or any(isinstance(v, dict | list) for v in found.values()):
        raise ConfideError(f"{path}: must be one JSON object, of column names and values")
    read = [c.name for c in schema.read]
    for name in read:
        if name not in found:
            raise ConfideError(f"{path}: no column {name!r}, the schema declares it")
    flaws = encode(schema, {name: [found[name]] for name in read}, 1, label=False, features=False).flaws
    if flaws:
        raise ConfideError(f"{path}, column {flaws[0].column!r}: {flaws[0].what}")
    return {name: found[name] for name in (*read, schema.label.name) if name in found}


def read_label(label: str | None, columns: dict[str, Any], schema: Schema | None) -> str:
    """The true label as a file would hold it."""
    if label == "-":
        return sys.stdin.readline().strip()
    if label is not None:
        return label.strip()
    if schema is None or schema.label.name not in columns:
        raise ConfideError("no label: give --label, or a --record that holds it")
    return text(columns[schema.label.name])
