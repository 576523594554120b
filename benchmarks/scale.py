"""Cost per round and memory from a thousand agents to a million: 50 rows × 8 features each, four neighbours.

    confide bench --scale                       10^3, 10^4, 10^5 and 10^6 agents; drawn in scale.png, or --plot FILE
    confide bench --scale --docs                the same into docs/scale.md and its picture
    confide bench --scale --most 100000         fewer

Each size runs in a process of its own, so that its peak of memory is its own. The slope is that of log cost against log
agents, fitted by least squares: 1 is proportional. Set-up is everything before round 1: the graph, the rows' way into
shards, the problem; the rows themselves are drawn before the clock starts.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROWS, FEATURES, DEGREE, ROUNDS = 50, 8, 4, 5
SETUP_SECONDS, MEMORY_RATIO = 15.0, 1.5  # wanted at the largest size
DOCS = Path(__file__).resolve().parent.parent / "docs"


def measure(agents: int) -> dict[str, float]:
    """One size, in this process."""
    import confide
    from confide.runs.driver import Driver

    warm = confide.Problem(confide.Shards.split(np.eye(8), np.ones(8), 2), confide.losses.Squared())
    Driver(warm, confide.Graph.path(2), confide.algorithms.CDPADMM(rounds=1, clip=1.0, noise=0.1), [0]).step()
    before = memory()
    rng = np.random.default_rng(0)
    X = np.empty((agents * ROWS, FEATURES))
    for first in range(0, len(X), 1 << 20):  # in parts: a draw of all rows would itself be a peak
        X[first : first + (1 << 20)] = rng.normal(size=X[first : first + (1 << 20)].shape)
    y = X[:, 0].copy()
    data = X.nbytes + y.nbytes
    began = time.perf_counter()
    k = np.arange(agents)
    graph = confide.Graph.from_edges(np.vstack([np.column_stack([k, (k + s) % agents]) for s in (1, 2)]))
    graph_seconds = time.perf_counter() - began
    shards = confide.Shards.from_groups(X, y, np.repeat(k, ROWS))
    problem = confide.Problem(shards, confide.losses.Squared(), confide.penalties.L2(0.1))
    method = confide.algorithms.CDPADMM(rounds=ROUNDS + 1, coupling=0.1, step=1.0, clip=1.0, noise=0.1)
    driver = Driver(problem, graph, method, [0])
    setup = time.perf_counter() - began
    driver.step()  # what is made in the first round, once
    first_round = time.perf_counter() - began - setup
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        driver.step()
        rounds.append(time.perf_counter() - began)
    return {
        "agents": agents, "setup_seconds": setup, "graph_seconds": graph_seconds, "first_round_seconds": first_round,
        "round_seconds": min(rounds), "data_bytes": data, "peak_bytes": memory() - before,
        "memory_ratio": (memory() - before) / data,
    }  # fmt: skip


def memory() -> int:
    """Most that this process has used so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def slope(agents: list[float], cost: list[float]) -> float:
    """Of log cost against log agents."""
    return float(np.polyfit(np.log(agents), np.log(cost), 1)[0]) if len(agents) > 1 else float("nan")


def draw(found: list[dict[str, float]], slopes: dict[str, float], path: Path) -> Path:
    """Seconds of a round and peak of memory against agents, both logarithmic, with the fitted slopes: a PNG."""
    from matplotlib.figure import Figure

    agents = np.array([one["agents"] for one in found])
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    panel(left, agents, [one["round_seconds"] for one in found], slopes["round_seconds"], "seconds of a round")
    panel(right, agents, [one["peak_bytes"] / 1e6 for one in found], slopes["peak_bytes"], "peak of memory, MB")
    right.plot(
        agents, [one["data_bytes"] / 1e6 for one in found], color="#22303c", linestyle=":", label="the rows alone"
    )
    for ax in (left, right):
        ax.legend(frameon=False)
    figure.suptitle(f"{ROWS} rows × {FEATURES} features an agent, {DEGREE} neighbours", fontsize=11)
    figure.savefig(path, dpi=120, format="png")
    return path


def drawn(found: list[dict[str, float]], slopes: dict[str, float], path: Path) -> str:
    """Where the picture is, or why there is none: numbers are worth showing without it."""
    try:
        return str(draw(found, slopes, path))
    except (ImportError, OSError) as error:
        return f"no picture: {error}"


def page(found: list[dict[str, float]], slopes: dict[str, float], picture: str) -> str:
    """What docs/scale.md says of these numbers."""
    last = found[-1]
    what = (
        f"`confide bench --scale --docs` measures it and writes this page: CDP-ADMM, {ROWS} rows × {FEATURES} features "
        f"and {DEGREE} neighbours an agent, all in one process on {os.cpu_count()} cores ({platform.machine()}). A "
        f"round is the fastest of {ROUNDS}. Set-up is the graph, the rows' way into shards and the problem. Memory is "
        "the most that the process took beyond what it took before there were rows, the rows included."
    )
    grows = (
        "Slope of log cost against log agents, by least squares (1 is proportional): "
        f"{slopes['round_seconds']:.2f} for a round, {slopes['peak_bytes']:.2f} for memory. Wanted at {SIZES[-1]:,} "
        f"agents: set-up in at most {SETUP_SECONDS:g} s, and at most {MEMORY_RATIO:g} times the rows' memory; "
        f"{verdict(last)}."
    )
    table = [
        "| agents | set-up | a round | per agent | memory | times the rows |",
        "|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {one['agents']:,} | {one['setup_seconds']:.2f} s | {1e3 * one['round_seconds']:.1f} ms "
            f"| {1e6 * one['round_seconds'] / one['agents']:.2f} µs | {one['peak_bytes'] / 1e6:,.0f} MB "
            f"| {one['memory_ratio']:.2f} |"
            for one in found
        ),
    ]
    title = f"# How it grows: from a thousand agents to {last['agents']:,}"
    drawing = f"![Seconds of a round and peak of memory against agents, with fitted slopes]({picture})"
    parts = [title, fill(what, 120), drawing, "\n".join(table), fill(grows, 120)]
    return "\n\n".join(parts) + "\n"


def verdict(last: dict[str, float]) -> str:
    if last["agents"] < SIZES[-1]:
        return f"this run went to {last['agents']:,} only"
    return "met" if met(last) else "NOT met"


def met(last: dict[str, float]) -> bool:
    return last["setup_seconds"] <= SETUP_SECONDS and last["memory_ratio"] <= MEMORY_RATIO


def panel(ax: Any, agents: Any, cost: list[float], fitted: float, name: str) -> None:
    ax.loglog(agents, cost, color="#0072B2", marker="o", label=f"slope {fitted:.2f}" if len(agents) > 1 else "one size")
    ax.set(xlabel="agents", ylabel=name)
    ax.grid(alpha=0.3)


def main() -> None:
    if "--one" in sys.argv:
        print(json.dumps(measure(int(sys.argv[sys.argv.index("--one") + 1]))))
        return
    most = int(sys.argv[sys.argv.index("--most") + 1]) if "--most" in sys.argv else SIZES[-1]
    found = []
    for agents in (size for size in SIZES if size <= most):
        print(f"{agents:,} agents …", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, __file__, "--one", str(agents)], capture_output=True, text=True)
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
            print(f"{agents:,} agents: not measured: {why}", file=sys.stderr)
            continue
        found.append(json.loads(done.stdout))
    if not found:
        sys.exit("nothing was measured")
    sizes = [one["agents"] for one in found]
    slopes = {name: slope(sizes, [one[name] for one in found]) for name in ("round_seconds", "peak_bytes")}
    usual = DOCS / "pictures" / "scale.png" if "--docs" in sys.argv else Path("scale.png")
    picture = drawn(found, slopes, Path(sys.argv[sys.argv.index("--plot") + 1]) if "--plot" in sys.argv else usual)
    if "--docs" in sys.argv:
        (DOCS / "scale.md").write_text(page(found, slopes, "pictures/scale.png"), encoding="utf-8")
    last = found[-1]
    if "--json" in sys.argv:
        print(json.dumps({"sizes": found, "slopes": slopes, "met": met(last), "picture": picture}, indent=2))
        return
    print(f"{'agents':>10} {'set-up':>9} {'graph':>9} {'round':>11} {'per agent':>10} {'memory':>9} {'of data':>8}")
    for one in found:
        print(f"{one['agents']:>10,} {one['setup_seconds']:>7.2f} s {one['graph_seconds']:>7.2f} s "
              f"{1e3 * one['round_seconds']:>8.1f} ms {1e9 * one['round_seconds'] / one['agents']:>7.0f} ns "
              f"{one['peak_bytes'] / 1e6:>6.0f} MB {one['memory_ratio']:>8.2f}")  # fmt: skip
    print(f"slope of a round {slopes['round_seconds']:.2f}, of memory {slopes['peak_bytes']:.2f} (1: proportional)")
    print(f"wanted at {SIZES[-1]:,}: set-up at most {SETUP_SECONDS:g} s and {MEMORY_RATIO:g} times the data: "
          f"{verdict(last)}")  # fmt: skip
    print(picture)


if __name__ == "__main__":
    main()
