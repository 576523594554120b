"""Rows' norms before the compiler is loaded are those that it computes."""

import sys

import numpy as np
import pytest

from confide.problem.rows import as_rows, row_norms
from confide.schema import encode


def rows(dtype):
    """Entries in [-1, 1], tiny and subnormal ones among them."""
    rng = np.random.default_rng(1)
    tiny = float(np.finfo(dtype).tiny)
    X = [rng.uniform(-1, 1, 7) * 2.0 ** -rng.integers(0, 1080, 7) for _ in range(200)]
    X += [rng.uniform(-1, 1, 7) for _ in range(200)] + [np.ones(7), np.zeros(7), np.full(7, tiny), np.full(7, tiny / 8)]
    X += [np.eye(7)[0] * 2.0**-1074, -np.eye(7)[3] * 2.0**-500, np.full(7, 1e-160)]
    return np.array(X).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_to_the_same_bits(dtype, monkeypatch):
    X = rows(dtype)
    compiled = np.empty(len(X))
    row_norms(as_rows(X), len(X), False, compiled)
    monkeypatch.delitem(sys.modules, "numba")
    assert encode.sizes(X).tobytes() == compiled.tobytes()


def test_many_rows_are_left_to_the_compiler(monkeypatch):
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert encode.sizes(np.ones((encode.FEW // 8 + 1, 8))) is None
    assert encode.sizes(np.ones((3, 8))).tolist() == [np.sqrt(8)] * 3
    monkeypatch.setitem(sys.modules, "numba", object())
    assert encode.sizes(np.ones((3, 8))) is None
