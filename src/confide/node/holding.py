"""Connections to neighbours that were greeted, held until there is something to ask them: who is there is known."""

from __future__ import annotations

import asyncio

from confide.network.link import Link

SECONDS = 2.0  # between looks


class Holding:
    """One task for each link: it opens the connection again if it was lost. Nobody else may ask over it meanwhile."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, link: Link) -> None:
        self._tasks.append(asyncio.create_task(_hold(link)))

    async def end(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _hold(link: Link) -> None:
    while True:
        await asyncio.sleep(SECONDS)
        if not link.up:
            await link.hello()
