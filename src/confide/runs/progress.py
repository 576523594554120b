"""Bars with the time left, on stderr, so that stdout holds results only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bars:
    """Named bars, each shown from the first time it is heard of."""

    def __init__(self, shown: Any = None) -> None:
        self._shown, self._tasks = shown, {}  # type: ignore[var-annotated]

    def __call__(self, name: str, done: int, total: int | None) -> None:
        """`done` of `total` steps of `name`."""
        if self._shown is None:
            return
        if name not in self._tasks:
            self._tasks[name] = self._shown.add_task(name, total=total)
        self._shown.update(self._tasks[name], completed=done, total=total)

    def remove(self, name: str) -> None:
        """The bar of `name`, if there is one, goes away."""
        if name in self._tasks:
            self._shown.remove_task(self._tasks.pop(name))

    def say(self, text: str) -> None:
        """A line above the bars."""
        if self._shown is not None:
            self._shown.console.print(text, style="dim")


@contextmanager
def bars(unit: str = "rounds", *, show: bool = True, passing: bool = False) -> Iterator[Bars]:
    """Bars that count in `unit`s; `passing` ones are for terminals only and leave no trace."""
    if not show:
        yield Bars()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:>14}"), BarColumn(36), MofNCompleteColumn(), TextColumn(unit),
               TimeRemainingColumn(), TextColumn("left"))  # fmt: skip
    with Progress(*columns, console=console, disable=passing and not console.is_terminal, transient=passing,
                  speed_estimate_period=600) as shown:  # fmt: skip
        yield Bars(shown)
