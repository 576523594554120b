"""k classes: randomised response on k labels, and the loss corrected for it in the place of (19).

The paper has two classes; for k the unbiased loss is ℓ̂(y') = [(e^ε + k - 1) ℓ(y') - Σ_c ℓ(c)]/(e^ε - 1). Synthetic:
4 Gaussian classes of unequal size in 4 dimensions, 10 servers with 1,000 users each, multinomial loss, a = 0.1, on
the intercept too: a corrected share of a class may be negative, and then the loss has no minimum without it. Labels
are drawn anew in every trial, rows are not. "Uncorrected" takes the reported labels for true. Oracles: with q =
1/(e^ε - 1) a reported label enters as ĉ = (1 + kq)e_{y'} - q1, of mean e_y and total variance (1 + kq)²(1 - Σ_c
π_c²), π the chances of the k reports; the loss of 10,000 new rows under the model of the true labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import logsumexp

from confide import Graph, Problem, Shards, losses, penalties, simulate
from confide.algorithms import PDML
from confide.papers.reproduce import Finding, Results, Trials, number, own
from confide.privacy import randomize_labels

title = "More than two classes"
trials = Trials(published=None, full=50, quick=10)
data = ()

SERVERS, USERS, FEATURES, CLASSES, BATCH = 10, 1000, 4, 4, 10
REPORTS = 1 << 20  # seeds of the reports, apart from those of the rows
EPSILONS, STRENGTH = (1.0, 2.0, 4.0), 0.1
SHARES = (0.4, 0.3, 0.2, 0.1)


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"epsilon": e, "first": first, "count": min(BATCH, trials - first)}
            for first in range(0, trials, BATCH) for e in EPSILONS]  # fmt: skip


def people(count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(CLASSES, count, p=SHARES)
    return 1.5 * np.eye(FEATURES)[y] + rng.normal(size=(count, FEATURES)), y.astype(float)


def pose(y: Any, loss: losses.Loss) -> Problem:
    X, _ = people(SERVERS * USERS, 0)
    rows = np.column_stack([X, np.ones(len(X))])
    return Problem(Shards.from_groups(rows, y, np.arange(len(y)) % SERVERS), loss, penalties.L2(STRENGTH))


def measure(epsilon: float, first: int, count: int) -> dict[str, Any]:
    _, y = people(SERVERS * USERS, 0)
    plain = losses.Multinomial(CLASSES)
    noisy = losses.NoisyLabels(plain, epsilon)
    out: dict[str, list[Any]] = {"slope": [], "corrected": [], "uncorrected": []}
    for seed in range(first, first + count):
        told = randomize_labels(y, epsilon, CLASSES, seed=REPORTS + seed)
        right, wrong = pose(told, noisy), pose(told, plain)
        out["slope"].append(right.pooled.gradient(np.zeros((1, 1, right.width)))[0, 0] / SERVERS)
        out["corrected"].append(score(right.solve()))
        out["uncorrected"].append(score(wrong.solve()))
    apart = 0.0
    if epsilon == EPSILONS[-1]:
        run = simulate(right, Graph.ring(SERVERS), PDML(rounds=300, coupling=0.05), record=())
        apart = float(np.abs(run.estimates - right.solve()).max())
    return {**{k: np.array(v) for k, v in out.items()}, "apart": apart}


def score(model: Any) -> tuple[float, float]:
    """Mean loss and accuracy in per cent on 10,000 new rows with their true labels."""
    X, y = people(10_000, 1)
    W = model.reshape(CLASSES, -1)
    z = X @ W[:, :-1].T + W[:, -1]
    right = z[np.arange(len(y)), y.astype(int)]
    return float(np.mean(logsumexp(z, axis=1) - right)), 100 * float(np.mean(z.argmax(axis=1) == y))


def truth() -> tuple[Any, tuple[float, float]]:
    """Gradient at 0 and score of the optimum with true labels."""
    problem = pose(people(SERVERS * USERS, 0)[1], losses.Multinomial(CLASSES))
    return problem.pooled.gradient(np.zeros((1, 1, problem.width)))[0, 0] / SERVERS, score(problem.solve())


def expected(epsilon: float) -> float:
    """Total variance of the gradient at 0, in closed form."""
    X, _ = people(SERVERS * USERS, 0)
    q, keep = 1 / np.expm1(epsilon), np.exp(epsilon) / (np.exp(epsilon) + CLASSES - 1)
    chances = np.array([keep] + [(1 - keep) / (CLASSES - 1)] * (CLASSES - 1))
    each = (1 + CLASSES * q) ** 2 * (1 - np.sum(chances**2))
    return float(each * np.sum(np.sum(X**2, axis=1) + 1) / len(X) ** 2)


def table(results: Results) -> list[dict[str, Any]]:
    best = truth()[1]
    rows = []
    for e in EPSILONS:
        row = {"epsilon": e, "variance": results.stack("slope", epsilon=e).var(axis=0, ddof=1).sum(),
               "closed_form": expected(e), "true_labels_loss": best[0], "true_labels_accuracy": best[1]}  # fmt: skip
        for how in ("corrected", "uncorrected"):
            loss, right = results.stack(how, epsilon=e).mean(axis=0)
            row |= {f"{how}_loss": loss, f"{how}_accuracy": right}
        rows.append(row)
    return rows


def findings(results: Results) -> list[Finding]:
    slope, best = truth()
    off, apart = [], max(v["apart"] for _, v in results)
    for e in EPSILONS:
        drawn = results.stack("slope", epsilon=e)
        off.append(np.max(np.abs(drawn.mean(axis=0) - slope) * np.sqrt(len(drawn)) / drawn.std(axis=0, ddof=1)))
    loss = {(h, e): results.stack(h, epsilon=e)[:, 0].mean() for h in ("corrected", "uncorrected") for e in EPSILONS}
    out = [number(f"total variance of the gradient at 0, ε={e:g} (closed form beside measured)", expected(e),
                  results.stack("slope", epsilon=e).var(axis=0, ddof=1).sum(), 0.3,
                  why="the variance of so few trials", ours=True) for e in EPSILONS]  # fmt: skip
    words = ", ".join(f"ε={e:g}: {loss['corrected', e]:.3f} and {loss['uncorrected', e]:.3f}" for e in EPSILONS)
    return [
        *out,
        own("the corrected loss is unbiased for k classes",
              f"at most {max(off):.1f} standard errors off in {slope.size} coordinates", max(off) < 4.5),
        own("corrected beats uncorrected in test loss from ε = 1",
              f"{words}; true labels {best[0]:.3f}",
              all(loss["corrected", e] < loss["uncorrected", e] for e in EPSILONS if e >= 1)),
        own("PDML reaches the optimum with four classes", f"within {apart:.1g}", apart < 1e-5),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(9, 4))
    axes = figure.subplots(1, 2)
    best = truth()[1]
    for column, (ax, text) in enumerate(zip(axes, ("mean loss on test rows", "accuracy on test rows, %"), strict=True)):
        for how in ("corrected", "uncorrected"):
            y = np.array([results.stack(how, epsilon=e)[:, column] for e in EPSILONS])
            (line,) = ax.plot(EPSILONS, y.mean(axis=1), "o-", label=how)
            ax.fill_between(EPSILONS, y.min(axis=1), y.max(axis=1), color=line.get_color(), alpha=0.2, linewidth=0)
        ax.axhline(best[column], color="C6", linestyle="--", label="true labels")
        ax.set(xscale="log", xlabel="ε of the labels", ylabel=text)
        ax.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        ax.set_xticks([], minor=True)
    axes[0].legend()
    return figure
