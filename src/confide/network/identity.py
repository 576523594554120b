"""Who a node is: one key and one self-signed certificate, known to others by the certificate's SHA-256.

There is no common authority: each member pins its neighbours' certificates from their *cards*, which are public. The
certificate names the node as DNS name, is no CA and serves both ends of a connection. One key signs the handshake and,
under a label of its own, the messages, so that a message can be laid before anyone who has the card.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from confide.errors import ConfideError
from confide.files import OWNER_ONLY, toml, write_whole
from confide.files.keys import strict

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # one DNS label
YEARS = 10
SOON_DAYS = 30  # before its end a certificate is spoken of
SIGNATURE = 64  # bytes: r and s of P-256
# What this key signs is one of these, never a handshake; none begins another, so that nothing passes for two of them.
LABEL, KEY_LABEL, LIST_LABEL = b"confide message\0", b"confide run key\0", b"confide key list\0"
AGREEMENT_LABEL, AMENDMENT_LABEL = b"confide agreement\0", b"confide amendment\0"
# What reading the extensions of a certificate from anywhere may raise.
_STRANGE = (ValueError, TypeError, x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
_ECDSA = ec.ECDSA(utils.Prehashed(hashes.SHA256()))
BY_RELAY = "relay"  # the address of who takes no connections: its neighbours find it at the federation's relay
KEY, CERTIFICATE, CARD = "key.pem", "certificate.pem", "card.toml"
FIELDS = ("name", "address", "fingerprint", "certificate")  # of a card, and of a member in a federation


@dataclass(frozen=True)
class Card:
    """What a node hands to its neighbours: all of it public."""

    name: str
    address: str
    certificate: bytes  # DER

    def __post_init__(self) -> None:
        check_name(self.name)
        check_address(self.address)
        if self._names() != [self.name]:
            raise ConfideError(f"the certificate of {self.name!r} names another node: ask for its card again")

    @classmethod
    def from_text(cls, name: Any, address: Any, fingerprint: Any, certificate: Any) -> Card:
        """As a card or a federation writes it; the fingerprint, which people compare, must be the certificate's."""
        if not all(isinstance(v, str) for v in (name, address, fingerprint, certificate)):
            raise ConfideError(f"card of {name!r}: name, address, fingerprint and certificate must be texts")
        try:
            der = base64.b64decode(certificate, validate=True)
        except ValueError:
            raise _damaged(name) from None
        card = cls(name, address, der)
        if card.fingerprint != fingerprint:
            raise ConfideError(f"card of {name!r}: fingerprint {fingerprint} is not that of its certificate")
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
        except (ValueError, x509.InvalidVersion):
            raise _damaged(self.name) from None

    def _names(self) -> list[str]:
        """Whom the certificate names."""
        parsed = self._parsed
        try:
            found = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except _STRANGE:
            raise _damaged(self.name) from None
        return found.get_values_for_type(x509.DNSName)

    @property
    def valid_from(self) -> datetime.datetime:
        return self._parsed.not_valid_before_utc

    @property
    def valid_until(self) -> datetime.datetime:
        return self._parsed.not_valid_after_utc

    def check_valid(self) -> str:
        """Raises on a certificate that TLS would refuse today; a word on one that it soon will, or nothing."""
        now = datetime.datetime.now(datetime.UTC)
        if now < self.valid_from:
            raise ConfideError(
                f"the certificate of {self.name} is valid from {self.valid_from:%Y-%m-%d} only: is the clock right?"
            )
        if now > self.valid_until:
            raise ConfideError(
                f"the certificate of {self.name} expired on {self.valid_until:%Y-%m-%d}: it needs a new identity, by "
                "`confide node init`, and a federation with its new card"
            )
        left = (self.valid_until - now).days
        return f"the certificate of {self.name} expires on {self.valid_until:%Y-%m-%d}" if left < SOON_DAYS else ""

    def check_tls(self) -> None:
        """One line on a certificate that OpenSSL can't read, though others can: no neighbour's node would start."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=self.certificate)
        except ssl.SSLError:
            raise _damaged(self.name) from None

    @cached_property
    def _key(self) -> ec.EllipticCurvePublicKey:
        try:
            key = self._parsed.public_key()
        except (ValueError, UnsupportedAlgorithm):  # a curve that nobody knows, or no point of one
            raise _damaged(self.name) from None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ConfideError(f"card of {self.name!r}: its key must be of the curve P-256")
        return key

    def verify(self, signature: bytes, data: bytes | memoryview, label: bytes = LABEL) -> bool:
        """Whether this node signed `data` under this label."""
        if len(signature) != SIGNATURE:
            return False
        half = SIGNATURE // 2
        r, s = int.from_bytes(signature[:half]), int.from_bytes(signature[half:])
        try:
            self._key.verify(utils.encode_dss_signature(r, s), _labelled(data, label), _ECDSA)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class Identity:
    """A card with the key that proves it; without one it signs nothing."""

    card: Card
    key: ec.EllipticCurvePrivateKey | None

    @classmethod
    def create(cls, home: Path, name: str, address: str, passphrase: bytes | None = None) -> Identity:
        """A new key and certificate in the folder `home`; an identity that is there is never overwritten."""
        out = cls.make(name, address)
        out.save(home, passphrase)
        return out

    @classmethod
    def make(cls, name: str, address: str) -> Identity:
        """In memory alone."""
        check_name(name)
        check_address(address)
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(Card(name, address, self_signed(key, name).public_bytes(serialization.Encoding.DER)), key)

    def save(self, home: Path, passphrase: bytes | None = None) -> None:
        """Into a folder that holds none; with a passphrase the key is encrypted (PKCS#8, as OpenSSL does it)."""
        if passphrase == b"":
            raise ConfideError("an empty passphrase: must have a character or more, or be left out")
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            write_whole(home / KEY, self._pem(passphrase), OWNER_ONLY, new=True)
        except FileExistsError:
            raise ConfideError(f"{home} holds an identity already: choose another --home, or remove it") from None
        write_whole(home / CERTIFICATE, self.card.pem, 0o644, new=True)
        text = "".join(f'{field} = "{value}"\n' for field, value in self.card.to_json().items())
        write_whole(home / CARD, text.encode(), 0o644, new=True)

    @classmethod
    def load(cls, home: Path, passphrase: Callable[[Path], bytes] | None = None) -> Identity:
        """The identity in `home`; a key that others can read is refused. `passphrase` is asked if it is encrypted."""
        if not (home / KEY).exists():
            raise ConfideError(f"{home} holds no node: `confide node init` makes one")
        if (home / KEY).stat().st_mode & 0o077:
            raise ConfideError(f"{home / KEY}: others can read the key; chmod 600 it, or make a new identity")
        card = load_card(home / CARD)
        pem = (home / KEY).read_bytes()
        locked = pem.startswith(b"-----BEGIN ENCRYPTED")
        if locked and passphrase is None:
            raise ConfideError(f"{home / KEY}: encrypted, and no passphrase is given")
        try:
            key = serialization.load_pem_private_key(pem, passphrase(home / KEY) if locked and passphrase else None)
        except (ValueError, TypeError):
            why = "not its passphrase, or damaged" if locked else "not a private key, or damaged"
            raise ConfideError(f"{home / KEY}: {why}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != card._key:
            raise ConfideError(f"{home / KEY} is not the key of the card beside it")
        return cls(card, key)

    @property
    def secret(self) -> bytes:
        """The key as TLS takes it."""
        return self._pem(None)

    def _pem(self, passphrase: bytes | None) -> bytes:
        plain = serialization.NoEncryption()
        how = plain if passphrase is None else serialization.BestAvailableEncryption(passphrase)
        return self._held.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)

    @property
    def _held(self) -> ec.EllipticCurvePrivateKey:
        if self.key is None:
            raise ConfideError(f"the key of {self.card.name} is not here")
        return self.key

    def sign(self, data: bytes, label: bytes = LABEL) -> bytes:
        r, s = utils.decode_dss_signature(self._held.sign(_labelled(data, label), _ECDSA))
        return r.to_bytes(SIGNATURE // 2) + s.to_bytes(SIGNATURE // 2)


def _damaged(name: str) -> ConfideError:
    return ConfideError(f"card of {name!r}: its certificate is damaged")


def _labelled(data: bytes | memoryview, label: bytes) -> bytes:
    """SHA-256 of the label and the data, of which no copy is made."""
    digest = hashlib.sha256(label)
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
    document = toml.load(path, "a card")
    try:
        card = Card.from_text(**strict(document, "", FIELDS))
        card.check_tls()
        return card
    except ConfideError as error:
        raise ConfideError(f"{path}: {error}") from None


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfideError(f"name {name!r}: must be 1 to 63 of a-z, 0-9 and -, and begin and end without -")


def check_address(address: str) -> None:
    if address == BY_RELAY:
        return
    host, colon, port = address.rpartition(":")
    if not (colon and re.fullmatch(r"[A-Za-z0-9.\-]+|\[[0-9a-fA-F:]+\]", host)
            and re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 65536):  # fmt: skip
        raise ConfideError(f"address {address!r}: must be host:port, such as node.example.org:7000")
