"""Waiting for the neighbours: what has come of a round, and for how long nothing may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class Silent(Exception):
    """Neighbours did not answer within the federation's timeout."""

    def __init__(self, names: list[str], seconds: float) -> None:
        super().__init__(f"no answer from {', '.join(names)} for {seconds:g} s")
        self.names = names


class Unsigned(Silent):
    """Members did not sign within the federation's timeout."""

    def __init__(self, names: list[str], seconds: float) -> None:
        super().__init__(names, seconds)
        self.args = (f"not signed by {', '.join(names)} for {seconds:g} s",)


class Inbox:
    """One frame of each neighbour, and of each at most one more: the round after."""

    def __init__(self, names: Iterable[str]) -> None:
        self._boxes: dict[str, list[bytes]] = {name: [] for name in names}
        self._full, self._room = asyncio.Event(), asyncio.Event()
        self._failure: Exception | None = None

    async def put(self, name: str, frame: bytes) -> None:
        while len(self._boxes[name]) == 2:
            await self._room.wait()
        self._boxes[name].append(frame)
        if all(self._boxes.values()):
            self._full.set()

    def fail(self, error: Exception) -> None:
        """No round will be complete any more."""
        self._failure = error
        self._full.set()

    async def round(self, timeout: float) -> dict[str, bytes]:
        """The frames of a round, once all are here."""
        try:
            async with asyncio.timeout(timeout):
                await self._full.wait()
        except TimeoutError:
            raise Silent([name for name, box in self._boxes.items() if not box], timeout) from None
        if self._failure is not None:
            raise self._failure
        frames = {name: box.pop(0) for name, box in self._boxes.items()}
        if not all(self._boxes.values()):
            self._full.clear()
        self._room.set()
        self._room = asyncio.Event()
        return frames
