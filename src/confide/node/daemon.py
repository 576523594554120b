"""The loop of a node: publish the own message, wait for the neighbours', absorb, again. Network and disk meet here.

A round is asked of a neighbour as soon as its last one came, before anything is computed. Neighbours may be down for
as long as the federation's timeout; then the run ends cleanly with the model so far, and can be resumed. After its last
round a node keeps serving until every neighbour has that round in its journal.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from confide.network.identity import Identity
from confide.network.peer import Link, Server
from confide.node.federation import Federation
from confide.node.inbox import Inbox, Silent, silent
from confide.node.journal import Journal
from confide.node.member import Frames, Member, Relay, Trainer
from confide.node.purse import Purse
from confide.privacy import Label

T = TypeVar("T")
WATCH_SECONDS = 0.5
SHORT_SECONDS = 0.02
STATUS, FEDERATION = "status.json", "federation.toml"


@dataclass
class Status:
    """What a node shows of itself: public values, and its own spend."""

    node: str
    federation: str
    run: str
    method: str
    guarantee: str
    rounds: int
    state: str = "starting"  # then greeting, training, serving; at last finished, stopped or failed
    round: int = 0
    reason: str = ""
    neighbours: dict[str, dict[str, Any]] = field(default_factory=dict)
    spent_epsilon: float | None = None
    consensus_distance: float | None = None
    pid: int = field(default_factory=os.getpid)
    updated: float = 0.0


class Daemon:
    """One member of a federation in the folder `home`. `show(status)` is called twice a second."""

    def __init__(self, home: Path, federation: Federation, identity: Identity, member: Member, journal: Journal,
                 listen: str | None = None, show: Callable[[Status], None] = lambda status: None) -> None:  # fmt: skip
        self.folder, self.federation, self.member, self.show = run_folder(home, federation), federation, member, show
        run, mine = federation.digest, identity.card.digest
        self.address = listen or identity.card.address
        self.server = Server(
            identity, member.neighbours, run, member.rounds, lambda t: journal.frame(mine, t), self._last_of
        )
        widest = max(member.width(t) for t in range(1, member.rounds + 1))
        self.links = {name: Link(identity, card, run, widest) for name, card in member.neighbours.items()}
        self._digests = {name: card.digest for name, card in member.neighbours.items()}
        self._came: dict[str, bytes] = {}  # the last frame of each neighbour, in the journal or about to be
        self._journal, self._took = journal, SHORT_SECONDS  # how long the last round took: at first, long
        self.status = Status(
            identity.card.name, federation.name, run.hex()[:16], federation.algorithm.name, str(federation.guarantee),
            member.rounds, round=member.t,
        )  # fmt: skip

    async def run(self) -> Status:
        """Train to the end, the timeout or a signal; the last status says which."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        heard: list[signal.Signals] = []

        def stop(which: signal.Signals) -> None:
            heard.append(which)
            task.cancel()

        for which in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(which, stop, which)
        watch = asyncio.create_task(self._watch())
        try:
            await self._serve()
            self.status.state = "finished"
            self.member.end()
        except Silent as error:
            self.status.state, self.status.reason = "stopped", str(error)
            self.member.end()
        except asyncio.CancelledError:
            if not heard:
                raise
            self.status.state, self.status.reason = "stopped", f"{heard[0].name}; run again to resume"
        except BaseException as error:
            self.status.state, self.status.reason = "failed", str(error)
            raise
        finally:
            watch.cancel()
            for which in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(which)
            self._report(self.member.spent())
            await self.server.stop()
            for link in self.links.values():
                await link.close()
            self._journal.sync()
        return self.status

    async def _serve(self) -> None:
        await self._work(self.member.open)
        await self.server.start(self.address)
        self.server.publish(self.member.sent)
        if self.member.t < self.member.rounds:
            self.status.state = "greeting"
            await self._all(self._greet)  # before a row is read
            self.status.state = "training"
            await self._work(self.member.begin)
            self.server.publish(self.member.sent)
            await self._train()
        self.status.state = "serving"
        await self._part()

    async def _work(self, job: Callable[..., None], *args: Any) -> None:
        """In a thread, so that neighbours are served meanwhile, unless the last took less than starting one would.

        A signal waits for its end.
        """
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

    async def _greet(self, name: str) -> None:
        theirs, shown = await self.links[name].hello()
        if theirs != self.federation.digest:
            raise ValueError(
                f"{name} holds another federation, {theirs.hex()[:16]}, and this node {self.status.run}: "
                "compare the files; no row was read"
            )
        if shown > self.member.sent:
            raise ValueError(
                f"{name} has round {shown} of this node with its signature, and the journal here ends at round "
                f"{self.member.sent}: an old copy would release other noise for the same rounds; "
                "restore the newest, or begin another run"
            )

    def _last_of(self, name: str) -> bytes:
        digest = self._digests[name]
        return self._came.get(name) or self._journal.get(digest, self._journal.last(digest)) or b""

    async def _train(self) -> None:
        inbox = Inbox(self.links)
        pulls = [asyncio.create_task(self._pull(name, inbox)) for name in self.links]
        try:
            while self.member.t < self.member.rounds:
                frames: Frames = await inbox.round(self.federation.timeout)
                await self._work(self.member.step, frames)
                self.server.publish(self.member.sent)
        finally:
            for pull in pulls:
                pull.cancel()

    async def _pull(self, name: str, inbox: Inbox) -> None:
        """Ask a neighbour for one round after the other, each as soon as the last has come."""
        for t in range(self.member.t + 1, self.member.rounds + 1):
            frame = self._journal.get(self._digests[name], t)
            if frame is None:
                frame = await self.links[name].fetch(t, self.member.width(t))
            self._came[name] = frame
            await inbox.put(name, frame)

    async def _part(self) -> None:
        """Leave only when every neighbour has our last round, and knows that we have theirs."""

        async def thanked(name: str) -> None:
            await self.links[name].finish(self.member.rounds)
            while name not in self.server.finished:
                await asyncio.sleep(0.02)

        try:
            await self._all(thanked)
        except Silent as error:  # no failure: our run is complete
            self.status.reason = f"{error}, should they still need the last round"

    async def _all(self, ask: Callable[[str], Awaitable[T]]) -> list[T]:
        """One answer of each neighbour, all within the timeout."""
        tasks = {name: asyncio.ensure_future(ask(name)) for name in self.links}
        try:
            done, waiting = await asyncio.wait(tasks.values(), timeout=self.federation.timeout,
                                               return_when=asyncio.FIRST_EXCEPTION)  # fmt: skip
            for task in done:
                task.result()
            if waiting:
                raise silent([name for name, task in tasks.items() if task in waiting], self.federation.timeout)
            return [task.result() for task in tasks.values()]
        finally:
            for task in tasks.values():
                task.cancel()

    async def _watch(self) -> None:
        while True:
            self._report(await asyncio.to_thread(self.member.spent))
            await asyncio.sleep(WATCH_SECONDS)

    def _report(self, spent: float | None) -> None:
        s = self.status
        s.round, s.spent_epsilon, s.consensus_distance = self.member.t, spent, self.member.distance
        if s.state != "finished":  # then they leave, one by one
            s.neighbours = {name: {"up": link.up, "trouble": link.trouble} for name, link in self.links.items()}
        s.updated = time.time()
        replace_file(self.folder / STATUS, json.dumps(asdict(s), ensure_ascii=False, indent=2))
        self.show(s)


def run(home: Path, source: Path, data: Path | None, *, population: str | None = None, ledger: Path | None = None,
        listen: str | None = None, allow_unproven: bool = False,
        show: Callable[[Status], None] = lambda status: None) -> Status:  # fmt: skip
    """Be the member whose identity is in `home` in the federation at `source`, until it ends.

    `listen` is where to, if not at the address on the card: behind a router, or on all interfaces.
    """
    from confide.node import federation as federations

    federation, identity = federations.load(source), Identity.load(home)
    name = identity.card.name
    federation.neighbours(name)  # one line if it is no member
    if federation.cards[name] != identity.card:
        raise ValueError(f"{source}: its card of {name} is not the one in {home}: exchange cards again")
    hub = name == federation.hub
    if hub == (data is not None):
        raise ValueError(f"{name} is the hub: it takes no data" if hub else f"{name} is a party: give its data")
    if federation.guarantee.label != Label.PROVEN and not allow_unproven:
        raise ValueError(f"guarantee {federation.guarantee}: nodes run proven methods; --allow-unproven runs others")
    folder = run_folder(home, federation)
    with Journal(folder, federation.digest) as journal:
        replace_file(folder / FEDERATION, source.read_text(encoding="utf-8"))
        purse = None if hub else Purse(federation, federation.parties.index(name), population or name, ledger)
        try:
            if (status := read_status(folder)) and status["state"] == "finished" and not status["reason"]:
                return Status(**status)  # and every neighbour has all it needs
            member: Member = (
                Relay(federation, identity, journal) if hub else Trainer(federation, identity, journal, purse, data)
            )

            gc.freeze()  # what is loaded by now stays: no use in looking through it again and again

            async def main() -> Status:
                return await Daemon(home, federation, identity, member, journal, listen, show).run()

            return asyncio.run(main())
        finally:
            if purse is not None:
                purse.close()


def run_folder(home: Path, federation: Federation) -> Path:
    return home / "runs" / federation.digest.hex()[:16]


def read_status(folder: Path) -> dict[str, Any] | None:
    """What the node in this folder said last, or None."""
    try:
        status: dict[str, Any] = json.loads((folder / STATUS).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return status


def replace_file(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
