"""Values as JSON can say them."""

from __future__ import annotations

import math
from typing import Any


def without_infinity(value: Any) -> Any:
    """The same tables and lists; JSON has no infinity and no NaN: null in their place."""
    if isinstance(value, dict):
        return {name: without_infinity(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinity(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
