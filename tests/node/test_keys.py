"""Keys at rest: for their owner's eyes, encrypted if the owner wants, and asked for only when they sign."""

import json
import os
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from typer.testing import CliRunner
from village import Village

from confide.cli import app
from confide.errors import ConfideError
from confide.network.identity import Identity, load_card
from confide.node import export, keys
from confide.node.keys import Keys, new_key

CDP = {"name": "CDPADMM", "rounds": 3, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}


def test_an_encrypted_key_is_pkcs8_that_others_can_read_with_the_passphrase(tmp_path):
    made = Identity.create(tmp_path / "ash", "ash", "127.0.0.1:1", b"correct horse")
    pem = (tmp_path / "ash" / "key.pem").read_bytes()
    assert pem.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert stat.S_IMODE((tmp_path / "ash" / "key.pem").stat().st_mode) == 0o600
    key = serialization.load_pem_private_key(pem, b"correct horse")
    assert key.private_numbers() == made.key.private_numbers()
    again = Identity.load(tmp_path / "ash", lambda path: b"correct horse")
    assert again.card.verify(again.sign(b"x"), b"x")
    with pytest.raises(ConfideError, match=r"key.pem: not its passphrase, or damaged"):
        Identity.load(tmp_path / "ash", lambda path: b"wrong")
    with pytest.raises(ConfideError, match="encrypted, and no passphrase is given"):
        Identity.load(tmp_path / "ash")
    with pytest.raises(ConfideError, match="an empty passphrase"):
        Identity.create(tmp_path / "birch", "birch", "127.0.0.1:1", b"")
    assert not (tmp_path / "birch" / "key.pem").exists()


def test_a_passphrase_comes_from_the_environment_a_file_or_a_person(tmp_path, monkeypatch):
    path = tmp_path / "key.pem"
    with pytest.raises(ConfideError, match="give its passphrase at a terminal, in CONFIDE_PASSPHRASE, or in a file"):
        keys.ask(path)
    secret = tmp_path / "secret"
    secret.write_text("from a file\nand no more\n")
    secret.chmod(0o644)
    monkeypatch.setenv("CONFIDE_PASSPHRASE_FILE", str(secret))
    with pytest.raises(ConfideError, match="others can read the passphrase; chmod 600 it"):
        keys.ask(path)
    secret.chmod(0o600)
    assert keys.ask(path) == b"from a file"
    monkeypatch.setenv("CONFIDE_PASSPHRASE", "from the environment")
    assert keys.ask(path) == keys.chosen() == b"from the environment"
    for name in ("CONFIDE_PASSPHRASE", "CONFIDE_PASSPHRASE_FILE"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = iter(["typed", "typed", "typed", "mistyped"])
    monkeypatch.setattr(keys, "getpass", lambda prompt: next(answers))
    assert keys.chosen() == b"typed"
    with pytest.raises(ConfideError, match="two different passphrases"):
        keys.chosen()


def test_the_commands_make_and_use_encrypted_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_PASSPHRASE", "s3cret")
    runner = CliRunner()
    home = tmp_path / "ash"
    done = runner.invoke(
        app, ["node", "init", "--name", "ash", "--listen", "127.0.0.1:1", "--home", str(home), "--encrypt"]
    )
    assert done.exit_code == 0 and b"ENCRYPTED" in (home / "key.pem").read_bytes()
    done = runner.invoke(app, ["node", "rekey", "--home", str(home), "--encrypt", "--json"])
    card = load_card(json.loads(done.output)["card"] and next(home.glob("keys/*/card.toml")))
    found = Keys(home)
    assert len(found) == 2 and found[card.digest].sign(b"x")
    monkeypatch.setenv("CONFIDE_PASSPHRASE", "wrong")
    with pytest.raises(ConfideError, match="not its passphrase"):
        Keys(home)[card.digest]


def test_looking_at_a_run_needs_no_key(tmp_path):
    """Models, reports and closings are functions of journals: a passphrase is never asked for."""
    village = Village(tmp_path, CDP)
    from test_member import trainer

    member = trainer(village)
    member.open()
    member.begin()
    member.purse.close()
    member.journal.close()
    (village.run_folder("ash") / "federation.toml").write_text(village.file.read_text())
    (tmp_path / "ash" / "key.pem").unlink()
    assert export.export(tmp_path / "ash", village.run_folder("ash")).origin["node"] == "ash"


def test_a_new_key_is_a_new_identity_under_the_same_name(tmp_path):
    old = Identity.create(tmp_path, "ash", "127.0.0.1:1").card
    new = load_card(new_key(tmp_path, "127.0.0.1:2"))
    assert (new.name, new.address) == ("ash", "127.0.0.1:2") and new.digest != old.digest
    assert load_card(tmp_path / "card.toml") == old  # which other runs go on with
    for folder in tmp_path.glob("keys/*"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    with pytest.raises(ConfideError, match="holds no node"):
        new_key(tmp_path / "nowhere")
