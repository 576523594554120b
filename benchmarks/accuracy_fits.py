"""One model of benchmarks/accuracy.py each: fitted to a split, and what it is worth on that split's test rows."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import venv
from functools import cache
from pathlib import Path

import accuracy_sets as sets
import numpy as np
from accuracy_kept import HOME
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_pinball_loss

import confide
from confide.algorithms import JointDescent
from confide.problem.functional import Basis, trapezoid
from confide.problem.losses import Huber, Logistic, Quantile, Squared
from confide.problem.penalties import L1, L2

DELTA = 1e-5


# --- beside a curator -------------------------------------------------------------------------------------------------


def joint(split: sets.Split, epsilon: float, seed: int, parties: int = 5, collusion: int | None = 1) -> float:
    """Test error of one fit, in per cent."""
    shards = (
        confide.Shards.split(split.X, split.y, parties, seed=seed) if split.groups is None
        else confide.Shards.from_groups(split.X, split.y, split.groups)
    ).clip_rows(1.0)  # fmt: skip
    problem = confide.Problem(shards, Logistic(), weighting="rows", intercept=True)
    predicted = jointly(problem, split.test_X, epsilon, seed, collusion)
    return 100 * float(np.mean(predicted != split.test_y))


def jointly(problem: confide.Problem, test_X, epsilon: float, seed: int, collusion: int | None) -> np.ndarray:
    """What the model of one descent says of other rows."""
    graph = confide.Graph.ring(problem.shards.parties)
    method = JointDescent(collusion=collusion).calibrated(problem.public(graph), epsilon, DELTA)
    run = confide.simulate(problem, graph, method, seeds=(seed,), record=())
    return problem.predict(test_X, run.estimates[0, 0])


STEPS, TAILS, SLOPE = 2.0 ** np.arange(-3, 7), (0.0, 0.5), 0.5


def curator(split: sets.Split, epsilon: float, seed: int, rounds: int, steps=STEPS) -> list[list[float]]:
    """Test error in per cent of the last model and of the mean of the last half (`TAILS`), for each of `steps`."""
    rng, mu = np.random.default_rng([seed, rounds, 1]), float(confide.privacy.mu_for(epsilon, DELTA))
    n, p = len(split.y), split.X.shape[1]
    sigma = 2 * SLOPE * math.sqrt(1.25) / n * math.sqrt(rounds) / mu
    theta, half = np.zeros((p + 1, len(steps))), np.zeros((p + 1, len(steps)))
    across = split.X.T.tocsr() if hasattr(split.X, "tocsr") else split.X.T
    for t in range(rounds):
        z = (split.X @ theta[:p] + 0.5 * theta[p]) * split.y[:, None]
        s = -np.minimum(1 / (1 + np.exp(np.minimum(z, 500))), SLOPE) * split.y[:, None] / n
        g = np.vstack([across @ s, 0.5 * s.sum(axis=0)])
        theta = theta - np.asarray(steps) * (g + sigma * rng.normal(size=g.shape))
        if 2 * t >= rounds:
            half += (theta - half) / (t - math.ceil(rounds / 2) + 1)
    wrong = [(split.test_X @ m[:p] + 0.5 * m[p] >= 0) != (split.test_y[:, None] > 0) for m in (theta, half)]
    return [(100 * w.mean(axis=0)).tolist() for w in wrong]


# --- tables as scikit-learn has them, beside diffprivlib and no privacy -----------------------------------------------


def estimator_score(rows: sets.Known, split: sets.Split, epsilon: float, seed: int, parties, bought=False) -> float:
    """As a user calls it: public ranges, or what is bought."""
    options = {"epsilon": epsilon, "delta": DELTA, "parties": parties, "random_state": seed}
    options |= {"row_norm": 1.0} if rows.scale is None else {"scale": rows.scale}
    if rows.target_range is not None:
        model = confide.PrivateRidge(**options, target_range=None if bought else rows.target_range)
        return float(model.fit(split.X, split.y).score(split.test_X, split.test_y))
    model = confide.PrivateLogisticRegression(**options, classes=np.unique(rows.y).tolist())
    return 100 * float(model.fit(split.X, split.y).score(split.test_X, split.test_y))


def plain_score(rows: sets.Known, split: sets.Split) -> float:
    (X, norm), (test_X, _) = (sets.scaled(rows, part) for part in (split.X, split.test_X))
    if rows.target_range is not None:
        return float(Ridge(alpha=1e-3).fit(X, split.y).score(test_X, split.test_y))
    model = LogisticRegression(C=100 / norm**2, max_iter=3000).fit(X, split.y)
    return 100 * float(model.score(test_X, split.test_y))


def by_diffprivlib(python: str, rows: sets.Known, split: sets.Split, seed: int) -> dict[str, float] | None:
    """Scores by ε and setting; None where it fails."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            (X, norm), (test_X, _) = (sets.scaled(rows, part) for part in (split.X, split.test_X))
            extra = {} if rows.target_range is None else dict(zip(("low", "high"), rows.target_range, strict=True))
            file = Path(folder) / f"{seed}.npz"
            np.savez(file, X=X, y=split.y, test_X=test_X, test_y=split.test_y, norm=norm, **extra)
            script = Path(__file__).with_name("with_diffprivlib.py")
            done = subprocess.run([python, script, file], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        return missing(error)


@cache
def peer_environment() -> str | None:
    """The interpreter of an environment that has diffprivlib, made where there is none; None where it can't be."""
    home = HOME / "diffprivlib"
    python = home / "bin" / "python"
    try:
        if not (home / "made").exists():
            venv.create(home, with_pip=True, clear=True)
            # 0.6 imports a name that scikit-learn 1.6 no longer has
            install = [python, "-m", "pip", "install", "--quiet", "diffprivlib==0.6.6", "scikit-learn<1.6", "numpy<2.3"]
            subprocess.run(install, capture_output=True, text=True, check=True)
            (home / "made").touch()
    except (OSError, subprocess.CalledProcessError) as error:
        return missing(error)
    return str(python)


def missing(error: Exception) -> None:
    said = getattr(error, "stderr", None) or str(error)
    print(f"diffprivlib is missing: {str(said).strip().splitlines()[-1]}", file=sys.stderr)


# --- generated lines --------------------------------------------------------------------------------------------------


def unexplained(split: sets.Split, _, z) -> float:
    """1 - R², in per cent."""
    return 100 * float(np.mean((split.test_y - z) ** 2) / split.test_y.var())


def excess(split: sets.Split, truth, z) -> float:
    """Mean absolute error above the true line's, in per cent."""
    return 100 * float(np.mean(np.abs(split.test_y - z)) / np.mean(np.abs(split.test_y - truth)) - 1)


KINDS = {
    "ridge": (Squared(), L2(1e-5), unexplained),
    "lasso": (Squared(), L1(1e-3), unexplained),
    "Huber": (Huber(0.125), L2(1e-5), unexplained),
    "median": (Quantile(0.5), L2(1e-5), excess),
}


def line_error(kind: str, n: int, epsilon: float, seed: int) -> float:
    loss, penalty, score = KINDS[kind]
    split, truth = sets.line(n, seed)
    shards = confide.Shards.split(split.X, split.y, 5, seed=seed).clip_rows(1.0)
    problem = confide.Problem(shards, loss, penalty, weighting="rows", intercept=True)
    return score(split, truth, jointly(problem, split.test_X, epsilon, seed, 1))


SLOPES, ERROR = np.linspace(-1.5, 1.5, 10), 0.35


def normal_line(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal features within norm 1, normal errors; 5,000 rows more than asked for, to test on."""
    rng = np.random.default_rng([rows, seed])
    X = rng.normal(size=(rows + 5000, 10)) / math.sqrt(10) / 1.5
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, X @ SLOPES + ERROR * rng.normal(size=len(X))


def quantile_excess(level: float, epsilon: float, seed: int) -> float:
    """Pinball loss above that of the true quantile, which a normal error has at a known place, in per cent."""
    X, y = normal_line(1_000, seed)
    options = {"quantile": level, "epsilon": epsilon, "target_range": (-2, 2), "row_norm": 1.0, "random_state": seed}
    got = confide.PrivateQuantileRegressor(**options).fit(X[:1_000], y[:1_000]).predict(X[1_000:])
    best = X[1_000:] @ SLOPES + ERROR * norm.ppf(level)
    lost, least = (mean_pinball_loss(y[1_000:], z, alpha=level) for z in (got, best))
    return 100 * float(lost / least - 1)


def curve_error(basis: str, count: int, seed: int) -> float:
    """Zhou and Xiang's design as written: 100,000 curves, 50 parties, τ=.5, ε=.78 at δ=1e-6 (μ=.189)."""
    grid, k = np.linspace(0, 1, 101), np.arange(1, 51)
    phi, weights = Basis("cosine", 50)(grid), np.where(k == 1, 0.3, 4.0 * (-1.0) ** (k + 1) / k**2)
    rng = np.random.default_rng([sets.FIRST, seed])
    A = rng.standard_normal((100_000, 50)) / k
    model = confide.FunctionalQuantileRegressor(
        basis=basis, n_basis=count, grid=grid, row_norm=2.0, epsilon=0.78, delta=1e-6, target_range=(-6, 6),
        parties=50, random_state=seed,
    ).fit(A @ phi.T, A @ weights + rng.standard_t(3, len(A)))  # fmt: skip
    return float(trapezoid(grid) @ (model.coefficient_function_ - phi @ weights) ** 2)
