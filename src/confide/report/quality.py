"""The panel on quality: accuracy and AUC with intervals, calibration, confusion, by party, beside what is easier.

On a test set declared public, or on held-out rows that paid for it. Never on the rows that the model was learned from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from confide.report.charts import Chart, Series, chart
from confide.report.markup import Child, Markup, element, join, shown, table
from confide.report.scores import NORMAL, Quality, Score
from confide.report.subject import NOT_FOR_RELEASE, Subject, card
from confide.runs.evaluation import Evaluation
from confide.runs.paid import is_paid, scores_of

PER_CENT = ("accuracy", "AUC", "coverage")
SAME, ALONE, JOINT = "the same answer for everyone", "alone", "this model"
ABSENT = (
    "No test set was declared public. Counted on the parties' own rows, a confusion matrix or a calibration would be a "
    "release that nobody paid for, so that this panel stays empty. A public set is named with --test, or by "
    "Run.with_evaluation."
)


def quality(subject: Subject) -> list[Markup]:
    """Everything that is known, or why nothing is."""
    found, cards = subject.run.evaluation, [] if subject.paid is None else _paid(subject.paid, subject)
    if subject.quality is not None:
        cards = [*cards, *_measured(subject.quality), *_reliability(subject.quality)]
    if found is None or is_paid(found):
        return cards or [card("No public test set", element("p", ABSENT, class_="absent"), id="no-test")]
    return [*cards, *_plain(found, subject.quality is not None)]


def _plain(found: Evaluation, beside: bool) -> list[Markup]:
    """Of a test set declared public; `beside`: the scores stand above it."""
    told = element(
        "p", f"{found.rows:,} rows, declared public: {found.source}. The parties' average model answers.", class_="soft"
    )
    match found.kind:
        case "confusion":
            return [_confusion(found, told, "Confusion matrix" if beside else "")]
        case "calibration":
            return _calibration(found, told)
    if beside:
        return []
    rows = [("root mean squared error", shown(found.value)), ("mean absolute error", shown(found.second))]
    return [card("Errors on the public test set", told, table(("", ""), rows, (1,)))]


def _confusion(found: Evaluation, told: Markup, title: str = "") -> Markup:
    """The matrix; without a title of its own also what it says."""
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
    return card(title or "Confusion matrix", told, None if title else summary, scroll)


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


# --- with intervals ---------------------------------------------------------------------------------------------------


def said(name: str, score: Score | None) -> Markup:
    """A score, and its interval below it."""
    if score is None:
        return element("span", "–")
    return join([element("span", number(name, score.value)), element("small", interval(name, score))])


def number(name: str, value: float) -> str:
    return f"{100 * value:.1f} %" if name in PER_CENT else shown(value)


def interval(name: str, score: Score) -> str:
    low, high = ((f"{100 * v:.1f}" if name in PER_CENT else shown(v)) for v in (score.low, score.high))
    return f"{low} to {high}"


def _measured(found: Quality) -> list[Markup]:
    """The scores of all test rows beside what is easier to get, and party by party."""
    names = list(found.joint)
    who = [(JOINT, found.joint), (SAME, found.same)]
    if found.alone is not None:
        own = f"{ALONE}: {found.own}" if found.own else "each party alone, on its own kind"
        who.insert(1, (own, found.alone))
    rows = [[element("strong", name) if name == JOINT else name, *(said(one, score.get(one)) for one in names)]
            for name, score in who]  # fmt: skip
    first = names[0]
    gain = found.joint[first].value - found.same[first].value if first in found.same else 0.0
    lead: list[Child] = [element("strong", number(first, found.joint[first].value))]
    if first == "accuracy":
        easy = f"{100 * found.same[first].value:.1f} %"
        lead.append(f" of the answers are right; {SAME} is right in {easy}.")
        if gain <= 0:
            lead.append(" The model is of no use on this test set.")
    else:
        lead.append(f": {first} on the test set.")
    told = element("p", f"{found.rows:,} rows, declared public: {found.source}. Intervals are 95 %, for the chance of "
                        "which rows are in the test set.", class_="soft")  # fmt: skip
    note = None
    if not found.public:
        alone = f"Alone means {found.own_model}, without noise. " if found.own_model else ""
        note = element("p", f"{alone}{NOT_FOR_RELEASE.strip()} Not for release.", class_="private")
    cards = [card("How good it is", element("p", *lead, class_="lead"),
                  table(("", *names), rows, range(1, len(names) + 1)), note, told, id="scores")]  # fmt: skip
    if found.parties:
        cards.append(_by_party(found, first))
    return cards


def _by_party(found: Quality, first: str) -> Markup:
    second = [name for name in found.joint if name == "AUC"]
    alone = any(p.alone is not None for p in found.parties)
    head = [
        "party",
        "test rows",
        first,
        *second,
        *([f"{ALONE}, {first}"] if alone else []),
        f"same answer for all, {first}",
    ]
    rows = []
    for p in found.parties:
        own = [] if not alone else [said(first, None if p.alone is None else p.alone.get(first))]
        rows.append([
            p.name, f"{p.rows:,}", said(first, p.joint.get(first)), *(said(n, p.joint.get(n)) for n in second), *own,
            number(first, p.same[first].value),
        ])  # fmt: skip
    words = element("p", "Each party's own kind of rows; few rows have wide intervals.", class_="soft")
    return card("By party", words, table(head, rows, range(1, len(head))), id="by-party")


def _reliability(found: Quality) -> list[Markup]:
    """Predicted probabilities beside what came true."""
    if found.bins is None:
        return []
    x, y, rows = found.bins.T
    spread = NORMAL * np.sqrt(np.clip(y * (1 - y), 0.25 / np.maximum(rows, 1), None) / np.maximum(rows, 1))
    what = f"of “{found.classes[1]}”" if len(found.classes) == 2 else "of the answer given"
    gap = float(np.sum(rows * np.abs(x - y)) / np.sum(rows))
    lines = [
        Series("came true", x, y, np.clip(y - spread, 0, 1), np.clip(y + spread, 0, 1), points=True),
        Series("perfectly calibrated", [0.0, 1.0], [0.0, 1.0], dash=True),
    ]
    text = (
        f"Test rows in {len(x)} equal groups by their predicted probability {what}. On the dashed line, probabilities "
        f"can be taken at their word; on average they are {100 * gap:.1f} points off it. Noise makes a private model "
        "timid or bold: use its ranking, which AUC measures, where this line is missed."
    )
    picture = Chart("reliability", "Calibration", "predicted probability", "fraction", lines, text, x_range=(0.0, 1.0),
                    y_range=(0.0, 1.0))  # fmt: skip
    return [element("section", chart(picture), class_="card")]


# --- paid for ---------------------------------------------------------------------------------------------------------


def _paid(found: Evaluation, subject: Subject) -> list[Markup]:
    assert found.level is not None and found.second is not None
    rows = [(name, said(name, Score(*score))) for name, score in scores_of(found).items()]
    told = element(
        "p", element("span", "paid for", class_="label proven"),
        f" {found.rows:,} {found.source}, which had no part in learning, paid ε = {shown(found.level)} at δ = "
        f"{shown(found.second)} each for these numbers, as those learned from paid for the model: no row is in both. "
        "Intervals are 95 % and hold the noise, too.",
    )  # fmt: skip
    cards = [card("How good it is, paid for", told, table(("", ""), rows, (1,)), id="paid")]
    if found.matrix is not None:
        noised = element("p", "Counts carry noise, so that small ones may even be below 0.", class_="soft")
        named = found if subject.run.setting is None else replace(found, classes=subject.run.setting.classes)
        cards.append(_confusion(named, noised, "Confusion matrix, paid for"))
    return cards
