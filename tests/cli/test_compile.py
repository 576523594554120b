"""`confide compile`: everything a fit needs is there afterwards."""

import json
import os
import subprocess
import sys

from confide.planning.ahead import ALL

PROGRAM = [sys.executable, "-P", "-c", "from confide.cli import main; main()"]
# A fit, seeded and secure, with word of every function that Numba compiles.
WATCHED = """
from numba.core import event
class Heard(event.Listener):
    def on_start(self, happened): print("compiled", happened.data["dispatcher"], flush=True)
    def on_end(self, happened): pass
event.register("numba:compile", Heard())
from confide.planning.ahead import whole_fit, solver
whole_fit(); solver()
"""


def test_after_it_a_fit_compiles_nothing(tmp_path):
    here = {**os.environ, "CONFIDE_CACHE": str(tmp_path / "cache")}
    first = subprocess.run([*PROGRAM, "compile", "--json"], capture_output=True, text=True, env=here)
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)
    assert sorted(said["compiled"]) == sorted(part.__name__ for stage in ALL for part in stage)
    assert said["kept_in"].startswith(str(tmp_path / "cache")) and "compiling: " in first.stderr
    again = subprocess.run([*PROGRAM, "compile", "--json"], capture_output=True, text=True, env=here)
    assert json.loads(again.stdout)["compiled"] == [] and again.stderr == ""
    fit = subprocess.run([sys.executable, "-P", "-c", WATCHED], capture_output=True, text=True, env=here)
    assert (fit.returncode, fit.stdout) == (0, ""), fit.stderr
