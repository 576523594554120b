"""`confide compile`: everything a fit needs is there afterwards, and a part that fails hurts nobody."""

import json
import os
import subprocess
import sys

from confide.cli import compile as compiling

PROGRAM = [sys.executable, "-P", "-c", "from confide.cli import main; main()"]
# A fit, seeded and secure, with word of every function that Numba compiles.
WATCHED = """
from numba.core import event
class Heard(event.Listener):
    def on_start(self, happened): print("compiled", happened.data["dispatcher"], flush=True)
    def on_end(self, happened): pass
event.register("numba:compile", Heard())
from confide.cli.compile import whole_fit, solver
whole_fit(); solver()
"""


def test_after_it_a_fit_compiles_nothing(tmp_path):
    here = {**os.environ, "CONFIDE_CACHE": str(tmp_path / "cache")}
    first = subprocess.run([*PROGRAM, "compile", "--json"], capture_output=True, text=True, env=here)
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)
    assert sorted(said["compiled"]) == sorted(part.__name__ for stage in compiling.ALL for part in stage)
    assert said["kept_in"].startswith(str(tmp_path / "cache")) and "compiling: " in first.stderr
    again = subprocess.run([*PROGRAM, "compile", "--json"], capture_output=True, text=True, env=here)
    assert json.loads(again.stdout)["compiled"] == [] and again.stderr == ""
    fit = subprocess.run([sys.executable, "-P", "-c", WATCHED], capture_output=True, text=True, env=here)
    assert (fit.returncode, fit.stdout) == (0, ""), fit.stderr


def test_a_part_that_fails_is_left_to_whoever_needs_it():
    with compiling.Workers(2) as workers:
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
    assert compiling.compiled(compiling.FIT) == []
