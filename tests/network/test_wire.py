"""Frames: strict, signed, and refused in one line whatever arrives."""

import hashlib

import numpy as np
import pytest

from confide.network import wire
from confide.network.identity import Identity

RUN, WIDTH = bytes(range(32)), 7


@pytest.fixture(scope="module")
def sender(tmp_path_factory):
    return Identity.create(tmp_path_factory.mktemp("sender"), "ash", "127.0.0.1:7001")


@pytest.fixture(scope="module")
def frame(sender):
    return wire.pack(sender, RUN, 3, np.arange(WIDTH, dtype="<f8").tobytes())


def signed(sender, run=RUN, round=3, values=None):
    values = np.arange(float(WIDTH)) if values is None else np.array(values, float)
    return wire.pack(sender, run, round, values.astype("<f8").tobytes())


def test_a_frame_comes_back(sender, frame):
    assert np.array_equal(np.frombuffer(wire.unpack(frame, sender.card, RUN, 3, WIDTH)), np.arange(WIDTH))
    assert wire.payload_of(frame) == wire.unpack(frame, sender.card, RUN, 3, WIDTH)
    assert wire.source(frame) == (sender.card.digest, 3) and len(frame) == wire.frame_size(WIDTH)


def test_what_is_wrong_is_said_in_one_line(sender, frame, tmp_path):
    other = Identity.create(tmp_path, "birch", "127.0.0.1:7002")
    forged = signed(other)[:40] + sender.card.digest + signed(other)[72:]  # birch signs as ash
    cases = {
        "must be 220": b"", "frame of 219 bytes": frame[:-1], "frame of 221": frame + b"\0",
        "not a frame": b"PK\3\4" + frame[4:], "version 258": frame[:5] + b"\1" + frame[6:],
        "another run": signed(sender, run=bytes(32)), "another sender": signed(other), "not signed by ash": forged,
        "round 2: asked for round 3": signed(sender, round=2), "round 4: asked": signed(sender, round=4),
        "claims": frame[:80] + b"\xff" + frame[81:], "kind 1, phase": frame[:6] + b"\1" + frame[7:],
        "phase 2, attempt": frame[:76] + b"\2" + frame[77:],
        "attempt 3": frame[:78] + b"\3" + frame[79:],
        "not finite": signed(sender, values=[*range(6), np.nan]),
        "holds a value": signed(sender, values=[*range(6), -np.inf]),
    }  # fmt: skip
    for words, bad in cases.items():
        with pytest.raises(ValueError, match=words) as error:
            wire.unpack(bad, sender.card, RUN, 3, WIDTH)
        assert "\n" not in str(error.value)


def test_no_mutation_of_a_frame_is_taken(sender, frame):
    """10,000 frames with a flipped bit, a cut, an insertion or junk: none passes, none raises anything else."""
    rng = np.random.default_rng(0)
    for number in range(10_000):
        bad = bytearray(frame)
        at = int(rng.integers(len(bad)))
        match number % 5:
            case 0:
                bad[at] ^= 1 << int(rng.integers(8))
            case 1:
                del bad[at:]
            case 2:
                bad[at:at] = rng.bytes(int(rng.integers(1, 20)))
            case 3:
                junk = rng.bytes(int(rng.integers(1, 40)))
                bad[at : at + len(junk)] = junk
            case 4:
                bad = bytearray(rng.bytes(int(rng.integers(0, 400))))
        if bytes(bad) == frame:
            continue
        with pytest.raises(ValueError, match="frame"):
            wire.unpack(bytes(bad), sender.card, RUN, 3, WIDTH)


def test_requests_are_exactly_as_long_as_they_must_be():
    assert wire.unpack_request(wire.pack_request(RUN, 9)) == (RUN, 9)
    for bad in (b"", wire.pack_request(RUN, 9)[:-1], wire.pack_request(RUN, 9) + b"\0"):
        with pytest.raises(ValueError, match="must be 40"):
            wire.unpack_request(bad)


def test_a_statement_proves_a_frame_without_its_numbers(sender, frame, tmp_path):
    other = Identity.create(tmp_path, "birch", "127.0.0.1:7002")
    said = wire.statement(frame)
    assert len(said) == wire.STATEMENT == 96
    assert wire.stated(said, sender.card, RUN, 3, WIDTH)
    for who, run, t, count in ((other.card, RUN, 3, WIDTH), (sender.card, bytes(32), 3, WIDTH),
                               (sender.card, RUN, 4, WIDTH), (sender.card, RUN, 3, WIDTH + 1)):  # fmt: skip
        assert not wire.stated(said, who, run, t, count)
    for at in (0, 31, 32, 95):
        assert not wire.stated(said[:at] + bytes([said[at] ^ 1]) + said[at + 1 :], sender.card, RUN, 3, WIDTH)
    again = wire.pack(sender, RUN, 3, np.arange(WIDTH, dtype="<f8").tobytes())
    assert wire.statement(again)[:32] != said[:32]  # salted: equal numbers are not seen to be equal


def test_statements_of_others_are_signed_along(sender):
    told = b"a" * 96 + b"b" * 96
    frame = wire.pack(sender, RUN, 3, bytes(8 * WIDTH), told)
    assert wire.unpack(frame, sender.card, RUN, 3, WIDTH, statements=2) == bytes(8 * WIDTH)
    assert wire.statements(frame) == [b"a" * 96, b"b" * 96] and len(frame) == wire.frame_size(WIDTH, 2)
    with pytest.raises(ValueError, match="must be 220"):
        wire.unpack(frame, sender.card, RUN, 3, WIDTH)
    with pytest.raises(ValueError, match="not signed"):
        wire.unpack(frame.replace(b"b" * 96, b"c" * 96), sender.card, RUN, 3, WIDTH, statements=2)


def test_whole_numbers_with_phase_and_attempt(sender):
    """What reads as NaN where doubles are expected is an integer like any other here."""
    numbers = np.array([-1, 2**63 - 1, 0], "<i8").tobytes()
    frame = wire.pack(sender, RUN, 3, numbers, kind=wire.Numbers.WHOLE, phase=2, attempt=7)
    assert wire.unpack(frame, sender.card, RUN, 3, 3, kind=wire.Numbers.WHOLE, phase=2, attempt=7) == numbers
    for wrong in ({"phase": 1, "attempt": 7}, {"phase": 2, "attempt": 6}):
        with pytest.raises(ValueError, match="kind 1, phase 2, attempt 7"):
            wire.unpack(frame, sender.card, RUN, 3, 3, kind=wire.Numbers.WHOLE, **wrong)


@pytest.mark.parametrize("form", [wire.Form.NUMBERS, wire.Form.SEAL])
@pytest.mark.parametrize("kind", [wire.Numbers.REAL, wire.Numbers.WHOLE])
def test_a_shortened_frame_still_proves_what_was_signed(sender, tmp_path, form, kind):
    """The commitment by its definition, with hashlib; and any changed bit of what was kept is found."""
    other = Identity.create(tmp_path, "birch", "127.0.0.1:7002")
    numbers, told = np.arange(WIDTH, dtype="<f8").tobytes(), b"a" * 96 + b"b" * 96
    whole = wire.pack(sender, RUN, 3, numbers, told, kind=kind, phase=int(kind), attempt=int(kind))
    inner = hashlib.sha256(told).digest()
    commitment = hashlib.sha256(whole[84:100] + numbers + inner).digest()
    head = whole[:7] + bytes([form]) + whole[8:84]
    kept = wire.shortened(whole, form)
    middle = commitment if form == wire.Form.SEAL else whole[84:100] + numbers + inner
    assert kept == head + middle + whole[-64:]
    assert wire.is_frame(kept) and wire.source(kept) == wire.source(whole) and wire.kind_of(kept) == kind
    assert wire.run_of(kept) == RUN and wire.place(kept) == wire.place(whole)
    assert wire.statement(kept) == wire.statement(whole) == commitment + whole[-64:] and wire.statements(kept) == []
    assert wire.seal(kept) == wire.seal(whole) != wire.seal(wire.pack(sender, RUN, 3, numbers, told, kind=kind))
    assert wire.shortened(kept, wire.Form.NUMBERS) == kept  # nothing comes back
    wire.authentic(kept, sender.card, RUN)
    with pytest.raises(ValueError, match="another run or sender"):
        wire.authentic(kept, other.card, RUN)
    for at in range(len(kept)):
        bad = kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :]
        with pytest.raises(ValueError, match="frame"):
            wire.authentic(bad, sender.card, RUN)


def test_a_frame_without_statements_is_taken_only_where_it_is_asked_for(sender):
    whole = wire.pack(sender, RUN, 3, np.arange(WIDTH, dtype="<f8").tobytes(), b"a" * 96)
    kept = wire.shortened(whole, wire.Form.NUMBERS)
    assert wire.unpack(kept, sender.card, RUN, 3, WIDTH, statements=None) == wire.payload_of(whole)
    for bad, told in ((kept, 0), (kept, 1), (whole, None), (wire.shortened(whole, wire.Form.SEAL), None)):
        with pytest.raises(ValueError, match="frame of"):
            wire.unpack(bad, sender.card, RUN, 3, WIDTH, statements=told)
    two = wire.pack(sender, RUN, 3, bytes(16))
    assert len(wire.shortened(two, wire.Form.SEAL)) == len(two)  # as long as a whole one, and still not taken for it
    with pytest.raises(ValueError, match="kind 512"):
        wire.unpack(wire.shortened(two, wire.Form.SEAL), sender.card, RUN, 3, 2)
    with pytest.raises(LookupError, match="were left out"):
        wire.payload_of(wire.shortened(two, wire.Form.SEAL))
