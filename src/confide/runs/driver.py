"""`simulate`: every agent and every seed of a run at once, in one process."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.algorithms.base import Algorithm
from confide.errors import ConfideError, Diverged, WrongType
from confide.network.exchange import Links, all_sum, neighbour_sum
from confide.network.graph import Graph
from confide.privacy import Event, RandomizedResponse
from confide.privacy.noise import SimulatedNoise
from confide.problem.checks import finite, whole
from confide.problem.losses import NoisyLabels
from confide.problem.problem import Problem, Public
from confide.problem.questions import within
from confide.runs.metrics import METRICS, PUBLIC, Metric, Snapshot
from confide.runs.priced import Priced
from confide.runs.progress import bars
from confide.runs.run import CLAIM_DELTA, Privacy, Run, plain, read_arrays, write_arrays
from confide.runs.setting import Setting

Array = NDArray[np.float64]
Stop = float | Callable[[int, Array], bool]
CLAIM_POINTS = 25  # rounds at which a paper's bound is computed, for a report


def simulate(
    problem: Problem, graph: Graph | Sequence[Graph] | None, algorithm: Algorithm, seeds: Iterable[int] = (0,), *,
    record: Sequence[str] | Mapping[str, Metric | None] = ("error", "consensus"), every: int = 1,
    test: tuple[Any, Any] | None = None, drop: float = 0.0, stop: Stop | None = None,
    checkpoint: str | Path | None = None, checkpoint_every: int = 25, progress: bool = False,
) -> Run:  # fmt: skip
    """Run `algorithm` on `problem` over `graph`, once for each seed, all together.

    graph        a Graph; a sequence of Graphs, used in turn round by round; None for a central method
    record       metrics by name (confide.metrics.METRICS), or name -> function of a Snapshot; `every` so many rounds
    test         a public test set (X, y) for the metric "test"
    drop         probability that a link is down in a round, both ways; its agents then use their own message instead
    stop         stop once no coefficient moves by more than this fraction in a round, or a function (round, estimates)
                 -> bool; it sees public values only, and the whole schedule is charged all the same
    checkpoint   file to write state to every `checkpoint_every` rounds, and to resume from if it exists
    """
    driver = Driver(problem, graph, algorithm, seeds, drop)
    metrics = _metrics(record)
    for name, count in (("every", every), ("checkpoint_every", checkpoint_every)):
        if not (whole(count) and count >= 1):
            raise ConfideError(f"{name}={count!r}: must be a whole number of at least 1")
    if not (stop is None or callable(stop) or (finite(stop) and stop > 0)):
        raise ConfideError(f"stop={stop!r}: must be a finite number above 0, a function (round, estimates), or None")
    shot = Snapshot(problem, driver.public, algorithm, None if test is None else problem.test_rows(test))
    history: dict[str, list[Array]] = {"round": [], **{name: [] for name in metrics}}
    if checkpoint is not None:
        driver.resume(Path(checkpoint), history)
    began = time.perf_counter()
    # a diverging run ends in one line of `check_message`, not in warnings of the rounds before
    with bars(show=progress) as heard, np.errstate(over="ignore", invalid="ignore"):
        while driver.t < algorithm.rounds:
            before = driver.estimates if stop is not None else None
            driver.step()
            heard(algorithm.name, driver.t, algorithm.rounds)
            done = driver.t == algorithm.rounds or _stopped(stop, driver.t, before, driver.estimates)
            if done or driver.t % every == 0:
                history["round"].append(np.full(len(driver.seeds), driver.t))
                for name, metric in metrics.items():
                    history[name].append(np.asarray(metric(shot.at(driver.t, driver.estimates, driver.state)), float))
            if checkpoint is not None and (done or driver.t % checkpoint_every == 0):
                driver.save(Path(checkpoint), history)
            if done:
                break
    series = {name: np.array(values) for name, values in history.items()}
    series["round"] = series["round"][:, 0].astype(np.int64)
    return Run(
        driver.estimates, series, driver.privacy(), algorithm.name, describe(algorithm), driver.t,
        driver.bytes_sent(), time.perf_counter() - began, driver.seeds,
        setting=Setting.of(driver.public, algorithm.topology, problem.shards.names),
        public=tuple(name for name, metric in metrics.items() if metric in PUBLIC),
    )  # fmt: skip


class Driver:
    """Steps all agents and seeds through one round at a time."""

    def __init__(
        self, problem: Problem, graph: Graph | Sequence[Graph] | None, algorithm: Algorithm,
        seeds: Iterable[int], drop: float = 0.0,
    ) -> None:  # fmt: skip
        _check_kinds(problem, graph, algorithm)
        self.seeds = _seeds(seeds)
        self.algorithm = algorithm
        graphs = None if graph is None or isinstance(graph, Graph) else list(graph)
        self.graph: Graph | None = Graph.union(graphs) if graphs is not None else graph  # type: ignore[assignment]
        _check_topology(algorithm, self.graph, drop, graphs, problem.shards.parties)
        central = algorithm.topology == "central"
        self.block = problem.pooled if central else problem.block
        public = problem.public(self.graph)
        self.public: Public = public.as_one() if central else public
        algorithm.check(self.public)
        self.schedule = algorithm.schedule(self.public)
        self.priced = Priced(algorithm, self.public)
        self.weights = algorithm.weights(self.graph) if algorithm.topology == "peer" else None
        self.links = (
            Links(self.graph, drop, graphs, uniform=_link_draws, weights=self.weights)
            if algorithm.topology == "peer" and self.graph is not None
            else None
        )
        self.radius = algorithm.message_bound(self.public)
        self.noise = SimulatedNoise(self.seeds, self.public.agents)
        self.t = 0
        start = algorithm.init(self.public)
        self.state = type(start)(*(np.repeat(a, len(self.seeds), axis=0) for a in start))

    @property
    def estimates(self) -> Array:
        return self.algorithm.estimate(self.state, self.public)

    def step(self, force: Array | None = None) -> Array:
        """One round; the messages. `force` replaces them, as an audit does that chooses what the neighbours hear."""
        t = self.t + 1
        self.priced.check(t)
        block = self.block if self.schedule.touches[t - 1] else None
        message = within(self.algorithm.local(t, self.state, block, self.public, self.noise.at(t)), self.radius)
        if force is not None:
            message = force
        check_message(message, (len(self.seeds), len(self.public.agents), int(self.schedule.widths[t - 1])), t)
        self.state = self.algorithm.absorb(t, self.state, message, self.received(t, message), self.public)
        self.t = t
        return message

    def received(self, t: int, message: Array) -> Array:
        """What every agent hears: the weighted sum over its neighbours, over all, or its own when it is alone."""
        if self.algorithm.topology == "central":
            return message
        if self.algorithm.topology == "all":
            return all_sum(message)
        assert self.links is not None and self.weights is not None
        return neighbour_sum(self.weights, message, self.links.down(t, self.seeds))

    def privacy(self) -> Privacy:
        before, events = label_events(self.public), self.algorithm.events(self.public)
        guarantee, claims = self.algorithm.guarantee(self.public), self.algorithm.claims(self.public, CLAIM_DELTA)
        return Privacy(
            events, guarantee, len(self.public.agents), True, before, tuple(claims),
            by_round=partial(claim_path, self.algorithm, self.public, events) if claims else (),
        )  # fmt: skip

    def bytes_sent(self) -> int:
        """Payload of all messages of one seed."""
        return self.algorithm.bytes_sent(self.public, self.t)

    # --- checkpoints ----------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """Of everything public that a resumed run must share; never of data."""
        public = self.public
        what = {
            "algorithm": self.algorithm.name, "parameters": describe(self.algorithm), "seeds": self.seeds,
            "sizes": public.sizes, "loss": repr(public.loss), "penalty": repr(public.penalty),
            "width": public.width, "edges": None if self.graph is None else self.graph.edges,
        }  # fmt: skip
        return hashlib.sha256(json.dumps(what, default=plain, sort_keys=True).encode()).hexdigest()

    def save(self, path: Path, history: dict[str, list[Array]]) -> None:
        meta = {"checkpoint": self.fingerprint(), "round": self.t, "history": list(history)}
        arrays = {f"state.{name}": value for name, value in self.state._asdict().items()}
        arrays |= {f"history.{name}": np.array(values) for name, values in history.items()}
        write_arrays(path, meta, arrays)

    def resume(self, path: Path, history: dict[str, list[Array]]) -> None:
        """Take up the state at `path`, if there is one."""
        if not path.exists():
            return
        meta, arrays = read_arrays(path)
        if meta.get("checkpoint") != self.fingerprint() or meta["history"] != list(history):
            raise ConfideError(f"{path} holds the checkpoint of another run: delete it or choose another file")
        self.t = int(meta["round"])
        self.state = type(self.state)(*(arrays[f"state.{name}"] for name in self.state._fields))
        for name, values in history.items():
            values.extend(arrays[f"history.{name}"])


def check_message(message: Array, shape: tuple[int, ...], t: int) -> None:
    """A message must have its shape and be finite: a diverging run stops with one line."""
    if message.shape != shape:
        raise ConfideError(f"round {t}: message of shape {message.shape}, the schedule says {shape}")
    if not np.all(np.isfinite(message)):
        agent = int(np.argwhere(~np.isfinite(message))[0][1])
        raise Diverged(f"round {t}: agent {agent} diverged: lower the step or raise the coupling")


def claim_path(algorithm: Algorithm, public: Public, events: list[list[Event]]) -> tuple[tuple[float, ...], ...]:
    """The paper's own bounds had the run ended earlier; none if its rounds would have been others then."""
    half = max(1, algorithm.rounds // 2)
    if replace(algorithm, rounds=half).events(public) != events[:half]:
        return ()
    path = []
    for t in np.unique(np.linspace(1, algorithm.rounds, CLAIM_POINTS).astype(int)).tolist():
        claims = replace(algorithm, rounds=t).claims(public, CLAIM_DELTA)
        path.append((t, *(float(np.max(c.epsilon)) for c in claims)))
    return tuple(path) if len({len(point) for point in path}) == 1 else ()


def label_events(public: Public) -> tuple[Event, ...]:
    """What users released before training: their randomised labels."""
    if not isinstance(public.loss, NoisyLabels):
        return ()
    classes = 2 if public.loss.labels == "sign" else public.loss.outputs
    epsilon = public.loss.epsilon if public.loss.epsilon is not None else np.inf  # each user's own, at most ∞
    return (RandomizedResponse(epsilon, classes, adversary="collector"),)


def describe(algorithm: Algorithm) -> dict[str, Any]:
    """Parameters as JSON holds them."""
    return {f.name: plain(getattr(algorithm, f.name)) for f in fields(algorithm)}


def _check_kinds(problem: Any, graph: Any, algorithm: Any) -> None:
    if not isinstance(problem, Problem):
        raise WrongType(f"problem={_shown(problem)}: must be a confide.Problem")
    if not isinstance(algorithm, Algorithm):
        raise WrongType(f"algorithm={_shown(algorithm)}: must be one of confide.algorithms, such as ADMM(rounds=100)")
    several = isinstance(graph, Sequence) and len(graph) and all(isinstance(g, Graph) for g in graph)
    if not (graph is None or isinstance(graph, Graph) or several):
        raise WrongType(f"graph={_shown(graph)}: must be a confide.Graph, several in turn, or None")


def _shown(value: Any) -> str:
    """A value in an error: itself if short, else its kind, with its home: networkx has a Graph, too."""
    if isinstance(value, str | int | float | list | type):
        return repr(value)
    kind = type(value)
    return f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"


def _seeds(seeds: Iterable[int]) -> NDArray[np.int64]:
    if not isinstance(seeds, Iterable):
        raise WrongType(f"seeds={_shown(seeds)}: must be whole numbers, such as range(10)")
    values = list(seeds)
    if not values or not all(whole(s) and s >= 0 for s in values):
        raise ConfideError(f"seeds={values!r}: must be whole numbers of at least 0, at least one")
    return np.array(values, np.int64)


def _check_topology(algorithm: Algorithm, graph: Graph | None, drop: float, graphs: Any, parties: int) -> None:
    if algorithm.topology == "peer" and parties == 1:
        raise ConfideError(f"1 party: {algorithm.name} learns over a network, which needs at least 2")
    if algorithm.topology != "central" and graph is None and parties > 1:  # one party has nobody to talk to
        raise ConfideError(f"{algorithm.name} with graph=None: needs a graph")
    if algorithm.topology != "peer" and (drop or graphs is not None):
        raise ConfideError(f"{algorithm.name} is not a peer-to-peer method: it takes no lossy or changing network")


def _link_draws(seeds: NDArray[np.int64], t: int, edges: int) -> Array:
    return SimulatedNoise(seeds, np.zeros(1, np.int64), t).uniform("links", edges)[:, 0]


def _metrics(record: Sequence[str] | Mapping[str, Metric | None]) -> dict[str, Metric]:
    if isinstance(record, str):
        raise WrongType(f"record={record!r}: must be a list of names, such as [{record!r}]")
    given = record if isinstance(record, Mapping) else dict.fromkeys(record)
    out: dict[str, Metric] = {}
    for name, metric in given.items():
        if metric is None and name not in METRICS:
            raise ConfideError(f"unknown metric {name!r}: known are {', '.join(METRICS)}")
        if not (metric is None or callable(metric)):
            raise WrongType(f"metric {name!r} is {metric!r}: must be a function of a confide.metrics.Snapshot, or None")
        out[name] = metric if metric is not None else METRICS[name]
    return out


def _stopped(stop: Stop | None, t: int, before: Array | None, after: Array) -> bool:
    if stop is None or before is None:
        return False
    if callable(stop):
        return bool(stop(t, after))
    moved = np.max(np.abs(after - before))
    return bool(moved <= stop * max(float(np.max(np.abs(after))), 1e-300)) and t > 1
