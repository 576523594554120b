"""What a report is about, and the pieces all its panels are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from confide.algorithms import SUMMED
from confide.report.markup import Child, Markup, element
from confide.report.scores import Quality
from confide.report.spending import Spend, spending
from confide.runs.evaluation import Evaluation
from confide.runs.paid import is_paid
from confide.runs.run import SEEDED, Run

NOT_FOR_RELEASE = " What a party reaches alone is computed from its private rows without noise."


@dataclass(frozen=True, eq=False)
class Subject:
    """A run, and what only its owner can add."""

    run: Run
    title: str = ""
    own: int | None = None  # the party whose node this is
    facts: tuple[tuple[str, str], ...] = ()
    spends: list[Spend] = field(default_factory=list)
    quality: Quality | None = None  # on a test set declared public
    paid: Evaluation | None = None  # on held-out rows, which paid for it

    @classmethod
    def of(cls, run: Run, **more: object) -> Subject:
        paid = run.evaluation if is_paid(run.evaluation) else None
        setting = run.setting
        if run.algorithm in SUMMED and setting is not None and setting.topology == "all" and setting.edges:
            run = replace(run, setting=replace(setting, topology="peer"))  # masked sums go along links: there is no hub
        return cls(run, spends=spending(run.privacy, run.delta), paid=paid, **more)  # type: ignore[arg-type]

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
        if subject.quality is None or subject.quality.public:
            return None
        return element("p", element("strong", "Not for release."), NOT_FOR_RELEASE, class_="warning", role="note")
    return element(
        "p",
        element("strong", f"{SEEDED.capitalize()}."),
        " It shows what the same run would spend with secure noise. Where it used private rows, this page is not for "
        "release: convergence is measured on those rows.",
        class_="warning",
        role="note",
    )
