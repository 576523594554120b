"""Numbers of benchmarks/accuracy.py: each is kept as soon as it is there, and a table of them is a list of results."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from confide.files import sources

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
    code: str = ""  # a hash of that code, as it was

    @property
    def met(self) -> bool | None:
        return None if self.limit is None else self.value <= self.limit

    @property
    def earlier(self) -> bool:
        """Whether the code it depends on has changed since."""
        return bool(self.of) and self.code != code(self.of)


def result(part, name, what, epsilon, values, limit=None, unit="test error, %", of="") -> Result:
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    made_by = code(of) if of else ""
    return Result(part, name, what, epsilon, float(np.mean(values)), error, len(values), unit, limit, of, made_by)


# --- what was computed before -----------------------------------------------------------------------------------------


class Kept:
    """Numbers by key, one line each."""

    def __init__(self, path: Path, again: bool, peers: bool = True) -> None:
        self.path, self.peers, self.known = path, peers, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not again:
            for line in path.read_text().splitlines():
                one = json.loads(line)
                self.known[one["key"]] = one["value"]

    def __call__(self, key: str, make: Callable[[], object], of: str = ""):
        """The value of `make`, once; `of`: what code of confide it depends on."""
        key = f"{key} {code(of)}" if of else key
        if key not in self.known:
            value = make()
            if value is None:  # what is missing today may be there tomorrow
                return None
            self.known[key] = value
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "value": self.known[key]}) + "\n")
        return self.known[key]


MADE_OF = {
    "method": "from confide.algorithms import JointDescent\nfrom confide.runs.driver import Driver",
    "estimators": "from confide.estimators import PrivateRidge, PrivateLogisticRegression, FunctionalQuantileRegressor",
}


@cache
def code(of: str) -> str:
    """A hash of it; comments and docstrings do not count."""
    return sources.digest(sources.sources(ast.parse(MADE_OF[of]), "accuracy"))[:12]
