"""The panels on the model itself: how good it is on a public test set, and its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.evaluation import Evaluation
from confide.report.charts import Chart, Series, chart
from confide.report.markup import Markup, element, shown, table
from confide.report.subject import Subject, card

MOST = 60  # coefficients drawn: the largest
ABSENT = (
    "No test set was declared public. Counted on the parties' own rows, a confusion matrix or a calibration would be a "
    "release that nobody paid for, so that this panel stays empty. A public set is named with --test, or by "
    "Run.with_evaluation."
)


def quality(subject: Subject) -> list[Markup]:
    """Confusion matrix, quantile calibration, or why there is neither."""
    found = subject.run.evaluation
    if found is None:
        return [card("No public test set", element("p", ABSENT, class_="absent"), id="no-test")]
    told = element(
        "p", f"{found.rows:,} rows, declared public: {found.source}. The parties' average model answers.", class_="soft"
    )
    match found.kind:
        case "confusion":
            return _confusion(found, told)
        case "calibration":
            return _calibration(found, told)
    rows = [("root mean squared error", shown(found.value)), ("mean absolute error", shown(found.second))]
    return [card("Errors on the public test set", told, table(("", ""), rows, (1,)))]


def _confusion(found: Evaluation, told: Markup) -> list[Markup]:
    assert found.matrix is not None
    matrix, names = found.matrix, found.classes
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)
    head = element(
        "tr",
        element("td", "true ↓ answer →", class_="soft"),
        *(element("th", n, scope="col") for n in names),
        element("th", "found", scope="col"),
    )
    body = []
    for i, name in enumerate(names):
        cells = [
            element(
                "td",
                element("span", f"{matrix[i, j]:,.0f}"),
                element("small", f"{100 * share[i, j]:.0f} %"),
                class_=f"heat h{round(8 * share[i, j])}{' hit' if i == j else ''}",
            )
            for j in range(len(names))
        ]
        body.append(
            element("tr", element("th", name, scope="row"), *cells, element("td", f"{100 * share[i, i]:.1f} %"))
        )
    whole = element("table", element("thead", head), element("tbody", *body), class_="confusion")
    summary = element(
        "p",
        element("strong", f"{100 * found.value:.1f} %"),
        " of the answers are right. The more "
        f"frequent class alone would get {100 * matrix.sum(axis=1).max() / max(matrix.sum(), 1e-300):.1f} %.",
        class_="lead",
    )
    scroll = element("div", whole, class_="scroll", tabindex="0", role="group", aria_label="Confusion matrix")
    return [card("Confusion matrix", told, summary, scroll)]


def _calibration(found: Evaluation, told: Markup) -> list[Markup]:
    assert found.groups is not None and found.level is not None
    x, y, rows = found.groups.T
    spread = 1.96 * np.sqrt(found.level * (1 - found.level) / np.maximum(rows, 1))
    ends = [float(x.min()), float(x.max())]
    lines = [
        Series(
            "fraction at or below the prediction",
            x,
            y,
            np.clip(y - spread, 0, 1),
            np.clip(y + spread, 0, 1),
            points=True,
        ),
        Series(f"asked for: {shown(found.level)}", ends, [found.level] * 2, dash=True),
    ]
    text = (
        f"Test rows in {len(x)} groups by their predicted quantile. A calibrated model has the dashed line within "
        "nearly every bar; a bar is 1.96 standard deviations of a fraction of so many rows."
    )
    summary = element(
        "p",
        element("strong", shown(found.value)),
        f" of the targets lie at or below the predicted quantile; asked for was {shown(found.level)}.",
        class_="lead",
    )
    picture = chart(
        Chart(
            "calibration",
            "Quantile calibration",
            "predicted quantile",
            "fraction at or below",
            lines,
            text,
            y_range=(0.0, 1.0),
        )
    )
    return [card("Calibration", told, summary), element("section", picture, class_="card")]


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
