"""Guarantee labels: how much of a privacy claim rests on proof, on trust, or on nothing."""

from dataclasses import dataclass
from enum import StrEnum


class Label(StrEnum):
    """What stands behind a claim."""

    PROVEN = "proven"  # holds for every schema-valid data set: what the proof needs is enforced
    ASSUMED = "assumed"  # as published; rests on something that is not enforced
    REFUTED = "refuted"  # an audit contradicts it
    NONE = "none"  # no claim; also every run with seeded noise


@dataclass(frozen=True)
class Guarantee:
    """A label and the one sentence that justifies it."""

    label: Label
    reason: str

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "label", Label(self.label))
        except ValueError:
            raise ValueError(f"label must be one of {', '.join(Label)}, given {self.label!r}") from None
        if not isinstance(self.reason, str) or not self.reason or "\n" in self.reason:
            raise ValueError(f"a guarantee needs a reason of one line, given {self.reason!r}")

    def __str__(self) -> str:
        return f"{self.label}: {self.reason}"
