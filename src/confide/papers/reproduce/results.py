"""`Results`: what the tasks of an experiment gave, and how one is kept on disk. Nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, WrongType
from confide.runs.run import read_arrays, write_arrays

Task = dict[str, Any]
Value = dict[str, Any]
MARK = "array:"  # in the header, in place of an array


class Results(Sequence[tuple[Task, Value]]):
    """(task, value) pairs in the order of `tasks`; `trials` is how many were asked for."""

    def __init__(self, pairs: Sequence[tuple[Task, Value]], trials: int) -> None:
        self._pairs = list(pairs)
        self.trials = trials

    @overload
    def __getitem__(self, index: int) -> tuple[Task, Value]: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: int | slice) -> tuple[Task, Value] | Results:
        return Results(self._pairs[index], self.trials) if isinstance(index, slice) else self._pairs[index]

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[Task, Value]]:
        return iter(self._pairs)

    def where(self, **wanted: Any) -> Results:
        """The pairs whose task has these values; at least one."""
        want = canonical(wanted)
        found = [pair for pair in self._pairs if all(k in pair[0] and pair[0][k] == v for k, v in want.items())]
        if not found:
            asked = ", ".join(f"{k}={v!r}" for k, v in want.items())
            raise ConfideError(f"no task with {asked}; there are {self._choices(want)}")
        return Results(found, self.trials)

    def one(self, **wanted: Any) -> Value:
        """The value of the only task that has these values."""
        found = self.where(**wanted)
        if len(found) != 1:
            raise ConfideError(f"{len(found)} tasks have {wanted!r}: name more, or use `stack`")
        return found[0][1]

    def stack(self, name: str, /, **wanted: Any) -> NDArray[Any]:
        """The value `name` over the selected tasks, concatenated along its first axis; a number is one entry."""
        return np.concatenate([np.atleast_1d(np.asarray(value[name])) for _, value in self.where(**wanted)])

    def _choices(self, wanted: Task) -> str:
        names = {name: list(dict.fromkeys(json.dumps(task.get(name)) for task, _ in self._pairs)) for name in wanted}
        return "; ".join(f"{name} in {', '.join(values[:8])}" for name, values in names.items())


def canonical(task: Any) -> Any:
    """A task as JSON gives it back: tuples are lists, NumPy's numbers are plain."""
    try:
        return json.loads(json.dumps(task, default=_plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfideError(f"task {task!r}: must be JSON-able keyword arguments: {error}") from None


def save(path: Path, value: Value, seconds: float) -> None:
    """Keep one task's value, written whole or not at all."""
    arrays: dict[str, Any] = {}
    header = {"value": _take_out(value, arrays), "seconds": seconds}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, header, arrays)


def load(path: Path) -> tuple[Value, float]:
    """A kept value and the seconds it took."""
    header, arrays = read_arrays(path)
    try:
        return _put_back(header["value"], arrays), float(header["seconds"])
    except (KeyError, TypeError):
        raise ConfideError(f"{path}: not the result of a task") from None


def _take_out(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ConfideError(f"measure returned an array of {value.dtype}: numbers or strings only")
        name = f"a{len(arrays)}"
        arrays[name] = value
        return MARK + name
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            raise ConfideError(f"measure returned a dict with keys {list(value)!r}: strings only")
        return {k: _take_out(v, arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_take_out(v, arrays) for v in value]
    if isinstance(value, str):
        return "text:" + value
    value = _plain(value) if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ConfideError(f"measure returned a {type(value).__name__}: numbers, strings, lists, dicts and arrays only")


def _put_back(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, str):
        return arrays[value.removeprefix(MARK)] if value.startswith(MARK) else value.removeprefix("text:")
    if isinstance(value, dict):
        return {k: _put_back(v, arrays) for k, v in value.items()}
    return [_put_back(v, arrays) for v in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise WrongType(f"a {type(value).__name__}")
