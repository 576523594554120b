"""The graphs that a command, a federation's file or an estimator may ask for by name, each a constructor of Graph."""

from __future__ import annotations

from confide.errors import ConfideError

GRAPHS = ("ring", "path", "star", "complete")


def check_graph(name: object, given: str, instead: str = "") -> None:
    """One line if `name` is none of them: `given` is what was written, `instead` what else is allowed."""
    if name not in GRAPHS:
        raise ConfideError(f"{given}: must be one of {', '.join(GRAPHS)}{instead}")
