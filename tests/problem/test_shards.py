"""Shards: who gets which rows, what travels with them, and what is never copied."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from confide import Shards


def table(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.where(rng.random(n) < 0.4, 1.0, -1.0)


def rows(shards, k):
    """Rows of party k as a set: (features..., label)."""
    X, y = shards.part(k)
    X = X.toarray() if sp.issparse(X) else X
    return {(*map(float, x), float(v)) for x, v in zip(X, y, strict=True)}


def test_from_groups_sorts_names_and_keeps_the_order_of_rows():
    X, y = table(7)
    groups = ["b", "a", "b", "c", "a", "b", "a"]
    s = Shards.from_groups(X, y, groups)
    assert s.names == ("a", "b", "c")
    assert s.sizes.tolist() == [3, 3, 1] and s.parties == 3 and len(s) == 7 and s.features == 3
    assert np.array_equal(s.X, X[[1, 4, 6, 0, 2, 5, 3]])
    assert np.array_equal(s.y, y[[1, 4, 6, 0, 2, 5, 3]])
    assert np.array_equal(s.part(1)[0], X[[0, 2, 5]])
    assert repr(s) == "Shards(3 parties, 1 to 3 rows each, 3 features)"


@pytest.mark.parametrize("groups", [np.repeat([3, 5, 11], [4, 1, 7]), np.repeat([-2, 0], [6, 6]), np.zeros(12, int)])
def test_rows_in_order_make_the_same_parties_without_a_sort(groups, monkeypatch):
    """Texts always go the long way; numbers in order need neither sort nor copy."""
    X, y = table(12)
    weight = np.arange(12.0)
    names = [f"{g:+03d}" for g in groups - groups.min()]
    long = Shards.from_groups(X, y, np.array(names), {"weight": weight})
    monkeypatch.setattr(np, "unique", lambda *_, **__: pytest.fail("sorted"))
    short = Shards.from_groups(X, y, groups, {"weight": weight})
    assert short.names == tuple(str(g) for g in dict.fromkeys(groups.tolist())) and short.X is X
    assert np.array_equal(short.offsets, long.offsets) and short.offsets.dtype == np.int64
    assert np.array_equal(short.columns["weight"], weight)


def test_numbers_out_of_order_are_sorted():
    X, y = table(6)
    shards = Shards.from_groups(X, y, np.array([2, 1, 1, 2, 0, 2]))
    assert shards.names == ("0", "1", "2") and np.array_equal(shards.X, X[[4, 1, 2, 0, 3, 5]])


def test_set_up_of_rows_in_order_takes_little_memory():
    n = 400_000
    X, y, groups = np.ones((n, 4)), np.ones(n), np.repeat(np.arange(n // 50), 50)
    tracemalloc.start()
    Shards.from_groups(X, y, groups)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < y.nbytes + X.nbytes // 4


def test_from_parts_is_from_groups_of_the_stack():
    parts = [table(n, seed=n) for n in (4, 1, 6)]
    s = Shards.from_parts(parts, names=["x", "y", "z"])
    other = Shards.from_groups(
        np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]), np.repeat([0, 1, 2], [4, 1, 6])
    )
    assert s.names == ("x", "y", "z")
    assert np.array_equal(s.X, other.X) and np.array_equal(s.y, other.y) and np.array_equal(s.offsets, other.offsets)
    thin = Shards.from_parts([(sp.csr_array(X), y) for X, y in parts])
    assert np.array_equal(thin.X.toarray(), s.X) and thin.names == ("0", "1", "2")


@pytest.mark.parametrize(("n", "parties"), [(60, 7), (60, 60), (5, 2), (100, 10)])
@pytest.mark.parametrize("skew", [None, ("label", 0.1), ("label", 100.0), ("size", 0.1), ("size", 5.0)], ids=str)
def test_split_hands_out_every_row_once(n, parties, skew):
    X, y = table(n)
    s = Shards.split(X, y, parties, seed=3, skew=skew)
    assert s.parties == parties and s.sizes.min() >= 1 and s.sizes.sum() == n
    if skew is None:
        assert np.ptp(s.sizes) <= 1
    assert set().union(*(rows(s, k) for k in range(parties))) == {(*x, v) for x, v in zip(X, y, strict=True)}
    again, other = (Shards.split(X, y, parties, seed=seed, skew=skew) for seed in (3, 4))
    assert np.array_equal(again.X, s.X) and np.array_equal(again.offsets, s.offsets)
    assert n < 60 or not np.array_equal(other.X, s.X)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_label_skew_is_dirichlet(alpha):
    """A party's share p of one label has variance (K-1)/(K²(Kα+1)), as each coordinate of Dirichlet(α·1_K)."""
    X, _ = table(4000)
    y = np.repeat([0.0, 1.0, 2.0, 3.0], 1000)
    K, shares = 5, []
    for seed in range(40):
        s = Shards.split(X, y, K, seed=seed, skew=("label", alpha))
        shares += [np.sum(s.part(k)[1] == c) / 1000 for k in range(K) for c in range(4)]
    expected = (K - 1) / (K**2 * (K * alpha + 1))
    assert np.mean(shares) == pytest.approx(1 / K)
    assert np.var(shares) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("alpha", [0.2, 2.0])
def test_size_skew_is_dirichlet_and_leaves_labels_alone(alpha):
    X, y = table(4000)
    K, sizes, rates = 5, [], []
    for seed in range(120):
        s = Shards.split(X, y, K, seed=seed, skew=("size", alpha))
        sizes += (s.sizes / 4000).tolist()
        rates += [np.mean(s.part(k)[1] == 1) for k in range(K) if s.sizes[k] > 400]
    assert np.var(sizes) == pytest.approx((K - 1) / (K**2 * (K * alpha + 1)), rel=0.25)
    assert np.std(rates) < 0.03  # 0.4 in every party


def test_label_skew_of_a_real_target_goes_by_quartiles():
    X, _ = table(2000)
    y = np.random.default_rng(1).normal(size=2000)
    s = Shards.split(X, y, 4, seed=0, skew=("label", 0.05))
    quartile = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), s.y)
    mix = np.array([np.bincount(quartile[a:b], minlength=4) for a, b in zip(s.offsets, s.offsets[1:], strict=False)])
    assert (mix / 500).max(axis=0).min() > 0.5  # nearly every quartile sits with one party
    even = Shards.split(X, y, 4, seed=0)
    assert abs(np.mean(even.part(0)[1]) - y.mean()) < 0.2


@pytest.mark.parametrize("build", [
    lambda X, y, c: Shards.from_groups(X, y, np.arange(len(y)) % 3, columns=c),
    lambda X, y, c: Shards.split(X, y, 4, seed=1, columns=c),
    lambda X, y, c: Shards.split(X, y, 4, seed=1, skew=("label", 0.3), columns=c),
    lambda X, y, c: Shards.from_groups(X, y, np.arange(len(y)) % 3, columns=c).relabel([2, 0, 1]),
    lambda X, y, c: Shards.from_groups(X, y, np.arange(len(y)) % 3, columns=c).only(1),
    lambda X, y, c: Shards.from_groups(X, y, np.arange(len(y)) % 3, columns=c).clip_rows(1e9),
    lambda X, y, c: Shards.from_groups(X, y, np.arange(len(y)) % 3, columns=c).transform(np.eye(3)),
])  # fmt: skip
def test_extra_columns_travel_with_their_rows(build):
    X, y = table()
    s = build(X, y, {"weight": np.abs(X[:, 0]), "epsilon": X[:, 1] ** 2})
    np.testing.assert_array_equal(s.columns["weight"], np.abs(s.X[:, 0]))
    np.testing.assert_array_equal(s.columns["epsilon"], s.X[:, 1] ** 2)


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_contiguous_rows_are_not_copied(dtype, tmp_path):
    X, y = table()
    X = X.astype(dtype)
    disk = np.memmap(tmp_path / "x", dtype, "w+", shape=X.shape)
    disk[:] = X
    disk.flush()
    for given in (X, disk, np.memmap(tmp_path / "x", dtype, "r", shape=X.shape)):
        s = Shards.from_groups(given, y, np.repeat([0, 1, 2], 20))
        assert np.shares_memory(s.X, given) and np.shares_memory(s.rows, given)
        assert s.X.dtype == dtype
        assert np.shares_memory(s.only(1).X, given)
        assert np.shares_memory(s.pooled(np.ones(60)).X, given)
    disk[0, 0] = 99.0  # written to the file: seen by shards only if they read the file
    assert Shards.from_groups(disk, y, np.repeat([0, 1, 2], 20)).X[0, 0] == 99.0


def test_rows_are_read_only_for_the_kernels():
    X, y = table()
    s = Shards.from_groups(X, y, np.repeat([0, 1, 2], 20))
    with pytest.raises(ValueError, match="read-only"):
        s.rows[0, 0] = 1.0
    X[0, 0] = 1.0  # the caller's own array stays writable


def test_scattered_rows_are_gathered_once_and_the_input_left_alone():
    X, y = table()
    before = X.copy()
    s = Shards.from_groups(X, y, np.arange(60) % 3)
    assert not np.shares_memory(s.X, X)
    assert np.array_equal(X, before)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array])
def test_sparse_rows_are_accepted(kind):
    X, y = table()
    X[np.abs(X) < 0.7] = 0
    groups = np.arange(60) % 4
    thin, dense = Shards.from_groups(kind(X), y, groups), Shards.from_groups(X, y, groups)
    assert sp.issparse(thin.X) and np.array_equal(thin.X.toarray(), dense.X)
    assert all(rows(thin, k) == rows(dense, k) for k in range(4))
    np.testing.assert_allclose(thin.norms(True), dense.norms(True))
    for made in (lambda s: s.relabel([3, 1, 0, 2]), lambda s: s.only(2), lambda s: s.clip_rows(0.5)):
        np.testing.assert_allclose(made(thin).X.toarray(), made(dense).X, rtol=1e-15)


def test_sparse_input_is_left_as_it_was():
    """Duplicate entries mean their sum; the caller's matrix keeps its own storage."""
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, 0, 2]), np.array([0, 2, 3, 4])
    X = sp.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(3, 3))
    s = Shards.from_groups(X, [1, -1, 1], [0, 0, 1])
    np.testing.assert_allclose(s.norms(False), [3, 3, 4])
    assert np.array_equal(X.data, data) and np.array_equal(X.indices, indices)


@pytest.mark.parametrize("X", [
    np.arange(12).reshape(4, 3), [[1, 2, 3]] * 4, np.ones((4, 3), bool), np.asfortranarray(np.ones((4, 3)))
], ids=["int", "list", "bool", "fortran"])  # fmt: skip
def test_other_number_types_become_float64(X):
    s = Shards.from_groups(X, [1, 1, -1, 1], [0, 0, 1, 1])
    assert s.X.dtype == np.float64 and s.rows.flags.c_contiguous
    assert np.array_equal(s.X, np.asarray(X, float))


# --- others made from them ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
def test_norms(intercept):
    X, y = table()
    s = Shards.from_groups(X, y, np.repeat([0, 1], 30))
    np.testing.assert_allclose(s.norms(intercept), np.sqrt((X**2).sum(axis=1) + intercept), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_of_float32_rows_are_sums_in_float64(dtype):
    """A norm is a bound of a proof: squares of float32 entries must neither round, overflow nor vanish."""
    X = np.array([[3e25, 4e25], [3e-25, 4e-25], [1.1, 2.3], [1.0, 0.0]], dtype)
    s = Shards.from_groups(X, [1, 1, -1, 1], [0, 0, 1, 1])
    np.testing.assert_allclose(s.norms(False), np.linalg.norm(X.astype(float), axis=1), rtol=1e-14)


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array], ids=["dense", "float32", "sparse"])
@pytest.mark.parametrize("norm", [0.3, 1.0, 7.0])
def test_clip_rows_enforces_the_norm(kind, norm):
    X, y = table(500)
    X = X * np.exp(np.random.default_rng(2).normal(size=(500, 1)) * 3)
    X[7] = 0
    s = Shards.from_groups(kind(X), y, np.repeat([0, 1], 250))
    clipped = s.clip_rows(norm)
    new = clipped.X.toarray() if sp.issparse(clipped.X) else clipped.X.astype(float)
    size, old = np.linalg.norm(new, axis=1), np.linalg.norm(X, axis=1)
    assert size.max() <= norm  # not a rounding above it
    short = old < norm * (1 - 1e-6)
    tight = 1e-6 if kind is np.float32 else 1e-14
    np.testing.assert_allclose(new[short], X[short], rtol=tight)
    np.testing.assert_allclose(new[~short] * old[~short, None], X[~short] * norm, rtol=2 * tight, atol=tight)
    assert clipped.row_norm == norm and s.row_norm is None
    assert clipped.only(0).row_norm == clipped.relabel([1, 0]).row_norm == norm
    assert clipped.transform(np.eye(3) * 2).row_norm is None  # a transform may lengthen rows


def test_clip_rows_leaves_short_rows_bit_for_bit():
    X, y = table()
    s = Shards.from_groups(X, y, np.repeat([0, 1], 30)).clip_rows(100.0)
    assert np.array_equal(s.X, X)


def test_relabel_permutes_parties():
    X, y = table()
    s = Shards.from_groups(X, y, np.repeat(["a", "b", "c"], [10, 5, 45]))
    order = [2, 0, 1]
    t = s.relabel(order)
    assert t.names == ("c", "a", "b") and t.sizes.tolist() == [45, 10, 5]
    for k, old in enumerate(order):
        assert np.array_equal(t.part(k)[0], s.part(old)[0]) and np.array_equal(t.part(k)[1], s.part(old)[1])


def test_only_is_one_party():
    X, y = table()
    s = Shards.from_groups(X, y, np.repeat(["a", "b", "c"], [10, 5, 45]))
    one = s.only(1)
    assert one.names == ("b",) and one.parties == 1 and one.offsets.tolist() == [0, 5]
    assert np.array_equal(one.X, X[10:15]) and np.array_equal(one.y, y[10:15])


def test_pooled_is_one_party_with_weights():
    X, y = table()
    s = Shards.from_groups(X, y, np.repeat([0, 1], 30), columns={"weight": np.full(60, 2.0)})
    pool = s.pooled(np.arange(60.0))
    assert pool.parties == 1 and pool.offsets.tolist() == [0, 60]
    assert np.array_equal(pool.columns["weight"], 2.0 * np.arange(60))


def test_transform_multiplies_rows():
    X, y = table()
    A = np.random.default_rng(3).normal(size=(3, 2))
    s = Shards.from_groups(X, y, np.repeat([0, 1], 30)).transform(A)
    np.testing.assert_allclose(s.X, X @ A)
    assert s.features == 2


def test_clipping_rows_that_are_mapped_from_a_file_keeps_them_on_disk(tmp_path):
    """40 MB of rows: the same numbers as in memory, and no array of their size in it."""
    n, p = 100_000, 50
    rows = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, p))
    rng = np.random.default_rng(0)
    for first in range(0, n, 10_000):
        rows[first : first + 10_000] = rng.normal(size=(10_000, p)) * rng.choice([0.01, 1.0], size=(10_000, 1))
    rows.flush()
    mapped = Shards.from_groups(np.load(tmp_path / "X.npy", mmap_mode="r"), np.ones(n), np.zeros(n))
    mapped.clip_rows(1.0)  # compiles
    tracemalloc.start()
    clipped = mapped.clip_rows(1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < rows.nbytes / 4
    plain = Shards.from_parts([(np.array(rows), np.ones(n))]).clip_rows(1.0)
    assert np.array_equal(clipped.X, plain.X) and clipped.row_norm == 1.0 and not clipped.X.flags.writeable
    assert list(tmp_path.iterdir()) == [tmp_path / "X.npy"]
