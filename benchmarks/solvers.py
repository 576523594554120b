"""The inner argmin of ADMM, 8,000 rows × 104 features, logistic, warm start: which method, by measurement.

    python benchmarks/solvers.py

Times are the best of several alternating runs to the gradient norm 1e-8; every method solves the same problem.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from run import best_of
from scipy.optimize import minimize

import confide

ROWS, TOLERANCE, STIFF = 8000, 1e-8, 0.01


def one_hot(rows: int, seed: int = 0):
    """Eight categories columns of 12 values and eight numbers, rows of norm at most 1: the shape of Adult."""
    rng = np.random.default_rng(seed)
    blocks = [np.eye(12)[rng.choice(12, rows, p=rng.dirichlet(np.ones(12)))] for _ in range(8)]
    X = np.hstack([*blocks, rng.uniform(0, 1, (rows, 8))]) / 4.0
    y = np.where(X @ rng.normal(size=104) * 4 + rng.logistic(size=rows) > 0, 1.0, -1.0)
    return X, y


def main() -> None:
    X, y = one_hot(2 * ROWS)
    dense = confide.Problem(confide.Shards.split(X, y, 2), confide.losses.Logistic())
    sparse = confide.Problem(confide.Shards.split(sp.csr_array(X), y, 2), confide.losses.Logistic())
    mask, linear = np.ones(104), np.random.default_rng(1).normal(size=(1, 1, 104)) * 0.01
    Xk, yk = dense.shards.part(0)
    start = None

    def ours(problem):
        block = problem.only(0)
        _ = block.gram

        def solve():
            begin = np.zeros((1, 1, 104)) if start is None else start
            return block.argmin(linear, STIFF, confide.penalties.Zero(), mask, 0.5, begin, TOLERANCE)[0, 0]

        return solve

    def gradient(b):
        s = -yk / (1 + np.exp(yk * (Xk @ b)))
        return Xk.T @ s / ROWS + linear[0, 0] + STIFF * b

    def value(b):
        return np.logaddexp(0, -yk * (Xk @ b)).mean() + linear[0, 0] @ b + 0.5 * STIFF * b @ b

    def newton(keep: bool):
        def solve():
            b = np.zeros(104) if start is None else start[0, 0].copy()
            H = None
            for _ in range(200):
                g = gradient(b)
                if np.linalg.norm(g) <= TOLERANCE:
                    break
                if H is None or not keep:
                    p = 1 / (1 + np.exp(-(Xk @ b)))
                    H = np.linalg.inv((Xk.T * (p * (1 - p))) @ Xk / ROWS + STIFF * np.eye(104))
                b = b - H @ g
            return b

        return solve

    def majorised():
        H = np.linalg.inv(0.25 * Xk.T @ Xk / ROWS + STIFF * np.eye(104))
        b = np.zeros(104) if start is None else start[0, 0].copy()
        for _ in range(5000):
            g = gradient(b)
            if np.linalg.norm(g) <= TOLERANCE:
                break
            b = b - H @ g
        return b

    def lbfgs():
        begin = np.zeros(104) if start is None else start[0, 0]
        options = {"gtol": 1e-12, "ftol": 0, "maxiter": 5000}
        return minimize(value, begin, jac=gradient, method="L-BFGS-B", options=options).x

    jobs = {
        "confide, sparse rows": ours(sparse), "confide, dense rows": ours(dense), "Newton, Hessian kept": newton(True),
        "Newton, fresh Hessian": newton(False), "fixed curvature bound": majorised, "L-BFGS (SciPy)": lbfgs,
    }  # fmt: skip
    start = (jobs["Newton, fresh Hessian"]() + 0.02 * np.random.default_rng(2).normal(size=104))[None, None]
    times = best_of(5, *jobs.values())
    for (name, job), seconds in zip(jobs.items(), times, strict=True):
        print(f"{name:24s} {1e3 * seconds:7.1f} ms   gradient norm {np.linalg.norm(gradient(job())):.1e}")


if __name__ == "__main__":
    main()
