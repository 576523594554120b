"""Files are there whole or not at all, and parts of a problem are read strictly."""

import os

import pytest

from confide.errors import ConfideError
from confide.files import OWNER_ONLY, write_whole
from confide.files.parts import from_table, to_table
from confide.network.identity import load_card
from confide.node import amendment, federation
from confide.problem import losses
from confide.schema.schema import Schema


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path, durable):
    path = tmp_path / "a"
    for data in (b"one", b"two"):
        assert write_whole(path, data, OWNER_ONLY, durable=durable) == path
        assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == OWNER_ONLY and os.listdir(tmp_path) == ["a"]


def test_a_new_file_never_takes_the_place_of_another(tmp_path):
    path = tmp_path / "key"
    assert write_whole(path, b"mine", OWNER_ONLY, new=True) == path
    with pytest.raises(FileExistsError):
        write_whole(path, b"another", OWNER_ONLY, new=True)
    assert path.read_bytes() == b"mine" and os.listdir(tmp_path) == ["key"]


def test_a_durable_file_outlives_a_power_loss_under_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    write_whole(tmp_path / "a", iter([b"one", b"two"]))
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert len(synced) == 2 and synced[0].endswith(".part") and synced[1] == str(tmp_path)


def test_a_part_comes_back_from_its_table():
    for loss in (losses.Logistic(), losses.Huber(2.0), losses.NoisyLabels(losses.Multinomial(3), epsilon=1.0)):
        assert from_table(to_table(loss), "loss", losses.ALL) == loss


@pytest.mark.parametrize("table, said", [
    (3, "loss=3: must be a table with a name"),
    ({"name": ["Huber"]}, "loss={'name': ['Huber']}: must be a table with a name"),
    ({"name": "Nothing"}, "loss: unknown name 'Nothing': known are "),
    ({"name": "Huber", "depth": 1}, "unknown field loss.depth: Huber takes width"),
    ({"name": "Logistic", "a": 1}, "unknown field loss.a: Logistic takes no parameter"),
    ({"name": "Huber", "width": -1}, "loss: "),
    ({"name": "Huber", "width": [1]}, "loss: "),
])  # fmt: skip
def test_every_mistake_in_a_part_is_one_line(table, said):
    with pytest.raises(ConfideError) as error:
        from_table(table, "loss", losses.ALL)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


def test_parts_within_parts_end(tmp_path):
    table = {"name": "Logistic"}
    for _ in range(1000):
        table = {"name": "NoisyLabels", "loss": table}
    with pytest.raises(ConfideError, match="unknown name"):
        from_table(table, "loss", losses.ALL)


@pytest.mark.parametrize("read, what", [
    (Schema.load, "a schema"), (federation.load, "a federation"), (amendment.load, "an amendment"),
    (load_card, "a card"),
])  # fmt: skip
@pytest.mark.parametrize("data, said", [
    (b"a = ", "not TOML, as {} is: "),
    (b"a = " + b"9" * 5000, "not TOML, as {} is: "),
    (b"a = \"\xff\"", "not TOML, as {} is: it is not text in UTF-8"),
    (b"a = " + b"[" * 5000 + b"]" * 5000, "not {}: lists or tables nested too deeply"),
])  # fmt: skip
def test_what_is_no_toml_is_one_line_of_every_file(tmp_path, read, what, data, said):
    path = tmp_path / "file.toml"
    path.write_bytes(data)
    with pytest.raises(ConfideError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: {said.format(what)}") and "\n" not in str(error.value)


def test_a_card_has_its_fields_and_no_others(tmp_path):
    (tmp_path / "card.toml").write_text('name = "a"\nadress = "b"\n')
    with pytest.raises(ConfideError, match=r"card.toml: unknown field adress: allowed are name, address, fingerprint"):
        load_card(tmp_path / "card.toml")
