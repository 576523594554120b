"""`Run`: what came out of a run, and what it cost. Saved as NumPy arrays and JSON, never pickled."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide._version import __version__
from confide.errors import ConfideError
from confide.files import write_whole
from confide.privacy import Event, Guarantee
from confide.privacy.published import PublishedBound
from confide.privacy.serialize import event_from_json, event_to_json
from confide.privacy.serialize import plain as plain  # for `simulation`, too
from confide.runs import evaluation
from confide.runs.evaluation import Evaluation
from confide.runs.frames import Row, Tabular
from confide.runs.setting import Setting, versions
from confide.runs.spread import Spread, recorded

Array = NDArray[np.float64]
FORMAT = 2  # 1 had no network, setting and id, of which a report is made
CLAIM_DELTA = 1e-5
Points = tuple[tuple[float, ...], ...]
SEEDED = "simulation: seeded noise protects nobody"


@dataclass(frozen=True, eq=False)
class Privacy:
    """The events of a run and the guarantee behind them.

    `guarantee` is what the method offers with secure noise. A simulation draws seeded noise, so that it offers nothing
    itself: `simulated` says so, and so does the text.
    """

    events: list[list[Event]]  # of round 1, 2, …
    guarantee: Guarantee
    agents: int
    simulated: bool = True
    before: tuple[Event, ...] = ()  # what users released before training: randomised labels
    claims: tuple[PublishedBound, ...] = ()  # what the paper claims, at `claim_delta`
    claim_delta: float = CLAIM_DELTA
    by_round: Points | Callable[[], Points] = ()  # `path`, or what finds it: it costs more than a short run
    charged: list[list[Event]] | None = None  # as secure noise makes them, and so what was paid; None: `events`

    @cached_property
    def path(self) -> Points:
        """A round, and what each claim would be had the run ended there."""
        return self.by_round() if callable(self.by_round) else self.by_round

    def totals(self, delta: float = 1e-5) -> dict[str, Array]:
        """Exact ε at `delta`, one per agent, for each unit protected ("row", "label")."""
        return {
            kind[0]: np.broadcast_to(np.asarray(total, float), self.agents).copy()
            for kind, total in privacy.totals([*self.before, *chain.from_iterable(self.events)], delta).items()
        }

    def epsilon(self, delta: float = 1e-5, unit: str = "row") -> float:
        """The largest ε over the agents."""
        total = self.totals(delta).get(unit)
        return 0.0 if total is None else float(np.max(total))

    def describe(self, delta: float = 1e-5) -> str:
        """One line: every unit's ε, the guarantee, and that a simulation protects nobody."""
        spent = "; ".join(f"{unit}: ε={np.max(e):.4g} at δ={delta:g}" for unit, e in self.totals(delta).items())
        text = f"{spent or 'no release'}; guarantee {self.guarantee}"
        return f"{text} ({SEEDED})" if self.simulated else text

    def beside(self) -> str:
        """The paper's own bounds beside the exact total, marked where they do not hold; one line each."""
        exact = self.epsilon(self.claim_delta)
        return "\n".join(
            f"{claim.name}: ε={np.max(claim.epsilon):.4g} at δ={self.claim_delta:g}, exact {exact:.4g}; "
            f"{'' if claim.valid else 'NOT VALID, '}{claim.why}"
            for claim in self.claims
        )

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False)
class Run(Tabular):
    """What came out of a run.

    estimates       (seeds, agents, width): every agent's model at the end
    history         recorded metrics by name, (records, seeds) each, and "round" (records,)
    privacy         events, guarantee and totals
    rounds          that were run; bytes_sent: payload of all messages of one seed; seconds: of computing
    seeds           (seeds,) of a simulation; empty where noise was secure
    delta           at which ε is reported, between 0 and 1
    not_covered     what no guarantee of this run speaks of, in words
    evaluation      quality on a test set declared public, if there is one
    algorithm       its name; parameters: its public parameters by name
    setting         loss, penalty, sizes and network, as far as they are public
    function        grid (points,) and basis (points, coefficients) of a functional model; None: a vector
    id              random, since a hash of data would reveal it
    version         of confide; versions: of what it was computed with

    `public` names the recorded metrics that come from messages and public test sets alone. All others read private
    rows: they are for simulations, and a report of a run with real noise leaves them out.
    """

    estimates: Array
    history: dict[str, Array]
    privacy: Privacy
    algorithm: str
    parameters: dict[str, Any]
    rounds: int
    bytes_sent: int
    seconds: float
    seeds: NDArray[np.int64]
    version: str = field(default=__version__)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)  # random: a hash of data would reveal it
    setting: Setting | None = None
    public: tuple[str, ...] = ()
    delta: float = CLAIM_DELTA  # at which ε is reported
    not_covered: tuple[str, ...] = ()
    evaluation: Evaluation | None = None
    function: tuple[Array, Array] | None = None  # grid (points,) and basis (points, coefficients) of a functional model
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def model(self) -> Array:
        """The agents' average: (seeds, width)."""
        return np.asarray(self.estimates.mean(axis=1))

    def __repr__(self) -> str:
        s, k, w = self.estimates.shape
        found = "".join(
            f"{name} {self.last(name)}; "
            for name, values in self.history.items()
            if name != "round" and len(values) and (self.privacy.simulated or name in self.public)
        )  # fmt: skip
        return (
            f"Run({self.algorithm}: {s} seeds, {k} agents, {w} coefficients, {self.rounds} rounds; "
            f"{found}{self.privacy})"
        )

    def last(self, metric: str) -> Spread:
        """A recorded metric after the last round: mean over seeds and its standard error, "0.853 ± 0.002" as text."""
        return Spread.of(np.ravel(self.history[recorded(self.history, metric)][-1]))

    def rows(self) -> list[Row]:
        """One per recorded round and seed, with every metric: what `to_pandas` and `to_polars` make a frame of."""
        metrics = {name: values for name, values in self.history.items() if name != "round"}
        return [
            {"round": int(t), "seed": int(seed), **{name: float(values[i, s]) for name, values in metrics.items()}}
            for i, t in enumerate(self.history["round"]) for s, seed in enumerate(self.seeds)
        ]  # fmt: skip

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """`metric` (by default the first recorded) by round: mean over seeds with its standard error."""
        from confide.runs.draw import run_axes

        return run_axes(self, metric, ax)

    def with_names(self, features: Sequence[str] | None = None, classes: Sequence[str] | None = None) -> Run:
        """The same run with names for a report."""
        if self.setting is None:
            raise ConfideError("a run without a setting has nothing to name: simulate gives it one")
        given: dict[str, Any] = {}
        for what, names in (("features", features), ("classes", classes)):
            if names is not None:
                given[what] = tuple(map(str, names))
                if len(given[what]) != len(getattr(self.setting, what)):
                    raise ConfideError(f"{len(given[what])} {what}: must be {len(getattr(self.setting, what))} names")
        return replace(self, setting=replace(self.setting, **given))

    def with_evaluation(
        self, X: Any, y: Any, *, source: str, predict: Callable[[Any], Any] | None = None
    ) -> Run:  # fmt: skip
        """The same run with its quality on a test set that you declare public.

        Never hand it rows that someone must keep private: a confusion matrix of theirs is a release nobody paid for.
        `source` says what the set is. `predict` (rows -> answers) replaces the model's own, as an estimator's does.
        """
        setting = self.setting
        if setting is None:
            raise ConfideError("a run without a setting cannot predict: simulate gives it one")
        if not isinstance(source, str) or not source.strip():
            raise ConfideError(f"source={source!r}: say in words what the test set is and that it is public")
        if predict is None and self.function is not None and np.shape(X)[-1] != len(setting.features):
            raise ConfideError("curves are answered by the estimator: with_evaluation(X, y, predict=model.predict, …)")
        answers = np.atleast_2d(np.asarray(predict(X))) if predict is not None else setting.predict(X, self.model)
        if np.shape(y)[0] != answers.shape[1]:
            raise ConfideError(f"{np.shape(y)[0]} test targets for {answers.shape[1]} test rows: must be as many")
        if setting.labels == "real":
            level = setting.level
            found = (evaluation.errors(y, answers, source) if level is None
                     else evaluation.calibration(y, answers, level, source))  # fmt: skip
        else:
            found = evaluation.confusion(y, answers if predict else self._named(answers), setting.classes, source)
        return replace(self, evaluation=found)

    def _named(self, answers: Array) -> Any:
        """The model's own answers, signs or class numbers, by the names of the classes."""
        assert self.setting is not None
        number = answers > 0 if self.setting.labels == "sign" else answers
        return np.array(self.setting.classes)[number.astype(int)]

    def with_function(self, grid: Any, basis: Any) -> Run:
        """The same run as one of a functional model: its coefficients are those of `basis` (points, k) over `grid`."""
        grid, basis = np.asarray(grid, float), np.asarray(basis, float)
        if grid.ndim != 1 or basis.ndim != 2 or len(grid) != len(basis) or basis.shape[1] > self.estimates.shape[2]:
            raise ConfideError(
                f"grid {grid.shape} and basis {basis.shape}: must be (points,) and (points, k), "
                f"k at most the {self.estimates.shape[2]} coefficients"
            )
        return replace(self, function=(grid, basis))

    def save(self, path: str | Path) -> Path:
        """Write one file; `confide.load_run` reads it, and `confide report` makes a page of it."""
        spent, found = self.privacy, self.evaluation
        meta = {
            "format": FORMAT, "version": self.version, "algorithm": self.algorithm, "parameters": self.parameters,
            "rounds": self.rounds, "bytes_sent": self.bytes_sent, "seconds": self.seconds, "id": self.id,
            "guarantee": [str(spent.guarantee.label), spent.guarantee.reason],
            "agents": spent.agents, "simulated": spent.simulated, "events": _rounds_to_json(spent.events),
            "claims": [[c.name, np.max(c.epsilon), c.valid, c.why] for c in spent.claims],
            "claim_delta": spent.claim_delta, "path": spent.path,
            "charged": None if spent.charged is None else _rounds_to_json(spent.charged),
            "before": [event_to_json(e) for e in spent.before], "history": list(self.history),
            "setting": None if self.setting is None else self.setting.to_json(), "public": self.public,
            "delta": self.delta, "not_covered": self.not_covered, "versions": self.versions,
            "evaluation": None if found is None else asdict(found), "function": self.function is not None,
        }  # fmt: skip
        arrays = {f"history.{name}": values for name, values in self.history.items()}
        if self.function is not None:
            arrays |= {"function.grid": self.function[0], "function.basis": self.function[1]}
        return write_arrays(path, meta, {"estimates": self.estimates, "seeds": self.seeds, **arrays})


def load_run(path: str | Path) -> Run:
    """The run saved at `path`."""
    meta, arrays = read_arrays(path)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        given = meta.get("format") if isinstance(meta, dict) else None
        raise ConfideError(f"{path}: a run of format {given}, this version reads format {FORMAT}")
    try:
        return _run(meta, arrays)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfideError(f"{path}: not a run, or damaged ({' '.join(str(error).split())})") from None


def _run(meta: dict[str, Any], arrays: dict[str, Array]) -> Run:
    before = tuple(event_from_json(e) for e in meta["before"])
    charged = None if meta["charged"] is None else _rounds_from_json(meta["charged"])
    spent = Privacy(
        _rounds_from_json(meta["events"]), Guarantee(*meta["guarantee"]), meta["agents"], meta["simulated"], before,
        tuple(PublishedBound(*claim) for claim in meta["claims"]), meta["claim_delta"],
        tuple(tuple(point) for point in meta["path"]), charged,
    )  # fmt: skip
    found = meta["evaluation"]
    if found is not None:
        numbers = {name: None if found[name] is None else np.array(found[name]) for name in ("matrix", "groups")}
        found = Evaluation(**{**found, **numbers, "classes": tuple(found["classes"])})
    return Run(
        arrays["estimates"], {name: arrays[f"history.{name}"] for name in meta["history"]}, spent, meta["algorithm"],
        meta["parameters"], meta["rounds"], meta["bytes_sent"], meta["seconds"], arrays["seeds"].astype(np.int64),
        meta["version"], meta["id"], None if meta["setting"] is None else Setting.from_json(meta["setting"]),
        tuple(meta["public"]), meta["delta"], tuple(meta["not_covered"]), found,
        (arrays["function.grid"], arrays["function.basis"]) if meta["function"] else None, meta["versions"],
    )  # fmt: skip


def _rounds_to_json(rounds: list[list[Event]]) -> list[list[dict[str, Any]]]:
    return [[event_to_json(e) for e in one] for one in rounds]


def _rounds_from_json(rounds: list[list[dict[str, Any]]]) -> list[list[Event]]:
    return [[event_from_json(e) for e in one] for one in rounds]


def write_arrays(path: str | Path, meta: dict[str, Any], arrays: dict[str, Any]) -> Path:
    """An .npz file with a JSON header, written whole or not at all."""
    buffer = io.BytesIO()
    header = np.frombuffer(json.dumps(meta, default=plain).encode(), np.uint8)
    np.savez(buffer, header=header, **arrays)
    return write_whole(path, buffer.getvalue())


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file by `write_arrays`; nothing in it is ever executed."""
    try:
        with zipfile.ZipFile(path) as archive:  # as `write_arrays` makes it nothing is larger than the file
            if sum(part.file_size for part in archive.infolist()) > Path(path).stat().st_size:
                raise ValueError
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(arrays.pop("header").tobytes()), arrays
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile):
        raise ConfideError(f"{path}: not a run that confide wrote, or damaged") from None
