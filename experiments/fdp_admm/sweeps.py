"""Sweeps: where the settings that fit the tables come from, and how much they leave open.

(a) Without noise: the step η_l = a/√l with a = 24 to 80, the mean of all w, of those after 10 or 30 iterations, and
L = 100 or 200, at every τ of every table. A choice fits when all 30 printed non-private values are near.
(b) With noise: MISE depends on c1 and on the factor of ln(1.25/δ) through their product alone; √2·c1 with c1 = .9 to
1.2, 1.6 and 2 (the text's √2 outside, the root missing), at τ=.5. Fits are root mean squares of ln(measured/printed).
(c) The text's own: scores of variance k⁻² with the steps, means and L of (a) at τ=.5, and noise √(2 ln(1.25/δ))·Δ/ε
with c1 = 1 to 4, the rest as in (b).
A "trial" here is a table, with one data set for each τ.

The settings in use, a = 56, the mean of all w, L = 100 and √2·1.07, were chosen by such sweeps: cells at τ=.5 are
fitted, not predicted.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, own, shape

from ._published import DELTAS, LEVELS
from ._setting import CELLS, driver, mise, multiplier, problem
from ._tables import cells, column

title = "The sweeps behind the settings that fit the tables"
trials = Trials(published=None, full=6, quick=1)  # tables, with one data set a table and τ; the first is table 6
data = ()

COLUMNS = {1: (10, "l1"), 2: (20, "l1"), 3: (50, "l1"), 4: (10, "l2"), 5: (20, "l2"), 6: (50, "l2")}
DESIGN, STEPS, FROM, LONG = "as-published-tables", (24.0, 32.0, 40.0, 48.0, 56.0, 66.0, 80.0), (0.0, 0.1, 0.3), 200
CHOICES = (*(f"mean from {int(100 * f)} of 100" for f in FROM), "mean of 200")
USED_STEP, USED_C1 = 56.0, 1.07
OTHER, BOUNDS = "as-written", (1.0, USED_C1, 2.0, 3.0, 4.0)  # the design with variance k⁻²; c1 with √(2 ln(1.25/δ))
SIZES = tuple(sorted((*(2**0.5 * c for c in (0.9, 1.0, USED_C1, 1.2)), 1.6, 2.0)))  # factor·c1


def tasks(trials: int) -> list[dict[str, Any]]:
    tables = sorted(COLUMNS, key=lambda k: (k != 6, k))[:trials]
    return [*({"part": "free", "which": k, "level": v, "trial": 0} for k in tables for v in LEVELS),
            *({"part": "noise", "which": k, "level": 0.5, "trial": 0} for k in tables),
            *({"part": "written", "which": k, "level": 0.5, "trial": 0} for k in tables),
            *({"part": "root", "which": k, "level": 0.5, "trial": 0} for k in tables)]  # fmt: skip


def measure(part: str, which: int, level: float, trial: int) -> dict[str, Any]:
    workers, kind = COLUMNS[which]
    given = problem(OTHER if part == "written" else DESIGN, level, workers, kind, trial)
    if part == "root":
        out = [cells(given, [c / USED_C1 * multiplier(OTHER, *cell) for cell in CELLS], trial) for c in BOUNDS]
        return {"mise": np.array([out])}  # (1, bounds, 20)
    if part != "noise":
        return {"mise": np.array([[free(given, trial, a) for a in STEPS]])}  # (1, steps, choices)
    base = 2**0.5 * USED_C1  # of what `multiplier` and the assumed c1 make
    out = [cells(given, [size / base * multiplier(DESIGN, *cell) for cell in CELLS], trial) for size in SIZES]
    return {"mise": np.array([out])}  # (1, sizes, 20)


def free(given: Any, trial: int, step: float) -> list[float]:
    """Without noise: the mean of w from each start at 100 iterations, and of all w at 200."""
    run = driver(given, [0.0], trial, step=step, rounds=LONG)
    path = []
    for _ in range(LONG):
        run.step()
        path.append(run.state.average[0, 0].copy())
    means = [np.mean(path[int(100 * start) : 100], axis=0) for start in FROM]
    return [float(mise(w)) for w in (*means, np.mean(path, axis=0))]


def known(results: Results) -> list[int]:
    return sorted({task["which"] for task, _ in results})


def ratios(results: Results) -> Any:
    """ln(measured/printed) of the non-private values: (tables, τ, steps, choices)."""
    return np.array([
        [np.log(results.stack("mise", part="free", which=k, level=v).mean(axis=0) / column(k, v)[-1]) for v in LEVELS]
        for k in known(results)
    ])  # fmt: skip


def noisy(results: Results, part: str = "noise") -> Any:
    """ln(measured/printed) of the private cells at τ=.5: (tables, sizes, 20)."""
    return np.array([
        np.log(results.stack("mise", part=part, which=k).mean(axis=0) / column(k, 0.5)[:-1]) for k in known(results)
    ])  # fmt: skip


def written(results: Results) -> Any:
    """As `ratios`, of scores with variance k⁻² at τ=.5: (tables, steps, choices)."""
    return np.array([
        np.log(results.stack("mise", part="written", which=k).mean(axis=0) / column(k, 0.5)[-1]) for k in known(results)
    ])  # fmt: skip


def machines(results: Results) -> Any:
    """Whether MISE grows with M at ε=.1, τ=.5, in the settings in use: (pairs of tables, δ)."""
    at = SIZES.index(2**0.5 * USED_C1)
    strong = {k: results.stack("mise", part="noise", which=k).mean(axis=0)[at, : len(DELTAS)] for k in COLUMNS}
    return np.array([strong[a] < strong[b] for a, b in ((1, 2), (2, 3), (4, 5), (5, 6))])


def table(results: Results) -> list[dict[str, Any]]:
    gaps, fits = ratios(results), noisy(results)
    rows: list[dict[str, Any]] = [
        {"part": "free", "table": k, "tau": v, "a of a/√l": a, "model": c,
         "measured over printed": np.exp(gaps[i, j, m, n])}
        for i, k in enumerate(known(results)) for j, v in enumerate(LEVELS) for m, a in enumerate(STEPS)
        for n, c in enumerate(CHOICES)
    ]  # fmt: skip
    return rows + [
        {"part": "noise", "table": k, "tau": 0.5, "factor times c1": size, "fit": rms(fits[i, m])}
        for i, k in enumerate(known(results)) for m, size in enumerate(SIZES)
    ] + [
        {"part": "written", "table": k, "tau": 0.5, "a of a/√l": a, "model": c,
         "measured over printed": np.exp(written(results)[i, m, n])}
        for i, k in enumerate(known(results)) for m, a in enumerate(STEPS) for n, c in enumerate(CHOICES)
    ] + [
        {"part": "root", "table": k, "tau": 0.5, "c1": c, "fit": rms(noisy(results, "root")[i, m])}
        for i, k in enumerate(known(results)) for m, c in enumerate(BOUNDS)
    ]  # fmt: skip


def rms(gaps: Any, axis: Any = None) -> Any:
    return np.sqrt(np.mean(np.square(gaps), axis=axis))


def named(step: int) -> str:
    """A step of STEPS in words, which say so at the grid's edge."""
    edge = {0: " (the least step tried)", len(STEPS) - 1: " (the largest step tried)"}
    return f"{STEPS[step]:g}/√l{edge.get(step, '')}"


def trend(excess: Any) -> str:
    """How the gap between τ=.5 and the others goes with the step: (steps,), of the mean of all w."""
    start = "no cause is known for all of it: "
    if np.all(np.diff(np.abs(excess)) > 0):
        return (f"{start}the gap shrinks with the step, from {abs(excess[-1]):.0%} at {STEPS[-1]:g}/√l to "
                f"{abs(excess[0]):.0%} at {STEPS[0]:g}/√l, and {STEPS[0]:g}/√l is the least tried")  # fmt: skip
    return start + "by the step the gap is " + ", ".join(
        f"{v:.0%} at {a:g}/√l" for a, v in zip(STEPS, excess, strict=True)
    )  # fmt: skip


def findings(results: Results) -> list[Finding]:
    gaps, fits = ratios(results), rms(noisy(results), axis=(0, 2))
    every = rms(gaps, axis=(0, 1))  # (steps, choices)
    worst = np.max(np.abs(np.exp(gaps) - 1), axis=(0, 1))
    place = np.unravel_index(np.argmin(worst), worst.shape)
    middle, others = (np.exp(np.mean(gaps[:, part], axis=(0, 1))) for part in ([2], [0, 1, 3, 4]))
    excess, at = middle / others - 1, STEPS.index(USED_STEP)  # (steps, choices)
    least = np.unravel_index(np.argmin(np.abs(excess)), excess.shape)
    used, best = every[at, 0], np.unravel_index(np.argmin(every), every.shape)
    size = SIZES.index(2**0.5 * USED_C1)
    other, root = rms(written(results), axis=0), rms(noisy(results, "root"), axis=(0, 2))
    middling = rms(gaps[:, LEVELS.index(0.5)], axis=0)  # (steps, choices)
    out = []
    if len(known(results)) == len(COLUMNS):
        grows = machines(results)
        out.append(shape("ε=.1, τ=.5: the more machines, the larger the MISE: M=10, 20, 50 at every δ, both penalties",
                         "all", f"{grows.sum()} of {grows.size}", grows.all(),
                         why="one data set a table: neighbours that noise decides may change places"))  # fmt: skip
    return [
        *out,
        own("scores of variance k⁻² fit the non-private values at τ=.5 worse at every step, average and L",
            f"root mean square at best {other.min():.2f}, with standard deviation k⁻² {middling.min():.2f}",
            np.all(other > middling), why="at some of these choices they fit as well"),
        own("noise √(2 ln(1.25/δ))·Δ/ε fits the private cells at τ=.5 worse than √2·ln(1.25/δ)·Δ/ε, at every c1",
            ", ".join(f"c1={c:g}: {f:.2f}" for c, f in zip(BOUNDS, root, strict=True)) + f"; in use {fits[size]:.2f}",
            root.min() > fits[size], why="with a c1 of its own it fits as well: the tables do not tell the root"),
        own("one step, average and L meets all printed non-private values within 15 %",
              f"the best, {named(place[0])} and {CHOICES[place[1]]}, is off by up to {worst[place]:.0%}",
              worst[place] <= 0.15,
              why="at τ=.5 the printed errors are smaller, beside those at other τ, than under any of these choices"
              if np.all(excess > 0) else "no cause is known"),
        own("the printed errors at τ=.5 fit as well as those at other τ, for some choice: measured over printed "
              "differs by at most 5 %",
              f"at {named(at)} {middle[at, 0]:.2f} at τ=.5, {others[at, 0]:.2f} elsewhere; least gap "
              f"{abs(excess[least]):.0%}, at {named(least[0])}, {CHOICES[least[1]]}",
              abs(excess[least]) <= 0.05, why=trend(excess[:, 0])),
        own("the step in use fits the non-private values as well as the sweep's best, or at most a tenth worse",
            f"at {named(at)} root mean square {used:.3f}, best {every.min():.3f} "
            f"({named(best[0])}, {CHOICES[best[1]]})",
            used <= 1.1 * every.min(),
            why=f"{USED_STEP:g}/√l with the mean of all w is a choice that another one of the sweep beats: part of "
            "what differs in the tables is that choice"),
        own("√2·1.07 fits the private cells at τ=.5 within .05 of the sweep's best fit",
            ", ".join(f"{s:.2f}: {f:.2f}" for s, f in zip(SIZES, fits, strict=True)), fits[size] <= fits.min() + 0.05),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9.5, 4))
    left, right = figure.subplots(1, 2)
    gaps, fits = np.exp(np.mean(ratios(results), axis=0)), noisy(results)
    for j, level in enumerate(LEVELS):
        left.plot(STEPS, gaps[j, :, 0], "o-", markersize=4, label=f"τ={level:g}")
    left.axhline(1.0, color="0.3", linewidth=0.9)
    left.axvline(USED_STEP, color="0.3", linestyle=":", linewidth=1)
    left.set(xlabel="a of η_l = a/√l", ylabel="measured over printed, all tables", title="(a) no noise, mean of all w")
    left.legend()
    for i, k in enumerate(known(results)):
        right.plot(SIZES, rms(fits[i], axis=1), "o-", markersize=4, label=f"table {k}")
    right.axvline(2**0.5 * USED_C1, color="0.3", linestyle=":", linewidth=1)
    right.set(xlabel="factor of ln(1.25/δ) times c1", ylabel="root mean square of ln(measured/printed)",
              title="(b) private cells, τ=.5")  # fmt: skip
    right.legend(fontsize=8)
    return figure
