"""The runner: tasks of any number of experiments through joblib, each kept on disk when done, and found again.

Which machine a task runs on is joblib's affair: inside `joblib.parallel_config(backend="dask")` (or "ray") a cluster
takes them. Values are always read back from disk, so a run that was interrupted gives the same bytes as another.
"""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, describe, expected
from confide.papers.reproduce import last, provenance
from confide.papers.reproduce import results as kept
from confide.papers.reproduce.experiment import Experiment
from confide.papers.reproduce.findings import Finding
from confide.papers.reproduce.results import Results, Task, Value, canonical
from confide.papers.reproduce.work import Measured, measure
from confide.runs.batch import through_joblib

Watch = Callable[[Experiment, int, int], None]  # (experiment, tasks done, tasks in all)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one experiment gave: the rows of its CSV, its findings, where its files are, and the time of all its tasks.

    With an `error` there are no results.
    """

    experiment: Experiment
    trials: int
    results: Results = field(default_factory=lambda: Results([], 0))
    table: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    folder: Path = Path()
    seconds: float = 0.0
    error: str = ""

    @property
    def unexplained(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.unexplained]


@dataclass(eq=False)
class _Work:
    """An experiment under way."""

    experiment: Experiment
    trials: int
    folder: Path
    tasks: list[Task]
    done: dict[int, tuple[Value, float]] = field(default_factory=dict)
    error: str = ""

    def place(self, index: int) -> Path:
        return self.folder / "tasks" / f"{self.experiment.key(self.tasks[index])}.npz"


def reproduce(
    experiments: Sequence[Experiment], out: str | Path = "reproductions", *, quick: bool = False,
    trials: int | None = None, jobs: int | None = None, fresh: bool = False, svg: bool = False,
    skipped: Mapping[str, str] | None = None, watch: Watch = lambda *_: None,
) -> list[Outcome]:  # fmt: skip
    """Run experiments and write their files under `out`/<paper>/<name>, and the page `out`/index.md.

    A task that several of them have, with the same code, is measured once.

    trials    repetitions of each; else the experiment's number for a full or a `quick` run
    jobs      processes; None leaves it to joblib, that is, to the surrounding `joblib.parallel_config`
    fresh     forget what was kept of earlier runs
    svg       write each figure as SVG, too
    skipped   experiments that were wanted and can't be measured -> why, for the page
    """
    from confide.papers.reproduce.page import write_page

    if trials is not None and trials < 1:
        raise ConfideError(f"trials={trials}: must be at least 1")
    began = time.monotonic()
    works = [_begin(e, trials or (e.trials.quick if quick else e.trials.full), Path(out), fresh) for e in experiments]
    anew = not any(work.done for work in works)
    shared: dict[str, list[tuple[_Work, int]]] = {}  # by key: what several experiments ask for is measured once
    for work in works:
        for i in range(len(work.tasks)):
            if i not in work.done:
                shared.setdefault(work.experiment.key(work.tasks[i]), []).append((work, i))
    todo = list(shared.values())
    outcomes: dict[int, Outcome] = {}
    for work in works:
        watch(work.experiment, len(work.done), len(work.tasks))
        if len(work.done) == len(work.tasks):
            outcomes[id(work)] = _finish(work, svg)
    for measured in _through_joblib(todo, jobs):
        places = todo[measured.place]
        for work, i in places:
            _take(work, i, measured, len(places))
            watch(work.experiment, len(work.done), len(work.tasks))
            if len(work.done) == len(work.tasks):
                outcomes[id(work)] = _finish(work, svg)
    every = [outcomes.get(id(w)) or Outcome(w.experiment, w.trials, folder=w.folder, error=w.error) for w in works]
    finished = {str(o.experiment): o.experiment.digest for o in every if not o.error}
    whole = anew and not quick and trials is None
    last.note(Path(out), finished, skipped or {}, time.monotonic() - began if whole else None, jobs)
    write_page(Path(out))
    return every


def _take(work: _Work, i: int, measured: Measured, users: int) -> None:
    """Keep what one task gave, or why it gave nothing; its time is shared by all its users."""
    if measured.value is None:
        work.error = work.error or measured.error
        return
    try:
        kept.save(work.place(i), measured.value, measured.seconds / users)
    except ConfideError as error:  # something that can't be kept
        work.error = work.error or f"{work.experiment}, task {work.tasks[i]}: {error}"
        return
    work.done[i] = kept.load(work.place(i))


def _begin(experiment: Experiment, trials: int, out: Path, fresh: bool) -> _Work:
    """Lay out the tasks and find those already done."""
    tasks = [canonical(task) for task in experiment.module.tasks(trials)]
    folder = out / experiment.paper / experiment.name
    if fresh:
        shutil.rmtree(folder / "tasks", ignore_errors=True)
    work = _Work(experiment, trials, folder, tasks)
    keys = [experiment.key(task) for task in tasks]
    if not tasks or len(set(keys)) < len(keys):
        raise ConfideError(f"{experiment}: tasks({trials}) must be at least one, and all different")
    for i in range(len(tasks)):
        place = work.place(i)
        if place.is_file():
            try:
                work.done[i] = kept.load(place)
            except ConfideError:
                place.unlink()  # damaged: measure it again
    if len(work.done) < len(tasks):
        provenance.begin(folder / "tasks", experiment.paper, afresh=not work.done)
    return work


def _through_joblib(todo: list[list[tuple[_Work, int]]], jobs: int | None) -> Iterator[Measured]:
    """Measured tasks, as they come in, each by the first experiment that asks for it."""
    environment = {k: os.environ[k] for k in ("CONFIDE_DATA", "CONFIDE_EXPERIMENTS") if k in os.environ}
    calls = (
        (measure, {"paper": work.experiment.paper, "name": work.experiment.name, "task": work.tasks[i],
                   "place": number, "digest": work.experiment.digest, "environment": environment})
        for number, ((work, i), *_) in enumerate(todo)
    )  # fmt: skip
    yield from through_joblib(calls, jobs) if todo else ()


def _finish(work: _Work, svg: bool) -> Outcome:
    """Table, findings and figure of an experiment whose tasks are all done, written to its folder."""
    from confide.papers.reproduce.output import write

    experiment = work.experiment
    pairs = [(task, work.done[i][0]) for i, task in enumerate(work.tasks)]
    seconds = sum(work.done[i][1] for i in range(len(work.tasks)))
    results = Results(pairs, work.trials)
    try:
        table, findings = experiment.module.table(results), experiment.module.findings(results)
        outcome = Outcome(experiment, work.trials, results, table, findings, work.folder, seconds)
        write(outcome, work.tasks, svg)
        return outcome
    except Exception as error:  # the traceback of a mistake of ours is wanted
        said = f"{experiment}: {describe(error)}" if expected(error) else f"{experiment}:\n{traceback.format_exc()}"
    return Outcome(experiment, work.trials, folder=work.folder, error=said)
