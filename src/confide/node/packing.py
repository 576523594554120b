"""Papers as they travel and lie on disk: JSON, as long as `LONGEST_PAPERS` at most."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.files.keys import strict
from confide.files.values import check_values, shown
from confide.network.identity import SIGNATURE
from confide.node import amendment as amendments
from confide.node.amendment import Amendment

LONGEST_PAPERS = 1 << 22  # bytes of a member's papers
Signatures = dict[str, bytes]  # by the signer's name


def pack(signatures: Signatures, drafts: Iterable[tuple[Amendment, Signatures]]) -> bytes:
    """The same bytes for the same papers."""
    return json.dumps({
        "signatures": _texts(signatures),
        "amendments": [{"text": change.document(), "signatures": _texts(given)} for change, given in drafts],
    }, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()  # fmt: skip


def length(names: Iterable[str], change: Amendment | None) -> int:
    """Bytes that these signatures take in papers, with the amendment that they are under, if it is given."""
    return sum(len(name) + 2 * SIGNATURE + 6 for name in names) + (0 if change is None else len(change.text) + 27)


def _texts(signatures: Signatures) -> dict[str, str]:
    return {name: one.hex() for name, one in signatures.items()}


def parsed(data: bytes) -> tuple[Signatures, list[tuple[Amendment, Signatures]]]:
    if len(data) > LONGEST_PAPERS:
        raise ConfideError(f"papers of {len(data)} bytes: must be at most {LONGEST_PAPERS}")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ConfideError("papers that are not JSON, or damaged") from None
    check_values(found, "papers")
    top = strict(found, "papers", ("signatures", "amendments"))
    if not isinstance(top["amendments"], list):
        raise ConfideError(f"papers.amendments={shown(top['amendments'])}: must be a list")
    entries = [strict(one, "papers.amendments", ("text", "signatures")) for one in top["amendments"]]
    drafts = [(amendments.from_document(one["text"]), _signatures(one["signatures"])) for one in entries]
    if len({change.hash for change, _ in drafts}) < len(drafts):
        raise ConfideError(f"papers.amendments: one of {len(drafts)} is there twice: must be there once")
    return _signatures(top["signatures"]), drafts


def _signatures(table: Any) -> Signatures:
    if not isinstance(table, dict) or not all(isinstance(one, str) for one in table.values()):
        raise ConfideError(f"papers.signatures={shown(table)}: must be texts by name")
    try:
        out = {name: bytes.fromhex(one) for name, one in table.items()}
    except ValueError:
        out = {"": b""}
    if not all(len(one) == SIGNATURE for one in out.values()):
        raise ConfideError(f"papers.signatures={shown(table)}: must be {2 * SIGNATURE} hexadecimal digits each")
    return out


def which_file(file: int | Path) -> tuple[int, int, int]:
    """What tells a file from one that takes its place."""
    found = os.stat(file)
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Against other processes of the same home."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
