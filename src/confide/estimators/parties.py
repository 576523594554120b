"""Whose a row is: one name for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from confide.errors import ConfideError


def party_names(groups: Any, y: Any) -> Any:
    """`groups` as a vector beside y; one line for a row without a party, which would be of one that is not there."""
    groups = column_or_1d(groups)
    check_consistent_length(y, groups)
    if groups.dtype.kind not in "Of":
        return groups
    absent = np.flatnonzero(np.isnan(groups) if groups.dtype.kind == "f" else [_absent(name) for name in groups])
    if len(absent):
        raise ConfideError(f"groups[{absent[0]}] is missing: name the party of every row")
    kinds = sorted({type(name).__name__ for name in groups})
    if len(kinds) > 1:
        raise ConfideError(f"groups: names are of types {', '.join(kinds)}: give one, such as str")
    return groups


def _absent(name: Any) -> bool:
    """None, or what is not even equal to itself: NaN; and pandas' own mark, which is neither equal nor unequal."""
    try:
        return name is None or bool(name != name)
    except TypeError:
        return True
