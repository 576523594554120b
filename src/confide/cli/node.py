"""`confide node`: an identity of one's own, training with the neighbours, and what came out."""

from __future__ import annotations

import json as jsonlib
import re
from pathlib import Path
from typing import Annotated

import typer

from confide.cli.federation import Consent, consent_to_run
from confide.cli.lines import folded
from confide.cli.node_options import HERE, Home, Json, needed
from confide.cli.node_view import heard, status_lines, view, with_evaluation
from confide.errors import ConfideError
from confide.files.plain import without_infinity

node = typer.Typer(
    help="Be one party of a federation, or its hub.",
    epilog="Example: confide node init --name mercy --listen 127.0.0.1:7001",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Encrypt = Annotated[
    bool, typer.Option("--encrypt", help="Encrypt the key: by CONFIDE_PASSPHRASE, CONFIDE_PASSPHRASE_FILE, or asked.")
]


@node.command()
def init(
    name: Annotated[str, typer.Option(help="What neighbours call this node: a-z, 0-9 and -.")],
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where neighbours reach it.")] = None,
    outbound: Annotated[bool, typer.Option("--outbound", help="Nowhere: only through the federation's relay.")] = False,
    home: Home = HERE,
    encrypt: Encrypt = False,
    json: Json = False,
) -> None:
    """Make a key and a certificate, and print the card to hand to the neighbours.

    The private key stays in the node's folder, readable by its owner only. The card is public; compare its fingerprint
    with the neighbours over another channel, such as the telephone.

    Example: confide node init --name mercy --listen 127.0.0.1:7001 --home mercy
    """
    needed()
    from confide.network.identity import BY_RELAY, CARD, Identity
    from confide.node.keys import chosen

    if (listen is None) != outbound:
        given = "both --listen and --outbound" if outbound else "no --listen"
        raise ConfideError(
            f"{given}: give either --listen HOST:PORT, or --outbound for a node that takes no connections"
        )
    card = Identity.create(home, name, listen or BY_RELAY, chosen() if encrypt else None).card
    if json:
        typer.echo(jsonlib.dumps({**card.to_json(), "home": str(home)}, indent=2))
        return
    typer.echo((home / CARD).read_text(), nl=False)
    told = f"The card above is in {home / CARD}: hand it to the neighbours. The key stays in {home}."
    typer.echo("\n" + folded(told, rest=""), err=True)


@node.command()
def rekey(
    home: Home = HERE,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="If it is reached elsewhere, too.")] = None,
    encrypt: Encrypt = False,
    json: Json = False,
) -> None:
    """Make another key for the node, because the old one is lost, known to others, or about to expire.

    It is in use in a run once every member has signed an amendment with its card; the old key is refused from then on.

    Example: confide node rekey --home mercy
    """
    needed()
    from confide.node.keys import chosen, new_key

    card = new_key(home, listen, chosen() if encrypt else None)
    if json:
        typer.echo(jsonlib.dumps({"card": str(card), "home": str(home)}))
        return
    typer.echo(card.read_text(), nl=False)
    told = f"The new card is in {card}: `confide federation amend FILE --card {card}` puts it in force."
    typer.echo("\n" + folded(told, rest=""), err=True)


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

    from confide.node.records import RecordStore
    from confide.node.records import ingest as take
    from confide.node.records import lines as read_lines
    from confide.schema.schema import Schema

    if not re.fullmatch(r"\w[\w.-]{0,99}", task):
        raise ConfideError(f"--task {task!r}: must be letters, digits, '_', '-' and '.', as it names a file")
    agreed, path = Schema.load(schema), home / "records" / f"{task}.db"
    with nullcontext(sys.stdin.buffer) if str(records) == "-" else records.open("rb") as file:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with RecordStore(path, agreed, task, epsilon_range) as store:
            receipt, total = take(read_lines(file), store), len(store)
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
    proxy: Annotated[
        str | None, typer.Option(metavar="URL", help="HTTP proxy, or none.", show_default="HTTPS_PROXY, NO_PROXY")
    ] = None,
    allow_unproven: Annotated[bool, typer.Option("--allow-unproven", help="Run without a proven guarantee.")] = False,
    spare: Annotated[
        int | None,
        typer.Option(metavar="N", help="Hold N rounds more, to pay again after crashes.", show_default="as agreed"),
    ] = None,
    agree: Annotated[bool, typer.Option("--agree", help="Sign the federation, without asking.")] = False,
    consent: Consent = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /metrics for Prometheus, and /healthz.")
    ] = None,
    page: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65535, help="Serve a live page to this machine's browsers.")
    ] = None,
    log: Annotated[str, typer.Option(metavar="text|json", help="How to tell what happens, on stderr.")] = "text",
    json: Json = False,
) -> None:
    """Train with the neighbours; after a crash, run it again to resume.

    No row is read before all neighbours have shown the same federation, every member has signed it, and the whole
    schedule fits the budget. The first time, at a terminal, it shows what the federation says and asks. Ends with the
    last round, with the model so far once a neighbour has been silent for the federation's timeout, or on SIGTERM. Exit
    codes: 0 finished, 2 refused as given, 3 neighbours were silent, 4 over budget, 5 a member told different things to
    different members, 6 a damaged file, 7 disk or port, 130 and 143 stopped by a signal.

    Example: confide node run --federation federation.toml --data mercy.csv --home mercy
    """
    needed()
    from confide.cli import fail
    from confide.cli.node_log import json_log, watched
    from confide.errors import describe, expected
    from confide.node import daemon
    from confide.node.codes import code_of

    if log not in ("text", "json"):
        raise ConfideError(f"--log {log}: must be text or json")
    agree = agree or agreed(federation, home)
    consent_to_run(federation, home, consent)
    with json_log() if log == "json" else view(json) as told:
        try:
            with watched(told.show, home, federation, metrics, page) as (show, hold):
                status = daemon.run(
                    home, federation, data, population=population, ledger=ledger, listen=listen, proxy=proxy,
                    allow_unproven=allow_unproven, spare=spare, agree=agree, show=show, hold=hold,
                )  # fmt: skip
        except Exception as error:
            if not expected(error):
                raise
            if log == "json":
                told.line("error", "error", message=describe(error), code=code_of(error))
                raise typer.Exit(code_of(error)) from None
            told.close()
            fail(describe(error), code_of(error))
    if status.code == 130:
        raise typer.Exit(130)
    said = with_evaluation(vars(status), home)
    if "evaluation" in said:
        written = jsonlib.dumps(said["evaluation"], ensure_ascii=False, indent=2)
        daemon.replace_file(home / "runs" / status.run / "evaluation.json", f"{written}\n")
    typer.echo(
        jsonlib.dumps(without_infinity(said), ensure_ascii=False, indent=2) if json else "\n".join(status_lines(said))
    )
    raise typer.Exit(status.code)


@node.command()
def status(home: Home = HERE, json: Json = False) -> None:
    """Show the round, the neighbours, the spent budget and how far apart the parties are.

    Example: confide node status --home mercy --json
    """
    needed()
    from confide.node.status import read_status, running, runs

    if not home.is_dir():
        raise ConfideError(f"--home {home}: no such folder; `confide node init` makes a node's")
    there = [heard(found, running(folder)) for folder in runs(home) if (found := read_status(folder))]
    latest = [with_evaluation(one, home) for one in there]
    if json:
        typer.echo(jsonlib.dumps(without_infinity({"runs": latest}), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n\n".join("\n".join(status_lines(one)) for one in latest) or f"{home}: no run yet")


@node.command()
def model(
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write it; else it is printed.")] = None,
    home: Home = HERE,
    json: Json = False,
) -> None:
    """Export the model of the latest run that learns, also while it trains.

    It is computed from the messages in the journal alone, so that it costs nothing beyond them.

    Example: confide node model --home mercy --output model.json
    """
    needed()
    from confide.node.export import export, learning

    folders = learning(home)
    if not folders:
        raise ConfideError(f"{home}: no run yet that learns, so there is no model")
    found = export(home, folders[0])
    if output is None:
        typer.echo(found.to_json())
        return
    found.save(output)
    typer.echo(jsonlib.dumps({"model": str(output)}) if json else f"The model is in {output}")


@node.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A node's folder, or one of its runs.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another member's, of the same federation.")],
    json: Json = False,
) -> None:
    """Lay two journals of a run side by side: whether anyone told the two different things.

    Where both hold a message of one sender and round, they must be the same message. Two that differ are listed with
    whether both bear the sender's signature, which proves that it lied; the exit code is then 5.

    Example: confide node compare mercy north
    """
    needed()
    from confide.node.codes import Code
    from confide.node.comparison import compared

    found = compared(first, second)
    if json:
        typer.echo(jsonlib.dumps(found.to_json(), ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join(found.lines()))
    raise typer.Exit(Code.MISBEHAVIOUR if found.lies else 0)


def agreed(federation: Path, home: Path) -> bool:
    """Whether the person at the terminal says yes to a federation that is not signed yet; elsewhere nobody is asked."""
    import sys

    from confide.cli.federation import asked
    from confide.network.identity import CARD, load_card
    from confide.node import federation as federations
    from confide.node.agreement import Papers
    from confide.node.review import page

    if not sys.stdin.isatty() or not (home / CARD).exists():
        return False
    found, name = federations.load(federation), load_card(home / CARD).name
    papers = Papers.of(home, found)
    if name not in found.cards or papers.signed(name):
        return False
    typer.echo("\n".join(page(papers, name)))
    return asked(f"Sign this as {name}, and train?")
