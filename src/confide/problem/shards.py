"""`Shards`: every party's rows, contiguous by party, in one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, NotFinite
from confide.files.library import sparse as sp
from confide.problem.checks import finite, whole
from confide.problem.rows import as_rows, clipped, row_norms

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shards:
    """Rows of party k are offsets[k]..offsets[k+1] of X, y and every extra column; parties may have any size.

    X          (n, features), finite: dense (float32 or float64, memory-mapped arrays are streamed), or SciPy sparse
    y          (n,) targets, finite: -1 and 1, classes 0, 1, …, or real numbers, as the loss takes them
    offsets    (parties + 1,) from 0 to n; every party has at least one row
    names      of the parties
    columns    (n,) each, travel with the rows: "weight", at least 0, multiplies a row's loss; so does "share", within 0
               and 1, which lengthens no row, so that a row norm still holds; "epsilon", above 0, is the ε a user
               randomised the label with

    `row_norm` is the public bound that `clip_rows` has enforced, if any.
    """

    X: Any
    y: Array
    offsets: Index
    names: tuple[str, ...]
    columns: Mapping[str, Array] = field(default_factory=dict)
    row_norm: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if sp.issparse(self.X):
            object.__setattr__(self, "X", _summed(self.X))
        _check_rows(self.X, self.y, self.columns)
        sizes = np.diff(self.offsets)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.y) or np.any(sizes < 0):
            raise ConfideError(
                f"offsets {self.offsets.tolist()}: must rise from 0 to the number of rows, {len(self.y)}"
            )
        if len(self.names) != len(sizes):
            raise ConfideError(f"{len(self.names)} names for {len(sizes)} parties: must be one per party")
        if np.any(sizes == 0):
            empty = [self.names[k] for k in np.flatnonzero(sizes == 0)[:3]]
            raise ConfideError(f"party {', '.join(empty)} has no rows: every party needs at least 1")

    # --- ways to build them ---------------------------------------------------------------------------------------

    @classmethod
    def from_groups(cls, X: Any, y: Any, groups: Any, columns: Mapping[str, Any] | None = None) -> Shards:
        """One party for each distinct value of `groups`, in sorted order; rows keep their order within a party."""
        X, y = _as_rows(X), _as_vector("y", y)
        groups = np.asarray(groups)
        _check_shapes(X, {"y": y})
        if groups.shape != y.shape:
            raise ConfideError(f"groups has shape {groups.shape}: must be one name per row, {y.shape}")
        if (starts := _starts(groups)) is None:
            names, member = np.unique(groups, return_inverse=True)
            return cls._gather(X, y, member, tuple(str(n) for n in names), columns)
        vectors = {name: _as_vector(name, c) for name, c in (columns or {}).items()}
        X = _summed(X) if sp.issparse(X) else X
        _check_rows(X, y, vectors)
        parties = tuple(map(str, groups[starts].tolist()))
        return cls.checked(X, y, np.append(starts, len(y)), parties, vectors)

    @classmethod
    def split(
        cls, X: Any, y: Any, parties: int, seed: int = 0,
        skew: tuple[str, float] | None = None, columns: Mapping[str, Any] | None = None,
    ) -> Shards:  # fmt: skip
        """Split at random over `parties`: evenly, or skewed.

        skew=("label", a): each party's mix of labels (of target quartiles, when y is real) is Dirichlet(a);
        skew=("size", a): the sizes are Dirichlet(a). Small a means strong skew. Every party gets at least a row.
        """
        X, y = _as_rows(X), _as_vector("y", y)
        n = len(y)
        if not (whole(parties) and 2 <= parties <= n):
            raise ConfideError(f"parties={parties}: must be a whole number between 2 and the number of rows, {n}")
        parties = int(parties)
        rng = np.random.default_rng(seed)
        if skew is None:
            member = np.arange(n) % parties
            member = member[rng.permutation(n)]
        else:
            member = _skewed(y, parties, skew, rng)
        return cls._gather(X, y, member, tuple(str(k) for k in range(parties)), columns)

    @classmethod
    def from_parts(cls, parts: Sequence[tuple[Any, Any]], names: Sequence[str] | None = None) -> Shards:
        """One (X, y) per party."""
        if not parts:
            raise ConfideError("no parts: give one (X, y) per party")
        Xs, ys = [_as_rows(X) for X, _ in parts], [_as_vector("y", y) for _, y in parts]
        stack = sp.vstack(Xs, format="csr") if sp.issparse(Xs[0]) else np.concatenate(Xs)
        offsets = np.concatenate([[0], np.cumsum([len(y) for y in ys])]).astype(np.int64)
        names = tuple(names) if names is not None else tuple(str(k) for k in range(len(parts)))
        return cls(stack, np.concatenate(ys), offsets, names)

    @classmethod
    def _gather(
        cls, X: Any, y: Array, member: Any, names: tuple[str, ...], columns: Mapping[str, Any] | None
    ) -> Shards:
        columns = {name: _as_vector(name, c) for name, c in (columns or {}).items()}
        X = _summed(X) if sp.issparse(X) else X
        _check_rows(X, y, columns)  # here, where a bad value is at the caller's place
        offsets = np.concatenate([[0], np.cumsum(np.bincount(member, minlength=len(names)))]).astype(np.int64)
        if np.all(member[1:] >= member[:-1]):  # already contiguous: a memory-mapped X stays on disk
            return cls.checked(X, y, offsets, names, columns)
        order = np.argsort(member, kind="stable")
        return cls.checked(X[order], y[order], offsets, names, {n: c[order] for n, c in columns.items()})

    @classmethod
    def checked(
        cls, X: Any, y: Array, offsets: Index, names: tuple[str, ...], columns: Mapping[str, Array] | None = None,
        row_norm: float | None = None,
    ) -> Shards:  # fmt: skip
        """Of rows that were checked before, all finite and, with `row_norm`, none longer: they are not read again."""
        new = object.__new__(cls)
        if row_norm is not None:
            for part in (X.data,) if sp.issparse(X) else (X,):
                part.flags.writeable = False  # a bound that holds now must hold later
        for name, value in zip(("X", "y", "offsets", "names", "columns", "row_norm"),
                               (X, y, offsets, names, columns or {}, row_norm), strict=True):  # fmt: skip
            object.__setattr__(new, name, value)
        return new

    # --- what they are --------------------------------------------------------------------------------------------

    @property
    def parties(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Index:
        """M_k: rows of each party."""
        return np.diff(self.offsets)

    @property
    def features(self) -> int:
        return int(self.X.shape[1])

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        low, high = self.sizes.min(), self.sizes.max()
        rows = f"{low}" if low == high else f"{low} to {high}"
        return f"Shards({self.parties} parties, {rows} rows each, {self.features} features)"

    @cached_property
    def rows(self) -> Any:
        """X as the kernels take it."""
        return as_rows(self.X)

    def norms(self, intercept: bool) -> Array:
        """‖x_i‖ of every row, with the intercept's 1 where there is one; see `rows.norm`."""
        out = np.empty(len(self))
        row_norms(self.rows, len(self), intercept, out)
        return out

    # --- others made from them ------------------------------------------------------------------------------------

    def part(self, k: int) -> tuple[Any, Array]:
        """(X_k, y_k) of party k."""
        rows = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        return self.X[rows], self.y[rows]

    def clip_rows(self, norm: float) -> Shards:
        """Every row longer than the public bound `norm` clipped to it, exactly: a bound the software enforces."""
        if not (finite(norm) and norm > 0):
            raise ConfideError(f"row norm {norm}: must be a finite number above 0")
        X = clipped(self.X, float(norm), self.norms(intercept=False))
        return Shards.checked(X, self.y, self.offsets, self.names, self.columns, float(norm))

    def with_targets(self, y: Any) -> Shards:
        """The same rows with other targets (n,)."""
        y = _as_vector("y", y)
        _check_shapes(self.X, {"y": y})
        _check_finite("y", y)
        return Shards.checked(self.X, y, self.offsets, self.names, self.columns, self.row_norm)

    def halves(self, k: int) -> Shards:
        """Party k by itself, as the two parties that a problem has at least; a central method pools them again."""
        rows = np.arange(self.offsets[k], self.offsets[k + 1])
        if len(rows) < 2:
            raise ConfideError(f"party {self.names[k]!r} has 1 row: must be at least 2 to learn by itself")
        order = np.concatenate([rows[0::2], rows[1::2]])
        offsets = np.array([0, len(rows[0::2]), len(rows)], np.int64)
        columns = {n: c[order] for n, c in self.columns.items()}
        return Shards.checked(self.X[order], self.y[order], offsets, ("0", "1"), columns, self.row_norm)

    def transform(self, matrix: Array) -> Shards:
        """Rows multiplied by a public matrix (features, new features)."""
        return Shards(self.X @ matrix, self.y, self.offsets, self.names, self.columns)

    def only(self, k: int) -> Shards:
        """Party k alone, as its own node holds it."""
        rows = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        columns = {n: c[rows] for n, c in self.columns.items()}
        offsets = np.array([0, self.sizes[k]], np.int64)
        return Shards.checked(self.X[rows], self.y[rows], offsets, (self.names[k],), columns, self.row_norm)

    def pooled(self, weight: Array) -> Shards:
        """All rows as one party, row i counting weight_i times what it did."""
        columns = dict(self.columns)
        if np.any(weight != 1.0):
            columns["weight"] = self.columns.get("weight", np.ones(len(self))) * weight
        return Shards.checked(self.X, self.y, np.array([0, len(self)], np.int64), ("all",), columns, self.row_norm)

    def relabel(self, order: Sequence[int]) -> Shards:
        """Party order[k] becomes party k."""
        rows = np.concatenate([np.arange(self.offsets[k], self.offsets[k + 1]) for k in order])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[list(order)])]).astype(np.int64)
        columns = {n: c[rows] for n, c in self.columns.items()}
        names = tuple(self.names[k] for k in order)
        return Shards.checked(self.X[rows], self.y[rows], offsets, names, columns, self.row_norm)


def _starts(groups: Any) -> Index | None:
    """Where each party's rows begin if they are in order already; in pieces, as there may be more rows than memory."""
    if groups.dtype.kind not in "iu" or not len(groups):
        return None  # texts and floats may compare otherwise than they sort
    found = [np.zeros(1, np.int64)]
    for at in range(0, len(groups) - 1, 1 << 20):
        piece = groups[at : at + (1 << 20) + 1]
        if np.any(piece[1:] < piece[:-1]):
            return None
        found.append(at + 1 + np.flatnonzero(piece[1:] != piece[:-1]))
    return np.concatenate(found)


def _skewed(y: Array, parties: int, skew: tuple[str, float], rng: np.random.Generator) -> Index:
    if not isinstance(skew, tuple | list) or len(skew) != 2 or skew[0] not in ("label", "size"):
        raise ConfideError(f"skew={skew}: must be ('label', concentration) or ('size', concentration)")
    kind, alpha = skew
    if not (finite(alpha) and alpha > 0):
        raise ConfideError(f"skew={skew}: the concentration must be a finite number above 0")
    if kind == "size":
        strata = np.zeros(len(y), np.int64)
    elif len(np.unique(y)) <= 20:
        strata = np.unique(y, return_inverse=True)[1]
    else:
        strata = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y)
    member = np.empty(len(y), np.int64)
    for s in np.unique(strata):
        rows = rng.permutation(np.flatnonzero(strata == s))
        cuts = np.floor(np.cumsum(rng.dirichlet(np.full(parties, alpha))) * len(rows)).astype(int)
        member[rows] = np.searchsorted(cuts[:-1], np.arange(len(rows)), side="right")
    for k in range(parties):  # nobody is left without a row
        if not np.any(member == k):
            member[np.flatnonzero(member == np.bincount(member).argmax())[0]] = k
    return member


def _as_rows(X: Any) -> Any:
    if not (sp.issparse(X) or isinstance(X, np.ndarray)):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ConfideError(f"X has {X.ndim} dimensions: must have 2, rows and features")
    if X.dtype.kind == "c":
        raise ConfideError(f"X holds {X.dtype} values: must hold real numbers only")
    if sp.issparse(X):
        X = X.tocsr()
        return X if X.dtype == np.float64 else X.astype(np.float64)
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            raise ConfideError(f"X holds {X.dtype} values: must hold numbers only") from None
    return np.asarray(X, order="C")


def _summed(X: Any) -> Any:
    """CSR with one entry per place: two finite ones may add up to what is none, so they are added before any check."""
    X = X.tocsr()
    if X.indices.size and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ConfideError(f"X has a column {X.indices.max()} in {X.shape[1]} columns: its indices are damaged")
    with np.errstate(over="ignore"):
        fresh = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=False)  # believes no old flag
        if not fresh.has_canonical_format:
            fresh = fresh.copy()  # the caller's matrix stays as it is
            fresh.sum_duplicates()
    return fresh


def _as_vector(name: str, v: Any) -> Array:
    try:
        v = np.asarray(v)
        if v.dtype.kind == "c":
            raise TypeError
        v = np.ascontiguousarray(v, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfideError(f"{name} holds values that are not real numbers: encode them first") from None
    if v.ndim != 1:
        raise ConfideError(f"{name} has shape {v.shape}: must be one number per row")
    return v


def _check_shapes(X: Any, columns: Mapping[str, Array]) -> None:
    if X.shape[0] < 1 or X.shape[1] < 1:
        raise ConfideError(f"X has {X.shape[0]} rows and {X.shape[1]} columns: at least 1 row and 1 feature are needed")
    for name, v in columns.items():
        if len(v) != X.shape[0]:
            raise ConfideError(f"{name} has {len(v)} entries and X {X.shape[0]} rows: they must agree")


def _check_rows(X: Any, y: Array, columns: Mapping[str, Array]) -> None:
    named = {"y": y, **columns}
    _check_shapes(X, named)
    for name, v in named.items():
        _check_finite(name, v)
    data = X.data if sp.issparse(X) else X
    for start in range(0, len(data), 65536):  # in pieces: no temporary of the data's size
        piece = np.asarray(data[start : start + 65536])
        bad = np.argwhere(~np.isfinite(piece))
        if len(bad):
            where = tuple(bad[0])
            i, j = (start + where[0], where[1]) if not sp.issparse(X) else _position(X, start + where[0])
            raise NotFinite(f"X[{i}, {j}] is {piece[where]}: every feature must be a finite number")


def _check_finite(name: str, v: Array) -> None:
    if not np.all(np.isfinite(v)):
        i = int(np.flatnonzero(~np.isfinite(v))[0])
        raise NotFinite(f"{name}[{i}] is {v[i]}: every entry must be a finite number")


def _position(X: Any, entry: int) -> tuple[int, int]:
    """Row and column of a stored entry of a CSR matrix."""
    return int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry])
