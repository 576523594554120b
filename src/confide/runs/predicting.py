"""What a model says about the rows of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from confide.runs.model import Model


class Predictions(NamedTuple):
    """Of every row: the likelier class, or its number, and the probability of each class, if asked for."""

    answers: list[Any]
    chances: list[list[float]] | None


def predictions(model: Model, data: Path, probabilities: bool) -> Predictions:
    """By the schema in the model; without one the file is a CSV of plain numbers, without a header."""
    if model.schema is None:
        from confide.schema.plain import read_numbers

        count = len(model.features)
        X = read_numbers(data, (count, count + 1))[:, :count]  # a label, where there is one, is left out
    else:
        from confide.schema.reader import read

        X = read(data, model.schema, label=False, group=False).X
        if model.row_norm is not None and model.schema.row_norm <= model.row_norm:
            model = replace(model, row_norm=None)  # rows come clipped: doing so again would change nothing
    return Predictions(model.predict(X), model.probabilities(X).tolist() if probabilities else None)
