"""The first line of a report: against whom ε holds, who may collude, and what is left against everyone."""

from __future__ import annotations

import re
from itertools import chain

import numpy as np

from confide import privacy
from confide.privacy import Event, Free
from confide.privacy.events import EVERYONE
from confide.report.markup import shown
from confide.report.subject import Subject

COALITION = re.compile(r"any (\d+) of (\d+) parties")


def first_line(subject: Subject) -> str:
    """Of a row, before any other number."""
    return _said(subject).replace("ε = ", "ε\u00a0=\u00a0").replace("δ = ", "δ\u00a0=\u00a0")


def _said(subject: Subject) -> str:
    spend, run = subject.first, subject.run
    if spend is None:
        return "No message was computed from private rows: nobody learns anything about them."
    if not spend.finite:
        return "No bound on ε: whoever reads the messages may find a row out for certain."
    would = "would hold" if subject.simulated else "holds"
    cost = f"ε = {shown(spend.epsilon)} at δ = {shown(spend.delta)}"
    coalition = COALITION.search(spend.kind[2])
    if coalition is not None:
        c, parties = map(int, coalition.groups())
        return (
            f"{cost} {would} if at most {c} of {parties} parties collude; against all others together it is "
            f"ε = {shown(against_everyone(subject))}."
        )
    if spend.kind[2] != EVERYONE:
        return f"{cost} {would} against the {spend.kind[2]}."
    if run.privacy.agents == 1:
        return f"{cost} {would} against whoever sees the model and everything it was made from but the rows."
    return f"{cost} {would} even if all other parties collude: nobody is trusted."


def against_everyone(subject: Subject) -> float:
    """ε of the same releases against all others together, as they are paid for."""
    spent, first = subject.run.privacy, subject.first
    assert first is not None
    events: list[Event] = []
    for event in chain(spent.before, chain.from_iterable(spent.charged or spent.events)):
        if isinstance(event, Free) or event.unit != first.unit:
            continue
        alone = event.everyone
        if alone is None:
            return float("inf")
        events.append(alone)
    return float(np.max(privacy.epsilon(events, first.delta)))
