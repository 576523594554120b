"""`confide fit`: a private joint model from one file in which every row names its party."""

from __future__ import annotations

import json as jsonlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.lines import more_than_useful
from confide.errors import ConfideError
from confide.network.named import GRAPHS, check_graph

if TYPE_CHECKING:
    from confide.estimators.fitting import FitOptions, Learned, PooledRows
    from confide.runs.model import Model
    from confide.schema.schema import Schema

MODELS = "logistic, svc, ridge, lasso, elastic-net, huber, quantile"
HERE = Path("model.json")


def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CSV with a header, or Parquet.")],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="The public schema of its columns.")],
    epsilon: Annotated[float, typer.Option(help="Total ε of every row.")],
    delta: Annotated[float, typer.Option(help="Total δ.")] = 1e-5,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="What to learn; else the schema's.")] = None,
    group: Annotated[str | None, typer.Option(metavar="COLUMN", help="The party; else the schema's.")] = None,
    parties: Annotated[
        int | None, typer.Option(min=1, help="Split rows evenly, if no column says whose; 1 holds all.")
    ] = None,
    collusion: Annotated[
        int | None, typer.Option(min=1, help="How many parties may collude.", show_default="fewer than half")
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"{MODELS}.", show_default="logistic; ridge for numbers")] = None,
    graph: Annotated[str, typer.Option(help=f"{', '.join(GRAPHS)}.")] = "ring",
    rounds: Annotated[int | None, typer.Option(min=1, help="Messages a party sends.", show_default="chosen")] = None,
    penalty: Annotated[float | None, typer.Option(help="Strength of the penalty.")] = None,
    quantile: Annotated[float | None, typer.Option(help="Of model quantile.", show_default="0.5")] = None,
    width: Annotated[float | None, typer.Option(help="Of model huber, in the label's unit.")] = None,
    algorithm: Annotated[str, typer.Option(help="auto, or a method of `confide algorithms`.")] = "auto",
    set: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Its parameter; repeat.")] = None,
    allow_unproven: Annotated[bool, typer.Option("--allow-unproven", help="Run what is not proven.")] = False,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="Charge this ledger first.")] = None,
    population: Annotated[str | None, typer.Option(metavar="NAME", help="Whose budget in the ledger pays.")] = None,
    budget: Annotated[float | None, typer.Option(help="Total ε of that population, set once.")] = None,
    clip: Annotated[bool, typer.Option("--clip", hidden=True, help="As the schema says, always.")] = False,
    evaluate: Annotated[
        float | None, typer.Option(help="Share of rows held out from learning, which pay for a score.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seeded noise: a simulation, protects nobody.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", metavar="FILE", help="The model, a new file.")
    ] = HERE,
    run: Annotated[Path | None, typer.Option(metavar="FILE", help="Also the run, for `confide report`.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Learn a private joint model from a file whose rows belong to several parties.

    Runs every party on this machine, with secure noise. The file must fit the schema: the first row that does not is
    refused by line and column, before any training. No score is printed, as one computed from these rows would be a
    release, unless --evaluate holds rows out to pay for it. What you set by --rounds or --algorithm is tried without
    noise on invented rows first, and a warning says if it ends far from the optimum. Ctrl-C leaves no file; what a
    ledger was charged stays charged.

    Example: confide fit data.csv --schema schema.toml --label income --group hospital --epsilon 1
    """
    from confide.cli.compile import compiled
    from confide.cli.progress import bars
    from confide.estimators.fitting import FitOptions, check_held_out, check_model, learn, usual
    from confide.estimators.funds import open_budget
    from confide.estimators.table import read_rows
    from confide.files import check_new
    from confide.planning.ahead import FIT, REHEARSAL
    from confide.schema.chosen import agreed
    from confide.schema.suggest import told_of_draft

    check_numbers(epsilon, delta, budget, evaluate, penalty, quantile, width)
    check_new(output, "--output")
    if run is not None:
        check_new(run, "--run")
        if run.absolute() == output.absolute():
            raise ConfideError(f"--run {run}: must be another file than --output")
    known, notes = agreed(schema, label, group)
    notes += told_of_draft(schema, output)
    check_owner(known, parties)
    kind = known.label.kind
    model = usual(kind) if model is None else model
    check_model(model, kind, known.label.name)
    width = only(model, "huber", width, "--width")
    settings = FitOptions(
        model, epsilon, delta, checked_graph(graph), rounds if algorithm == "auto" else None,
        method(algorithm, rounds, set or []), collusion, penalty, only(model, "quantile", quantile),
        None if width is None else width / known.label.half_range, seed, ledger, population, allow_unproven, evaluate,
    )  # fmt: skip
    check_budget(settings, budget)
    notes += filter(None, [more_than_useful(epsilon, delta)])
    rows = read_rows(data, known, parties)
    if evaluate:
        check_held_out(rows, evaluate, f"--evaluate {evaluate:g}")
    by_hand = algorithm != "auto" or rounds is not None
    compiled(REHEARSAL if by_hand else FIT)  # before anything is used that would compile one after the other
    import sklearn as _  # noqa: F401  # one line where it is not installed, before a ledger hears of this

    from confide.cli.rehearsed import tried
    from confide.planning.rehearsal import rehearsing

    if ledger is not None and population is not None:
        open_budget(ledger, population, budget, delta)
    with bars("rounds", passing=True) as heard:
        try:
            tries = rehearsing(partial(tried, heard=heard, auto=algorithm == "auto"), allow_unproven)
            learned = learn(rows, settings, partial(heard, "training"), tries if by_hand else None)
        except ConfideError as error:  # in the words of the command line
            raise type(error)(str(error).replace("allow_unproven=True", "--allow-unproven")) from None
    made = learned.model(known)
    if run is not None:
        learned.run(known).save(run)
    made.save(output)
    if json:
        typer.echo(jsonlib.dumps(document(made, learned, rows, output, run, notes), ensure_ascii=False, indent=2))
    else:
        show(made, learned, rows, output, run, notes)


# --- what was asked for -----------------------------------------------------------------------------------------------


def check_numbers(epsilon: float, delta: float, budget: float | None = None, evaluate: float | None = None,
                  penalty: float | None = None, quantile: float | None = None, width: float | None = None
                  ) -> None:  # fmt: skip
    """One line for what no rows can make possible, before any file is read."""
    from confide.estimators import limits
    from confide.privacy.budget import limit

    limit(epsilon, delta)  # one line for ε or δ out of range
    if budget is not None:
        limit(budget, delta)
    for check, option, value in (
        (limits.check_share, "--evaluate", evaluate), (limits.check_strength, "--penalty", penalty),
        (limits.check_quantile, "--quantile", quantile), (limits.check_width, "--width", width),
    ):  # fmt: skip
        if value is not None:
            check(value, f"{option} {value:g}")


def check_owner(schema: Schema, parties: int | None) -> None:
    """Either a column or --parties says whose a row is."""
    if schema.group is None and parties is None:
        raise ConfideError("no --group and no --parties: give --group COLUMN, or --parties N to split the rows evenly")
    if schema.group is not None and parties is not None:
        raise ConfideError(f"--parties: column {schema.group.name!r} says whose a row is, leave it out")


def checked_graph(graph: str) -> str:
    check_graph(graph, f"--graph {graph}")
    return graph


def only(model: str, owner: str, value: float | None, option: str = "--quantile") -> float | None:
    if value is not None and model != owner:
        raise ConfideError(f"{option} with --model {model}: is for --model {owner}")
    return value


def method(name: str, rounds: int | None, settings: list[str]) -> Any:
    """ "auto", or a method with its parameters; its noise is calibrated later."""
    if name == "auto":
        if settings:
            raise ConfideError("--set: is for a method named by --algorithm, auto chooses its own")
        return name
    from dataclasses import fields

    from confide.algorithms.catalogue import method_class
    from confide.cli.federation import parameters
    from confide.files.parts import from_table

    kind: Any = method_class(name, "--algorithm")
    given = {**parameters(settings), **({} if rounds is None else {"rounds": rounds})}
    names = [f.name for f in fields(kind)]
    if unknown := [key for key in given if key not in names]:
        raise ConfideError(f"--set {unknown[0]}: must be a parameter of {name}: {', '.join(names)}")
    return from_table({**given, "name": kind.__name__}, "--algorithm", (kind,))


def check_budget(settings: FitOptions, budget: float | None) -> None:
    """What can be said about the ledger before a row is read."""
    if settings.ledger is None:
        for option, value in (("--population", settings.population), ("--budget", budget)):
            if value is not None:
                raise ConfideError(f"{option}: is for a ledger, give --ledger FILE too")
        return
    if settings.seed is not None:
        raise ConfideError("--seed: a ledger pays for secure noise only, leave out one of them")
    if settings.population is None:
        raise ConfideError("--ledger: give --population, your own name for the people in the data")
    if not settings.ledger.exists() and budget is None:
        raise ConfideError(f"--ledger {settings.ledger}: no such file; --budget E makes it and sets the total")


# --- what came out ----------------------------------------------------------------------------------------------------


def document(model: Model, learned: Learned, rows: PooledRows, out: Path, run: Path | None, notes: list[str]
             ) -> dict[str, Any]:  # fmt: skip
    table = model.to_dict()
    return {
        "model": str(out), "run": None if run is None else str(run), "notes": notes,
        "parties": dict(zip(rows.names, rows.sizes.tolist(), strict=True)), "rows": len(rows.y),
        "features": len(model.features), "estimator": model.origin["estimator"],
        "simulated": model.origin["simulated"], "privacy": table["privacy"], "trust": trust(learned),
        "why": learned.estimator.choice_, "bytes_sent": learned.bytes_sent,
        "seconds": learned.seconds, "evaluation": evaluation(learned),
    }  # fmt: skip


def evaluation(learned: Learned) -> dict[str, Any] | None:
    """What held-out rows paid for: each score with its interval."""
    found = getattr(learned.estimator, "evaluation_", None)
    if found is None:
        return None
    scores = {name: {"value": one.value, "low": one.low, "high": one.high} for name, one in found.found.items()}
    return {"rows": found.rows, "epsilon": found.epsilon, "delta": found.delta, "scores": scores}


def trust(learned: Learned) -> str | None:
    """Whom the parties must trust, in one line; None where nobody."""
    spent = learned.spent
    return None if spent.trust is None else str(spent.trust.line(spent.spent))


def show(model: Model, learned: Learned, rows: PooledRows, out: Path, run: Path | None, notes: list[str]) -> None:
    """At most 80 columns per line but for paths, which stay whole."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    spent, paid, console = learned.spent, model.privacy, Console(highlight=False)
    simulated = bool(model.origin["simulated"])
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    label = model.schema.label.name if model.schema is not None else ""
    promise, scores = trust(learned), getattr(learned.estimator, "evaluation_", None)
    lines = [
        *([] if promise is None else [("trust", promise)]),
        ("model", f"{model.origin['estimator']} of {label!r} on {len(model.features)} features"),
        *(("note", note) for note in notes),
        ("parties", "; ".join(f"{n} {size:,}" for n, size in zip(rows.names, rows.sizes, strict=True))),
        ("rows", f"{len(rows.y):,}"),
        ("method", f"{spent.method}, {len(rows.names)} part{'y' if len(rows.names) == 1 else 'ies'}, "
                   f"{spent.rounds} rounds"),
        ("why", learned.estimator.choice_),
        ("sent", f"{learned.bytes_sent / 1000:,.0f} kB in {learned.seconds:.1f} s"),
        ("ε spent", "no bound: nothing is protected" if paid.epsilon is None else
                    f"{paid.epsilon:.4g} at δ={paid.delta:g}, each row (exact {paid.exact_epsilon:.4g})"
                    + (", if the noise were secure" if simulated else "")),
        ("guarantee", str(spent.guarantee)),
        *([] if scores is None else [("evaluation", str(scores))]),
        *(("not covered" if i == 0 else "", text) for i, text in enumerate(learned.not_covered)),
    ]  # fmt: skip
    for name, text in lines:
        table.add_row(name, escape(text))
    console.print(table)
    if simulated:
        console.print("[bold yellow]A simulation: its noise is seeded and protects nobody. Do not release it.[/]")
    console.print(f"\nThe model is in {out}" + (f", the run in {run}" if run is not None else ""), soft_wrap=True,
                  markup=False)  # fmt: skip
