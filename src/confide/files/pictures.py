"""Pictures by matplotlib's object interface, which is installed on demand: no pyplot, no global state, no display."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from confide.errors import MissingExtra
from confide.files.whole import write_whole


def check_drawing() -> None:
    """One line where there will be no picture: before the work, not after it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtra("a picture needs matplotlib: pip install 'confide[plot]'") from None


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    check_drawing()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def write_picture(path: str | Path, figure: Any, mode: int = 0o666, form: str = "png") -> Path:
    """The figure in a file, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=160, format=form)
    return write_whole(path, buffer.getvalue(), mode)
