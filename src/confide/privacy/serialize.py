"""Events as JSON: what a saved run and the ledger keep. Nothing is ever pickled."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.privacy.events import EVENT_TYPES, Event


def event_to_json(event: Event) -> dict[str, Any]:
    """Type and fields of an event; those that came later are left out where they are 0, as in files from before."""
    told = {f.name: plain(getattr(event, f.name)) for f in fields(event)}
    for later in ("slack", "alone"):
        if not np.any(told.get(later, 1.0)):
            del told[later]
    return {"type": type(event).__name__, **told}


def event_from_json(data: dict[str, Any]) -> Event:
    """The event again; an unknown type is an error."""
    data = dict(data)
    kinds = {kind.__name__: kind for kind in EVENT_TYPES}
    name = data.pop("type")
    if name not in kinds:
        raise ConfideError(f"unknown event {name!r}: known are {', '.join(kinds)}")
    return kinds[name](**data)


def plain(value: Any) -> Any:
    """Arrays and NumPy numbers as JSON holds them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value
