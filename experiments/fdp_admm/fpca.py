"""Functional principal components estimated in the tables' pipeline, and K chosen by the variance explained.

Section 2.1 estimates the φ_k; the tables can only have been made with known ones, or with so many curves that it does
not matter: which is what this measures. Table 1's column τ=.5 (l1, 10 machines, the tables' design): the non-private
cell and those of (.8, 1e-3) and (.1, 1e-6) per iteration, with scores in the known φ_k, in eigenvectors of the rows'
own second moment, which nobody has paid for, and in those of a private one: each worker releases the second moment of
its scores, shortened to norm 2, with Gaussian noise of μ = 0.5 (ε about 2 at δ = 1e-5), which adds to the total. K is
50, or the least whose eigenvalues explain 95 % or 99.9 % of the trace; after a private release that choice is
post-processing and costs nothing more.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.algorithms.second_moment import SecondMoment
from confide.papers.reproduce import Finding, Results, Trials, own
from confide.privacy import Gaussian
from confide.privacy import epsilon as exact_epsilon
from confide.problem.questions import unpack
from confide.runs.driver import Driver

from ._setting import DESIGNS, ROUNDS, WIDTH, Together, driver, mise, multiplier, penalty, problem, spread

title = "Estimated principal components, and K by the variance explained"
trials = Trials(published=None, full=10, quick=1)
data = ()

WORKERS, KIND, LEVEL, SPENT, NORM = 10, "l1", 0.5, 0.5, 2.0
CELLS = ((float("inf"), 0.5), (0.8, 1e-3), (0.1, 1e-6))
SOURCES = ("known", "estimated", "private")
SHARES = (1.0, 0.999, 0.95)  # of the trace; 1: K = 50


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"source": s, "trial": t} for t in range(trials) for s in SOURCES]


def basis(source: str, given: Any, trial: int) -> tuple[Any, Any]:
    """Eigenvalues, falling, and eigenvectors (50, 50) of the second moment of the scores."""
    A = given.shards.X
    if source == "known":
        return spread(DESIGNS[0]) ** 2, np.eye(WIDTH)  # of the design, which is public
    moment = A.T.astype(float) @ A / len(A)
    if source == "private":
        plain = confide.Problem(given.shards, given.loss)
        graph = confide.Graph.star(WORKERS)
        method = SecondMoment(norm=NORM).calibrated(plain.public(graph), mu=SPENT)
        run = Driver(plain, graph, method, [trial])
        run.step()
        moment = unpack(run.estimates[0, 0], WIDTH)
    values, vectors = np.linalg.eigh(moment)
    return values[::-1], vectors[:, ::-1]


def explained(values: Any, share: float) -> int:
    """The least K whose eigenvalues, those below 0 counted as 0, are at least `share` of the trace."""
    kept = np.maximum(values, 0.0)
    return WIDTH if share >= 1 else int(np.searchsorted(np.cumsum(kept) / kept.sum(), share) + 1)


def measure(source: str, trial: int) -> dict[str, Any]:
    given = problem(DESIGNS[0], LEVEL, WORKERS, KIND, trial)
    values, vectors = basis(source, given, trial)
    found, counts = [], []
    for share in SHARES:
        K = explained(values, share)
        turn = vectors[:, :K]
        shards = confide.Shards((given.shards.X @ turn).astype(np.float32), given.shards.y, given.shards.offsets,
                                given.shards.names)  # fmt: skip
        noise = [multiplier(DESIGNS[0], *cell) if np.isfinite(cell[0]) else 0.0 for cell in CELLS]
        run = driver(Together(shards, given.loss, penalty(KIND)), noise, trial)
        for _ in range(ROUNDS):
            run.step()
        found.append(mise(run.estimates[:, 0] @ turn.T))
        counts.append(K)
    return {"mise": np.array([found]), "K": np.array([counts])}


def total(source: str, cell: tuple[float, float]) -> tuple[float, float]:
    """μ and ε at the cell's δ of all iterations, and of the FPCA where it was paid for; inf where something is open."""
    if source == "estimated" or (source == "known" and not np.isfinite(cell[0])):
        return float("inf"), float("inf")
    iterations = ROUNDS**0.5 / multiplier(DESIGNS[0], *cell) if np.isfinite(cell[0]) else float("inf")
    mu = float(np.hypot(iterations, SPENT if source == "private" else 0.0))
    return mu, float(exact_epsilon([Gaussian(mu, 1.0)], cell[1])) if np.isfinite(mu) else float("inf")


def table(results: Results) -> list[dict[str, Any]]:
    return [
        {"φ_k": s, "variance explained": share, "K": results.stack("K", source=s)[:, i].mean(),
         "epsilon an iteration": cell[0], "delta": cell[1], "MISE": results.stack("mise", source=s)[:, i, j].mean(),
         "total mu": total(s, cell)[0], "total epsilon": total(s, cell)[1],
         "guarantee": "assumed" if s != "estimated" and np.isfinite(cell[0]) else "none"}
        for s in SOURCES for i, share in enumerate(SHARES) for j, cell in enumerate(CELLS)
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    mean = {s: results.stack("mise", source=s).mean(axis=0) for s in SOURCES}  # (shares, cells)
    K = {s: results.stack("K", source=s).mean(axis=0) for s in SOURCES}
    near = float(np.max(np.abs(mean["estimated"][0] / mean["known"][0] - 1)))
    small = float(mean["known"][2, 2] / mean["known"][0, 2])
    free, quiet = float(mean["known"][2, 0] / mean["known"][0, 0]), mean["known"][:, 0]
    strong = mean["known"][:, 2]
    seven = f"; K = {K['known'][1]:.0f} does halve it ({strong[1]:.2f}, its own without noise {quiet[1]:.2f})"
    halved = seven if strong[1] < 0.5 * strong[0] else ""
    return [
        own("estimated φ_k give the error of known ones, K = 50, in every cell (within 10 %)",
            f"{near:.1%} apart", near < 0.1,
            why="small eigenvalues are close together, and their eigenvectors are not found by 100,000 curves"),
        own("an FPCA that is paid for gives them, too, without noise in the iterations (within 25 %)",
            f"{mean['private'][0, 0]:.3f}, known {mean['known'][0, 0]:.3f}",
            abs(mean["private"][0, 0] / mean["known"][0, 0] - 1) < 0.25,
            why="the noise of the second moment turns the eigenvectors of small eigenvalues"),
        own("K by 95 % of the variance halves the error under strong privacy: fewer scores, less noise",
            f"K = {K['known'][2]:.0f}: {small:.2f} of that of K = 50 at ε=.1, δ=1e-6", small < 0.5,
            why=f"every K has an error of {min(quiet):.2f} to {max(quiet):.2f} without noise, more than half of what "
            f"K = 50 has with it, {strong[0]:.2f}: fewer scores remove the noise{halved}"
            if min(quiet) > 0.5 * strong[0] else "no cause is known"),
        own("and costs accuracy without noise", f"{free:.2f} times that of K = 50", free > 1,
            why="what 95 % of the variance leaves out was not learned in 100 iterations either"),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9.5, 3.8))
    names = ["non-private", *(f"ε={e:g}, δ={d:g}" for e, d in CELLS[1:])]
    for j, (axis, name) in enumerate(zip(figure.subplots(1, 3), names, strict=True)):
        for i, s in enumerate(SOURCES):
            values = results.stack("mise", source=s)[:, :, j]
            place = np.arange(len(SHARES)) + 0.25 * (i - 1)
            axis.bar(place, values.mean(axis=0), 0.23, color=f"C{i}", label=f"φ_k {s}")
        axis.set(title=name, xlabel="variance explained")
        axis.set_xticks(range(len(SHARES)), ["all (K=50)", *(f"{100 * v:g} %" for v in SHARES[1:])])
    figure.axes[0].set_ylabel("MISE at τ=.5")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
