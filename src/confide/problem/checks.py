"""What counts as a number where a user may hand over anything."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any


def finite(x: Any) -> bool:
    """A real number, not a flag, neither NaN nor infinite."""
    return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)


def whole(x: Any) -> bool:
    """A whole number, whatever its type."""
    return finite(x) and int(x) == x
