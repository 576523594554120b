"""Hints: each is said once per process. They follow from parameters alone, never from rows."""

from __future__ import annotations

import sys
import warnings
from functools import cache


class Hint(UserWarning):
    """Something that would make a fit better, or that it does for want of a public value."""


@cache
def hint(text: str) -> None:
    """Say it, unless it was said before, at the caller's own line."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("confide."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, Hint, stacklevel=level)  # Python writes the category before it
