"""What a worker process does: load the experiment itself and measure one task, on one thread."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confide.reproduce.experiment import find

OURS = (ValueError, ArithmeticError, OSError, ImportError)  # what our own checks raise: one line is enough


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
    version of it. `environment` is where data and experiments are; unset where a worker shall use its own.
    """
    try:
        with _alone(environment or {}):
            experiment = find(paper, name)
            if digest is not None and experiment.digest != digest:
                raise ValueError("its file is not the one the run began with: start again")
            began = time.process_time()  # of this core, however busy the machine is
            value = experiment.module.measure(**task)
            seconds = time.process_time() - began
        if not isinstance(value, dict):
            raise ValueError(f"measure must return a dict, gave a {type(value).__name__}")
        return Measured(place, value, seconds)
    except OURS as error:
        return Measured(place, None, 0.0, f"{paper} {name}, task {task}: {' '.join(str(error).split())}")
    except Exception:  # a mistake of ours: the traceback is wanted
        return Measured(place, None, 0.0, f"{paper} {name}, task {task}:\n{traceback.format_exc()}")


@contextmanager
def _alone(environment: dict[str, str]) -> Iterator[None]:
    """One thread for confide and for BLAS, as every core has a task of its own, and the run's environment."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from confide.threads import threads

    wanted = {**environment, "CONFIDE_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    threads.cache_clear()
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        threads.cache_clear()
