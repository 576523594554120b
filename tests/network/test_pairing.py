"""Secrets of a run: known answers, who is refused, and what is left on disk."""

import stat

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from confide.network.identity import KEY_LABEL, LABEL, LIST_LABEL, Identity
from confide.network.pairing import OFFER, PRIME, KeyList, Offer, RunKey, check_key, expand
from confide.privacy.chain import Damaged

FEDERATION = bytes(range(32))
# RFC 7748, section 6.1
ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOB_PUBLIC = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
COMMON = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
LOW_ORDER = [  # all of them in canonical form: 0, 1, the two of order 8, and -1 (D. J. Bernstein, cr.yp.to/ecdh.html)
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    home = tmp_path_factory.mktemp("people")
    return [Identity.create(home / name, name, "127.0.0.1:7001") for name in ("ash", "birch", "cedar")]


@pytest.fixture
def run(people):
    """(keys, cards, signed offers, key list), by fingerprint."""
    keys = {one.card.digest: RunKey.create(FEDERATION) for one in people}
    cards = {one.card.digest: one.card for one in people}
    signed = {one.card.digest: keys[one.card.digest].signed(one) for one in people}
    return keys, cards, signed, KeyList.read(FEDERATION, cards, signed)


# --- known answers ----------------------------------------------------------------------------------------------------


def test_agreement_gives_the_answers_of_rfc_7748():
    alice, bob = RunKey(FEDERATION, ALICE, bytes(32)), RunKey(FEDERATION, BOB, bytes(32))
    assert (alice.offer.key.hex(), bob.offer.key.hex()) == (ALICE_PUBLIC, BOB_PUBLIC)
    assert alice.agreed(bob.offer.key, "bob").hex() == bob.agreed(alice.offer.key, "alice").hex() == COMMON


@pytest.mark.parametrize(("secret", "salt", "info", "size", "answer"), [
    ("0b" * 22, "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9", 42,
     "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
    ("0b" * 22, "", "", 42, "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
], ids=["A.1", "A.3"])  # fmt: skip
def test_derivation_gives_the_answers_of_rfc_5869(secret, salt, info, size, answer):
    parts = (bytes.fromhex(text) for text in (secret, info))
    assert expand(*parts, size, bytes.fromhex(salt)).hex() == answer


def test_a_secret_is_bound_to_everything_that_names_it(run):
    """Written out again from the primitives, the smaller fingerprint first."""
    keys, _, _, listed = run
    a, b = sorted(keys)[:2]
    shared = X25519PrivateKey.from_private_bytes(keys[a].secret).exchange(
        X25519PublicKey.from_public_bytes(keys[b].offer.key)
    )
    info = b"confide pair\0" + FEDERATION + a + b
    info += keys[a].offer.key + keys[b].offer.key + keys[a].nonce + keys[b].nonce
    wanted = HKDF(hashes.SHA256(), 32, None, info).derive(shared)
    assert listed.secrets(keys[a], a)[b] == listed.secrets(keys[b], b)[a] == wanted


def test_every_pair_of_every_run_has_a_secret_of_its_own(run, people):
    keys, cards, _, listed = run
    pairs = {frozenset((a, b)): secret for a in keys for b, secret in listed.secrets(keys[a], a).items()}
    assert len(pairs) == len(set(pairs.values())) == 3
    again = {one.card.digest: RunKey.create(FEDERATION) for one in people}
    other = KeyList.read(FEDERATION, cards, {one.card.digest: again[one.card.digest].signed(one) for one in people})
    assert other.digest != listed.digest
    assert not set(pairs.values()) & {s for a in again for s in other.secrets(again[a], a).values()}


# --- who is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", LOW_ORDER)
def test_points_of_low_order_are_refused(run, people, point):
    _, cards, signed, _ = run
    ash = people[0]
    key, nonce = bytes.fromhex(point), bytes(32)
    evil = key + nonce + ash.sign(Offer(key, nonce).statement(FEDERATION, ash.card.digest), KEY_LABEL)
    with pytest.raises(ValueError, match="the key that ash offers is of low order"):
        KeyList.read(FEDERATION, cards, signed | {ash.card.digest: evil})


@pytest.mark.parametrize("number", [PRIME, PRIME + 9, 2**255 - 1, 2**255 + 9, 2**256 - 1])
def test_a_key_has_one_form(number):
    with pytest.raises(ValueError, match="must be 32 bytes, below"):
        check_key(number.to_bytes(32, "little"), "ash")
    check_key((9).to_bytes(32, "little"), "ash")


def test_a_copied_key_is_refused(run, people):
    keys, cards, signed, _ = run
    ash, birch = people[:2]
    copy = RunKey(FEDERATION, keys[ash.card.digest].secret, bytes(32))
    with pytest.raises(ValueError, match="ash and birch offer the same key for this run: one of them copied it"):
        KeyList.read(FEDERATION, cards, signed | {birch.card.digest: copy.signed(birch)})


def test_an_offer_is_signed_for_this_federation_by_this_member_as_a_key(run, people):
    keys, cards, signed, _ = run
    ash, birch = people[:2]
    mine = signed[ash.card.digest]
    said = keys[ash.card.digest].offer.statement(FEDERATION, ash.card.digest)
    bad = [mine[:-1], mine + b"\0", mine[:64] + bytes(64), bytes([mine[0] ^ 1]) + mine[1:],
           mine[:32] + bytes([mine[32] ^ 1]) + mine[33:], mine[:64] + ash.sign(said, LABEL),
           keys[ash.card.digest].signed(birch),
           RunKey(bytes(32), keys[ash.card.digest].secret, keys[ash.card.digest].nonce).signed(ash)]  # fmt: skip
    for one in bad:
        with pytest.raises(ValueError, match=f"is not signed by ash|must be {OFFER}|offers"):
            Offer.read(one, ash.card, FEDERATION)
    assert Offer.read(mine, ash.card, FEDERATION) == keys[ash.card.digest].offer
    with pytest.raises(ValueError, match="offers of 2 members: must be those of all 3"):
        KeyList.read(FEDERATION, cards, {who: signed[who] for who in list(signed)[:2]})


def test_everyone_must_have_signed_the_same_list(run, people):
    keys, cards, signed, listed = run
    signatures = {one.card.digest: listed.sign(one) for one in people}
    listed.check_agreed(cards, signatures)
    cedar = people[2]
    two_faced = KeyList.read(FEDERATION, cards, signed | {cedar.card.digest: RunKey.create(FEDERATION).signed(cedar)})
    for who, bad in ((people[1], two_faced.sign(people[1])), (people[0], people[0].sign(listed.digest, LABEL)),
                     (people[0], signatures[people[1].card.digest])):  # fmt: skip
        with pytest.raises(ValueError, match=f"{who.card.name} did not sign our keys"):
            listed.check_agreed(cards, signatures | {who.card.digest: bad})
    with pytest.raises(ValueError, match="2 members signed their key list: must be all 3"):
        listed.check_agreed(cards, {who: signatures[who] for who in list(signatures)[:2]})
    with pytest.raises(ValueError, match="does not hold the own key"):
        two_faced.secrets(keys[cedar.card.digest], cedar.card.digest)


def test_no_label_begins_another():
    labels = [LABEL, KEY_LABEL, LIST_LABEL]
    assert not any(a != b and a.startswith(b) for a in labels for b in labels) and len(set(labels)) == 3


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_a_key_is_kept_for_its_owner_and_erased(tmp_path):
    path = tmp_path / "run key"
    key = RunKey.create(FEDERATION, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert RunKey.load(FEDERATION, path) == key and key.secret.hex() not in repr(key)
    with pytest.raises(ValueError, match="holds the key of a run already"):
        RunKey.create(FEDERATION, path)
    kept = tmp_path / "link"
    kept.hardlink_to(path)  # what was in the file's blocks
    key.erase()
    assert not path.exists() and not any(kept.read_bytes()) and list(tmp_path.iterdir()) == [kept]
    key.erase()
    with pytest.raises(Damaged, match="is gone"):
        RunKey.load(FEDERATION, path)


def test_a_key_that_is_readable_damaged_or_of_another_federation_is_refused(tmp_path):
    path = tmp_path / "run key"
    RunKey.create(FEDERATION, path)
    whole = path.read_bytes()
    with pytest.raises(ValueError, match="the key of another federation"):
        RunKey.load(bytes(32), path)
    for bad in (whole[:-1], whole + b"\0", b"", whole[:50] + bytes([whole[50] ^ 1]) + whole[51:]):
        path.write_bytes(bad)
        with pytest.raises(Damaged, match="not the key of a run, or damaged"):
            RunKey.load(FEDERATION, path)
    path.write_bytes(whole)
    path.chmod(0o640)
    with pytest.raises(ValueError, match="others can read"):
        RunKey.load(FEDERATION, path)
