"""Plain NumPy and cvxpy forms of every loss and objective, written from their definitions and not from the package.

A randomised label is corrected by the inverse of the matrix P(y' | y) of randomised response:
ℓ̂(y') = Σ_c P⁻¹[y', c] ℓ(c) is unbiased by construction.
"""

import contextlib
import warnings

import cvxpy as cp
import numpy as np
from scipy.special import expit, logsumexp, softmax

from confide import Shards, losses

SCALAR = [
    losses.Logistic(), losses.Squared(), losses.Huber(0.7), losses.Absolute(), losses.Quantile(0.3), losses.Hinge(),
    losses.SquaredHinge(), losses.SmoothedHinge(0.4),
]  # fmt: skip
MARGIN = [*SCALAR, losses.Multinomial(3)]
NOISY = [losses.NoisyLabels(losses.Logistic(), 3.0), losses.NoisyLabels(losses.Multinomial(3), 3.0)]
EVERY = [*MARGIN, *NOISY]


def name(x):
    return type(x).__name__ + (type(x.loss).__name__ if hasattr(x, "loss") else "")


def value(loss, z, y):
    """ℓ(z, y) of true labels: z (n,), or (n, k) for the multinomial loss."""
    kind, r = type(loss).__name__, None if z.ndim == 2 else z - y
    if kind == "Multinomial":
        return logsumexp(z, axis=1) - z[np.arange(len(z)), y.astype(int)]
    return {
        "Logistic": lambda: np.logaddexp(0, -y * z),
        "Squared": lambda: r**2 / 2,
        "Huber": lambda: np.where(abs(r) <= loss.width, r**2 / 2, loss.width * abs(r) - loss.width**2 / 2),
        "Absolute": lambda: abs(r),
        "Quantile": lambda: np.maximum(-loss.level * r, (1 - loss.level) * r),
        "Hinge": lambda: np.maximum(0, 1 - y * z),
        "SquaredHinge": lambda: np.maximum(0, 1 - y * z) ** 2 / 2,
        "SmoothedHinge": lambda: _smoothed(1 - y * z, loss.width),
    }[kind]()


def _smoothed(h, a):
    return np.where(h < 0, 0, np.where(h < a, h**2 / (2 * a), h - a / 2))


def slope(loss, z, y):
    kind, r = type(loss).__name__, None if z.ndim == 2 else z - y
    if kind == "Multinomial":
        return softmax(z, axis=1) - np.eye(z.shape[1])[y.astype(int)]
    return {
        "Logistic": lambda: -y * expit(-y * z),
        "Squared": lambda: r,
        "Huber": lambda: np.clip(r, -loss.width, loss.width),
        "Absolute": lambda: np.sign(r),
        "Quantile": lambda: np.where(r > 0, 1 - loss.level, -loss.level),
        "Hinge": lambda: np.where(y * z < 1, -y, 0),
        "SquaredHinge": lambda: -y * np.maximum(0, 1 - y * z),
        "SmoothedHinge": lambda: -y * np.clip((1 - y * z) / loss.width, 0, 1),
    }[kind]()


def classes(loss):
    return np.array([-1.0, 1.0]) if loss.labels == "sign" else np.arange(loss.outputs, dtype=float)


def response(k, epsilon):
    """P[y, y']: the label is kept with e^ε/(e^ε + k - 1), else uniform over the others."""
    return (np.ones((k, k)) + (np.exp(epsilon) - 1) * np.eye(k)) / (np.exp(epsilon) + k - 1)


def epsilons(loss, shards):
    if not isinstance(loss, losses.NoisyLabels):
        return None
    return shards.columns["epsilon"] if loss.epsilon is None else np.full(len(shards), loss.epsilon)


def corrected(f, loss, z, y, epsilon):
    """f = value or slope, corrected for randomised labels where epsilon (n,) is given."""
    if epsilon is None:
        return f(loss, z, y)
    cs, out = classes(loss), 0
    inverse = np.stack([np.linalg.inv(response(len(cs), e)) for e in epsilon])
    weights = inverse[np.arange(len(y)), np.searchsorted(cs, y)]  # (n, classes)
    for i, c in enumerate(cs):
        each = f(loss.base, z, np.full(len(y), c))
        out = out + (weights[:, i, None] if each.ndim == 2 else weights[:, i]) * each
    return out


def design(shards, intercept):
    X = shards.X.toarray() if hasattr(shards.X, "toarray") else np.asarray(shards.X, float)
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def row_weights(problem):
    sizes, extra = problem.shards.sizes, problem.shards.columns.get("weight", 1.0)
    each = 1 / sizes if problem.weighting == "parties" else np.full(len(sizes), 1 / sizes.sum())
    return np.repeat(each, sizes) * extra


def margins(problem, beta):
    m = problem.loss.outputs
    z = design(problem.shards, problem.intercept) @ np.asarray(beta).reshape(m, -1).T
    return z if problem.loss.labels == "class" else z[:, 0]


def mask(problem):
    one = np.ones((problem.loss.outputs, problem.shards.features + problem.intercept))
    if problem.intercept:
        one[:, -1] = 0
    return one.ravel()


def objective(problem, beta):
    """Loss and convex penalty at one coefficient vector."""
    s, b = problem.shards, np.asarray(beta) * mask(problem)
    rows = corrected(value, problem.loss, margins(problem, beta), s.y, epsilons(problem.loss, s))
    return row_weights(problem) @ rows + problem.penalty.l1 * abs(b).sum() + problem.penalty.l2 / 2 * (b @ b)


def gradient(problem, beta):
    """Of the loss and the quadratic penalty, by plain matrix products."""
    s = problem.shards
    each = corrected(slope, problem.loss, margins(problem, beta), s.y, epsilons(problem.loss, s))
    each = each.reshape(len(s), -1) * row_weights(problem)[:, None]
    return (each.T @ design(s, problem.intercept)).ravel() + problem.penalty.l2 * mask(problem) * beta


def solve(problem):
    """The optimum by cvxpy and an interior-point solver at its tightest."""
    s, loss = problem.shards, problem.loss
    X, y, k = design(s, problem.intercept), s.y, loss.outputs
    B = cp.Variable((X.shape[1], k))
    Z = X @ B
    z, base = Z[:, 0], loss.base
    m, r = cp.multiply(y, z), z - y
    kind = type(base).__name__
    if kind == "Multinomial":
        linear = np.eye(k)[y.astype(int)]
        if base is not loss:  # log-sum-exp is common to all labels: only the picked margin is corrected
            linear = np.linalg.inv(response(k, loss.epsilon))[y.astype(int)]
        rows = cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(linear, Z), axis=1)
    elif kind == "Logistic":
        rows = cp.logistic(-m)
        if base is not loss:  # ℓ(y) - ℓ(-y) = -yz: the correction is linear
            rows = rows - m / (np.exp(loss.epsilon) - 1)
    else:
        rows = {
            "Squared": lambda: cp.square(r) / 2, "Huber": lambda: cp.huber(r, base.width) / 2,
            "Absolute": lambda: cp.abs(r),
            "Quantile": lambda: cp.maximum(-base.level * r, (1 - base.level) * r),
            "Hinge": lambda: cp.pos(1 - m), "SquaredHinge": lambda: cp.square(cp.pos(1 - m)) / 2,
            "SmoothedHinge": lambda: cp.huber(cp.pos(1 - m), base.width) / (2 * base.width),
        }[kind]()  # fmt: skip
    cost = row_weights(problem) @ rows
    penalised = B[: s.features]
    if problem.penalty.l1:
        cost += problem.penalty.l1 * cp.sum(cp.abs(penalised))
    if problem.penalty.l2:
        cost += problem.penalty.l2 / 2 * cp.sum_squares(penalised)
    free = B if not (problem.penalty.l1 or problem.penalty.l2) else B[s.features :]
    gauge = [cp.sum(free, axis=1) == 0] if k > 1 and free.size else []  # softmax ignores a common shift
    program = cp.Problem(cp.Minimize(cost), gauge)
    for tolerance in (1e-13, 1e-12, 1e-11, 1e-10, 1e-9):  # as tight as this problem lets it be
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": try a looser one
            with contextlib.suppress(cp.error.SolverError):
                tight = {f"tol_{what}": tolerance for what in ("gap_abs", "gap_rel", "feas")}
                program.solve(cp.CLARABEL, **tight, max_iter=300)
        if program.status == cp.OPTIMAL:
            break
    assert program.status == cp.OPTIMAL, program.status
    return B.value.T.ravel()


def shards(loss, sizes=None, features=4, seed=0, columns=None, X=None):
    """Ragged parties whose labels no hyperplane separates."""
    rng = np.random.default_rng(seed)
    sizes = sizes or ((25, 9, 40) if loss.base is loss else (90, 60, 150))
    n = sum(sizes)
    X = rng.normal(size=(n, features)) if X is None else X
    z = np.asarray(X @ rng.normal(size=(features, max(loss.outputs, 2)))) + rng.normal(size=(n, max(loss.outputs, 2)))
    y = {"real": z[:, 0] + 0.5, "sign": np.where(z[:, 0] > -0.3, 1.0, -1.0), "class": z.argmax(1).astype(float)}
    labels = y[loss.labels]
    if loss.base is not loss:  # randomise them as users do; on true labels the corrected loss may have no minimum
        names = classes(loss)
        keep = response(len(names), loss.smallest_epsilon)[0, 0]
        other = (np.searchsorted(names, labels) + rng.integers(1, len(names), n)) % len(names)
        labels = np.where(rng.random(n) < keep, labels, names[other])
    return Shards.from_groups(X, labels, np.repeat(np.arange(len(sizes)), sizes), columns)
