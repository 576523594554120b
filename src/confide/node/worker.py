"""Work that a node does beside its network."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

SHORT_SECONDS = 0.02


class Worker:
    """Does jobs in a thread, so that neighbours are served, unless the last took less time than starting one would.

    A signal waits for its end.
    """

    def __init__(self) -> None:
        self._took = SHORT_SECONDS  # the last job: at first, long

    async def __call__(self, job: Callable[..., None], *args: Any) -> None:
        began = time.perf_counter()
        try:
            if self._took < SHORT_SECONDS:
                job(*args)
            else:
                await self._in_thread(job, *args)
        finally:
            self._took = time.perf_counter() - began

    async def _in_thread(self, job: Callable[..., None], *args: Any) -> None:
        working = asyncio.ensure_future(asyncio.to_thread(job, *args))
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError:
            await working
            raise
