"""What the draft of a schema needs to know of one column, gathered in a fixed amount of memory.

Nothing here is public: a tally is made of private rows and stays with their owner.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from confide.schema.columns import number, texts

MOST = 20  # categories; a column of more texts is ignored in the draft
LOOK = 10_000  # rows in which we look whether each has its own value
RARE = 5  # rows: a category in fewer may be one person's
MARKS = ("?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "null", "NULL", "None", "-", ".")  # "missing"
SENTINELS = frozenset(
    [-1, -7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, -99999, 9, 99, 999, 9999, 99999, 999999]
)  # numbers by which files say "missing", if they lie apart from the others
DAY = r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|\d{1,2}[- ]?[A-Za-z]{3,9}[- ,]+\d{2,4})"
CLOCK = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?(Z| ?[+-]\d{2}:?\d{2})?"
DATE = re.compile(rf"{DAY}([T ]+{CLOCK})?|{CLOCK}", re.ASCII)
STAMP = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)  # 20240131
COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)  # 0,118
CODE = re.compile(r"0\d+", re.ASCII)  # 01001 and 007: their zeros mean something
ID = re.compile(r"(^|_)(id|ids|nr|no|num|number|mrn|ssn|key|index|idx|uuid|code|record|case|patient|row|unnamed)(_|$)")


class ColumnTally:
    """Counts over the rows of one column; `add` takes its fields, batch by batch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.marks: set[str] = set()  # of MARKS, and "", that were seen
        self.values: dict[str, int] = {}  # how often, of the first MOST + 1 values
        self.words: set[str] = set()  # fields that are no number, the first few
        self.present = self.numbers = self.dates = self.stamps = self.commas = self.codes = 0
        self.low, self.high, self.whole = math.inf, -math.inf, True  # of numbers that can't be sentinels
        self.suspects: Counter[float] = Counter()  # numbers that may be
        self.seen: set[str] = set()
        self.looked, self.last, self.counting = 0, math.nan, True

    def add(self, fields: Any) -> None:
        found = texts(fields)
        self._look([t for t in found if t and t not in MARKS])
        for t, n in Counter(found).items():
            if t == "" or t in MARKS:
                self.marks.add(t)
            else:
                self._count(t, n)

    def _count(self, t: str, n: int) -> None:
        self.present += n
        if len(self.values) <= MOST or t in self.values:
            self.values[t] = self.values.get(t, 0) + n
        x = number(t)
        if not math.isfinite(x):
            self.dates += n if DATE.fullmatch(t) else 0
            self.commas += n if COMMA.fullmatch(t) else 0
            if len(self.words) <= 3:
                self.words.add(t)
            return
        self.numbers += n
        self.stamps += n if STAMP.fullmatch(t) else 0
        self.codes += n if CODE.fullmatch(t) else 0
        if x in SENTINELS:
            self.suspects[x] += n
        else:
            self.low, self.high, self.whole = min(self.low, x), max(self.high, x), self.whole and x == int(x)

    def _look(self, texts: list[str]) -> None:
        """Has each of the first rows its own value, and do they count up by one?"""
        for t in texts[: LOOK - self.looked]:
            x = number(t)
            self.counting &= self.looked == 0 or x == self.last + 1
            self.last = x
            self.seen.add(t)
            self.looked += 1

    # --- what it comes to ---------------------------------------------------------------------------------------------

    @property
    def numeric(self) -> bool:
        """Numbers, but for a few fields of at most three kinds, which then mean "missing"; not codes such as 007."""
        strays = self.present - self.numbers
        return (
            self.numbers > 0
            and not self.codes
            and (strays == 0 or (len(self.words) <= 3 and 10 * strays <= self.present))
        )

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Marks of this column alone: numbers far from all others, and strays among numbers, or numbers among texts."""
        if self.numeric:
            apart = [x for x in sorted(self.suspects) if self._apart(x)]
            return (*(f"{x:.0f}" for x in apart), *sorted(self.words))
        few = [v for v in self.values if number(v) in SENTINELS]
        return tuple(few) if len(few) == len([v for v in self.values if not math.isnan(number(v))]) else ()

    def _apart(self, x: float) -> bool:
        """Below 0 where no other number is, or further away than the others are wide."""
        low, high = self.low, self.high
        if not low < high:  # nothing to compare with
            return False
        if x < 0:
            return (low >= 0 and (x < -1 or high >= 10)) or x < low - 2 * (high - low)
        return x > 2 * high and x > high + (high - low) and (self.suspects[x] > 1 or x >= 999)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest number that is no sentinel."""
        rest = [x for x in self.suspects if f"{x:.0f}" not in self.sentinels]
        return min([self.low, *rest]), max([self.high, *rest])

    @property
    def few(self) -> tuple[str, ...] | None:
        """The distinct values without sentinels, sorted, if they are few."""
        marks = self.sentinels
        found = [v for v in self.values if v not in marks]
        if not found or len(self.values) > MOST:
            return None
        return tuple(sorted(found, key=lambda v: (number(v), v) if self.numeric else (0.0, v)))

    @property
    def rare(self) -> bool:
        return any(self.values[v] < RARE for v in self.few or ())

    @property
    def dated(self) -> bool:
        return self.present > 0 and 10 * max(self.dates, self.stamps) >= 9 * self.present

    @property
    def decimal_commas(self) -> bool:
        """Numbers, some of them with a comma where a point must be."""
        return self.commas > 0 and 10 * (self.commas + self.numbers) >= 9 * self.present

    @property
    def lone_negative(self) -> bool:
        """Whole numbers from 0 on but for -1, which may be one of them and may mean "missing"."""
        return self.suspects[-1] > 0 and self.whole and 0 <= self.low < self.high >= 2 and "-1" not in self.sentinels

    @property
    def own(self) -> bool:
        """Nearly every row has its own value."""
        return len(self.seen) >= 8 and 2 * len(self.seen) > self.looked

    @property
    def identifies(self) -> str:
        """Why these numbers are ids; empty if they are not."""
        if not (self.numeric and self.whole and len(self.seen) == self.looked >= 8):
            return ""
        if self.counting:
            return "counts the rows"
        words = re.sub(r"\W+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", self.name)).lower()
        return "an id by its name, and no number twice" if ID.search(words) else ""
