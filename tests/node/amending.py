"""What members type to amend a federation whose nodes run, for the tests."""

import json

from typer.testing import CliRunner
from waiting import wait_for

from confide.cli import app


def confide(*args, code=0):
    done = CliRunner().invoke(app, [str(a) for a in args])
    assert done.exit_code == code, done.output
    return done.output


def insist(*args):
    """Again until it is done: while a run has hardly stood still, the federation's patience refuses."""
    said = []

    def done():
        said.append(CliRunner().invoke(app, [str(a) for a in args]))
        return said[-1].exit_code == 0

    assert wait_for(done, pause=0.3), said[-1].output


def waiting(village, name):
    """Hashes of the amendments that wait for signatures at a member."""
    said = json.loads(confide("federation", "review", village.file, "--home", village.folder / name, "--json"))
    return [one["hash"] for one in said["pending"]]


def leave_out(village, lost, stay, meanwhile=lambda name: None):
    """The first of those who stay writes it; the others find it on their nodes and sign, after `meanwhile(name)`."""
    home, file = village.folder, village.file
    insist("federation", "amend", file, "--home", home / stay[0], "--without", lost, "--yes")
    for name in stay[1:]:
        meanwhile(name)
        assert wait_for(lambda name=name: waiting(village, name)), village.log(name)
        change = waiting(village, name)[0][:12]
        insist("federation", "sign", file, "--home", home / name, "--amendment", change, "--yes")
