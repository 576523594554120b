"""Each user an ε of their own: κ_j = coth(ε_j/2) per row, a weighting with less variance, and where it is not valid.

Section III-A lets users control their labels' privacy; the paper's loss (19) has one ε. With κ_j per row the correction
stays unbiased whatever ε_j depends on. Weighting a row's loss by tanh²(ε_j/2), the inverse of the variance of κ_j
y'_j up to 1, gives less variance, and is valid only where ε_j is independent of (x, y). "Smallest" is what one common
ε would ask for: everybody randomises with the smallest ε.

Synthetic: 10 servers with 400 users, 5 features and a constant, ε_j in {0.5, 3}; "by label" lets those labelled +1
choose 0.5, which also tells their label: ε_j must be fixed before the label is read. Labels are drawn anew in every
trial, rows are not. Oracles: the gradient at 0 is -½ mean(κ_j y'_j x_j), of mean -½ mean(y_j x_j) and total variance
Σ w_j²(κ_j² - 1)‖x_j‖²/(4(Σw_j)²).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide import Graph, Problem, Shards, losses, penalties, simulate
from confide.algorithms import PDML
from confide.papers.reproduce import Finding, Results, Trials, number, own
from confide.privacy import randomize_labels

title = "An ε for every user"
trials = Trials(published=None, full=400, quick=100)
data = ()

SERVERS, USERS, FEATURES, BATCH = 10, 400, 6, 50
LOW, HIGH, STRENGTH = 0.5, 3.0, 0.1
REPORTS = 1 << 20  # seeds of the reports, apart from those of the rows
WORLDS = ("independent", "by label")
SCHEMES = ("smallest", "own", "weighted")


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"world": w, "scheme": s, "first": first, "count": min(BATCH, trials - first)}
            for first in range(0, trials, BATCH) for w in WORLDS for s in SCHEMES]  # fmt: skip


def people(world: str) -> tuple[Any, Any, Any]:
    """Rows, true labels and every user's ε."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(SERVERS * USERS, FEATURES - 1)), np.ones(SERVERS * USERS)])
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0, 0.5, 0.5] + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    shy = rng.random(len(X)) < 0.5 if world == "independent" else y > 0
    return X, y, np.where(shy, LOW, HIGH)


def pose(world: str, scheme: str, seed: int | None) -> Problem:
    """The servers' problem after users reported; with seed=None the true labels."""
    X, y, epsilon = people(world)
    used = np.full(len(y), LOW) if scheme == "smallest" else epsilon
    columns = {"epsilon": used}
    if scheme == "weighted":
        weight = np.tanh(used / 2) ** 2
        columns["weight"] = weight / weight.mean()
    if seed is None:
        loss: losses.Loss = losses.Logistic()
        columns = {}
    else:
        loss, y = losses.NoisyLabels(losses.Logistic(), epsilon_min=LOW), randomize_labels(y, used, seed=REPORTS + seed)
    return Problem(Shards.from_groups(X, y, np.arange(len(y)) % SERVERS, columns), loss, penalties.L2(STRENGTH))


def measure(world: str, scheme: str, first: int, count: int) -> dict[str, Any]:
    problems = [pose(world, scheme, seed) for seed in range(first, first + count)]
    zero = np.zeros((1, 1, FEATURES))
    slopes = np.array([p.pooled.gradient(zero)[0, 0] / SERVERS for p in problems])
    reached = simulate(problems[0], Graph.ring(SERVERS), PDML(rounds=400, coupling=0.05), record=()).estimates
    return {"slope": slopes, "model": np.array([p.solve() for p in problems]),
            "apart": float(np.abs(reached - problems[0].solve()).max())}  # fmt: skip


def expected(world: str, scheme: str) -> tuple[Any, float]:
    """Mean and total variance of the gradient at 0, in closed form."""
    X, y, epsilon = people(world)
    used = np.full(len(y), LOW) if scheme == "smallest" else epsilon
    w = np.tanh(used / 2) ** 2 if scheme == "weighted" else np.ones(len(y))
    spread = (w**2 * (1 / np.tanh(used / 2) ** 2 - 1)) @ np.sum(X**2, axis=1)
    return -0.5 * (w * y) @ X / w.sum(), float(spread / (4 * w.sum() ** 2))


def errors(results: Results, world: str, scheme: str) -> tuple[float, float]:
    """Root mean square distance of the model from that of the true labels, and the gradient's relative bias at 0."""
    best, found = pose(world, "own", None).solve(), results.stack("model", world=world, scheme=scheme)
    X, y, _ = people(world)
    true, mean = -0.5 * y @ X / len(y), results.stack("slope", world=world, scheme=scheme).mean(axis=0)
    error = np.sqrt(np.mean(np.sum((found - best) ** 2, axis=1)))
    return float(error), float(np.linalg.norm(mean - true) / np.linalg.norm(true))


def table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for world in WORLDS:
        for scheme in SCHEMES:
            slopes = results.stack("slope", world=world, scheme=scheme)
            total, bias = errors(results, world, scheme)
            rows.append({"world": world, "scheme": scheme, "error": total, "bias": bias,
                         "variance": slopes.var(axis=0, ddof=1).sum(), "closed_form": expected(world, scheme)[1],
                         "worst_z": z_score(results, world, scheme)})  # fmt: skip
    return rows


def z_score(results: Results, world: str, scheme: str) -> float:
    """The gradient's largest distance from that of the *true* labels, in standard errors."""
    X, y, _ = people(world)
    slopes = results.stack("slope", world=world, scheme=scheme)
    sem = slopes.std(axis=0, ddof=1) / np.sqrt(len(slopes))
    return float(np.max(np.abs(slopes.mean(axis=0) + 0.5 * y @ X / len(y)) / sem))


def findings(results: Results) -> list[Finding]:
    out = [number(f"total variance of the gradient at 0, {scheme} (closed form beside measured)",
                  expected("independent", scheme)[1],
                  results.stack("slope", world="independent", scheme=scheme).var(axis=0, ddof=1).sum(), 0.2,
                  why="the variance of so few trials", ours=True) for scheme in SCHEMES]  # fmt: skip
    error = {(w, s): errors(results, w, s) for w in WORLDS for s in SCHEMES}
    first, second = WORLDS
    X, y, _ = people(second)
    true = -0.5 * y @ X / len(y)
    wrong = float(np.linalg.norm(expected(second, "weighted")[0] - true) / np.linalg.norm(true))
    largest = max(z_score(results, w, "own") for w in WORLDS)
    return [
        *out,
        own("κ_j a row is unbiased, also where ε_j depends on the label",
              f"at most {largest:.1f} standard errors off", largest < 4),
        own("own ε_j beats the smallest for all, weighting beats both, where ε_j is independent",
              ", ".join(f"{s}: {error[first, s][0]:.3f}" for s in SCHEMES),
              error[first, "weighted"][0] < error[first, "own"][0] < error[first, "smallest"][0]),
        number("weighting is biased where ε_j depends on the label: relative bias at 0 (closed form beside measured)",
               wrong, error[second, "weighted"][1], 0.1, ours=True),
        own("there κ_j a row has less than a third of the weighting's bias",
              f"bias {error[second, 'own'][1]:.3f} against {error[second, 'weighted'][1]:.3f}",
              error[second, "own"][1] < 0.3 * error[second, "weighted"][1]),
        own("PDML reaches the optimum with any of them",
              f"within {max(v['apart'] for _, v in results):.1g}", max(v["apart"] for _, v in results) < 1e-5),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9, 4))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, world in zip(axes, WORLDS, strict=True):
        total, bias = zip(*(errors(results, world, s) for s in SCHEMES), strict=True)
        place = np.arange(len(SCHEMES))
        ax.bar(place - 0.2, total, 0.36, label="model: distance from that of the true labels")
        ax.bar(place + 0.2, bias, 0.36, label="gradient at 0: relative bias")
        ax.set(xticks=place, xticklabels=("smallest ε\nfor all", "κ_j per row", "weighted"), title=f"ε_j {world}")
    axes[0].set_ylabel("root mean square error, bias")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
