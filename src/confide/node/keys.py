"""A node's keys: the one it began with, and those that took its place (`confide node rekey`), each in its own folder.

A run uses the key that its federation, as amended, names; so an amendment that replaces a key needs no file to be
moved, and other runs of the same home go on with the old one. Keys may be encrypted at rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from getpass import getpass
from pathlib import Path

from confide.errors import ConfideError
from confide.network import wire
from confide.network.identity import CARD, Card, Identity, load_card
from confide.node.federation import Federation

FOLDER = "keys"
VARIABLE, FILE_VARIABLE = "CONFIDE_PASSPHRASE", "CONFIDE_PASSPHRASE_FILE"
Passphrase = Callable[[Path], bytes]  # of the key in this file


def ask(path: Path) -> bytes:
    """The passphrase of a key: from the environment, a file that it names, or the person at the terminal."""
    if (given := os.environ.get(VARIABLE)) is not None:
        return given.encode()
    if (file := os.environ.get(FILE_VARIABLE)) is not None:
        return from_file(Path(file))
    if not sys.stdin.isatty():
        raise ConfideError(f"{path}: encrypted: give its passphrase at a terminal, in {VARIABLE}, or in a file by "
                           f"{FILE_VARIABLE}")  # fmt: skip
    return getpass(f"Passphrase of {path}: ").encode()


def chosen() -> bytes:
    """The passphrase of a new key: found as `ask` does, or typed twice."""
    if VARIABLE in os.environ or FILE_VARIABLE in os.environ or not sys.stdin.isatty():
        return ask(Path("a new key"))
    first = getpass("Passphrase of the new key: ")
    if getpass("Once more: ") != first:
        raise ConfideError("two different passphrases: nothing was made")
    return first.encode()


def from_file(path: Path) -> bytes:
    """The first line; the file must be for its owner's eyes."""
    if path.stat().st_mode & 0o077:
        raise ConfideError(f"{path}: others can read the passphrase; chmod 600 it")
    return (path.read_bytes().splitlines() or [b""])[0]


class Keys(Mapping[bytes, Identity]):
    """By the SHA-256 of their certificates; a key is read, and its passphrase asked for, when it is needed first."""

    def __init__(self, home: Path, passphrase: Passphrase = ask) -> None:
        if not (home / CARD).exists():
            raise ConfideError(f"{home} holds no node: `confide node init` makes one")
        self.home, self.name, self._passphrase = home, load_card(home / CARD).name, passphrase
        self._folders = {card.digest: folder for folder, card in _cards(home)}
        self._read: dict[bytes, Identity] = {}

    def __getitem__(self, digest: bytes) -> Identity:
        if digest not in self._read:
            self._read[digest] = Identity.load(self._folders[digest], self._passphrase)
        return self._read[digest]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)

    def __contains__(self, digest: object) -> bool:
        if digest not in self._folders:  # made since
            self._folders = {card.digest: folder for folder, card in _cards(self.home)}
        return digest in self._folders

    def of(self, federation: Federation, source: Path) -> Identity:
        """Who this node is in a federation, by the key that it names; one line if it is no member."""
        card = own_card(self.home, federation, source)
        if card.digest not in self or (
            federation.before is None and load_card(self._folders[card.digest] / CARD) != card
        ):
            raise ConfideError(f"{source}: its card of {self.name} is not the one in {self.home}: exchange cards again")
        return replace(self[card.digest], card=card)


def own_card(home: Path, federation: Federation, source: Path) -> Card:
    """The card of this home's node in the federation."""
    name = load_card(home / CARD).name
    if name in federation.founding.cards and name not in federation.cards:
        raise ConfideError(f"{source}: an amendment that all others have signed goes on without {name}")
    federation.neighbours(name)  # one line if it is no member
    return federation.cards[name]


def bystander(home: Path, federation: Federation, source: Path) -> tuple[Federation, Identity]:
    """Who this node is or was, without a key, and what it held to last: to look at what it did, not to sign."""
    name = load_card(home / CARD).name
    for now in reversed(federation.history):
        if name in now.cards:
            return now, Identity(now.cards[name], None)
    return federation, Identity(own_card(home, federation, source), None)


def new_key(home: Path, address: str | None = None, passphrase: bytes | None = None) -> Path:
    """Another key and card for the node in `home`; the path of the card. It is in use once an amendment names it."""
    if not (home / CARD).exists():
        raise ConfideError(f"{home} holds no node: `confide node init` makes one")
    old = load_card(home / CARD)
    fresh = Identity.make(old.name, address or old.address)
    folder = home / FOLDER / fresh.card.fingerprint[:16]
    fresh.save(folder, passphrase)
    return folder / CARD


def own_frame(federation: Federation, name: str, frame: bytes) -> None:
    """Raises unless member `name` signed this frame, under the file or an amendment."""
    now = federation.under(wire.run_of(frame))
    wire.authentic(frame, now.cards[name], now.head)


def _cards(home: Path) -> Iterator[tuple[Path, Card]]:
    for folder in (home, *sorted(path.parent for path in (home / FOLDER).glob(f"*/{CARD}"))):
        yield folder, load_card(folder / CARD)
