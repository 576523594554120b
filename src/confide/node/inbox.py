"""Waiting for the neighbours: what has come of a round, and for how long nothing may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class Silent(Exception):
    """A neighbour did not answer within the federation's timeout."""


def silent(names: list[str], seconds: float) -> Silent:
    return Silent(f"no answer from {', '.join(names)} for {seconds:g} s: run again to go on")


class Inbox:
    """One frame of each neighbour, and of each at most one more: the round after."""

    def __init__(self, names: Iterable[str]) -> None:
        self._boxes: dict[str, list[bytes]] = {name: [] for name in names}
        self._full, self._room = asyncio.Event(), asyncio.Event()

    async def put(self, name: str, frame: bytes) -> None:
        while len(self._boxes[name]) == 2:
            await self._room.wait()
        self._boxes[name].append(frame)
        if all(self._boxes.values()):
            self._full.set()

    async def round(self, timeout: float) -> dict[str, bytes]:
        """The frames of a round, once all are here."""
        try:
            async with asyncio.timeout(timeout):
                await self._full.wait()
        except TimeoutError:
            raise silent([name for name, box in self._boxes.items() if not box], timeout) from None
        frames = {name: box.pop(0) for name, box in self._boxes.items()}
        if not all(self._boxes.values()):
            self._full.clear()
        self._room.set()
        self._room = asyncio.Event()
        return frames
