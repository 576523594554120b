"""Irregular grids: curves observed each at 20 to 60 points of its own, beside the same on a common grid.

Section 2.1 allows every curve its own points, and section 5 has none of that. Curves of the design as written with
measurement errors of standard deviation .05; scores in six cosines by quadrature (`confide.problem.functional`), on
10 machines at τ=.5. FDP-ADMM linearised at the average with clipped row gradients, ε=2 at δ=1e-5 in total, guarantee
proven; and the same method without noise. A trial is a data set of 10,000 curves and a stream of noise.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.algorithms import FDPADMM
from confide.papers.reproduce import Finding, Results, Trials, own
from confide.problem.functional import Basis, Curves, scores
from confide.runs.driver import Driver

from ._setting import COEFFICIENTS, WIDTH, mise, rows

title = "Curves on irregular grids"
trials = Trials(published=None, full=10, quick=2)
data = ()

CURVES, WORKERS, LEVEL, COUNT = 10_000, 10, 0.5, 6
FEWEST, MOST, ERROR, GRID = 20, 60, 0.05, 101
EPSILON, DELTA = 2.0, 1e-5
METHOD = {"rounds": 60, "coupling": 1e-6, "step": 8.0, "clip": 0.5, "average_from": 0.3, "at_average": True,
          "budget_growth": 1.0}  # fmt: skip
SOURCES = ("exact scores", "regular grid", "irregular grids")


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"trial": t} for t in range(trials)]


def features(A: Any, rng: Any) -> dict[str, Any]:
    """The first scores of every curve, from each way of observing it."""
    basis, every = Basis("cosine", COUNT), Basis("cosine", WIDTH)
    grid = np.linspace(0, 1, GRID)
    regular = A @ every(grid).T + ERROR * rng.standard_normal((len(A), GRID))
    pairs = []
    for row, m in zip(A, rng.integers(FEWEST, MOST + 1, len(A)), strict=True):
        t = np.sort(rng.uniform(size=m))
        pairs.append((t, every(t) @ row + ERROR * rng.standard_normal(m)))
    found = (A[:, :COUNT], scores(regular, grid, basis), Curves.from_pairs(pairs).scores(basis))
    return dict(zip(SOURCES, found, strict=True))


def measure(trial: int) -> dict[str, Any]:
    rng = np.random.default_rng([11, trial])
    A, y = rows("as-written", LEVEL, rng, CURVES)
    out: dict[str, Any] = {}
    for source, X in features(A.astype(float), rng).items():
        given = confide.Problem(confide.Shards.split(X, y, WORKERS, seed=trial), confide.losses.Quantile(LEVEL))
        graph = confide.Graph.star(WORKERS)
        free = FDPADMM(**METHOD)
        noisy = free.calibrated(given.public(graph), EPSILON, DELTA)
        found = {}
        for name, method in (("non-private", free), ("private", noisy)):
            driver = Driver(given, graph, method, [trial])
            for _ in range(method.rounds):
                driver.step()
            full = np.zeros(WIDTH)
            full[:COUNT] = driver.estimates[0, 0]
            found[name] = float(mise(full))
        found["label"] = str(noisy.guarantee(given.public(graph)).label)
        out[source] = found
    return out


def errors(results: Results, source: str, name: str) -> Any:
    return np.array([value[source][name] for _, value in results])


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"scores from": s, "method": n, "mean MISE": e.mean(), "lowest": e.min(), "highest": e.max(),
         "truncation alone": float(np.sum(COEFFICIENTS[COUNT:] ** 2)), "epsilon": EPSILON if n == "private" else "inf",
         "delta": DELTA if n == "private" else "",
         "guarantee": results[0][1][s]["label"] if n == "private" else "none"}
        for s in SOURCES
        for n in ("non-private", "private")
        for e in [errors(results, s, n)]
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    out = []
    for name in ("non-private", "private"):
        exact, uneven = (errors(results, s, name).mean() for s in (SOURCES[0], SOURCES[2]))
        out.append(own(f"{name}: irregular grids cost at most half as much again as exact scores",
                       f"MISE {uneven:.4f}, exact scores {exact:.4f}", uneven <= 1.5 * exact))  # fmt: skip
    labels = {value[SOURCES[2]]["label"] for _, value in results}
    out.append(own("the private method is proven", ", ".join(sorted(labels)), labels == {"proven"}))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7, 3.8))
    axis = figure.subplots()
    for i, name in enumerate(("non-private", "private")):
        runs = np.array([errors(results, s, name) for s in SOURCES])
        place = np.arange(3) + 0.18 * (2 * i - 1)
        label = name if i == 0 else f"ε={EPSILON:g}, δ={DELTA:g}, proven"
        axis.bar(place, runs.mean(1), 0.32, color=f"C{i}", label=label)
        axis.errorbar(place, runs.mean(1), [runs.mean(1) - runs.min(1), runs.max(1) - runs.mean(1)], fmt="none",
                      color="0.2", capsize=3)  # fmt: skip
    axis.axhline(float(np.sum(COEFFICIENTS[COUNT:] ** 2)), color="0.4", linestyle="--", label="truncation to 6 cosines")
    axis.set_xticks(range(3), SOURCES)
    axis.set(ylabel="MISE", title="Scores from curves observed in three ways")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
