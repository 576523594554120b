"""`Shards`: every party's rows, contiguous by party, in one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from confide.problem import kernels
from confide.problem.checks import finite, whole

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shards:
    """Rows of party k are offsets[k]..offsets[k+1] of X, y and every extra column; parties may have any size.

    X is dense (float32 or float64, memory-mapped arrays are streamed) or a SciPy sparse matrix. `columns` travel
    with the rows: "weight" multiplies a row's loss, "epsilon" is the ε a user randomised the label with.
    `row_norm` is the public bound that `clip_rows` has enforced, if any.
    """

    X: Any
    y: Array
    offsets: Index
    names: tuple[str, ...]
    columns: Mapping[str, Array] = field(default_factory=dict)
    row_norm: float | None = None

    def __post_init__(self) -> None:
        _check_rows(self.X, self.y, self.columns)
        sizes = np.diff(self.offsets)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.y) or np.any(sizes < 0):
            raise ValueError(f"offsets {self.offsets.tolist()}: must rise from 0 to the number of rows, {len(self.y)}")
        if len(self.names) != len(sizes):
            raise ValueError(f"{len(self.names)} names for {len(sizes)} parties: must be one a party")
        if np.any(sizes == 0):
            empty = [self.names[k] for k in np.flatnonzero(sizes == 0)[:3]]
            raise ValueError(f"party {', '.join(empty)} has no rows: every party needs at least 1")

    # --- ways to build them ---------------------------------------------------------------------------------------

    @classmethod
    def from_groups(cls, X: Any, y: Any, groups: Any, columns: Mapping[str, Any] | None = None) -> Shards:
        """One party for each distinct value of `groups`, in sorted order; rows keep their order within a party."""
        X, y = _as_rows(X), _as_vector("y", y)
        groups = np.asarray(groups)
        _check_shapes(X, {"y": y})
        if groups.shape != y.shape:
            raise ValueError(f"groups has shape {groups.shape}: must be one name a row, {y.shape}")
        names, member = np.unique(groups, return_inverse=True)
        return cls._gather(X, y, member, tuple(str(n) for n in names), columns)

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
            raise ValueError(f"parties={parties}: must be a whole number between 2 and the number of rows, {n}")
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
        """One (X, y) a party."""
        if not parts:
            raise ValueError("no parts: give one (X, y) a party")
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
        _check_rows(X, y, columns)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(member, minlength=len(names)))]).astype(np.int64)
        if np.all(member[1:] >= member[:-1]):  # already contiguous: a memory-mapped X stays on disk
            return cls(X, y, offsets, names, columns)
        order = np.argsort(member, kind="stable")
        return cls(X[order], y[order], offsets, names, {n: c[order] for n, c in columns.items()})

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
        if sp.issparse(self.X):
            X = self.X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()  # the caller's matrix stays as it is
                X.sum_duplicates()
            return (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64), int(X.shape[1]))
        view = np.asarray(self.X)[:]
        view.flags.writeable = False
        return view

    def norms(self, intercept: bool) -> Array:
        """‖x_i‖ of every row, with the intercept's 1 where there is one."""
        out = np.empty(len(self))
        kernels.row_norms(self.rows, len(self), intercept, out)
        return out

    # --- others made from them ------------------------------------------------------------------------------------

    def part(self, k: int) -> tuple[Any, Array]:
        """(X_k, y_k) of party k."""
        rows = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        return self.X[rows], self.y[rows]

    def clip_rows(self, norm: float) -> Shards:
        """Every row longer than the public bound `norm` shortened to it: a bound the software enforces."""
        if not (finite(norm) and norm > 0):
            raise ValueError(f"row norm {norm}: must be a finite number above 0")
        size = self.norms(intercept=False)
        room = 1 - 4 * np.finfo(self.X.dtype).eps - (self.features + 4) * np.finfo(float).eps  # for rounding
        factor = np.where(size > norm, norm * room / np.maximum(size, 1e-300), 1.0)
        X = sp.diags_array(factor) @ self.X if sp.issparse(self.X) else self.X * factor[:, None].astype(self.X.dtype)
        return Shards(sp.csr_array(X) if sp.issparse(X) else X, self.y, self.offsets, self.names, self.columns, norm)

    def transform(self, matrix: Array) -> Shards:
        """Rows multiplied by a public matrix (features, new features)."""
        return Shards(self.X @ matrix, self.y, self.offsets, self.names, self.columns)

    def only(self, k: int) -> Shards:
        """Party k alone, as its own node holds it."""
        rows = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        columns = {n: c[rows] for n, c in self.columns.items()}
        offsets = np.array([0, self.sizes[k]], np.int64)
        return Shards(self.X[rows], self.y[rows], offsets, (self.names[k],), columns, self.row_norm)

    def pooled(self, weight: Array) -> Shards:
        """All rows as one party, row i counting weight_i times what it did."""
        columns = {**self.columns, "weight": self.columns.get("weight", np.ones(len(self))) * weight}
        return Shards(self.X, self.y, np.array([0, len(self)], np.int64), ("all",), columns, self.row_norm)

    def relabel(self, order: Sequence[int]) -> Shards:
        """Party order[k] becomes party k."""
        rows = np.concatenate([np.arange(self.offsets[k], self.offsets[k + 1]) for k in order])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[list(order)])]).astype(np.int64)
        columns = {n: c[rows] for n, c in self.columns.items()}
        names = tuple(self.names[k] for k in order)
        return Shards(self.X[rows], self.y[rows], offsets, names, columns, self.row_norm)


def _skewed(y: Array, parties: int, skew: tuple[str, float], rng: np.random.Generator) -> Index:
    if not isinstance(skew, tuple | list) or len(skew) != 2 or skew[0] not in ("label", "size"):
        raise ValueError(f"skew={skew}: must be ('label', concentration) or ('size', concentration)")
    kind, alpha = skew
    if not (finite(alpha) and alpha > 0):
        raise ValueError(f"skew={skew}: the concentration must be a finite number above 0")
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
        raise ValueError(f"X has {X.ndim} dimensions: must have 2, rows and features")
    if X.dtype.kind == "c":
        raise ValueError(f"X holds {X.dtype} values: must hold real numbers only")
    if sp.issparse(X):
        X = X.tocsr()
        return X if X.dtype == np.float64 else X.astype(np.float64)
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"X holds {X.dtype} values: must hold numbers only") from None
    return np.asarray(X, order="C")


def _as_vector(name: str, v: Any) -> Array:
    try:
        v = np.asarray(v)
        if v.dtype.kind == "c":
            raise TypeError
        v = np.ascontiguousarray(v, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} holds values that are not real numbers: encode them first") from None
    if v.ndim != 1:
        raise ValueError(f"{name} has shape {v.shape}: must be one number a row")
    return v


def _check_shapes(X: Any, columns: Mapping[str, Array]) -> None:
    if X.shape[0] < 1 or X.shape[1] < 1:
        raise ValueError(f"X has {X.shape[0]} rows and {X.shape[1]} columns: at least 1 row and 1 feature are needed")
    for name, v in columns.items():
        if len(v) != X.shape[0]:
            raise ValueError(f"{name} has {len(v)} entries and X {X.shape[0]} rows: they must agree")


def _check_rows(X: Any, y: Array, columns: Mapping[str, Array]) -> None:
    named = {"y": y, **columns}
    _check_shapes(X, named)
    for name, v in named.items():
        if not np.all(np.isfinite(v)):
            i = int(np.flatnonzero(~np.isfinite(v))[0])
            raise ValueError(f"{name}[{i}] is {v[i]}: every entry must be a finite number")
    data = X.data if sp.issparse(X) else X
    for start in range(0, len(data), 65536):  # in pieces: no temporary of the data's size
        piece = np.asarray(data[start : start + 65536])
        bad = np.argwhere(~np.isfinite(piece))
        if len(bad):
            where = tuple(bad[0])
            i, j = (start + where[0], where[1]) if not sp.issparse(X) else _position(X, start + where[0])
            raise ValueError(f"X[{i}, {j}] is {piece[where]}: every feature must be a finite number")


def _position(X: Any, entry: int) -> tuple[int, int]:
    """Row and column of a stored entry of a CSR matrix."""
    return int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry])
