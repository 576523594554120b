"""Figure 4: what the bound R (a), the noise decay ρ (b) and the labels' ε (c) do to the risk (1).

Chosen where the text leaves it open: the values of R, ρ and ε; ε = 0.4 in (a) and (b), R = 1 in (c); a = 1, β = 0.2,
V = 1. (1) is on the true labels and divided by the number of servers. In the table, `corollary1` is what (35) allows
the objective noise to add, R²/(n·a·κ): the measured gap to the same run without Phase 2 must stay below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide.papers.reproduce import Finding, Results, Trials, shape
from confide.papers.theory import pdml

from ._adult import settled, watched
from ._setting import DECAY, DEVIATION, SERVERS, STRENGTH

title = "The effect of R, of the noise decay and of ε on Adult"
trials = Trials(published=1, full=5, quick=1)
data = ("adult",)

EPSILON = 0.4
BOUNDS = (0.0, 1.0, 3.0, 9.0)
DECAYS = (0.7, 0.8, 0.9)
EPSILONS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
WIDTH = 105


def tasks(trials: int) -> list[dict[str, Any]]:
    runs = [{"epsilon": EPSILON, "bound": b, "decay": DECAY} for b in BOUNDS]
    runs += [{"epsilon": EPSILON, "bound": 1.0, "decay": d} for d in DECAYS if d != DECAY]
    runs += [{"epsilon": e, "bound": b, "decay": DECAY} for e in EPSILONS if e != EPSILON for b in (0.0, 1.0)]
    return [{**run, "seed": seed} for seed in range(trials) for run in runs]


def measure(epsilon: float, bound: float, decay: float, seed: int) -> dict[str, Any]:
    found = watched(seed, epsilon, bound, noise_decay=decay)
    return {"risk": found["risk"], "reference": found["reference"]}


def above(results: Results, epsilon: float = EPSILON, bound: float = 1.0, decay: float = DECAY) -> Any:
    """How far above the reference each trial ends."""
    here = {"epsilon": epsilon, "bound": bound, "decay": decay}
    return results.stack("risk", **here)[:, -1] - results.stack("reference", **here)


def share(results: Results, epsilon: float, bound: float) -> float:
    """The largest distance from the reference where a trial ends, as a share of it."""
    here = {"epsilon": epsilon, "bound": bound, "decay": DECAY}
    return float(np.max(np.abs(above(results, **here) / results.stack("reference", **here))))


def rounds(results: Results, decay: float) -> float:
    """Mean number of rounds until (1) stays within 1 % of its end."""
    runs = results.stack("risk", epsilon=EPSILON, bound=1.0, decay=decay)
    return float(np.mean([settled(one) for one in runs]))


def falls(values: list[float]) -> bool:
    """From each to the next, but for a twentieth of the whole fall: beyond ε = 0.6 there is hardly one."""
    return bool(np.all(np.diff(values) < 0.05 * (values[0] - values[-1])) and values[0] > values[-1])


def listed(name: str, values: tuple[float, ...], found: list[Any]) -> str:
    return ", ".join(f"{name}={v:g}: {f:.2g}" for v, f in zip(values, found, strict=True))


def allowed(bound: float) -> float:
    """(35)'s term of the objective noise."""
    noise = pdml.NoiseSetting(bound, [DEVIATION] * SERVERS, DECAY, WIDTH)
    return pdml.corollary1(SERVERS, noise, a=STRENGTH, kappa=1.0, labels=0.0).value


def table(results: Results) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for task, _ in results.where(seed=0):
        here = {k: task[k] for k in ("epsilon", "bound", "decay")}
        gap = above(results, **here)
        rows.append({**here, "above_reference": gap.mean(), "lowest": gap.min(), "highest": gap.max(),
                     "corollary1": allowed(task["bound"])})  # fmt: skip
    return rows


def findings(results: Results) -> list[Finding]:
    by_bound = [above(results, bound=b).mean() for b in BOUNDS]
    by_decay = [rounds(results, d) for d in DECAYS]
    quiet, noisy = ([above(results, epsilon=e, bound=b).mean() for e in EPSILONS] for b in (0.0, 1.0))
    extra = [above(results, bound=b) - above(results, bound=0.0) for b in BOUNDS[1:]]
    start, high = EPSILONS[0], EPSILONS.index(0.6)
    ends = [above(results, decay=d).mean() for d in DECAYS]
    flat = all(v[high] - v[-1] < 0.05 * (v[0] - v[-1]) for v in (quiet, noisy))
    off = [max(share(results, e, b) for e in EPSILONS[high:]) for b in (0.0, 1.0)]
    return [
        shape("(a) the larger R, the larger the gap to the reference", "rises",
              listed("R", BOUNDS, by_bound), np.all(np.diff(by_bound) > 0)),
        shape("(a) what R adds stays below R²/(n·a·κ) of Corollary 1", "below",
              ", ".join(f"{g.mean():.2g} of {allowed(b):g}" for b, g in zip(BOUNDS[1:], extra, strict=True)),
              all(g.max() <= allowed(b) for b, g in zip(BOUNDS[1:], extra, strict=True))),
        shape("(b) a larger decay rate ρ needs more rounds", "rises",
              listed("ρ", DECAYS, by_decay), np.all(np.diff(by_decay) > 0)),
        shape("(b) and ends at the same risk", "same", listed("ρ", DECAYS, ends),
              np.ptp(ends) < 0.2 * np.mean(ends)),
        shape("(c) the risk falls with ε, with and without Phase 2", "falls",
              f"without: {quiet[0]:.2g} to {quiet[-1]:.2g}, with: {noisy[0]:.2g} to {noisy[-1]:.2g} above",
              falls(quiet) and falls(noisy)),
        shape("(c) Phase 2 costs risk at every ε", "at all",
              f"at {np.sum(np.greater(noisy, quiet))} of {len(EPSILONS)}", np.all(np.greater(noisy, quiet))),
        shape("(c) beyond ε = 0.6 both risks are within 1 % of the reference and hardly change",
              "close to the reference",
              "; ".join(f"{n} {v[0]:.2g} above at ε={start:g}, {v[high]:.2g} at 0.6 and {v[-1]:.2g} at 1, from 0.6 on "
                        f"at most {o:.2%} off" for n, v, o in (("without", quiet, off[0]), ("with", noisy, off[1]))),
              flat and max(off) < 0.01),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(12, 4))
    axes = figure.subplots(1, 3)
    best = float(results.stack("reference", bound=0.0, epsilon=EPSILON).mean())
    for ax, key, values in ((axes[0], "bound", BOUNDS[1:]), (axes[1], "decay", DECAYS)):
        for value in values:
            here = {"epsilon": EPSILON, "bound": 1.0, "decay": DECAY, key: value}
            y = results.stack("risk", **here)
            x, name = np.arange(1, y.shape[1] + 1), "R" if key == "bound" else "ρ"
            (line,) = ax.plot(x, y.mean(axis=0), label=f"{name} = {value:g}")
            ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0)
        ax.axhline(best, color="C6", linestyle="--", linewidth=1.2, label="reference")
        ax.set(yscale="log", xlabel="round", ylabel="(1) per server", ylim=(0.58, 12))
        ax.set_yticks((0.6, 1, 2, 5, 10), ("0.6", "1", "2", "5", "10"))
        ax.set_yticks([], minor=True)
        ax.legend()
    for bound, name in ((0.0, "Phase 1 alone"), (1.0, "Phases 1 and 2 (R = 1)")):
        y = np.array([above(results, epsilon=e, bound=bound) for e in EPSILONS])
        (line,) = axes[2].plot(EPSILONS, y.mean(axis=1), "o-", label=name)
        axes[2].fill_between(EPSILONS, y.min(axis=1), y.max(axis=1), color=line.get_color(), alpha=0.2, linewidth=0)
    axes[2].set(yscale="log", xlabel="ε of the labels", ylabel="(1) above the reference, per server")
    axes[2].legend()
    for ax, text in zip(axes, ("(a) R, at ρ = 0.8", "(b) ρ, at R = 1", "(c) ε, after 100 rounds"), strict=True):
        ax.set_title(text)
    return figure
