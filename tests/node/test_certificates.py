"""Certificates that are about to end, or have, are spoken of: of nodes, hubs and relays."""

import datetime
import logging

import pytest
from cryptography import x509
from test_member import SECURE
from typer.testing import CliRunner
from village import Village

from confide.cli import app
from confide.errors import ConfideError
from confide.network import identity as identities
from confide.network.identity import Identity
from confide.node import codes, daemon

# --- certificates -----------------------------------------------------------------------------------------------------


def signed(key, name, begin, end):
    now = datetime.datetime.now(datetime.UTC)
    made = SELF_SIGNED(key, name)
    builder = x509.CertificateBuilder(
        made.issuer, made.subject, made.public_key(), made.serial_number,
        (now + datetime.timedelta(days=begin)).replace(tzinfo=None, microsecond=0),
        (now + datetime.timedelta(days=end)).replace(tzinfo=None, microsecond=0), list(made.extensions),
    )  # fmt: skip
    return builder.sign(key, made.signature_hash_algorithm)


SELF_SIGNED = identities.self_signed


@pytest.mark.parametrize(
    ("begin", "end", "words", "refused"),
    [(-20, -3, "expired on", True), (2, 30, "is valid from", True), (-5, 20, "expires on", False),
     (-5, 40, "", False)],
)  # fmt: skip
def test_a_certificate_says_when_it_ends(tmp_path, monkeypatch, begin, end, words, refused):
    """At `federation new` and at the start of a node, with the date."""
    monkeypatch.setattr(identities, "self_signed", lambda key, name: signed(key, name, begin, end))
    parties = []
    for name in ("ash", "birch"):
        Identity.create(tmp_path / name, name, "127.0.0.1:7001")
        parties += ["--party", f"{tmp_path / name / 'card.toml'}=10"]
    day = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=begin if begin > 0 else end)
    file = tmp_path / "federation.toml"
    done = CliRunner().invoke(app, ["federation", "new", *parties, "--features", "2", "--epsilon", "5",
                                    "--graph", "path", "--output", str(file)])  # fmt: skip
    said = f"{words} {day:%Y-%m-%d}"
    card = identities.load_card(tmp_path / "ash" / "card.toml")
    if refused:
        assert done.exit_code != 0 and not file.exists()
        with pytest.raises(ConfideError, match=said):
            card.check_valid()
    else:
        assert done.exit_code == 0, done.output
        assert (said in done.output) == bool(words) and (said in card.check_valid()) == bool(words)


@pytest.mark.parametrize("whose", ["ash", "birch"], ids=["its own", "a neighbour's"])
@pytest.mark.parametrize(
    ("begin", "end", "words", "refused"),
    [(-20, -3, "expired on", True), (2, 30, "is valid from", True), (-5, 20, "expires on", False),
     (-5, 40, "", False)],
)  # fmt: skip
def test_a_node_looks_at_certificates_when_it_starts(tmp_path, monkeypatch, caplog, begin, end, words, refused, whose):
    """Its own and its neighbours'; a word 30 days before the end. Out of date, its own keeps it from starting, and says
    what to do; a neighbour's does not.
    """
    monkeypatch.setattr(
        identities, "self_signed",
        lambda key, name: signed(key, name, begin, end) if name == whose else SELF_SIGNED(key, name),
    )  # fmt: skip
    village = Village(tmp_path, {**SECURE, "rounds": 2}, seed=None, budget=(20.0, 1e-5), timeout=0.2)
    day = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=begin if begin > 0 else end)
    said = f"the certificate of {whose} {words} {day:%Y-%m-%d}"
    home, ledger = tmp_path / "ash", tmp_path / "ash" / "ledger.sqlite"
    caplog.set_level(logging.WARNING)
    if refused and whose == "ash":
        with pytest.raises(ConfideError, match=rf"{said}.*: `confide node rekey` .* `confide federation amend --card`"):
            daemon.run(home, village.file, tmp_path / "ash.npz", ledger=ledger, agree=True)
        assert not (home / "runs").exists() and not ledger.exists()
        return
    status = daemon.run(
        home, village.file, tmp_path / "ash.npz", ledger=ledger, agree=True
    )  # alone: it waits, and stops
    assert status.code == codes.Code.TIMEOUT
    warned = [r.getMessage() for r in caplog.records if "certificate" in r.getMessage()]
    if refused:
        assert len(warned) == 1 and said in warned[0] and "so that it cannot be reached: `confide node rek" in warned[0]
    else:
        assert warned == ([said] if words else [])


@pytest.mark.parametrize("whose", ["hub", "relay"])
@pytest.mark.parametrize(("end", "words"), [(-3, "expired on"), (20, "expires on"), (40, "")])
def test_the_certificates_of_hub_and_relay_are_looked_at_by_federation_new(tmp_path, monkeypatch, whose, end, words):
    monkeypatch.setattr(
        identities, "self_signed",
        lambda key, name: signed(key, name, -5, end) if name == whose else SELF_SIGNED(key, name),
    )  # fmt: skip
    for name in ("ash", "birch", whose):
        Identity.create(tmp_path / name, name, "127.0.0.1:7001")
    cards = {name: str(tmp_path / name / "card.toml") for name in ("ash", "birch", whose)}
    method = "FDPADMM" if whose == "hub" else "CDPADMM"
    file = tmp_path / "federation.toml"
    new = ["federation", "new", "--party", f"{cards['ash']}=12", "--party", f"{cards['birch']}=12", "--features", "4",
           "--graph", "path", "--epsilon", "5", "--output", str(file), f"--{whose}", cards[whose], "--algorithm",
           method, "--set", "rounds=2", "--set", "clip=1"]  # fmt: skip
    day = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=end)
    said = f"the certificate of {whose} {words} {day:%Y-%m-%d}"
    done = CliRunner().invoke(app, new)
    assert file.exists() == (end > 0), done.output
    assert (said in done.stderr + str(done.exception)) == bool(words)


@pytest.mark.parametrize(("end", "words"), [(-3, "expired on"), (20, "expires on"), (40, "")])
def test_a_relays_certificate_is_looked_at_by_nodes_and_by_the_relay(tmp_path, monkeypatch, caplog, end, words):
    """A node runs without it, as some are reached straight; a relay that nobody would believe does not."""
    monkeypatch.setattr(
        identities, "self_signed",
        lambda key, name: signed(key, name, -5, end) if name == "relay" else SELF_SIGNED(key, name),
    )  # fmt: skip
    village = Village(tmp_path, {**SECURE, "rounds": 2}, seed=None, budget=(20.0, 1e-5), timeout=0.2, outbound=("elm",))
    day = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=end)
    said = f"the certificate of relay {words} {day:%Y-%m-%d}"
    caplog.set_level(logging.WARNING)
    ledger = tmp_path / "ash" / "ledger.sqlite"
    status = daemon.run(tmp_path / "ash", village.file, tmp_path / "ash.npz", ledger=ledger, agree=True)
    assert status.code == codes.Code.TIMEOUT
    warned = [r.getMessage() for r in caplog.records if "certificate" in r.getMessage()]
    assert len(warned) == bool(words) and all(one.startswith(said) for one in warned)
    served = []
    monkeypatch.setattr("confide.cli.relay.serve", lambda board, *rest: _nothing(served.append(board)))
    done = CliRunner().invoke(app, village.arguments("relay"))
    assert bool(served) == (end > 0) and (said in done.stderr + str(done.exception)) == bool(words)


async def _nothing(_):
    pass
