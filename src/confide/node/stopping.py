"""SIGTERM and Ctrl-C, from the first step of a run to its last: whenever they come, the node ends with their code.

An event loop's own handlers are there while it runs. Before it does, after it, and between two of them, as when an
amendment comes into force, the system would end the process, with a code that is none of ours.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


@contextmanager
def heeding(heard: Callable[[signal.Signals], None], *which: signal.Signals) -> Iterator[None]:
    """Call `heard` when one of these signals comes; who was called before is called again afterwards."""

    def hear(number: int, _: Any) -> None:
        heard(signal.Signals(number))

    before = {one: signal.signal(one, hear) for one in which}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def end(which: signal.Signals) -> NoReturn:
    """At once: what is on disk is whole at any moment."""
    raise SystemExit(128 + which)


class Stopping:
    """What the task that makes it does when it is told to stop: it is cancelled, until it `ends` anyway."""

    def __init__(self) -> None:
        self.heard: list[signal.Signals] = []
        self.ends = False
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

    def tell(self, which: signal.Signals) -> None:
        self.heard.append(which)
        if self.ends and which == signal.SIGINT:
            raise KeyboardInterrupt  # who insists need not wait for the end
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        assert self._task is not None
        if not self.ends:
            self._task.cancel()
