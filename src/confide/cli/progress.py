"""A bar with the time left, on stderr and on terminals only, so that stdout holds results and logs stay short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yields watch(done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(f"{what:>10}"), BarColumn(36), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn(),
               TextColumn("left"))  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as shown:
        task: Any = shown.add_task("", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
