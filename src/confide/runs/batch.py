"""Independent jobs through joblib, one core each: what `confide.sweep` and `confide reproduce` run on.

Which machine a job runs on is joblib's affair: inside `joblib.parallel_config(backend="dask")` (or "ray", "spark") a
cluster takes them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confide.errors import ConfideError, MissingExtra

Call = tuple[Callable[..., Any], Mapping[str, Any]]  # a function that workers can import, and its keyword arguments


def through_joblib(calls: Iterable[Call], jobs: int | None = None) -> Iterator[Any]:
    """What the calls return, as they come in, in any order. `jobs=None` leaves the number of processes to joblib."""
    try:
        from joblib import Parallel, delayed  # type: ignore[import-untyped]
        from joblib.parallel import get_active_backend  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("running many jobs needs joblib: pip install 'confide[reproduce]'") from None
    backend, _ = get_active_backend()
    stream = "generator_unordered" if backend.supports_return_generator else "list"
    with _without_interrupts():
        done: Iterable[Any] = Parallel(n_jobs=jobs, return_as=stream, batch_size=1)(
            delayed(function)(**given) for function, given in calls
        )
    yield from done


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes started here never hear of Ctrl-C, which a terminal sends to all: this one alone ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Jobs go to the workers of the Dask cluster at `address`; each must have confide, and a checkout to reproduce."""
    try:
        from distributed import Client  # type: ignore[import-untyped]
        from joblib import parallel_config
    except ImportError:
        raise MissingExtra("--dask needs Dask: pip install distributed") from None
    client: Any = Client
    with client(address, timeout=20), parallel_config(backend="dask"):
        yield


@contextmanager
def on_one_core(environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """One thread for confide and for BLAS, as every core has a job of its own, and variables of the environment."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from confide.threads import threads

    wanted = {**(environment or {}), "CONFIDE_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    threads.cache_clear()
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        threads.cache_clear()


def shard(text: str) -> tuple[int, int]:
    """`i/n` as (i, n): the i-th of n parts of the work, as a batch system hands them out."""
    i, slash, n = text.partition("/")
    if not (slash and i.isdecimal() and n.isdecimal() and 1 <= int(i) <= int(n)):
        raise ConfideError(f"shard {text!r}: must be i/n, such as 2/10, with i from 1 to n")
    return int(i), int(n)
