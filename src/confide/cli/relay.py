"""`confide relay`: join members of a federation that cannot reach each other."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.node_options import HERE, Home, Json, needed
from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.network.relay import Relay


def relay(
    federation: Annotated[list[Path], typer.Option(metavar="FILE", help="A federation to serve; repeat.")],
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

    Example: confide relay --federation federation.toml --home relay --listen 0.0.0.0:443
    """
    needed()
    import asyncio

    from confide.network.door import raise_descriptors
    from confide.network.identity import BY_RELAY, Identity
    from confide.network.relay import Limits, Relay
    from confide.node.federation import load

    identity, found = Identity.load(home), [load(path) for path in federation]
    for path, one in zip(federation, found, strict=True):
        if one.relay is None or one.relay.digest != identity.card.digest:
            raise ConfideError(f"{path}: names {'no' if one.relay is None else 'another'} relay: make it with "
                               f"`confide federation new --relay {home / 'card.toml'}`")  # fmt: skip
    address = listen or identity.card.address
    if address == BY_RELAY:
        raise ConfideError("a relay takes connections: give --listen, or make its identity with one")
    raise_descriptors()
    groups = [one.cards.values() for one in found]
    board = Relay(identity, groups, Limits(members, connections, bytes_per_second))
    asyncio.run(serve(board, address, lambda line: None if json else typer.echo(line, err=True)))
    said: dict[str, Any] = {"calls": board.joined, "bytes": board.bytes, "refused": board.refused}
    typer.echo(jsonlib.dumps(said, indent=2) if json else
               f"{board.joined} calls, {board.bytes:,} bytes, {board.refused} connections turned away")  # fmt: skip


async def serve(board: Relay, address: str, say: Any) -> None:
    """Until a signal comes; who is there is said when it changes, at most twice a minute."""
    import asyncio
    import signal

    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, over.set)
    await board.start(address)
    say(f"relay of {len(board.cards)} members on {address}")
    here = 0
    try:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), 30)
            except TimeoutError:
                if here != board.here:
                    here = board.here
                    say(f"{here} of {len(board.cards)} members are here; {board.joined} calls, {board.bytes:,} bytes")
    finally:
        await board.stop()
