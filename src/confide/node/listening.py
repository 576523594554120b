"""Asking for the frames of a private sum: whatever is wanted of each neighbour now, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from confide.network.link import Link
from confide.node.inbox import Silent
from confide.node.summer import Summer


async def listen(member: Summer, links: Mapping[str, Link], timeout: float,
                 hear: Callable[[str, bytes], Awaitable[None]]) -> None:  # fmt: skip
    """Until the member is done; `Silent` once nothing has come for so many seconds."""
    asked: dict[str, tuple[int, asyncio.Task[bytes]]] = {}
    try:
        while not member.done:
            wanted = member.wanted
            for name in [name for name, (number, _) in asked.items() if wanted.get(name) != number]:
                _, task = asked.pop(name)  # the round began again
                task.cancel()
                await asyncio.wait([task])  # a link has one question at a time
            for name in wanted.keys() - asked.keys():
                check = partial(member.check, name, wanted[name])
                asked[name] = wanted[name], asyncio.create_task(links[name].fetch(wanted[name], check))
            done, _ = await asyncio.wait([task for _, task in asked.values()], timeout=timeout,
                                         return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            if not done:
                raise Silent(sorted(asked), timeout)
            for name in [name for name, (_, task) in asked.items() if task in done]:
                number, task = asked.pop(name)
                frame = task.result()
                if member.wanted.get(name) == number:  # what came just before it may have begun the round again
                    await hear(name, frame)
    finally:
        for _, task in asked.values():
            task.cancel()
