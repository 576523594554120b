"""A federation of 0.1.0, whose noise meant something else: looked at as before, neither run nor priced."""

import json
import shutil

import pytest
from test_member import SECURE, neighbours
from typer.testing import CliRunner
from village import Village

from confide.cli import app
from confide.node import daemon
from confide.node import federation as federations
from confide.node.journal import Journal, run_name
from confide.node.member import Trainer
from confide.node.purse import Purse
from confide.privacy import ZCDP
from confide.privacy.ledger import Ledger


@pytest.fixture
def village(tmp_path):
    """Three rounds of four, charged as 0.1.0 did; ledger and journal are closed."""
    village = Village(tmp_path, SECURE, seed=None, budget=(20.0, 1e-5))
    village.document["format"] = 1
    village.file = village.write("federation.toml", village.document)
    village.federation = federations.load(village.file)
    with Journal(village.run_folder("ash"), village.federation.digest) as journal:
        member = Trainer(village.federation, village.identities["ash"], journal, None, tmp_path / "ash.npz")
        member.begin()
        for t in (1, 2):
            member.step(neighbours(village, member, t))
        village.run = run_name(journal)
    shutil.copy(village.file, village.run_folder("ash") / daemon.FEDERATION)
    with Ledger(tmp_path / "ash" / "ledger.sqlite") as ledger:
        ledger.open_population("people", 20.0, 1e-5)
        ledger.reserve("people", village.run, [[ZCDP(0.01)]] * 4, party="ash")
        for t in (1, 2):
            ledger.charge("people", village.run, t, [ZCDP(0.01)], party="ash")
    return village


def call(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("unproven", [[], ["--allow-unproven"]])
def test_it_is_not_run_and_nothing_changes(village, unproven):
    before = files(village.folder)
    out = call(*village.arguments("ash"), *unproven)
    assert out.exit_code == 2 and out.stderr.count("\n") == 1
    assert "0.1.0" in out.stderr and "federation new" in out.stderr and "--released N" in out.stderr
    assert files(village.folder) == before
    with pytest.raises(ValueError, match=r"0\.1\.0"):
        Purse(village.federation, 0, "people").prices  # noqa: B018


def test_it_is_read_without_a_price(village):
    home = village.folder / "ash"
    document = json.loads(call("node", "model", "--home", home).stdout)
    assert document["origin"]["round"] == 2 and document["privacy"]["rounds"] == 3
    assert document["privacy"]["epsilon"] is None and "0.1.0" in document["privacy"]["reason"]
    assert call("node", "status", "--home", home, "--json").exit_code == 0
    out = call("report", home, "--output", village.folder / "page.html", "--json")
    assert out.exit_code == 0, out.stderr
    assert json.loads(out.stdout)["epsilon"] is None and json.loads(out.stdout)["guarantee"] == "none"


def test_it_is_ended_by_the_owners_word_and_not_by_its_journal(village):
    ledger = village.folder / "ash" / "ledger.sqlite"
    out = call("account", "--ledger", ledger, "--end", village.run, "--journal", village.run_folder("ash"))
    assert out.exit_code == 2 and out.stderr.count("\n") == 1 and "--released N" in out.stderr
    with Ledger(ledger) as book:
        assert len(book.entries("people")) == 2 and book.balance("people").held == pytest.approx(0.04)
    assert call("account", "--ledger", ledger, "--end", village.run, "--released", 3).exit_code == 0
    with Ledger(ledger) as book:
        balance = book.balance("people")
        assert (balance.spent, balance.held) == (pytest.approx(0.08), 0.0)  # all four rounds' 2ρ


def test_federation_new_writes_the_present_format(village):
    card, file = village.folder / "ash" / "card.toml", village.folder / "new.toml"
    other = village.folder / "birch" / "card.toml"
    out = call("federation", "new", "--party", f"{card}=12", "--party", f"{other}=40", "--features", 4, "--epsilon", 1,
               "--graph", "path", "--output", file)  # fmt: skip
    assert out.exit_code == 0, out.stderr
    assert file.read_text().startswith("format = 2\n") and not federations.load(file).outdated
