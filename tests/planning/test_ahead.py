"""Compiling ahead of time: a part that fails hurts nobody, and what is there is there for this copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import confide
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


def test_what_another_copy_of_the_package_compiled_is_not_there(tmp_path):
    """A second environment, or the same installed again: Numba does not find the first one's code."""
    first, second = Path(confide.__file__).parents[1], tmp_path / "second"
    shutil.copytree(first / "confide", second / "confide", ignore=shutil.ignore_patterns("__pycache__"))

    def there(source, code=""):
        here = {**os.environ, "CONFIDE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(source)}
        code = f"from confide.planning import ahead\n{code}\nprint('sums' not in ahead.missing(ahead.FIT)[0])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=here, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout == "True\n"

    made = "assert ahead.compiled([['sums']], 1, lambda done, total: None) == ['sums']"
    assert there(first, made) and there(first) and not there(second)
    assert there(second, made)
    (second / "confide" / "network" / "exchange.py").touch()
    assert not there(second)
