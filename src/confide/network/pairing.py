"""Secrets that every two members of a run share: X25519 keys made anew for each run, and what follows from them.

    1  every member: a key pair and a nonce of this run alone; an *offer* of both, signed under a label of its own
    2  everybody: check all offers, and make the *key list*; sign its hash
    3  everybody: before anything is masked, check that all members signed the very same hash
    4  members i, j: HKDF-SHA256 of X25519(i, j); info = label, federation, both fingerprints, keys and nonces, the
       smaller fingerprint first. That order decides who adds the masks and who subtracts them.

What each part is for. A fresh key: streams of two runs have nothing in common, and a key that was erased can't be taken
later. The signature: nobody stands between two members. Fingerprints and the federation in `info`: a key copied from
another member gives another secret. The signed list: its signer has seen our key and nonce, so that what we hold of it
is not replayed; and a member who shows different keys to different members is found out before round 1, not in it.

A key is 32 bytes in its only canonical form, and gives no secret of zeros with ours: points of low order, whose
"secret" everyone knows, are refused. So is a key that two members offer.

On disk the own key is readable by its owner only, and erased at the end of the run. Erasing overwrites the file; a copy
in a backup, or in the blocks of a disk that never writes in place, is beyond its reach.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from confide.errors import ConfideError
from confide.files import OWNER_ONLY, sync_folder, write_whole
from confide.network.identity import KEY_LABEL, LIST_LABEL, SIGNATURE, Card, Identity
from confide.privacy.chain import Damaged

SIZE = 32  # bytes of a key, a nonce, a fingerprint, a secret, and of the hash that names a federation
OFFER = 2 * SIZE + SIGNATURE  # bytes: key, nonce, signature
SHOWN = SIZE + OFFER  # bytes: a fingerprint and the offer of its member
PAIR_LABEL = b"confide pair\0"
PRIME = 2**255 - 19
MAGIC = b"confide secret\1\0"
FILE = "run-key"  # in the folder of a node's run


@dataclass(frozen=True)
class Offer:
    """What a member shows to all others: all of it public."""

    key: bytes
    nonce: bytes

    @classmethod
    def read(cls, data: bytes, sender: Card, federation: bytes) -> Offer:
        """The offer in these bytes, if `sender` made it for this federation."""
        if len(data) != OFFER:
            raise ConfideError(f"offer of {len(data)} bytes: must be {OFFER}")
        offer = cls(data[:SIZE], data[SIZE : 2 * SIZE])
        check_key(offer.key, sender.name)
        if not sender.verify(data[2 * SIZE :], offer.statement(federation, sender.digest), KEY_LABEL):
            raise ConfideError(f"the key of this run is not signed by {sender.name}")
        return offer

    def statement(self, federation: bytes, fingerprint: bytes) -> bytes:
        """What is signed."""
        return federation + fingerprint + self.key + self.nonce


def check_key(key: bytes, name: str) -> None:
    """One form for each key (X25519 itself would take p + 9 for 9), and none of low order.

    X25519 multiplies by 8 times something: a point of low order gives zeros with any secret, and no other point does.
    """
    if len(key) != SIZE or int.from_bytes(key, "little") >= PRIME:
        raise ConfideError(f"the key that {name} offers: must be {SIZE} bytes, below 2^255 - 19")
    try:
        X25519PrivateKey.from_private_bytes(bytes(SIZE)).exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        raise ConfideError(f"the key that {name} offers is of low order: everyone would know its secrets") from None


class Copied(ConfideError):
    """Two members offer the same key. `proof` has both offers, each after its fingerprint: each is signed."""

    def __init__(self, *shown: tuple[Card, bytes]) -> None:
        shown = tuple(sorted(shown, key=lambda one: one[0].name))
        self.names, self.proof = [card.name for card, _ in shown], [card.digest + offer for card, offer in shown]
        super().__init__(f"{' and '.join(self.names)} offer the same key for this run: one of them copied it")


def check_copies(offers: Iterable[tuple[Card, bytes]]) -> None:
    """Each key must be one member's: two members whose masks are one are one member less."""
    seen: dict[bytes, tuple[Card, bytes]] = {}
    for one in offers:
        if (other := seen.setdefault(one[1][:SIZE], one)) is not one:
            raise Copied(other, one)


@dataclass(frozen=True)
class RunKey:
    """The own key of one run. `path` is where it is kept, if it is."""

    federation: bytes  # hash of the federation
    secret: bytes = field(repr=False)
    nonce: bytes
    path: Path | None = None

    @classmethod
    def create(cls, federation: bytes, path: Path | None = None) -> RunKey:
        """A new key, on disk before it is shown to anyone; one that is there is never overwritten."""
        if len(federation) != SIZE:
            raise ConfideError(f"federation of {len(federation)} bytes: its hash has {SIZE}")
        secret = X25519PrivateKey.generate().private_bytes_raw()
        made = cls(federation, secret, os.urandom(SIZE), path)
        if path is not None:
            if path.exists():
                raise ConfideError(f"{path} holds the key of a run already: end that run first")
            body = MAGIC + federation + secret + made.nonce
            write_whole(path, body + hashlib.sha256(body).digest(), OWNER_ONLY)
        return made

    @classmethod
    def load(cls, federation: bytes, path: Path) -> RunKey:
        """The key at `path`; one that others can read, of another federation, or damaged is refused."""
        if not path.exists():
            raise Damaged(f"{path}: the key of this run is gone: restore it, or begin another run")
        if path.stat().st_mode & 0o077:
            raise ConfideError(f"{path}: others can read the key of this run; begin another run")
        data = path.read_bytes()
        body, code = data[:-SIZE], data[-SIZE:]
        if len(body) != len(MAGIC) + 3 * SIZE or not body.startswith(MAGIC) or hashlib.sha256(body).digest() != code:
            raise Damaged(f"{path}: not the key of a run, or damaged: restore it, or begin another run")
        kept, secret, nonce = (body[len(MAGIC) + k * SIZE :][:SIZE] for k in range(3))
        if kept != federation:
            raise ConfideError(f"{path}: the key of another federation, {kept.hex()[:16]}")
        return cls(federation, secret, nonce, path)

    def erase(self) -> None:
        """The run is over."""
        if self.path is not None:
            erase(self.path)

    @cached_property
    def _key(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.secret)

    @cached_property
    def offer(self) -> Offer:
        raw = self._key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return Offer(raw, self.nonce)

    def signed(self, identity: Identity) -> bytes:
        """The offer as others take it."""
        said = self.offer.statement(self.federation, identity.card.digest)
        return self.offer.key + self.offer.nonce + identity.sign(said, KEY_LABEL)

    def agreed(self, key: bytes, name: str) -> bytes:
        """X25519 with another's key, which is checked."""
        check_key(key, name)
        return self._key.exchange(X25519PublicKey.from_public_bytes(key))


@dataclass(frozen=True, eq=False)
class KeyList:
    """The offers of all members of a run, by fingerprint; the same at every member, or nothing is masked."""

    federation: bytes
    offers: Mapping[bytes, Offer]

    @classmethod
    def read(cls, federation: bytes, cards: Mapping[bytes, Card], signed: Mapping[bytes, bytes]) -> KeyList:
        """From the signed offers of exactly these members, by fingerprint."""
        if set(cards) != set(signed):
            raise ConfideError(f"offers of {len(signed)} members: must be those of all {len(cards)}, and no others")
        offers = {who: Offer.read(signed[who], card, federation) for who, card in cards.items()}
        check_copies((card, signed[who]) for who, card in cards.items())
        return cls(federation, offers)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the federation and, in the order of fingerprints, everyone's key and nonce."""
        parts = [self.offers[who].statement(b"", who) for who in sorted(self.offers)]
        return hashlib.sha256(LIST_LABEL + self.federation + b"".join(parts)).digest()

    def sign(self, identity: Identity, heard: bytes | None = None) -> bytes:
        """The hash of the list, or of the list and what was heard since, as everybody must sign it."""
        return identity.sign(heard or self.digest, LIST_LABEL)

    def check_agreed(self, cards: Mapping[bytes, Card], signatures: Mapping[bytes, bytes],
                     heard: bytes | None = None) -> None:  # fmt: skip
        """All of `cards`, who are members, must have signed the very same."""
        if set(signatures) != set(cards) or not set(cards) <= set(self.offers):
            raise ConfideError(f"{len(signatures)} members signed their key list: must be all {len(cards)}")
        for who, signature in signatures.items():
            if not cards[who].verify(signature, heard or self.digest, LIST_LABEL):
                raise ConfideError(
                    f"{cards[who].name} did not sign our keys and totals of this run: a member told different things "
                    "to different members, or a message was replayed; begin another run"
                )

    def secrets(self, own: RunKey, fingerprint: bytes) -> dict[bytes, bytes]:
        """The secret with each other member, by fingerprint."""
        if len(self.offers) < 2:
            raise ConfideError(f"{len(self.offers)} members: masks need at least 2")
        if self.offers.get(fingerprint) != own.offer:
            raise ConfideError("the key list does not hold the own key of this run")
        return {who: self._secret(own, fingerprint, who) for who in self.offers if who != fingerprint}

    def _secret(self, own: RunKey, mine: bytes, theirs: bytes) -> bytes:
        first, second = sorted((mine, theirs))
        a, b = self.offers[first], self.offers[second]
        info = PAIR_LABEL + self.federation + first + second + a.key + b.key + a.nonce + b.nonce
        return expand(own.agreed(self.offers[theirs].key, theirs.hex()[:16]), info)


def expand(secret: bytes, info: bytes, size: int = SIZE, salt: bytes | None = None) -> bytes:
    """HKDF with SHA-256 (RFC 5869)."""
    return HKDF(hashes.SHA256(), size, salt, info).derive(secret)


def erase(path: Path) -> None:
    """Overwrite the key of a run that nobody goes on with, and remove it; nothing where there is none."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        file.write(bytes(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    sync_folder(path.parent)
