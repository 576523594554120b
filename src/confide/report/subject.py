"""What a report is about, and the pieces all its panels are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from confide.report.markup import Child, Markup, element
from confide.report.spending import Spend, spending
from confide.run import SEEDED, Run


@dataclass(frozen=True, eq=False)
class Subject:
    """A run, and what only its owner can add."""

    run: Run
    title: str = ""
    own: int | None = None  # the party whose node this is
    facts: tuple[tuple[str, str], ...] = ()
    spends: list[Spend] = field(default_factory=list)

    @classmethod
    def of(cls, run: Run, **more: object) -> Subject:
        return cls(run, spends=spending(run.privacy, run.delta), **more)  # type: ignore[arg-type]

    @property
    def first(self) -> Spend | None:
        """The kind of spend that the page is headed by: that of rows, if there is one."""
        return next((s for s in self.spends if s.unit == "row"), self.spends[0] if self.spends else None)

    @property
    def simulated(self) -> bool:
        return self.run.privacy.simulated


def card(title: str, *children: Child, **attributes: object) -> Markup:
    return element("section", element("h3", title), *children, class_="card", **attributes)


def warning(subject: Subject) -> Markup | None:
    """What a reader must know before any number."""
    if not subject.simulated:
        return None
    return element(
        "p",
        element("strong", f"{SEEDED.capitalize()}."),
        " It shows what the same run would spend with secure noise. Where it used private rows, this page is not for "
        "release: convergence is measured on those rows.",
        class_="warning",
        role="note",
    )
