"""What is written by hand for speed, beside what NumPy and Numba have for it: `python benchmarks/by_hand.py`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from run import best_of, cohort

import confide
from confide.privacy.noise import NORMAL, fill
from confide.privacy.ziggurat import fill_normals
from confide.problem.margin import exp_negative

COUNT, REPEATS = 1_000_000, 15


@njit(error_model="numpy")
def _slopes_by_hand(z, out):
    for i in range(z.size):
        e = exp_negative(-abs(z[i]))
        out[i] = (e if z[i] > 0 else 1.0) / (1.0 + e)


@njit(error_model="numpy")
def _slopes_by_numba(z, out):
    for i in range(z.size):
        e = math.exp(-abs(z[i]))
        out[i] = (e if z[i] > 0 else 1.0) / (1.0 + e)


@njit
def _normals_by_numba(out):
    for i in range(out.size):
        out[i] = np.random.standard_normal()  # noqa: NPY002 (what Numba compiles)


def slopes() -> None:
    """The slope of the logistic loss at margins that fit the cache."""
    z, out = np.random.default_rng(0).normal(scale=3, size=10_000), np.empty(10_000)

    def by_numpy():
        e = np.exp(-np.abs(z))
        np.divide(np.where(z > 0, e, 1.0), 1.0 + e, out=out)

    jobs = (lambda: _slopes_by_hand(z, out), lambda: _slopes_by_numba(z, out), by_numpy)
    show("slope of the logistic loss (exp_negative)", best_of(40 * REPEATS, *jobs), "Numba's exp", "NumPy's exp")


def data_round() -> None:
    """The same inside a whole data round, whose rows are read from memory: with logistic and with squared loss."""
    X, y, groups = cohort(200, 1000, 8, labels=True)
    shards = confide.Shards.from_groups(X, y, groups)
    beta = np.full((1, 200, 8), 0.01)
    blocks = [confide.Problem(shards, loss).block for loss in (confide.losses.Logistic(), confide.losses.Squared())]
    times = best_of(REPEATS, *(lambda b=b: b.gradient(beta, 1.0) for b in blocks))
    show("data round, logistic loss", times, "squared loss, which has no exponential")


def normals() -> None:
    """A million standard normal numbers on one thread."""
    out, one = np.empty((1, 1, COUNT)), np.array([0])
    flat, rng, philox = out.reshape(-1), np.random.default_rng(0), np.random.Generator(np.random.Philox(0))
    jobs = (
        lambda: fill_normals(one, one, 0, 0, out, 0, 1),
        lambda: fill(one, one, 0, 0, NORMAL, out, 0, 1),
        lambda: philox.standard_normal(out=flat),
        lambda: rng.standard_normal(out=flat),
        lambda: _normals_by_numba(flat),
    )
    others = ("Box and Muller on the same counters", "NumPy on Philox", "NumPy on PCG64", "Numba on MT19937")
    show("normal numbers (ziggurat)", best_of(REPEATS, *jobs), *others)


def show(what: str, times: list[float], *others: str) -> None:
    print(f"{what}: {1e3 * times[0]:.3g} ms")
    for other, time in zip(others, times[1:], strict=True):
        print(f"  {other}: {1e3 * time:.3g} ms, ratio {time / times[0]:.2f}")


if __name__ == "__main__":
    slopes()
    data_round()
    normals()
