"""What is possible at the same total privacy: the paper's settings beside two methods with a proven guarantee.

Design as written, n=100,000, M=50, τ=.5, no penalty but the paper's own in its settings. All spend
μ = √L·ε/√(2 ln(1.25/δ)) = .189 in total (ε=.1 in each of 100 iterations at δ=1e-6), that is ε=.78 at δ=1e-6. The
published settings assume c1, which 57 % of the rows exceed; once with the paper's sensitivity 2·c1 and once with
2·max(τ, 1-τ)·c1. The other methods enforce their bound: curves enter by a few scores in a fixed public
basis; a fifth of μ² pays for the second moment of the scores (rows shortened to a public norm), by which they are
scaled (eigenvalue^(-3/4)); then FDP-ADMM with clipped row gradients, linearised at the average, 40 rounds, a budget
that grows with the round and the mean of the last 70 % of the iterates. Its step and clip are one of nine pairs, tried
on three other data sets of the same design (selection is not part of the budget, nor is it in the paper's settings).
The values called known are not the paper's: they are of an earlier implementation, and its settings are not recorded.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.algorithms import FDPADMM
from confide.algorithms.second_moment import SecondMoment, unpack
from confide.privacy import Gaussian, mu
from confide.privacy import epsilon as exact_epsilon
from confide.problem.functional import Basis, orthonormal, scores, trapezoid
from confide.reproduce import Finding, Results, Trials, number, shape
from confide.simulation import Driver
from confide.theory import fdp_admm as theory

from ._setting import COEFFICIENTS, METHOD, WIDTH, multiplier, problem, rows

title = "What is possible at the same total privacy"
trials = Trials(published=1, full=20, quick=4)
data = ()

DESIGN, LEVEL, WORKERS = "as-written", 0.5, 50
EPSILON, DELTA = 0.1, 1e-6  # of one iteration in the published settings
SHARE, POWER, NORM = 0.2, -0.75, 2.0  # of μ² for the second moment; of its eigenvalues; of the rows it is made of
METHODS: dict[str, Any] = {
    "published settings": 1.0, "published, sharper bound": max(LEVEL, 1 - LEVEL), "cosine, K=8": ("cosine", 8),
    "B-spline, J=5": ("bspline", 5),
}  # fmt: skip  # of c1, or a basis
KNOWN = {"published settings": 0.515, "cosine, K=8": 0.013, "B-spline, J=5": 0.0026}  # of an earlier implementation
ROUNDS, STEP, CLIP = 40, 2.0, 1.0
_GRID = np.linspace(0, 1, 1001)


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"method": m, "trial": t} for t in range(trials) for m in METHODS]


def budget() -> float:
    return theory.total(EPSILON, DELTA, METHOD["rounds"]).mu


def measure(method: str, trial: int) -> dict[str, Any]:
    chosen = METHODS[method]
    return published(chosen, trial) if isinstance(chosen, float) else better(*chosen, trial)


def curve_error(values: Any) -> float:
    """∫(β̂ - β)² from values at the grid."""
    truth = Basis("cosine", WIDTH)(_GRID) @ COEFFICIENTS
    return float(trapezoid(_GRID) @ (values - truth) ** 2)


def published(part: float, trial: int) -> dict[str, Any]:
    """The paper's settings, with noise for a bound of `part`·c1."""
    given = problem(DESIGN, LEVEL, WORKERS, "l1", trial)
    run = FDPADMM(**{**METHOD, "assumed_bound": METHOD["assumed_bound"] * part},
                  noise=multiplier(DESIGN, EPSILON, DELTA))  # fmt: skip
    driver = Driver(given, confide.Graph.star(WORKERS), run, [trial])
    for _ in range(run.rounds):
        driver.step()
    values = Basis("cosine", WIDTH)(_GRID) @ driver.estimates[0, 0]
    events = [e for events in run.events(driver.public) for e in events]
    return {"mise": curve_error(values), "curve": values[None, ::10], "mu": float(np.max(mu(events))),
            "label": str(run.guarantee(driver.public).label)}  # fmt: skip


def better(kind: str, count: int, trial: int, step: float = STEP, clip: float = CLIP) -> dict[str, Any]:
    """Two phases: the second moment of the scores, then FDP-ADMM on scaled scores."""
    A, y = rows(DESIGN, LEVEL, np.random.default_rng([7, trial]))
    functions = orthonormal(Basis(kind, count)(_GRID), _GRID)
    curves = Basis("cosine", WIDTH)(_GRID)  # a curve is A @ curves.T; its scores are linear in A
    own = A.astype(float) @ scores(curves.T, _GRID, lambda t: functions)
    shards = confide.Shards.split(own, y, WORKERS, seed=trial)
    graph, loss, total = confide.Graph.star(WORKERS), confide.losses.Quantile(LEVEL), budget()
    first = confide.Problem(shards, loss)
    moment = calibrated(SecondMoment(norm=NORM), first, graph, total * SHARE**0.5)
    one = Driver(first, graph, moment, [trial])
    one.step()
    values, vectors = np.linalg.eigh(unpack(one.estimates[0, 0], count))
    floor = float(moment.noise_scale(1, one.public)[0, 0]) / WORKERS**0.5  # public: what the noise alone may be
    turn = vectors * np.maximum(values, floor) ** POWER
    second = confide.Problem(shards.transform(turn), loss)
    run = calibrated(
        FDPADMM(rounds=ROUNDS, penalty=1e-6, step=step, step_decay=0.5, clip=clip, average_from=0.3, at_average=True,
                budget_growth=1.0), second, graph, total * (1 - SHARE) ** 0.5,
    )  # fmt: skip
    two = Driver(second, graph, run, [trial])
    for _ in range(ROUNDS):
        two.step()
    curve = functions @ turn @ two.estimates[0, 0]
    events = [e for phase, at in ((moment, one.public), (run, two.public)) for es in phase.events(at) for e in es]
    labels = {str(moment.guarantee(one.public).label), str(run.guarantee(two.public).label)}
    return {"mise": curve_error(curve), "curve": curve[None, ::10], "mu": float(np.max(mu(events))),
            "label": " and ".join(sorted(labels))}  # fmt: skip


def calibrated(method: Any, given: Any, graph: Any, spend: float) -> Any:
    """The method with the noise that spends μ."""
    return method.calibrated(given.public(graph), float(exact_epsilon([Gaussian(spend, 1.0)], DELTA)), DELTA)


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"method": m, "mean MISE": e.mean(), "lowest": e.min(), "highest": e.max(), "known": KNOWN.get(m),
         "total mu": part[0][1]["mu"], "total epsilon": float(exact_epsilon([Gaussian(part[0][1]["mu"], 1.0)], DELTA)),
         "delta": DELTA, "guarantee": part[0][1]["label"]}
        for m in METHODS
        for part, e in [(results.where(method=m), results.stack("mise", method=m))]
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    mean = {m: float(results.stack("mise", method=m).mean()) for m in METHODS}
    spent = [value["mu"] for _, value in results]
    out = [number("total μ of every method", 0.189, max(spent), within=0.01)]
    out.append(number(
        "published settings, MISE", KNOWN["published settings"], mean["published settings"], within=0.35,
        why="the value known lies between the paper's sensitivity 2·c1 (this one) and 2·max(τ, 1-τ)·c1 "
        f"({mean['published, sharper bound']:.3g}); which one it had, and its step, is not recorded",
    ))  # fmt: skip
    for name in list(METHODS)[2:]:
        label = results.where(method=name)[0][1]["label"]
        out.append(shape(
            f"{name}, guarantee {label}: MISE below a fifth of the published settings' better one",
            f"{KNOWN[name]:g} is known", mean[name],
            mean[name] < 0.2 * mean["published, sharper bound"] and label == "proven",
        ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7, 4.2))
    axis = figure.subplots()
    t = _GRID[::10]
    axis.plot(t, Basis("cosine", WIDTH)(t) @ COEFFICIENTS, color="black", linewidth=2.4, label="true β(t)")
    for i, m in enumerate(METHODS):
        curves = results.stack("curve", method=m)
        error, label = results.stack("mise", method=m).mean(), results.where(method=m)[0][1]["label"]
        axis.plot(t, curves.mean(0), color=f"C{i}", label=f"{m}: MISE {error:.2g}, {label}")
        axis.fill_between(t, curves.min(0), curves.max(0), color=f"C{i}", alpha=0.15)
    axis.set(xlabel="t", ylabel="coefficient function", title="Total ε=.78 at δ=1e-6 for all; bands: range")
    axis.legend()
    return figure
