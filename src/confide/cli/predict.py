"""`confide predict`: what a model file says about the rows of a file."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from confide.runs.model import Model


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Of `confide fit` or `confide node model`.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CSV with a header, or Parquet.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new CSV file.",
                                                show_default="printed")] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Also of each class.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of CSV.")] = False,
) -> None:  # fmt: skip
    """Predict the label of every row of a file.

    The file must fit the schema in the model; its label and its party may be missing and are not read. A row that does
    not fit is refused by line and column, and nothing is written. Rows are numbered from 1. A model of plain numbers,
    without a schema, takes a CSV without a header. Predictions are as private as the rows they are for.

    Example: confide predict model.json new.csv --output predictions.csv --probabilities
    """
    from confide.files import OWNER_ONLY, check_new, write_whole
    from confide.runs.model import Model
    from confide.runs.predicting import predictions

    if output is not None:
        check_new(output, "--output")
    found = Model.load(model)
    answers, chances = predictions(found, data, probabilities)
    text = table(found, answers, chances)
    if output is not None:
        write_whole(output, text.encode(), OWNER_ONLY)
    if json:
        typer.echo(jsonlib.dumps(document(found, model, answers, chances, output), ensure_ascii=False, indent=2))
    elif output is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"{len(answers):,} predictions are in {output}")
        typer.echo(cost(found), err=True)


def table(model: Model, answers: list[Any], chances: list[list[float]] | None) -> str:
    """CSV; numbers so that they read back the same."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    classes = [f"probability of {c}" for c in model.classes or ()] if chances is not None else []
    writer.writerow(["row", "prediction", *classes])
    for i, answer in enumerate(answers):
        writer.writerow([i + 1, inert(answer), *(chances[i] if chances is not None else ())])
    return buffer.getvalue()


def inert(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it; numbers stay numbers."""
    from confide.schema.columns import number

    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") and number(value) != number(value):
        return f"'{value}"
    return value


def document(model: Model, source: Path, answers: list[Any], chances: list[list[float]] | None, output: Path | None
             ) -> dict[str, Any]:  # fmt: skip
    label = None if model.schema is None else model.schema.label.name
    return {
        "model": str(source), "label": label, "classes": None if model.classes is None else [*model.classes],
        "rows": len(answers), "predictions": answers,
        **({} if chances is None else {"probabilities": chances}),
        "output": None if output is None else str(output), "privacy": model.privacy.to_dict(),
    }  # fmt: skip


def cost(model: Model) -> str:
    spent = model.privacy
    total = "" if spent.epsilon is None else f"cost each row ε={spent.epsilon:.4g} at δ={spent.delta:g}; "
    return f"The model {total}guarantee {spent.guarantee}"
