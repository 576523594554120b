"""Table I: test accuracy on seven of Rätsch's sets without privacy, with randomised labels, and with Phase 2.

Chosen where the text leaves it open: a = 1, β = 0.2, V = 1, noise decay 0.8, 100 rounds, an intercept that is not
penalised, features as distributed (each column standardised, Splice's nucleotides as 1 to 4), η_i uniform in the ℓ2
ball of radius R. The accuracy is that of the servers' average model, which all of them hold after 100 rounds; every
trial has its own split, labels, graph and noise. The paper prints one number per cell, and its cells scatter like
single runs.

Splice: 1 of 7 sets where no setting of a *converged* logistic regression comes near the table. With the coding as
distributed it gets 83 to 84 %. The published 56.6 % is close to the share of the larger class, 55.1 %: the accuracy
of a predictor that is nearly constant, such as heavy regularisation or a run stopped early gives. Two of its cells,
46.8 and 46.4 %, are below that share. It is left out of the root mean square, and shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from confide import simulate
from confide.papers import datasets
from confide.papers.reproduce import Finding, Results, Trials, number, shape

from ._setting import accuracy, divided, method, network, reported

title = "Classification accuracy on seven data sets"
trials = Trials(published=1, full=10, quick=3)
data = ("raetsch",)

CELLS = ((None, 0), (0.4, 0), (1.0, 0), (0.4, 1), (0.4, 9), (1.0, 1), (1.0, 9))  # (ε, R), the columns of Table I
PUBLISHED = {  # Table I, per cent
    "german": (75.00, 71.00, 74.00, 69.67, 64.00, 74.33, 67.67),
    "image": (75.56, 70.13, 72.84, 69.33, 63.10, 70.45, 65.50),
    "ringnorm": (77.38, 73.44, 76.82, 73.74, 66.18, 75.77, 70.23),
    "banana": (58.22, 54.33, 56.06, 54.28, 43.11, 55.89, 54.44),
    "splice": (56.60, 46.84, 56.60, 54.94, 46.39, 55.83, 52.50),
    "twonorm": (97.90, 96.59, 97.38, 96.51, 92.28, 97.41, 94.77),
    "waveform": (88.93, 84.60, 87.93, 84.07, 80.47, 87.67, 81.73),
}
PAIRS = ((2, 1), (5, 3), (6, 4), (3, 4), (5, 6), (1, 3), (2, 5))  # larger ε first; R = 1 and 9; R = 0 and 1
SMALL = 5  # from here on R = 0 and 1
INFERIOR = ("banana", "splice")
WITHIN = 4.0  # points, root mean square without Splice
CAUSES = {
    "splice": "a converged logistic regression gets 83 to 84 %; 56.6 % is nearly the larger class's share of 55.1 %",
    "banana": "the table is one run, and Banana, which no line divides better than 58 %, moves by points each run",
    "image": "the table is one run, and its level asks for more regularisation on Image than on other sets",
}


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"name": name, "seed": seed} for seed in range(trials) for name in PUBLISHED]


def measure(name: str, seed: int) -> dict[str, Any]:
    one = datasets.load_raetsch(name)
    train, test = divided(one.y, seed)
    found = []
    for epsilon, bound in CELLS:
        problem = reported(one.X[train], one.y[train], epsilon, seed, intercept=True)
        run = simulate(problem, network(seed), method(bound), seeds=[seed], record=())
        found.append(accuracy(problem, one.X[test], one.y[test], run.model[0]))
    return {"accuracy": np.array([found])}


def means(results: Results) -> dict[str, Any]:
    """Set -> mean accuracy of the seven cells."""
    return {name: results.stack("accuracy", name=name).mean(axis=0) for name in PUBLISHED}


def off(results: Results) -> float:
    """Root mean square of measured less published, in points, without Splice."""
    mean = means(results)
    return float(np.sqrt(np.mean([(mean[n] - PUBLISHED[n]) ** 2 for n in PUBLISHED if n != "splice"])))


def ordered(cells: Any) -> Any:
    """Whether the first of each of PAIRS is more accurate: (sets, pairs)."""
    return np.array([cells[:, i] > cells[:, j] for i, j in PAIRS]).T


def alike(results: Results, better: Any, theirs: Any) -> str:
    """The cause where only R = 0 and R = 1 change places, by less than the trials of such a cell range."""
    for name, row in zip(PUBLISHED, better, strict=True):
        found = results.stack("accuracy", name=name)
        mean, reach = found.mean(axis=0), np.ptp(found, axis=0)
        for k, (i, j) in enumerate(PAIRS):
            if not row[k] and (k < SMALL or mean[j] - mean[i] >= min(reach[i], reach[j])):
                return ""
    small = ~theirs[:, SMALL:]
    return f"R = 0 and R = 1 differ by less than trials do; in print {small.sum()} of {small.size} change places, too"


def table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for name, published in PUBLISHED.items():
        found = results.stack("accuracy", name=name)
        for (epsilon, bound), printed, values in zip(CELLS, published, found.T, strict=True):
            rows.append({"set": name, "epsilon": epsilon, "R": bound, "published": printed, "mean": values.mean(),
                         "lowest": values.min(), "highest": values.max()})  # fmt: skip
    return rows


def findings(results: Results) -> list[Finding]:
    mean, rms = means(results), off(results)
    out = [shape(f"root mean square over 42 cells, without Splice, within {WITHIN:g} points", "Table I",
                 f"{rms:.2f} points", rms <= WITHIN)]  # fmt: skip
    for name, published in PUBLISHED.items():
        cause = CAUSES.get(name, "the table is one run")
        out.append(number(f"{name}: no privacy", published[0], mean[name][0], absolute=WITHIN, unit=" %", why=cause))
        out.append(number(f"{name}: mean of the six private cells", float(np.mean(published[1:])),
                          float(mean[name][1:].mean()), absolute=WITHIN, unit=" %", why=cause))  # fmt: skip
    every = np.array(list(mean.values()))
    overall, printed = every.mean(axis=0), np.array(list(PUBLISHED.values()))
    better, theirs = ordered(every), ordered(printed)
    words = f"in {better.sum()} of {better.size} pairs; {overall[2]:.1f} % for ε=1, {overall[1]:.1f} % for 0.4"
    out.append(shape("larger ε and smaller R give better accuracy",
                     f"yes; in Table I {theirs.sum()} of {theirs.size}", words, better.all(),
                     why=alike(results, better, theirs)))  # fmt: skip
    strongest = CELLS.index((0.4, 9))
    out.append(number("points lost at ε=0.4, R=9, mean of the sets", np.mean(printed[:, 0] - printed[:, strongest]),
                      overall[0] - overall[strongest], absolute=WITHIN, why="the table is one run"))  # fmt: skip
    best = np.max([mean[name] for name in INFERIOR], axis=0)
    least = np.min([mean[name] for name in PUBLISHED if name not in INFERIOR], axis=0)
    splice = bool(np.all(mean["banana"] < least))  # then Banana is
    out.append(shape(
        "Banana and Splice: less accurate than every other set, in all seven cells", "inferior in all settings",
        f"in {np.sum(best < least)} of {len(CELLS)}; Banana alone in {np.sum(mean['banana'] < least)}",
        np.all(best < least), why=f"Banana is, and Splice is not: {CAUSES['splice']}" if splice else "",
    ))  # fmt: skip
    return out


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(11, 5.2))
    axes = figure.subplots(1, len(PUBLISHED), sharey=True)
    labels = ["no privacy"] + [f"ε={e:g}, R={r}" for e, r in CELLS[1:]]
    for ax, (name, published) in zip(axes, PUBLISHED.items(), strict=True):
        found = results.stack("accuracy", name=name)
        place = np.arange(len(CELLS))
        ax.hlines(place, found.min(axis=0), found.max(axis=0), color="C0", linewidth=5, alpha=0.3)
        ax.plot(found.mean(axis=0), place, "o", color="C0", label="measured, mean and range")
        ax.plot(published, place, "x", color="C1", markeredgewidth=2, label="Table I")
        ax.set(title=name, xlim=(40, 100), yticks=place, yticklabels=labels)
    axes[0].invert_yaxis()
    figure.supxlabel("accuracy on the test rows, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure
