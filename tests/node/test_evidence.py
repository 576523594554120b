"""Evidence: a neighbour can't fill the disk, and can't crowd out what ends the run."""

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
    path = one.contradiction("cedar", 7, '{"statements": []}')
    assert Evidence(tmp_path).contradictions() == [path] and path.read_text() == '{"statements": []}'
