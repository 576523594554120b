"""Evidence: a neighbour can't fill the disk, and can't crowd out what ends the run."""

import errno
import json

from confide.node import evidence
from confide.node.evidence import MOST, Evidence


def test_so_many_refused_frames_of_one_neighbour_are_kept_and_no_more(tmp_path):
    one = Evidence(tmp_path)
    for name in ("cedar-2", "cedar-0123456789abcdef", "cedar"):  # a name that begins another counts for itself
        for k in range(MOST + 5):
            one.frame(name, f"{name} {k}".encode(), "numbers outside the ball")
    kept = sorted(path.name.rpartition("-")[0] for path in one.folder.glob("*.frame"))
    assert kept == sorted(["cedar", "cedar-0123456789abcdef", "cedar-2"] * MOST)
    assert len(list(one.folder.glob("*.txt"))) == 3 * MOST and one.contradictions() == []


def test_what_contradicts_itself_is_kept_however_much_is_there(tmp_path):
    """Who is about to be found out sends much else first: the run must not resume all the same."""
    one = Evidence(tmp_path)
    for k in range(MOST + 5):
        one.frame("cedar", f"{k}".encode(), "numbers outside the ball")
    said = one.contradiction("cedar", 7, '{"statements": []}')
    (path,) = Evidence(tmp_path).contradictions()
    assert said == f"the evidence is in {path}" and path.read_text() == '{"statements": []}'


def test_evidence_that_cannot_be_written_is_not_said_to_be_kept(tmp_path, monkeypatch, caplog):
    """It is in the log, whole; once there is room it is kept."""

    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    one, text = Evidence(tmp_path), json.dumps({"what": "two messages", "statements": ["00", "11"]}, indent=2)
    with monkeypatch.context() as patched:
        patched.setattr(evidence, "write_whole", full)
        said = one.contradiction("cedar", 7, text)
    assert "could not be written" in said and "it is in the log" in said and one.contradictions() == []
    assert json.loads(caplog.records[-1].getMessage().partition(": ")[2]) == json.loads(text)
    assert one.contradiction("cedar", 7, text).startswith("the evidence is in ") and len(one.contradictions()) == 1
