"""`sweep`: methods × problems × graphs × ε × seeds, each combination run once and kept.

    found = confide.sweep(
        {"CDP": CDPADMM(rounds=100, clip=1.0), "DPSGD": DPSGD(rounds=100, clip=1.0)},
        problem, {"ring": Graph.ring(5), "complete": Graph.complete(5)}, epsilons=(0.5, 1, 2), seeds=range(20),
        keep="results",
    )
    found.to_pandas().groupby(["method", "graph", "epsilon"]).error.mean()
    found.plot("error")

A combination is kept under a hash of all that it depends on: method and parameters, rows, loss, penalty, graph, ε and
δ, seeds, metrics, and the sources that compute it. So a sweep that was interrupted, or is asked for more, measures only
what is missing, and an old result never passes for one of changed code. Jobs go through joblib: inside
`joblib.parallel_config(backend="dask")` a cluster takes them; `shard=(2, 10)` does the second of ten parts, for batch
systems whose jobs share a folder and nothing else.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from confide.algorithms import Algorithm, JointDescent
from confide.algorithms.catalogue import method_class
from confide.errors import ConfideError, WrongType
from confide.network.graph import Graph
from confide.problem.problem import Problem
from confide.runs.batch import on_one_core, through_joblib
from confide.runs.driver import describe, simulate
from confide.runs.frames import Row, Tabular
from confide.runs.metrics import METRICS
from confide.runs.run import Run, load_run, plain

PACKAGE = Path(__file__).resolve().parents[1]
COMPUTING = ("problem", "privacy", "algorithms", "network", "runs")  # rooms whose sources a result depends on
Watch = Callable[[int, int], None]  # (combinations done, of how many)


@dataclass(frozen=True, eq=False)
class Combination:
    """One cell of the sweep: what it is called, and all that it needs."""

    method: str
    problem: str
    graph: str
    epsilon: float | None
    algorithm: Algorithm  # with the noise that spends ε
    task: Problem
    network: Graph | None

    @property
    def labels(self) -> Row:
        return {"method": self.method, "problem": self.problem, "graph": self.graph, "epsilon": self.epsilon}


@dataclass(frozen=True, eq=False)
class Sweep(Tabular):
    """What a sweep found.

    found      (labels, run) in the order asked for
    missing    the labels of other shards' work
    delta      at which ε is reported, between 0 and 1
    """

    found: Sequence[tuple[Row, Run]]
    missing: Sequence[Row]
    delta: float

    def __len__(self) -> int:
        return len(self.found)

    def rows(self) -> list[Row]:
        """One per combination and seed: its labels, each metric after the last round, and what a row's privacy cost."""
        out = []
        for labels, run in self.found:
            said = {"spent": run.privacy.epsilon(self.delta), "guarantee": str(run.privacy.guarantee.label)}
            last = {name: values[-1] for name, values in run.history.items() if name != "round"}
            for s, seed in enumerate(run.seeds.tolist()):
                out.append({**labels, "seed": seed, **{k: float(v[s]) for k, v in last.items()}, **said})
        return out

    def run(self, **labels: Any) -> Run:
        """The only run with these labels."""
        fits = [run for said, run in self.found if all(said.get(k) == v for k, v in labels.items())]
        if len(fits) != 1:
            raise ConfideError(f"{labels!r}: {len(fits)} runs have these labels, name one of {len(self.found)}")
        return fits[0]

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """`metric` by ε, or by round where there is one ε only: mean over seeds with its standard error."""
        from confide.runs.draw import sweep_axes

        return sweep_axes(self.found, metric, ax)


def sweep(
    methods: Any, problems: Any, graphs: Any = None, *, epsilons: Iterable[float | None] = (None,), delta: float = 1e-5,
    seeds: Iterable[int] = range(10), record: Sequence[str] = ("error",), every: int | None = None,
    test: tuple[Any, Any] | None = None, keep: str | Path | None = None, jobs: int | None = None,
    shard: tuple[int, int] = (1, 1), fresh: bool = False, watch: Watch = lambda done, total: None,
) -> Sweep:  # fmt: skip
    """Simulate every combination, those not yet kept; see the module's text for an example.

    methods    an algorithm, a list of them, or name -> algorithm; a name of `confide algorithms` stands for its
               defaults, "auto" for JointDescent
    problems   a Problem, or name -> Problem
    graphs     a Graph, or name -> Graph; None for central methods
    epsilons   totals, above 0, to which each method is calibrated at `delta`; None leaves a method's noise as it is
    seeds      of each run; all seeds of a combination run together
    record     metrics by name, `every` so many rounds; None: after the last round only
    test       a public test set (X, y) for the metric "test"
    keep       folder for the results; None keeps nothing beyond the answer
    jobs       processes; None leaves it to joblib
    shard      (i, n): only the i-th of n parts; the others are `missing` unless the folder has them
    fresh      measure again what is kept
    """
    wanted = _combinations(methods, problems, graphs, list(epsilons), delta)
    i, n = shard
    if not (1 <= i <= n):
        raise ConfideError(f"shard={shard}: must be (i, n) with i from 1 to n")
    for name in record:
        if name not in METRICS:
            raise ConfideError(f"unknown metric {name!r}: known are {', '.join(METRICS)}")
    given = {"seeds": [int(s) for s in seeds], "record": list(record), "every": every, "test": test}
    with ExitStack() as stack:
        folder = Path(keep) if keep is not None else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        places = [folder / f"{_key(one, delta, given)}.npz" for one in wanted]
        if fresh:
            for place in places[i - 1 :: n]:
                place.unlink(missing_ok=True)
        mine = [k for k in range(len(wanted)) if k % n == i - 1]
        todo = [k for k in mine if not places[k].is_file()]
        done = len(mine) - len(todo)
        watch(done, len(mine))
        calls = (
            (_measure, {"algorithm": wanted[k].algorithm, "problem": wanted[k].task, "graph": wanted[k].network,
                        "given": given, "place": places[k]})
            for k in todo
        )  # fmt: skip
        for _ in through_joblib(calls, jobs) if todo else ():
            done += 1
            watch(done, len(mine))
        there = [k for k in range(len(wanted)) if places[k].is_file()]
        found = [(wanted[k].labels, load_run(places[k])) for k in there]
    return Sweep(found, [wanted[k].labels for k in range(len(wanted)) if k not in set(there)], delta)


def _measure(algorithm: Algorithm, problem: Problem, graph: Graph | None, given: Row, place: Path) -> None:
    """One combination, in whatever process this is; written whole or not at all."""
    with on_one_core():
        run = simulate(
            problem, None if algorithm.topology == "central" else graph, algorithm, given["seeds"],
            record=given["record"], every=given["every"] or algorithm.rounds, test=given["test"],
        )  # fmt: skip
    run.save(place)


# --- what is asked for ------------------------------------------------------------------------------------------------


def _combinations(methods: Any, problems: Any, graphs: Any, epsilons: list[Any], delta: float) -> list[Combination]:
    out = []
    tasks, networks = _named(problems, _problem, "problem"), _named(graphs, _graph, "graph")
    for (m, method), (p, problem), (g, graph), epsilon in product(
        _named(methods, _algorithm, "method"), tasks, networks, epsilons
    ):
        public = problem.public(graph)
        if epsilon is not None:
            if not (isinstance(epsilon, int | float | np.number) and 0 < epsilon < np.inf):
                raise ConfideError(f"epsilon={epsilon!r}: must be a finite number above 0, or None")
            if not hasattr(method, "calibrated"):
                raise ConfideError(f"{m}: has no noise to calibrate to ε={epsilon:g}: give epsilons=(None,) for it")
            method_now = method.calibrated(public, float(epsilon), delta)
        else:
            method_now = method
        out.append(Combination(m, p, g, None if epsilon is None else float(epsilon), method_now, problem, graph))
    if not out:
        raise ConfideError("nothing to sweep over: give at least one method, problem, graph and ε")
    return out


def _named(given: Any, convert: Callable[[Any], Any], what: str) -> list[tuple[str, Any]]:
    """(name, value) pairs from one value, a list or a mapping."""
    if isinstance(given, Mapping):
        return [(str(name), convert(value)) for name, value in given.items()]
    values = [convert(value) for value in (given if isinstance(given, list | tuple) else [given])]
    names = [getattr(value, "name", None) or what for value in values]
    if len(set(names)) < len(names):
        raise ConfideError(f"{len(values)} {what}s with the same name: give them as a mapping, name -> {what}")
    return list(zip(names, values, strict=True))


def _algorithm(given: Any) -> Algorithm:
    if isinstance(given, str):
        return JointDescent() if given == "auto" else method_class(given)()
    if not isinstance(given, Algorithm):
        raise WrongType(f"method {given!r}: must be an algorithm or its name")
    return given


def _problem(given: Any) -> Problem:
    if not isinstance(given, Problem):
        raise WrongType(f"problem {given!r}: must be a confide.Problem")
    return given


def _graph(given: Any) -> Graph | None:
    if not (given is None or isinstance(given, Graph)):
        raise WrongType(f"graph {given!r}: must be a confide.Graph, or None for central methods")
    return given


# --- what a result depends on -----------------------------------------------------------------------------------------


def _key(one: Combination, delta: float, given: Row) -> str:
    """The hash that a combination is kept under."""
    test = given["test"]
    said = {
        "algorithm": [type(one.algorithm).__module__, describe(one.algorithm), one.algorithm.name],
        "source": [_sources(), _own_source(type(one.algorithm))],
        "problem": _problem_hash(one.task),
        "graph": None if one.network is None else [one.network.size, one.network.edges.tolist()],
        "epsilon": one.epsilon, "delta": delta if one.epsilon is not None else None,
        **{name: given[name] for name in ("seeds", "record", "every")},
        "test": None if test is None else [_array_hash(part) for part in test],
    }  # fmt: skip
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=plain).encode()).hexdigest()


@cache
def _sources() -> str:
    """Hash of the rooms that compute a run."""
    files = sorted(file for room in COMPUTING for file in (PACKAGE / room).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _own_source(kind: type) -> str:
    """Hash of the file of a method from elsewhere."""
    try:
        file = Path(inspect.getfile(kind))
        return "" if PACKAGE in file.resolve().parents else hashlib.sha256(file.read_bytes()).hexdigest()
    except (TypeError, OSError):
        raise ConfideError(
            f"{kind.__name__}: its source is in no file, so its results can't be kept: save it in one"
        ) from None


def _problem_hash(problem: Problem) -> list[Any]:
    shards = problem.shards
    extra = {name: _array_hash(values) for name, values in sorted(shards.columns.items())}
    return [
        _array_hash(shards.X), _array_hash(shards.y), shards.offsets.tolist(), extra, shards.row_norm,
        repr(problem.loss), repr(problem.penalty), problem.weighting, problem.intercept,
    ]  # fmt: skip


def _array_hash(values: Any) -> str:
    """Of dense values, memory-mapped ones without copying them, or of a sparse matrix."""
    parts = [values.data, values.indices, values.indptr] if hasattr(values, "indptr") else [values]
    found = hashlib.sha256(str(np.shape(values)).encode())
    for part in parts:
        array = np.ascontiguousarray(part)
        found.update(array.dtype.str.encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()
