"""Compiling ahead of time: a part that fails hurts nobody, and what is there is there for this processor."""

from confide.planning import ahead


def test_a_part_that_fails_is_left_to_whoever_needs_it():
    with ahead.Workers(2) as workers:
        assert sorted(workers.work(["nosuch", "sums", "other"])) == [
            ("nosuch", False),
            ("other", False),
            ("sums", True),
        ]
        workers.processes[0].kill()
        workers.processes[1].kill()
        assert sorted(workers.work(["sums", "one_seed", "gradients"])) == [
            ("gradients", False), ("one_seed", False), ("sums", False),
        ]  # fmt: skip


def test_what_cannot_be_kept_is_not_compiled(monkeypatch):
    monkeypatch.setattr("confide.compiled.folder", lambda: None)
    assert ahead.missing(ahead.FIT) == []
    assert ahead.compiled([["sums"]], 1, lambda done, total: None) == []
