"""`confide plan`: is a joint private model worth it, for whom and at which ε, by simulation."""

from __future__ import annotations

import json as jsonlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from confide.cli.fit import MODELS, check_numbers, check_owner, checked_graph, only
from confide.errors import ConfideError
from confide.network.named import GRAPHS

if TYPE_CHECKING:
    from confide.planning.advice import Asked
    from confide.planning.plan import Forecast
    from confide.planning.rows import Source

SHOWN, PARTIES = 3, 20  # values of ε and parties that the table by party has room for; --json has all


class Several(TyperCommand):
    """A command whose options take several values: `--epsilon 0.5 1 3` is `--epsilon 0.5 --epsilon 1 --epsilon 3`."""

    several = ("--epsilon", "--rows")

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        out: list[str] = []
        last, filled = "", False
        for arg in args:
            if arg.startswith("-"):
                last, filled = arg, False
            elif last in self.several and filled:
                out.append(last)
            else:
                filled = True
            out.append(arg)
        return super().parse_args(context, out)


COMMAND = Several


def plan(
    epsilon: Annotated[list[float], typer.Option(metavar="E…", help="Total ε to try, one or several.")] = [0.5, 1, 3],  # noqa: B006
    parties: Annotated[int | None, typer.Option(min=2, help="How many.", show_default="5")] = None,
    rows: Annotated[list[int] | None, typer.Option(
        metavar="N…", help="Rows of all together; or of each party, one by one.", show_default="4000")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Encoded features of a row.", show_default="20")] = None,
    best: Annotated[float | None, typer.Option(
        help="Best possible accuracy, or R², on generated rows.", show_default="0.85; 0.6 for numbers")] = None,
    skew: Annotated[float, typer.Option(help="How far apart the parties are, in standard deviations.")] = 0.0,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Your own rows instead of generated ones.")] = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="Their schema.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="As in `confide fit`.")] = None,
    group: Annotated[str | None, typer.Option(metavar="COLUMN", help="As in `confide fit`.")] = None,
    clip: Annotated[bool, typer.Option("--clip", hidden=True, help="As the schema says, always.")] = False,
    collusion: Annotated[int | None, typer.Option(min=1, help="As in `confide fit`.")] = None,
    delta: Annotated[float, typer.Option(help="Total δ.")] = 1e-5,
    graph: Annotated[str, typer.Option(help=f"{', '.join(GRAPHS)}.")] = "ring",
    model: Annotated[str | None, typer.Option(help=f"{MODELS}.", show_default="logistic; ridge for numbers")] = None,
    quantile: Annotated[float | None, typer.Option(help="Of model quantile.", show_default="0.5")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Messages a party sends.", show_default="chosen")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Repetitions: fresh rows and fresh noise.")] = 5,
    latency: Annotated[float, typer.Option(min=0.0, help="Milliseconds a round takes on the network.")] = 50.0,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also a picture, a new PNG file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:  # fmt: skip
    """Forecast what a joint private model is worth, before anyone commits.

    Simulates on generated rows of stated difficulty: accuracy against ε with error bars, without privacy, of each party
    alone, and what joining adds for each; rounds, bytes and time. With --data it uses your own rows: then the numbers
    are not for release, because they are computed from private rows without noise.

    Example: confide plan --parties 5 --rows 4000 --features 20 --epsilon 0.5 1 3
    """
    from confide.cli.compile import compiled
    from confide.cli.progress import bars
    from confide.files import check_new
    from confide.planning.ahead import PLAN
    from confide.planning.plan import check_budgets
    from confide.planning.plan import plan as forecast

    if plot is not None:
        check_new(plot, "--plot")
        from confide.files.pictures import check_drawing

        check_drawing()
    check_budgets(epsilon, delta)
    check_numbers(epsilon[0], delta, quantile=quantile)
    wanted, source = asked(model, delta, checked_graph(graph), rounds, quantile, data, schema, label, group, clip,
                           parties, rows, features, best, skew, collusion)  # fmt: skip
    settings = wanted.settings
    compiled(PLAN)  # before anything is used that would compile one after the other
    with bars("fits", passing=True) as heard:
        found = forecast(source, epsilon, settings, seeds, partial(heard, "simulating"))
    if plot is not None:
        from confide.cli.plan_picture import picture

        picture(found, plot)
    if json:
        document = {**found.to_json(), "model": settings.model, "graph": graph, "latency_ms": latency,
                    "picture": None if plot is None else str(plot), **advice(found, wanted)}  # fmt: skip
        for one, seconds in zip(document["epsilons"], found.network_seconds(latency), strict=True):
            one["network_seconds"] = float(seconds)
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
    else:
        show(found, wanted, latency, plot)


def asked(
    model: str | None, delta: float, graph: str, rounds: int | None, quantile: float | None, data: Path | None,
    schema: Path | None, label: str | None, group: str | None, clip: bool, parties: int | None,
    sizes: list[int] | None, features: int | None, best: float | None, skew: float, collusion: int | None,
) -> tuple[Asked, Source]:  # fmt: skip
    """What is asked and where rows come from; everything is checked before the first fit."""
    from confide.estimators.fitting import CLASSIFIERS, FitOptions, check_model, usual
    from confide.planning.advice import Asked
    from confide.planning.rows import Generated, Own, shares, usual_best

    if data is None:
        refuse("is for your own rows, give --data FILE too",
               {"--schema": schema, "--label": label, "--group": group, "--clip": clip or None})  # fmt: skip
        model = "logistic" if model is None else model
        kind = "binary" if model in CLASSIFIERS else "real"
        check_model(model, kind, "generated")
        invented = Generated(
            shares(parties, sizes), features or 20, usual_best(kind) if best is None else best, skew, kind
        )
        source: Source = invented
        told: dict[str, Any] = {"sizes": invented.sizes, "features": invented.features}
    else:
        refuse("is for generated rows, leave it out with --data",
               {"--rows": sizes or None, "--features": features, "--best": best, "--skew": skew or None})  # fmt: skip
        if schema is None:
            raise ConfideError("--data: give --schema FILE too, the public schema of its columns")
        from confide.estimators.table import read_rows
        from confide.schema.chosen import agreed

        known, _ = agreed(schema, label, group)
        check_owner(known, parties)
        model = usual(known.label.kind) if model is None else model
        check_model(model, known.label.kind, known.label.name)
        source = Own(rows := read_rows(data, known, parties, alone=True))
        told = {"sizes": tuple(rows.sizes.tolist()), "features": rows.X.shape[1], "classes": rows.classes, "data": data,
                "schema": schema, "label": label, "group": group, "parties": parties}  # fmt: skip
    chosen = only(model, "quantile", quantile)
    return Asked(FitOptions(model, 1.0, delta, graph, rounds, collusion=collusion, quantile=chosen), **told), source


def refuse(why: str, options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value is not None:
            raise ConfideError(f"{option}: {why}")


# --- what came out ----------------------------------------------------------------------------------------------------


def show(found: Forecast, wanted: Asked, latency: float, plot: Path | None) -> None:
    """At most 80 columns per line but for paths, which stay whole."""
    from rich.console import Console
    from rich.markup import escape

    from confide.planning.plan import PRIVATE_ROWS

    console, settings = Console(highlight=False), wanted.settings
    if not found.for_release:
        console.print(f"[bold red]{PRIVATE_ROWS}[/]")
    for promise in found.trust:
        console.print(promise)
    console.print(
        f"[bold]{settings.model}[/], {len(found.names)} parties on a {settings.graph}, "
        f"{found.sizes.sum():,} rows to learn from, "
        f"δ={found.delta:g}\n{escape(found.source)}"
    )
    console.print(by_epsilon(found, latency))
    console.print(by_party(found))
    if found.seeds > 1:
        console.print(verdicts(found))
    spread = f"mean ± sd of {found.seeds} seeds" if found.seeds > 1 else "one seed, so no error bars"
    console.print(
        f"{found.metric} in %, {spread}, on rows not learned from; each party's own kind; unsure: within 2 "
        f"standard errors. Time: computing here plus {latency:g} ms per round. "
        f"Guarantee with secure noise: {escape(found.guarantee)}.\n"
        "[bold]This is a simulation: its noise is seeded and protects nobody.[/]"
    )
    if not found.for_release:
        console.print(f"[bold red]{PRIVATE_ROWS}[/]")
    if plot is not None:
        console.print(f"Picture: {plot}", soft_wrap=True, markup=False)
    show_advice(found, wanted, console)


def advice(found: Forecast, wanted: Asked) -> dict[str, Any]:
    """For whom it is worth it, and the commands that were forecast, for programs."""
    from confide.planning.advice import advised, commands, first_worth, worth

    epsilon = advised(found)
    return {"worth": worth(found), "worth_from": dict(zip(found.names, first_worth(found), strict=True)),
            "advised_epsilon": epsilon, "commands": commands(found, wanted, epsilon)}  # fmt: skip


def show_advice(found: Forecast, wanted: Asked, console: Any) -> None:
    """The same for people: one line, and commands to copy."""
    from confide.planning.advice import advised, commands, shell_lines, worth

    epsilon = advised(found)
    console.print(f"\n{worth(found)}", markup=False)
    said = commands(found, wanted, epsilon)
    whose = "by nodes, which hold a part of ε for restarts, or on one machine, where noise is a little less"
    console.print(f"What this forecasts at ε={epsilon:g}, {whose if 'federation' in said else 'on one machine'}:",
                  markup=False)  # fmt: skip
    for name, words in said.items():
        if name == "federation" and len(found.names) > PARTIES:
            console.print(f"The command for {len(found.names)} nodes is in --json.", markup=False)
        else:
            console.print(f"\n{shell_lines(words)}", soft_wrap=True, markup=False)


def frame(columns: list[str]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", no_wrap=True)
    return table


def bar_text(scores: Any, sign: str = "") -> str:
    from confide.planning.plan import sd

    spread = sd(scores)
    return f"{100 * scores.mean():{sign}.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


def by_epsilon(found: Forecast, latency: float) -> Any:
    table = frame(["ε", "together", "alone, private", "rounds", "kB sent", "time"])
    times = found.network_seconds(latency)
    for i, epsilon in enumerate(found.epsilons):
        table.add_row(f"{epsilon:g}", bar_text(found.average(found.joint[i])),
                      bar_text(found.average(found.alone_private[i])), f"{found.rounds[i]}",
                      f"{found.bytes_sent[i] / 1000:,.0f}", duration(times[i]))  # fmt: skip
    table.add_section()
    table.add_row("no noise", bar_text(found.average(found.free)), "", "", "", "")
    table.add_row("no noise, alone", bar_text(found.average(found.alone)), "", "", "", "")
    table.add_row("same answer for all", bar_text(found.average(found.constant)), "", "", "", "")
    return table


def by_party(found: Forecast) -> Any:
    """Points that joining adds over a party's own model without noise."""
    from rich.markup import escape

    last = len(found.epsilons) - 1
    shown = sorted({0, (last + 1) // 2, last}) if last >= SHOWN else range(last + 1)
    table = frame(["joining adds for", "rows", "alone", *(f"at ε={found.epsilons[i]:g}" for i in shown)])
    for k, name in enumerate(found.names[:PARTIES]):
        short = name if len(name) <= 16 else name[:15] + "…"
        table.add_row(escape(short), f"{found.sizes[k]:,}", bar_text(found.alone[:, k]),
                      *(bar_text(found.gain[i, :, k], "+") for i in shown))  # fmt: skip
    if len(found.names) > PARTIES:
        table.add_row(f"and {len(found.names) - PARTIES} more", "", "", *("" for _ in shown))
    return table


def verdicts(found: Forecast) -> Any:
    """How many parties the joint model leaves better off."""
    table = frame(["parties, at ε", "than alone, no noise", "than alone, same ε"])
    for i, epsilon in enumerate(found.epsilons):
        table.add_row(f"{epsilon:g}", counts(found.gain[i]), counts(found.private_gain[i]))
    return table


def counts(gain: Any) -> str:
    from confide.planning.advice import gains

    sign = gains(gain)
    return f"{(sign > 0).sum()} better, {(sign < 0).sum()} worse, {(sign == 0).sum()} unsure"


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
