"""The loop of a node: publish the own message, wait for the neighbours', absorb, again. Network and disk meet here.

A round is asked of a neighbour as soon as its last one came, before anything is computed. Neighbours may be down for
as long as the federation's timeout; then the run ends cleanly with the model so far, and can be resumed. After its last
round a node keeps serving until every neighbour has that round in its journal.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from confide.errors import ConfideError
from confide.network import wire
from confide.network.dialling import Ways
from confide.network.door import raise_descriptors
from confide.network.identity import Identity
from confide.network.link import Link
from confide.network.peer import Server
from confide.node.agreement import Papers
from confide.node.caps import promise
from confide.node.certificates import check_dates
from confide.node.codes import Code, Untrusted, code_of
from confide.node.courier import Courier
from confide.node.evidence import Evidence
from confide.node.federation import Federation, load_runnable
from confide.node.holding import Holding
from confide.node.inbox import Inbox, Silent, Unsigned
from confide.node.journal import Journal
from confide.node.keys import Keys, Passphrase, ask, own_frame
from confide.node.listening import listen
from confide.node.member import Frames, Hub, Member, Trainer
from confide.node.outside import check_consent
from confide.node.purse import Purse
from confide.node.status import FEDERATION, STATUS, Status, StatusFile, read_status, replace_file, run_folder, seen
from confide.node.stopping import Stopping, end, heeding
from confide.node.summer import Disagreement, Summer
from confide.node.witness import Contradiction
from confide.node.worker import Worker
from confide.privacy import Label

__all__ = ["FEDERATION", "STATUS", "Daemon", "Status", "read_status", "replace_file", "run", "run_folder"]
T = TypeVar("T")
WATCH_SECONDS = 0.5
WARN_SECONDS = 30.0
LOG = logging.getLogger("confide.node")
AMENDED = "amended"  # the state of a daemon that another one follows, which holds to the amendment


class Daemon:
    """One member of a federation in the folder `home`. `show(status)` is called twice a second.

    Without `papers` nobody's signature is waited for.
    """

    def __init__(self, home: Path, federation: Federation, identity: Identity, member: Member, journal: Journal,
                 listen: str | None = None, show: Callable[[Status], None] = lambda status: None,
                 proxy: str | None = None, papers: Papers | None = None,
                 keys: Mapping[bytes, Identity] | None = None) -> None:  # fmt: skip
        self.folder, self.federation, self.member, self.show = run_folder(home, federation), federation, member, show
        run = federation.digest
        self.address = listen or identity.card.address
        near = {**federation.neighbours(identity.card.name), **member.neighbours}  # a tree has only some of all links
        self.server = Server(identity, near, run, member.last, member.frame, self._last_of, member.ahead)
        self._ways = Ways(identity, run, federation.relay, proxy)
        self.links = {
            name: Link(identity, card, run, member.longest(), self._ways) for name, card in member.neighbours.items()
        }
        self._evidence, self._file, self._unread = Evidence(self.folder), StatusFile(self.folder / STATUS), False
        for name, link in self.links.items():
            link.accuse = partial(self._evidence.frame, name)
            link.alarmed = self._alarmed
            link.own = partial(own_frame, federation, identity.card.name)
        self.courier = Courier(papers, federation, identity, near, keys) if papers is not None else None
        self._digests = {name: card.digest for name, card in near.items()}
        self._came: dict[str, bytes] = {}  # the last frame of each neighbour, in the journal or about to be
        self._holding = Holding()
        self._journal, self._work = journal, Worker()
        self.status = Status(
            identity.card.name, federation.name, run.hex()[:16], federation.algorithm.name, str(federation.guarantee),
            member.rounds, round=member.t, promise=promise(federation),
        )  # fmt: skip

    async def run(self) -> Status:
        """Train to the end, the timeout or a signal; the last status says which."""
        self._told = Stopping()
        with heeding(self._told.tell, signal.SIGTERM, signal.SIGINT):
            await self._to_the_end()
        if self.status.state == AMENDED and self._told.heard:
            self._stopped()
            self._file.write(self.status)
        return self.status

    def _stopped(self) -> None:
        which = self._told.heard[0]
        self.status.state, self.status.reason = "stopped", f"{which.name}; run again to resume"
        self.status.code = 128 + which

    async def _to_the_end(self) -> None:
        watch = asyncio.create_task(self._watch())
        try:
            self.status.state = await self._until_amended()
            if self.status.state == "finished":
                self.member.end()
        except Silent as error:
            self.status.state, self.status.reason = "stopped", f"{self._troubled(error)}: {self.member.silenced}"
            self.status.code = Code.TIMEOUT
            self.member.end()
        except (Contradiction, Disagreement) as error:
            kept = self._evidence.contradiction(error.party, error.round, error.evidence())
            self.status.state, self.status.reason = "stopped", f"{error}; {kept}"
            self.status.code = Code.MISBEHAVIOUR
            self._told.ends = True
            await self._warn(error)
            self.member.end()
        except asyncio.CancelledError:
            if not self._told.heard:
                raise
            self._stopped()
        except BaseException as error:
            self.status.state, self.status.reason, self.status.code = "failed", str(error), code_of(error)
            raise
        finally:
            self._told.ends = True
            watch.cancel()
            if self.courier is not None:
                await self.courier.stop()
            self._report(self._spent())
            await self.server.stop()
            for link in self.links.values():
                await link.close()
            self._journal.sync()

    async def _serve(self) -> None:
        await self._work(self.member.open)
        self.status.notice = self.member.notice
        await self.server.start(self.address, self._ways)
        self.server.publish(self.member.latest)
        if self.courier is not None:
            self.courier.start(self.server, self._ways, self._alarmed)
        if not self.member.done:
            self.status.state = "greeting"
            try:
                await self._all(self._greet)  # before a row is read
                await self._agree()
            finally:
                await self._holding.end()
            self.status.state = "training"
            await self._work(self.member.begin)
            self.status.notice = self.member.notice
            self.server.publish(self.member.latest)
            if isinstance(self.member, Summer):
                await listen(self.member, self.links, self.federation.timeout, self._hear)
            else:
                assert isinstance(self.member, Trainer | Hub)
                await self._train(self.member)
        self.status.state = "serving"
        await self._part()

    async def _until_amended(self) -> str:
        """Serve to the end, or to an amendment; which of them it was."""
        if self.courier is None:
            await self._serve()
            return "finished"
        return AMENDED if await self.courier.amended_while(self._serve()) else "finished"

    async def _agree(self) -> None:
        """Wait for everyone's signature, for as long as for an answer."""
        if self.courier is None or not self.courier.papers.unsigned():
            return
        self.status.state = "agreeing"
        try:
            async with asyncio.timeout(self.federation.timeout):
                await self.courier.agreed()
        except TimeoutError:
            raise Unsigned(self.courier.papers.unsigned(), self.federation.timeout) from None

    async def _greet(self, name: str) -> None:
        shown = await self.links[name].hello()
        held = self.member.said if isinstance(self.member, Summer) else self.member.latest
        if shown > held:
            await self._work(self.member.admit, shown)
            ends = (shown, held)
            there, here = map(wire.round_in, ends) if isinstance(self.member, Summer) else ends
            raise ConfideError(
                f"{name} has round {there} of this node with its signature, and the journal here ends at round "
                f"{here}: an old copy would release other noise for the same rounds; "
                "restore the newest, or begin another run"
            )
        self._holding.begin(self.links[name])

    def _alarmed(self, alarm: bytes) -> None:
        raise self.member.believe(alarm)

    def _troubled(self, error: Silent) -> str:
        """What is known of those who did not answer."""
        known = {name: link.misbehaved or link.trouble for name, link in self.links.items() if name in error.names}
        said = "; ".join(f"{name} {words}" for name, words in known.items() if words)
        return f"{error} ({said})" if said else str(error)

    async def _warn(self, error: Contradiction | Disagreement) -> None:
        """Show the neighbours what ends the run while one of them may still ask, but not for ever, and not if told."""
        if not error.alarm:
            return
        self.server.warn(error.alarm)
        end = time.monotonic() + min(self.federation.timeout, WARN_SECONDS)
        while time.monotonic() < end and not (self._told.heard or self.server.alarmed.issuperset(self._digests)):
            await asyncio.sleep(0.02)

    def _last_of(self, name: str) -> bytes:
        digest = self._digests[name]
        return self._came.get(name) or self._journal.get(digest, self._journal.last(digest)) or b""

    async def _hear(self, name: str, frame: bytes) -> None:
        """One frame of a private sum."""
        assert isinstance(self.member, Summer)
        self._came[name] = frame
        await self._work(self.member.hear, name, frame)
        self.server.publish(self.member.latest)

    async def _train(self, member: Trainer | Hub) -> None:
        inbox = Inbox(self.links)
        pulls = [asyncio.create_task(self._pull(name, inbox)) for name in self.links]
        try:
            while member.t < member.rounds:
                frames: Frames = await inbox.round(self.federation.timeout)
                await self._work(member.step, frames)
                self.server.publish(member.latest)
        finally:
            for pull in pulls:
                pull.cancel()

    async def _pull(self, name: str, inbox: Inbox) -> None:
        """Ask a neighbour for one round after the other, each as soon as the last has come."""
        try:
            for t in range(self.member.t + 1, self.member.rounds + 1):
                frame = self._journal.get(self._digests[name], t)
                if frame is None:
                    frame = await self.links[name].fetch(t, partial(self.member.check, name, t))
                self._came[name] = frame
                await inbox.put(name, frame)
        except Exception as error:  # a mistake of ours among them: it must not look like silence
            inbox.fail(error)

    async def _part(self) -> None:
        """Leave only when every neighbour has our last round, and knows that we have theirs."""

        async def thanked(name: str) -> None:
            await self.links[name].finish(self.member.last)
            while name not in self.server.finished:
                await asyncio.sleep(0.02)

        try:
            await self._all(thanked)
        except Silent as error:  # no failure: our run is complete
            self.status.reason = f"{self._troubled(error)}, should they still need the last round"

    async def _all(self, ask: Callable[[str], Awaitable[T]]) -> list[T]:
        """One answer of each neighbour, all within the timeout."""
        tasks = {name: asyncio.ensure_future(ask(name)) for name in self.links}
        try:
            done, waiting = await asyncio.wait(tasks.values(), timeout=self.federation.timeout,
                                               return_when=asyncio.FIRST_EXCEPTION)  # fmt: skip
            for task in done:
                task.result()
            if waiting:
                raise Silent([name for name, task in tasks.items() if task in waiting], self.federation.timeout)
            return [task.result() for task in tasks.values()]
        finally:
            for task in tasks.values():
                task.cancel()

    async def _watch(self) -> None:
        while True:
            self._report(await asyncio.to_thread(self._spent))
            await asyncio.sleep(WATCH_SECONDS)

    def _spent(self) -> float | None:
        """As far as it is known: a ledger that cannot be read now must not silence all else that is to be told."""
        try:
            spent, self._unread = self.member.spent(), False
        except (ConfideError, OSError, sqlite3.Error) as error:
            if not self._unread:
                LOG.warning("what was spent cannot be read: %s", error)
            spent, self._unread = self.status.spent_epsilon, True
        return spent

    def _report(self, spent: float | None) -> None:
        """Write down and show how things are."""
        s = self.status
        s.round, s.spent_epsilon, s.consensus_distance = self.member.t, spent, self.member.distance
        s.left_epsilon, s.spent_few, s.journal_bytes = self.member.left, self.member.few, self._journal.size
        s.neighbours = {
            name: seen(link, name in self.server.finished, s.neighbours.get(name)) for name, link in self.links.items()
        }
        s.refused, s.relay = self.server.refused, self.server.relay
        s.unsigned = [] if self.courier is None else self.courier.papers.unsigned()
        s.papers = {} if self.courier is None else {who: why for who, why in self.courier.refused.items() if why}
        s.left = [name for name in self.federation.founding.cards if name not in self.federation.cards]
        s.updated = time.time()
        self._file.write(s)
        with suppress(OSError):  # a log on a full disk, or a terminal that was closed: no reason to end a run
            self.show(s)


def run(home: Path, source: Path, data: Path | None, *, population: str | None = None, ledger: Path | None = None,
        listen: str | None = None, proxy: str | None = None, allow_unproven: bool = False, spare: int | None = None,
        agree: bool = False, show: Callable[[Status], None] = lambda status: None,
        hold: Callable[[Federation], None] = lambda federation: None,
        passphrase: Passphrase = ask) -> Status:  # fmt: skip
    """Be the member whose identity is in `home` in the federation at `source`, until it ends.

    `listen` is where to, if not at the address on the card: behind a router, or on all interfaces. `proxy` is instead
    of the environment's, "none" for none. `spare` attempts are held in the ledger for rounds that a crash makes draw
    twice. `agree` signs the federation, if it is not signed. `hold` is told what the node holds to: the file, and each
    amendment that comes into force.
    """
    with heeding(end, signal.SIGTERM):  # Ctrl-C ends whatever it interrupts
        founding = load_runnable(source)
        check_consent(home, founding)
        papers, keys = Papers.of(home, founding), Keys(home, passphrase)
        while True:  # as often as an amendment comes into force
            federation, identity = papers.current, keys.of(papers.current, source)
            hold(federation)
            status = _run(home, source, data, federation, identity, papers, keys, population, ledger, listen, proxy,
                          allow_unproven, spare, agree, show)  # fmt: skip
            if status.state != AMENDED:
                return status


def _run(home: Path, source: Path, data: Path | None, federation: Federation, identity: Identity, papers: Papers,
         keys: Keys, population: str | None, ledger: Path | None, listen: str | None, proxy: str | None,
         allow_unproven: bool, spare: int | None, agree: bool, show: Callable[[Status], None]) -> Status:  # fmt: skip
    """Until the end, or until another amendment is in force."""
    name = identity.card.name
    dates = check_dates(federation, identity.card)
    hub = name == federation.hub
    if hub == (data is not None):
        raise ConfideError(f"{name} is the hub: it takes no data" if hub else f"{name} is a party: give its data")
    if federation.guarantee.label != Label.PROVEN and not allow_unproven:
        raise ConfideError(f"guarantee {federation.guarantee}: nodes run proven methods; --allow-unproven runs others")
    if not papers.signed(name):
        if not agree:
            raise ConfideError(
                f"{source}: {name} has not signed it: read it by `confide federation review`, then `confide federation "
                "sign`, or run with --agree"
            )
        papers.sign(identity)
    folder = run_folder(home, federation)
    with Journal(folder, federation.digest, aliases=federation.aliases) as journal:
        if found := Evidence(folder).contradictions():
            raise Untrusted(f"{name} stopped this run for signed messages that contradict each other, {found[0]}: "
                            "begin another run without their signer")  # fmt: skip
        replace_file(folder / FEDERATION, source.read_text(encoding="utf-8"))
        purse = None if hub else Purse(federation, federation.parties.index(name), population or name, ledger, spare)
        member: Member | None = None
        try:
            member = (
                Hub(federation, identity, journal)
                if hub
                else (Summer if federation.summed else Trainer)(federation, identity, journal, purse, data)
            )
            status = read_status(folder)
            ended = status is not None and (status["state"], status["reason"], status["rounds"])
            if status and ended == ("finished", "", member.rounds) and member.done:
                member.open()  # every neighbour has all it needs; what was released counts in an older ledger, too
                member.end()
                return Status(**{**status, "notice": member.notice, "spent_epsilon": member.spent(),
                                 "spent_few": member.few})  # fmt: skip

            if data is not None and not member.done:
                data.stat()  # a wrong name is said now, not once everybody has signed
            raise_descriptors()
            gc.freeze()  # what is loaded by now stays: no use in looking through it again and again
            if journal.outdated:
                raise ConfideError(f"{folder}: begun by an older version, whose messages no neighbour takes any more: "
                                   "begin another run; `confide account --end` gives back what it holds")  # fmt: skip
            for words in dates:
                LOG.warning("%s", words)

            async def main() -> Status:
                assert member is not None
                made = Daemon(home, federation, identity, member, journal, listen, show, proxy, papers, keys)
                return await made.run()

            return asyncio.run(main())
        finally:
            if purse is not None:
                purse.close()
            if isinstance(member, Summer):
                member.close()
