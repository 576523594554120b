"""Findings: what a paper says, beside what was measured, and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from confide.errors import ConfideError

MATCHES, IN_SHAPE, DIFFERS = "matches", "matches in shape", "differs"
VERDICTS = (MATCHES, IN_SHAPE, DIFFERS)


@dataclass(frozen=True)
class Finding:
    """One comparison. `why` names the cause where it differs; without one the run ends as an error.

    `ours` marks what no paper says: a check of our own, counted apart from the papers' claims.
    """

    what: str
    published: str
    measured: str
    difference: str
    verdict: str
    why: str = ""
    ours: bool = False

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ConfideError(f"finding {self.what!r}: verdict {self.verdict!r} is none of {', '.join(VERDICTS)}")

    @property
    def unexplained(self) -> bool:
        """It differs, and nobody says why."""
        return self.verdict == DIFFERS and not self.why.strip()

    def to_json(self) -> dict[str, Any]:
        cause = self.why if self.verdict == DIFFERS else ""
        return {
            "what": self.what, "published": self.published, "measured": self.measured,
            "difference": self.difference, "verdict": self.verdict, "why": cause, "ours": self.ours,
        }  # fmt: skip


def number(
    what: str, published: float, measured: float, within: float | None = None, *, absolute: float | None = None,
    unit: str = "", why: str = "", ours: bool = False,
) -> Finding:  # fmt: skip
    """A number *matches* when it is at most the fraction `within` of the published one away from it.

    `absolute` states the distance in the number's own unit instead, for percentage points or published zeros. `unit`
    is written after both numbers.
    """
    published, measured = float(published), float(measured)
    if (within is None) == (absolute is None):
        raise ConfideError(f"finding {what!r}: give either within=, a fraction, or absolute=, a distance")
    if within is not None and published == 0:
        raise ConfideError(f"finding {what!r}: 0 was published, so the distance must be absolute=, not within=")
    gap = measured - published
    if absolute is not None:
        close, said = abs(gap) <= absolute, f"{gap:+.3g}{unit} (±{absolute:g}{unit})"
    else:
        assert within is not None
        close = abs(gap) <= within * abs(published)
        said = f"{_percent(gap / abs(published))} (±{100 * within:g} %)"
    if not math.isfinite(measured):
        close, said = False, "not a number"
    return Finding(what, f"{_short(published)}{unit}", f"{_short(measured)}{unit}", said,
                   MATCHES if close else DIFFERS, why, ours)  # fmt: skip


def shape(what: str, published: Any, measured: Any, holds: Any, *, why: str = "", ours: bool = False) -> Finding:
    """A statement in words *matches in shape* when it `holds`: an ordering, a crossing, a trend."""
    texts = [_short(v) if isinstance(v, float) else str(v) for v in (published, measured)]
    said, verdict = ("holds", IN_SHAPE) if holds else ("does not hold", DIFFERS)
    return Finding(what, texts[0], texts[1], said, verdict, why, ours)


def own(what: str, measured: Any, holds: Any, *, why: str = "") -> Finding:
    """A statement of ours, which no paper makes: a check of a method, a bound or a choice beyond them."""
    return shape(what, "not in the paper", measured, holds, why=why, ours=True)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:+.0f} %" if abs(fraction) >= 0.1 else f"{100 * fraction:+.1f} %"


def _short(value: float) -> str:
    return f"{value:.4g}"
