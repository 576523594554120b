"""What a node shows of itself in its run's folder, and whether it is at work there."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.files import write_whole

if TYPE_CHECKING:
    from confide.network.link import Link
    from confide.node.federation import Federation

STATUS, FEDERATION = "status.json", "federation.toml"
OLDEST = 2.0  # seconds after which a status that did not change is written again: it says that the node lives
LOG = logging.getLogger("confide.node")


@dataclass
class Status:
    """What a node shows of itself: public values, and its own spend."""

    node: str
    federation: str
    run: str
    method: str
    guarantee: str
    rounds: int
    state: str = "starting"  # then greeting, agreeing, training, serving; at last finished, stopped or failed
    round: int = 0
    reason: str = ""
    notice: str = ""  # what the ledger and the journal disagreed about, and what was done
    promise: str = ""  # whom the parties trust, where they share their noise, and what for
    neighbours: dict[str, dict[str, Any]] = field(default_factory=dict)
    spent_epsilon: float | None = None  # against everyone
    spent_few: float | None = None  # against those of the promise, where there is one
    left_epsilon: float | None = None  # of the owner's budget, beside what this run holds
    consensus_distance: float | None = None
    unsigned: list[str] = field(default_factory=list)  # members whose signature is missing
    papers: dict[str, str] = field(default_factory=dict)  # whose papers are not taken, and why
    left: list[str] = field(default_factory=list)  # members that an amendment left out
    refused: int = 0  # connections and questions turned away
    journal_bytes: int = 0
    relay: str = ""  # "up", or why nobody can call through the federation's relay; "" without one
    code: int = 0  # what the program exits with
    pid: int = field(default_factory=os.getpid)
    updated: float = 0.0


def seen(link: Link, finished: bool, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a status says of a neighbour. Who has `finished` has said so: it may leave, and is not missed.

    `since` is when it came or went, or when this node began to look; `before` is what was said of it last.
    """
    since = before["since"] if before is not None and before["up"] == link.up else time.time()
    return {"up": link.up, "since": since, "finished": finished, "trouble": link.trouble,
            "misbehaved": link.misbehaved, "way": link.way}  # fmt: skip


def standing(one: Mapping[str, Any]) -> str:
    """One of "up", "down" and "finished", which older statuses did not know."""
    return "finished" if one.get("finished") else "up" if one["up"] else "down"


def standing_and_way(one: Mapping[str, Any]) -> str:
    """The same, with the way that was taken, if it was not straight."""
    if one.get("way") != "relay" or (how := standing(one)) == "down":
        return standing(one)
    return "up through the relay" if how == "up" else "finished, was reached through the relay"


def run_folder(home: Path, federation: Federation) -> Path:
    return home / "runs" / federation.digest.hex()[:16]


def runs(home: Path) -> list[Path]:
    """Folders of the node's runs, the latest first."""
    journals = sorted(home.glob("runs/*/journal"), key=lambda file: file.stat().st_mtime, reverse=True)
    return [journal.parent for journal in journals]


def running(folder: Path) -> bool:
    """Whether a node is at work in this run's folder: it holds the lock."""
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def read_status(folder: Path) -> dict[str, Any] | None:
    """What the node in this folder said last, or None, also where the file is damaged."""
    try:
        return asdict(Status(**json.loads((folder / STATUS).read_text(encoding="utf-8"))))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def replace_file(path: Path, text: str) -> None:
    """Whole or not at all; not worth waiting for the disk, every round."""
    write_whole(path, text.encode(), durable=False)


class StatusFile:
    """Where a node writes how things are, when they change and now and then.

    A disk that is full is tried again each time: what is known is never lost by it.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._failed = path, False
        self._last: dict[str, Any] = {}

    def write(self, status: Status) -> None:
        now = asdict(status)
        same = {**now, "updated": self._last.get("updated")} == self._last
        if same and 0 <= now["updated"] - self._last["updated"] < OLDEST:
            return
        try:
            replace_file(self.path, json.dumps(now, ensure_ascii=False, indent=2))
        except OSError as error:
            if not self._failed:
                LOG.warning("%s: %s: its status is as old as that until it can be written again", self.path,
                            error.strerror)  # fmt: skip
            self._failed, self._last = True, {}
        else:
            self._failed, self._last = False, now
