"""A library that is loaded when it is first used: SciPy's parts take longer to load than most commands take to run."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Library:
    """A module by its name; what is asked of it first loads it."""

    def __init__(self, name: str) -> None:
        self._library = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and inspection ask every object for
            raise AttributeError(name)
        value = getattr(import_module(self._library), name)
        setattr(self, name, value)  # found here from now on
        return value


special = Library("scipy.special")
sparse = Library("scipy.sparse")
