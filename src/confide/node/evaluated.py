"""`Evaluated`: the public model that a federation of one round measures, and what parties' rows become under it.

    [evaluation]
    coefficients = [[0.3, -1.2]]     a list for each output
    intercept = [0.1]
    classes = ["no", "yes"]          the label's values; left out where it is a number
    scores = [-2.0, 0.0, 2.0]        borders of the cells of a margin, where there are two classes; 0 is one of them

By this model, which everybody has, a row becomes the number of one cell, (class, score) or with more than two classes
(class, answer); or a residual, where the label is a number, counted as it is encoded, from -1 to 1. `JointTally` counts
cells over all parties, or averages the pinball loss of residuals. What a row becomes depends on that row and on public
numbers alone, so that replacing a row moves the tally by what its questions say, √2/n or 2c/n. Cells are as private as
rows, and are in memory only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms import Algorithm, JointTally
from confide.errors import ConfideError
from confide.files.keys import strict
from confide.files.values import shown
from confide.problem import linear
from confide.problem.losses import Loss, Quantile, Squared
from confide.problem.shards import Shards
from confide.runs.model import numbers
from confide.schema.schema import Schema

Array = NDArray[np.float64]
MOST_CELLS = 10_000
PIECE = 1 << 16  # rows at a time: they may be larger than memory


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A linear model on encoded rows, and how its answers are counted.

    coefficients    (outputs, features)
    intercept       (outputs,)
    classes         None: the label is a number
    scores          rising; none but for two classes
    level           of the quantile that it predicts; None: it does not
    """

    coefficients: Array
    intercept: Array
    classes: tuple[str, ...] | None
    scores: tuple[float, ...]
    level: float | None

    @classmethod
    def from_document(cls, table: Any, loss: Loss, features: int, classes: tuple[str, ...] | None) -> Evaluated:
        """The table [evaluation]; `classes` are those that the schema, or else the loss, says."""
        if loss.base is not loss:
            raise ConfideError(f"model.loss: {type(loss).__name__}: answers are compared with labels as they are")
        two = classes is not None and len(classes) == 2
        needed = ("coefficients", "intercept", *(["classes"] if classes else []), *(["scores"] if two else []))
        given = strict(table, "evaluation", needed)
        if classes is not None and given["classes"] != [*classes]:
            raise ConfideError(
                f"evaluation.classes={shown(given['classes'])}: must be {shown([*classes])}, as the label's"
            )
        coefficients = numbers(given["coefficients"], "evaluation.coefficients", 2)
        intercept = numbers(given["intercept"], "evaluation.intercept", 1)
        outputs = loss.outputs
        if coefficients.shape != (outputs, features) or intercept.shape != (outputs,):
            raise ConfideError(
                f"evaluation: coefficients of shape {coefficients.shape} and intercept of {intercept.shape}: must be "
                f"({outputs}, {features}) and ({outputs},), as the rows and the loss say"
            )
        scores = numbers(given["scores"], "evaluation.scores", 1) if two else np.zeros(0)
        if two and not (0.0 in scores and np.all(np.diff(scores) > 0)):
            raise ConfideError(f"evaluation.scores={shown(given['scores'])}: must be rising numbers, 0 among them")
        level = float(loss.level) if isinstance(loss, Quantile) else None
        found = cls(coefficients, intercept, classes, tuple(scores.tolist()), level)
        if found.count > MOST_CELLS:
            raise ConfideError(f"evaluation: {found.count} cells: must be at most {MOST_CELLS}")
        return found

    # --- what is asked ----------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Numbers in the tally: cells, or one mean loss."""
        if self.classes is None:
            return 1
        return 2 * (len(self.scores) + 1) if self.scores else len(self.classes) ** 2

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the JointTally that counts it."""
        if self.classes is None:
            return {"clip": self.loss.slope_bound}
        return {"edges": [cell + 0.5 for cell in range(self.count - 1)]}

    @property
    def loss(self) -> Loss:
        """Of residuals: the pinball loss; cells are only counted."""
        return Squared() if self.classes is not None else Quantile(0.5 if self.level is None else self.level)

    @property
    def row_norm(self) -> float:
        """Of what rows become: residuals lie within 2, cells have no features."""
        return 2.0 if self.classes is None else 1.0

    # --- what rows become -------------------------------------------------------------------------------------------

    def cells(self, rows: Shards) -> Shards:
        """Encoded and clipped rows as JointTally reads them: targets are cells, or the one feature is a residual."""
        z = self.margins(rows.X)
        nothing = np.zeros(len(rows))
        if self.classes is None:
            features, targets = np.clip(rows.y, -1, 1) - np.clip(z[:, 0], -1, 1), nothing
        else:
            features, targets = nothing, self.codes(z, rows.y)
        return Shards(features[:, None], targets, rows.offsets, rows.names).clip_rows(self.row_norm)

    def margins(self, X: Any) -> Array:
        """(n, outputs). Whatever the coefficients are, a row has an answer: none may show itself by an error."""
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [linear.margins(X[at : at + PIECE], self.coefficients, self.intercept)
                     for at in range(0, X.shape[0], PIECE)]  # fmt: skip
        return np.nan_to_num(np.concatenate(parts))

    def codes(self, z: Array, y: Array) -> Array:
        """The number of each row's cell, by class and then by score or answer."""
        assert self.classes is not None
        if not self.scores:
            return y * len(self.classes) + linear.answers(z)
        with np.errstate(over="ignore"):
            score = z[:, 0] if z.shape[1] == 1 else z[:, 1] - z[:, 0]
        return np.searchsorted(self.scores, score, side="left") + (len(self.scores) + 1.0) * (y > 0)


def check_tally(measured: Evaluated | None, method: Algorithm, weighting: str) -> None:
    """One line unless the method counts what the model's answers become; without a model it must be another."""
    if measured is None:
        if isinstance(method, JointTally):
            raise ConfideError("algorithm JointTally: measures a model, which [evaluation] must hold")
        return
    wanted = {"edges": [], **measured.parameters}
    given = {name: getattr(method, name, None) for name in wanted}
    if isinstance(given["edges"], tuple):
        given["edges"] = [*given["edges"]]
    if not isinstance(method, JointTally) or given != wanted:
        said = f"edges 0.5, 1.5, … of {measured.count} cells" if measured.classes else f"clip={wanted['clip']:g}"
        raise ConfideError(f"algorithm {method.name} with [evaluation]: must be JointTally with {said}")
    if weighting != "rows":
        raise ConfideError(f"model.weighting={weighting!r}: must be 'rows' in an evaluation: they count alike")


def label_values(schema: Schema | None, loss: Loss) -> tuple[str, ...] | None:
    """The label's values; of plain numbers those that the loss takes; None where it is a number."""
    if schema is not None:
        return None if schema.label.kind == "real" else schema.label.values
    match loss.labels:
        case "sign":
            return ("-1", "1")
        case "class":
            return tuple(str(k) for k in range(loss.outputs))
    return None


def table(coefficients: Array, intercept: Array, classes: tuple[str, ...] | None, scores: tuple[float, ...]
          ) -> Mapping[str, Any]:  # fmt: skip
    """[evaluation] as a file has it."""
    out: dict[str, Any] = {"coefficients": coefficients.tolist(), "intercept": intercept.tolist()}
    if classes is not None:
        out["classes"] = [*classes]
        if len(classes) == 2:
            out["scores"] = [*scores]
    return out
