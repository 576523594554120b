"""`confide account --end`: a run that was given up gives back what it did not release, by its journal's word."""

import json
import shutil

import pytest
from test_member import close, trainer
from test_settling import charges, ledger_of, other_run, price, restore, run_to
from test_settling import village as village
from typer.testing import CliRunner

from confide.cli import app
from confide.privacy.ledger import Ledger


def end(village, *args):
    shutil.copy(village.file, village.run_folder("ash") / "federation.toml")  # as the daemon does
    command = ["account", "--ledger", str(ledger_of(village)), *map(str, args), "--json"]
    return CliRunner().invoke(app, command)


@pytest.mark.parametrize("lost", [False, True])
def test_a_run_that_was_given_up_is_ended_by_its_journal(village, lost):
    """Also with a ledger that has lost some of its rounds, or all of it."""
    member = run_to(village, 3, keep=2)
    run, folder = member.purse.run, village.run_folder("ash")
    if lost:
        restore(village)
    for again in (False, True):
        out = end(village, "--end", run, "--journal", folder)
        assert out.exit_code == 0, out.stderr
        (done,) = json.loads(out.stdout)["ended"]
        assert (done["population"], done["party"], done["rounds"]) == ("people", "ash", 3)
        assert done["charged_now"] == ([{"round": 3, "attempt": 1}] if lost and not again else [])
        assert len(done["given_back"]) == (0 if again else 1)
    rounds, balance = charges(village)
    assert rounds == [(1, 1), (2, 1), (3, 1)] and balance.held == 0
    assert balance.spent == pytest.approx(sum(price(member, t) for t in (1, 2, 3)), rel=1e-9)
    restore(village, None)
    with Ledger(ledger_of(village)) as ledger:
        ledger.open_population("people", 20.0, 1e-5)
    assert "no run" in end(village, "--end", run, "--journal", folder).stderr
    out = end(village, "--end", run, "--journal", folder, "--population", "people")
    assert [one["round"] for one in json.loads(out.stdout)["ended"][0]["charged_now"]] == [1, 2, 3]
    assert charges(village)[0] == rounds


def test_a_running_node_and_another_run_are_not_ended(village):
    member = trainer(village)
    member.open()
    member.begin()
    folder = village.run_folder("ash")
    out = end(village, "--end", member.purse.run, "--journal", folder)
    assert out.exit_code == 2 and "in use by another process" in out.stderr
    close(member)
    other_run(village, "fit")
    out = end(village, "--end", "fit", "--journal", folder)
    assert out.exit_code == 2 and f"holds run {member.purse.run}, not fit" in " ".join(out.stderr.split())
    assert charges(village)[1].held > 0
