"""Numbers of benchmarks/accuracy.py: each is kept as soon as it is there, and a table of them is a list of results."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from confide.files import sources
from confide.runs.batch import on_one_core, through_joblib

HOME = Path.home() / ".cache" / "confide"


@dataclass(frozen=True)
class Result:
    """One number with its standard error; where there is a limit, it is at most that."""

    part: str
    set: str
    what: str
    epsilon: float
    value: float
    error: float
    splits: int
    unit: str = "test error, %"
    limit: float | None = None
    of: str = ""  # what code of confide it depends on: "method", "estimators" or none
    code: str = ""  # a hash of that code and of the benchmark's own, as it was

    @property
    def met(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit

    @property
    def earlier(self) -> bool:
        """Whether the code it depends on has changed since."""
        return self.code != code(self.of)


def result(part, name, what, epsilon, values, limit=None, unit="test error, %", of="") -> Result:
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return Result(part, name, what, epsilon, float(np.mean(values)), error, len(values), unit, limit, of, code(of))


# --- what was computed before -----------------------------------------------------------------------------------------


class Kept:
    """Numbers by key, one line each; what is missing is computed by `jobs` processes, as many as cores if -1."""

    def __init__(self, path: Path, again: bool = False, jobs: int = -1) -> None:
        self.path, self.jobs, self.known = path, jobs, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not again:
            for line in path.read_text().splitlines():
                one = json.loads(line)
                self.known[one["key"]] = one["value"]

    def __call__(self, makes: Mapping[str, Callable[[], object]], of: str = "") -> list:
        """What each of `makes` returns, under its key; `of`: what code of confide it depends on.

        What is not known is computed, a core for each; None, what is missing today and may be there tomorrow, is not
        kept.
        """
        keys = {f"{key} {code(of)}": make for key, make in makes.items()}
        left = [(named, {"key": key, "make": make}) for key, make in keys.items() if key not in self.known]
        missing = set()
        for key, value in through_joblib(left, jobs=self.jobs) if left else ():
            if value is None:
                missing.add(key)
                continue
            self.known[key] = value
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")
        return [None if key in missing else self.known[key] for key in keys]


def named(key: str, make: Callable[[], object]) -> tuple[str, object]:
    with on_one_core():
        return key, make()


# --- what the numbers depend on ---------------------------------------------------------------------------------------

OWN = ("accuracy_fits", "accuracy_sets", "with_diffprivlib")
MADE_OF = {
    "": "",
    "method": "from confide.algorithms import JointDescent\nfrom confide.runs.driver import Driver",
    "estimators": "from confide.estimators import PrivateRidge, PrivateLogisticRegression, FunctionalQuantileRegressor",
}
SILENT = (  # modules and rooms that say, store, read, compile or draw secure noise: numbers here are of seeded noise
    "_version", "errors", "compiled", "threads", "files", "schema", "network.drawing", "privacy.admission",
    "privacy.budget", "privacy.chain", "privacy.discrete_gaussian", "privacy.labels", "privacy.ledger",
    "privacy.serialize", "privacy.storage", "privacy.tables", "runs.model", "runs.paid", "runs.progress", "runs.trust",
    "estimators.evaluating", "estimators.hints", "estimators.listener", "estimators.record", "estimators.saving",
)  # fmt: skip


@cache
def code(of: str) -> str:
    """A hash of what can change a number: comments, docstrings and the words of errors do not count."""
    home = sources.HERE["confide"]
    files = [Path(__file__).with_name(f"{name}.py") for name in OWN]
    for file in sources.sources(ast.parse(MADE_OF[of]), "accuracy"):
        module = ".".join(file.relative_to(home).with_suffix("").parts)
        if not any(f"{module}.".startswith(f"{name}.") for name in SILENT):
            files.append(file)
    return sources.digest(files, words=False)[:12]
