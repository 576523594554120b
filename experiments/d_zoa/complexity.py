"""Computation of one round, counted: operations of D-ZOA as T, J, P and N_k are doubled, and of a gradient.

Section VI: D-ZOA "requires O(TJPN_k) operations to perform (4)", the baselines O(P²N_k) (DP-ADMM, DPSGD) and
O(P²N_k + P³) (PVP, DVP). Nothing is timed. The loss is a Python function, of which D-ZOA asks values only, made of
numbers that count their additions and multiplications, so that P is counted too. What D-ZOA does besides, draws
and steps, is not counted: it does not grow with N_k. From T = 10, J = 5, P = 10, N_k = 20, one is doubled at a time.
The gradient of the squared loss, 2Xᵀ(Xβ - y)/N_k with β of the first round, is calculated with the same numbers. PVP's
and DVP's argmin is not counted: how they are to be calculated is open in the text.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.algorithms import DZOA
from confide.papers.reproduce import Finding, Results, Trials, own, shape
from confide.runs.driver import Driver

from ._setting import AGENTS, COUPLING, LIPSCHITZ, NETWORK, RADIUS, SMOOTHING, STEP, STRENGTH

title = "Operations of one round, counted"
trials = Trials(published=None, full=2, quick=1)  # data sets; the counts do not depend on them
data = ()

BASE = {"T": 10, "J": 5, "P": 10, "N": 20}
WITHIN = 0.05
NAMES = {"T": "T", "J": "J", "P": "P", "N": "N_k"}


class Counted(float):
    """A number that counts the operations it takes part in."""

    done = 0

    def __add__(self, other: float) -> Counted:
        Counted.done += 1
        return Counted(float.__add__(self, other))

    def __sub__(self, other: float) -> Counted:
        Counted.done += 1
        return Counted(float.__sub__(self, other))

    def __mul__(self, other: float) -> Counted:
        Counted.done += 1
        return Counted(float.__mul__(self, other))


counted = np.frompyfunc(Counted, 1, 1)  # an array of them


def tasks(trials: int) -> list[dict[str, Any]]:
    return [{"doubled": d, "data_set": i} for i in range(trials) for d in ("", *BASE)]


def shards(rows: int, features: int, data_set: int, weight: float | None = None) -> confide.Shards:
    rng = np.random.default_rng((20221, data_set))
    X = rng.normal(size=(AGENTS * rows, features))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = X @ rng.normal(size=features) + rng.normal(scale=math.sqrt(0.1), size=len(X))
    party = np.repeat(np.arange(AGENTS), rows)
    columns = {"weight": np.full(len(X), weight)} if weight else None
    return confide.Shards.from_groups(X, y, party, columns)


def measure(doubled: str, data_set: int) -> dict[str, Any]:
    size = {k: v * (2 if k == doubled else 1) for k, v in BASE.items()}
    rows, penalty = shards(size["N"], size["P"], data_set), confide.penalties.L1(STRENGTH)
    asked = [0]

    def values(beta: Any, X: Any, y: Any) -> Any:
        asked[0] += len(y)
        apart = counted(X) @ counted(beta) - counted(y)
        return np.asarray(apart * apart, float)

    method = DZOA(rounds=1, coupling=COUPLING, inner_steps=size["T"], directions=size["J"], step=STEP, radius=RADIUS,
                  lipschitz=LIPSCHITZ, smoothing=SMOOTHING)  # fmt: skip
    box = confide.Problem(rows, confide.losses.BlackBox(function=values, coefficients=size["P"]), penalty)
    twice = shards(size["N"], size["P"], data_set, weight=2.0)  # confide's squared loss is half of the paper's
    known = confide.Problem(twice, confide.losses.Squared(), penalty)
    sent = []
    for task in (box, known):
        Counted.done, asked[0] = 0, 0
        run = Driver(task, NETWORK, method, [data_set])
        run.step()
        sent.append(np.array(run.estimates[0]))
        if task is box:
            evaluations, operations = asked[0], Counted.done
    X, y = rows.part(0)
    Counted.done = 0
    A, beta = counted(X), sent[0][0]
    gradient = A.T @ (A @ counted(beta) - counted(y))
    once = Counted.done
    moved = np.asarray(gradient, float) - X.T @ (X @ beta - y)
    return {"evaluations": np.array([float(evaluations)]), "operations": np.array([float(operations)]),
            "gradient": np.array([float(once)]), "apart": np.array([np.max(np.abs(sent[0] - sent[1]))]),
            "gradient apart": np.array([np.max(np.abs(moved))])}  # fmt: skip


def ratio(results: Results, key: str, doubled: str) -> float:
    """How many times as large the count is when one size is doubled."""
    return float(results.stack(key, doubled=doubled).mean() / results.stack(key, doubled="").mean())


def table(results: Results) -> list[dict[str, Any]]:
    return [{"doubled": NAMES.get(d, "nothing"), **{k: v * (2 if k == d else 1) for k, v in BASE.items()},
             "evaluations of a row, all agents": results.stack("evaluations", doubled=d).mean(),
             "operations, all agents": results.stack("operations", doubled=d).mean(),
             "operations of one agent's gradient": results.stack("gradient", doubled=d).mean()}
            for d in ("", *BASE)]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    asked = {d: ratio(results, "evaluations", d) for d in BASE}
    done = {d: ratio(results, "operations", d) for d in BASE}
    steep = {d: ratio(results, "gradient", d) for d in ("P", "N")}
    apart = max(float(results.stack(k).max()) for k in ("apart", "gradient apart"))
    more = float(results.stack("operations", doubled="").mean() / AGENTS / results.stack("gradient", doubled="").mean())
    said = ", ".join(f"{NAMES[d]} {x:.3g}" for d, x in done.items())
    return [
        shape("D-ZOA's operations for (4) double with each of T, J, P and N_k (within 5 %)", "O(TJPN_k)",
              f"doubled, times: {said}", all(abs(x / 2 - 1) <= WITHIN for x in done.values())),
        shape("rows evaluated: doubled with each of T, J and N_k (within 5 %), the same for another P", "O(T m_k)",
              "times: " + ", ".join(f"{NAMES[d]} {x:.3g}" for d, x in asked.items()),
              all(abs(x / (1 if d == "P" else 2) - 1) <= WITHIN for d, x in asked.items())),
        shape("D-ZOA takes more operations than a gradient of DP-ADMM, here with T = 10 and J = 5",
              "relatively high computational complexity due to its inner loop", f"{more:.3g} times", more > 1),
        own("a gradient's operations double with P and with N_k: O(PN_k), and the text's O(P²N_k) is loose",
            f"doubled, times: P {steep['P']:.3g}, N_k {steep['N']:.3g}",
            all(abs(x / 2 - 1) <= WITHIN for x in steep.values())),
        own("what is counted is D-ZOA and the gradient: the compiled D-ZOA sends the same, and NumPy's gradient is the "
            "same (within 1e-6)", f"{apart:.1e} apart", apart < 1e-6),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(7.2, 4.2))
    ax = figure.subplots()
    place = np.arange(len(BASE))
    for shift, key, colour, text in ((-0.2, "operations", "#0072B2", "D-ZOA, (4)"),
                                     (0.2, "gradient", "#D55E00", "one gradient")):  # fmt: skip
        ax.bar(place + shift, [ratio(results, key, d) for d in BASE], width=0.38, color=colour, label=text)
    ax.axhline(2.0, color="#22303c", linewidth=1, linestyle=":")
    ax.set(xticks=place, xticklabels=[f"{NAMES[d]}: {v} to {2 * v}" for d, v in BASE.items()], ylim=(0, 2.6),
           ylabel="operations, times those of the base", title="operations, one size doubled")  # fmt: skip
    ax.legend(loc="upper right", ncols=2)
    return figure
