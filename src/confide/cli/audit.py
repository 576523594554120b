"""`confide audit`: calibrate a method, attack it, and compare what the attack proves with what is claimed."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.demo import writable
from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.audit import AuditResult, CoalitionAudit


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
    colluders: Annotated[
        str | None,
        typer.Option(
            metavar="J",
            help="Of a private sum: so many colluders, such as 2 or 0,2, or all.",
            show_default="as many as its noise is made for",
        ),
    ] = None,
    parties: Annotated[int | None, typer.Option(help="Of a private sum.", show_default="5")] = None,
    collusion: Annotated[
        int | None, typer.Option(help="Colluders that a private sum is made for.", show_default="an honest majority")
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

    A method on private sums (JointDescent, JointMoment, JointTally) is attacked by outsiders and --colluders of its
    --parties, who pool all they know and subtract it from every sum. Each number of colluders has a claim of its own;
    --colluders all tests every one of them, at one confidence for all together.

    Example: confide audit CDPADMM --loss squared --epsilon 4 --rounds 3

    Example: confide audit JointDescent --colluders all --rounds 3
    """
    writable(output)
    from confide.audit import attack, attack_coalitions
    from confide.audit.engine import check
    from confide.audit.prepare import PARTIES, cases, coalitions, is_summed, prepare_all

    check(epsilon, delta, None, repetitions, confidence, seed)
    how: Any = {"delta": delta, "repetitions": repetitions, "confidence": confidence, "seed": seed, "progress": True}
    result: AuditResult | CoalitionAudit
    if is_summed(algorithm) or not (colluders is None and parties is None and collusion is None):
        if published:
            raise ConfideError(f"{algorithm} has no published form that differs: leave out --published")
        groups = coalitions(algorithm, loss, epsilon, delta, rounds, rows=rows, collusion=collusion,
                            parties=PARTIES if parties is None else parties, colluders=colluders)  # fmt: skip
        asked = {j: cases(jobs, canary, adversary) for j, jobs in groups.items()}
        result = attack_coalitions(asked, **how) if len(asked) > 1 else attack(next(iter(asked.values())), **how)
    else:
        jobs = prepare_all(algorithm, loss, epsilon, delta, rounds, published, rows)
        result = attack(cases(jobs, canary, adversary), **how)
    saved = result.save(output / f"{algorithm}.json")
    try:
        picture = str(result.draw(output / f"{algorithm}.png"))
    except ImportError as missing:  # the verdict is worth showing without it
        picture = f"no picture: {missing}"
    show(result, str(saved), picture, json)
    raise typer.Exit(int(result.refuted))


def show(result: AuditResult | CoalitionAudit, saved: str, picture: str, json: bool) -> None:
    """The verdict, or all but the scores as JSON."""
    if json:
        document = {**result.to_json(), "result": saved, "picture": picture}
        document.pop("scores", None)
        typer.echo(jsonlib.dumps(document, ensure_ascii=False, indent=2))
    else:
        typer.echo(f"{result}\n  {saved}, {picture}")
