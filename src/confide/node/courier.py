"""`Courier`: carries papers between neighbours for as long as a node runs, and says when something changed.

Each neighbour is asked again and again, over a connection of its own, for signatures that are not here yet: quickly
until all have signed, seldom afterwards. What the owner signs beside a running node is found in the home.

Whatever a neighbour answers, it is asked again: what is wrong with its papers is `refused`, and logged once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from confide.errors import ConfideError, describe, expected
from confide.network.dialling import Ways, printable
from confide.network.identity import Card, Identity
from confide.network.link import Link
from confide.network.peer import Server
from confide.node.agreement import Papers
from confide.node.codes import Untrusted
from confide.node.federation import Federation
from confide.node.packing import LONGEST_PAPERS

SOON, LATER = 0.2, 2.0  # seconds between questions: when there was news just now, and once all have signed
MISSING = 1.0  # while signatures are missing and nothing new comes
LOOK_SECONDS = 0.5
TURN_SECONDS = 15.0  # for an answer, before another key is tried: who has a stolen one could be silent for ever
HAND_OVER_SECONDS = 5.0  # that a node waits with its new key, so that neighbours hear of it
MOST_REASONS, LONGEST_REASON = 20, 300  # of one neighbour's in the log, and characters of each: it must not fill it
LOG = logging.getLogger("confide.papers")


class Courier:
    """`neighbours` by their cards under `federation`, which is what the node holds to; `keys` are all it has."""

    def __init__(self, papers: Papers, federation: Federation, identity: Identity, neighbours: Mapping[str, Card],
                 keys: Mapping[bytes, Identity] | None = None) -> None:  # fmt: skip
        self.papers, self.federation, self.identity, self.neighbours = papers, federation, identity, neighbours
        self._keys: Mapping[bytes, Identity] = {} if keys is None else keys  # read when needed
        self._held: dict[str, bytes] = {}  # hash of the papers that a neighbour said to have
        self.refused: dict[str, str] = {}  # what is wrong with the papers that a neighbour showed last
        self._reasons: dict[str, set[str]] = {name: set() for name in neighbours}  # that were logged
        self._failure: Exception | None = None
        self._changed, self._reading = asyncio.Event(), asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, server: Server, ways: Ways, alarmed: Callable[[bytes], None]) -> None:
        """`alarmed` hears what a neighbour shows in the place of papers, and raises if it is true."""
        server.papers, self._ways, self._alarmed = self._answer, ways, alarmed
        self._tasks = [asyncio.create_task(self._carry(name)) for name in self.neighbours]
        self._tasks.append(asyncio.create_task(self._look()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def agreed(self) -> None:
        """Until every member has signed."""
        while self.papers.unsigned():
            await self._news()

    async def amended(self) -> None:
        """Until an amendment is in force that this node does not hold to yet.

        One whose own key changes cannot be reached by neighbours that do not know it: it lets them hear of it first.
        """
        while self.papers.current.head == self.federation.head:
            await self._news()
        end = time.monotonic() + HAND_OVER_SECONDS
        while self._own_key_changes() and time.monotonic() < end:
            if all(self._held.get(name) == self.papers.digest for name in self.neighbours):
                return
            await asyncio.sleep(0.05)

    async def amended_while(self, serving: Coroutine[Any, Any, None]) -> bool:
        """Whether an amendment came into force before the end; then what was begun is brought to a clean stop."""
        tasks = [asyncio.ensure_future(serving), asyncio.ensure_future(self.amended())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for error in [task.exception() for task in tasks if task in done]:
            if error is not None:
                raise error
        return tasks[0] not in done

    def _own_key_changes(self) -> bool:
        card = self.papers.current.cards.get(self.identity.card.name)
        return card is not None and card.digest != self.identity.card.digest

    async def _news(self) -> None:
        await self._changed.wait()
        self._changed.clear()
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._changed.set()

    def _answer(self, name: str, question: bytes) -> bytes:
        """For a neighbour that asks about a run and says what it holds; what is the same is not sent again."""
        run, held = question[:32], question[32:]
        if run != self.federation.digest:
            raise ConfideError(f"run {run.hex()[:16]} is not the one here")
        self._held[name] = held
        return b"" if held == self.papers.digest else self.papers.pack()

    async def _carry(self, name: str) -> None:
        links: dict[tuple[bytes, Card], Link] = {}
        pause = SOON
        try:
            while True:
                known = self.papers.digest
                for identity, card in self._turns(name):
                    link = links.get((identity.card.digest, card))
                    if link is None:
                        ways = replace(self._ways, identity=identity)
                        link = Link(identity, card, self.federation.digest, LONGEST_PAPERS, ways)
                        links[identity.card.digest, card], link.alarmed = link, self._alarmed
                    data: bytes | None = None
                    with suppress(TimeoutError):
                        async with asyncio.timeout(TURN_SECONDS):
                            data = await link.papers(self.papers.digest)
                    if data is not None:
                        link.trouble = await self._take(name, data)
                        break
                pause = SOON if self.papers.digest != known else min(2 * pause, MISSING)
                await asyncio.sleep(pause if self._open() else LATER)
        except Exception as error:  # a mistake of ours among them: it must not look like silence
            self._fail(error)
        finally:
            for link in links.values():
                await link.close()

    def _open(self) -> bool:
        """Whether anything is waited for."""
        return bool(self.papers.unsigned() or self.papers.pending)

    def _turns(self, name: str) -> list[tuple[Identity, Card]]:
        """As whom a neighbour is asked, and by which card of it: those in force, then those of amendments that wait.

        A neighbour that holds to one of them already has the new key or address, and takes the new key of this node
        alone. That can't be before this node has signed it: nobody else makes it call an address, or open a key, for
        which it may need a passphrase.
        """
        mine, theirs = self.identity.card, self.neighbours[name]
        out = [(self.identity, theirs)]
        for draft in self.papers.pending.values():
            if mine.name not in draft.signatures or not self._is_own(draft.cards[mine.name]):
                continue  # with a key of someone else's making, perhaps
            own, other = draft.leaves.cards.get(mine.name), draft.leaves.cards.get(name)
            if own is not None and own.digest != mine.digest and own.digest in self._keys:
                out.append((self._keys[own.digest], theirs))
            if other is not None and other != theirs:
                out.append((self.identity, other))
        return out

    def _is_own(self, card: Card) -> bool:
        return card.digest == self.identity.card.digest or card.digest in self._keys

    async def _take(self, name: str, data: bytes) -> str:
        """Take over what a neighbour holds; what is wrong with it, or nothing: it is asked again."""
        wrong = ""
        try:
            if data:
                async with self._foreseen(data):
                    before = self.papers.digest
                    try:
                        self.papers.take(data)
                    finally:  # what is genuine counts, whatever stands beside it
                        self._note(self.papers.digest != before)
        except (Untrusted, OSError) as error:  # a full disk is not the neighbour's fault
            self._fail(error)
        except Exception as error:  # a mistake of ours among them, which a neighbour found: it must not end the run
            wrong = describe(error) if expected(error) else f"{type(error).__name__}: {describe(error)}"
        return self._refuse(name, printable(wrong.encode(errors="replace"))[:LONGEST_REASON])

    def _refuse(self, name: str, wrong: str) -> str:
        """Remember and log what is wrong with a neighbour's papers, each reason once; the same words."""
        told = self._reasons[name]
        if wrong and wrong not in told and len(told) < MOST_REASONS:
            told.add(wrong)
            LOG.warning("papers of %s are not taken: %s%s", name, wrong,
                        "; no other reason is logged" if len(told) == MOST_REASONS else "")  # fmt: skip
        self.refused[name] = wrong
        return wrong

    @asynccontextmanager
    async def _foreseen(self, data: bytes = b"") -> AsyncIterator[None]:
        """One after the other, and what takes long in a thread: several neighbours bring the same."""
        async with self._reading:
            await asyncio.to_thread(self.papers.foresee, data, own=self.papers.unread)
            yield

    def _note(self, changed: bool) -> None:
        if changed:
            self._changed.set()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if self.papers.unread:
                    async with self._foreseen():
                        self._note(self.papers.refresh())
            except Exception as error:  # a mistake of ours among them
                self._fail(error)
