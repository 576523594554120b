"""Progress of a command: bars on a terminal; elsewhere, in a log or a batch job, a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from confide.runs.progress import Bars
from confide.runs.progress import bars as bars_on_terminals

SECONDS = 5.0  # between two lines
SHARE = 0.25  # of the whole, after which there is a line however fast it goes


class Lines(Bars):
    """The same as lines of text, each written at once: the last, and some before it."""

    def __init__(self, unit: str, to: TextIO | None = None) -> None:  # None: stderr
        super().__init__()
        self.unit, self.to = unit, to
        self._said: dict[str, tuple[float, int]] = {}  # when a line was written, and of how many steps
        self._began: dict[str, float] = {}

    def __call__(self, name: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        began = self._began.setdefault(name, now)
        when, before = self._said.setdefault(name, (now, 0))
        far = total is not None and done - before >= SHARE * total
        if done > before and (far or done == total or now - when >= SECONDS):
            whole = "" if total is None else f" of {total:,}"
            self.say(f"{name}: {done:,}{whole} {self.unit}, {now - began:.0f} s")
            self._said[name] = (now, done)

    def remove(self, name: str) -> None:
        self._said.pop(name, None)
        self._began.pop(name, None)

    def say(self, text: str) -> None:
        print(text, file=self.to or sys.stderr, flush=True)


@contextmanager
def bars(unit: str = "rounds", *, passing: bool = False) -> Iterator[Bars]:
    """Bars that count in `unit`s, `passing` ones leaving no trace; lines where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield Lines(unit)
        return
    with bars_on_terminals(unit, passing=passing) as heard:
        yield heard
