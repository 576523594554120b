"""`confide federation evaluate`: how good a model is, by one private sum over rows that were set aside."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from confide.cli.lines import folded
from confide.cli.node_options import HERE, Home, Json, needed
from confide.errors import ConfideError


def evaluate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The federation of the parties that evaluate.")],
    model: Annotated[Path, typer.Option(metavar="FILE", help="The model, as `confide node model` writes it.")],
    rows: Annotated[list[str], typer.Option(metavar="NAME=N", help="A party's number of held-out rows; repeat.")],
    epsilon: Annotated[float, typer.Option(min=0.0, help="What each held-out row pays at most.")],
    delta: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="δ of that.", show_default="as in FILE")] = None,
    collusion: Annotated[
        int | None, typer.Option(min=1, help="How many may pool what they know.", show_default="as in FILE")
    ] = None,
    restarts: Annotated[int, typer.Option(min=0, help="Times that a crash may make a party pay again.")] = 0,
    home: Home = HERE,
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where it goes.")] = Path("evaluation.toml"),
    json: Json = False,
) -> None:
    """Write evaluation.toml: the same parties say how good a public model is.

    Each counts, on rows that it set aside before training, what the model's answers are worth; one private sum adds
    the counts up, with noise: accuracy, AUC and confusion for two classes, accuracy and confusion for more, the pinball
    loss or absolute error of a number. Members, links, schema and collusion are those of FILE, with the amendments that
    --home knows. The model is in the new file, so that its hash stands for it. Everyone reviews and signs it and runs
    it as any federation; `confide node run` ends with the result, and `confide report` shows it as paid for. No
    software can know whether a row was learned from: that they were set aside is each party's word.

    Example: confide federation evaluate federation.toml --model model.json --rows a=100 --rows b=80 --epsilon 1
    """
    needed()
    from confide.estimators.evaluating import SCORES
    from confide.files import check_new, write_whole
    from confide.network.identity import CARD
    from confide.node import federation as federations
    from confide.node.agreement import Papers
    from confide.node.caps import promise
    from confide.node.founding import new_evaluation
    from confide.runs.model import Model

    check_new(output, "--output")
    learned = federations.load(file)
    if (home / CARD).exists():
        learned = Papers.of(home, learned).current
    public = Model.load(model)
    given = 1e-5 if learned.delta is None else learned.delta
    try:
        found, text = new_evaluation(
            learned, public, held_out(rows), {"epsilon": epsilon, "delta": given if delta is None else delta}, SCORES,
            collusion=collusion, restarts=restarts,
        )  # fmt: skip
    except ConfideError as error:
        raise ConfideError(f"{file} and {model}: {error}") from None
    write_whole(output, text.encode(), new=True)
    n, method = sum(found.sizes.values()), found.algorithm
    said: dict[str, Any] = {"federation": str(output), "hash": found.digest.hex(), "guarantee": str(found.guarantee),
            "algorithm": method.name, "rounds": method.rounds, "rows": n, "promise": promise(found)}  # fmt: skip
    if json:
        typer.echo(jsonlib.dumps(said, ensure_ascii=False, indent=2))
        return
    cap = f"at most ε={found.epsilon:g} at δ={found.delta:g} each"
    typer.echo(folded(f"{output}: {len(found.parties)} parties, {n:,} held-out rows, 1 round of {method.name}, {cap}"))
    told = (loudness(found), said["promise"], f"guarantee {found.guarantee}", f"hash {said['hash']}")
    for line in filter(None, told):
        typer.echo(folded(line))


def loudness(found: Any) -> str:
    """How much the noise will move what is counted: public, and good to know before anything is paid."""
    from confide.node.founding import evaluation_noise

    about = f"{evaluation_noise(found):.2g}"
    if found.evaluation.classes is None:
        return f"the noise moves the mean loss by about {about} of half the label's range"
    return f"the noise moves each count by about {about} rows"


def held_out(texts: list[str]) -> dict[str, int]:
    """NAME=N, each name once."""
    out: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not (number.isascii() and number.isdigit()):
            raise ConfideError(f"--rows {text}: must be NAME=N, such as mercy=100")
        if name in out:
            raise ConfideError(f"--rows {text}: {name} is there twice")
        out[name] = int(number)
    return out
