"""The panel on the model itself: its coefficients, or the function that they make."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.report.charts import Chart, Series, chart
from confide.report.markup import Markup, element
from confide.report.subject import Subject

MOST = 60  # coefficients drawn: the largest


def model(subject: Subject) -> list[Markup]:
    """The coefficient function with its band, or the coefficients."""
    run = subject.run
    every = run.estimates.reshape(-1, run.estimates.shape[2])
    spread = _spread(run.estimates.shape[:2])
    cards: list[Markup] = []
    if run.function is not None:
        grid, basis = run.function
        curves = every[:, : basis.shape[1]] @ basis.T
        line = Series("average of the models", grid, curves.mean(axis=0), *_band(curves))
        text = f"What a curve's value at each point counts in the predicted quantile{spread}."
        cards.append(
            element(
                "section",
                chart(
                    Chart(
                        "function",
                        "Coefficient function",
                        "where on the curve",
                        "coefficient",
                        [line],
                        text,
                    )
                ),
                class_="card",
            )
        )
    names, picked = _names(subject), every
    order = np.arange(every.shape[1])
    if len(order) > MOST:
        order = np.sort(np.argsort(-np.abs(every.mean(axis=0)))[:MOST])
        picked = every[:, order]
    line = Series("average of the models", np.arange(len(order)), picked.mean(axis=0), *_band(picked), points=True)
    text = f"Computed from messages, hence public at no further cost{spread}."
    if len(order) < every.shape[1]:
        text += f" The {MOST} largest of {every.shape[1]:,}."
    cards.append(
        element(
            "section",
            chart(
                Chart(
                    "coefficients",
                    "Coefficients",
                    "",
                    "coefficient",
                    [line],
                    text,
                    ticks=[names[k] for k in order],
                )
            ),
            class_="card",
        )
    )
    return cards


def _band(values: Any) -> tuple[Any, Any]:
    return (None, None) if len(values) == 1 else (values.min(axis=0), values.max(axis=0))


def _spread(shape: tuple[int, ...]) -> str:
    seeds, agents = shape
    if seeds * agents == 1:
        return ""
    who = " and ".join([*([f"{seeds} seeds"] if seeds > 1 else []), *([f"{agents} parties"] if agents > 1 else [])])
    return f"; from the smallest to the largest over {who}"


def _names(subject: Subject) -> list[str]:
    """Of the coefficients, in their order: each output's features, then its intercept."""
    setting, width = subject.run.setting, subject.run.estimates.shape[2]
    if setting is None or setting.width != width:
        return [f"b{k}" for k in range(1, width + 1)]
    one = [*setting.features, *(["intercept"] if setting.intercept else [])]
    if setting.outputs == 1:
        return one
    classes = setting.classes if len(setting.classes) == setting.outputs else range(setting.outputs)
    return [f"{c}: {name}" for c in classes for name in one]
