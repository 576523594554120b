"""Progress where nobody looks at a terminal: few lines, each written at once."""

import io
import itertools

from confide.cli import progress
from confide.cli.progress import Lines


class Paper(io.StringIO):
    """What was written, and whether all of it had been flushed."""

    def __init__(self):
        super().__init__()
        self.flushed = 0

    def flush(self):
        self.flushed = len(self.getvalue())


def test_fast_steps_are_told_by_quarters():
    paper = Paper()
    heard = Lines("rounds", paper)
    for t in range(1001):
        heard("training", t, 1000)
        assert paper.flushed == len(paper.getvalue())
    said = paper.getvalue().splitlines()
    assert [line.split(" of ")[0] for line in said] == [
        "training: 250", "training: 500", "training: 750", "training: 1,000",
    ]  # fmt: skip


def test_slow_steps_are_told_every_few_seconds(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(progress.time, "monotonic", lambda: 2.0 * next(clock))
    paper = Paper()
    heard = Lines("rounds", paper)
    for t in range(20):
        heard("training", t, None)
    said = paper.getvalue().splitlines()
    assert said[:3] == ["training: 3 rounds, 6 s", "training: 6 rounds, 12 s", "training: 9 rounds, 18 s"]
    heard.say("compiling")
    assert paper.getvalue().endswith("compiling\n")
