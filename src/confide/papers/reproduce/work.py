"""What a worker process does: load the experiment itself and measure one task, on one thread."""

from __future__ import annotations

import time
import traceback
from typing import Any, NamedTuple

from confide.errors import ConfideError, describe, expected
from confide.papers.reproduce.experiment import find
from confide.runs.batch import on_one_core


class Measured(NamedTuple):
    """A task's value, or why there is none. `place` is the job's, since jobs come back in any order."""

    place: int
    value: dict[str, Any] | None
    seconds: float
    error: str = ""


def measure(
    paper: str, name: str, task: dict[str, Any], *, place: int = 0, digest: str | None = None,
    environment: dict[str, str] | None = None,
) -> Measured:  # fmt: skip
    """Measure one task of one experiment, in whatever process this is.

    `digest` is that of the experiment where the run began: on a cluster a worker must not measure with another
    version of it, or of what it imports. `environment` is where data and experiments are; unset where a worker shall
    use its own.
    """
    try:
        with on_one_core(environment):
            experiment = find(paper, name)
            if digest is not None and experiment.digest != digest:
                raise ConfideError("its code is not the one the run began with: start again")
            began = time.process_time()  # of this core, however busy the machine is
            value = experiment.module.measure(**task)
            seconds = time.process_time() - began
        if not isinstance(value, dict):
            raise ConfideError(f"measure returned a {type(value).__name__}: must be a dict")
        return Measured(place, value, seconds)
    except Exception as error:  # the traceback of a mistake of ours is wanted
        said = f" {describe(error)}" if expected(error) else f"\n{traceback.format_exc()}"
        return Measured(place, None, 0.0, f"{paper} {name}, task {task}:{said}")
