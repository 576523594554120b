"""`benchmarks/accuracy.py` goes on where it was stopped, and its page says what is beyond a limit."""

import importlib
import json
import sys
from functools import partial
from pathlib import Path

import pytest

from confide.files import sources

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def parts(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    kept, page = (importlib.import_module(name) for name in ("accuracy_kept", "accuracy_page"))
    for name in ("NUMBERS", "PAGE", "PICTURE"):
        monkeypatch.setattr(page, name, tmp_path / getattr(page, name).name)
    yield kept, page
    for name in ("accuracy_kept", "accuracy_page"):
        sys.modules.pop(name, None)


def counting(path, value):
    """A number that leaves a line where it is computed."""
    with path.open("a") as file:
        file.write("asked\n")
    return value


def test_a_number_is_computed_once(parts, tmp_path):
    kept, _ = parts
    path, asked = tmp_path / "numbers.jsonl", tmp_path / "asked"
    makes = {f"adult {i}": partial(counting, asked, 15.5 + i) for i in range(3)}
    for _ in range(2):
        numbers = kept.Kept(path, jobs=1)
        assert numbers(makes, "method") == numbers(makes, "method") == [15.5, 16.5, 17.5]
    assert len(asked.read_text().splitlines()) == 3
    assert kept.Kept(path, again=True, jobs=1)({"adult 0": lambda: 16.0}, "method") == [16.0]
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert sorted(keys) == sorted(f"adult {i} {kept.code('method')}" for i in (0, 0, 1, 2))
    assert len({kept.code(of) for of in kept.MADE_OF}) == 3


def test_what_is_missing_is_asked_for_again(parts, tmp_path):
    kept, _ = parts
    path = tmp_path / "numbers.jsonl"
    assert kept.Kept(path, jobs=1)({"a": lambda: None, "b": lambda: 1.0}) == [None, 1.0]
    assert kept.Kept(path, jobs=1)({"a": lambda: 2.0, "b": lambda: 3.0}) == [2.0, 1.0]


def test_what_does_not_count_is_there(parts):
    kept, _ = parts
    names = [f"confide.{name}" for name in kept.SILENT]
    assert [name for name in names if sources.file_of(name) is None] == []


def test_the_page_shows_what_is_beyond_a_limit(parts):
    kept, page = parts
    good = kept.result("adult", "adult", "5 parties, c=1", 1.0, [15.0, 16.0], 15.9)
    bad = kept.result("adult", "adult", "5 parties, c=1", 3.0, [15.0, 17.0], 15.6)
    assert (good.value, good.error, good.met, bad.met) == (15.5, 0.5, True, False)
    page.note([good, bad])
    page.note(
        [kept.result("waveform", "waveform", "5 parties, c=1: above the curator", 1.0, [0.1, 0.3], 0.5, "points")]
    )
    page.write()
    text = page.PAGE.read_text()
    assert "| 5 parties, c=1 | 15.50 ± 0.50 (15.9) | **16.00 ± 1.00** (15.6) |" in text
    assert "| waveform | +0.20 ± 0.10 (0.5) |" in text and page.PICTURE.stat().st_size > 1000
    assert "* adult, ε=3, 5 parties, c=1: 16.00 ± 1.00 where 15.6 is the limit" in text
    page.note(
        [kept.result("adult", "adult", "5 parties, c=1", 3.0, [15.0, 15.2], 15.6)]
    )  # a part is replaced as a whole
    page.write()
    assert "Nothing." in page.PAGE.read_text() and "15.50" not in page.PAGE.read_text()


def test_the_page_says_which_numbers_are_of_earlier_code(parts, monkeypatch):
    kept, page = parts
    page.note([kept.result("adult", "adult", "5 parties, c=1", 1.0, [15.0, 16.0], of="method")])
    page.write()
    assert "measured with the code as it is." in page.PAGE.read_text()
    monkeypatch.setattr(kept, "code", lambda of: "another")
    page.write()
    assert "Measured with code that has changed since: adult." in page.PAGE.read_text()


def test_the_page_that_ships_is_of_the_numbers_that_ship(parts, monkeypatch):
    _, page = parts
    docs = FOLDER.parent / "docs"
    monkeypatch.setattr(page, "NUMBERS", docs / "accuracy.json")
    page.write()
    assert page.PAGE.read_text() == (docs / "accuracy.md").read_text()
