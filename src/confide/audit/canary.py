"""Canaries: two neighbouring data sets of one agent that a method should find hardest to hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.algorithms.base import Algorithm
from confide.network.graph import Graph
from confide.problem.block import Block
from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards

CONTRASTS = {"opposite": "its row turned round", "blank": "a row of zeros in its place"}


@dataclass(frozen=True, eq=False)
class Canary:
    """Two problems that differ in one row of the agent `target`, and what its neighbours say.

    The neighbours are the adversary's: in round t their weighted messages sum to `heard[(t - 1) % len(heard)]` in
    every coordinate, so that the target's own noise is all that is random in the transcript.
    """

    one: Problem
    other: Problem
    graph: Graph
    text: str
    target: int = 0
    heard: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        a, b = self.one.shards, self.other.shards
        same = (self.one.loss, self.one.penalty, self.one.weighting, self.one.intercept, a.row_norm)
        if same != (self.other.loss, self.other.penalty, self.other.weighting, self.other.intercept, b.row_norm):
            raise ValueError("a canary's two problems must differ in rows only, given other losses or bounds")
        if a.X.shape != b.X.shape or not np.array_equal(a.offsets, b.offsets):
            raise ValueError(f"a canary's two data sets must have equal sizes, given {a!r} and {b!r}")
        differ = np.flatnonzero(np.any(np.asarray(a.X) != np.asarray(b.X), axis=1) | (a.y != b.y))
        first, end = a.offsets[self.target], a.offsets[self.target + 1]
        if len(differ) != 1 or not first <= differ[0] < end:
            raise ValueError(f"a canary replaces one row of agent {self.target}, given {differ.tolist()} replaced")

    def public(self, algorithm: Algorithm) -> Public:
        """What everyone may know: for calibration and for the claim."""
        whole = self.one.public(None if algorithm.topology == "central" else self.graph)
        return whole.as_one() if algorithm.topology == "central" else whole

    def view(self, algorithm: Algorithm) -> Public:
        """The same, as the target sees it."""
        public = self.public(algorithm)
        return public if algorithm.topology == "central" else public.at(self.target)

    def blocks(self, algorithm: Algorithm) -> tuple[Block, Block]:
        """The target's rows in both worlds."""
        problems = (self.one, self.other)
        if algorithm.topology == "central":
            return problems[0].pooled, problems[1].pooled
        return problems[0].only(self.target), problems[1].only(self.target)


def worst_case(
    loss: Loss, algorithm: Algorithm, *, contrast: str = "opposite", rows: int = 5, features: int = 1,
    target: float | None = None, length: float | None = None, penalty: Penalty | None = None,
    graph: Graph | None = None, heard: tuple[float, ...] = (0.0,), intercept: bool = False,
) -> Canary:  # fmt: skip
    """The canary of a loss: one row on the steep side of it, among rows of zeros, which have no gradient.

    contrast   the neighbour: "opposite" turns the row round, so that the two gradients are opposite and each as long as
               the method's clipping lets it be; "blank" takes it away, which tells a row from noise that is drawn once
    target     y of the row, by default so far off that the steep side is never left
    length     of the row, by default twice what the clipping shortens at the start, or 1, enforced, without clipping
    heard      what the neighbours send
    """
    if contrast not in CONTRASTS:
        raise ValueError(f"contrast={contrast!r}: must be one of {', '.join(CONTRASTS)}")
    if rows < 1 or features < 1:
        raise ValueError(f"rows={rows}, features={features}: a canary needs at least 1 of each")
    clip = float(np.max(np.asarray(getattr(algorithm, "clip", np.inf), float)))
    y, steep = steepest(loss, target if target is not None else 1e3 * max(1.0, clip if np.isfinite(clip) else 1.0))
    bounded = not np.isfinite(clip)
    size = length if length is not None else 1.0 if bounded else 2 * clip / steep
    graph = graph or Graph.path(2)
    X = np.zeros((graph.size * rows, features))
    Y = np.full(len(X), y)
    problems = []
    for first in (size, -size if contrast == "opposite" else 0.0):
        X[0, 0] = first
        shards = Shards.from_groups(X.copy(), Y, np.repeat(np.arange(graph.size), rows))
        problems.append(Problem(shards.clip_rows(size) if bounded else shards, loss, penalty, intercept=intercept))
    text = (
        f"1 of {rows} rows, ({size:.3g}, y={y:g}) among zeros, against {CONTRASTS[contrast]}; "
        f"neighbours send {', '.join(f'{h:g}' for h in heard)}"
    )
    return Canary(problems[0], problems[1], graph, text, 0, heard)


def steepest(loss: Loss, far: float) -> tuple[float, float]:
    """The target at which the slope at margin 0 is steepest, and that slope."""
    choices = {"real": (far, -far), "sign": (1.0,), "class": (0.0,)}[loss.labels]
    slopes = [float(np.linalg.norm(_slope(loss, y))) for y in choices]
    best = int(np.argmax(slopes))
    return choices[best], slopes[best]


def _slope(loss: Loss, y: float) -> Any:
    return loss.slope(np.zeros((1, loss.outputs)) if loss.outputs > 1 else 0.0, y)
