"""A run's quality on a test set that its owner declares public, read from a file.

With `own`, rows of one's own that only their owner may see, also what a party's own model reaches on the same test set:
that is computed from private rows without noise, and the page that shows it is not for release.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError
from confide.files.parts import from_table
from confide.problem import losses
from confide.problem.losses import Logistic, Loss, Multinomial, Quantile, Squared
from confide.problem.penalties import L2
from confide.problem.problem import Problem
from confide.problem.shards import Shards
from confide.report import scores
from confide.report.scores import PartyScores, Quality, Scores
from confide.runs.evaluation import label_text, same_answer
from confide.runs.run import Run
from confide.runs.setting import Setting
from confide.schema import columns, tables
from confide.schema.reader import read
from confide.schema.schema import Group, Schema

Array = NDArray[np.float64]
WEAK = L2(1e-6)  # of a party's own model, as the estimators' own


@dataclass(frozen=True, eq=False)
class TestSet:
    """Public rows X (n, features), their targets as the run names them, and each row's party where that is known."""

    __test__ = False  # not one of pytest's

    X: Array
    y: Any
    source: str
    party: Any = None  # (n,), texts


def by_schema(run: Run, file: Path, schema: Schema, group: str | None = None) -> TestSet:
    """A test set that is read as the training rows were: by their schema."""
    if run.setting is None or tuple(run.setting.features) != schema.features:
        raise ConfideError(f"{file}: the schema makes other features of it than those of this run")
    name = group if group is not None else schema.group.name if schema.group is not None else None
    party = None
    if name is not None and (group is not None or name in tables.header(file)):
        known(file, name, "--group")
        party = np.array(read_columns(file, [name])[name])
        if schema.group is None and name not in (c.name for c in schema.columns):  # or it would be a stray column
            schema = replace(schema, group=Group(name, tuple(sorted(set(party.tolist())))))
    rows = read(file, schema, group=False)
    y = rows.y if schema.label.kind == "real" else schema.label.decode(rows.y)
    return TestSet(rows.X, y, file.name, party)


def plain_rows(run: Run, file: Path, label: str | None, group: str | None = None) -> TestSet:
    """The test set in a file whose features are numbers."""
    if run.setting is None:
        raise ConfideError("this run carries no setting: it cannot answer a test set")
    head = tables.header(file) if group is None else known(file, group, "--group")
    rest = [name for name in head if name != group]
    target = rest[-1] if label is None else label
    if target not in rest:
        raise ConfideError(f"label {target}: the columns of {file} are {', '.join(head)}")
    names = [name for name in rest if name != target]
    wanted = list(run.setting.features)
    if not set(wanted) <= set(names):  # a run whose features nobody named takes the columns in their order
        if any(name != f"x{k}" for k, name in enumerate(wanted, start=1)) or len(wanted) != len(names):
            raise ConfideError(
                f"{file}: the columns are {', '.join(names[:8])}, and the label {target}: "
                f"the model reads {', '.join(wanted[:8])}"
            )
        wanted = names
    found = read_columns(file, [*wanted, target, *([] if group is None else [group])])
    try:
        X = np.array([[float(field) for field in found[name]] for name in wanted]).T
    except ValueError as error:
        raise ConfideError(f"{file}: {error}; a test set has numbers as its features") from None
    return TestSet(X, found[target], file.name, None if group is None else np.array(found[group]))


def read_columns(file: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """The named columns of a CSV or Parquet file, read as any table is here: spaces around a field do not count."""
    found: dict[str, list[str]] = {name: [] for name in names}
    rows = 0
    for batch in tables.batches(file, names, 1 << 13):
        for place, what in sorted(batch.broken.items())[:1]:
            raise ConfideError(f"{file}, {tables.places(file, [rows + place])[rows + place]}: {what}")
        for name, fields in batch.columns.items():
            found[name] += columns.texts(fields)
        rows += batch.rows
    if not rows:
        raise ConfideError(f"{file}: no rows below the header")
    return found


def known(file: Path, name: str, option: str) -> list[str]:
    """The file's columns, of which `name` must be one."""
    head = tables.header(file)
    if name not in head:
        raise ConfideError(f"{option} {name}: the columns of {file} are {', '.join(head)}")
    return head


# --- what it says of a run --------------------------------------------------------------------------------------------


def evaluated(run: Run, test: TestSet) -> Run:
    """The run with the confusion, errors or coverage on the test set."""
    return run.with_evaluation(test.X, test.y, source=test.source)


def quality(run: Run, test: TestSet, own: dict[str, Array] | None = None) -> Quality:
    """Everything a report shows; `own`: party -> its own model (width,), computed from private rows."""
    setting = run.setting
    assert setting is not None
    truth = _truth(test.y, setting)
    found = [setting.margins(test.X, model) for model in run.model]
    same = _same(truth, setting)
    alone = {} if own is None else {name: setting.margins(test.X, model) for name, model in own.items()}
    everything = np.ones(len(truth), bool)

    def score(zs: list[Array], rows: Any) -> Scores:
        return scores.averaged([_scores(z[rows], truth[rows], setting) for z in zs])

    parties = []
    for name in [] if test.party is None else sorted(set(test.party.tolist())):
        rows = test.party == name
        mine = score([alone[name]], rows) if name in alone else None
        parties.append(PartyScores(name, int(rows.sum()), score(found, rows), score([same], rows), mine))
    single = next(iter(alone)) if len(alone) == 1 else ""
    together = None
    if test.party is not None and alone and set(test.party.tolist()) <= set(alone):
        each = np.array([alone[name][k] for k, name in enumerate(test.party.tolist())])
        together = score([each], everything)
    elif single:
        together = score([alone[single]], everything)
    likely = any(word in setting.loss for word in ("Logistic", "Multinomial"))
    return Quality(
        test.source, len(truth), score(found, everything), score([same], everything), together, parties,
        np.mean([scores.calibration(z, truth) for z in found], axis=0) if likely else None, setting.classes,
        single if test.party is None else "", "accuracy" if setting.labels != "real" else "R²",
        "" if own is None else f"{own_loss(setting)!r}, {WEAK!r}",
    )  # fmt: skip


def own_models(file: Path, schema: Schema, setting: Setting, name: str | None = None) -> dict[str, Array]:
    """Each party's own model without noise, from a file that only its owner may read; `name`: all rows are its own."""
    grouped = name is None and schema.group is not None
    rows = read(file, schema, group=grouped)
    loss = own_loss(setting)
    whose: Any = np.full(len(rows.y), name or "you")
    if grouped and schema.group is not None:
        whose = np.array(schema.group.values)[rows.group]
    shards = Shards.from_groups(rows.X, rows.y, whose).clip_rows(schema.row_norm)
    return {
        str(who): Problem(shards.only(k), loss, WEAK, "rows", setting.intercept).solve()
        for k, who in enumerate(shards.names)
    }


def own_loss(setting: Setting) -> Loss:
    """The run's, as its setting writes it; that of such labels where it is of nobody's we know, or one of several."""
    try:
        found: Loss = from_table(_table(ast.parse(setting.loss, mode="eval").body), "loss", losses.ALL).base
        if (found.labels, found.outputs) == (setting.labels, setting.outputs):
            return found
    except (SyntaxError, ValueError):  # another package's, whose parameters may be anything
        pass
    if setting.labels == "real":
        return Squared() if setting.level is None else Quantile(setting.level)
    return Logistic() if setting.outputs == 1 else Multinomial(setting.outputs)


def _table(written: ast.expr) -> Any:
    """`Huber(width=1.0)` as a table with a name and parameters, as files have it."""
    if isinstance(written, ast.Call) and isinstance(written.func, ast.Name):
        return {"name": written.func.id, **{str(word.arg): _table(word.value) for word in written.keywords}}
    return ast.literal_eval(written)


def _truth(y: Any, setting: Setting) -> Any:
    """Targets as numbers: places among the classes, or as they are."""
    if setting.labels == "real":
        return np.asarray(y, float)
    index = {name: k for k, name in enumerate(setting.classes)}
    return np.array([index[label_text(one)] for one in np.asarray(y).ravel().tolist()], int)


def _same(truth: Any, setting: Setting) -> Array:
    """Margins of the best answer that is the same for everyone: (n, outputs)."""
    best = same_answer(truth, setting.labels != "real", setting.level)
    if setting.labels == "real":
        return np.full((len(truth), 1), best)
    if setting.outputs == 1:
        return np.full((len(truth), 1), 1.0 if best == 1 else -1.0)
    return np.tile(np.eye(setting.outputs)[int(best)], (len(truth), 1))


def _scores(z: Array, truth: Any, setting: Setting) -> Scores:
    if setting.labels == "real":
        return scores.of_numbers(z[:, 0], truth, setting.level)
    return scores.of_classes(z, truth)
