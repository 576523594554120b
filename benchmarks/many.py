"""Many nodes on one machine: what each takes of memory, of a core while it waits, and how long a round is.

    python benchmarks/many.py --nodes 300 --rounds 100            a table
    python benchmarks/many.py --nodes 300 --rounds 100 --json     the same as JSON

All are forked from one process that has loaded and compiled everything, on a random regular graph of degree 4. One is
held back at first: the others wait for its signature, and what they use of a core in ten seconds is what waiting costs.
Then it comes, and they train to the end. How long a round is depends on what else the machine does; how much of a core
a node needs for it does not, nor does memory, which is told twice: what a node has for itself alone (USS), and with its
share of what all have in common (PSS). Noise is seeded and no ledger pays; journals are on disk.
"""

from __future__ import annotations

import os

os.environ.setdefault("CONFIDE_THREADS", "1")  # no thread may live where a fork happens

import argparse
import gc
import json
import multiprocessing
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

import networkx as nx
import numpy as np

import confide
from confide.files.toml import dumps
from confide.network.identity import Identity
from confide.node import daemon
from confide.node import federation as federations
from confide.node.codes import Code

DEGREE, ROWS, FEATURES = 4, 50, 10
METHOD = {"name": "CDPADMM", "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}
IDLE_SECONDS, PATIENCE = 10.0, 3600.0
CONTEXT = multiprocessing.get_context("fork")
TICK = os.sysconf("SC_CLK_TCK")


def found(folder: Path, nodes: int, rounds: int) -> tuple[Path, list[str]]:
    """Identities, rows and the file of a federation of so many."""
    names = [f"n{k}" for k in range(nodes)]
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    cards = [Identity.create(folder / n, n, f"127.0.0.1:{p}").card for n, p in zip(names, ports, strict=True)]
    rng = np.random.default_rng(0)
    for name in names:
        X = rng.normal(size=(ROWS, FEATURES))
        np.savez(folder / name / "rows.npz", X=X, y=np.where(X[:, 0] > 0, 1.0, -1.0))
    graph = nx.random_regular_graph(DEGREE, nodes, seed=1)
    document = {
        "format": federations.FORMAT, "name": "many", "run": "0", "timeout": PATIENCE, "test_noise_seed": 1,
        "model": {"loss": {"name": "Logistic"}, "penalty": {"name": "L2", "strength": 0.1}, "weighting": "parties",
                  "features": FEATURES, "row_norm": 1.0, "intercept": True},
        "algorithm": {**METHOD, "rounds": rounds}, "budget": {"epsilon": 10.0, "delta": 1e-5},
        "graph": {"edges": [[names[a], names[b]] for a, b in graph.edges]},
        "members": [{**card.to_json(), "rows": ROWS} for card in cards],
    }  # fmt: skip
    file = folder / "federation.toml"
    file.write_text(dumps(document))
    return file, names


def warm() -> None:
    """Everything that a node loads and compiles, once for all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, FEATURES))
    shards = confide.Shards.split(X, np.sign(X[:, 0]), 3).clip_rows(1.0)
    problem = confide.Problem(shards, confide.losses.Logistic(), intercept=True)
    fields = {name: value for name, value in METHOD.items() if name != "name"}
    confide.simulate(problem, confide.Graph.ring(3), confide.algorithms.CDPADMM(rounds=2, **fields), record=())
    gc.freeze()  # shared pages stay so


def node(folder: str, name: str) -> None:
    home = Path(folder) / name
    file = Path(folder) / "federation.toml"
    sys.exit(daemon.run(home, file, home / "rows.npz", allow_unproven=True, agree=True).code)


def memory(pid: int) -> tuple[float, float]:
    """MB that a process has alone, and with its share of what is common."""
    sizes = dict.fromkeys(("Pss", "Private_Clean", "Private_Dirty"), 0)
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in sizes:
            sizes[name] = int(rest.split()[0])
    return (sizes["Private_Clean"] + sizes["Private_Dirty"]) / 1000, sizes["Pss"] / 1000


def seconds(pid: int) -> float:
    """Of a core, since the process began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def greeted(folder: Path, federation: federations.Federation, name: str, last: str) -> bool:
    """Whether it has talked to all its neighbours but the one that is held back.

    A connection may have been lost since, on a busy machine: it is opened again when there is something to ask.
    """
    status = daemon.read_status(daemon.run_folder(folder / name, federation))
    return bool(status and status["neighbours"] and all(
        one["way"] and not one["trouble"] for other, one in status["neighbours"].items() if other != last
    ))  # fmt: skip


def measure(nodes: int, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file, names = found(folder, nodes, rounds)
        began = time.perf_counter()
        federation = federations.load(file)
        opened = time.perf_counter() - began
        warm()
        jobs = {name: CONTEXT.Process(target=node, args=(place, name), daemon=True) for name in names}
        *first, last = names
        for name in first:
            jobs[name].start()
        waiting = set(first)
        while waiting:
            waiting = {name for name in waiting if not greeted(folder, federation, name, last)}
            if any(not jobs[name].is_alive() for name in first):
                raise ChildProcessError("a node ended before the last one came")
            time.sleep(1)
        time.sleep(3)
        before = sum(seconds(jobs[name].pid or 0) for name in first)
        time.sleep(IDLE_SECONDS)
        idle = (sum(seconds(jobs[name].pid or 0) for name in first) - before) / IDLE_SECONDS / len(first)
        alone, shared = np.mean([memory(jobs[name].pid or 0) for name in first], axis=0)
        began, worked = time.perf_counter(), sum(seconds(jobs[name].pid or 0) for name in first)
        jobs[last].start()
        for job in jobs.values():
            job.join(PATIENCE)
        took = time.perf_counter() - began
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        worked = ended.ru_utime + ended.ru_stime - worked
        if wrong := {name: job.exitcode for name, job in jobs.items() if job.exitcode != Code.FINISHED}:
            raise ChildProcessError(f"these did not finish: {wrong}")
        return {
            "nodes": nodes, "rounds": rounds, "opening_seconds": opened, "alone_mb": float(alone),
            "shared_mb": float(shared), "idle_percent": 100 * idle, "seconds_per_round": took / rounds,
            "core_seconds_per_round": worked / rounds / nodes,
            "journal_mb": sum(path.stat().st_size for path in folder.glob("*/runs/*/journal")) / 1e6 / nodes,
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.nodes <= DEGREE or args.nodes * DEGREE % 2 or args.rounds < 1:
        parser.error(f"--nodes {args.nodes} --rounds {args.rounds}: at least {DEGREE + 1} nodes, and 1 round")
    result = measure(args.nodes, args.rounds)
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for name, words in (
        ("opening_seconds", "s to open the federation's file"), ("alone_mb", "MB per node, for itself"),
        ("shared_mb", "MB a node, with its share of the rest"), ("idle_percent", "% of a core a node, waiting"),
        ("seconds_per_round", "s per round, on this machine"),
        ("core_seconds_per_round", "s of a core per node and round"), ("journal_mb", "MB of journal per node"),
    ):  # fmt: skip
        print(f"{result[name]:10.3g}  {words}")


if __name__ == "__main__":
    main()
