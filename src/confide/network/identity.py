"""Who a node is: one key and one self-signed certificate, known to others by the certificate's SHA-256.

There is no common authority: each member pins its neighbours' certificates from their *cards*, which are public. The
certificate names the node as DNS name, is no CA and serves both ends of a connection. One key signs the handshake and,
under a label of its own, the messages, so that a message can be laid before anyone who has the card.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # one DNS label
YEARS = 10
SIGNATURE = 64  # bytes: r and s of P-256
LABEL = b"confide message\0"  # what this key signs is a message, never a handshake
_ECDSA = ec.ECDSA(utils.Prehashed(hashes.SHA256()))
KEY, CERTIFICATE, CARD = "key.pem", "certificate.pem", "card.toml"


@dataclass(frozen=True)
class Card:
    """What a node hands to its neighbours: all of it public."""

    name: str
    address: str
    certificate: bytes  # DER

    def __post_init__(self) -> None:
        check_name(self.name)
        check_address(self.address)
        found = self._parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if found.get_values_for_type(x509.DNSName) != [self.name]:
            raise ValueError(f"the certificate of {self.name!r} names another node: ask for its card again")

    @classmethod
    def from_text(cls, name: Any, address: Any, fingerprint: Any, certificate: Any) -> Card:
        """As a card or a federation writes it; the fingerprint, which people compare, must be the certificate's."""
        if not all(isinstance(v, str) for v in (name, address, fingerprint, certificate)):
            raise ValueError(f"card of {name!r}: name, address, fingerprint and certificate must be texts")
        try:
            card = cls(name, address, base64.b64decode(certificate, validate=True))
        except (binascii.Error, x509.ExtensionNotFound, TypeError):
            raise ValueError(f"card of {name!r}: its certificate is damaged") from None
        if card.fingerprint != fingerprint:
            raise ValueError(f"card of {name!r}: fingerprint {fingerprint} is not that of its certificate")
        return card

    def to_json(self) -> dict[str, str]:
        return {
            "name": self.name, "address": self.address, "fingerprint": self.fingerprint,
            "certificate": base64.b64encode(self.certificate).decode(),
        }  # fmt: skip

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the certificate: who this is."""
        return hashlib.sha256(self.certificate).digest()

    @property
    def fingerprint(self) -> str:
        return self.digest.hex()

    @property
    def pem(self) -> bytes:
        return self._parsed.public_bytes(serialization.Encoding.PEM)

    @cached_property
    def _parsed(self) -> x509.Certificate:
        try:
            return x509.load_der_x509_certificate(self.certificate)
        except ValueError:
            raise ValueError(f"card of {self.name!r}: its certificate is damaged") from None

    @cached_property
    def _key(self) -> ec.EllipticCurvePublicKey:
        key = self._parsed.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError(f"card of {self.name!r}: its key must be of the curve P-256")
        return key

    def verify(self, signature: bytes, data: bytes | memoryview) -> bool:
        """Whether this node signed `data`."""
        if len(signature) != SIGNATURE:
            return False
        half = SIGNATURE // 2
        r, s = int.from_bytes(signature[:half]), int.from_bytes(signature[half:])
        try:
            self._key.verify(utils.encode_dss_signature(r, s), _labelled(data), _ECDSA)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class Identity:
    """A card with the key that proves it."""

    card: Card
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, home: Path, name: str, address: str) -> Identity:
        """A new key and certificate in the folder `home`; an identity that is there is never overwritten."""
        check_name(name)
        check_address(address)
        home.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        certificate = self_signed(key, name)
        card = Card(name, address, certificate.public_bytes(serialization.Encoding.DER))
        try:
            _write(home / KEY, secret, 0o600)
        except FileExistsError:
            raise ValueError(f"{home} holds an identity already: choose another --home, or remove it") from None
        _write(home / CERTIFICATE, card.pem, 0o644)
        text = "".join(f'{field} = "{value}"\n' for field, value in card.to_json().items())
        _write(home / CARD, text.encode(), 0o644)
        return cls(card, key)

    @classmethod
    def load(cls, home: Path) -> Identity:
        """The identity in `home`; a key that others can read is refused."""
        if not (home / KEY).exists():
            raise ValueError(f"{home} holds no node: `confide node init` makes one")
        if (home / KEY).stat().st_mode & 0o077:
            raise ValueError(f"{home / KEY}: others can read the key; chmod 600 it, or make a new identity")
        card = load_card(home / CARD)
        try:
            key = serialization.load_pem_private_key((home / KEY).read_bytes(), None)
        except (ValueError, TypeError):
            raise ValueError(f"{home / KEY}: not a private key, or damaged") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != card._key:
            raise ValueError(f"{home / KEY} is not the key of the card beside it")
        return cls(card, key)

    @property
    def secret(self) -> bytes:
        """The key as TLS takes it."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, data: bytes) -> bytes:
        r, s = utils.decode_dss_signature(self.key.sign(_labelled(data), _ECDSA))
        return r.to_bytes(SIGNATURE // 2) + s.to_bytes(SIGNATURE // 2)


def _labelled(data: bytes | memoryview) -> bytes:
    """SHA-256 of the label and the data, of which no copy is made."""
    digest = hashlib.sha256(LABEL)
    digest.update(data)
    return digest.digest()


def self_signed(key: ec.EllipticCurvePrivateKey, name: str) -> x509.Certificate:
    """Good for both ends of a connection and for nothing else; in particular it is no CA."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .sign(key, hashes.SHA256())
    )


def load_card(path: Path) -> Card:
    """The card at `path`."""
    import tomllib

    try:
        fields = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise ValueError(f"{path}: not a card, or damaged") from None
    if set(fields) != {"name", "address", "fingerprint", "certificate"}:
        raise ValueError(f"{path}: a card has name, address, fingerprint and certificate, got {', '.join(fields)}")
    return Card.from_text(**fields)


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(f"name {name!r}: must be 1 to 63 of a-z, 0-9 and -, and begin and end without -")


def check_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not (colon and re.fullmatch(r"[A-Za-z0-9.\-]+|\[[0-9a-fA-F:]+\]", host)
            and port.isascii() and port.isdigit() and 0 < int(port) < 65536):  # fmt: skip
        raise ValueError(f"address {address!r}: must be host:port, such as node.example.org:7000")


def _write(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
