"""Keys, certificates and cards."""

import base64
import datetime
import hashlib
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.x509.oid import ExtendedKeyUsageOID

from confide.errors import ConfideError
from confide.network.identity import Card, Identity, load_card


@pytest.fixture
def mercy(tmp_path):
    return Identity.create(tmp_path / "mercy", "mercy", "127.0.0.1:7001")


def test_an_identity_comes_back_and_its_key_is_the_owners_only(mercy, tmp_path):
    assert Identity.load(tmp_path / "mercy").card == mercy.card
    assert stat.S_IMODE((tmp_path / "mercy" / "key.pem").stat().st_mode) == 0o600
    assert load_card(tmp_path / "mercy" / "card.toml") == mercy.card
    assert b"PRIVATE" not in (tmp_path / "mercy" / "card.toml").read_bytes()


def test_the_certificate_names_the_node_is_no_ca_and_serves_both_ends(mercy):
    found = x509.load_der_x509_certificate(mercy.card.certificate).extensions
    names = found.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    usage = found.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert names == ["mercy"]
    assert found.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_an_identity_is_never_overwritten(mercy, tmp_path):
    before = (tmp_path / "mercy" / "key.pem").read_bytes()
    with pytest.raises(ValueError, match="holds an identity already"):
        Identity.create(tmp_path / "mercy", "mercy", "127.0.0.1:7001")
    assert (tmp_path / "mercy" / "key.pem").read_bytes() == before


def test_a_key_that_others_can_read_is_refused(mercy, tmp_path):
    (tmp_path / "mercy" / "key.pem").chmod(0o644)
    with pytest.raises(ValueError, match="others can read the key"):
        Identity.load(tmp_path / "mercy")


def test_a_key_of_another_card_is_refused(mercy, tmp_path):
    Identity.create(tmp_path / "other", "mercy", "127.0.0.1:7001")
    (tmp_path / "other" / "key.pem").replace(tmp_path / "mercy" / "key.pem")
    with pytest.raises(ValueError, match="not the key of the card"):
        Identity.load(tmp_path / "mercy")


def test_signatures_are_of_the_key_and_the_bytes(mercy, tmp_path):
    other = Identity.create(tmp_path / "other", "other", "127.0.0.1:7002")
    signature = mercy.sign(b"round 1")
    assert len(signature) == 64 and mercy.card.verify(signature, b"round 1")
    assert not mercy.card.verify(signature, b"round 2")
    assert not other.card.verify(signature, b"round 1")
    assert not mercy.card.verify(signature[:-1], b"round 1") and not mercy.card.verify(bytes(64), b"round 1")


@pytest.mark.parametrize("field", ["name", "address", "fingerprint", "certificate"])
def test_a_changed_card_is_refused(mercy, field):
    fields = mercy.card.to_json()
    fields[field] = {"name": "north", "address": "nowhere", "fingerprint": "0" * 64, "certificate": "AAAA"}[field]
    with pytest.raises(ValueError, match=r"north|nowhere|fingerprint|damaged"):
        Card.from_text(**fields)


def card_with(key, *extensions):
    """The card of a certificate that anyone can make: its fingerprint is right."""
    now, name = datetime.datetime.now(datetime.UTC), x509.Name([])
    made = (
        x509.CertificateBuilder(extensions=[x509.Extension(one.oid, False, one) for one in extensions])
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
        .sign(key, None if isinstance(key, ed448.Ed448PrivateKey) else hashes.SHA256())
    )  # fmt: skip
    der = made.public_bytes(serialization.Encoding.DER)
    return {"name": "mercy", "address": "a:1", "fingerprint": hashlib.sha256(der).hexdigest(),
            "certificate": base64.b64encode(der).decode()}  # fmt: skip


NAMES_MERCY = x509.SubjectAlternativeName([x509.DNSName("mercy")])
JUNK = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, b"junk")
STRANGE = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, b"\x30\x04\xa3\x02\x30\x00")  # by X.400
TWICE = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"")


@pytest.mark.parametrize("extensions", [(), (JUNK,), (STRANGE,), (NAMES_MERCY, TWICE, TWICE)])
def test_a_certificate_of_strange_extensions_is_one_line(extensions):
    """Others send cards in their papers."""
    with pytest.raises(ConfideError, match="card of 'mercy': its certificate is damaged"):
        Card.from_text(**card_with(ec.generate_private_key(ec.SECP256R1()), *extensions))


def test_a_certificate_of_a_strange_version_or_alphabet_is_one_line(mercy):
    der = mercy.card.certificate.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09", 1)  # version 10
    for text in (base64.b64encode(der).decode(), "é", "A"):
        with pytest.raises(ConfideError, match="its certificate is damaged"):
            Card.from_text(**{**mercy.card.to_json(), "certificate": text})


def test_a_key_of_another_kind_signs_nothing():
    odd = card_with(ec.generate_private_key(ec.SECP256R1()), NAMES_MERCY)
    prime256, no_curve = bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a8648ce3d030163")
    der = base64.b64decode(odd["certificate"]).replace(prime256, no_curve)
    unknown = {**odd, "certificate": base64.b64encode(der).decode(), "fingerprint": hashlib.sha256(der).hexdigest()}
    for card in (card_with(ed448.Ed448PrivateKey.generate(), NAMES_MERCY), unknown):
        with pytest.raises(ConfideError, match=r"card of 'mercy': its (key must be of|certificate is)"):
            Card.from_text(**card).verify(bytes(64), b"round 1")


@pytest.mark.parametrize("name", ["", "Mercy", "a b", "-a", "a-", "a.b", "ä", "a" * 64, "a\n"])
def test_names_are_dns_labels(tmp_path, name):
    with pytest.raises(ValueError, match="must be 1 to 63"):
        Identity.create(tmp_path / "x", name, "127.0.0.1:7001")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("address", ["host", "host:", ":1", "host:0", "host:65536", "ho st:1", "host:1:2", "host:١",
                                     pytest.param("host:" + "1" * 5000, id="long")])  # fmt: skip
def test_addresses_are_host_and_port(tmp_path, address):
    with pytest.raises(ValueError, match="host:port"):
        Identity.create(tmp_path / "x", "a", address)
