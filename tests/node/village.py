"""A federation of real processes on loopback, for the tests: each node is `confide node run` in a folder of its own."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import nursery
from ports import free_ports
from waiting import wait_for

import confide
from confide.files.toml import dumps
from confide.network.identity import BY_RELAY, Identity
from confide.node import federation as federations
from confide.node.daemon import read_status, run_folder
from confide.node.export import export
from confide.node.journal import Journal

NAMES = ("ash", "birch", "cedar", "doum", "elm")
SIZES = (12, 40, 25, 60, 33)
FEATURES = 4


def rows():
    rng = np.random.default_rng(7)
    n = sum(SIZES)
    X = rng.normal(size=(n, FEATURES))
    y = np.where(X @ np.array([1.5, -2.0, 1.0, 0.5]) + 0.3 + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, y


class Journals:
    """The latest rounds of own messages in journals; one is read when it is not as it was at the last look."""

    def __init__(self):
        self._known = {}  # path -> what it looked like, and its last round

    def last(self, folder, run, own):
        """0 where there is no journal yet."""
        try:
            now = (folder / "journal").stat()
            looks = now.st_ino, now.st_size, now.st_mtime_ns
            if self._known.get(folder, (None,))[0] != looks:
                with Journal(folder, run, write=False) as journal:
                    self._known[folder] = looks, journal.last(own)
        except FileNotFoundError:
            return 0
        return self._known[folder][1]


class Village:
    """Five parties, `algorithm` as its table; `through` is the port at which others reach a member, if not its own."""

    def __init__(self, folder, algorithm, *, hub=False, seed=5, timeout=300.0, budget=(1.0, 1e-5), through=None,
                 graph=None, outbound=(), patience=None, restarts=None):  # fmt: skip
        """`outbound` members take no connections; if there are any, a relay is named, which `start("relay")` starts."""
        self.folder, self.jobs, through, self.outbound = Path(folder), {}, through or {}, outbound
        self.journals = Journals()
        names = (*NAMES, *(["hub"] if hub else []))
        ports = free_ports(len(names))
        self.ports = dict(zip(names, ports, strict=True))
        self.identities = {
            name: Identity.create(
                self.folder / name, name, BY_RELAY if name in outbound else f"127.0.0.1:{through.get(name, port)}"
            )
            for name, port in self.ports.items()
        }
        relay = {}
        if outbound:
            card = Identity.create(self.folder / "relay", "relay", f"127.0.0.1:{free_ports(1)[0]}").card
            relay = {"relay": card.to_json()}
        self.graph = graph or confide.Graph.ring(5)
        edges = [[NAMES[i], NAMES[j]] for i, j in self.graph.edges.tolist()]
        self.document = {
            "format": federations.FORMAT, "name": "village", "run": "0", "timeout": timeout,
            **({} if seed is None else {"test_noise_seed": seed}),
            **({} if patience is None else {"patience": patience}),
            "model": {
                "loss": {"name": "Logistic"}, "penalty": {"name": "L2", "strength": 0.5}, "weighting": "parties",
                "features": FEATURES, "row_norm": 1.0, "intercept": False,
            },
            "algorithm": algorithm, "budget": {"epsilon": budget[0], "delta": budget[1],
                                              **({} if restarts is None else {"restarts": restarts})},
            "graph": {"hub": "hub"} if hub else {"edges": edges},
            "members": [
                {**self.identities[name].card.to_json(), **({} if name == "hub" else {"rows": size})}
                for name, size in zip(names, (*SIZES, 0), strict=False)
            ],
            **relay,
        }  # fmt: skip
        self.file = self.write("federation.toml", self.document)
        self.federation = federations.load(self.file)
        X, y = rows()
        cuts = np.cumsum(SIZES)[:-1]
        for name, Xk, yk in zip(NAMES, np.split(X, cuts), np.split(y, cuts), strict=True):
            np.savez(self.folder / f"{name}.npz", X=Xk, y=yk)

    def write(self, name, document):
        path = self.folder / name
        path.write_text(dumps(document))
        return path

    def problem(self):
        X, y = rows()
        shards = confide.Shards.from_groups(X, y, np.repeat(np.arange(5), SIZES)).clip_rows(1.0)
        return confide.Problem(shards, self.federation.loss, self.federation.penalty)

    def simulated(self):
        """What the simulator makes of the same federation: (agents, width)."""
        seed = self.federation.test_noise_seed
        run = confide.simulate(self.problem(), self.graph, self.federation.algorithm, seeds=[seed], record=())
        return run.estimates[0]

    # --- processes ----------------------------------------------------------------------------------------------------

    def arguments(self, name, file=None):
        if name == "relay":
            return ["relay", "--federation", str(self.file), "--home", str(self.folder / "relay")]
        data = [] if name == "hub" else ["--data", str(self.folder / f"{name}.npz")]
        unproven = ["--allow-unproven"] if self.federation.test_noise_seed is not None else []
        ledger = ["--ledger", str(self.folder / name / "ledger.sqlite")]
        listen = [] if name in self.outbound else ["--listen", f"127.0.0.1:{self.ports[name]}"]
        home = ["--home", str(self.folder / name), *listen]
        return ["node", "run", "--agree", "--federation", str(file or self.file), *data, *home, *ledger, *unproven]

    def start(self, *names, file=None):
        for name in names or self.identities:
            self.jobs[name] = nursery.start(self.arguments(name, file), self.folder / f"{name}.log")

    def kill(self, *names, how=signal.SIGKILL):
        for name in names:
            os.kill(self.jobs[name].pid, how)
        for name in names:
            self.jobs[name].join(30)

    def join(self, *names, seconds=300):
        """Wait for the processes to end; their exit codes."""
        end = time.monotonic() + seconds
        for name in names or self.jobs:
            self.jobs[name].join(max(0.1, end - time.monotonic()))
        return {name: self.jobs[name].exitcode for name in names or self.jobs}

    def close(self):
        for job in self.jobs.values():
            job.kill()
            job.join(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    # --- what they left -----------------------------------------------------------------------------------------------

    def run_folder(self, name):
        return run_folder(self.folder / name, self.federation)

    def status(self, name):
        return read_status(self.run_folder(name))

    def journal(self, name):
        return Journal(self.run_folder(name), self.federation.digest, write=False)

    def rounds_sent(self, name):
        own = self.identities[name].card.digest
        return self.journals.last(self.run_folder(name), self.federation.digest, own)

    def passes(self, name, before, seconds=180.0):
        """Whether the node sends a round later than `before`, in time."""
        return wait_for(lambda: self.rounds_sent(name) > before, seconds, 0.003)

    def model(self, name):
        return export(self.folder / name, self.run_folder(name))

    def models(self):
        return np.array([self.model(name).coefficients.ravel() for name in NAMES])

    def check_messages(self):
        """Every message anyone received is in its sender's journal, byte for byte, and there once; how many."""
        sent, compared = {}, 0
        for name, identity in self.identities.items():
            with self.journal(name) as journal:
                mine = [(t, f) for sender, t, f in journal.frames() if sender == identity.card.digest]
                assert [t for t, _ in mine] == list(range(1, len(mine) + 1))
                sent |= {(identity.card.digest, t): f for t, f in mine}
        for name, identity in self.identities.items():
            with self.journal(name) as journal:
                for sender, t, frame in journal.frames():
                    if sender != identity.card.digest:
                        assert sent[sender, t] == frame
                        compared += 1
        return compared


class Crowd:
    """Processes of nodes that a test sets up by commands; all read `federation.toml` in the folder."""

    def __init__(self, folder, names):
        self.folder, self.names, self.jobs, self.journals = Path(folder), names, {}, Journals()
        ports = free_ports(len(names))
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)}

    def start(self, *names, data, unproven=True):
        for name in names or self.names:
            arguments = [
                "node", "run", "--federation", str(self.folder / "federation.toml"), "--data", str(data[name]),
                "--agree", "--home", str(self.folder / name), "--ledger", str(self.folder / name / "ledger.sqlite"),
                *(["--allow-unproven"] if unproven else []),
            ]  # fmt: skip
            self.jobs[name] = nursery.start(arguments, self.folder / f"{name}.log")

    @property
    def federation(self):
        return federations.load(self.folder / "federation.toml")

    def rounds_sent(self, name):
        federation = self.federation
        folder = run_folder(self.folder / name, federation)
        return self.journals.last(folder, federation.digest, federation.cards[name].digest)

    kill, join, close, log, passes = Village.kill, Village.join, Village.close, Village.log, Village.passes
    __enter__, __exit__ = Village.__enter__, Village.__exit__
