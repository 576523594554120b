"""`benchmarks/accuracy.py` goes on where it was stopped, and its page says what is beyond a limit."""

import importlib
import json
import sys
from pathlib import Path

import pytest

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


def test_a_number_is_computed_once(parts, tmp_path):
    kept, _ = parts
    path, asked = tmp_path / "numbers.jsonl", []
    for _ in range(2):
        numbers = kept.Kept(path, again=False)
        assert numbers("adult 1", lambda: asked.append(1) or 15.5, "method") == 15.5
        assert numbers("adult 1", lambda: asked.append(1) or 99.0, "method") == 15.5
    assert asked == [1]
    assert kept.Kept(path, again=True)("adult 1", lambda: 16.0, "method") == 16.0
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert keys == [f"adult 1 {kept.code('method')}"] * 2
    assert kept.code("method") != kept.code("estimators")


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
