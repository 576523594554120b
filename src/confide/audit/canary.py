"""Canaries: two neighbouring data sets of one agent that a method should find hardest to hide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.algorithms.summed import SummedMethod
from confide.audit.adversary import SILENT, Adversary, adversary
from confide.errors import ConfideError
from confide.network.graph import Graph
from confide.problem.block import Block
from confide.problem.checks import whole
from confide.problem.losses import Loss
from confide.problem.penalties import Penalty
from confide.problem.problem import Problem, Public
from confide.problem.shards import Shards

Array = NDArray[np.float64]
CONTRASTS = {"opposite": "its row turned round", "blank": "a row of zeros in its place"}
CROWDS = (1.0, 0.8, 0.64, 0.512)  # lengths, of the bound: a power of two lies between the sums of one of the pairs


class SameRows(ConfideError):
    """Two data sets that don't differ."""


class Coalition(NamedTuple):
    """Parties who pool what they know, and outsiders.

    colluders    how many of them, from 0
    parties      of the network
    """

    colluders: int
    parties: int

    def __str__(self) -> str:
        return f"outsiders and {self.colluders} of {self.parties} parties" if self.colluders else "outsiders"


@dataclass(frozen=True, eq=False)
class Canary:
    """Two problems that differ in one row of the agent `target`, and the adversary it talks to.

    The neighbours are the adversary's, so that the target's own noise is all that is random in the transcript. `bound`
    is a public bound on a row's gradient, or 1: the adversary measures with it.

    Of a method on private sums the adversary sees sums: `colluders` of the parties, by default as many as the method
    names, subtract what they know, and are left with the sum of all others, whose rows they know but for the one.

    one, other    the two problems; graph: the network between their parties
    text          which rows differ, and how, in words; name: by which it is asked for
    kept          blocks that were prepared, shared over adversaries
    """

    one: Problem
    other: Problem
    graph: Graph
    text: str
    target: int = 0
    adversary: Adversary = SILENT
    name: str = "given"
    bound: float = 1.0
    colluders: int | None = None
    kept: dict[bool, tuple[Block, Block]] = field(default_factory=dict, repr=False)  # shared over adversaries

    def __post_init__(self) -> None:
        a, b = self.one.shards, self.other.shards
        same = (self.one.loss, self.one.penalty, self.one.weighting, self.one.intercept, a.row_norm)
        if same != (self.other.loss, self.other.penalty, self.other.weighting, self.other.intercept, b.row_norm):
            raise ConfideError("a canary of two losses, penalties or bounds: its two problems must differ in rows only")
        if a.X.shape != b.X.shape or not np.array_equal(a.offsets, b.offsets):
            raise ConfideError(f"a canary of {a!r} and {b!r}: its two data sets must have equal sizes")
        differ = np.flatnonzero(np.any(np.asarray(a.X) != np.asarray(b.X), axis=1) | (a.y != b.y))
        first, end = a.offsets[self.target], a.offsets[self.target + 1]
        if not len(differ):
            raise SameRows(f"no row replaced: a canary replaces one row of agent {self.target}")
        if len(differ) != 1 or not first <= differ[0] < end:
            raise ConfideError(f"rows {differ.tolist()} replaced: a canary replaces one row of agent {self.target}")

    def against(self, other: str | Sequence[float] | Adversary) -> Canary:
        """The same rows, told something else."""
        return replace(self, adversary=adversary(other))

    def colluding(self, colluders: int) -> Canary:
        """The same rows, before so many parties who pool what they know; 0: outsiders alone."""
        if not (whole(colluders) and 0 <= colluders < self.graph.size):
            raise ConfideError(f"colluders={colluders}: must be a whole number from 0 to {self.graph.size - 1}")
        return replace(self, colluders=colluders)

    def hidden(self, algorithm: Algorithm) -> list[int]:
        """The parties beside the target whose messages the adversary sees only in a sum with the target's."""
        if not isinstance(algorithm, SummedMethod):
            if self.colluders is not None:
                raise ConfideError(f"{algorithm.name} sends its messages bare: colluders={self.colluders} see them all")
            return []
        known = algorithm.colluders(self.public(algorithm)) if self.colluders is None else self.colluders
        return [k for k in range(self.graph.size) if k != self.target][known:]

    def coalition(self, algorithm: Algorithm) -> Coalition | None:
        """Who attacks a private sum; None where messages are bare, so that everyone sees them."""
        hidden = len(self.hidden(algorithm))
        parties = self.graph.size
        return Coalition(parties - 1 - hidden, parties) if isinstance(algorithm, SummedMethod) else None

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
        central = algorithm.topology == "central"
        if central not in self.kept:
            one, other = (p.pooled if central else p.only(self.target) for p in (self.one, self.other))
            self.kept[central] = (one, other)
        return self.kept[central]


@dataclass(frozen=True)
class SharedSetting:
    """What every canary of a family shares: all that is public."""

    loss: Loss
    rows: int
    features: int
    penalty: Penalty | None
    intercept: bool
    graph: Graph
    row_norm: float | None  # enforced, where nothing is clipped
    bound: float

    def canary(
        self, name: str, text: str, one: tuple[Any, float], other: tuple[Any, float], rest: tuple[Any, float],
        told: Adversary = SILENT,
    ) -> Canary:  # fmt: skip
        """One row (x, y) or the other among `rows` of the target, the rest being alike."""
        problems = []
        for x, y in (one, other):
            X = np.tile(np.asarray(rest[0], float), (self.graph.size * self.rows, 1))
            Y = np.full(len(X), float(rest[1]))
            X[0], Y[0] = x, y
            shards = Shards.from_groups(X, Y, np.repeat(np.arange(self.graph.size), self.rows))
            shards = shards if self.row_norm is None else shards.clip_rows(self.row_norm)
            problems.append(Problem(shards, self.loss, self.penalty, intercept=self.intercept))
        words = f"1 of {self.rows} rows, {text}"
        return Canary(problems[0], problems[1], self.graph, words, 0, told, name, self.bound)


def worst_case(
    loss: Loss, algorithm: Algorithm, *, contrast: str = "opposite", rows: int = 5, features: int = 1,
    target: float | None = None, length: float | None = None, penalty: Penalty | None = None,
    graph: Graph | None = None, heard: str | Sequence[float] | Adversary = "silent", intercept: bool = False,
) -> Canary:  # fmt: skip
    """The canary of a loss: one row on the steep side of it, among rows of zeros, which have no gradient.

    contrast   the neighbour: "opposite" turns the row round, so that the two gradients are opposite and each as long as
               the method's clipping lets it be; "blank" takes it away, which tells a row from noise that is drawn once
    target     y of the row, by default so far off that the steep side is never left
    length     of the row, by default twice what the clipping allows at the start, or 1, enforced, without clipping
    heard      what the neighbours send: numbers in turn, or an adversary, or its name
    """
    if contrast not in CONTRASTS:
        raise ConfideError(f"contrast={contrast!r}: must be one of {', '.join(CONTRASTS)}")
    setting, y, size = common(loss, algorithm, rows, features, target, length, penalty, graph, intercept)
    x = np.eye(features)[0] * size
    text = f"({size:.3g}, y={y:g}) among zeros, against {CONTRASTS[contrast]}"
    other = -x if contrast == "opposite" else 0 * x
    return setting.canary(contrast, text, (x, y), (other, y), (0 * x, y), adversary(heard))


def family(
    loss: Loss, algorithm: Algorithm, *, rows: int = 5, penalty: Penalty | None = None, intercept: bool = False,
    graph: Graph | None = None,
) -> list[Canary]:  # fmt: skip
    """Every canary of a setting, `worst_case` first; they differ in private rows only, so that one claim is for all.

    opposite, blank          as in `worst_case`
    flipped                  the same features under another label (a target mirrored)
    zero row                 features 0, label flipped: with an intercept the gradient is all in its coordinate
    coordinates              the row along one feature, and along another
    long                     a row of length 1,000: a large model brings its margin to overflow
    huge, mixed              1e300, and (1e200, -1e200): the norm overflows, margins are ∞ or no number
    underflow, subnormal     1e-170 and 5e-324 with a target of 1e300: the norm's square is 0, the gradient is not
    crowd                    opposite among rows that all pull one way, so that rounding has something to round
    crowd balanced           the same, their mean a power of two, where rounding to doubles beside a large one turns
    """
    setting, y, size = common(loss, algorithm, rows, 2, None, None, penalty, graph, intercept)
    other_y = {"real": -y, "sign": -y, "class": 1.0}[loss.labels]
    none, x, across = np.zeros(2), np.array([size, 0.0]), np.array([0.0, size])
    row, rest, blank = f"({size:.3g}, 0, y={y:g})", (none, y), CONTRASTS["blank"]
    found = [
        setting.canary("opposite", f"{row} among zeros, against {CONTRASTS['opposite']}", (x, y), (-x, y), rest),
        setting.canary("blank", f"{row} among zeros, against {blank}", (x, y), rest, rest),
        setting.canary("flipped", f"{row} among zeros, against y={other_y:g}", (x, y), (x, other_y), rest),
        setting.canary("coordinates", f"{row} among zeros, against its other feature", (x, y), (across, y), rest),
    ]
    if intercept:
        text = f"all zero, y={y:g}, against y={other_y:g}"
        found.append(setting.canary("zero row", text, (none, y), (none, other_y), rest))
    far = 1e300 if loss.labels == "real" else y
    extremes = {
        "long": ((1e3, 0.0), y), "huge": ((1e300, 0.0), y), "mixed": ((1e200, -1e200), y),
        "underflow": ((1e-170, 0.0), far), "subnormal": ((5e-324, 0.0), far),
    }  # fmt: skip
    for name, (features, target) in extremes.items():
        text = f"({features[0]:g}, {features[1]:g}, y={target:g}) among zeros, against {blank}"
        with suppress(SameRows):  # where rows are clipped, and this one to nothing
            found.append(setting.canary(name, text, (features, target), rest, rest))
    # beyond what an adversary near 2^52 makes of the model, and steep there
    crowd_y = 1e30 if loss.labels == "real" else y
    steep = loss.slope_bound if math.isfinite(loss.slope_bound) else crowd_y
    for share in CROWDS:
        side = np.array([share * setting.bound / steep, 0.0])
        text = f"({side[0]:.3g}, 0, y={crowd_y:g}) among its like, against {CONTRASTS['opposite']}"
        name = "crowd" if share == 1 else f"crowd {share:g}"
        found.append(setting.canary(name, text, (side, crowd_y), (-side, crowd_y), (side, crowd_y)))
    half = 2.0 ** math.floor(math.log2(setting.bound * (1 - 1 / rows))) if rows > 1 else setting.bound
    side, like = (np.array([size / steep, 0.0]) for size in (setting.bound, half / (1 - 1 / rows)))
    text = f"({side[0]:.3g}, 0, y={crowd_y:g}) among rows of mean gradient {half:.3g}, against {CONTRASTS['opposite']}"
    found.append(setting.canary("crowd balanced", text, (side, crowd_y), (-side, crowd_y), (like, crowd_y)))
    return found


def common(
    loss: Loss, algorithm: Algorithm, rows: int, features: int, target: float | None, length: float | None,
    penalty: Penalty | None, graph: Graph | None, intercept: bool,
) -> tuple[SharedSetting, float, float]:  # fmt: skip
    """The public setting, and the target and the length of the row that is steepest in it."""
    if rows < 1 or features < 1:
        raise ConfideError(f"rows={rows}, features={features}: a canary needs at least 1 of each")
    clip = float(np.max(np.asarray(getattr(algorithm, "clip", np.inf), float)))
    clipped = np.isfinite(clip)
    y, steep = steepest(loss, target if target is not None else 1e3 * max(1.0, clip if clipped else 1.0))
    size = length if length is not None else 2 * clip / steep if clipped else 1.0
    bound = clip if clipped else size * (loss.slope_bound if math.isfinite(loss.slope_bound) else 1.0)
    row_norm = None if clipped else size
    return SharedSetting(loss, rows, features, penalty, intercept, graph or Graph.path(2), row_norm, bound), y, size


def steepest(loss: Loss, far: float) -> tuple[float, float]:
    """The target at which the slope at margin 0 is steepest, and that slope."""
    choices = {"real": (far, -far), "sign": (1.0,), "class": (0.0,)}[loss.labels]
    slopes = [float(np.linalg.norm(_slope(loss, y))) for y in choices]
    best = int(np.argmax(slopes))
    return choices[best], slopes[best]


def _slope(loss: Loss, y: float) -> Any:
    return loss.slope(np.zeros((1, loss.outputs)) if loss.outputs > 1 else 0.0, y)
