"""`Run`: what came out of a run, and what it cost. Saved as NumPy arrays and JSON, never pickled."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import privacy
from confide._version import __version__
from confide.privacy import Event, Guarantee
from confide.privacy.published import PublishedBound
from confide.privacy.serialize import event_from_json, event_to_json
from confide.privacy.serialize import plain as plain  # for `simulation`, too

Array = NDArray[np.float64]
FORMAT = 1
CLAIM_DELTA = 1e-5
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
    claims: tuple[PublishedBound, ...] = ()  # what the paper claims, at δ = `CLAIM_DELTA`

    def totals(self, delta: float = 1e-5) -> dict[str, Array]:
        """Exact ε at `delta`, one an agent, for each unit protected ("row", "label")."""
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
        exact = self.epsilon(CLAIM_DELTA)
        return "\n".join(
            f"{claim.name}: ε={np.max(claim.epsilon):.4g} at δ={CLAIM_DELTA:g}, exact {exact:.4g}; "
            f"{'' if claim.valid else 'NOT VALID, '}{claim.why}"
            for claim in self.claims
        )

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False)
class Run:
    """Estimates (seeds, agents, width), recorded metrics by round, and privacy."""

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

    @property
    def model(self) -> Array:
        """The agents' average: (seeds, width)."""
        return np.asarray(self.estimates.mean(axis=1))

    def __repr__(self) -> str:
        s, k, w = self.estimates.shape
        return f"Run({self.algorithm}: {s} seeds, {k} agents, {w} coefficients, {self.rounds} rounds; {self.privacy})"

    def save(self, path: str | Path) -> Path:
        """Write one file; `confide.load_run` reads it."""
        meta = {
            "format": FORMAT, "version": self.version, "algorithm": self.algorithm, "parameters": self.parameters,
            "rounds": self.rounds, "bytes_sent": self.bytes_sent, "seconds": self.seconds,
            "guarantee": [str(self.privacy.guarantee.label), self.privacy.guarantee.reason],
            "agents": self.privacy.agents, "simulated": self.privacy.simulated,
            "events": [[event_to_json(e) for e in one] for one in self.privacy.events],
            "claims": [[c.name, np.max(c.epsilon), c.valid, c.why] for c in self.privacy.claims],
            "before": [event_to_json(e) for e in self.privacy.before], "history": list(self.history),
        }  # fmt: skip
        arrays = {f"history.{name}": values for name, values in self.history.items()}
        return write_arrays(path, meta, {"estimates": self.estimates, "seeds": self.seeds, **arrays})


def load_run(path: str | Path) -> Run:
    """The run saved at `path`."""
    meta, arrays = read_arrays(path)
    if meta.get("format") != FORMAT:
        raise ValueError(f"{path}: a run of format {meta.get('format')}, this version reads format {FORMAT}")
    events = [[event_from_json(e) for e in one] for one in meta["events"]]
    before = tuple(event_from_json(e) for e in meta["before"])
    claims = tuple(PublishedBound(*claim) for claim in meta["claims"])
    spent = Privacy(events, Guarantee(*meta["guarantee"]), meta["agents"], meta["simulated"], before, claims)
    history = {name: arrays[f"history.{name}"] for name in meta["history"]}
    return Run(
        arrays["estimates"], history, spent, meta["algorithm"], meta["parameters"], meta["rounds"],
        meta["bytes_sent"], meta["seconds"], arrays["seeds"].astype(np.int64), meta["version"],
    )  # fmt: skip


def write_arrays(path: str | Path, meta: dict[str, Any], arrays: dict[str, Any]) -> Path:
    """An .npz file with a JSON header, written whole or not at all."""
    path = Path(path)
    buffer = io.BytesIO()
    header = np.frombuffer(json.dumps(meta, default=plain).encode(), np.uint8)
    np.savez(buffer, header=header, **arrays)
    part = path.with_name(path.name + ".part")
    part.write_bytes(buffer.getvalue())
    part.replace(path)
    return path


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file by `write_arrays`; nothing in it is ever executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(arrays.pop("header").tobytes()), arrays
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: not a file written by confide, or damaged") from None
