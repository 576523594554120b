"""`confide audit`: calibrate a method, attack it, and compare what the attack proves with what is claimed."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confide.cli.demo import writable

if TYPE_CHECKING:
    from confide.audit import AuditResult


def audit(
    algorithm: Annotated[str, typer.Argument(help="A private method of `confide algorithms`.")],
    loss: Annotated[str | None, typer.Option(help="Such as logistic or squared.", show_default="one it takes")] = None,
    epsilon: Annotated[float, typer.Option(help="Total ε the method is calibrated to.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Total δ.")] = 1e-5,
    rounds: Annotated[int, typer.Option(help="Rounds of the method.")] = 10,
    repetitions: Annotated[int, typer.Option(help="Runs on each of the two data sets in the final test.")] = 4000,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of all noise.")] = 0,
    rows: Annotated[int, typer.Option(help="Rows of the target.")] = 5,
    canary: Annotated[
        str | None, typer.Option(help='One pair of rows alone, such as "zero row".', show_default="the whole family")
    ] = None,
    adversary: Annotated[
        str | None, typer.Option(help='One way to lie alone, such as "near 2^52".', show_default="every one")
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="As published: c1=1 assumed; PDML's noise.")] = False,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where result and picture go.")] = Path("audit"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Attack a method's privacy claim.

    Calibrates the method to a total (ε, δ), tries pairs of data sets that differ in one row against neighbours who lie,
    runs the most promising of them thousands of times, and derives a lower bound on ε from how well messages tell the
    two data sets apart. Exit code 0: not contradicted; 1: refuted; 2: bad input. An audit never confirms, and its
    output says what it could not have seen. At confidence 95 % a tight claim that holds is refuted one time in twenty,
    so repeat a narrow refutation with another --seed. Many repetitions and few rounds show small mistakes.

    Example: confide audit CDPADMM --loss squared --epsilon 4 --rounds 3
    """
    writable(output)
    from confide.audit import attack
    from confide.audit.engine import check
    from confide.audit.prepare import cases, prepare_all

    check(epsilon, delta, None, repetitions, confidence, seed)
    jobs = prepare_all(algorithm, loss, epsilon, delta, rounds, published, rows)
    result = attack(cases(jobs, canary, adversary), delta=delta, repetitions=repetitions, confidence=confidence,
                    seed=seed, progress=True)  # fmt: skip
    saved = result.save(output / f"{algorithm}.json")
    try:
        picture = str(result.draw(output / f"{algorithm}.png"))
    except ImportError as missing:  # the verdict is worth showing without it
        picture = f"no picture: {missing}"
    show(result, str(saved), picture, json)
    raise typer.Exit(int(result.refuted))


def show(result: AuditResult, saved: str, picture: str, json: bool) -> None:
    """The verdict, or all but the scores as JSON."""
    if json:
        document = {**result.to_json(), "result": saved, "picture": picture}
        del document["scores"]
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
    else:
        typer.echo(f"{result}\n  {saved}, {picture}")
