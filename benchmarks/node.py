"""Rounds per second of real nodes with mutual TLS: on a ring beside a bare TLS ping of the same size, and private sums.

    python benchmarks/node.py            a table
    python benchmarks/node.py --json     the same as JSON

Both are five processes in which everyone asks both neighbours for so many doubles each round, over the same TLS. The
ping answers at once from memory; a node computes, signs, syncs its journal to disk and waits for its neighbours. Noise
is left out: it is no matter of the network, and what secure noise takes a round is printed beside it.

Private sums are measured beside the same nodes running a peer method, in turn: on a complete graph, whose tree is one
link deep, and on a path, whose tree is two. Their noise is seeded, and no ledger pays for either.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from confide.files.toml import dumps
from confide.network import frames, wire
from confide.network.channel import context, listener
from confide.network.identity import Identity
from confide.node import daemon
from confide.node import federation as federations
from confide.node.status import read_status, run_folder
from confide.privacy.secure import SecureNoise

NAMES = ("ash", "birch", "cedar", "doum", "elm")


def neighbours(k: int) -> list[int]:
    return [(k - 1) % 5, (k + 1) % 5]


def village(folder: Path) -> list[Identity]:
    """Five identities on free ports."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in NAMES]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    pairs = zip(NAMES, ports, strict=True)
    return [Identity.create(folder / name, name, f"127.0.0.1:{port}") for name, port in pairs]


# --- bare ping --------------------------------------------------------------------------------------------------------


def ping_process(k: int, folder: str, size: int, rounds: int, ready: Any, out: Any) -> None:
    everyone = [Identity.load(Path(folder) / name) for name in NAMES]
    me, near, payload = everyone[k], [everyone[l] for l in neighbours(k)], bytes(8 * size)

    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.CancelledError, ConnectionError):  # the others end first
                while len(await reader.read(wire.REQUEST_SIZE)) == wire.REQUEST_SIZE:
                    writer.write(payload)

        tls = context(me, [other.card for other in near], server=True)
        server = await asyncio.start_server(answer, *listener(me.card.address), ssl=tls)
        await asyncio.to_thread(ready.wait, 120)
        streams = []
        for other in near:
            tls = context(me, [other.card], server=False)
            streams.append(await asyncio.open_connection(*listener(other.card.address), ssl=tls,
                                                         server_hostname=other.card.name))  # fmt: skip

        async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(wire.pack_request(bytes(32), 1))
            await reader.readexactly(len(payload))

        await asyncio.gather(*(ask(*stream) for stream in streams))
        await asyncio.to_thread(ready.wait, 120)
        began = time.perf_counter()
        for _ in range(rounds):
            await asyncio.gather(*(ask(*stream) for stream in streams))
        out.put(rounds / (time.perf_counter() - began))
        await asyncio.to_thread(ready.wait, 120)  # others may still ask
        for _, writer in streams:
            writer.close()
        server.close()

    asyncio.run(main())


def ping(size: int, rounds: int) -> float:
    """Rounds per second of the slowest of five."""
    with tempfile.TemporaryDirectory() as folder:
        village(Path(folder))
        ready, out = CONTEXT.Barrier(5), CONTEXT.Queue()
        jobs = [CONTEXT.Process(target=ping_process, args=(k, folder, size, rounds, ready, out)) for k in range(5)]
        for job in jobs:
            job.start()
        rates = [out.get(timeout=240) for _ in jobs]
        for job in jobs:
            job.join(30)
        return min(rates)


# --- nodes ------------------------------------------------------------------------------------------------------------


def node_process(folder: str, name: str) -> None:
    home = Path(folder) / name
    daemon.run(home, Path(folder) / "federation.toml", home / "rows.npz", allow_unproven=True, agree=True)


PEERS = {"name": "LinearizedADMM", "clip": 1.0}
SUMS = {"name": "JointDescent", "noise": 0.01, "first": "gradient"}
RING = [(k, (k + 1) % 5) for k in range(5)]
PATH = RING[:4]
COMPLETE = [(i, j) for i in range(5) for j in range(i)]


def nodes(size: int, rounds: int, method: dict[str, Any] | None = None, links: list[tuple[int, int]] = RING) -> float:
    """Rounds per second of a whole run but its first tenth."""
    method = method or PEERS
    summed = method["name"] == SUMS["name"]
    with tempfile.TemporaryDirectory() as folder:
        identities = village(Path(folder))
        rng = np.random.default_rng(0)
        for name in NAMES:
            X = rng.normal(size=(4, size))
            np.savez(Path(folder) / name / "rows.npz", X=X, y=np.sign(X[:, 0]))
        document = {
            "format": federations.FORMAT, "name": "bench", "run": "0", "timeout": 120.0,
            "model": {"loss": {"name": "Logistic"}, "penalty": {"name": "L2", "strength": 0.1},
                      "weighting": "parties", "features": size, "row_norm": 1.0},
            "algorithm": {**method, "rounds": rounds},
            "graph": {"edges": [[NAMES[i], NAMES[j]] for i, j in links]},
            "members": [{**one.card.to_json(), "rows": 4} for one in identities],
            **({"test_noise_seed": 0, "budget": {"epsilon": 1e9, "delta": 1e-5}} if summed else {}),
        }  # fmt: skip
        file = Path(folder) / "federation.toml"
        file.write_text(dumps(document))
        folder_of_run = run_folder(Path(folder) / NAMES[0], federations.load(file))
        jobs = [CONTEXT.Process(target=node_process, args=(folder, name)) for name in NAMES]
        for job in jobs:
            job.start()
        seen: list[tuple[int, float]] = []  # rounds that were done, and when the node said so
        while (not seen or seen[-1][0] < rounds) and any(job.is_alive() for job in jobs):
            time.sleep(0.1)
            said = read_status(folder_of_run)
            if said is not None and rounds // 10 <= said["round"] != (seen[-1][0] if seen else 0):
                seen.append((said["round"], said["updated"]))
        for job in jobs:
            job.join(60)
        (start, first), (done, last) = seen[0], seen[-1]
        return (done - start) / (last - first)


def secure_noise(size: int, repeats: int = 5) -> float:
    """Milliseconds for the noise of one message."""
    value, scale, draws = np.zeros((1, 1, size)), np.full((1, 1), 0.01), SecureNoise()
    draws.at(0).gaussian("primal", value, scale)
    began = time.perf_counter()
    for t in range(1, repeats + 1):
        draws.at(t).gaussian("primal", value, scale)
    return 1e3 * (time.perf_counter() - began) / repeats


def benchmark(size: int, rounds: int, repeats: int = 2) -> dict[str, object]:
    """The best of alternating runs of each."""
    ours, bare = zip(*((nodes(size, rounds), ping(size, rounds)) for _ in range(repeats)), strict=True)
    mine, reference = max(ours), max(bare)
    return {
        "benchmark": f"ring of five nodes, mutual TLS, {size:,} doubles", "rounds_per_second": mine,
        "seconds": 1 / mine, "reference": "bare TLS ping", "reference_rounds_per_second": reference,
        "reference_seconds": 1 / reference, "ratio": mine / reference, "want": "at least half of the ping",
        "met": mine >= 0.5 * reference, "note": f"not in it: {secure_noise(size):.1f} ms per round for secure noise",
    }  # fmt: skip


def sums(size: int, rounds: int, links: list[tuple[int, int]], name: str, share: float,
         repeats: int = 2) -> dict[str, object]:  # fmt: skip
    """Private sums beside peers on the same graph, the best of alternating runs of each."""
    pairs = [(nodes(size, rounds, SUMS, links), nodes(size, rounds, PEERS, links)) for _ in range(repeats)]
    mine, peers = (max(rates) for rates in zip(*pairs, strict=True))
    return {
        "benchmark": f"private sums, five nodes, {name}, {size:,} numbers", "rounds_per_second": mine,
        "seconds": 1 / mine, "reference": "a peer method on the same graph", "reference_rounds_per_second": peers,
        "reference_seconds": 1 / peers, "ratio": mine / peers, "want": f"at least {share:.2g} of the peer method",
        "met": mine >= share * peers,
        "note": f"a frame has {frames.frame_size(8 * size):,} bytes, a vector {8 * size:,}; a party sends at most two",
    }  # fmt: skip


CONTEXT = multiprocessing.get_context("spawn")


def main() -> None:
    results = [benchmark(100, 1000), benchmark(10_000, 500)]
    results += [sums(100, 1000, COMPLETE, "complete graph", 0.5), sums(100, 1000, PATH, "path", 0.25)]
    if "--json" in sys.argv:
        print(json.dumps(results, indent=2))
        return
    for r in results:
        print(f"{r['benchmark']}\n  {r['rounds_per_second']:.0f} rounds/s; {r['reference']}: "
              f"{r['reference_rounds_per_second']:.0f}; ratio {r['ratio']:.2f}")  # fmt: skip
        print(f"  wanted: {r['want']}: {'met' if r['met'] else 'NOT MET'}; {r['note']}")


if __name__ == "__main__":
    main()
