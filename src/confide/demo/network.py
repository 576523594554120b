"""The network demo: five hospitals on this machine, set up and run as their people would, command by command.

Everything is real but the patients: five processes, mutual TLS, secure noise, ledgers, journals on disk. One node is
killed in the middle of training and started again; it resumes where it was and no release is made twice. One takes no
connections, since its firewall lets it call out only: its neighbours find it at a relay, which passes on bytes.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from confide.demo import cohort as data
from confide.demo.simulated import COHORT, DELTA, EPSILON, PENALTY
from confide.errors import ConfideError, Diverged
from confide.files import write_whole
from confide.network import wire
from confide.node import federation as federations
from confide.node.daemon import read_status, run_folder
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.problem.losses import Logistic
from confide.problem.problem import Problem
from confide.problem.shards import Shards
from confide.runs.model import Model
from confide.runs.spread import standard_error
from confide.schema.schema import Column, Schema, Target

Say = Callable[[str], None]
MARK = ".confide-demo-network"  # in a folder that this demo made, and may remove
NAMES = ("mercy", "northside", "st-agnes", "lakeview", "hillcrest")  # as nodes are called
VICTIM, WITNESS = "st-agnes", "lakeview"  # neighbours on the ring
BEHIND, RELAY = "hillcrest", "relay"  # who takes no connections, and where it is found
LABEL = Target("readmitted", "binary", ("no", "yes"))
# As in `confide.demo.simulated`: chosen on another cohort. The noise is calibrated to the cap by `federation new`.
METHOD = ("rounds=200", "step=15", "coupling=0.004", "clip=1.0", "noise_decay=0.985")
KILL_AFTER = 20  # rounds
PATIENCE = 300.0  # seconds for any one step
PROGRAM = (sys.executable, "-P", "-c", "from confide.cli import main; main()")


@dataclass(frozen=True)
class NetworkResult:
    """What came out, and where it is."""

    folder: str
    patients: dict[str, int]
    rounds: int
    killed: str
    killed_in_round: int
    messages: int  # received by anyone, each compared with what its sender keeps
    epsilon: float
    delta: float
    guarantee: str
    accuracy: float  # on the public test set
    standard_error: float  # of the accuracy, for the chance of who is in the test set
    joint: float  # the same without privacy
    majority: float  # the same answer for everyone
    model: str
    report: str
    seconds: float


def run(folder: Path, patients: int = 20_000, say: Say = print) -> NetworkResult:
    """The whole story in `folder`, told by `say`."""
    began = time.perf_counter()
    prepare(folder)
    sizes = write_hospitals(folder, patients)
    say(f"$ cd {folder}\n"
        "  Here are five hospitals' patients, generated, a file each; schema.toml, which\n"
        f"  all agreed on; and test.csv, {data.TEST_PATIENTS:,} patients who agreed to be public.")  # fmt: skip
    office = Office(folder, say)
    try:
        say("\n1. Each hospital makes an identity and hands its card to its neighbours.")
        for name, port in zip((*NAMES, RELAY), free_ports(len(NAMES) + 1), strict=True):
            where = ["--outbound"] if name == BEHIND else ["--listen", f"127.0.0.1:{port}"]
            office.confide("node", "init", "--name", name, *where, "--home", name, quiet=True)
        say(f"   The firewall of {BEHIND} lets nobody in: it is found at a relay.")
        say("\n2. They agree on one public file: members, ring, schema, method and budget.")
        parties = [x for name in NAMES for x in ("--party", f"{name}/card.toml={sizes[name]}")]
        office.confide(
            "federation", "new", "--name", "readmission", *parties, "--schema", "schema.toml", "--graph", "ring",
            "--epsilon", f"{EPSILON:g}", "--delta", f"{DELTA:g}", "--weighting", "rows", "--penalty",
            f"L2:strength={PENALTY.strength:g}", "--algorithm", "CDPADMM", *(x for s in METHOD for x in ("--set", s)),
            "--timeout", "300", "--relay", f"{RELAY}/card.toml",
        )  # fmt: skip
        office.federation = federations.load(folder / "federation.toml")
        say("\n   Everyone reads what it says, on one page, and signs it.")
        office.confide("federation", "review", "federation.toml")
        for name in NAMES:
            office.confide("federation", "sign", "federation.toml", "--home", name, "--yes", quiet=True)
        say("\n3. Everyone trains with the neighbours, in a process of its own.")
        office.relay()
        for name in NAMES:
            office.start(name)
        at = office.kill(VICTIM)
        office.until(office.noticed, f"{WITNESS} to notice")
        say(f"\n   Its neighbours wait for it. {WITNESS} shows:")
        office.confide("node", "status", "--home", WITNESS)
        say(f"\n5. {VICTIM} is started again and resumes from its journal.")
        office.start(VICTIM)
        office.finish()
        office.confide("node", "status", "--home", VICTIM)
        compared = office.compare()
        say(f"\n   All {compared:,} messages that anyone received are those their senders keep, byte\n"
            "   for byte: nobody drew a second noise for the same round.")  # fmt: skip
        say("\n6. The model, its predictions, and a report for people who were not there.")
        office.confide("node", "model", "--home", "mercy", "--output", "model.json")
        office.confide("predict", "model.json", "test.csv", "--output", "predictions.csv")
        office.confide("report", "mercy", "--test", "test.csv", "--output", "report.html")
    finally:
        office.close()
    model = Model.load(folder / "model.json")
    assert model.privacy.epsilon is not None and model.privacy.delta is not None
    right, error, joint, majority = scores(folder)
    return NetworkResult(
        str(folder), sizes, model.privacy.rounds, VICTIM, at, compared, model.privacy.epsilon, model.privacy.delta,
        str(model.privacy.guarantee), right, error, joint, majority, str(folder / "model.json"),
        str(folder / "report.html"), time.perf_counter() - began,
    )  # fmt: skip


class Office:
    """Runs commands in the folder, shows them as a person types them, and ends every process it started."""

    federation: Federation

    def __init__(self, folder: Path, say: Say) -> None:
        self.folder, self.say = folder, say
        self.jobs: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {**os.environ, "COLUMNS": "80", "CONFIDE_THREADS": "1"}  # five nodes share the machine

    def confide(self, *args: str, quiet: bool = False) -> None:
        self.say(shown(args))
        done = subprocess.run([*PROGRAM, *args], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False)  # fmt: skip
        if done.returncode:
            raise ChildProcessError(f"`confide {args[0]}` failed: {done.stderr.strip() or done.returncode}")
        if done.stdout.strip() and not quiet:
            self.say(done.stdout.rstrip())

    def start(self, name: str) -> None:
        self._begin(name, ("node", "run", "--federation", "federation.toml", "--data", f"{name}.csv", "--home", name,
                           "--ledger", f"{name}/ledger.sqlite"))  # fmt: skip

    def relay(self) -> None:
        self._begin(RELAY, ("relay", "--federation", "federation.toml", "--home", RELAY))

    def _begin(self, name: str, args: tuple[str, ...]) -> None:
        self.say(shown(args, " &"))
        with (self.folder / f"{name}.log").open("ab") as log:
            self.jobs[name] = subprocess.Popen([*PROGRAM, *args], cwd=self.folder, env=self.environment, stdout=log,
                                               stderr=log, stdin=subprocess.DEVNULL)  # fmt: skip

    def kill(self, name: str) -> int:
        """With kill -9, in the middle; the rounds it had sent."""
        self.until(lambda: self.sent(name) >= KILL_AFTER, f"{name} to begin", pause=0.02)
        self.jobs[name].kill()
        self.jobs[name].wait()
        at, rounds = self.sent(name), self.federation.algorithm.rounds
        self.say(f"\n4. {name} loses power after round {at} of {rounds}.\n$ kill -9 {self.jobs[name].pid}")
        del self.jobs[name]
        return at

    def sent(self, name: str) -> int:
        with suppress(FileNotFoundError), self.journal(name) as journal:
            return journal.last(self.federation.cards[name].digest)
        return 0

    def journal(self, name: str) -> Journal:
        return Journal(run_folder(self.folder / name, self.federation), self.federation.digest, write=False)

    def noticed(self) -> bool:
        """Whether the witness shows the victim as down."""
        status = read_status(run_folder(self.folder / WITNESS, self.federation))
        return status is not None and not status["neighbours"].get(VICTIM, {"up": True})["up"]

    def until(self, condition: Callable[[], bool], what: str, pause: float = 0.1) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}: see {self.folder}/*.log")
            time.sleep(pause)

    def check(self) -> None:
        for name, job in self.jobs.items():
            if job.poll():
                said = (self.folder / f"{name}.log").read_text(encoding="utf-8").strip().splitlines()
                raise ChildProcessError(f"{name} failed: {said[-1] if said else job.returncode}")

    def finish(self) -> None:
        """Wait for all to end, well, and the relay, which nobody needs any more."""
        self.until(lambda: all(self.jobs[name].poll() is not None for name in NAMES), "all to finish")
        self.check()
        relay = self.jobs[RELAY]
        relay.terminate()
        relay.wait()
        said = (self.folder / f"{RELAY}.log").read_text(encoding="utf-8").splitlines()
        self.say(f"\n   The relay, ended: {said[-1]}")

    def compare(self) -> int:
        """How many messages were received; each must be its sender's, and each sender's rounds be there once."""
        sent: dict[tuple[bytes, int], bytes] = {}
        heard = []
        for name in NAMES:
            mine = self.federation.cards[name].digest
            with self.journal(name) as journal:
                frames = list(journal.frames())
            own = [t for sender, t, _ in frames if sender == mine]
            if own != list(range(1, self.federation.algorithm.rounds + 1)):
                raise Diverged(f"{name} sent rounds that are not 1, 2, …, each once")
            sent |= {(sender, t): frame for sender, t, frame in frames if sender == mine}
            heard += [one for one in frames if one[0] != mine]
        if any(wire.seal(sent[sender, t]) != wire.seal(frame) for sender, t, frame in heard):
            raise Diverged("a message was received that its sender does not keep")
        return len(heard)

    def close(self) -> None:
        for job in self.jobs.values():
            if job.poll() is None:
                job.kill()
            job.wait()


def shown(args: tuple[str, ...], end: str = "") -> str:
    """A command as it is typed, in 80 columns."""
    first, *options = re.split(r" (?=--)", f"confide {shlex.join(args)}{end}")
    lines = [f"$ {first}"]
    for option in options:  # each stays with its value
        if len(lines[-1]) + len(option) > 76:
            lines.append("   ")
        lines[-1] += f" {option}"
    return " \\\n".join(lines)


def prepare(folder: Path) -> None:
    """An empty folder; only what this demo made itself is removed."""
    if folder.exists() and not folder.is_dir():
        raise ConfideError(f"--output {folder}: is not a folder")
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise ConfideError(f"--output {folder}: holds other files: name another folder, or empty this one")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def schema() -> Schema:
    """The public ranges of `confide.demo.cohort` as the schema that all agree on."""
    columns = tuple(Column(f.name, "numeric", f.low, f.high) for f in data.SCHEMA)
    return Schema((Column("patient", "ignore"), *columns), LABEL, row_norm=data.ROW_NORM)


def write_hospitals(folder: Path, patients: int) -> dict[str, int]:
    """A CSV for each hospital, test.csv and schema.toml; how many rows each has."""
    parts, tests = data.raw(COHORT, patients)
    for name, (X, y) in zip(NAMES, parts, strict=True):
        write(folder / f"{name}.csv", X, y)
    write(folder / "test.csv", np.vstack([X for X, _ in tests]), np.concatenate([y for _, y in tests]))
    write_whole(folder / "schema.toml", schema().to_toml().encode())
    return {name: len(y) for name, (_, y) in zip(NAMES, parts, strict=True)}


def write(path: Path, X: Any, y: Any) -> None:
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n")
    out.writerow(["patient", *(f.name for f in data.SCHEMA), LABEL.name])
    for number, (row, label) in enumerate(zip(X.tolist(), y, strict=True), start=1):
        out.writerow([number, *(f"{v:.6g}" for v in row), LABEL.values[int(label > 0)]])
    write_whole(path, file.getvalue().encode())


def read(path: Path) -> tuple[Any, list[str]]:
    """Encoded rows and the labels as text: what nobody but the demo, which made them up, may put together."""
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]
    return data.encode(np.array([row[1:-1] for row in rows], float)), [row[-1] for row in rows]


def scores(folder: Path) -> tuple[float, float, float, float]:
    """Accuracy on the public test set: of the predictions, its standard error, without privacy, of one answer."""
    test, truth = read(folder / "test.csv")
    said = [row[1] for row in csv.reader((folder / "predictions.csv").read_text(encoding="utf-8").splitlines())][1:]
    rows = [read(folder / f"{name}.csv") for name in NAMES]
    signs = [np.where(np.array(labels) == LABEL.values[1], 1.0, -1.0) for _, labels in rows]
    shards = Shards.from_parts([(X, y) for (X, _), y in zip(rows, signs, strict=True)], list(NAMES))
    problem = Problem(shards.clip_rows(data.ROW_NORM), Logistic(), PENALTY, weighting="rows", intercept=True)
    public = Shards.from_parts([(test, np.zeros(len(test)))], ["public"]).clip_rows(data.ROW_NORM)
    joint = problem.predict(public.X, problem.solve())
    yes = np.array(truth) == LABEL.values[1]
    right = (np.array(said) == np.array(truth)).astype(float)
    error = standard_error(right)
    assert error is not None  # test rows are thousands
    return float(right.mean()), float(error), float(np.mean((joint > 0) == yes)), float(max(yes.mean(), 1 - yes.mean()))


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on; all held at once, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
