"""Compiled functions, kept on disk under a hash of everything that they are made of.

Numba keeps what it compiles beside each file and looks at that file alone: after an edit to a function that another
file inlines it would go on with the old code. Here the kept code is in a folder named by a hash of all files that make
compiled functions, of what those import, and of the compilers' versions, so old code is never found again.

The folder is CONFIDE_CACHE/kernels-<hash>, else in the user's cache (XDG_CACHE_HOME, ~/.cache), else beside the
package; where none can be written functions are compiled anew in every process. When a folder is made, all others but
the two used last go.

A function is handed to Numba when it is first used, not when its file is imported: the compiler takes longer to load
than most commands take to run, and few of them run a kernel.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from confide.files.sources import HERE, parsed, sources

OF = "of-"  # what the name of a file begins with that says: all sources of this hash make the kernels of its folder
KEPT = 2  # older folders: going back and forth between two versions compiles nothing
_ONE = threading.RLock()
_OVERLOADS: list[tuple[Callable[..., Any], Any]] = []  # not yet handed to Numba


def njit(*signature: Any, **options: Any) -> Any:
    """`numba.njit`, its results kept in `folder()`; with or without options, as there. A signature is a text."""
    if signature and inspect.isfunction(signature[0]):
        return njit(**options)(signature[0])

    def make(function: Callable[..., Any]) -> Any:
        import numba

        place = folder()
        if place is None:
            return numba.njit(*signature, **options)(function)
        with _numba_keeps_in(place):
            made = numba.njit(*signature, **options, cache=True)(function)
        if kept := getattr(made, "_cache", None):  # not there with NUMBA_DISABLE_JIT
            _wherever_the_package_is(kept, place, function)
            kept.save_overload = _one_at_a_time(kept.save_overload, place)
            made.compile = _uninterrupted(made.compile)
        return made

    return lambda function: Later(function, make)


def intrinsic(function: Callable[..., Any]) -> Any:
    """`numba.extending.intrinsic`."""

    def make(ready: Callable[..., Any]) -> Any:
        from numba.extending import intrinsic

        return intrinsic(ready)

    return Later(function, make)


def overload(stub: Callable[..., Any]) -> Callable[[Any], Any]:
    """`numba.extending.overload`: what kernels call for `stub`."""

    def decorate(function: Any) -> Any:
        _OVERLOADS.append((stub, function))
        return function

    return decorate


class Later:
    """A function that is handed to Numba when it is first used, by a call or by another kernel."""

    def __init__(self, function: Callable[..., Any], make: Callable[[Callable[..., Any]], Any]) -> None:
        update_wrapper(self, function)
        self._function, self._make, self._made = function, make, None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return (self._made or self.made())(*args, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask every object for
            raise AttributeError(name)
        return getattr(self.made(), name)

    def __reduce__(self) -> str:
        return str(self.__dict__["__qualname__"])  # by name, as functions are

    def made(self) -> Any:
        """What Numba makes of it."""
        with _ONE:
            if self._made is None:
                while _OVERLOADS:
                    stub, function = _OVERLOADS.pop()
                    _overload(stub, _ready(function))
                self._made = self._make(_ready(self._function))
        return self._made


def _overload(stub: Callable[..., Any], function: Callable[..., Any]) -> None:
    from numba.extending import overload

    overload(stub)(function)


def _ready(function: Any) -> Any:
    """The function with what Numba made of the kernels that it names."""
    names = set(_names(function.__code__))
    known = function.__globals__
    made = {name: known[name].made() for name in sorted(names & known.keys()) if isinstance(known[name], Later)}
    if not made:
        return function
    copy = FunctionType(
        function.__code__, {**known, **made}, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(copy, function)


def _names(code: CodeType) -> Iterator[str]:
    """Every global name that the code, or code within it, may read."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def makers() -> list[Path]:
    """The files that make compiled functions."""
    taken = re.compile(rb"^from confide\.compiled import", re.MULTILINE)
    return [file for file in sorted(HERE["confide"].rglob("*.py")) if taken.search(file.read_bytes())]


def kernel_files() -> list[Path]:
    """The files that make compiled functions, and those that these import."""
    package = HERE["confide"]
    found = {*makers(), Path(__file__).resolve()}
    for file in makers():
        found.update(sources(parsed(file), ".".join(file.relative_to(package.parent).with_suffix("").parts)))
    return sorted(found)


@cache
def folder() -> Path | None:
    """Where compiled functions are kept; None if nothing can be written."""
    package = HERE["confide"]
    every = _hash(sorted(package.rglob("*.py")))
    given = os.environ.get("CONFIDE_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "confide"
    homes = (Path(given).absolute() if given else user, package / "__pycache__")
    for home in (home for home in homes if home.is_absolute()):  # "~" stays where a user has no home
        try:
            known = next(home.glob(f"kernels-*/{OF}{every}"), None)  # which files count is found by parsing them: once
            place = home / f"kernels-{_hash(kernel_files())}" if known is None else known.parent
            new = not place.is_dir()
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.utime(place)  # used last
            tempfile.TemporaryFile(dir=place).close()
            (place / f"{OF}{every}").touch()
        except OSError:
            continue
        if new:
            _remove_old(home, place)
        return place
    return None


def _hash(files: Iterable[Path]) -> str:
    """Of the files' names and bytes and the compilers' versions: a time of change may lie, so every byte is read."""
    import llvmlite
    import numba

    package = HERE["confide"]
    code = hashlib.sha256(repr((sys.version, numba.__version__, llvmlite.__version__)).encode())
    for file in files:
        code.update(b"\0%s\0" % str(file.relative_to(package)).encode() + file.read_bytes())
    return code.hexdigest()[:16]


def _remove_old(home: Path, place: Path) -> None:
    """All but `place` and the two used last. Numba makes a folder again that a running process still writes to."""
    others = [(other.stat().st_mtime, other) for other in home.glob("kernels-*") if other != place]
    for _, other in sorted(others, reverse=True)[KEPT:]:
        shutil.rmtree(other, ignore_errors=True)


@contextmanager
def _numba_keeps_in(place: Path) -> Iterator[None]:
    """Numba looks up where to keep a function when it is decorated."""
    import numba

    with _ONE:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(place)
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before


def _wherever_the_package_is(kept: Any, place: Path, function: Callable[..., Any]) -> None:
    """Numba knows a function by where its file is. The name of `place` says all: one for every copy of a version."""
    home = str(place / function.__module__.rpartition(".")[0])
    kept._cache_path = kept._impl.locator._cache_path = home
    kept._cache_file = type(kept._cache_file)(home, kept._impl.filename_base, place.name)


def _one_at_a_time(save: Callable[..., None], place: Path) -> Callable[..., None]:
    """Two processes that save at once would each number their file from an index that lacks the other's."""

    def locked(*args: Any) -> None:
        with suppress(OSError):  # a full disk: what is not kept is compiled again
            place.mkdir(mode=0o700, exist_ok=True)
            with open(place / "lock", "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                save(*args)

    return locked


def _uninterrupted(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Ctrl-C waits until a function is compiled: an exception within LLVM's calls back to Python would be lost."""

    def whole(*args: Any) -> Any:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
            return compile(*args)
        asked = False

        def later(*_: Any) -> None:
            nonlocal asked
            asked = True

        signal.signal(signal.SIGINT, later)
        try:
            return compile(*args)
        finally:
            signal.signal(signal.SIGINT, before)
            if asked:
                raise KeyboardInterrupt

    return whole
