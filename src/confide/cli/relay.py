"""`confide relay`: join members of a federation that cannot reach each other."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.node_options import HERE, Home, Json, needed
from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.network.relay import Relay
    from confide.node.served import Served

LOOK_SECONDS = 1.0  # between looks at the papers
SAY_SECONDS = 30.0


def relay(
    federation: Annotated[list[Path], typer.Option(metavar="FILE", help="A federation to serve; repeat.")],
    papers: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A member's signatures, with amendments; repeat.")
    ] = None,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="If not the address on the card.")] = None,
    home: Home = HERE,
    members: Annotated[int, typer.Option(metavar="N", help="Members at most, in all federations.")] = 1000,
    connections: Annotated[int, typer.Option(metavar="N", help="Connections at most, in all.")] = 4096,
    bytes_per_second: Annotated[
        int, typer.Option(metavar="N", help="Of one member; who sends more is read more slowly.")
    ] = 1 << 24,
    json: Json = False,
) -> None:
    """Pass on bytes between members that can only connect outwards.

    Members of the named federations connect to it, show their certificates, and are joined in pairs. Between the two
    runs their own TLS, so that the relay sees who talks to whom, when and how much, and nothing else: anyone may run
    it. Its identity is made by `confide node init`, and its card goes to `confide federation new --relay`. It keeps
    nothing: kill and restart it as you like. Ends with exit code 0 on SIGTERM or Ctrl-C.

    Where an amendment changes a key or leaves a member out, give it --papers, agreements/RUN.json of a member's folder:
    the new key is let in, and the old one is not. The file is read again whenever it changes.

    Example: confide relay --federation federation.toml --home relay --listen 0.0.0.0:443
    """
    needed()
    import asyncio

    from confide.network.door import raise_descriptors
    from confide.network.identity import BY_RELAY, Identity
    from confide.network.relay import Limits, Relay
    from confide.node.federation import load
    from confide.node.served import Served

    identity, found = Identity.load(home), [load(path) for path in federation]
    for path, one in zip(federation, found, strict=True):
        if one.relay is None or one.relay.digest != identity.card.digest:
            raise ConfideError(f"{path}: names {'no' if one.relay is None else 'another'} relay: make it with "
                               f"`confide federation new --relay {home / 'card.toml'}`")  # fmt: skip
    address = listen or identity.card.address
    if address == BY_RELAY:
        raise ConfideError("no --listen: a relay takes connections: give it, or make its identity with one")
    if soon := identity.card.check_valid():
        typer.echo(soon, err=True)
    raise_descriptors()
    served = Served(found, papers or [])
    board = Relay(identity, served.members, Limits(members, connections, bytes_per_second))
    asyncio.run(serve(board, served, address, lambda line: None if json else typer.echo(line, err=True)))
    said: dict[str, Any] = {"calls": board.joined, "bytes": board.bytes, "refused": board.refused}
    typer.echo(jsonlib.dumps(said, indent=2) if json else
               f"{board.joined} calls, {board.bytes:,} bytes, {board.refused} connections turned away")  # fmt: skip


async def serve(board: Relay, served: Served, address: str, say: Callable[[str], None]) -> None:
    """Until a signal comes; who is there is said when it changes, at most twice a minute."""
    import asyncio
    import signal

    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, over.set)
    await board.start(address)
    say(f"relay of {len(board.cards)} members on {address}")
    here, told = 0, loop.time()
    try:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), LOOK_SECONDS)
            except TimeoutError:
                await follow(board, served, say)
                if here != board.here and loop.time() >= told + SAY_SECONDS:
                    here, told = board.here, loop.time()
                    say(f"{here} of {len(board.cards)} members are here; {board.joined} calls, {board.bytes:,} bytes")
    finally:
        await board.stop()


async def follow(board: Relay, served: Served, say: Callable[[str], None]) -> None:
    """Take up what came into force; what an amendment costs is found in a thread, as it may take long."""
    import asyncio

    before = [one.head for one in served.federations]
    for line in await asyncio.to_thread(served.refresh):
        say(line)
    changed = [one for one, head in zip(served.federations, before, strict=True) if one.head != head]
    if changed:
        board.serve(served.members)
    for one in changed:
        say(f"{one.name}: amendment {len(one.history) - 1} is in force")
