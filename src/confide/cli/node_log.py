"""What `confide node run` says while it runs, a JSON object per line on stderr; and who else may watch.

    time, level, event     always
    state                  round, rounds, state, reason
    neighbour              neighbour, up, since, finished, way, trouble, misbehaved: whenever one of them changes
    progress               round, spent_epsilon, at most once a minute
    notice, log, error     message: of the ledger, of the program, and why it ended (with its code)

Lines hold public values, the own spend and names of files: no row, and no number of a message.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.node.federation import Federation
    from confide.node.status import Status

PROGRESS_SECONDS = 60.0


class JsonLog(logging.Handler):
    """Shows each status that says something new, and everything that the program logs."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, Any] = {}
        self._progress = 0.0

    def line(self, event: str, level: str = "info", **fields: Any) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with suppress(OSError):  # a log that cannot be written ends no run
            print(json.dumps({"time": now, "level": level, "event": event, **fields}, ensure_ascii=False),
                  file=sys.stderr, flush=True)  # fmt: skip

    def emit(self, record: logging.LogRecord) -> None:
        self.line("log", record.levelname.lower(), source=record.name, message=record.getMessage())

    def show(self, status: Status) -> None:
        from confide.node.status import standing

        bad = status.state in ("stopped", "failed")
        if self._new("state", (status.state, status.reason)):
            self.line("state", "warning" if bad else "info", node=status.node, federation=status.federation,
                      run=status.run, state=status.state, round=status.round, rounds=status.rounds,
                      reason=status.reason)  # fmt: skip
        if self._new("notice", status.notice) and status.notice:
            self.line("notice", "warning", message=status.notice)
        for name, one in status.neighbours.items():
            if self._new(f"neighbour {name}", dict(one)):
                level = "warning" if standing(one) == "down" else "info"
                self.line("neighbour", level, neighbour=name, round=status.round, **one)
        if status.round and time.monotonic() >= self._progress:
            self._progress = time.monotonic() + PROGRESS_SECONDS
            self.line("progress", round=status.round, rounds=status.rounds, spent_epsilon=status.spent_epsilon)

    def _new(self, what: str, value: Any) -> bool:
        changed = self._told.get(what) != value
        self._told[what] = value
        return changed


@contextmanager
def json_log() -> Iterator[JsonLog]:
    """The log of the program, as JSON lines, while this lasts."""
    log, root = JsonLog(), logging.getLogger("confide")
    before, root.propagate = root.propagate, False
    root.addHandler(log)
    try:
        yield log
    finally:
        root.removeHandler(log)
        root.propagate = before


@contextmanager
def watched(show: Callable[[Status], None], home: Path, federation: Path, metrics: str | None, page: int | None
            ) -> Iterator[tuple[Callable[[Status], None], Callable[[Federation], None]]]:  # fmt: skip
    """`show`, and what the monitor at `metrics` and the browser at `page` see beside it; and who tells them what the
    node holds to.
    """
    if metrics is None and page is None:
        yield show, lambda amended: None
        return
    from confide.node import window
    from confide.node.agreement import in_force
    from confide.node.keys import own_card
    from confide.node.outlook import Outlook

    now = in_force(home, federation)
    outlook = Outlook(now, own_card(home, now, federation).name)

    def both(status: Status) -> None:
        outlook.show(status)
        show(status)

    with ExitStack() as stack:
        if metrics is not None:
            stack.callback(window.Window(metrics, window.metrics(outlook)).close)
        if page is not None:
            stack.callback(window.Window(f"127.0.0.1:{page}", window.page(outlook), local=True).close)
        yield both, outlook.hold
