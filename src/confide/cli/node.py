"""`confide node`: an identity of one's own, training with the neighbours, and what came out."""

from __future__ import annotations

import json as jsonlib
import re
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from confide.node.daemon import Status

node = typer.Typer(
    help="Be one party of a federation, or its hub.",
    epilog="Example: confide node init --name mercy --listen 127.0.0.1:7001",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Home = Annotated[Path, typer.Option("--home", metavar="DIR", envvar="CONFIDE_HOME", help="The node's own folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
HERE = Path(".confide")
COLUMNS, SILENT_SECONDS = 80, 10.0
ENDED = ("finished", "stopped", "failed")


@node.command()
def init(
    name: Annotated[str, typer.Option(help="What neighbours call this node: a-z, 0-9 and -.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where neighbours reach it.")],
    home: Home = HERE,
    json: Json = False,
) -> None:
    """Make a key and a certificate, and print the card to hand to the neighbours.

    The private key stays in the node's folder, readable by its owner only. The card is public; compare its fingerprint
    with the neighbours over another channel, such as the telephone.

    Example: confide node init --name mercy --listen 127.0.0.1:7001 --home mercy
    """
    needed()
    from confide.network.identity import CARD, Identity

    card = Identity.create(home, name, listen).card
    if json:
        typer.echo(jsonlib.dumps({**card.to_json(), "home": str(home)}, indent=2))
        return
    typer.echo((home / CARD).read_text(), nl=False)
    typer.echo(f"\nThe card above is in {home / CARD}: hand it to the neighbours. The key stays in {home}.", err=True)


@node.command()
def ingest(
    records: Annotated[Path, typer.Argument(metavar="RECORDS", help="Of `confide randomize`, by line; '-' is stdin.")],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The agreed schema.")],
    task: Annotated[str, typer.Option(metavar="NAME", help="What the labels are collected for.")],
    epsilon_range: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The ε a person may choose.")],
    home: Home = HERE,
    json: Json = False,
) -> None:
    """Check people's randomised records and store them for training.

    They go to records/TASK.db in the node's folder, which only grows: task, schema and range are fixed by the first
    call, and a person is stored once. What does not fit is named by line and field, without a value, and left out; the
    exit code is then 1. `confide node run --data` takes the store.

    Example: confide node ingest records.jsonl --schema schema.toml --task flu --epsilon-range 0.5 8 --home mercy
    """
    import sys
    from contextlib import nullcontext

    from confide.node.ingest import RecordStore, lines
    from confide.node.ingest import ingest as take
    from confide.problem.schema import Schema

    if not re.fullmatch(r"\w[\w.-]{0,99}", task):
        raise ValueError(f"--task {task!r}: must be letters, digits, '_', '-' and '.', as it names a file")
    agreed, path = Schema.load(schema), home / "records" / f"{task}.db"
    with nullcontext(sys.stdin.buffer) if str(records) == "-" else records.open("rb") as file:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with RecordStore(path, agreed, task, epsilon_range) as store:
            receipt, total = take(lines(file), store), len(store)
    if json:
        refused = [{"line": line, "what": what} for line, what in receipt.refused]
        said = {"store": str(path), "records": total, **receipt._asdict(), "refused": refused}
        typer.echo(jsonlib.dumps(said, ensure_ascii=False, indent=2))
    else:
        for line, what in receipt.refused:
            typer.echo(f"line {line}: {what}")
        counts = f"{receipt.stored} stored, {receipt.repeated} there already, {len(receipt.refused)} refused"
        typer.echo(f"{counts}; {total} records are in {path}")
    raise typer.Exit(1 if receipt.refused else 0)


@node.command()
def run(
    federation: Annotated[Path, typer.Option(metavar="FILE", help="The file all members agreed on.")],
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="This party's rows; a hub has none.")] = None,
    home: Home = HERE,
    population: Annotated[str | None, typer.Option(help="Whose budget pays; by default the node's name.")] = None,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="Where spending is recorded.")] = None,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="If not the address on the card.")] = None,
    allow_unproven: Annotated[bool, typer.Option("--allow-unproven", help="Run without a proven guarantee.")] = False,
    json: Json = False,
) -> None:
    """Train with the neighbours; after a crash, run it again to resume.

    No row is read before all neighbours have shown the same federation and the whole schedule fits the budget. Ends
    with the last round, with the model so far once a neighbour has been silent for the federation's timeout, or on
    SIGTERM.

    Example: confide node run --federation federation.toml --data mercy.csv --home mercy
    """
    needed()
    from confide.node import daemon

    with view(json) as show:
        status = daemon.run(
            home, federation, data, population=population, ledger=ledger, listen=listen,
            allow_unproven=allow_unproven, show=show,
        )  # fmt: skip
    if status.reason.startswith("SIGINT"):
        raise typer.Exit(130)
    typer.echo(jsonlib.dumps(vars(status), ensure_ascii=False, indent=2) if json else "\n".join(lines(vars(status))))


@node.command()
def status(home: Home = HERE, json: Json = False) -> None:
    """Show the round, the neighbours, the spent budget and how far apart the parties are.

    Example: confide node status --home mercy --json
    """
    needed()
    from confide.node.daemon import read_status

    latest = [heard(found) for folder in runs(home) if (found := read_status(folder))]
    if json:
        typer.echo(jsonlib.dumps({"runs": latest}, ensure_ascii=False, indent=2))
    else:
        typer.echo("\n\n".join("\n".join(lines(one)) for one in latest) or f"{home}: no run yet")


@node.command()
def model(
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write it; else it is printed.")] = None,
    home: Home = HERE,
    json: Json = False,
) -> None:
    """Export the model of the latest run, also while it trains.

    It is computed from the messages in the journal alone, so that it costs nothing beyond them.

    Example: confide node model --home mercy --output model.json
    """
    needed()
    from confide.node.export import export

    folders = runs(home)
    if not folders:
        raise ValueError(f"{home}: no run yet, so there is no model")
    found = export(home, folders[0])
    if output is None:
        typer.echo(found.to_json())
        return
    found.save(output)
    typer.echo(jsonlib.dumps({"model": str(output)}) if json else f"The model is in {output}")


def needed() -> None:
    """One line where the packages for nodes are missing."""
    from importlib.util import find_spec

    if not (find_spec("grpc") and find_spec("cryptography")):
        raise ImportError("nodes need grpcio and cryptography: pip install confide[node]")


def runs(home: Path) -> list[Path]:
    """Folders of this node's runs, the latest first."""
    return sorted(home.glob("runs/*/"), key=lambda folder: (folder / "journal").stat().st_mtime, reverse=True)


def heard(status: dict[str, Any]) -> dict[str, Any]:
    """The status with a word about it where the node has stopped telling: one that is killed says nothing."""
    ago = time() - status["updated"]
    if status["state"] in ENDED or ago < SILENT_SECONDS:
        return status
    return {**status, "reason": f"no word for {ago:.0f} s: if the node was killed, run it again to resume"}


def lines(status: dict[str, Any]) -> list[str]:
    """A status as people read it, in 80 columns."""
    from textwrap import wrap

    out = [
        f"{status['node']} in {status['federation']} ({status['run']}): {status['state']}, "
        f"round {status['round']} of {status['rounds']}",
        *([f"  {status['reason']}"] if status["reason"] else []),
        f"  {status['method']}; guarantee {status['guarantee']}",
    ]
    if status["spent_epsilon"] is not None:
        out.append(f"  spent ε={status['spent_epsilon']:.4g}")
    if status["consensus_distance"] is not None:
        out.append(f"  distance to the neighbours {status['consensus_distance']:.2g} of the message's length")
    for name, one in status["neighbours"].items():
        out.append(f"  {name:<20} {'up' if one['up'] else 'down'}" + (f"  {one['trouble']}" if one["trouble"] else ""))
    return [part for line in out for part in wrap(line, COLUMNS, subsequent_indent="    ")]


class view:
    """A live view on a terminal; elsewhere a line on stderr whenever a neighbour or the state changes."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.last = quiet, ""
        self.live: Any = None

    def __enter__(self) -> Any:
        import sys

        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True, highlight=False), transient=True)
            self.live.start()
        return self.show

    def __exit__(self, *_: Any) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, status: Status) -> None:
        if self.live is not None:
            from rich.text import Text

            self.live.update(Text("\n".join(lines(vars(status)))))
            return
        down = [f"{n} {s['trouble'] or 'is down'}" for n, s in status.neighbours.items() if not s["up"]]
        now = "; ".join([status.state, *down])
        if not self.quiet and now != self.last and status.state not in ENDED:
            typer.echo(f"round {status.round}: {now}", err=True)
        self.last = now
