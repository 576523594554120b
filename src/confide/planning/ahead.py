"""What the first fit or plan on a machine would compile, compiled ahead of time.

Parts are compiled in processes side by side, and kept as `confide.compiled` keeps everything. A part is a small piece
of real work. Those of one stage do not call each other; what calls them comes in the next, and finds them there.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

DONE = "done-"  # what the name of a file begins with that says a part is there


# --- parts of the work ------------------------------------------------------------------------------------------------


def sample(clip: bool = True) -> Any:
    """Two parties' rows, as every command has them: dense and checked; bounded, where that is compiled already."""
    import numpy as np

    from confide.problem.losses import Logistic
    from confide.problem.penalties import L2
    from confide.problem.problem import Problem
    from confide.problem.shards import Shards

    X, y = np.linspace(-1, 1, 48).reshape(24, 2), np.where(np.arange(24) % 3 > 0, 1.0, -1.0)
    shards = Shards.from_groups(X, y, np.arange(24) % 2)
    return Problem(shards.clip_rows(1.0) if clip else shards, Logistic(), L2(0.1), "rows", intercept=True)


def bounded_rows() -> None:
    sample()


def one_seed() -> None:
    import numpy as np

    from confide.problem import kernels

    b = sample(clip=False).block
    kernels.add_gradients(b.shards.rows, b.shards.y, b._w, b._q, np.ones(24), 0, 24, np.zeros((1, 3)), 0, 0.0, 1.0,
                          np.zeros((1, 3)))  # fmt: skip


def seeds_together() -> None:
    import numpy as np

    from confide.problem import kernels

    b = sample(clip=False).block
    beta, part = np.zeros((8, 2, 1, 3)), np.zeros((2, 8, 1, 3))
    kernels._add_gradients_together(b.shards.rows, b.shards.y, b._w, b._q, np.ones(24), 0, 24, beta[0:8, 0], 0, 0.0,
                                    1.0, part[0, 0:8])  # fmt: skip


def gradients() -> None:
    import numpy as np

    sample().block.gradient(np.zeros((1, 2, 3)), 1.0)


def values() -> None:
    import numpy as np

    sample().block.value(np.zeros((1, 2, 3)))


def secure_noise() -> None:
    import numpy as np

    from confide.privacy.secure import SecureNoise

    SecureNoise().at(1).gaussian("answer", np.zeros((1, 1, 3)), np.array([[0.1]]))


def seeded_noise() -> None:
    import numpy as np

    from confide.privacy.noise import SimulatedNoise

    noise = SimulatedNoise(np.arange(2), np.arange(2)).at(1)
    noise.gaussian("answer", np.zeros((2, 2, 3)), np.ones((2, 1)))


def sums() -> None:
    import numpy as np

    from confide.network.exchange import all_sum, neighbour_sum
    from confide.network.graph import Graph

    all_sum(np.zeros((1, 2, 3)))
    neighbour_sum(Graph.path(2).adjacency, np.zeros((1, 2, 3)), None)


def solver() -> None:
    sample().solve()


def whole_fit() -> None:
    """What is left, if anything: a fit from the first to the last line, seeded and secure."""
    import numpy as np

    from confide.estimators import PrivateLogisticRegression

    X, y = np.linspace(-1, 1, 48).reshape(24, 2), np.where(np.arange(24) % 3 > 0, 1.0, -1.0)
    for seed in (0, None):
        model = PrivateLogisticRegression(epsilon=5.0, classes=[-1.0, 1.0], random_state=seed, rounds=3)
        model.fit(X, y, groups=np.arange(24) % 2)


def peer_method() -> None:
    from confide.algorithms import CDPADMM
    from confide.network.graph import Graph
    from confide.runs.driver import simulate

    simulate(sample(), Graph.path(2), CDPADMM(rounds=2, clip=1.0, noise=0.1), range(2))


def exact_method() -> None:
    """A method whose local step is an argmin."""
    from confide.algorithms import PVP
    from confide.network.graph import Graph
    from confide.runs.driver import simulate

    simulate(sample(), Graph.path(2), PVP(rounds=1, noise=0.1))


def values_only() -> None:
    """A method that knows losses by their values alone."""
    from confide.algorithms import DZOA
    from confide.network.graph import Graph
    from confide.runs.driver import simulate

    simulate(sample(), Graph.path(2), DZOA(rounds=1, inner_steps=2, directions=1))


def sparse_rows() -> None:
    import numpy as np
    import scipy.sparse as sp

    from confide.problem.losses import Logistic
    from confide.problem.problem import Problem
    from confide.problem.shards import Shards

    shards = Shards.from_groups(sp.csr_array(np.eye(4)), np.ones(4), np.arange(4) % 2)
    Problem(shards.clip_rows(1.0), Logistic()).block.gradient(np.zeros((1, 2, 4)), 1.0)


Part = Callable[[], None]
# Longest first: a stage ends when its last part does. The next stage calls what this one compiles.
FIT: tuple[tuple[Part, ...], ...] = ((seeds_together, one_seed, secure_noise, bounded_rows, sums), (gradients,))
PLAN = (FIT[0], (solver, gradients, seeded_noise))
REHEARSAL = (FIT[0], (solver, gradients, seeded_noise, values))
ALL = (FIT[0], (solver, gradients, seeded_noise, values),
       (values_only, exact_method, sparse_rows, whole_fit, peer_method))  # fmt: skip


# --- side by side -----------------------------------------------------------------------------------------------------


def missing(stages: Iterable[Iterable[Part]]) -> list[list[str]]:
    """By stage, the names of parts that are not there yet; nothing where nothing can be kept."""
    import numba

    import confide.compiled as kernels

    place = kernels.folder()
    if place is None or numba.config.DISABLE_JIT:
        return []
    return [[part.__name__ for part in stage if not _mark(place, part.__name__).is_file()] for stage in stages]


def compiled(stages: Sequence[Sequence[str]], jobs: int | None, watch: Callable[[int, int], None]) -> list[str]:
    """Compile parts by their names, `jobs` processes (None: cores) side by side; the names of those that it could."""
    import confide.compiled as kernels

    place = kernels.folder()
    if place is None or not any(stages):
        return []
    cores = len(os.sched_getaffinity(0)) if jobs is None else jobs
    done, total = 0, sum(map(len, stages))
    made: list[str] = []
    with Workers(min(cores, max(map(len, stages)))) as workers:
        watch(0, total)
        for stage in stages:
            for name, well in workers.work(stage):
                if well:  # else whoever needs it compiles it, or says what is wrong
                    _mark(place, name).touch()
                    made.append(name)
                done += 1
                watch(done, total)
    return made


def _mark(place: Path, name: str) -> Path:
    """The file that says that a part is there, for this processor."""
    return place / f"{DONE}{name}-{_processor()}"


@cache
def _processor() -> str:
    """What Numba finds kept code by, besides its source."""
    from llvmlite import binding

    found = [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


class Workers:
    """Processes that each read the name of a part, do it, and answer; plain ones: they import nobody's script again."""

    def __init__(self, count: int) -> None:
        program = [sys.executable, "-P", "-c", "from confide.planning.ahead import serve; serve()"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.processes = [subprocess.Popen(program, text=True, start_new_session=True, **pipes) for _ in range(count)]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: Any) -> None:
        for one in self.processes:
            one.kill()
        for one in self.processes:
            one.communicate()

    def work(self, names: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Every name with whether it went well, as they are done."""
        waiting, busy = list(names), dict[Any, tuple[Any, str]]()
        idle: list[Any] = list(self.processes)
        with selectors.DefaultSelector() as heard:
            while waiting or busy:
                while waiting and idle:
                    one, name = idle.pop(), waiting.pop(0)
                    try:
                        one.stdin.write(f"{name}\n")
                        one.stdin.flush()
                    except OSError:  # it is gone
                        yield name, False
                        continue
                    busy[one.stdout] = (one, name)
                    heard.register(one.stdout, selectors.EVENT_READ)
                if not idle and not busy:
                    yield from ((name, False) for name in waiting)
                    return
                for key, _ in heard.select() if busy else ():
                    one, name = busy.pop(key.fileobj)
                    heard.unregister(key.fileobj)
                    answer = one.stdout.readline()
                    if answer:
                        idle.append(one)
                    yield name, answer == "done\n"


def serve() -> None:
    """In a process of its own: parts by their names, until there are no more."""
    parts = {part.__name__: part for stage in ALL for part in stage}
    for line in sys.stdin:
        try:
            parts[line.strip()]()
        except Exception:  # an extra that is not installed; whoever needs the part says so
            print("failed", flush=True)
        else:
            print("done", flush=True)
