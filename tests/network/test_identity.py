"""Keys, certificates and cards."""

import stat

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

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


@pytest.mark.parametrize("name", ["", "Mercy", "a b", "-a", "a-", "a.b", "ä", "a" * 64, "a\n"])
def test_names_are_dns_labels(tmp_path, name):
    with pytest.raises(ValueError, match="must be 1 to 63"):
        Identity.create(tmp_path / "x", name, "127.0.0.1:7001")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("address", ["host", "host:", ":1", "host:0", "host:65536", "ho st:1", "host:1:2", "host:١"])
def test_addresses_are_host_and_port(tmp_path, address):
    with pytest.raises(ValueError, match="host:port"):
        Identity.create(tmp_path / "x", "a", address)
