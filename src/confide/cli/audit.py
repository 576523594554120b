"""`confide audit`: calibrate a method, attack it, and compare what the attack proves with what is claimed."""

from __future__ import annotations

import json as jsonlib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from confide.cli.demo import writable

if TYPE_CHECKING:
    from confide.algorithms import Algorithm
    from confide.audit import AuditResult, Canary
    from confide.problem.losses import Loss

LOSSES = (
    "absolute", "hinge", "huber", "logistic", "multinomial", "noisy-labels", "quantile", "smoothed-hinge", "squared",
    "squared-hinge",
)  # fmt: skip
CLIP = 0.1  # small, so that the canary's gradient is clipped whatever the loss
RELEASE_NOISE = 1e-3  # covers the solver's residual; costs next to nothing


class Job(NamedTuple):
    """A method with its noise set, the canary, and the claim in plain numbers."""

    method: Algorithm
    canary: Canary
    epsilon: float
    mu: float | None


def audit(
    algorithm: Annotated[str, typer.Argument(help="A private method of `confide algorithms`.")],
    loss: Annotated[str | None, typer.Option(help=f"One of {', '.join(LOSSES)}.", show_default="one it takes")] = None,
    epsilon: Annotated[float, typer.Option(help="Total ε the method is calibrated to.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Total δ.")] = 1e-5,
    rounds: Annotated[int, typer.Option(help="Rounds of the method.")] = 10,
    repetitions: Annotated[int, typer.Option(help="Runs on each of the two data sets in the final test.")] = 4000,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of all noise.")] = 0,
    published: Annotated[bool, typer.Option("--published", help="As published: c1=1 assumed; PDML's noise.")] = False,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where result and picture go.")] = Path("audit"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Attack a method's privacy claim.

    Calibrates the method to a total (ε, δ), runs it thousands of times on two data sets that differ in one row, and
    derives a lower bound on ε from how well its messages tell them apart. Exit code 0: not contradicted; 1: refuted;
    2: bad input. An audit never confirms; at confidence 95 % a tight claim that holds is refuted one time in twenty, so
    repeat a narrow refutation with another --seed. Many repetitions and few rounds show small mistakes.

    Example: confide audit CDPADMM --loss squared --epsilon 4 --rounds 3
    """
    writable(output)
    from confide.audit import run
    from confide.audit.engine import check

    check(epsilon, delta, None, repetitions, confidence, seed)
    job = prepare(algorithm, loss, epsilon, delta, rounds, published)
    result = run(job.method, job.canary, epsilon=job.epsilon, delta=delta, mu=job.mu, repetitions=repetitions,
                 confidence=confidence, seed=seed, progress=True)  # fmt: skip
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


def prepare(algorithm: str, loss: str | None, epsilon: float, delta: float, rounds: int, published: bool) -> Job:
    """The method calibrated to (epsilon, delta), its worst case, and what it claims."""
    from confide.algorithms import REGISTRY

    if algorithm not in REGISTRY:
        raise ValueError(f"unknown method {algorithm!r}: known are {', '.join(REGISTRY)}")
    kind = REGISTRY[algorithm]
    if algorithm == "DZOA":
        return d_zoa(named(loss or "absolute"), epsilon, delta, rounds)
    if not hasattr(kind, "calibrated"):
        raise ValueError(f"{algorithm} claims no privacy: there is nothing to audit")
    if published:
        return as_published(kind, loss, epsilon, delta, rounds)
    from confide.audit import worst_case

    names = {f.name for f in fields(kind)}
    settings: dict[str, Any] = {"rounds": rounds}
    if "clip" in names and algorithm not in ("PVP", "PDML"):  # these two minimise the loss as it is
        settings["clip"] = CLIP
    if "release_noise" in names:
        settings["release_noise"] = RELEASE_NOISE
    if "directions" in names:
        settings["directions"] = 1  # or the mean over directions would hide what was released
    method: Any = kind(**settings)
    canary = worst_case(named(loss or usual(kind)), method, penalty=ridge(algorithm))
    method = method.calibrated(canary.public(method), epsilon, delta)
    return Job(method, canary, *claim(method, canary, delta))


def claim(method: Any, canary: Canary, delta: float) -> tuple[float, float | None]:
    """What the accountant says of the target's events: ε at `delta`, and μ if they are all Gaussian."""
    from itertools import chain

    import numpy as np

    from confide import privacy

    events = list(chain.from_iterable(method.events(canary.public(method))))
    gaussian = all(isinstance(event, privacy.Gaussian | privacy.Free) for event in events)
    total = float(np.max(privacy.epsilon(events, delta)))
    return total, float(np.max(privacy.mu(events))) if gaussian else None


def d_zoa(loss: Loss, epsilon: float, delta: float, rounds: int) -> Job:
    """As many directions as (22) and (25) of its paper ask for, and the total they claim."""
    from confide.algorithms import DZOA
    from confide.audit import worst_case
    from confide.privacy import published

    rows = 20  # N_k of the paper
    method = DZOA(rounds=rounds)
    canary = worst_case(loss, method, rows=rows, target=1.0)
    setting = published.DZOASetting(
        1.0, float(method.penalty), int(canary.graph.degrees[0]), rows, canary.one.width, method.inner_steps,
        method.radius, method.step,
    )  # fmt: skip
    share = epsilon / float(published.d_zoa_total(1.0, rounds, delta).epsilon)
    method = replace(method, directions=published.d_zoa_directions(setting, share, delta))
    once = float(published.d_zoa_iteration(setting, method.directions, delta).epsilon)
    return Job(method, canary, float(published.d_zoa_total(once, rounds, delta).epsilon), None)


def as_published(kind: type[Any], loss: str | None, epsilon: float, delta: float, rounds: int) -> Job:
    """Rows of any length under an assumed bound c1 = 1; for PDML the noise of its Table I, against the ε given."""
    from confide.algorithms.base import GaussianMethod
    from confide.audit import worst_case
    from confide.network.graph import Graph
    from confide.problem.penalties import L2

    if kind.__name__ == "PDML":
        method = kind(rounds=rounds, objective_noise=1.0, noise=1.0)  # η_i within R = 1, V = 1, decay 0.8
        canary = worst_case(
            named("noisy-labels"), method, contrast="blank", rows=70, length=2.0, penalty=L2(1.0),
            graph=Graph.random(10, 13, seed=0), heard=(20.0, -20.0),
        )  # fmt: skip  # German: 700 training rows, 10 servers, 13 links, a = 1
        return Job(method, canary, epsilon, None)
    if not issubclass(kind, GaussianMethod) or kind.__name__ in ("PVP", "PrivateZeroth", "PrivatePDML"):
        raise ValueError(f"{kind.__name__} has no published form that differs: leave out --published")
    method = kind(rounds=rounds, assumed_bound=1.0)
    canary = worst_case(named(loss or "squared"), method, target=10.0)  # gradients reach 10 to 80 times c1
    method = method.calibrated(canary.public(method), epsilon, delta)
    return Job(method, canary, *claim(method, canary, delta))


def named(loss: str) -> Loss:
    """A loss by its name on the command line."""
    from confide.problem import losses

    made = {
        "absolute": losses.Absolute, "hinge": losses.Hinge, "huber": losses.Huber, "logistic": losses.Logistic,
        "multinomial": losses.Multinomial, "quantile": losses.Quantile, "smoothed-hinge": losses.SmoothedHinge,
        "noisy-labels": lambda: losses.NoisyLabels(losses.Logistic(), 1.0), "squared": losses.Squared,
        "squared-hinge": losses.SquaredHinge,
    }  # fmt: skip
    if loss not in made:
        raise ValueError(f"unknown loss {loss!r}: known are {', '.join(LOSSES)}")
    return made[loss]()


def usual(kind: type[Algorithm]) -> str:
    """A loss that suits the method."""
    if kind.__name__ in ("PDML", "PrivatePDML"):
        return "noisy-labels"
    return {"smooth loss": "logistic"}.get(kind.needs, "absolute" if kind.__name__ == "PVP" else "squared")


def ridge(algorithm: str) -> Any:
    """PDML's corrected loss has no minimum without one."""
    from confide.problem.penalties import L2

    return L2(1.0) if algorithm == "PDML" else None
