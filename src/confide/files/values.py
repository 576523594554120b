"""Values that a file or a neighbour may say and nothing here could hold: found before anyone reads a field."""

from __future__ import annotations

import reprlib
import sys
from typing import Any

from confide.errors import ConfideError

LARGEST = sys.float_info.max

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def shown(value: Any) -> str:
    """What a file says, as an error repeats it: on one line, long texts and lists without their middle or end."""
    return _short.repr(value)


def check_values(document: Any, where: str = "") -> None:
    """One line for a whole number beyond every float, or a text that is not Unicode; `where` names the document."""
    left = [(where, document)]
    while left:
        place, value = left.pop()
        if isinstance(value, dict):
            for name, one in value.items():
                _check_text(place, name)
                left.append((f"{place}.{name}" if place else name, one))
        elif isinstance(value, list):
            left += [(place, one) for one in value]
        elif isinstance(value, str):
            _check_text(place, value)
        elif isinstance(value, int) and abs(value) > LARGEST:  # its digits may be too many to be shown
            raise ConfideError(f"{place}: a whole number beyond {LARGEST:.1e}: must be smaller")


def _check_text(place: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfideError(f"{place or 'a name'}: {text[:50]!r}: must be a text in Unicode") from None
