"""A party's own rows, read where they are. Nothing is learned from them, and no error shows a value of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.node.federation import Federation
from confide.node.records import RecordStore, is_store
from confide.problem.block import Block
from confide.problem.losses import NoisyLabels
from confide.problem.problem import check_labels, row_scale
from confide.problem.shards import Shards
from confide.schema.plain import read_numbers
from confide.schema.reader import ingest


def read_block(path: Path, federation: Federation, k: int, work: Path, training: bool) -> Block:
    """Party k's rows as its algorithm sees them: clipped to the public norm, weighed as all agreed.

    With a schema they are encoded into the folder `work` and stay on disk. Once `training` has begun a row that does
    not fit the schema counts as its fixed public row; before, it is refused by line and column. Of a store of
    randomised records, which may have grown since, they are the first so many as the federation says. Where a model is
    evaluated, they are the cells or residuals that its answers fall into.
    """
    name = federation.parties[k]
    if is_store(path):
        shards = records(path, federation, name, work)
    elif isinstance(federation.loss, NoisyLabels) and federation.loss.epsilon is None:
        raise ConfideError(f"{path}: the loss needs each row's ε: give a store of records, by `confide node ingest`")
    elif federation.schema is not None:
        shards = ingest(path, federation.schema, work, party=name, training=training).shards()
    else:
        shards = plain(path, name)
    if (len(shards), shards.features) != (federation.sizes[name], federation.features):
        raise ConfideError(
            f"{path}: {len(shards)} rows of {shards.features} features: the federation says "
            f"{federation.sizes[name]} rows of {federation.features} for {name}"
        )
    if federation.schema is None and federation.row_norm is not None:
        shards = shards.clip_rows(federation.row_norm)
    try:
        check_labels(shards, federation.loss)
    except ConfideError:
        raise ConfideError(f"{path}: a label is not one that {type(federation.loss).__name__} takes") from None
    scale = row_scale(federation.public.sizes, federation.weighting)[k : k + 1]
    measured = federation.evaluation
    if measured is not None:
        return Block(measured.cells(shards), measured.loss, scale, False)
    return Block(shards, federation.loss, scale, federation.intercept)


def records(path: Path, federation: Federation, name: str, work: Path) -> Shards:
    """Party `name`'s rows from a store of randomised records, each with its user's ε."""
    loss = federation.loss
    if federation.schema is None:
        raise ConfideError(f"{path}: a store of records has a schema, the federation none")
    if not isinstance(loss, NoisyLabels):
        raise ConfideError(
            f"{path}: labels in a store are randomised: the loss must be NoisyLabels, which corrects that"
        )
    with RecordStore.load(path, federation.schema) as store:
        common = loss.epsilon is not None
        if store.lowest < loss.smallest_epsilon or (common and store.highest > loss.smallest_epsilon):
            raise ConfideError(
                f"{path}: users chose an ε from {store.lowest:g} to {store.highest:g}: the loss takes "
                f"{'only' if common else 'at least'} {loss.smallest_epsilon:g}"
            )
        return store.shards(name, work, federation.sizes[name])


def plain(path: Path, name: str) -> Shards:
    """Party `name`'s rows without a schema, each number looked at once: those of a text file were, as it was read."""
    X, y = read(path)
    if path.suffix != ".npz":
        return Shards.checked(np.ascontiguousarray(X), np.ascontiguousarray(y), np.array([0, len(y)]), (name,))
    try:
        return Shards.from_parts([(X, y)], [name])
    except ConfideError as error:
        raise ConfideError(f"{path}: {error}") from None


def read(path: Path) -> tuple[Any, Any]:
    """(X, y) without a schema: an .npz with both, or a CSV of plain numbers whose last column is the label."""
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as file:
                X, y = np.asarray(file["X"], float), np.asarray(file["y"], float)
        except (KeyError, ValueError, EOFError, MemoryError):
            raise ConfideError(f"{path}: must hold the arrays X and y, of numbers, that fit in memory") from None
    else:
        table = read_numbers(path)
        if table.shape[1] < 2:
            raise ConfideError(f"{path}: rows of 1 number: must be at least 2, the label last")
        X, y = table[:, :-1], table[:, -1]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ConfideError(
            f"{path}: X of shape {X.shape} and y of {y.shape}: must be 2 dimensions and a number for each row"
        )
    return X, y
