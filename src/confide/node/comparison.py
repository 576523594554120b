"""Two journals of one run side by side: messages of one sender and round that differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import ConfideError
from confide.network import wire
from confide.node.agreement import in_force
from confide.node.federation import Federation
from confide.node.journal import Journal
from confide.node.keys import own_frame

FEDERATION = "federation.toml"


@dataclass(frozen=True)
class Comparison:
    """How many messages both hold, and (sender, round) of those that differ: with both signatures valid, or not."""

    both: int
    lies: tuple[tuple[str, int], ...]
    altered: tuple[tuple[str, int], ...]  # a journal was changed by hand: its signature shows it

    def to_json(self) -> dict[str, Any]:
        return {"compared": self.both, **{
            name: [{"sender": sender, "round": t} for sender, t in found]
            for name, found in (("lies", self.lies), ("altered", self.altered))
        }}  # fmt: skip

    def lines(self) -> list[str]:
        out = [f"{self.both} messages are in both journals, {len(self.lies) + len(self.altered)} of them differ"]
        out += [f"{sender} signed two different messages for round {t}" for sender, t in self.lies]
        return out + [f"{sender}'s message of round {t} differs, and one is not signed by it: a journal was altered"
                      for sender, t in self.altered]  # fmt: skip


def compared(first: Path, second: Path) -> Comparison:
    """Of the runs in two folders: of a node's home, the one run that both have, if they have one in common."""
    one, other = _same_run(first, second)
    held = [in_force(folder.parent.parent, folder / FEDERATION) for folder in (one, other)]
    if held[0].digest != held[1].digest:
        raise ConfideError(f"{first} and {second}: runs of different federations")
    federation = max(held, key=lambda now: len(now.history))
    names = {card.digest: name for name, card in federation.founding.cards.items()}
    both = 0
    lies: list[tuple[str, int]] = []
    altered: list[tuple[str, int]] = []
    with (Journal(one, federation.digest, write=False, aliases=federation.aliases) as mine,
          Journal(other, federation.digest, write=False, aliases=federation.aliases) as theirs):  # fmt: skip
        for sender, t, frame in mine.frames():
            found = theirs.get(sender, t)
            if found is None:
                continue
            both += 1
            if wire.seal(found) != wire.seal(frame):  # one may be shortened, or both
                sound = all(_signed(federation, names.get(sender, ""), which) for which in (frame, found))
                (lies if sound else altered).append((names.get(sender, sender.hex()[:16]), wire.place(frame)[0]))
    return Comparison(both, tuple(lies), tuple(altered))


def _signed(federation: Federation, name: str, frame: bytes) -> bool:
    if name not in federation.founding.cards:
        return False
    if wire.version_of(frame) == 1:
        return wire.signed_of_old(frame, federation.founding.cards[name])
    try:
        own_frame(federation, name, frame)
    except ConfideError:
        return False
    return True


def _same_run(first: Path, second: Path) -> tuple[Path, Path]:
    """The folders of one run in both."""
    runs = [{path.name: path for path in _runs(folder)} for folder in (first, second)]
    common = sorted(runs[0].keys() & runs[1].keys())
    if not common:
        raise ConfideError(f"{first} and {second}: no run in common")
    if len(common) > 1:
        raise ConfideError(f"{first} and {second}: runs {', '.join(common)} in common: give the folder of one, runs/…")
    return runs[0][common[0]], runs[1][common[0]]


def _runs(folder: Path) -> list[Path]:
    if (folder / "journal").exists():
        return [folder.resolve()]
    return [path.parent for path in folder.glob("runs/*/journal")]
