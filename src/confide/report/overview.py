"""The first panel: what the run spent in a few numbers, and the network."""

from __future__ import annotations

import numpy as np

from confide.report.markup import Markup, element, shown, table
from confide.report.network import network
from confide.report.subject import Subject, card
from confide.runs.run import Run

FOLDED, LISTED = 30, 1000  # parties, beyond which the table is folded, or cut


def overview(subject: Subject) -> list[Markup]:
    run, first = subject.run, subject.first
    paying = "would spend" if subject.simulated else "spent"
    tiles = [
        _tile(
            "ε of the party that spends most" if first else "ε",
            shown(first.epsilon) if first else "0",
            f"at δ = {shown(run.delta)}" if first else "no release from private rows",
        ),
        _tile("the best guess is right", f"{100 * first.success:.1f} %" if first else "50 %", "a coin: 50 %"),
        _guarantee_tile(run),
        _tile(
            "rounds",
            f"{run.rounds:,}",
            f"of {len(run.privacy.events):,} planned" if len(run.privacy.events) != run.rounds else run.algorithm,
        ),
    ]
    cards = [element("div", *tiles, class_="tiles")]
    setting = run.setting
    if setting is None:
        return [*cards, card("Network", element("p", "This run carries no setting: its network is not known."))]
    total = None if first is None else first.total
    drawing = element(
        "figure",
        network(setting, total, paying, subject.own),
        element("div", class_="tip", role="status"),
        class_="plot drawing",
    )
    colour = "The stronger a party's colour, the more it spent; arrow keys go from party to party."
    cards.append(
        card(
            f"Who talks to whom, and what each {paying}",
            element("p", colour, class_="soft"),
            drawing,
            _parties(subject),
        )
    )
    return cards


def _tile(name: str, value: str, note: str, **attributes: object) -> Markup:
    return element(
        "div",
        element("span", name, class_="what"),
        element("strong", value),
        element("span", note, class_="soft"),
        class_="tile",
        **attributes,
    )


def _guarantee_tile(run: Run) -> Markup:
    label = "none" if run.privacy.simulated else str(run.privacy.guarantee.label)
    note = f"with secure noise: {run.privacy.guarantee.label}" if run.privacy.simulated else "reason: see Privacy"
    return element(
        "div",
        element("span", "guarantee", class_="what"),
        element("strong", label, class_=f"label {label}"),
        element("span", note, class_="soft"),
        class_="tile",
    )


def _parties(subject: Subject) -> Markup:
    setting = subject.run.setting
    assert setting is not None
    degree = np.bincount(np.array(setting.edges, int).ravel(), minlength=len(setting.agents))
    head = ["party", "rows (public)", "links", *(f"ε, {s.unit}" for s in subject.spends)]
    rows = [
        [
            name + (" (this party)" if k == subject.own else ""),
            f"{setting.sizes[k]:,}",
            "hub" if setting.topology == "all" else int(degree[k]),
            *(shown(float(s.total[k])) for s in subject.spends),
        ]
        for k, name in enumerate(setting.agents[:LISTED])
    ]
    whole = table(head, rows, numeric=range(1, len(head)))
    if len(setting.agents) <= FOLDED:
        return whole
    cut = f", the first {LISTED:,}" if len(setting.agents) > LISTED else ""
    return element("details", element("summary", f"All {len(setting.agents):,} parties{cut}"), whole)
