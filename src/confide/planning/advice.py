"""What to do with a forecast: for whom it is worth it, from which ε, and the commands that were forecast."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from confide.estimators.fitting import Array, FitOptions
from confide.planning.plan import Forecast, nodes_learn

# How nodes are told what `--model` means; a strength is the estimator's own where none is given.
LOSSES = {
    "logistic": "Logistic", "svc": "SmoothedHinge:width=1.0", "ridge": "Squared", "lasso": "Squared",
    "elastic-net": "Squared", "huber": "Huber:width={width:g}", "quantile": "Quantile:level={quantile:g}",
}  # fmt: skip
PENALTIES = {"lasso": "L1:strength=0.001", "elastic-net": "ElasticNet:strength=0.001,ratio=0.5"}


@dataclass(frozen=True)
class Asked:
    """What was forecast, as commands name it: files of own rows, or the number of features of invented ones."""

    settings: FitOptions
    sizes: tuple[int, ...]  # every row of each party, also those that a forecast holds out
    features: int
    classes: int = 2
    data: Path | None = None
    schema: Path | None = None
    label: str | None = None
    group: str | None = None
    parties: int | None = None


def gains(gain: Array) -> Any:
    """For each party: 1 where joining helps, -1 where it harms, 0 where the seeds do not tell; gain: (S, K)."""
    mean = gain.mean(axis=0)
    error = 2 * gain.std(axis=0, ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else np.zeros_like(mean)
    return np.where(mean > error, 1, np.where(mean < -error, -1, 0))


def first_worth(found: Forecast) -> list[float | None]:
    """The least ε tried at which, and at all larger ones, joining helps; None if there is none: one per party."""
    helped = np.array([gains(now) > 0 for now in found.gain])  # (E, K)
    steady = np.flip(np.logical_and.accumulate(np.flip(helped, 0), axis=0), 0)
    return [found.epsilons[int(one.argmax())] if one.any() else None for one in steady.T]


def worth(found: Forecast) -> str:
    """In one sentence, over a model of one's own without noise."""
    least = first_worth(found)
    sure = "" if found.seeds > 1 else " (one seed: not sure)"
    if not any(least):
        tried = "any of these ε" if len(found.epsilons) > 1 else f"ε={found.epsilons[0]:g}"
        return f"Joining is worth it for no party at {tried}{sure}."
    values = [e for e in found.epsilons if e in least]
    parts = [f"from ε={e:g} for {listed(found, [one == e for one in least])}" for e in values]
    if any(one is None for one in least):
        tried = "none of these ε" if len(found.epsilons) > 1 else f"not ε={found.epsilons[0]:g}"
        parts.append(f"at {tried} for {listed(found, [one is None for one in least])}".replace("at not", "not at"))
    return f"Joining is worth it {'; '.join(parts)}{sure}."


def listed(found: Forecast, chosen: Sequence[bool], most: int = 6) -> str:
    names = [name for name, one in zip(found.names, chosen, strict=True) if one]
    if len(names) == len(found.names):
        return "every party"
    return ", ".join(names) if len(names) <= most else f"{len(names)} of {len(found.names)} parties"


def advised(found: Forecast) -> float:
    """The least ε that helps as many parties as any does; the largest tried where none helps."""
    helped = [int((gains(now) > 0).sum()) for now in found.gain]
    return found.epsilons[int(np.argmax(helped))] if max(helped) else found.epsilons[-1]


def commands(found: Forecast, asked: Asked, epsilon: float) -> dict[str, list[str]]:
    """`federation new`, where nodes can learn that model, and `fit`, as words of a command line each."""
    out = {"fit": fit(asked, epsilon)}
    if nodes_learn(asked.settings.model, asked.classes):
        out = {"federation": federation(found, asked, epsilon), **out}
    return out


def federation(found: Forecast, asked: Asked, epsilon: float) -> list[str]:
    s = asked.settings
    words = ["confide", "federation", "new"]
    for name, rows in zip(found.names, asked.sizes, strict=True):
        words += ["--party", f"{name.replace(' ', '-')}.toml={rows}"]
    words += ["--features", f"{asked.features}"] if asked.schema is None else ["--schema", f"{asked.schema}"]
    words += ["--epsilon", f"{epsilon:g}", "--delta", f"{s.delta:g}", "--graph", s.graph]
    given = LOSSES[s.model].format(width=0.25 if s.width is None else s.width, quantile=s.quantile or 0.5)
    if given != "Logistic" and (given != "Squared" or asked.schema is None):  # else it follows from the label
        words += ["--loss", given]
    if s.model in PENALTIES:
        words += ["--penalty", PENALTIES[s.model]]
    for name, value in (("rounds", s.rounds), ("collusion", s.collusion)):
        if value is not None:
            words += ["--set", f"{name}={value}"]
    return words


def fit(asked: Asked, epsilon: float) -> list[str]:
    s = asked.settings
    words = ["confide", "fit", f"{asked.data or 'data.csv'}", "--schema", f"{asked.schema or 'schema.toml'}"]
    for option, value in (("--label", asked.label), ("--group", "party" if asked.data is None else asked.group),
                          ("--parties", asked.parties if asked.data is not None else None)):  # fmt: skip
        words += [] if value is None else [option, f"{value}"]
    words += ["--epsilon", f"{epsilon:g}", "--delta", f"{s.delta:g}", "--graph", s.graph, "--model", s.model]
    for option, number in (("--quantile", s.quantile), ("--rounds", s.rounds), ("--collusion", s.collusion)):
        words += [] if number is None else [option, f"{number:g}"]
    return words


def shell_lines(words: Sequence[str], width: int = 78) -> str:
    """A command over several lines that a shell reads as one; an option stays with its value."""
    parts: list[str] = []
    for word in map(shlex.quote, words):
        if parts and parts[-1].startswith("--") and " " not in parts[-1]:
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) > width - 2:
            lines.append(f"    {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)
