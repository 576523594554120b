"""The journal: written once, whole after a crash at any byte, refused when damaged."""

import fcntl
import os
import shutil
import struct
import threading
import zlib

import numpy as np
import pytest

from confide.network import wire
from confide.network.identity import Identity
from confide.node.journal import Journal
from confide.node.status import running

RUN = bytes(range(32))


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    return [Identity.create(folder / name, name, "127.0.0.1:7001") for name in ("ash", "birch")]


def frame(identity, t, value=1.0):
    return wire.pack(identity, RUN, t, np.full(2, value + t).tobytes())


@pytest.fixture
def filled(people, tmp_path):
    """Three own rounds, the neighbour's first two between them, as a node writes them."""
    ash, birch = people
    with Journal(tmp_path / "run", RUN) as journal:
        for t in (1, 2, 3):
            journal.commit(frame(ash, t))
            if t < 3:
                journal.keep([frame(birch, t)])
        everything = list(journal.frames())
    return tmp_path / "run", everything


def test_it_comes_back_in_order(filled, people):
    folder, everything = filled
    ash, birch = people
    with Journal(folder, RUN) as journal:
        assert list(journal.frames()) == everything and len(everything) == 5
        assert journal.last(ash.card.digest) == 3 and journal.last(birch.card.digest) == 2
        assert wire.unpack(journal.frame(birch.card.digest, 2), birch.card, RUN, 2, 2)
        assert journal.get(birch.card.digest, 3) is None
        with pytest.raises(LookupError):
            journal.frame(birch.card.digest, 3)


def test_a_round_is_written_once(filled, people):
    folder, everything = filled
    ash, birch = people
    size = (folder / "journal").stat().st_size
    with Journal(folder, RUN) as journal:
        journal.commit(everything[0][2])  # the same bytes: nothing happens
        for again in (lambda: journal.commit(frame(ash, 3, 9.0)), lambda: journal.keep([frame(birch, 1, 9.0)])):
            with pytest.raises(ValueError, match="holds another message"):
                again()
        with pytest.raises(ValueError, match="cannot follow"):
            journal.commit(frame(ash, 5))
        assert list(journal.frames()) == everything
    assert (folder / "journal").stat().st_size == size


def test_attempts_are_kept_beside_the_frames(people, tmp_path):
    ash, birch = people
    with Journal(tmp_path / "run", RUN) as journal:
        journal.commit(frame(ash, 1))
        journal.keep([frame(birch, 1)])
        journal.commit(frame(ash, 2), 3)
        assert [journal.attempt(ash.card.digest, t) for t in (1, 2)] == [1, 3]
    with Journal(tmp_path / "run", RUN, write=False) as journal:
        assert [journal.attempt(ash.card.digest, t) for t in (1, 2)] == [1, 3]


def version_1(frames, nonce):
    """A journal as the first version wrote it."""
    head = struct.pack("<16sH32s16s", b"confide journal\0", 1, RUN, nonce)
    out = head + zlib.crc32(head).to_bytes(4, "little")
    for one in frames:
        record = struct.pack("<II", len(one), zlib.crc32(one))
        out += record + zlib.crc32(record).to_bytes(4, "little") + one
    return out


def test_a_journal_of_version_1_goes_on(people, tmp_path):
    ash, birch = people
    frames, nonce = [frame(ash, 1), frame(birch, 1), frame(ash, 2)], bytes(range(16))
    old = version_1(frames, nonce)
    (tmp_path / "journal").write_bytes(old + b"torn")
    with Journal(tmp_path, RUN, write=False) as journal:
        assert [f for _, _, f in journal.frames()] == frames and journal.nonce == nonce
    assert (tmp_path / "journal").read_bytes() == old + b"torn"  # who reads changes nothing
    for attempt in (2, 3):
        with Journal(tmp_path, RUN) as journal:
            assert [f for _, _, f in journal.frames()][:3] == frames and journal.nonce == nonce
            assert [journal.attempt(ash.card.digest, t) for t in (1, 2)] == [1, 1]
            journal.commit(frame(ash, attempt + 1), attempt)
    with Journal(tmp_path, RUN) as journal:
        assert [journal.attempt(ash.card.digest, t) for t in (1, 2, 3, 4)] == [1, 1, 2, 3]
    bad = bytearray(old)
    bad[-70] ^= 4
    (tmp_path / "journal").write_bytes(bad)
    with pytest.raises(ValueError, match="damaged at byte"):
        Journal(tmp_path, RUN)
    assert (tmp_path / "journal").read_bytes() == bad
    later = old[:16] + b"\x03\0" + old[18:66]
    (tmp_path / "journal").write_bytes(later + zlib.crc32(later).to_bytes(4, "little"))
    with pytest.raises(ValueError, match="a journal of version 3"):
        Journal(tmp_path, RUN)


@pytest.mark.slow
def test_a_crash_at_any_byte_leaves_a_prefix_that_can_go_on(filled, people, tmp_path):
    folder, everything = filled
    ash, _ = people
    data = (folder / "journal").read_bytes()
    header = len(data) - sum(16 + len(f) for _, _, f in everything)
    for cut in range(header, len(data)):
        copy = tmp_path / "copy"
        copy.mkdir(exist_ok=True)
        (copy / "journal").write_bytes(data[:cut])
        with Journal(copy, RUN) as journal:
            kept = list(journal.frames())
            assert kept == everything[: len(kept)]
            assert sum(16 + len(f) for _, _, f in kept) <= cut - header
            journal.commit(frame(ash, journal.last(ash.card.digest) + 1))
        with Journal(copy, RUN) as journal:
            assert len(list(journal.frames())) == len(kept) + 1
        shutil.rmtree(copy)


def test_zeros_that_a_power_failure_left_are_cut_off(filled):
    folder, everything = filled
    with (folder / "journal").open("ab") as file:
        file.write(bytes(5000))
    with Journal(folder, RUN) as journal:
        assert list(journal.frames()) == everything


def test_damage_is_refused_and_nothing_is_changed(filled):
    """Cutting off what was sent once would mean another noise for the same round."""
    folder, everything = filled
    data = bytearray((folder / "journal").read_bytes())
    header = len(data) - sum(16 + len(f) for _, _, f in everything)
    for at in range(header, len(data)):
        bad = data.copy()
        bad[at] ^= 1 << (at % 8)
        (folder / "journal").write_bytes(bad)
        with pytest.raises(ValueError, match="damaged at byte"):
            Journal(folder, RUN)
        assert (folder / "journal").read_bytes() == bad


def test_another_run_or_another_file_is_refused(filled):
    folder, _ = filled
    with pytest.raises(ValueError, match="belongs to another run"):
        Journal(folder, bytes(32))
    (folder / "journal").write_bytes(b"not a journal at all" * 10)
    with pytest.raises(ValueError, match="not a journal"):
        Journal(folder, RUN)


def test_one_process_writes_others_may_read(filled):
    folder, everything = filled
    with Journal(folder, RUN):
        assert running(folder)
        with pytest.raises(ValueError, match="in use by another process"):
            Journal(folder, RUN)
        with Journal(folder, RUN, write=False) as reader:
            assert list(reader.frames()) == everything
    Journal(folder, RUN).close()


def test_who_looks_whether_a_node_runs_keeps_none_from_starting(filled):
    """`confide node status` has the lock for a moment, and a node that is refused stays down."""
    folder, _ = filled
    looking = os.open(folder / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    moment = threading.Timer(0.05, os.close, [looking])
    moment.start()
    Journal(folder, RUN).close()
    moment.join()
    assert not running(folder)


def test_every_journal_has_a_name_of_its_own(tmp_path):
    """The ledger knows a run by it: a lost journal is paid for again."""
    with Journal(tmp_path / "a", RUN) as one, Journal(tmp_path / "b", RUN) as other:
        assert one.nonce != other.nonce
    with Journal(tmp_path / "a", RUN) as again:
        assert again.nonce == one.nonce


@pytest.mark.parametrize("room", [20, 0])
def test_a_full_disk_leaves_no_half_of_a_record(filled, people, monkeypatch, room):
    folder, _ = filled
    ash, _ = people
    with Journal(folder, RUN) as journal:
        write = os.write

        def short(file, pieces):
            return write(file, b"".join(pieces)[:room])

        def full(file, data):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "writev", short if room else full)
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            journal.commit(frame(ash, 4))
        monkeypatch.undo()
        assert journal.last(ash.card.digest) == 3
        journal.commit(frame(ash, 4))
    with Journal(folder, RUN) as journal:
        assert [t for _, t, _ in journal.frames()] == [1, 1, 2, 2, 3, 4]


def test_a_short_write_is_finished(filled, people, monkeypatch):
    folder, _ = filled
    ash, _ = people
    with Journal(folder, RUN) as journal:
        write, message = os.write, frame(ash, 4)
        monkeypatch.setattr(os, "writev", lambda file, pieces: write(file, b"".join(pieces)[:20]))
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
        journal.commit(message)
    with Journal(folder, RUN) as journal:
        assert journal.frame(ash.card.digest, 4) == message
