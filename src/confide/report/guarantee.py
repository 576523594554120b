"""The panel on privacy: guarantee, trade-off in words and as a curve, spend by round beside published bounds."""

from __future__ import annotations

import numpy as np

from confide.report import words
from confide.report.charts import Chart, Series, chart
from confide.report.markup import Child, Markup, element, shown, table
from confide.report.spending import Spend
from confide.report.subject import Subject, card
from confide.runs.run import SEEDED, Run

FEW = 60  # rounds shown as points: a line would connect rounds that recycle with those that do not


def guarantee(subject: Subject) -> list[Markup]:
    run = subject.run
    cards: list[Markup] = [_guarantee(subject)]
    if not subject.spends:
        return [*cards, card("Spent by round", element("p", "No message was computed from private rows."))]
    for k, spend in enumerate(subject.spends):
        title = "In plain words" if len(subject.spends) == 1 else f"In plain words: the {spend.unit}"
        said = [
            element("p", words.headline(spend, subject.simulated), class_="lead"),
            *(element("p", text) for text in words.sentences(spend)),
        ]
        cards.append(card(title, *said))
        if spend.finite:
            cards += [_curve(spend, k), _by_round(subject, spend, k), *_each_round(spend, k), _several(spend)]
    if run.privacy.claims:
        cards.append(_published(run))
    limits = [*run.not_covered, *words.LIMITS]
    cards.append(card("Not covered", element("ul", *(element("li", text) for text in limits))))
    return cards


def _guarantee(subject: Subject) -> Markup:
    promise, label = subject.run.privacy.guarantee, str(subject.run.privacy.guarantee.label)
    shown_label = element("span", label, class_=f"label {label}")
    lines: list[Child] = [
        element("p", "With secure noise: " if subject.simulated else None, shown_label, " ", words.promise(promise)),
        element("p", element("strong", "Reason: "), promise.reason),
    ]
    if subject.simulated:
        none = element("span", "none", class_="label none")
        lines.insert(0, element("p", "This run: ", none, f" {SEEDED}."))
    return card("Guarantee and its reason", *lines)


def _curve(spend: Spend, k: int) -> Markup:
    alarms, found = spend.curve()
    text = (
        "Left to right, the false alarms an adversary risks; upwards, the true cases that can be found for it, "
        "at most. On the dashed line nothing was learned; the area between the lines is what the run gives away."
    )
    lines = [Series("at most, after this run", alarms, found), Series("blind guess", [0.0, 1.0], [0.0, 1.0], dash=True)]
    return element(
        "section",
        chart(
            Chart(
                f"tradeoff{k or ''}",
                f"Trade-off of an adversary, {spend.unit}",
                "false alarms",
                "true cases found",
                lines,
                text,
                x_range=(0.0, 1.0),
                y_range=(0.0, 1.0),
            )
        ),
        class_="card",
    )


def _by_round(subject: Subject, spend: Spend, k: int) -> Markup:
    spent = subject.run.privacy
    lines = [Series("exact" if spend.closed else "smallest bound known", spend.rounds, spend.path)]
    if spend.paid_path is not None:
        lines.append(Series("paid: with the rounding of secure noise", spend.rounds, spend.paid_path))
    beside = spent.path and spent.claim_delta == spend.delta and spend.unit == "row"
    if beside:
        for i, claim in enumerate(spent.claims):
            name = claim.name if claim.valid else f"{claim.name} (does not hold)"
            lines.append(Series(name, [p[0] for p in spent.path], [p[1 + i] for p in spent.path], dash=True))
    compared = "; dashed, the paper's own bound" if beside else ""
    text = f"Total ε at δ = {shown(spend.delta)} after each round, of the party that spends most{compared}."
    return element(
        "section",
        chart(
            Chart(
                f"spent{k or ''}",
                f"Privacy spent by round, {spend.unit}",
                "round",
                "ε so far",
                lines,
                text,
                log=False,
                zero=True,
            )
        ),
        class_="card",
    )


def _each_round(spend: Spend, k: int) -> list[Markup]:
    if not spend.costs:
        return []
    told = {
        "μ": "Gaussian releases cost μ, and the squares of μ add up",
        "ε": "Releases of pure ε cost ε, and the total is at most their sum",
    }
    lines = [
        Series(f"{name} of the round", range(1, len(cost) + 1), cost, points=len(cost) <= FEW)
        for name, cost in spend.costs.items()
    ]
    return [
        element(
            "section",
            chart(
                Chart(
                    f"cost{k or ''}",
                    f"Cost of each round by itself, {spend.unit}",
                    "round",
                    " or ".join(spend.costs),
                    lines,
                    "; ".join(told[name] for name in spend.costs) + ".",
                    log=False,
                    zero=True,
                )
            ),
            class_="card",
        )
    ]


def _several(spend: Spend) -> Markup:
    rows = [(shown(d), shown(e)) for d, e in spend.at()]
    lead = "One guarantee, read at several δ; the curve above is all of them at once."
    note = None
    if spend.paid is not None:
        note = element(
            "p",
            "The table is of the Gaussian noise before it is rounded to a grid. Paid, rounding included: "
            f"ε = {shown(spend.epsilon)} at δ = {shown(spend.delta)}.",
            class_="soft",
        )
    return card(
        f"ε at several δ, {spend.unit}", element("p", lead, class_="soft"), table(("δ", "ε"), rows, (0, 1)), note
    )


def _published(run: Run) -> Markup:
    spent = run.privacy
    exact = spent.epsilon(spent.claim_delta)
    rows = [
        [
            c.name,
            shown(float(np.max(c.epsilon))),
            shown(exact),
            element(
                "span", "holds" if c.valid else "does not hold", class_=f"label {'proven' if c.valid else 'refuted'}"
            ),
            c.why,
        ]
        for c in spent.claims
    ]
    return card(
        "Published bounds beside the exact total",
        table(("bound", "claimed ε", "exact ε", "", "why"), rows, (1, 2)),
        element("p", f"At δ = {shown(spent.claim_delta)}.", class_="soft"),
        id="published",
    )
