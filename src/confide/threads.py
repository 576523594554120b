"""Compiled jobs over all cores.

A kernel is a serial compiled function of (…, first job, end job) that releases the interpreter lock; jobs write to
places of their own, so the result does not depend on how many threads share them. Plain threads rather than Numba's
parallel loops: those take several times as long to compile, and their launch costs as much as a small round.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

SMALL = 500_000  # multiply-adds (about half a millisecond) below which a second thread costs more than it brings


@cache
def threads() -> int:
    """Threads to use: CONFIDE_THREADS, else the cores this process may run on."""
    given = os.environ.get("CONFIDE_THREADS")
    return max(1, int(given)) if given else len(os.sched_getaffinity(0))


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="confide")


def run(kernel: Callable[..., Any], jobs: int, work: float, *args: Any) -> None:
    """kernel(*args, first, end) over `jobs` jobs, `work` multiply-adds in all."""
    parts = min(threads(), jobs)
    if parts < 2 or work < SMALL:
        kernel(*args, 0, jobs)
        return
    cuts = [jobs * i // parts for i in range(parts + 1)]
    rest = [_pool(parts - 1).submit(kernel, *args, cuts[i], cuts[i + 1]) for i in range(1, parts)]
    kernel(*args, 0, cuts[1])
    wait(rest)
    for future in rest:
        future.result()
