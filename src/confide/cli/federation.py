"""`confide federation`: write the one public file that all members agree on."""

from __future__ import annotations

import json as jsonlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.evaluate import evaluate
from confide.cli.lines import folded, more_than_useful
from confide.cli.node_options import HERE, Home, Json, needed
from confide.errors import ConfideError
from confide.network.named import GRAPHS

if TYPE_CHECKING:
    from confide.network.identity import Card
    from confide.node.agreement import Draft, Papers
    from confide.node.federation import Federation

federation = typer.Typer(
    help="Agree on who learns what with whom.",
    epilog="Example: confide federation new --help",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@federation.callback()
def group() -> None:
    """Agree on who learns what with whom."""


@federation.command()
def new(
    party: Annotated[list[str], typer.Option(metavar="CARD=ROWS", help="A party's card and number of rows; repeat.")],
    epsilon: Annotated[float, typer.Option(min=0.0, help="Cap on what one party may spend.")],
    features: Annotated[int | None, typer.Option(min=1, help="Columns of X; not with --schema.")] = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="Public schema of the columns.")] = None,
    name: Annotated[str, typer.Option(help="What to call it.")] = "federation",
    delta: Annotated[float, typer.Option(min=0.0, max=1.0, help="δ of the cap.")] = 1e-5,
    graph: Annotated[str, typer.Option(help=f"Who talks to whom: {', '.join(GRAPHS)}.")] = "ring",
    edge: Annotated[list[str] | None, typer.Option(metavar="A,B", help="A link, instead of --graph; repeat.")] = None,
    hub: Annotated[Path | None, typer.Option(metavar="CARD", help="The hub, for methods with a server.")] = None,
    algorithm: Annotated[str, typer.Option(help="auto, or a method of `confide algorithms`.")] = "auto",
    set: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter; repeat.")] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="Such as Huber:width=1 or NoisyLabels:epsilon_min=0.5.", show_default="by the label"),
    ] = None,
    penalty: Annotated[str, typer.Option(help="Such as L2:strength=0.01.")] = "L2:strength=1e-06",
    weighting: Annotated[str, typer.Option(help="rows, or parties: what counts alike.")] = "rows",
    row_norm: Annotated[float, typer.Option(help="Rows longer than this are clipped to it.")] = 1.0,
    intercept: Annotated[bool, typer.Option(help="A constant term.")] = True,
    restarts: Annotated[
        int | None,
        typer.Option(min=0, help="Rounds that crashes may make a party pay for twice.", show_default="1 in 30"),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a neighbour in a round.")] = 3600.0,
    patience: Annotated[
        float | None,
        typer.Option(help="Seconds of standstill until a member may be left out.", show_default="86400, a day"),
    ] = None,
    relay: Annotated[
        Path | None, typer.Option(metavar="CARD", help="Joins those that cannot reach each other.")
    ] = None,
    test_noise_seed: Annotated[int | None, typer.Option(help="Seeded noise, for tests: protects nobody.")] = None,
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where it goes.")] = Path("federation.toml"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write federation.toml from the members' cards.

    Without --algorithm the method and its parameters follow from rows, graph and budget; --set rounds=N is taken. What
    you set or name is tried without noise on invented rows, and a warning says if it ends far from the optimum.

    A Gaussian method without a noise gets the least that keeps every party within (ε, δ) as the secure sampler charges
    it, with room for --restarts: a crash at the wrong moment makes a node pay for a round again. Every member should
    read the file and compare its hash before running a node.

    Example: confide federation new --party a/card.toml=400 --party b/card.toml=300 --features 4 --epsilon 1
    """
    needed()
    from confide.files import check_new, write_whole
    from confide.network.identity import load_card
    from confide.node.caps import promise
    from confide.node.choosing import why
    from confide.node.founding import new_federation, usual_loss
    from confide.schema.schema import Schema

    check_new(output, "--output")
    members = [card_and_rows(text) for text in party]
    hub_card, relay_card = (None if path is None else load_card(path) for path in (hub, relay))
    others = [card for card in (hub_card, relay_card) if card is not None]
    for words in filter(None, (card.check_valid() for card in (*(card for card, _ in members), *others))):
        typer.echo(words, err=True)
    if (schema is None) == (features is None):
        given = "neither of" if schema is None else "both"
        raise ConfideError(f"{given} --features and --schema: give one of them, --features for plain numbers")
    known = None if schema is None else Schema.load(schema)
    chosen = usual_loss(known) if loss is None else named(loss)
    model: dict[str, Any] = {"loss": chosen, "penalty": named(penalty), "weighting": weighting}
    if schema is None:
        model |= {"features": features, "row_norm": row_norm, "intercept": intercept}
    found, text = new_federation(
        members, model, {"name": algorithm, **parameters(set or [])}, {"epsilon": epsilon, "delta": delta},
        name=name, graph=graph, edges=[link.split(",") for link in edge or []],
        hub=hub_card, schema=known,
        restarts=restarts, timeout=timeout, patience=patience, test_noise_seed=test_noise_seed,
        relay=relay_card,
    )  # fmt: skip
    rehearsal = rehearsed(found, algorithm == "auto") if algorithm != "auto" or set else ""
    write_whole(output, text.encode(), new=True)
    said: dict[str, Any] = {"federation": str(output), "hash": found.digest.hex(), "guarantee": str(found.guarantee),
            "algorithm": found.algorithm.name, "rounds": found.algorithm.rounds}  # fmt: skip
    if found.package is not None:
        said["package"] = found.package._asdict()
    if trusted := promise(found):
        said["promise"] = trusted
    if rehearsal:
        said["rehearsal"] = rehearsal
    if json:
        typer.echo(jsonlib.dumps(said, ensure_ascii=False, indent=2))
    else:
        method = found.algorithm
        cap, useful = f"at most ε={epsilon:g} at δ={delta:g} each", ""
        if found.guarantee.label == "none":
            cap = f"NOT PRIVATE, no ε holds: {found.guarantee.reason}"
        else:
            useful = more_than_useful(epsilon, delta)
        typer.echo(folded(f"{output}: {len(members)} parties, {method.rounds} rounds of {method.name}, {cap}"))
        reason = why(method, found.public) if algorithm == "auto" else ""
        outside = ""
        if found.package is not None:
            outside = (f"{method.name} is code of the package {found.package}: every member needs the same, and agrees "
                       f"by --consent\nsource {found.package.source}")  # fmt: skip
        for line in filter(None, (reason, *outside.splitlines(), useful, trusted, f"guarantee {found.guarantee}",
                                  f"hash {said['hash']}")):  # fmt: skip
            typer.echo(folded(line))
    if schema is not None:
        from confide.schema.suggest import told_of_draft

        for line in told_of_draft(schema, output):
            typer.echo(folded(line), err=True)


Agreed = Annotated[Path, typer.Argument(metavar="FILE", help="The file that all members agree on.")]
Consent = Annotated[
    str | None, typer.Option(metavar="NAME", help="Let a method of another package meet your rows, by its name.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

federation.command()(evaluate)


@federation.command()
def review(file: Agreed, home: Home = HERE, json: Json = False) -> None:
    """Show on one page what signing a federation means, who has signed, and what amendments wait for signatures.

    Columns, what leaves the house, cost, who may collude, guarantee and members, from the public file alone; with a
    node's folder also the signatures that it has, and amendments.

    Example: confide federation review federation.toml --home mercy
    """
    needed()
    from confide.network.identity import CARD, load_card
    from confide.node import federation as federations
    from confide.node.agreement import Papers
    from confide.node.review import page, to_json

    found = federations.load(file)
    there = (home / CARD).exists()
    papers = Papers.of(home, found) if there else Papers(found)
    name = load_card(home / CARD).name if there else None
    typer.echo(jsonlib.dumps(to_json(papers), ensure_ascii=False, indent=2) if json else "\n".join(page(papers, name)))


@federation.command()
def sign(
    file: Agreed,
    home: Home = HERE,
    amendment: Annotated[
        str | None, typer.Option(metavar="HASH|FILE", help="An amendment that waits, or its file, instead.")
    ] = None,
    papers: Annotated[Path | None, typer.Option(metavar="FILE", help="Take another member's signatures first.")] = None,
    consent: Consent = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Sign the federation, or an amendment, with the node's key, after showing it.

    No node trains before every member has signed. Signatures go from node to node by themselves; where two groups of
    members have no link any more, hand over agreements/RUN.json of a node's folder and give it as --papers. Where the
    method is another package's, its code meets your rows: --consent says so with its name, which --yes does not.

    Example: confide federation sign federation.toml --home mercy --yes
    """
    needed()
    from confide.node import office, review

    held, keys = office.papers_and_keys(file, home)
    if papers is not None:
        held.take(papers.read_bytes())
    if amendment is None:
        shown, what = review.page(held, keys.name), held.founding.name
    else:
        draft = held.draft(office.find(held, amendment))
        office.check_patience(home, draft)
        shown, what = review.amendment_page(draft), f"amendment {draft.change.number}"
    if not json:
        typer.echo("\n".join(shown))
    consented(held.founding, home, consent)
    if not yes and not asked(f"Sign {what} as {keys.name}?"):
        raise ConfideError("not signed")
    if amendment is None:
        office.sign(held, keys, file)
    else:
        office.sign_amendment(held, keys, draft)
    said(held, keys.name, json, None if amendment is None else draft)


@federation.command()
def amend(
    file: Agreed,
    home: Home = HERE,
    without: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A member that leaves; repeat.")] = None,
    edge: Annotated[list[str] | None, typer.Option(metavar="A,B", help="A link to add; repeat.")] = None,
    address: Annotated[
        list[str] | None, typer.Option(metavar="NAME=HOST:PORT", help="Where a member is reached now; repeat.")
    ] = None,
    card: Annotated[
        list[Path] | None, typer.Option(metavar="CARD", help="A member's new card, with a new key; repeat.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds in all, more than now.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(min=0.0, help="The new cap.", show_default="as it is, or what it costs if more")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there, too, to hand on.")] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Write and sign an amendment; it is in force once every member that stays has signed it.

    A member may be left out once the run has stood still for the federation's patience, or if it has signed that it
    leaves. Nodes that run carry the amendment to the others, who see it by `confide federation review` and sign it by
    `confide federation sign --amendment`.

    Example: confide federation amend federation.toml --home mercy --without north
    """
    needed()
    from confide.files import check_new, write_whole
    from confide.network.identity import load_card
    from confide.node import office, review

    if output is not None:
        check_new(output, "--output")
    held, keys = office.papers_and_keys(file, home)
    change = office.compose(
        held.current, without or [], [pair(link, ",", "--edge") for link in edge or []],
        dict(pair(one, "=", "--address") for one in address or []), [load_card(path) for path in card or []], rounds,
        epsilon,
    )  # fmt: skip
    draft = held.draft(change)
    office.check_patience(home, draft)
    if not json:
        typer.echo("\n".join(review.amendment_page(draft)))
    if not yes and not asked(f"Sign amendment {change.number} as {keys.name}?"):
        raise ConfideError("not signed")
    office.sign_amendment(held, keys, draft)
    if output is not None:
        write_whole(output, change.to_toml().encode(), new=True)
    said(held, keys.name, json, held.draft(change))


def said(papers: Papers, name: str, json: bool, draft: Draft | None) -> None:
    """What is signed now, and by whom it is not."""
    from confide.node.review import to_json

    if json:
        typer.echo(jsonlib.dumps(to_json(papers), ensure_ascii=False, indent=2))
        return
    missing = papers.unsigned() if draft is None else draft.unsigned
    what = "The federation" if draft is None else f"Amendment {draft.change.number}"
    waits = f"{what} waits for {', '.join(missing)}, as far as is known here." if missing else f"{what} is in force."
    typer.echo("\n" + folded(f"Signed as {name}. {waits}"))


def asked(question: str) -> bool:
    """A yes at the terminal; without one --yes is needed."""
    import sys

    if not sys.stdin.isatty():
        raise ConfideError("nobody is at the terminal to say yes: read it, and give --yes")
    return typer.confirm(question)


def consented(found: Federation, home: Path, consent: str | None) -> None:
    """The owner's consent to code of another package: by option, at the terminal, or given before."""
    import sys

    from confide.node import outside

    if consent is None and not outside.consented(home, found):
        if not sys.stdin.isatty():
            raise ConfideError(outside.asks(found))
        own = found.algorithm.name
        consent = typer.prompt(f"{own} is code of the package {found.package}. To let it meet your rows, type its name")
    if consent is not None:
        outside.consent(home, found, consent)


def consent_to_run(file: Path, home: Path, consent: str | None) -> None:
    """The same before a run; where nobody is asked and nothing is given, the node itself says what is missing."""
    import sys

    from confide.network.identity import CARD
    from confide.node import federation as federations

    if (home / CARD).exists() and (consent is not None or sys.stdin.isatty()):
        consented(federations.load(file), home, consent)


def pair(text: str, sign: str, option: str) -> tuple[str, str]:
    first, found, second = text.partition(sign)
    if not found:
        raise ConfideError(f"{option} {text}: must be two parts with {sign!r} between them")
    return first, second


def rehearsed(found: Federation, auto: bool) -> str:
    """What a rehearsal of a method that was set by hand says."""
    from confide.cli.compile import compiled
    from confide.cli.progress import bars
    from confide.cli.rehearsed import tried
    from confide.planning.ahead import REHEARSAL

    compiled(REHEARSAL)
    with bars("rounds", passing=True) as heard:
        return tried(found.algorithm, found.public, heard, auto)


def card_and_rows(text: str) -> tuple[Card, int]:
    from confide.network.identity import load_card

    path, _, rows = text.rpartition("=")
    if not path or not (rows.isascii() and rows.isdigit()):
        raise ConfideError(f"--party {text}: must be CARD=ROWS, such as mercy/card.toml=400")
    return load_card(Path(path)), int(rows)


def named(text: str) -> dict[str, Any]:
    """Name:a=1,b=2 as a table; values may be JSON, as in NoisyLabels:loss={"name": "Multinomial", "classes": 3}."""
    name, _, rest = text.partition(":")
    return {"name": name, **pairs(re.split(r",(?![^\[{]*[\]}])", rest) if rest else [])}


def parameters(texts: list[str]) -> dict[str, Any]:
    """Of a method; 0.1.0 called an ADMM's coupling its penalty."""
    given = pairs(texts)
    if "penalty" in given and "coupling" not in given:
        typer.echo("warning: --set penalty: is called coupling now", err=True)
        return {"coupling" if name == "penalty" else name: value for name, value in given.items()}
    return given


def pairs(texts: list[str]) -> dict[str, Any]:
    """name=value, values as JSON writes them."""
    out = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfideError(f"{text!r}: must be name=value")
        try:
            out[name] = jsonlib.loads(value)
        except ValueError:
            out[name] = value
    return out
