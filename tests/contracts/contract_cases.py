"""One entry per method: a setting without noise that must reach the optimum, and one with its noise on."""

from dataclasses import dataclass
from functools import cache

import cvxpy as cp
import numpy as np

import confide
from confide.algorithms import REGISTRY, Algorithm

L, P = confide.losses, confide.penalties
SIZES = (12, 40, 25, 60, 33)  # ragged on purpose
FEATURES = 4


@cache
def rows():
    rng = np.random.default_rng(7)
    n = sum(SIZES)
    X = rng.normal(size=(n, FEATURES))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    z = X @ np.array([1.5, -2.0, 1.0, 0.5]) + 0.3
    return X, z + 0.3 * rng.normal(size=n), np.where(z + rng.logistic(size=n) > 0, 1.0, -1.0)


KINDS = {
    "logistic": (L.Logistic(), P.L2(0.5)),
    "squared": (L.Squared(), P.L2(0.5)),
    "lasso": (L.Squared(), P.L1(0.3)),
    "quantile": (L.Quantile(0.3), P.L2(0.5)),
    "hinge": (L.Hinge(), P.L2(0.5)),
    "noisy labels": (L.NoisyLabels(L.Logistic(), 1.0), P.L2(0.5)),
}


@cache
def problem(kind, penalty=None, flip=False):
    """The problem of this kind; `flip` gives other rows of the same shape and bounds."""
    X, y, s = rows()
    loss, default = KINDS[kind]
    target = s if loss.labels == "sign" else y
    if flip:
        X, target = -X[:, ::-1].copy(), (-target if loss.labels == "sign" else target + 1.0)
    shards = confide.Shards.from_groups(X, target, np.repeat(np.arange(5), SIZES)).clip_rows(1.0)
    return confide.Problem(shards, loss, penalty or default)


@cache
def optimum(kind, weights=(1.0,) * 5):
    """argmin Σ_k weight_k·f_k by cvxpy: an optimum we did not compute ourselves."""
    X, y, s = rows()
    penalty = KINDS[kind][1]
    beta = cp.Variable(FEATURES)
    z = X @ beta
    each = {
        "logistic": lambda: cp.logistic(-cp.multiply(s, z)),
        "squared": lambda: 0.5 * cp.square(y - z),
        "lasso": lambda: 0.5 * cp.square(y - z),
        "quantile": lambda: cp.maximum(0.3 * (y - z), -0.7 * (y - z)),
        "hinge": lambda: cp.pos(1 - cp.multiply(s, z)),
        # (e^ε ℓ(y) - ℓ(-y))/(e^ε - 1) = log(1 + e^z) - (1 + κy)z/2 with κ = coth(ε/2), here at ε = 1; written with
        # -yz in the place of z the solver reports an inaccurate solution
        "noisy labels": lambda: cp.logistic(z) - cp.multiply(0.5 * (1 + s / np.tanh(0.5)), z),
    }[kind]()
    scale = np.repeat(np.array(weights) / SIZES, SIZES)
    share = sum(weights) / 5
    cost = scale @ each + share * (penalty.l1 * cp.norm1(beta) + 0.5 * penalty.l2 * cp.sum_squares(beta))
    cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return np.array(beta.value)


GRAPHS = {
    "ring": confide.Graph.ring(5),
    "random": confide.Graph.random(5, 6, seed=3),
    "complete": confide.Graph.complete(5),
}


@dataclass(frozen=True)
class Case:
    """`quiet` on `kind` must come within `distance` of the optimum (relative); `noisy` is the private form."""

    kind: str
    quiet: Algorithm
    noisy: Algorithm
    distance: float = 1e-6


A = confide.algorithms
LINEAR = {"coupling": 0.2, "step": 2.0, "rounds": 1500}
EXACT = {"coupling": 0.1, "tolerance": 1e-9}
CASES = {
    "ADMM": Case("logistic", A.ADMM(coupling=0.1, rounds=300), A.ADMM(coupling=0.1, rounds=6)),
    "LinearizedADMM": Case("logistic", A.LinearizedADMM(**LINEAR), A.LinearizedADMM(rounds=6)),
    "CDPADMM": Case("logistic", A.CDPADMM(**LINEAR), A.CDPADMM(rounds=6, clip=0.5, noise=0.1)),
    "DDPADMM": Case("logistic", A.DDPADMM(**LINEAR), A.DDPADMM(rounds=6, clip=0.5, noise=0.1)),
    "DPADMM": Case(
        "logistic", A.DPADMM(coupling=0.2, step=2.0, step_decay=0.0, rounds=1500), A.DPADMM(rounds=6, clip=1, noise=0.3)
    ),
    "RADMM": Case("logistic", A.RADMM(**EXACT, rounds=600), A.RADMM(rounds=6, noise_rate=30, release_noise=0.01)),
    "MRADMM": Case(
        "logistic", A.MRADMM(**EXACT, rounds=600), A.MRADMM(rounds=6, growth=1.1, noise_rate=30, common_dual=True)
    ),
    "DVP": Case("logistic", A.DVP(**EXACT, rounds=300), A.DVP(rounds=6, noise_rate=30.0)),
    "PVP": Case("logistic", A.PVP(**EXACT, rounds=300), A.PVP(rounds=6, noise=0.2)),
    "MADMM": Case(
        "logistic", A.MADMM(**EXACT, dual_step=0.1, rounds=300), A.MADMM(rounds=6, growth=1.1, noise_rate=30)
    ),
    "PDML": Case(
        "noisy labels", A.PDML(coupling=0.1, rounds=300), A.PDML(rounds=6, objective_noise=0.5, noise=0.1)
    ),
    "PrivatePDML": Case("noisy labels", A.PrivatePDML(**LINEAR), A.PrivatePDML(rounds=6, noise=0.1)),
    "DPSGD": Case("hinge", A.DPSGD(rounds=20_000, step=2.0), A.DPSGD(rounds=6, clip=1.0, noise=0.1), 1e-2),
    "FADMM": Case("quantile", A.FADMM(coupling=0.3, rounds=500), A.FADMM(rounds=6)),
    "FDPADMM": Case(
        "quantile", A.FDPADMM(coupling=0.3, step=3.0, rounds=6000, average_from=0.5),
        A.FDPADMM(rounds=6, clip=1.0, noise=0.3), 1e-2,
    ),
    "DZOA": Case("squared", A.DZOA(rounds=60, coupling=0.2, step=2.0), A.DZOA(rounds=3, inner_steps=5), 5e-2),
    "PrivateZeroth": Case(
        "squared", A.PrivateZeroth(rounds=3000, coupling=0.2, step=1.0, directions=40),
        A.PrivateZeroth(rounds=3, inner_steps=2, clip=1.0, noise=0.1), 5e-2,
    ),
    "ORZO": Case("squared", A.ORZO(rounds=3000, step=2.0), A.ORZO(rounds=6), 5e-2),
    "ZOOADMM": Case("squared", A.ZOOADMM(rounds=3000, step=2.0), A.ZOOADMM(rounds=6), 5e-2),
}  # fmt: skip

PEERS = [name for name, kind in REGISTRY.items() if kind.topology == "peer"]
NETWORKED = [name for name, kind in REGISTRY.items() if kind.topology != "central"]


def network(name, graph="ring"):
    return None if REGISTRY[name].topology == "central" else GRAPHS[graph]
