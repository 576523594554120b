"""What a node's runs found that evaluated a model, read from their journals: released sums, which were paid for.

How a sum becomes accuracy, AUC or a loss with an interval is the estimators' (`estimators.evaluating`). No row is read.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.errors import ConfideError
from confide.node import export as exports
from confide.node import federation as federations
from confide.node.agreement import in_force
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.keys import bystander
from confide.node.status import FEDERATION, runs
from confide.node.summer import Summer
from confide.runs.evaluation import Evaluation
from confide.runs.paid import HELD_OUT, paid_evaluation

if TYPE_CHECKING:
    from confide.estimators.evaluating import PrivateEvaluation, Reader


def result(home: Path, folder: Path) -> tuple[Federation, PrivateEvaluation] | None:
    """What that run found, and whose rows it was; None before all have signed the sum, and for a run that learns."""
    source = folder / FEDERATION
    federation, identity = bystander(home, in_force(home, source), source)
    if federation.evaluation is None:
        return None
    with Journal(folder, federation.digest, write=False, aliases=federation.aliases) as journal:
        member = Summer(federation, identity, journal)
        if not member.done:
            return None
        spent = exports.spent(federation, identity.card.name, member.attempts, member.heads)
    return read(federation.stages[member.made[0]], np.array(member.estimate), spent.epsilon)


def read(federation: Federation, tally: Any, epsilon: float | None) -> tuple[Federation, PrivateEvaluation]:
    """From the sum over all rows, as `JointTally` learned it; ε is None where nothing protected."""
    from confide.estimators.evaluating import PrivateEvaluation

    rows, method = sum(federation.sizes.values()), federation.algorithm
    noise = float(method.sum_scale(1, federation.public)[0, 0])  # type: ignore[attr-defined]
    found, confusion = reader(federation, rows)(tally, noise)
    cost = math.inf if epsilon is None else epsilon
    return federation, PrivateEvaluation(found, rows, cost, federation.delta or 0.0, confusion)


def reader(federation: Federation, rows: int) -> Reader:
    """What the sum says, of as many rows as the members say that they have."""
    from confide.estimators import evaluating

    measured = federation.evaluation
    assert measured is not None
    if measured.classes is None:
        return evaluating.residuals_reader(rows, half_range(federation), measured.level)
    if not measured.scores:
        return evaluating.answers_reader(rows, len(measured.classes))
    if measured.scores != evaluating.SCORES:
        raise ConfideError(
            f"{federation.name}: evaluation.scores={measured.scores}: this version reads {evaluating.SCORES}"
        )
    return evaluating.scores_reader(rows)


def half_range(federation: Federation) -> float:
    """Of the label, in its own unit; plain numbers lie in [-1, 1]."""
    return 1.0 if federation.schema is None else federation.schema.label.half_range


def to_json(federation: Federation, found: PrivateEvaluation) -> dict[str, Any]:
    """For programs, and for a file."""
    assert federation.evaluation is not None
    classes = federation.evaluation.classes
    return {
        "scores": {name: score._asdict() for name, score in found.found.items()}, "rows": found.rows,
        "epsilon": found.epsilon, "delta": found.delta, "classes": None if classes is None else [*classes],
        "confusion": None if found.confusion is None else found.confusion.tolist(),
    }  # fmt: skip


def paid_for(home: Path, coefficients: Any, intercept: Any) -> Evaluation | None:
    """The latest evaluation of this model by the node in `home`, as a report shows it; None where there is none."""
    for folder in filter(exports.evaluates, runs(home)):
        measured = federations.load(folder / FEDERATION).evaluation
        assert measured is not None
        same = np.array_equal(measured.coefficients, coefficients) and np.array_equal(measured.intercept, intercept)
        if same and (here := result(home, folder)) is not None:
            _, found = here
            shown = paid_evaluation(found.found, found.rows, found.epsilon, found.delta, found.confusion,
                                    measured.classes or ())  # fmt: skip
            return replace(shown, source=f"{HELD_OUT}, by the parties' word")
    return None
