"""What the figures share: Adult over five (or twenty) agents, and the methods of the paper in its own units.

The paper minimises Σ_i (C/B_i) Σ_n ℓ + (ρ/N)·½‖f‖²; confide's problem is that divided by C. The steps are the same with
η/C, γ/C, a dual step θ/C and noise of rate C·α in the objective (M-ADMM's noise sits beside f and keeps its rate), and
the penalty is ρ/C. Every bound and every total comes out the same.

Chosen where the text leaves it open: 45,222 complete rows rather than 45,223 and 104 features (one column per category,
numeric columns divided by public bounds) without an intercept; one random split into 40,000 and 5,222 rows for all
runs; the five agents' graph is `Graph.random(5, 5, seed=2)` of degrees 3, 2, 2, 1, 2; f(0) = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import confide
from confide.algorithms import ADMM, DVP, MADMM, MRADMM, RADMM
from confide.papers.datasets import load_adult

Array = NDArray[np.float64]

C, RHO, GAMMA, ETA = 1750.0, 0.22, 0.5, 1.0  # Section VIII
TRAIN, AGENTS, ROUNDS, RUNS = 40_000, 5, 50, 10
ALPHAS = (2.0, 1.0, 0.5)  # Fig. 5
GROWTH = 1.04  # Section VIII-B2: η(2k-1) = 1.04^k
M_GROWTH = 1.02  # M-ADMM's η(t) = 1.02^t: open in the text; reaches MR-ADMM's last penalty in its last round
THETA = 1.0  # M-ADMM's dual step: open in the text
DELTA = 1e-5  # of the exact totals
TOLERANCE = 1e-7  # gradient norm at which an argmin stops: 1e-4 in f, beside noise of 10 to 100


# --- the problem ------------------------------------------------------------------------------------------------------


@cache
def adult() -> tuple[sp.csr_array, Array]:
    return load_adult()


@cache
def split(seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows for training, and the others."""
    order = np.random.default_rng([2020, seed]).permutation(len(adult()[1]))
    return order[:TRAIN], order[TRAIN:]


@cache
def shards(agents: int = AGENTS, seed: int = 0) -> confide.Shards:
    X, y = adult()
    rows = split(seed)[0]
    return confide.Shards.split(X[rows], y[rows], agents, seed=seed).clip_rows(1.0)


@cache
def problem(agents: int = AGENTS, rho: float = RHO, seed: int = 0) -> confide.Problem:
    return confide.Problem(shards(agents, seed), confide.losses.Logistic(), confide.penalties.L2(rho / C))


def network(agents: int = AGENTS) -> confide.Graph:
    return confide.Graph.random(agents, 5 if agents == 5 else 2 * agents, seed=2)


def test_error(coefficients: Array, seed: int = 0) -> Array:
    """Share of the test rows that the classifiers (…, width) get wrong."""
    X, y = adult()
    rows = split(seed)[1]
    wrong = np.where(X[rows] @ np.atleast_2d(coefficients).T >= 0, 1.0, -1.0) != y[rows][:, None]
    return np.asarray(wrong.mean(axis=0))


# --- the methods, in the paper's units --------------------------------------------------------------------------------


def admm(eta: float = ETA, rounds: int = ROUNDS) -> ADMM:
    return ADMM(rounds=rounds, coupling=eta / C, tolerance=TOLERANCE)


def r_admm(alpha: Any = 0.0, eta: float = ETA, gamma: float = GAMMA, **more: Any) -> RADMM:
    more = {"rounds": ROUNDS, "tolerance": TOLERANCE} | more
    return RADMM(coupling=eta / C, damping=gamma / C, noise_rate=np.asarray(alpha) * C, **more)


def mr_admm(alpha: Any = 0.0, growth: Any = GROWTH, eta: Any = ETA, gamma: float = GAMMA, **more: Any) -> MRADMM:
    more = {"rounds": ROUNDS, "tolerance": TOLERANCE} | more
    return MRADMM(
        coupling=np.asarray(eta) / C, growth=growth, damping=gamma / C, noise_rate=np.asarray(alpha) * C, **more
    )


def dvp(alpha: Any) -> DVP:
    return DVP(rounds=ROUNDS, coupling=ETA / C, noise_rate=np.asarray(alpha) * C, tolerance=TOLERANCE)


def m_admm(alpha: Any) -> MADMM:
    return MADMM(
        rounds=ROUNDS, coupling=ETA / C, growth=M_GROWTH, dual_step=THETA / C, noise_rate=np.asarray(alpha) * 1.0,
        tolerance=TOLERANCE,
    )  # fmt: skip


def at_bound(make: Callable[[float], Any], bound: float) -> Any:
    """The method with the one α at which its most exposed agent's published bound, affine in α, is `bound`."""
    one, two = (claimed(make(alpha)) for alpha in (1.0, 2.0))
    return make(float(np.min(1.0 + (bound - one) / (two - one))))


# --- what is measured -------------------------------------------------------------------------------------------------


def claimed(method: Any) -> Array:
    """The published bound of every agent."""
    (claim,) = method.claims(problem().public(network()), DELTA)
    return np.broadcast_to(np.asarray(claim.epsilon, float), AGENTS)


def pure(method: Any) -> Array:
    """Total pure ε of every agent."""
    events = chain.from_iterable(method.events(problem().public(network())))
    return np.broadcast_to(np.asarray(confide.privacy.epsilon(events, 0.0), float), AGENTS)


def bound_by_round(method: Any) -> Array:
    """P(t): the largest agent's published bound after 1, 2, … iterations."""
    return np.array([claimed(replace(method, rounds=t)).max() for t in range(1, method.rounds + 1)])


def spent(method: Any) -> dict[str, Any]:
    """The published bound (where there is one), the exact ε at δ, and the guarantee."""
    public = problem().public(network())
    one_each = np.unique(network().degrees, return_index=True)[1]  # agents of one degree cost the same
    events = chain.from_iterable(method.events(replace(public, agents=one_each)))
    return {
        "bound": bound_by_round(method) if method.claims(public, DELTA) else np.zeros(0),
        "exact": float(np.max(confide.privacy.epsilon(events, DELTA))),
        "guarantee": str(method.guarantee(public).label),
    }  # fmt: skip


def trained(method: Any, seeds: list[int]) -> dict[str, Any]:
    """L(t) and the averaged classifier's test error (runs, rounds), and the latter at the end (runs,)."""
    X, y = adult()
    rows = split()[1]
    run = confide.simulate(
        problem(), network(), method, range(*seeds), record=("risk", "test"), test=(X[rows], y[rows])
    )
    errors = 1.0 - run.history["test"].T
    return {"loss": run.history["risk"].T, "errors": errors, "error": errors[:, -1]}


def batches(trials: int) -> list[list[int]]:
    """Runs 0 to `trials` in pieces, the first of two, so that a full run takes up a quick one."""
    cuts = sorted({0, min(2, trials), *range(2, trials, 4), trials})
    return [[a, b] for a, b in pairwise(cuts)]


def summary(results: Any) -> dict[str, float]:
    """Mean and range over the runs of loss and test error after the last iteration."""
    loss, error = results.stack("loss")[:, -1], results.stack("error")
    return {
        "loss": float(loss.mean()), "loss_range": float(np.ptp(loss)),
        "test_error": float(error.mean()), "test_error_range": float(np.ptp(error)), "runs": loss.size,
    }  # fmt: skip


def at_equal_privacy(cases: list[tuple[str, float]], trials: int) -> list[dict[str, Any]]:
    """Tasks of a comparison: the runs of every method and α, and once what it spends."""
    return [{"part": "run", "method": m, "alpha": a, "seeds": b} for b in batches(trials) for m, a in cases] + [
        {"part": "privacy", "method": m, "alpha": a} for m, a in cases
    ]


def compared(results: Any, **totals: Callable[[dict[str, Any]], float]) -> list[dict[str, Any]]:
    """Its table; `totals` are columns made of what a method spends."""
    rows = []
    for task, spent in results.where(part="privacy"):
        case = {"method": task["method"], "alpha": task["alpha"]}
        rows.append({**case, **summary(results.where(part="run", **case)), **{n: f(spent) for n, f in totals.items()},
                     "exact_epsilon": spent["exact"], "delta": DELTA, "guarantee": spent["guarantee"]})  # fmt: skip
    return rows


@cache
def optimum() -> tuple[float, float]:
    """Loss and test error of the centralised optimum."""
    best = problem().solve()
    return loss_of(best), float(test_error(best)[0])


def loss_of(coefficients: Array, agents: int = AGENTS) -> float:
    """Average loss over the training rows of one classifier."""
    own = problem(agents)
    same = np.broadcast_to(coefficients, (1, agents, coefficients.size)).copy()
    return float(np.mean(own.block.value(same) / (own.block.scale * own.shards.sizes)))
