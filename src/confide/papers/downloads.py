"""Where a data set comes from: a folder given, CONFIDE_DATA, what was downloaded before, or its public home."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from confide.errors import ConfideError
from confide.files import write_whole

LARGEST = 100_000_000  # bytes; none of the sets is a third of it


def cache() -> Path:
    """Where downloads are kept: XDG_CACHE_HOME/confide, by default ~/.cache/confide."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "confide"


def held(folder: str, names: Sequence[str], data: str | Path | None) -> Path | None:
    """The first of `names` in `data`, or without it in CONFIDE_DATA, directly or in `folder`; None if there is none.

    A folder that is given by hand must hold it; CONFIDE_DATA may hold other sets only.
    """
    given = data if data is not None else os.environ.get("CONFIDE_DATA")
    if given is None:
        return None
    found = _first(Path(given), folder, names)
    if found is None and data is not None:
        raise FileNotFoundError(f"{given}: holds neither {' nor '.join(names)}")
    return found


def cached(folder: str, names: Sequence[str]) -> Path | None:
    """The first of `names` among earlier downloads."""
    return _first(cache(), folder, names)


def _first(root: Path, folder: str, names: Sequence[str]) -> Path | None:
    return next((place for place in _places(root, folder, names) if place.is_file()), None)


def _places(root: Path, folder: str, names: Sequence[str]) -> Iterator[Path]:
    for sub in (".", folder):
        for name in names:
            yield root / sub / name


def download(address: str, what: str) -> bytes:
    """What is at `address`, unchecked."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content: bytes = answer.read(LARGEST + 1)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        raise ConnectionError(
            f"{what} could not be downloaded from {address} ({reason}); "
            "set CONFIDE_DATA to a folder that holds it, or give data="
        ) from None
    if len(content) > LARGEST:
        raise ConfideError(f"{address}: larger than {LARGEST} bytes, so it is not {what}")
    return content


def keep(folder: str, name: str, content: bytes) -> Path:
    """Put a checked download into the cache, whole or not at all."""
    place = cache() / folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(place, content)
