"""Masks: known answers, cancelling for any set, one message a stream, and the law of the sum."""

import hashlib
import math
import os
import resource
import struct

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import confide
from confide.algorithms import JointDescent
from confide.network.masking import ClaimFile, Grid, Masks, keystream, members_hash, stream, total, unmasked
from confide.privacy.chain import Damaged
from confide.privacy.discrete_gaussian import Reservoir
from confide.runs.driver import Driver

ANY = st.integers(-(2**63), 2**63 - 1)


class Remembered:
    """Claims without a disk."""

    def __init__(self):
        self.made = []

    def claim(self, round, attempt):
        if self.made and (round, attempt) <= self.made[-1]:
            raise ValueError("used")
        self.made.append((round, attempt))


def crowd(parties, seed=0):
    """Masks of so many parties with secrets of their own, by fingerprint."""
    names = [hashlib.sha256(f"{seed} {k}".encode()).digest() for k in range(parties)]
    pair = {frozenset((a, b)): os.urandom(32) for a in names for b in names if a != b}
    return {a: Masks(a, {b: pair[frozenset((a, b))] for b in names if b != a}, Remembered()) for a in names}


# --- known answers ----------------------------------------------------------------------------------------------------


def test_streams_give_the_answers_of_rfc_8439():
    """Sections 2.3.2 and A.1, vectors 1 and 2: one key, two blocks on end."""
    start = (1).to_bytes(4, "little") + bytes.fromhex("000000090000004a00000000")
    assert keystream(bytes(range(32)), 64, start).hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert keystream(bytes(32), 128).hex() == (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )


def test_a_stream_is_bound_to_round_attempt_and_members():
    """Written out again from the primitives."""
    secret, members = os.urandom(32), members_hash([b"b" * 32, b"a" * 32])
    assert members == hashlib.sha256(b"confide members\0" + b"a" * 32 + b"b" * 32).digest()
    key = HKDF(hashes.SHA256(), 32, None, b"confide mask\0" + members + struct.pack("<II", 3, 2)).derive(secret)
    bare = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor().update(bytes(80))
    assert stream(secret, 3, 2, members, 10).tolist() == list(struct.unpack("<10Q", bare))
    strangers = members_hash([b"a" * 32, b"c" * 32])
    others = [
        (secret, 2, 3, members),
        (secret, 3, 1, members),
        (os.urandom(32), 3, 2, members),
        (secret, 3, 2, strangers),
    ]
    others = [stream(*one, 10) for one in others]
    assert not any(np.any(one == np.frombuffer(bare, "<u8")) for one in others)


# --- masks cancel -----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_masks_cancel_for_any_set_and_any_numbers(data):
    parties = data.draw(st.integers(2, 9))
    everyone = crowd(parties)
    present = data.draw(st.sets(st.sampled_from(sorted(everyone)), min_size=2))
    width = data.draw(st.integers(1, 20))
    round, attempt = data.draw(st.integers(1, 2**32 - 1)), data.draw(st.integers(1, 2**32 - 1))
    values = {who: np.array(data.draw(st.lists(ANY, min_size=width, max_size=width)), np.int64) for who in present}
    sent = {who: everyone[who].apply(round, attempt, values[who], present) for who in present}
    exact = [sum(int(values[who][k]) for who in present) for k in range(width)]
    wrapped = [(x + 2**63) % 2**64 - 2**63 for x in exact]
    assert unmasked(total(sent.values())).tolist() == wrapped


def test_less_than_all_of_a_sum_is_uniform():
    """The masked message of one, and the sum of all but one, of 5 parties who all send 0."""
    everyone = crowd(5)
    sent = [masks.apply(1, 1, np.zeros(40_000, np.int64)) for masks in everyone.values()]
    for seen in (sent[0], total(sent[1:]), total(sent[:2])):
        counts = np.bincount(seen.view(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
    assert not total(sent).any()


@pytest.mark.parametrize("parties", [3, 5, 20])
def test_colluders_who_take_their_masks_away_are_left_with_the_honest_sum(parties):
    """Exactly: the honest parties' messages less all masks shared with colluders add up to their own numbers, and
    no sum of fewer of them does."""
    everyone = crowd(parties)
    rng = np.random.default_rng(parties)
    values = {who: rng.integers(-(2**40), 2**40, 50) for who in everyone}
    sent = {who: masks.apply(4, 1, values[who]) for who, masks in everyone.items()}
    for colluders in range(parties - 1):
        bad, honest = list(everyone)[:colluders], list(everyone)[colluders:]
        named = members_hash(everyone)
        bare = {}
        for who in honest:
            seen = sent[who].copy()
            for other in bad:
                mask = stream(everyone[other]._secrets[who], 4, 1, named, 50)
                seen = seen - mask if who < other else seen + mask
            bare[who] = seen
        assert np.array_equal(unmasked(total(bare.values())), sum(values[who] for who in honest))
        for left_out in honest:
            rest = [who for who in honest if who != left_out]
            off = unmasked(total([bare[who] for who in rest])) - sum(values[who] for who in rest)
            assert not np.any(np.abs(off) < 2**40)  # 50 uniform numbers: one in 2^23 would be


# --- one message a stream ---------------------------------------------------------------------------------------------


def test_no_stream_masks_two_messages(tmp_path):
    claims = ClaimFile.create(tmp_path / "claims")
    a, b, secret = b"a" * 32, b"b" * 32, os.urandom(32)
    masks = Masks(a, {b: secret}, claims)
    zeros = np.zeros(4, np.int64)
    first = masks.apply(1, 1, zeros)
    for round, attempt in ((1, 1), (0, 5), (1, 0)):
        with pytest.raises(ValueError, match=r"its masks were used|must be from 1"):
            masks.apply(round, attempt, zeros)
    later = [masks.apply(1, 2, zeros), masks.apply(3, 1, zeros)]
    with pytest.raises(ValueError, match="round 2, attempt 9: its masks were used, the last in round 3, attempt 1"):
        masks.apply(2, 9, zeros)
    assert not any(np.any(first == one) for one in later)
    claims.close()
    again = Masks(a, {b: secret}, ClaimFile(tmp_path / "claims"))  # a process that starts again
    with pytest.raises(ValueError, match="its masks were used"):
        again.apply(3, 1, zeros)
    again.apply(3, 2, zeros)


def test_a_claim_is_on_disk_before_its_stream_exists(tmp_path, monkeypatch):
    path = tmp_path / "claims"
    claims = ClaimFile.create(path)
    seen = []

    def looked(*given):
        seen.append(ClaimFile(path).last)
        return stream(*given)

    monkeypatch.setattr("confide.network.masking.stream", looked)
    Masks(b"a" * 32, {b"b" * 32: os.urandom(32)}, claims).apply(7, 2, np.zeros(1, np.int64))
    assert seen == [(7, 2)]


def test_a_torn_claim_never_counted_and_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "claims"
    with pytest.raises(Damaged, match="gone, so that what was masked is not known"):
        ClaimFile(path)
    claims = ClaimFile.create(path)
    with pytest.raises(ValueError, match="holds the claims of a run already"):
        ClaimFile.create(path)
    for round in (1, 2, 3):
        claims.claim(round, 1)
    claims.close()
    whole = path.read_bytes()
    for cut in range(1, 12):
        path.write_bytes(whole[:-cut])
        torn = ClaimFile(path)
        assert torn.last == (2, 1) and path.stat().st_size == 24
        torn.close()
    path.write_bytes(whole + bytes(30))  # longer than its data
    assert ClaimFile(path).last == (3, 1) and path.stat().st_size == 36
    for at in (3, 14, 30):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(Damaged, match=f"damaged at record {at // 12 + 1}"):
            ClaimFile(path)
    assert path.stat().st_mode & 0o077 == 0


def test_a_claim_that_the_disk_has_no_room_for_is_no_claim(tmp_path, monkeypatch):
    """Four bytes of the second record fit: no stream is made of it, the file is named, and what is left of it is none
    of a later claim.
    """
    path, made = tmp_path / "claims", []
    monkeypatch.setattr("confide.network.masking.stream", lambda *given: made.append(given) or stream(*given))
    claims = ClaimFile.create(path)
    masks = Masks(b"a" * 32, {b"b" * 32: os.urandom(32)}, claims)
    masks.apply(1, 1, np.zeros(1, np.int64))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))  # bytes of a file, as a disk that is nearly full
    try:
        with pytest.raises(OSError, match="too large") as full:
            masks.apply(2, 1, np.zeros(1, np.int64))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert full.value.filename == str(path) and len(made) == 1 and claims.last == (1, 1)
    assert path.stat().st_size == 16
    masks.apply(2, 2, np.zeros(1, np.int64))  # there is room again
    claims.close()
    assert ClaimFile(path).last == (2, 2) and path.stat().st_size == 24


@pytest.mark.parametrize(("values", "members", "match"), [
    (np.zeros(3), None, "float64 numbers"), (np.zeros((1, 3), np.int64), None, "of shape"),
    (np.zeros(3, np.int64), [b"a" * 32], "for one member alone"),
    (np.zeros(3, np.int64), [b"b" * 32], "must be this party and others"),
    (np.zeros(3, np.int64), [b"a" * 32, b"c" * 32], "must be this party and others"),
])  # fmt: skip
def test_what_masks_refuse_uses_nothing_up(values, members, match):
    claims = Remembered()
    with pytest.raises(ValueError, match=match):
        Masks(b"a" * 32, {b"b" * 32: bytes(32)}, claims).apply(1, 1, values, members)
    assert not claims.made


# --- the grid ---------------------------------------------------------------------------------------------------------


@given(st.floats(1e-12, 1e6), st.floats(0, 1e6), st.integers(2, 1000))
def test_the_sum_never_wraps_around_on_the_grid_that_is_chosen(scale, bound, parties):
    try:
        grid = Grid.fitting(scale, bound, parties)
    except ValueError as error:
        assert "does not fit 64 bits" in str(error) and parties * bound / scale > 2**52
        return
    most = int(abs(grid.round(np.array([bound, -bound]))).max()) + 23 * 2**grid.power  # noise never goes further
    assert parties * most < 2**63
    finer = parties * (bound / scale + 23) * 2.0 ** (grid.power + 1)
    assert grid.power == 26 or finer + 2 * parties >= 2.0**63  # and there is no finer one


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.lists(st.floats(-1, 1), min_size=8, max_size=8),
       st.integers(10, 26))  # fmt: skip
def test_rounding_adds_at_most_one_step_a_number_to_how_far_a_row_moves_the_sum(one, other, power):
    other = other[: len(one)]
    grid = Grid(0.37, power)
    step = math.ldexp(0.37, -power)
    moved = np.linalg.norm((grid.round(one) - grid.round(other)).astype(float)) * step
    assert moved <= np.linalg.norm(np.subtract(one, other)) * (1 + 1e-12) + math.sqrt(len(one)) * step


@pytest.mark.parametrize("bad", [(0.0, 1.0), (math.inf, 1.0), (1.0, math.inf), (math.nan, 1.0)])
def test_a_grid_needs_noise_and_a_bound(bad):
    with pytest.raises(ValueError, match="both must be finite"):
        Grid.fitting(*bad, 5)


def test_a_reservoir_of_another_deviation_is_refused():
    with pytest.raises(ValueError, match=r"2\^20 steps: the noise here has 2\^26"):
        Grid(1.0).noised(np.zeros(3), Reservoir(20))


# --- the law of the sum -----------------------------------------------------------------------------------------------


def answers(parties, rows=40, features=60):
    """What one round of joint descent asks: (parties, width) exact answers, the method and what is public."""
    rng = np.random.default_rng(parties)
    X, y = rng.normal(size=(rows * parties, features)), rng.choice([-1.0, 1.0], rows * parties)
    shards = confide.Shards.split(X, y, parties).clip_rows(1.0)
    task = confide.Problem(shards, confide.losses.Logistic(), weighting="rows", intercept=True)
    graph = confide.Graph.ring(parties)
    public = task.public(graph)
    method = JointDescent(rounds=3).calibrated(public, mu=0.7)
    return task, graph, public, method


@pytest.mark.parametrize("parties", [5, 20])
def test_masked_integers_are_the_simulators_sum(parties):
    """Without noise the rounded answers' sum, within ½ step a party of the simulator's; with noise of its law."""
    task, graph, public, method = answers(parties)
    driver = Driver(task, graph, method, range(60))
    exact = method.question(1, public).answer(driver.block, *method.points(1, driver.state, public))[0]  # (A, width)
    sigma, bound = float(method.noise_scale(1, public)[0, 0]), float(np.max(method.question(1, public).largest(public)))
    grid = Grid.fitting(sigma, bound, parties)
    everyone = crowd(parties)
    steps = [grid.round(a) for a in exact]
    sent = [masks.apply(1, 1, y) for masks, y in zip(everyone.values(), steps, strict=True)]
    bare = unmasked(total(sent))
    assert np.array_equal(bare, np.sum(steps, axis=0))
    step = math.ldexp(sigma, -grid.power)
    assert np.all(np.abs(grid.values(bare) - exact.sum(axis=0)) <= parties * step / 2 * (1 + 1e-6))

    noise = []
    for attempt in range(2, 62):
        sent = [masks.apply(1, attempt, grid.noised(a)) for masks, a in zip(everyone.values(), exact, strict=True)]
        noise.append(grid.values(unmasked(total(sent)) - bare))
    real = np.concatenate(noise)
    simulated = (driver.step() - exact).sum(axis=1).ravel()
    deviation = float(method.sum_scale(1, public)[0, 0])
    assert stats.kstest(real / deviation, "norm").pvalue > 1e-4
    assert stats.ks_2samp(real, simulated).pvalue > 1e-4
    spread = np.sum((real / deviation) ** 2)
    assert stats.chi2.cdf(spread, real.size) > 1e-4 and stats.chi2.sf(spread, real.size) > 1e-4
