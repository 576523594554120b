"""Figure 1: non-private R-ADMM and MR-ADMM against ADMM, over 5 and 20 agents, and what they converge to.

(a) η = 0.5 with several γ, 5 and 20 agents, until all have converged (the figure shows the first 50 iterations);
(b) η_i(2k-1) = η_i·q_i^k, unequal over the agents, q_i = 1 + m·q_2(i),
m = 1 to 5; (c) η(2k-1) = q^k for all agents.
Chosen where the text leaves it open: γ = 0, 0.5, 2 in (a), q = 1.01 to 1.05 in (c).
Two things the text does not say are measured too. With unequal η_i the dual steps are unequal, the duals do not sum to
zero, and the limit is argmin Σ O_i/η_i; a common dual step (`common_dual=True`) is the corrected form. A penalty that
grows as q^k is unbounded, against the condition of Theorem IV.1: the steps die out and the iterate freezes short of the
optimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confide
from confide.papers.reproduce import Finding, Results, Trials, own, shape

from . import _draw as d
from . import _setting as s

title = "Convergence of R-ADMM and MR-ADMM without noise"
trials = Trials(published=1, full=1, quick=1)
data = ("adult",)

ETA_A = 0.5  # Fig. 1(a)
GAMMAS = (0.0, 0.5, 2.0)
ROUNDS_A, ROUNDS_B, ROUNDS_LIMIT = {5: 200, 20: 1200}, 60, 300
NETWORKS = (5, 20)
REACHED = 1e-4  # in loss, from the centralised optimum: what counts as converged
ODD = 49  # the last odd iteration of the figure
SIMILAR = 1.5  # so many times ADMM's distance to the optimum, in loss, or less
SLOWED = "only the largest γ is not (γ = 2 is chosen here): it slows R-ADMM down, as the text says of a larger γ itself"
ETA_B = (1.0, 1.03, 1.02, 0.8, 1.01)  # Fig. 1(b)
Q2 = (0.01, 0.005, 0.003, 0.015, 0.01)
SPEEDS = (0, 1, 2, 3, 4, 5)  # 0: R-ADMM, the black curve


def tasks(trials: int) -> list[dict[str, Any]]:
    return [
        *({"part": "a", "agents": n, "gamma": g} for n in NETWORKS for g in (None, *GAMMAS)),  # None: ADMM
        *({"part": "b", "speed": m} for m in SPEEDS), *({"part": "c", "speed": m} for m in SPEEDS[1:]),
        *({"part": "limit", "common": common} for common in (False, True)),
        *({"part": "freeze", "growth": q} for q in (1.0, s.GROWTH)),
    ]  # fmt: skip


def measure(
    part: str, agents: int = s.AGENTS, gamma: float | None = None, speed: int = 0, common: bool = False,
    growth: float = 1.0,
) -> dict[str, Any]:  # fmt: skip
    unequal = {"eta": np.array(ETA_B), "growth": 1.0 + speed * np.array(Q2)}
    method = {
        "a": s.admm(ETA_A, ROUNDS_A[agents]) if gamma is None else s.r_admm(0, ETA_A, gamma, rounds=ROUNDS_A[agents]),
        "b": s.mr_admm(0, rounds=ROUNDS_B, **unequal) if speed else s.r_admm(0, rounds=ROUNDS_B),
        "c": s.mr_admm(0, 1.0 + 0.01 * speed, rounds=ROUNDS_B),
        "limit": s.mr_admm(0, 1.0, ETA_B, rounds=ROUNDS_LIMIT, common_dual=common),
        "freeze": s.mr_admm(0, growth, rounds=ROUNDS_LIMIT),
    }[part]
    p = s.problem(agents)
    run = confide.simulate(p, s.network(agents), method, record=("risk",))
    best = p.solve()
    out = {"loss": run.history["risk"][:, 0], "best": s.loss_of(best, agents), "away": apart(run.model[0], best)}
    if part == "limit":
        weighted = weighted_optimum()
        out |= {"away_weighted": apart(run.model[0], weighted), "optima_apart": apart(weighted, best)}
    return out


def apart(f: s.Array, g: s.Array) -> float:
    """‖f - g‖/‖g‖."""
    return float(np.linalg.norm(f - g) / np.linalg.norm(g))


def weighted_optimum() -> s.Array:
    """argmin Σ O_i/η_i: the centralised problem with each agent's rows weighed by 1/η_i."""
    own = s.shards()
    weight = (1 / np.array(ETA_B)) / np.mean(1 / np.array(ETA_B))
    rows = {"weight": np.repeat(weight, own.sizes)}
    parted = confide.Shards(own.X, own.y, own.offsets, own.names, rows)
    return confide.Problem(parted, confide.losses.Logistic(), confide.penalties.L2(s.RHO / s.C)).solve()


def table(results: Results) -> list[dict[str, Any]]:
    return [{**task, "optimum": value["best"], "loss_first": value["loss"][0], "loss_50": value["loss"][49],
             "loss_last": value["loss"][-1], "distance_to_optimum": value["away"],
             "distance_to_weighted_optimum": value.get("away_weighted", "")} for task, value in results]  # fmt: skip


def gap(value: dict[str, Any], at: int = 0) -> float:
    """The loss above the optimum's after `at` iterations; 0: the last one."""
    return float(value["loss"][at - 1] - value["best"])


def swing(loss: s.Array) -> float:
    """Mean |L(2k) - L(2k-1)| over the first ten pairs."""
    return float(np.mean(np.abs(loss[1:20:2] - loss[0:20:2])))


def raised(value: dict[str, Any]) -> tuple[int, int, int]:
    """Pairs 2k-1, 2k before it has converged, even iterations of them that raise the loss, and odd ones after such a
    rise that do not end below the odd one before it."""
    away = np.flatnonzero(np.abs(value["loss"] - value["best"]) >= REACHED)
    loss = value["loss"][: away[-1] + 1 if away.size else 0]
    odd, even = loss[0::2], loss[1::2]
    pairs = min(len(even), len(odd) - 1)
    up = even[:pairs] > odd[:pairs]
    return max(pairs, 0), int(np.sum(up)), int(np.sum(up & (odd[1 : pairs + 1] >= odd[:pairs])))


def said_of(n: int, a: dict[float | None, dict[str, Any]]) -> list[Finding]:
    """What the text says of Fig. 1(a), for one of its two networks; `a` is by γ, None for ADMM."""
    at, names = f"Fig. 1(a), {n} agents", {g: "ADMM" if g is None else f"γ={g:g}" for g in a}
    swings, odd = [swing(a[g]["loss"]) for g in GAMMAS], [gap(a[g], ODD) for g in GAMMAS]
    admm, ups = gap(a[None], ODD), {g: raised(a[g]) for g in GAMMAS}
    rates = {g: gap(a[g], ODD) / admm for g in GAMMAS}
    far = [g for g in GAMMAS if not 1 / SIMILAR < rates[g] < SIMILAR]
    return [
        shape(f"{at}: ADMM and R-ADMM reach the centralised optimum, whatever γ", "converge",
              f"after {ROUNDS_A[n]} iterations " + ", ".join(f"{gap(a[g]):+.0e} ({names[g]})" for g in a)
              + f" from it in loss; {gap(a[0.5], 50):.4f} after 50", all(abs(gap(v)) < REACHED for v in a.values())),
        shape(f"{at}: even iterations may raise the loss, odd ones always make up for it", "always",
              "until converged, " + ", ".join(f"{u} of {p} even ones raise it, {u - m} are made up for ({names[g]})"
                                              for g, (p, u, m) in ups.items()),
              any(u for _, u, _ in ups.values()) and not any(m for *_, m in ups.values())),
        shape(f"{at}: over odd iterations, as fast as ADMM, for every γ (within {SIMILAR:g} times)", "similar rate",
              f"L({ODD}) above the optimum, over ADMM's {admm:.4f}: "
              + ", ".join(f"{r:.2f} ({names[g]})" for g, r in rates.items()),
              not far, why=SLOWED if far == [max(GAMMAS)] and rates[far[0]] > 1 else ""),
        shape(f"{at}: larger γ, smaller oscillation", "yes",
              "mean |L(2k)-L(2k-1)| " + ", ".join(f"{x:.4f}" for x in swings), all(np.diff(swings) < 0)),
        shape(f"{at}: larger γ, slower", "yes",
              f"L({ODD}) above the optimum " + ", ".join(f"{x:.5f}" for x in odd), all(np.diff(odd) > 0)),
    ]  # fmt: skip


def findings(results: Results) -> list[Finding]:
    a = {(t["agents"], t["gamma"]): v for t, v in results.where(part="a")}
    speeds = {p: [float(v["loss"][49]) for _, v in results.where(part=p)] for p in ("b", "c")}
    start = float(results.one(part="b", speed=0)["loss"][49])
    still, moving = (results.one(part="freeze", growth=q) for q in (s.GROWTH, 1.0))
    frozen = still["loss"][[149, -1]] - still["best"]
    free = moving["loss"][[149, -1]] - moving["best"]
    plain, fixed = (results.one(part="limit", common=c) for c in (False, True))
    return [
        *(one for n in NETWORKS for one in said_of(n, {g: a[n, g] for g in (None, *GAMMAS)})),
        *(shape(f"Fig. 1({p}): a growing η slows the convergence, and the faster it grows the more", "yes",
                f"L(50) {start:.4f} (R-ADMM); " + ", ".join(f"{x:.4f}" for x in at[-5:]),
                all(np.diff([start, *at[-5:]]) > 0))
          for p, at in speeds.items()),
        shape("Fig. 1(b), (c): convergence to the optimum with growing η", "attained",
              f"q=1.04: {frozen[0]:.4f} above the optimum after 150 iterations, {frozen[1]:.4f} after {ROUNDS_LIMIT}; "
              f"R-ADMM {free[0]:.1e}, {free[1]:.1e}", frozen[1] < 0.1 * frozen[0],
              why="q^k is unbounded, against Theorem IV.1: the steps die out and the iterate freezes short of it"),
        shape("Fig. 1(b): unequal, constant η_i reach the optimum", "attained",
              f"relative distance {plain['away']:.1e}; {plain['away_weighted']:.1e} from argmin Σ O_i/η_i",
              plain["away"] < plain["away_weighted"],
              why="unequal dual steps: the duals do not sum to zero, and the limit is argmin Σ O_i/η_i"),
        own("Fig. 1(b), corrected: a common dual step reaches the optimum",
            f"relative distance {fixed['away']:.1e}; {fixed['away_weighted']:.1e} from argmin Σ O_i/η_i",
            fixed["away"] < 0.5 * fixed["away_weighted"]),
    ]  # fmt: skip


def draw(results: Results) -> Figure:
    figure, axes = d.panels(1, 3)
    for task, value in results.where(part="a"):
        gamma, dashed = task["gamma"], task["agents"] == 5
        name = "ADMM" if gamma is None else f"R-ADMM, γ={gamma:g}"
        colour = "black" if gamma is None else d.CYCLE[GAMMAS.index(gamma)]
        look = {"color": colour, "linestyle": "--" if dashed else "-", "linewidth": 1.1}
        axes[0].plot(np.arange(1, 51), value["loss"][:50] - value["best"], label=name if dashed else None, **look)
    for ax, part in zip(axes[1:], "bc", strict=True):
        for m in SPEEDS:
            value = results.one(part="b" if m == 0 else part, speed=m)
            ax.plot(np.arange(1, ROUNDS_B + 1), value["loss"] - value["best"], linewidth=1.1,
                    color="black" if m == 0 else d.CYCLE[m - 1],
                    label="R-ADMM" if m == 0 else f"m={m}" if part == "b" else f"q={1 + 0.01 * m:.2f}")  # fmt: skip
    titles = ("(a) η=0.5; dashed N=5, solid N=20", "(b) η$_i$q$_i^k$, q$_i$=1+m·q$_2$(i)", "(c) η=q$^k$")
    for ax, text in zip(axes, titles, strict=True):
        ax.set(title=text, xlabel="iteration t", yscale="log")
        d.plain_ticks(ax)
        ax.legend(fontsize=7)
    axes[0].set_ylabel("L(t) above the optimum's loss")
    return figure
