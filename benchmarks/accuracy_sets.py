"""Data of benchmarks/accuracy.py: rows, splits and public ranges. Splits shown had no part in choosing constants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

import confide
from confide.demo.cohort import cohort

FIRST = 7_000  # seed of the first split shown; those below it are for choosing
BREAST_RANGES = np.array([
    30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1,
    3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03,
    40, 50, 260, 4500, 0.25, 1.2, 1.3, 0.3, 0.7, 0.25,
])  # fmt: skip  # round numbers above what a cell nucleus can measure
# round numbers that a diabetes clinic and a wine merchant may know
DIABETES = [(0, 100), (1, 2), (15, 45), (60, 140), (80, 320), (40, 250), (20, 100), (0, 10), (3, 6.5), (50, 130)]
WINE = [(10, 16), (0, 6), (1, 4), (10, 30), (60, 170), (0, 5), (0, 6), (0, 1), (0, 4), (0, 14), (0, 2), (1, 5),
        (200, 1800)]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Split:
    """Rows and targets for training and for testing; each training row's party, if that is given."""

    X: object
    y: np.ndarray
    test_X: object
    test_y: np.ndarray
    groups: np.ndarray | None = None


# --- two classes, rows within norm 1, labels ±1: beside the curator ---------------------------------------------------


def shortened(X):
    """Rows longer than 1 shortened to it."""
    size = np.sqrt(X.multiply(X).sum(axis=1)) if sp.issparse(X) else np.linalg.norm(X, axis=1)
    factor = 1 / np.maximum(1.0, np.asarray(size).ravel())
    return sp.csr_array(sp.diags_array(factor) @ X) if sp.issparse(X) else X * factor[:, None]


def table(name: str):
    if name == "adult":
        return confide.datasets.load_adult()
    if name == "breast cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
        return shortened(2 * np.clip(X / BREAST_RANGES, 0, 1) - 1), np.where(y > 0, 1.0, -1.0)
    one = confide.datasets.load_raetsch(name)
    return shortened(one.X / (4.0 if name == "splice" else 3.0)), one.y


def cut(X, y, train: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(y))
    return Split(X[order[:train]], y[order[:train]], X[order[train:]], y[order[train:]])


def splits(name: str, count: int, first: int = FIRST) -> Iterator[Split]:
    if name == "cohort":
        for seed in range(first, first + count):
            people = cohort(seed)
            X, y = people.test
            yield Split(people.shards.X, people.shards.y, X, y, people.hospital)
        return
    X, y = table(name)
    for seed in range(first, first + count):
        yield cut(X, y, 40_000 if name == "adult" else int(0.8 * len(y)), seed)


# --- a table as scikit-learn has it, beside diffprivlib ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Known:
    """A table with what is public of it: a range of each column (None: rows within norm 1), and of a number."""

    X: object
    y: np.ndarray
    scale: list[tuple[float, float]] | None
    target_range: tuple[float, float] | None = None
    train: float = 0.8


def known(name: str) -> Known:
    if name == "adult":
        X, y = confide.datasets.load_adult()
        return Known(X, y.astype(int), None, train=40_000)
    X, y = getattr(datasets, f"load_{name.replace(' ', '_')}")(
        return_X_y=True, **({"scaled": False} if name == "diabetes" else {})
    )
    ranges = {
        "digits": [(0.0, 16.0)] * 64, "wine": WINE, "breast cancer": [(0.0, m) for m in BREAST_RANGES],
        "diabetes": DIABETES,
    }[name]  # fmt: skip
    return Known(X, y, ranges, (0.0, 400.0) if name == "diabetes" else None)


def scaled(rows: Known, X):
    """Columns as numbers from -1 to 1, rows within half of what they can be; and that norm."""
    if rows.scale is None:
        return (X.toarray() if sp.issparse(X) else X), 1.0
    low, high = np.array(rows.scale).T
    norm = max(1.0, math.sqrt(len(low)) / 2)
    return norm * shortened((2 * (np.clip(X, low, high) - low) / (high - low) - 1) / norm), norm


# --- generated lines --------------------------------------------------------------------------------------------------


def line(n: int, seed: int) -> tuple[Split, np.ndarray]:
    """Ten uniform features, targets in (-2, 2) counted in units of 2, R² of the true line .76; and that line."""
    rng = np.random.default_rng([seed, n])
    X = rng.uniform(-1, 1, size=(n + 5_000, 10))
    z = X @ rng.normal(size=10)
    z = 0.2 + 0.65 * math.sqrt(0.765) * z / z.std()
    y = np.clip(z + 0.65 * math.sqrt(0.235) * rng.normal(size=len(z)), -2, 2) / 2
    X, z = X / math.sqrt(10), z / 2
    return Split(X[:n], y[:n], X[n:], y[n:]), z[n:]
