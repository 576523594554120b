"""Guarantee labels: how much of a privacy claim rests on proof, on trust, or on nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from confide.errors import ConfideError
from confide.privacy.accounting import bounded
from confide.privacy.events import Event


class Label(StrEnum):
    """What stands behind a claim."""

    PROVEN = "proven"  # holds for every schema-valid data set: what the proof needs is enforced
    ASSUMED = "assumed"  # as published; rests on something that is not enforced
    REFUTED = "refuted"  # an audit contradicts it
    NONE = "none"  # no claim; also every run with seeded noise


@dataclass(frozen=True)
class Guarantee:
    """A label and the one sentence that justifies it.

    label     proven, assumed, refuted or none
    reason    one line, not empty
    """

    label: Label
    reason: str

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "label", Label(self.label))
        except ValueError:
            raise ConfideError(f"label={self.label!r}: must be one of {', '.join(Label)}") from None
        if not isinstance(self.reason, str) or not self.reason or "\n" in self.reason:
            raise ConfideError(f"reason={self.reason!r}: a guarantee needs a reason of one line")

    def backed_by(self, events: Iterable[Event]) -> Guarantee:
        """This guarantee of these events, or none where it claims something and one of them has no finite cost."""
        if self.label in (Label.PROVEN, Label.ASSUMED):
            for event in events:
                if not bounded(event):
                    return Guarantee(Label.NONE, f"nothing bounds what {event!r} costs")
        return self

    def __str__(self) -> str:
        return f"{self.label}: {self.reason}"
